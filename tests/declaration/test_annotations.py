"""String annotations and stated bases, resolved with the names their author could see."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Never, Optional, TypeVar, Union

import msgspec
import pytest
import typing_extensions

from orchestra import Actor, DeclarationError, Subsystem, handles, orchestra, plan_of, subsystem

if TYPE_CHECKING:
    from decimal import Decimal

T = TypeVar("T")
D = typing_extensions.TypeVar("D", default="Late")


class Sig(msgspec.Struct): ...


class A(msgspec.Struct): ...


class B(msgspec.Struct): ...


class Msg(Generic[T]): ...


class Early(Actor["Late", "A | Msg[int]"]):
    def handle(self, ctx: Any, message: Any) -> None: ...


class Late(msgspec.Struct): ...


class Taker(Actor):
    def handle(self, ctx: Any, message: Any) -> None: ...


deco = orchestra(signal=Sig, event=Sig)


def entry(app: type, name: str = "only") -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    found = plan_of(app).subsystems[name]
    return found.consumes, found.sends


def test_classes_of_the_decorating_function_are_found() -> None:
    class Local(msgspec.Struct): ...

    class Part(Actor):
        def handle(self, ctx: Any, message: Any) -> None: ...

    @deco
    class App:
        only: Part = subsystem(consumes=Local)

    assert plan_of(App).subsystems["only"].kind is Part


def test_classes_of_enclosing_functions_are_found_without_a_closure() -> None:
    class Part(Taker): ...

    def inner() -> type:
        def innermost() -> type:
            @deco
            class App:
                only: Part = subsystem(consumes=A)

            return App

        return innermost()

    assert plan_of(inner()).subsystems["only"].kind is Part


def test_a_caller_that_does_not_enclose_is_not_searched() -> None:
    def make() -> type:
        @deco
        class App:
            only: Borrowed = subsystem(consumes=A)  # type: ignore[name-defined] # noqa: F821

        return App

    def caller() -> type:
        class Borrowed(Taker): ...

        assert Borrowed
        return make()

    with pytest.raises(DeclarationError, match="'Borrowed' is not found"):
        caller()


def test_classes_of_the_enclosing_class_body_and_of_the_class_itself_are_found() -> None:
    class Outer:
        class Part(Taker): ...

        @deco
        class App:
            class Own(Taker): ...

            first: Part = subsystem(consumes=A)  # noqa: F821
            second: Own = subsystem(consumes=B)

    assert plan_of(Outer.App).subsystems["first"].kind is Outer.Part
    assert plan_of(Outer.App).subsystems["second"].kind is Outer.App.Own


def test_a_field_default_does_not_hide_a_type() -> None:
    @deco
    class App:
        Taker: int = 3
        only: Taker = subsystem(consumes=A)  # type: ignore[valid-type]

    assert plan_of(App).subsystems["only"].kind is Taker


def test_baggage_that_only_the_type_checker_knows_is_left_alone() -> None:
    @deco
    class App:
        only: Taker = subsystem(consumes=A)
        price: Decimal
        prices: list[Decimal] | None = None

    assert App(only=Taker(), price=3).prices is None  # type: ignore[arg-type]


def test_wrappers_and_quotes_around_a_class_are_taken_off() -> None:
    @deco
    class App:
        first: Annotated[Taker, "note"] = subsystem(consumes=A)
        second: Final[Taker] = subsystem(consumes=B)
        third: "Taker" = subsystem(consumes=int)  # noqa: UP037

    assert {each.kind for each in plan_of(App).subsystems.values()} == {Taker}


def test_forward_references_in_the_base_are_resolved() -> None:
    @deco
    class App:
        only: Early = subsystem()
        rest: Taker = subsystem(consumes=A | Msg)

    assert entry(App) == ((Late,), (A, Msg[int]))


def test_forward_references_to_local_classes_are_resolved() -> None:
    class Part(Actor["Local", Never]):
        def handle(self, ctx: Any, message: Any) -> None: ...

    class Local: ...

    @deco
    class App:
        only: Part = subsystem()

    assert entry(App) == ((Local,), ())


def test_handles_resolves_a_forward_reference() -> None:
    class Part(Actor):
        @handles("Late")
        def on_late(self, ctx: Any, message: Any) -> None: ...

    @deco
    class App:
        only: Part = subsystem(consumes=Late)

    assert [each.message for each in plan_of(App).subsystems["only"].handlers] == [Late]


class Middle(Actor[T, Union[B, T]], Generic[T]):
    def handle(self, ctx: Any, message: Any) -> None: ...


class Bottom(Middle[A]): ...


class Twice(Middle[Union[T, Late]], Generic[T]): ...


class Defaulted(Actor[D, Never], Generic[D]):
    def handle(self, ctx: Any, message: Any) -> None: ...


class ByDefault(Defaulted): ...


class Receives(Actor[A]):
    def handle(self, ctx: Any, message: Any) -> None: ...


class Nothing(Subsystem[Never, Never]):
    async def run(self, ctx: Any) -> None: ...


def test_intermediate_generic_bases_are_followed() -> None:
    @deco
    class App:
        only: Bottom = subsystem()
        rest: Taker = subsystem(consumes=B)

    assert entry(App) == ((A,), (B, A))


def test_a_subscripted_subsystem_class_is_its_class_with_what_was_given() -> None:
    @deco
    class App:
        only: Twice[A] = subsystem()
        rest: Taker = subsystem(consumes=B)

    assert plan_of(App).subsystems["only"].kind is Twice
    assert entry(App) == ((A, Late), (B, A, Late))


def test_a_subclass_of_an_orchestra_keeps_what_a_subscripted_field_was_given() -> None:
    @deco
    class Base:
        only: Twice[A] = subsystem()
        rest: Taker = subsystem(consumes=B)

    @deco
    class App(Base):
        more: Taker = subsystem(consumes=int)

    assert entry(App) == entry(Base)


def test_a_type_variable_with_nothing_given_says_nothing() -> None:
    @deco
    class App:
        only: Middle = subsystem(consumes=int, sends=[A])
        rest: Taker = subsystem(consumes=A)

    assert entry(App) == ((int,), (A,))


def test_the_default_of_a_type_variable_counts() -> None:
    @deco
    class App:
        only: ByDefault = subsystem()

    assert entry(App) == ((Late,), ())


def test_an_argument_left_out_of_the_base_says_nothing() -> None:
    @deco
    class App:
        only: Receives = subsystem(sends=[B])
        rest: Taker = subsystem(consumes=B)

    assert entry(App) == ((A,), (B,))


def test_any_and_object_in_the_base_say_nothing() -> None:
    class Wide(Actor[object, Any]):
        def handle(self, ctx: Any, message: Any) -> None: ...

    @deco
    class App:
        only: Wide = subsystem(consumes=A)

    assert entry(App) == ((A,), ())


def test_never_states_that_there_is_none() -> None:
    @deco
    class App:
        only: Nothing = subsystem()
        other: Taker = subsystem(consumes=A)

    assert entry(App) == ((), ())
    with pytest.raises(DeclarationError, match="it receives A, and the base of its class says nothing"):

        @deco
        class Wrong:
            only: Nothing = subsystem(consumes=A)


def test_given_both_in_other_order_they_agree() -> None:
    class Part(Actor[Union[A, B], Never]):
        def handle(self, ctx: Any, message: Any) -> None: ...

    @deco
    class App:
        only: Part = subsystem(consumes=B | A)

    assert entry(App) == ((B, A), ())


def test_what_is_subscribed_is_part_of_what_the_base_receives() -> None:
    class Part(Actor[Union[A, B], Never]):
        def handle(self, ctx: Any, message: Any) -> None: ...

    @deco
    class App:
        only: Part = subsystem(subscribes=[B])

    @deco
    class Both:
        only: Part = subsystem(subscribes=[B], consumes=A)

    for app in (App, Both):
        assert entry(app) == ((A,), ())
        assert plan_of(app).subsystems["only"].subscribes == (B,)


Alias = typing_extensions.TypeAliasType("Alias", Union[A, B])
Nested = typing_extensions.TypeAliasType("Nested", Union[Alias, int])
Listed = typing_extensions.TypeAliasType("Listed", Union[Msg[T], A], type_params=(T,))

SPELLINGS: list[tuple[Any, tuple[Any, ...]]] = [
    (A, (A,)),
    (A | B, (A, B)),
    (Union[A, B], (A, B)),
    (Union[A, Union[B, A]], (A, B)),
    (typing.Annotated[A | B, "x"], (A, B)),
    (Alias, (A, B)),
    (Nested, (A, B, int)),
    (Union[Alias, A], (A, B)),
    (Listed[int], (Msg[int], A)),
    (Msg[int] | A, (Msg[int], A)),
    (Msg, (Msg,)),
    (A, (A,)),
]


@pytest.mark.parametrize(("spelling", "meant"), SPELLINGS)
def test_every_spelling_of_a_union_means_the_same(spelling: Any, meant: tuple[Any, ...]) -> None:
    @deco
    class App:
        only: Taker = subsystem(consumes=spelling)
        sender: Taker = subsystem(sends=[spelling])

    assert plan_of(App).subsystems["only"].consumes == meant
    assert plan_of(App).subsystems["sender"].sends == meant
    assert plan_of(App).messages == meant


def test_optional_is_refused_whatever_was_spelled_before() -> None:
    for spelling in (Optional[A], A | None, Union[None, A], Optional[A]):
        with pytest.raises(DeclarationError, match="None is no message"):

            @deco
            class App:
                only: Taker = subsystem(consumes=spelling)
