"""What `check` and `expand` know of boxes."""

import enum
import math
from typing import Any, Generic, TypeVar

import msgspec
import pytest

from orchestra import Actor, Context, Live, Recipient, Reply, boxed, orchestra, plan_of, subsystem
from orchestra.cli.boxes import (
    codec_sources,
    what_auto_decides,
    what_boxes_cost,
    what_counts_nothing,
    what_rides,
)
from orchestra.cli.findings import Level, findings_of
from orchestra.graph import to_dot
from orchestra.packing.classes import why_whole
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


class Photo(msgspec.Struct):
    width: int
    pixels: bytes
    mask: bytes | None


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


def plan_for(consumed: Any, sent: Any = (), *, boxing: Any = True, **options: Any) -> Plan:
    @orchestra(signal=Halt, event=Halt, boxed_messages=boxing)
    class App:
        taker: Taker = subsystem(consumes=consumed, **options)
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


def test_fields_of_large_bytes_are_named() -> None:
    (told,) = what_rides(plan_for(Photo))
    assert told.endswith("is boxed, and bytes of 256 or more are not copied: pixels, mask")


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


# boxed="auto"


class Frozen(msgspec.Struct, frozen=True):
    number: int


class FrozenDeep(Frozen, frozen=True):
    items: list[int]


def test_what_auto_decides_is_told_with_the_reason() -> None:
    plan = plan_for(Deep | Frozen | Plain | Child, boxing="auto", sent=[FrozenDeep])
    assert list(what_auto_decides(plan)) == [
        "FrozenDeep (to 'taker') is boxed by boxed='auto': items is a list",
        "Deep (to 'taker') is boxed by boxed='auto': it is not frozen",
        "Frozen (to 'taker') is not boxed by boxed='auto': nothing that a box would copy can be changed",
        "Plain (to 'taker') is not boxed by boxed='auto' but travels by reference: " + str(why_whole(Plain)),
    ]
    notes, *sources = codec_sources(plan)
    assert notes.splitlines() == [f"# {text}" for text in what_auto_decides(plan)]
    assert len(sources) == 3
    infos = [finding.text for finding in findings_of(plan) if finding.level is Level.INFO]
    assert set(what_auto_decides(plan)) <= set(infos)


def test_nothing_is_told_where_auto_does_not_decide() -> None:
    assert list(what_auto_decides(plan_for(Deep | Frozen))) == []
    assert list(what_auto_decides(plan_for(Deep | Frozen, boxing=False))) == []


# capacity_bytes


def test_what_counts_no_bytes_is_told() -> None:
    plan = plan_for(Deep | Frozen | Plain, boxing="auto", capacity_bytes=100)
    assert list(what_counts_nothing(plan)) == [
        "Frozen (to 'taker') counts 0 bytes of capacity_bytes: it travels by reference",
        "Plain (to 'taker') counts 0 bytes of capacity_bytes: it travels by reference",
    ]
    assert list(what_counts_nothing(plan_for(Deep, capacity_bytes=100))) == []
    assert list(what_counts_nothing(plan_for(Plain))) == []


@pytest.mark.parametrize(("consumed", "warned"), [(Deep, False), (Deep | Plain, True)])
def test_bytes_are_a_bound_unless_something_counts_none(consumed: Any, warned: bool) -> None:
    plan = plan_for(consumed, message_capacity=math.inf, capacity_bytes=100)
    told = [finding.text for finding in findings_of(plan) if finding.level is Level.WARNING]
    assert ["'taker' is unbounded" in text for text in told] == [True] * warned


def test_the_graph_shows_the_limit_in_bytes() -> None:
    assert "DATA 8, 100 bytes Block" in to_dot(plan_for(Deep, message_capacity=8, capacity_bytes=100).graph)
    unbounded = plan_for(Deep, message_capacity=math.inf, capacity_bytes=100)
    assert "DATA 100 bytes Block" in to_dot(unbounded.graph)
