"""What `check` and `expand` know of boxes."""

import enum
from typing import Any, Generic, TypeVar

import msgspec
import pytest

from orchestra import Actor, Context, Live, Recipient, Reply, boxed, orchestra, plan_of, subsystem
from orchestra.cli.boxes import codec_sources, what_boxes_cost, what_rides
from orchestra.plan import Plan

T = TypeVar("T")


class Halt(msgspec.Struct, frozen=True): ...


class Spare(msgspec.Struct, frozen=True): ...


class Colour(enum.Enum):
    RED = 1


class Flat(msgspec.Struct):
    number: int
    text: str | None
    colour: Colour


class Empty(msgspec.Struct): ...


class Deep(msgspec.Struct):
    items: list[int]


class Page(msgspec.Struct, Generic[T]):
    item: T


class Riding(msgspec.Struct):
    items: list[int]
    thing: object
    live: Live[Deep]


class Plain:
    """No fields that are declared: it cannot be packed."""

    def __init__(self) -> None:
        self._secret = 1


class Base(msgspec.Struct):
    items: list[int]


@boxed
class Child(Base):
    number: int


class Taker(Actor):
    def handle(self, ctx: Context[Any, Any, Any], message: Any) -> None: ...


def plan_for(consumed: Any, sent: Any = (), *, boxing: bool = True) -> Plan:
    @orchestra(signal=Halt, event=Halt, boxed_messages=boxing)
    class App:
        taker: Taker = subsystem(consumes=consumed)
        giver: Taker = subsystem(consumes=Spare, sends=sent, boxed=False)

    return plan_of(App)


@pytest.mark.parametrize("kind", [Flat, Empty, Page[int]])
def test_a_box_of_plain_values_costs_more_than_it_gives(kind: Any) -> None:
    (told,) = what_boxes_cost(plan_for(kind))
    assert "'taker'" in told
    assert "costs more than it gives" in told


@pytest.mark.parametrize("kind", [Deep, Page[list[int]], Riding, Plain])
def test_a_box_of_containers_or_riders_is_not_called_costly(kind: Any) -> None:
    assert list(what_boxes_cost(plan_for(kind))) == []


def test_what_is_not_boxed_is_not_told_of() -> None:
    plan = plan_for(Flat | Riding | Plain, boxing=False)
    assert (list(what_boxes_cost(plan)), list(what_rides(plan)), codec_sources(plan)) == ([], [], [])


def test_fields_that_ride_beside_the_box_are_named() -> None:
    (told,) = what_rides(plan_for(Riding))
    assert "thing" in told
    assert "live" in told
    assert "items" not in told


class Asks(msgspec.Struct):
    items: list[int]
    reply: Reply[int]
    answer_to: Recipient[Deep]


def test_replies_and_recipients_ride() -> None:
    (told,) = what_rides(plan_for(Asks))
    assert told.endswith(
        "beside the box travels by reference: "
        "reply (Reply is not packed: what waits for it is in this process), "
        "answer_to (Recipient is not packed: it belongs to a running orchestra)"
    )


def test_a_class_that_rides_whole_is_told_with_the_reason_and_has_no_source() -> None:
    plan = plan_for(Plain)
    (told,) = what_rides(plan)
    assert "travels whole" in told
    assert codec_sources(plan) == []


def test_the_sources_are_those_of_the_boxed_types() -> None:
    (source,) = codec_sources(plan_for(Deep))
    compile(source, "<box>", "exec")
    assert "items" in source


def test_a_sent_subclass_with_a_switch_of_its_own_has_a_box_of_its_own() -> None:
    plan = plan_for(Base, sent=[Child], boxing=False)
    (source,) = codec_sources(plan)
    assert "number" in source
