"""What a plan says of subsystems, lanes, routes, senders and boxes."""

import abc
import functools
import math
import time
from typing import Any, Generic, TypeVar

import attrs
import msgspec
import pytest

from orchestra import (
    Actor,
    Block,
    BlockFirst,
    Drop,
    DropOldest,
    Fail,
    OrchestraError,
    Priority,
    Reply,
    Subsystem,
    boxed,
    handles,
    orchestra,
    plan_of,
    subsystem,
)
from orchestra.declaration import Options, declare
from orchestra.overflow import Overflow
from orchestra.plan import HandlerPlan, LanePlan, Plan, Style, SubsystemPlan
from orchestra.planning import make_plan

T = TypeVar("T")


class Sig(msgspec.Struct): ...


class Other(msgspec.Struct): ...


class A(msgspec.Struct): ...


class B(msgspec.Struct): ...


class Child(A): ...


class GrandChild(Child): ...


class Msg(msgspec.Struct, Generic[T]):
    item: T


class One(Subsystem):
    async def run(self, ctx: Any) -> None: ...


class Taker(Actor):
    def handle(self, ctx: Any, message: Any) -> None: ...


class Levelled(Taker):
    @staticmethod
    def priority(message: Any, /) -> Priority:
        return Priority.HIGH


deco = orchestra(signal=Sig, event=Sig)


def only(kind: type = Taker, **given: Any) -> SubsystemPlan:
    @deco
    class App:
        only: kind = subsystem(**{"consumes": A, **given})  # type: ignore[valid-type]

    return plan_of(App).subsystems["only"]


def test_a_plan_tells_the_declaration() -> None:
    @orchestra(
        signal=Sig | Other,
        event=Other,
        error=ValueError,
        outgoing=B,
        message_capacity=10,
        signal_capacity=3,
        event_capacity=math.inf,
    )
    class App:
        first: One = subsystem(consumes=A, sends=[B])

        async def on_event(self, conductor: Any, event: Any) -> None: ...

    plan = plan_of(App)
    assert plan is App.__orchestra__  # type: ignore[attr-defined]
    assert (plan.cls, plan.name, plan.module) == (App, "App", __name__)
    assert (plan.signals, plan.events, plan.outgoing) == ((Sig, Other), (Other,), (B,))
    assert (plan.error, plan.gen, plan.has_on_event) == (ValueError, "AllMessages", True)
    assert (plan.message_capacity, plan.event_capacity) == (10, math.inf)
    first = plan.subsystems["first"]
    assert (first.name, first.kind, first.style) == ("first", One, Style.RUN)
    assert (first.consumes, first.sends, first.subscribes) == ((A,), (B,), ())
    assert first.lanes == (LanePlan(Priority.NORMAL, 10, Block()),)
    assert first.signal_capacity == 3
    assert (first.boxed, first.wip, first.has_priority) == (False, False, False)


def test_the_defaults() -> None:
    @deco
    class App:
        only: One = subsystem(consumes=A)

    plan = plan_of(App)
    assert (plan.error, plan.message_capacity, plan.event_capacity, plan.has_on_event) == (
        OrchestraError,
        1024,
        64,
        False,
    )
    assert plan.subsystems["only"].signal_capacity == 64
    assert plan.outgoing == ()


def test_a_plan_cannot_be_changed() -> None:
    @deco
    class App:
        only: One = subsystem(consumes=A)

    plan: Any = plan_of(App)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        plan.name = "x"
    for mapping in (plan.subsystems, plan.routes, plan.subsystems["only"].hooks):
        with pytest.raises(TypeError):
            mapping["x"] = 1


# Lanes


@pytest.mark.parametrize(
    ("given", "lanes"),
    [
        ({}, [(Priority.NORMAL, 1024)]),
        ({"message_capacity": 64}, [(Priority.NORMAL, 64)]),
        ({"message_capacity": math.inf}, [(Priority.NORMAL, math.inf)]),
        ({"priorities": [Priority.NORMAL, Priority.HIGH]}, [(Priority.HIGH, 1024), (Priority.NORMAL, 1024)]),
        (
            {"priorities": (Priority.HIGH, Priority.NORMAL), "message_capacity": 2},
            [(Priority.HIGH, 2), (Priority.NORMAL, 2)],
        ),
        (
            {"message_capacity": {Priority.NORMAL: 1, Priority.HIGH: 8}},
            [(Priority.HIGH, 8), (Priority.NORMAL, 1)],
        ),
        (
            {"priorities": list(Priority), "message_capacity": dict.fromkeys(Priority, 3)},
            [(level, 3) for level in Priority],
        ),
    ],
)
def test_lanes_stand_most_urgent_first(given: dict[str, Any], lanes: list[tuple[Priority, float]]) -> None:
    assert [(lane.priority, lane.capacity) for lane in only(**given).lanes] == lanes


@pytest.mark.parametrize("policy", [Block(), Fail(), Drop(), Drop(0), Drop(0.25), DropOldest(), BlockFirst()])
def test_a_lane_has_the_policy_that_is_given(policy: Overflow) -> None:
    assert only(overflow=policy).lanes == (LanePlan(Priority.NORMAL, 1024, policy),)


def test_eviction_and_fairness_are_off_by_default_and_as_declared_otherwise() -> None:
    assert (only().evict_after, only().fairness) == (None, None)
    two = [Priority.HIGH, Priority.NORMAL]
    found = only(priorities=two, evict_after=2, fairness=16)
    assert (found.evict_after, found.fairness) == (2, 16)
    assert (only(evict_after=None).evict_after, only(fairness=None).fairness) == (None, None)


@pytest.mark.parametrize(
    "overflow",
    [
        Block(),
        BlockFirst(),
        {Priority.HIGH: DropOldest()},
        {Priority.HIGH: BlockFirst(), Priority.NORMAL: Drop()},
    ],
)
def test_eviction_needs_one_lane_on_which_a_sender_may_wait(overflow: Any) -> None:
    levels = [Priority.HIGH, Priority.NORMAL]
    assert only(priorities=levels, overflow=overflow, evict_after=0.5).evict_after == 0.5


def test_eviction_and_fairness_may_be_given_to_a_part_that_is_not_written_yet() -> None:
    capacities = {Priority.HIGH: 4, Priority.NORMAL: math.inf}
    found = only(wip=True, message_capacity=capacities, evict_after=1.5, fairness=1)
    assert (found.evict_after, found.fairness) == (1.5, 1)


def test_overflow_is_for_the_whole_inbox_or_by_priority() -> None:
    two = [Priority.HIGH, Priority.NORMAL]
    assert [lane.overflow for lane in only(priorities=two).lanes] == [Block(), Block()]
    assert [lane.overflow for lane in only(priorities=two, overflow=Fail()).lanes] == [Fail(), Fail()]
    some = {Priority.NORMAL: Fail()}
    assert [lane.overflow for lane in only(priorities=two, overflow=some).lanes] == [Block(), Fail()]


def test_without_a_normal_lane_the_class_says_the_level() -> None:
    found = only(Levelled, priorities=[Priority.HIGH])
    assert found.has_priority
    assert [lane.priority for lane in found.lanes] == [Priority.HIGH]


def test_a_subsystem_may_say_the_level_too() -> None:
    class Part(One):
        @staticmethod
        def priority(message: Any) -> Priority:
            return Priority.HIGH

    assert only(Part).has_priority
    assert not only(One).has_priority
    assert not only(Taker).has_priority


# Handlers and hooks


def test_handlers_and_hooks_are_those_the_class_has() -> None:
    class Part(Actor):
        async def started(self, ctx: Any) -> None: ...

        def on_signal(self, ctx: Any, signal: Any) -> None: ...

        @handles(Child)
        async def on_child(self, ctx: Any, message: Any) -> None: ...

        def handle(self, ctx: Any, message: Any) -> None: ...

    found = only(Part, consumes=A | B)
    assert found.style is Style.ACTOR
    assert dict(found.hooks) == {"started": True, "on_signal": False}
    assert found.handlers == (
        HandlerPlan(Child, "on_child", True),
        HandlerPlan(A, "handle", False),
        HandlerPlan(B, "handle", False),
    )


def test_a_handler_of_a_base_handles_what_derives_from_it() -> None:
    class Part(Actor):
        @handles(A)
        def on_a(self, ctx: Any, message: Any) -> None: ...

    assert only(Part, consumes=Child | GrandChild).handlers == (HandlerPlan(A, "on_a", False),)


def test_a_handler_may_be_wrapped_partial_or_static() -> None:
    def wrapper(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return function(*args)

        return call

    class Part(Actor):
        @handles(A)
        @wrapper
        async def wrapped(self, ctx: Any, message: Any) -> None: ...

        async def _general(self, ctx: Any, message: Any, extra: int) -> None: ...

        handle = functools.partialmethod(_general, extra=1)  # type: ignore[assignment]

        @handles(int)
        @staticmethod
        def static(ctx: Any, message: Any) -> None: ...

        @handles(str)
        @classmethod
        async def of_class(cls, ctx: Any, message: Any) -> None: ...

    found = {each.method: each.is_async for each in only(Part, consumes=A | B | int | str).handlers}
    assert found == {"wrapped": True, "handle": True, "static": False, "of_class": True}


def test_hooks_of_bases_count_and_none_takes_one_away() -> None:
    class Base(Taker):
        def stopped(self, ctx: Any) -> None: ...

    class Same(Base): ...

    class Without(Base):
        stopped = None  # type: ignore[assignment]

    assert dict(only(Same).hooks) == {"stopped": False}
    assert dict(only(Without).hooks) == {}


def test_an_actor_that_receives_nothing_may_have_hooks_only() -> None:
    class Starter(Actor):
        async def started(self, ctx: Any) -> None: ...

    @deco
    class App:
        starter: Starter = subsystem(sends=[A])
        taker: Taker = subsystem(consumes=A)

    assert plan_of(App).subsystems["starter"].handlers == ()


def test_a_subsystem_has_no_handlers() -> None:
    assert (only(One).handlers, dict(only(One).hooks)) == ((), {})


def test_an_abstract_base_serves_as_a_subsystem_base() -> None:
    class Base(Actor, abc.ABC):
        @abc.abstractmethod
        def handle(self, ctx: Any, message: Any) -> None: ...

    class Part(Base):
        async def handle(self, ctx: Any, message: Any) -> None: ...

    assert only(Part).handlers[0].is_async


# Messages and routes


def test_messages_stand_in_order_of_first_appearance() -> None:
    @orchestra(signal=Sig, event=Sig, outgoing=Other)
    class App:
        first: Taker = subsystem(consumes=B, subscribes=[int], sends=[A, Other])
        second: Taker = subsystem(consumes=A, sends=[B])

    assert plan_of(App).messages == (B, int, A, Other)


@pytest.fixture
def family() -> Plan:
    @deco
    class App:
        base: Taker = subsystem(consumes=A)
        child: Taker = subsystem(consumes=Child)
        typed: Taker = subsystem(consumes=Msg[int])
        left: Taker = subsystem(subscribes=[B])
        right: Taker = subsystem(subscribes=[B])

    return plan_of(App)


@pytest.mark.parametrize(
    ("kind", "receivers"),
    [
        (A, ("base",)),
        (Child, ("child",)),
        (GrandChild, ("child",)),
        (Msg, ("typed",)),
        (B, ("left", "right")),
        (Sig, None),
        (object, None),
    ],
)
def test_a_message_goes_by_its_class_then_by_its_bases(
    family: Plan, kind: type, receivers: tuple[str, ...] | None
) -> None:
    route = family.route_of(kind)
    assert (route.receivers if route else None) == receivers


def test_a_generic_message_is_routed_as_its_class(family: Plan) -> None:
    route = family.routes[Msg]
    assert (route.message, route.kind) == (Msg[int], Msg)


def test_two_forms_of_a_generic_may_go_to_one_subsystem() -> None:
    assert only(consumes=Msg[int] | Msg[str]).consumes == (Msg[int], Msg[str])


def test_an_outgoing_type_has_no_receivers() -> None:
    @orchestra(signal=Sig, event=Sig, outgoing=B)
    class App:
        first: Taker = subsystem(consumes=A, sends=[B])

    route = plan_of(App).routes[B]
    assert (route.receivers, route.outgoing) == ((), True)
    assert not plan_of(App).routes[A].outgoing


def test_on_event_may_be_all_that_sends_an_outgoing_type() -> None:
    @orchestra(signal=Sig, event=Sig, outgoing=B)
    class App:
        first: Taker = subsystem(consumes=A)

        async def on_event(self, conductor: Any, event: Any) -> None: ...

    assert plan_of(App).outgoing == (B,)


def test_a_signal_may_be_the_event_and_an_event_a_message() -> None:
    @orchestra(signal=Sig, event=Sig | A)
    class App:
        first: Taker = subsystem(consumes=A)

    assert plan_of(App).events == (Sig, A)


# Senders


def test_senders_are_those_whose_sends_may_arrive() -> None:
    class Base: ...

    class Left(Base): ...

    class Right(Base): ...

    class LeftChild(Left): ...

    @deco
    class App:
        left: Taker = subsystem(consumes=Left)
        right: Taker = subsystem(consumes=Right, sends=[Left])
        of_base: Taker = subsystem(sends=[Base])
        of_child: Taker = subsystem(sends=[LeftChild])
        silent: Taker = subsystem(consumes=int)
        itself: Taker = subsystem(consumes=str, sends=[str])
        listener: Taker = subsystem(subscribes=[float])
        speaker: Taker = subsystem(sends=[float])

    senders = {name: each.senders for name, each in plan_of(App).subsystems.items()}
    assert senders == {
        "left": ("right", "of_base", "of_child"),
        "right": ("of_base",),
        "of_base": (),
        "of_child": (),
        "silent": (),
        "itself": ("itself",),
        "listener": ("speaker",),
        "speaker": (),
    }


def test_a_child_with_a_consumer_of_its_own_has_no_sender_to_the_base() -> None:
    @deco
    class App:
        base: Taker = subsystem(consumes=A)
        child: Taker = subsystem(consumes=Child)
        sender: Taker = subsystem(sends=[GrandChild])

    plan = plan_of(App)
    assert plan.subsystems["base"].senders == ()
    assert plan.subsystems["child"].senders == ("sender",)


def test_a_virtual_subclass_is_no_subclass() -> None:
    class Shape(abc.ABC): ...

    @Shape.register
    class Square: ...

    @deco
    class App:
        shape: Taker = subsystem(consumes=Shape)
        square: Taker = subsystem(consumes=Square, sends=[Shape])

    plan = plan_of(App)
    assert plan.subsystems["square"].senders == ()
    assert plan.subsystems["shape"].senders == ("square",)


def test_fifty_subsystems_are_planned_quickly() -> None:
    kinds = [msgspec.defstruct(f"M{n}", []) for n in range(50)]
    fields = {f"f{n}": subsystem(consumes=kinds[n], sends=[kinds[n - 1], kinds[n - 2]]) for n in range(50)}
    made = type(
        "App", (), {"__module__": __name__, "__annotations__": dict.fromkeys(fields, Levelled), **fields}
    )
    took = []
    for _ in range(5):
        began = time.perf_counter()
        plan = make_plan(declare(made, Options(signal=Sig, event=Sig)))
        took.append(time.perf_counter() - began)
    assert len(plan.subsystems) == 50
    assert min(took) < 0.05


# Boxes


@boxed
class Sealed(msgspec.Struct): ...


class SealedChild(Sealed): ...


@boxed(False)
class Open(msgspec.Struct): ...


@boxed(False)
class OpenA(A): ...


@pytest.mark.parametrize("orchestra_says", [True, False])
@pytest.mark.parametrize("field_says", [True, False, None])
def test_the_most_specific_switch_for_boxing_wins(orchestra_says: bool, field_says: bool | None) -> None:
    @orchestra(signal=Sig, event=Sig, boxed_messages=orchestra_says)
    class App:
        only: Taker = subsystem(consumes=A | Sealed | SealedChild | Open, boxed=field_says)

    plan = plan_of(App)
    says = orchestra_says if field_says is None else field_says
    assert plan.subsystems["only"].boxed is says
    assert {kind for kind, route in plan.routes.items() if route.boxed} == {Sealed, SealedChild} | (
        {A} if says else set()
    )


def test_a_broadcast_is_boxed_for_those_that_say_so() -> None:
    @orchestra(signal=Sig, event=Sig)
    class App:
        left: Taker = subsystem(subscribes=[B], boxed=True)
        right: Taker = subsystem(subscribes=[B])

    assert plan_of(App).routes[B].boxed == {"left"}


def test_a_child_with_a_switch_of_its_own_is_boxed_by_it() -> None:
    @orchestra(signal=Sig, event=Sig, boxed_messages=True)
    class App:
        only: Taker = subsystem(consumes=A)

    assert plan_of(App).boxed_of(Child) == {"only"}
    assert plan_of(App).boxed_of(OpenA) == frozenset()
    assert plan_of(App).boxed_of(Sig) == frozenset()


# Replies


class Asks(msgspec.Struct):
    number: int
    reply: "Reply[int]"


class AsksToo(Asks):
    more: list[Reply[str]]


def test_a_route_tells_which_fields_may_hold_a_reply() -> None:
    class Local(msgspec.Struct):
        reply: "Answer"

    Answer = Reply[int]

    @orchestra(signal=Sig, event=Sig)
    class App:
        only: Taker = subsystem(consumes=A | Asks | AsksToo | Local | Msg[Reply[int]])

    routes = plan_of(App).routes
    assert {kind.__name__: route.replies for kind, route in routes.items()} == {
        "A": (),
        "Asks": ("reply",),
        "AsksToo": ("reply", "more"),
        "Local": ("reply",),
        "Msg": ("item",),
    }


def test_a_generic_class_holds_a_reply_only_when_one_is_given_for_it() -> None:
    @orchestra(signal=Sig, event=Sig)
    class App:
        only: Taker = subsystem(consumes=Msg[int])

    assert plan_of(App).routes[Msg].replies == ()
