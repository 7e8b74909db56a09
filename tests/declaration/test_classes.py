"""What the decorator makes of a class, and what it leaves alone."""

import copy
import functools
import inspect
import pickle
import typing
from typing import Any, ClassVar

import attrs
import msgspec
import pytest

from orchestra import Actor, Context, DeclarationError, Subsystem, handles, orchestra, plan_of, subsystem


class A(msgspec.Struct): ...


class B(msgspec.Struct): ...


class Sig(msgspec.Struct): ...


class One(Subsystem):
    async def run(self, ctx: Any) -> None: ...


class Taker(Actor):
    def handle(self, ctx: Any, message: Any) -> None: ...


deco = orchestra(signal=Sig, event=Sig)


@deco
class Kept:
    first: One = subsystem(consumes=A, sends=[B])
    second: Taker = subsystem(consumes=B)
    title: str = "t"
    tags: list[str] = attrs.field(factory=list)
    seen: set[str] = attrs.Factory(set)


def test_the_decorator_returns_the_same_class_object() -> None:
    class App:
        first: One = subsystem(consumes=A)

    assert deco(App) is App
    assert App.__qualname__.endswith("<locals>.App")
    assert not [base for base in App.__mro__ if base not in (App, object)]


def test_init_subclass_is_called_once_and_leaves_one_subclass() -> None:
    calls: list[type] = []

    class Base:
        def __init_subclass__(cls) -> None:
            calls.append(cls)

    @deco
    class App(Base):
        first: One = subsystem(consumes=A)

    assert calls == [App]
    assert Base.__subclasses__() == [App]


def test_a_bare_super_works_in_a_wrapped_method() -> None:
    def plain(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any) -> Any:
            return function(*args)

        return wrapper

    class Base:
        def word(self) -> str:
            return "base"

    @deco
    class App(Base):
        first: One = subsystem(consumes=A)

        @plain
        def word(self) -> str:
            return super().word() + "!"

    assert App(first=One()).word() == "base!"


def test_no_class_that_is_referred_to_is_changed() -> None:
    class Message:
        n: int = 3

    class Part(Actor):
        def handle(self, ctx: Any, message: Any) -> None: ...

    before = [(dict(vars(kind)), kind.__name__, kind.__qualname__) for kind in (Message, Part, Sig)]

    @deco
    class App:
        part: Part = subsystem(consumes=Message)
        kind: type = Message

    assert [(dict(vars(kind)), kind.__name__, kind.__qualname__) for kind in (Message, Part, Sig)] == before


def test_instances_and_the_class_come_back_from_pickle() -> None:
    app = Kept(first=One(), second=Taker(), tags=["x"])
    again = pickle.loads(pickle.dumps(app))
    assert type(again) is Kept
    assert again.tags == ["x"]
    assert isinstance(again.first, One)
    assert pickle.loads(pickle.dumps(Kept)) is Kept
    assert copy.deepcopy(app).tags == ["x"]


def test_the_constructor_is_keyword_only_and_keeps_defaults() -> None:
    app = Kept(first=One(), second=Taker())
    assert (app.title, app.tags, app.seen) == ("t", [], set())
    assert Kept(first=One(), second=Taker()).tags is not app.tags
    with pytest.raises(TypeError):
        Kept(One(), Taker())  # type: ignore[misc]
    with pytest.raises(TypeError, match="'second'"):
        Kept(first=One())  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="colour"):
        Kept(first=One(), second=Taker(), colour=1)  # type: ignore[call-arg]
    assert [each.kind for each in inspect.signature(Kept).parameters.values()] == [
        inspect.Parameter.KEYWORD_ONLY
    ] * 5


def test_the_repr_shows_every_field() -> None:
    assert repr(Kept(first=One(), second=Taker())).startswith("Kept(first=<")
    assert repr(Kept(first=One(), second=Taker())).endswith("title='t', tags=[], seen=set())")


def test_instances_are_equal_only_to_themselves_and_hashable() -> None:
    app = Kept(first=One(), second=Taker())
    assert app == app
    assert app != Kept(first=app.first, second=app.second)
    assert len({app, app}) == 1


def test_leading_underscores_stay_in_the_constructor() -> None:
    @deco
    class App:
        _first: One = subsystem(consumes=A)
        _title: str = "t"
        renamed: int = attrs.field(default=1, alias="number")
        _kept: int = attrs.field(default=2, alias="other")

    app = App(_first=One(), _title="u", number=3, other=4)  # type: ignore[call-arg]
    assert (app._title, app.renamed, app._kept) == ("u", 3, 4)


def test_own_methods_are_kept() -> None:
    @deco
    class App:
        first: One = subsystem(consumes=A)
        number: int = 1

        def __init__(self, number: int) -> None:
            self.__attrs_init__(first=One(), number=number)  # type: ignore[attr-defined]

        def __repr__(self) -> str:
            return f"<{self.number}>"

    app = App(7)
    assert repr(app) == "<7>"
    assert isinstance(app.first, One)


def test_attrs_hooks_validators_and_converters_work() -> None:
    @deco
    class App:
        first: One = subsystem(consumes=A)
        number: int = attrs.field(default="3", converter=int, validator=attrs.validators.gt(0))

        def __attrs_post_init__(self) -> None:
            self.double = self.number * 2

    assert App(first=One()).double == 6
    with pytest.raises(ValueError, match="number"):
        App(first=One(), number=-1)


def test_class_variables_are_no_fields() -> None:
    @deco
    class App:
        first: One = subsystem(consumes=A)
        limit: ClassVar[int] = 3
        part: "ClassVar[type[One]]" = One

    assert [field.name for field in attrs.fields(App)] == ["first"]
    assert App.limit == 3


def test_fields_bear_their_resolved_types() -> None:
    @deco
    class App:
        first: "One" = subsystem(consumes=A)

    assert attrs.fields(App).first.type is One


def test_the_union_of_messages_stands_under_its_name() -> None:
    assert typing.get_args(Kept.AllMessages) == (A, B)  # type: ignore[attr-defined]

    @orchestra(signal=Sig, event=Sig, gen="Only")
    class App:
        first: One = subsystem(consumes=A)

    assert App.Only is A  # type: ignore[attr-defined]
    assert not hasattr(App, "AllMessages")


def test_a_conditional_field_is_there_or_not() -> None:
    def make(wanted: bool) -> type:
        @deco
        class App:
            first: One = subsystem(consumes=A)
            if wanted:
                second: Taker = subsystem(consumes=B)

        return App

    assert list(plan_of(make(True)).subsystems) == ["first", "second"]
    assert list(plan_of(make(False)).subsystems) == ["first"]


def test_an_unwritten_subsystem_takes_no_argument() -> None:
    class Later(Subsystem): ...

    @deco
    class App:
        first: One = subsystem(consumes=A, sends=[B])
        later: Later = subsystem(consumes=B, wip=True)
        bare: Actor = subsystem(consumes=Sig.__mro__[-1].__class__ and int, wip=True)

    assert App(first=One()).later is None
    plan = plan_of(App)
    assert plan.subsystems["later"].wip
    assert plan.messages == (A, B, int)
    assert plan.routes[B].receivers == ("later",)
    with pytest.raises(TypeError, match="later"):
        App(first=One(), later=Later())  # type: ignore[call-arg]


def test_a_decorated_subclass_inherits_the_fields_of_its_base() -> None:
    @deco
    class Child(Kept):
        third: Taker = subsystem(consumes=int)

    assert list(plan_of(Child).subsystems) == ["first", "second", "third"]
    assert list(plan_of(Kept).subsystems) == ["first", "second"]
    assert Child(first=One(), second=Taker(), third=Taker()).title == "t"
    assert typing.get_args(Child.AllMessages) == (A, B, int)  # type: ignore[attr-defined]


def test_a_decorated_subclass_may_declare_a_field_anew() -> None:
    @deco
    class Child(Kept):
        first: Taker = subsystem(consumes=A | int, sends=[B])

    plan = plan_of(Child)
    assert list(plan.subsystems) == ["second", "first"]
    assert plan.subsystems["first"].kind is Taker
    assert plan.messages == (B, A, int)


def test_a_decorated_subclass_may_turn_a_subsystem_into_baggage() -> None:
    @deco
    class Child(Kept):
        first: str = "gone"

    assert list(plan_of(Child).subsystems) == ["second"]
    assert Child(second=Taker()).first == "gone"


def test_fields_of_a_diamond_follow_the_method_resolution_order() -> None:
    @deco
    class Root:
        shared: One = subsystem(consumes=A)

    @deco
    class Left(Root):
        left: One = subsystem(consumes=B)

    @deco
    class Right(Root):
        shared: Taker = subsystem(consumes=A)
        right: One = subsystem(consumes=int)

    @deco
    class Both(Left, Right): ...

    plan = plan_of(Both)
    assert (
        list(plan.subsystems) == [field.name for field in attrs.fields(Both)] == ["shared", "right", "left"]
    )
    assert plan.subsystems["shared"].kind is Taker


def test_an_attrs_mixin_brings_its_fields() -> None:
    @attrs.define(slots=False, kw_only=True)
    class Mixin:
        extra: "One" = subsystem(consumes=A)

    @deco
    class App(Mixin):
        second: Taker = subsystem(consumes=B)

    assert list(plan_of(App).subsystems) == ["extra", "second"]


def test_an_undecorated_subclass_that_adds_nothing_works() -> None:
    class Child(Kept):
        def words(self) -> str:
            return self.title

    app = Child(first=One(), second=Taker())
    assert app.words() == "t"
    assert plan_of(Child) is plan_of(Kept)


def test_a_module_that_runs_twice_declares_twice() -> None:
    source = (
        "from orchestra import Subsystem, orchestra, subsystem\n"
        "class A: ...\n"
        "class S: ...\n"
        "class One(Subsystem):\n    async def run(self, ctx): ...\n"
        "@orchestra(signal=S, event=S)\n"
        "class App:\n    first: 'One' = subsystem(consumes=A)\n"
    )
    spaces: list[dict[str, Any]] = [{"__name__": "twice"}, {"__name__": "twice"}]
    for space in spaces:
        exec(source, space)
    first, second = spaces
    assert first["App"] is not second["App"]
    for space in spaces:
        assert plan_of(space["App"]).messages == (space["A"],)
        assert plan_of(space["App"]).subsystems["first"].kind is space["One"]


def test_one_subsystem_class_stands_in_several_fields_and_orchestras() -> None:
    @deco
    class First:
        left: Taker = subsystem(consumes=A)
        right: Taker = subsystem(consumes=B)

    @orchestra(signal=B, event=B)
    class Second:
        only: Taker = subsystem(consumes=A)

    assert plan_of(First).subsystems["left"].kind is plan_of(Second).subsystems["only"].kind
    assert plan_of(Second).routes[A].receivers == ("only",)
    assert plan_of(First).routes[B].receivers == ("right",)


def test_same_named_messages_of_two_modules_are_two_messages() -> None:
    other: Any = type("A", (), {"__module__": "elsewhere"})

    @deco
    class App:
        first: Taker = subsystem(consumes=A)
        second: Taker = subsystem(consumes=other)

    assert plan_of(App).messages == (A, other)
    assert plan_of(App).routes[other].receivers == ("second",)


def test_two_declarations_by_one_decorator_are_apart() -> None:
    @deco
    class First:
        only: Taker = subsystem(consumes=A)

    @deco
    class Second:
        only: Taker = subsystem(consumes=B)

    assert plan_of(First).messages == (A,)
    assert plan_of(Second).messages == (B,)


def test_a_failed_declaration_leaves_the_class_as_it_was() -> None:
    class App:
        first: One = subsystem(consumes=A, sends=[B])

    before = dict(vars(App))
    with pytest.raises(DeclarationError):
        deco(App)
    assert dict(vars(App)) == before


def test_handles_marks_are_stacked_and_inherited() -> None:
    class Base(Actor):
        @handles(A)
        @handles(B)
        def on_two(self, ctx: Any, message: Any) -> None: ...

    class Child(Base):
        async def on_two(self, ctx: Any, message: Any) -> None: ...

    class Renewed(Base):
        @handles(A)
        def on_two(self, ctx: Any, message: Any) -> None: ...

    class Removed(Base):
        on_two = None  # type: ignore[assignment]

        def handle(self, ctx: Any, message: Any, /) -> None: ...

    def handlers(kind: type, consumes: Any) -> list[tuple[Any, str, bool]]:
        @deco
        class App:
            only: kind = subsystem(consumes=consumes)  # type: ignore[valid-type]

        return [
            (each.message, each.method, each.is_async) for each in plan_of(App).subsystems["only"].handlers
        ]

    assert handlers(Base, A | B) == [(B, "on_two", False), (A, "on_two", False)]
    assert handlers(Child, A | B) == [(B, "on_two", True), (A, "on_two", True)]
    assert handlers(Renewed, A) == [(A, "on_two", False)]
    assert handlers(Removed, A) == [(A, "handle", False)]


def test_a_context_has_no_dict_and_iterates_until_closed() -> None:
    import asyncio

    from orchestra import Closed

    class Small(Context[int, int]):
        __slots__ = ("recv",)

    async def main() -> list[int]:
        items = iter([1, 2])
        ctx: Any = Small()

        async def recv() -> int:
            for item in items:
                return item
            raise Closed("no more")

        ctx.recv = recv
        return [item async for item in ctx]

    assert asyncio.run(main()) == [1, 2]
    assert not hasattr(Small(), "__dict__")
