"""Each mistake in a declaration, with the exact text that tells it. The place is checked by itself."""

import asyncio
import enum
import math
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, Never, NewType, Optional, Protocol, TypedDict, TypeVar, Union

import attrs
import msgspec
import pytest

from orchestra import (
    Actor,
    Block,
    DeclarationError,
    Drop,
    DropOldest,
    Fail,
    Priority,
    Restart,
    Subsystem,
    handles,
    orchestra,
    plan_of,
    subsystem,
)
from orchestra.overflow import Overflow

T = TypeVar("T")


class A(msgspec.Struct): ...


class B(msgspec.Struct): ...


class C(msgspec.Struct): ...


class ChildOfA(A): ...


class Sig(msgspec.Struct): ...


class ChildOfSig(Sig): ...


class Ev(msgspec.Struct): ...


class Msg(Generic[T]): ...


class One(Subsystem):
    async def run(self, ctx): ...


class Two(Subsystem):
    async def run(self, ctx): ...


class Taker(Actor):
    def handle(self, ctx, message): ...


class Silent(Subsystem): ...


class Mute(Actor): ...


class Looks(Protocol):
    def look(self) -> None: ...


class Row(TypedDict):
    n: int


Name = NewType("Name", A)

deco = orchestra(signal=Sig, event=Ev)
cases: list[tuple[str, Callable[[], Any]]] = []


def says(text: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a declaration that is refused with exactly this text, up to the place."""

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        cases.append((text, make))
        return make

    return register


def one(**given: Any) -> Any:
    """The orchestra with one subsystem, declared with what is given."""

    @deco
    class App:
        first: One = subsystem(**given)

    return App


def of(kind: type, **given: Any) -> Any:
    """The orchestra with one subsystem of a class."""

    @deco
    class App:
        first: kind = subsystem(**{"consumes": A, **given})  # type: ignore[valid-type]

    return App


def with_options(**given: Any) -> Any:
    @orchestra(**{"signal": Sig, "event": Ev, **given})
    class App:
        first: One = subsystem(consumes=A)

    return App


# Consumers


@says("App has __slots__, and its fields are kept in a __dict__: leave __slots__ out")
def slots():
    @deco
    class App:
        __slots__ = ("other",)
        first: One = subsystem(consumes=A)


class Meta(type):
    __hash__ = None  # type: ignore[assignment]  # what the test is about

    def __eq__(cls, other: object) -> bool:
        return cls is other


class Unhashable(metaclass=Meta): ...


UNHASHABLE = (
    "Unhashable cannot be hashed, and messages are routed by class: give its metaclass Meta a __hash__"
)


@says(f"App.first: consumes: {UNHASHABLE}")
def consumes_unhashable():
    one(consumes=Unhashable)


@says(f"App.first: sends: {UNHASHABLE}")
def sends_unhashable():
    one(consumes=A, sends=[B, Unhashable])


@says(f"App: signal: {UNHASHABLE}")
def signal_unhashable():
    @orchestra(signal=Unhashable, event=Ev)
    class App:
        first: One = subsystem(consumes=A)


@says(
    "App.first and App.second both consume A: a type has one consumer; "
    "for a copy to each use subscribes=[...] in both"
)
def two_consumers():
    @deco
    class App:
        first: One = subsystem(consumes=A)
        second: Two = subsystem(consumes=A | B)


@says(
    "App.first and App.second both consume Msg (Msg[int] and Msg[str] are one class): a type has "
    "one consumer; for a copy to each use subscribes=[...] in both"
)
def two_consumers_of_one_generic_class():
    @deco
    class App:
        first: One = subsystem(consumes=Msg[int])
        second: One = subsystem(consumes=Msg[str])


@says("App.first consumes A and App.second subscribes to it: let both subscribe, or one consume")
def consumed_here_and_subscribed_there():
    @deco
    class App:
        first: One = subsystem(consumes=A)
        second: Two = subsystem(subscribes=[A], consumes=B)


@says(
    "App.first consumes Msg[int] and App.second subscribes to Msg[str], which is the same class: "
    "let both subscribe, or one consume"
)
def consumed_and_subscribed_generic():
    @deco
    class App:
        second: Two = subsystem(subscribes=[Msg[str]])
        first: One = subsystem(consumes=Msg[int])


@says(
    "App.first and App.second subscribe to Msg (Msg[int] and Msg[str] are one class): "
    "messages are routed by class, so both would receive all of Msg"
)
def subscribers_of_one_generic_class():
    @deco
    class App:
        first: One = subsystem(subscribes=[Msg[int]])
        second: One = subsystem(subscribes=[Msg[str]])


@says("App.first: it consumes A and subscribes to it: a type is either consumed or broadcast")
def consumed_and_subscribed_at_once():
    one(consumes=A, subscribes=[A])


@says(
    "App.first sends Msg[int] and App.second receives Msg[str]: they are one class, "
    "and messages are routed by class"
)
def sends_another_generic():
    @deco
    class App:
        first: One = subsystem(sends=[Msg[int]])
        second: One = subsystem(consumes=Msg[str])


@says(
    "App.first: it neither consumes nor sends anything: give consumes= or sends=, "
    "or derive its class from Subsystem[In, Out]; consumes=Never is for a subsystem that lives on signals"
)
def nothing_consumed_nor_sent():
    one()


# Sent and outgoing


@says("App.first sends B, which nobody receives: let a subsystem consume it, or name it in outgoing=")
def sent_but_not_received():
    one(consumes=A, sends=[B])


@says(
    "App.first and App.second send B and C, which nobody receives: let a subsystem consume it, "
    "or name it in outgoing="
)
def sent_by_two_but_not_received():
    @deco
    class App:
        first: One = subsystem(consumes=A, sends=[B])
        second: One = subsystem(sends=[C, B])


@says("App: nobody sends B, which is outgoing: put it into the sends= of a subsystem, or leave it out")
def outgoing_that_nobody_sends():
    with_options(outgoing=B)


@says("App: nobody sends B and C, which are outgoing: put it into the sends= of a subsystem, or leave it out")
def two_outgoing_that_nobody_sends():
    with_options(outgoing=B | C)


@says("App.first consumes A, which is outgoing: a message has one way; send another type out")
def outgoing_and_consumed():
    with_options(outgoing=A)


@says("App: outgoing: None is no message: leave it out of the union, and give no Optional[...]")
def optional_outgoing():
    with_options(outgoing=Optional[B])


# Signals and events


@says("App.first: Sig is a signal, so it is no message: use another type")
def signal_is_a_message():
    one(consumes=Sig)


@says("App.first: Sig is a signal, so it is no message: use another type")
def signal_is_sent():
    one(consumes=A, sends=[Sig])


@says("App: outgoing: Sig is a signal, so it is no message: use another type")
def signal_is_outgoing():
    @orchestra(signal=Sig, event=Ev, outgoing=Sig)
    class App:
        first: One = subsystem(consumes=A)

        async def on_event(self, conductor, event): ...


@says(
    "App.first: ChildOfSig and the signal Sig are subclass and base, so a receiver cannot tell them apart: "
    "use types of their own"
)
def message_is_a_child_of_the_signal():
    one(consumes=ChildOfSig)


@says("App: signal is None: give the class of its signals, or a union")
def no_signal():
    with_options(signal=None)


@says("App: event is None: give the class of its events, or a union")
def no_event():
    with_options(event=None)


@says("App: signal: None is no message: leave it out of the union, and give no Optional[...]")
def optional_signal():
    with_options(signal=Sig | None)


@says("App: event is Never: give a class, even if it will never be used")
def never_an_event():
    with_options(event=Never)


@says("App.on_event is not a coroutine: write async def on_event(self, conductor, event)")
def plain_on_event():
    @deco
    class App:
        first: One = subsystem(consumes=A)

        def on_event(self, conductor, event): ...


@says("App.on_event cannot be called with 2 arguments: write on_event(self, conductor, event)")
def short_on_event():
    @deco
    class App:
        first: One = subsystem(consumes=A)

        async def on_event(self, event): ...


@says("App.on_event yields, so calling it does nothing: write it without yield")
def yielding_on_event():
    @deco
    class App:
        first: One = subsystem(consumes=A)

        async def on_event(self, conductor, event):
            yield event


# What is given as a message type

NONE = "None is no message: leave it out of the union, and give no Optional[...]"
BY_CLASS = (
    "is not a message type, for messages are routed by their class: "
    "name the classes, or a base class they share"
)

for spelling in (None | A, Optional[A], Union[A, None], Union[B, Optional[A]], A | (B | None), type(None)):
    says(f"App.first: consumes: {NONE}")(lambda spelling=spelling: one(consumes=spelling))

for wrong, text in {
    object: f"object {BY_CLASS}",
    Any: f"Any {BY_CLASS}",
    "A": "'A' is a string, not a message type: give the class itself",
    Union["A", B]: "'A' is a string, not a message type: give the class itself",
    7: "7 is an instance, not a message type: give the class, int",
    (A, B): "REPR is a tuple, not a message type: write a union, A | B",
    Name: "Name is a NewType, which is the class of nothing: use A, or a new class",
    Literal["x"]: "typing.Literal['x'] is a Literal, not a class: use the class of its values",
    T: "T is a type variable, not a class: name the class that is meant",
    Msg[T]: "Msg[T] still has type variables: give Msg, or Msg[...] with types",
    Looks: "Looks is a Protocol, and messages are routed by class: name the classes",
    Row: "Row is a TypedDict, so its messages are plain dicts: use a class, as msgspec.Struct",
    Sequence[int]: "Sequence[int] is no message type, for messages are routed by class: name the class",
    One: "One is a subsystem, not a message type",
    len: "len is not a class, so it is no message type",
}.items():
    says(f"App.first: consumes: {text}".replace("REPR", repr(wrong)))(lambda wrong=wrong: one(consumes=wrong))


@says("App.first: consumes: A() is an instance, not a message type: give the class, A")
def an_instance():
    one(consumes=A())


@says(
    "App.first: consumes: [A] is a list, not a message type: write a union, A | B".replace("[A]", repr([A]))
)
def a_list():
    one(consumes=[A])


@says("App.first: sends is A: give a list of message types, such as sends=[A]")
def sends_is_a_class():
    one(sends=A)


@says("App.first: sends is 'A': give a list of message types, such as sends=[Type]")
def sends_is_a_string():
    one(sends="A")


@says("App.first: sends is A | B: give a list of message types, such as sends=[A | B]")
def sends_is_a_union():
    one(sends=A | B)


@says("App.first: sends is None: give a list of message types, such as sends=[Type]")
def sends_is_none():
    one(consumes=A, sends=None)


@says(f"App.first: sends: object {BY_CLASS}")
def sends_anything():
    one(consumes=A, sends=[object])


@says(f"App.first: subscribes: {NONE}")
def subscribes_to_none():
    one(subscribes=[A, None])


# Given in the class and in subsystem(...)


class Stated(Subsystem[A, B]):
    async def run(self, ctx): ...


@says(
    "App.first: subsystem(...) says that it receives C, and the base of its class says A: "
    "they must agree, or leave it out of subsystem(...)"
)
def consumes_disagrees():
    of(Stated, consumes=C)


@says(
    "App.first: subsystem(...) says that it sends A and C, and the base of its class says B: "
    "they must agree, or leave it out of subsystem(...)"
)
def sends_disagrees():
    of(Stated, sends=[A, C])


class Hopeful(Subsystem["A | Missing", Never]):
    async def run(self, ctx): ...


@says(
    "App.first: the base of Hopeful: in 'A | Missing' the name 'Missing' is not found: "
    "import or define it where the decorator runs, not for the type checker only"
)
def base_names_what_is_not_there():
    of(Hopeful)


class Nullable(Actor[A | None, Never]):
    def handle(self, ctx, message): ...


@says(f"App.first: the base of Nullable: {NONE}")
def base_takes_none():
    @deco
    class App:
        first: Nullable = subsystem()


# The class


@says("@orchestra decorates a class, and <lambda> is none")
def not_a_class():
    deco(lambda: None)  # type: ignore[type-var]


@says("Colour is an enum, and @orchestra needs a plain class")
def an_enum():
    @deco
    class Colour(enum.Enum):
        RED = 1


@says("App is a msgspec.Struct: an orchestra is a plain class")
def a_struct():
    @deco
    class App(msgspec.Struct):
        n: int


@says("App is a tuple: an orchestra is a plain class")
def a_tuple():
    @deco
    class App(typing.NamedTuple):
        n: int


@says("App declares no subsystem: give it a field such as reader: Reader = subsystem(...)")
def no_subsystem():
    @deco
    class App:
        title: str = ""


@says("App is decorated with @orchestra twice: once is enough")
def decorated_twice():
    @deco
    @deco
    class App:
        first: One = subsystem(consumes=A)


@says("App is an attrs class or a dataclass already: leave the other decorator out")
def attrs_already():
    @deco
    @attrs.define
    class App:
        first: One = subsystem(consumes=A)


@says("App: error is <class 'int'>: give a class derived from Exception")
def error_is_no_exception():
    with_options(error=int)


@says("App: error is ValueError('x'): give a class derived from Exception")
def error_is_an_instance():
    with_options(error=ValueError("x"))


@says("App: boxed_messages is 1: give True, False or 'auto'")
def boxed_messages_is_a_number():
    with_options(boxed_messages=1)


for gen in ("no name", "class", "", None):
    says(f"App: gen is {gen!r}: give a name, such as 'AllMessages'")(lambda gen=gen: with_options(gen=gen))


@says("App: gen is 'first', and App.first is there already: choose another name")
def gen_is_a_field():
    with_options(gen="first")


@says("App: gen is 'on_event', and App.on_event is there already: choose another name")
def gen_is_a_method():
    @orchestra(signal=Sig, event=Ev, gen="on_event")
    class App:
        first: One = subsystem(consumes=A)

        async def on_event(self, conductor, event): ...


# Fields


@says("App.first has no annotation: write first: ItsClass = subsystem(...)")
def no_annotation():
    @deco
    class App:
        first = subsystem(consumes=A)


@says("App.title has no annotation: write title: ItsType = attrs.field(...)")
def baggage_without_annotation():
    @deco
    class App:
        first: One = subsystem(consumes=A)
        title = attrs.field(default="")


@says("App.first: One is a subsystem: write first: One = subsystem(...)")
def a_subsystem_without_its_declaration():
    @deco
    class App:
        first: One
        second: Two = subsystem(consumes=A)


@says("App.first: One is a subsystem: write first: One = subsystem(...)")
def a_subsystem_as_default():
    @deco
    class App:
        first: "One" = One()
        second: Two = subsystem(consumes=A)


@says("App.first: its annotation is int, and subsystem(...) needs a class derived from Subsystem or Actor")
def annotation_is_no_subsystem():
    of(int)


@says(
    "App.first: its annotation is One | None, and subsystem(...) needs a class derived "
    "from Subsystem or Actor"
)
def annotation_is_optional():
    of(Optional[One])  # type: ignore[arg-type]


@says(
    "App.first: in 'Absent' the name 'Absent' is not found: "
    "import or define it where the decorator runs, not for the type checker only"
)
def annotation_is_not_found():
    @deco
    class App:
        first: "Absent" = subsystem(consumes=A)  # type: ignore[name-defined] # noqa: F821
        second: Two = subsystem(consumes=B)


@says(
    "App.first: 'asyncio.Absent' cannot be evaluated: "
    "AttributeError: module 'asyncio' has no attribute 'Absent'"
)
def annotation_names_no_attribute():
    assert asyncio

    @deco
    class App:
        first: "asyncio.Absent" = subsystem(consumes=A)  # type: ignore[name-defined]


SELF_NAMED = (
    "it is named like the class in its own annotation, where that name means the field: "
    "name the field otherwise"
)


@says(f"App.One: {SELF_NAMED}, such as one")
def named_like_its_class():
    @deco
    class App:
        One: One = subsystem(consumes=A)


@says(f"App.One: {SELF_NAMED}, such as one")
def named_like_its_class_in_a_string():
    @deco
    class App:
        One: "One" = subsystem(consumes=A)


@says(
    "App.tags: the default [] would be one list for all instances: write attrs.field(factory=...)",
)
def mutable_default():
    @deco
    class App:
        first: One = subsystem(consumes=A)
        tags: list[str] = []


@says("App.self: the name 'self' is reserved: choose another one")
def a_field_named_self():
    @deco
    class App:
        self: One = subsystem(consumes=A)


@says("App.on_event: the name 'on_event' is reserved: choose another one")
def a_field_named_on_event():
    @deco
    class App:
        on_event: One = subsystem(consumes=A)


@says("App.__first__: the name '__first__' is reserved: choose another one")
def a_dunder_field():
    @deco
    class App:
        __first__: One = subsystem(consumes=A)


@says("App._App__first: two leading underscores change the name of a field: use one")
def a_mangled_field():
    @deco
    class App:
        __first: One = subsystem(consumes=A)


class Mixin:
    extra: One = subsystem(consumes=A)


@says(
    "App has a base Mixin whose subsystem field extra is not collected: "
    "decorate Mixin with @orchestra or @attrs.define(slots=False)"
)
def undecorated_mixin():
    @deco
    class App(Mixin):
        second: Two = subsystem(consumes=B)


@deco
class Base:
    first: One = subsystem(consumes=A)


@says("Child adds the subsystem second to Base and is not decorated: put @orchestra(...) on Child too")
def undecorated_subclass_is_constructed():
    class Child(Base):
        second: Two = subsystem(consumes=B)

    Child(first=One(), second=Two())


@says("Child adds the subsystem second to Base and is not decorated: put @orchestra(...) on Child too")
def undecorated_subclass_is_asked_for_its_plan():
    class Child(Base):
        second: Two = subsystem(consumes=B)

    plan_of(Child)


@says("Child adds on_event to Base and is not decorated: put @orchestra(...) on Child too")
def undecorated_subclass_adds_on_event():
    class Child(Base):
        async def on_event(self, conductor, event): ...

    Child(first=One())


# Subsystem classes


@says("App.first: Silent has no run: give it async def run(self, ctx)")
def neither_run_nor_handler():
    of(Silent)


@says("App.first: Subsystem has no run: give it async def run(self, ctx)")
def the_base_itself():
    of(Subsystem)


@says(
    "App.first: Astray has no run: give it async def run(self, ctx); a class with handlers derives from Actor"
)
def handlers_in_a_subsystem():
    class Astray(Subsystem):
        def handle(self, ctx, message): ...

    of(Astray)


@says(
    "App.first: Mute has no handler: give it handle(self, ctx, message) or methods marked @handles(Type)",
)
def no_handler():
    of(Mute)


@says(
    "App.first: Astray has no handler: give it handle(self, ctx, message) or methods marked @handles(Type); "
    "a class with a run of its own derives from Subsystem"
)
def run_in_an_actor():
    class Astray(Actor):
        async def run(self, ctx): ...

    of(Astray)


@says("App.first: Both derives from both Subsystem and Actor: choose one")
def both_styles():
    class Both(Subsystem, Actor):
        async def run(self, ctx): ...

    of(Both)


@says(
    "App.first: Blocking.run is not a coroutine: write async def run(self, ctx), or give its field "
    "blocking=True, which runs it in a thread of its own"
)
def plain_run():
    class Blocking(Subsystem):
        def run(self, ctx): ...

    of(Blocking)


@says(
    "App.first: Yields.run is not a coroutine: write async def run(self, ctx), or give its field "
    "blocking=True, which runs it in a thread of its own"
)
def generator_run():
    class Yields(Subsystem):
        async def run(self, ctx):
            yield 1

    of(Yields)


@says(
    "App.first: Both.run is asynchronous, and blocking=True calls it in a thread: write def run, "
    "or leave blocking=True out"
)
def run_to_await_in_a_thread():
    class Both(Subsystem):
        async def run(self, ctx): ...

    of(Both, blocking=True)


@says(
    "App.first: Waits.on_a is asynchronous, and blocking=True calls it in a thread: write def on_a, "
    "or leave blocking=True out"
)
def handler_to_await_in_a_thread():
    class Waits(Actor):
        @handles(A)
        async def on_a(self, ctx, message): ...

    of(Waits, consumes=A, blocking=True)


@says(
    "App.first: Waits.stopped is asynchronous, and blocking=True calls it in a thread: write def stopped, "
    "or leave blocking=True out"
)
def hook_to_await_in_a_thread():
    class Waits(Actor):
        def handle(self, ctx, message): ...

        async def stopped(self, ctx): ...

    of(Waits, consumes=A, blocking=True)


@says("App.first: Silent has no run: give it def run(self, ctx)")
def no_run_in_a_thread():
    of(Silent, blocking=True)


@says("App.first: blocking is 'yes': give True or False")
def blocking_is_no_flag():
    of(One, blocking="yes")


@says("App.first: Lonely.run cannot be called with 1 argument: write run(self, ctx)")
def run_without_ctx():
    class Lonely(Subsystem):
        async def run(self): ...

    of(Lonely)


@says("App.first: Short.handle cannot be called with 2 arguments: write handle(self, ctx, message)")
def short_handle():
    class Short(Actor):
        def handle(self, message): ...

    of(Short)


@says("App.first: Gen.handle yields, so calling it does nothing: write it without yield")
def yielding_handle():
    class Gen(Actor):
        def handle(self, ctx, message):
            yield message

    of(Gen)


@says("App.first: Odd.started cannot be called with 1 argument: write started(self, ctx)")
def long_hook():
    class Odd(Taker):
        def started(self, ctx, more): ...

    of(Odd)


@says("App.first: Odd.on_signal cannot be called with 2 arguments: write on_signal(self, ctx, signal)")
def short_hook():
    class Odd(Taker):
        def on_signal(self, signal): ...

    of(Odd)


@says(
    "App.first: Odd.deadline_passed cannot be called with 2 arguments: "
    "write deadline_passed(self, ctx, deadline)"
)
def deadline_hook_without_the_deadline():
    class Odd(Taker):
        def deadline_passed(self, ctx): ...

    of(Odd)


@says("App.first: Odd.stopped is 3, not a method: write stopped(self, ctx)")
def hook_that_is_a_number():
    class Odd(Taker):
        stopped = 3

    of(Odd)


@says(
    "App.first: Partial has no handler for B and C: give it handle(self, ctx, message) "
    "or a method marked @handles(Type)"
)
def consumed_without_handler():
    class Partial(Actor):
        @handles(A)
        def on_a(self, ctx, message): ...

    of(Partial, consumes=A | B | C)


@says("App.first: Eager.on_b handles B, which it does not consume: it consumes A")
def handler_for_what_is_not_consumed():
    class Eager(Taker):
        @handles(B)
        def on_b(self, ctx, message): ...

    of(Eager)


@says("App.first: Twice.on_a and Twice.also_a both handle A: a type has one handler")
def two_handlers():
    class Twice(Actor):
        @handles(A)
        def on_a(self, ctx, message): ...
        @handles(A | B)
        def also_a(self, ctx, message): ...

    of(Twice, consumes=A | B)


@says(f"App.first: @handles of Loose.on_a: {NONE}")
def handler_of_none():
    class Loose(Actor):
        @handles(A | None)
        def on_a(self, ctx, message): ...

    of(Loose)


@says(
    "App.first: Late.priority is not a static method: write @staticmethod def priority(message), "
    "for it is called in the sender"
)
def priority_is_not_static():
    class Late(Taker):
        def priority(self, message): ...

    of(Late)


@says("App.first: Late.priority is asynchronous: write @staticmethod def priority(message)")
def priority_is_asynchronous():
    class Late(Taker):
        @staticmethod
        async def priority(message): ...

    of(Late)


@says("App.first: Late.priority cannot be called with 1 argument: write priority(message), static")
def priority_takes_two():
    class Late(Taker):
        @staticmethod
        def priority(ctx, message): ...

    of(Late)


# Lanes


CAPACITY = "a capacity is a whole number of 1 or more, or math.inf"

for number in (0, -1, 1.5, True, "8", math.nan, -math.inf):
    says(f"App.first: message_capacity is {number!r}: {CAPACITY}")(
        lambda number=number: one(consumes=A, message_capacity=number)
    )
    says(f"App.first: signal_capacity is {number!r}: {CAPACITY}")(
        lambda number=number: one(consumes=A, signal_capacity=number)
    )
    for option in ("message_capacity", "signal_capacity", "event_capacity"):
        says(f"App: {option} is {number!r}: {CAPACITY}")(
            lambda number=number, option=option: with_options(**{option: number})
        )


@says(f"App.first: message_capacity of DATA_HIGH is 0: {CAPACITY}")
def capacity_of_a_lane():
    one(consumes=A, message_capacity={Priority.HIGH: 0, Priority.NORMAL: 1})


@says("App.first: message_capacity is empty: give a capacity for each lane, such as {Priority.NORMAL: 64}")
def no_capacities():
    one(consumes=A, message_capacity={})


@says("App.first: message_capacity has 4, which is no Priority: use Priority.HIGH or another level")
def capacity_of_a_number():
    one(consumes=A, message_capacity={4: 8})


@says("App.first: priorities is []: give a list, as [Priority.HIGH, Priority.NORMAL]")
def no_priorities():
    one(consumes=A, priorities=[])


@says("App.first: priorities has 'HIGH', which is no Priority: use Priority.HIGH or another level")
def priority_is_a_string():
    one(consumes=A, priorities=["HIGH"])


@says("App.first: priorities names DATA_HIGH more than once (HIGH is DATA_HIGH, NORMAL is DATA)")
def priority_twice():
    one(consumes=A, priorities=[Priority.HIGH, Priority.DATA_HIGH, Priority.NORMAL])


@says(
    "App.first: priorities has DATA_HIGH, DATA and message_capacity has DATA, BACKGROUND: "
    "they must name the same lanes, or leave priorities out"
)
def priorities_and_capacities_disagree():
    one(
        consumes=A,
        priorities=[Priority.HIGH, Priority.NORMAL],
        message_capacity={Priority.NORMAL: 1, Priority.BACKGROUND: 2},
    )


@says(
    "App.first: its lanes are DATA_HIGH, BACKGROUND, and a message without a priority is NORMAL: "
    "add a NORMAL lane, or a static method priority(message)"
)
def no_normal_lane():
    one(consumes=A, priorities=[Priority.BACKGROUND, Priority.HIGH])


@says("App.first: overflow is the class Fail: give a policy, Fail()")
def policy_class():
    one(consumes=A, overflow=Fail)


NO_POLICY = "which is no policy: give Block(), Fail(), Drop(), DropOldest() or BlockFirst()"


@says("App.first: overflow is the class Drop: give a policy, Drop()")
def policy_class_with_an_argument():
    one(consumes=A, overflow=Drop)


@says(f"App.first: overflow is 'fail', {NO_POLICY}")
def policy_string():
    one(consumes=A, overflow="fail")


@says(f"App.first: overflow is Overflow(), {NO_POLICY}")
def policy_base():
    one(consumes=A, overflow=Overflow())


@says(f"App.first: overflow is {Overflow!r}, {NO_POLICY}")
def policy_base_class():
    one(consumes=A, overflow=Overflow)


class Shed(Overflow):
    """A policy of one's own, of which no lane knows."""


@says(f"App.first: overflow is Shed(), {NO_POLICY}")
def policy_of_ones_own():
    one(consumes=A, overflow=Shed())


@says(f"App.first: overflow of DATA is 0.5, {NO_POLICY}")
def policy_number_for_a_lane():
    one(consumes=A, overflow={Priority.NORMAL: 0.5})


@says("App.first: overflow has a policy for DATA_HIGH, and its lanes are DATA")
def policy_for_an_undeclared_lane():
    one(consumes=A, overflow={Priority.HIGH: Fail(), Priority.NORMAL: Block()})


@says("App.first: overflow of DATA is the class Fail: give a policy, Fail()")
def policy_class_for_a_lane():
    one(consumes=A, overflow={Priority.NORMAL: Fail})


TWO = [Priority.HIGH, Priority.NORMAL]

for limit in (0, -1.5, math.inf, math.nan, True, "5"):
    says(f"App.first: evict_after is {limit!r}: give a finite number of seconds above 0, or leave it out")(
        lambda limit=limit: one(consumes=A, evict_after=limit)
    )

NO_WAIT = "leave it out, or give a bounded lane Block() or BlockFirst()"


@says(
    "App.first: evict_after is 5, and no sender waits here without a limit (DATA Drop after 2 ms): " + NO_WAIT
)
def eviction_from_a_lane_that_drops():
    one(consumes=A, evict_after=5, overflow=Drop(wait_before_drop=0.002))


@says("App.first: evict_after is 0.5, and no sender waits here without a limit (DATA unbounded): " + NO_WAIT)
def eviction_from_an_unbounded_lane():
    one(consumes=A, evict_after=0.5, message_capacity=math.inf)


@says(
    "App.first: evict_after is 5.0, and no sender waits here without a limit "
    "(DATA_HIGH DropOldest, DATA Fail): " + NO_WAIT
)
def eviction_from_lanes_that_never_wait():
    one(
        consumes=A,
        evict_after=5.0,
        overflow={Priority.HIGH: DropOldest(), Priority.NORMAL: Fail()},
        priorities=TWO,
    )


for row in (0, -1, 2.0, True, "3", math.inf):
    says(f"App.first: fairness is {row!r}: give a whole number of messages, 1 or more, or leave it out")(
        lambda row=row: one(consumes=A, fairness=row, priorities=TWO)
    )


@says(
    "App.first: fairness is 8, and its one lane is DATA: leave it out, or declare more lanes with priorities="
)
def fairness_with_one_lane():
    one(consumes=A, fairness=8)


@says("App.first: boxed is 'yes': give True, False, 'auto' or nothing")
def boxed_is_a_string():
    one(consumes=A, boxed="yes")


for row in ("Auto", 1, ("auto",)):
    says(f"App.first: boxed is {row!r}: give True, False, 'auto' or nothing")(
        lambda row=row: one(consumes=A, boxed=row)
    )


A_SIZE = "give a whole number of bytes, 1 or more, or leave it out"

for row in (0, -1, 2.0, True, "3", math.inf):
    says(f"App.first: capacity_bytes is {row!r}: {A_SIZE}")(
        lambda row=row: one(consumes=A, boxed=True, capacity_bytes=row)
    )
    says(f"App.first: capacity_bytes of DATA is {row!r}: {A_SIZE}")(
        lambda row=row: one(consumes=A, boxed=True, capacity_bytes={Priority.NORMAL: row})
    )


@says(
    "App.first: capacity_bytes is empty: give a limit for some lane, such as {Priority.NORMAL: 1_000_000}, "
    "or leave it out"
)
def no_lane_is_limited_by_bytes():
    one(consumes=A, boxed=True, capacity_bytes={})


@says("App.first: capacity_bytes has 4, which is no Priority: use Priority.HIGH or another level")
def a_number_is_limited_by_bytes():
    one(consumes=A, boxed=True, capacity_bytes={4: 8})


@says("App.first: capacity_bytes has a limit for DATA_HIGH, and its lanes are DATA")
def an_undeclared_lane_is_limited_by_bytes():
    one(consumes=A, boxed=True, capacity_bytes={Priority.HIGH: 8})


UNBOXED = (
    "App.first: capacity_bytes counts the bytes of boxes, and what it receives is not boxed: "
    "give it boxed=True or boxed='auto', or leave capacity_bytes out"
)


@says(UNBOXED)
def bytes_without_boxes():
    one(consumes=A, capacity_bytes=8)


@says(UNBOXED)
def bytes_with_boxes_switched_off():
    @orchestra(signal=Sig, event=Ev, boxed_messages=True)
    class App:
        first: One = subsystem(consumes=A, boxed=False, capacity_bytes={Priority.NORMAL: 8})


@says("App.first: wip is 1: give True or False")
def wip_is_a_number():
    one(consumes=A, wip=1)


@says("App.first: restart is 3: give Restart(limit=3, within=10, backoff=0.1), or leave it out")
def restart_is_a_number():
    one(consumes=A, restart=3)


@says("App.first: restart is the class Restart: give a policy, Restart()")
def restart_is_the_class():
    one(consumes=A, restart=Restart)


@says("App.first: restart is True: give Restart(limit=3, within=10, backoff=0.1), or leave it out")
def restart_is_a_flag():
    one(consumes=A, restart=True)


@pytest.mark.parametrize(
    ("text", "make"), cases, ids=[f"{n}-{make.__name__}" for n, (_, make) in enumerate(cases)]
)
def test_the_mistake_is_told(text: str, make: Callable[[], Any]) -> None:
    with pytest.raises(DeclarationError) as caught:
        make()
    told, _, place = str(caught.value).rpartition(", at ")
    assert told == text
    assert re.fullmatch(rf"{re.escape(__file__)}:[1-9]\d*", place)
    assert caught.value.__cause__ is None or "Error" in type(caught.value.__cause__).__name__


def test_handles_without_types_is_refused_at_once() -> None:
    with pytest.raises(
        DeclarationError, match=r"^@handles needs the message types it is for: write @handles\(Type\)$"
    ):
        handles()
    with pytest.raises(DeclarationError, match=r"^@handles \(.*on_a\) needs the message types"):

        class Bare(Actor):
            @handles
            def on_a(self, ctx: Any, message: A) -> None: ...


def test_plan_of_an_undecorated_class_says_what_to_do() -> None:
    class Plain: ...

    with pytest.raises(DeclarationError) as caught:
        plan_of(Plain)
    assert (
        str(caught.value)
        == "Plain is no orchestra: plan_of takes a class with @orchestra(signal=..., event=...)"
    )
    with pytest.raises(DeclarationError):
        plan_of(7)  # type: ignore[arg-type]


def test_an_unknown_argument_is_refused_by_python() -> None:
    with pytest.raises(TypeError, match="restarts"):
        subsystem(consumes=A, restarts=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="event"):
        orchestra(signal=Sig)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="colour"):
        orchestra(signal=Sig, event=Ev, colour=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("wait", [-0.001, math.inf, math.nan])
def test_a_wait_before_drop_that_never_ends_or_is_negative_is_refused_where_it_is_written(
    wait: float,
) -> None:
    with pytest.raises(ValueError) as caught:
        one(consumes=A, overflow=Drop(wait_before_drop=wait))
    told = f"Drop: wait_before_drop is {wait!r}: give a finite number of seconds, 0 or more"
    assert str(caught.value) == told


def test_a_bare_decorator_is_told_what_to_write() -> None:
    class App:
        first: One = subsystem(consumes=A)

    with pytest.raises(DeclarationError) as caught:
        orchestra(App)
    assert str(caught.value) == (
        "@orchestra (App) needs its options by name: write @orchestra(signal=..., event=...)"
    )
