"""A shared lane whose receiver takes, without the lock, while somebody is about to wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import pytest

from orchestra import Box, Closed
from orchestra.overflow import Block, BlockFirst, Drop, Overflow
from orchestra.plan import LanePlan
from orchestra.priority import Priority
from orchestra.runtime.threads.bytelane import SharedByteLane
from orchestra.runtime.threads.door import Bell, Door
from orchestra.runtime.threads.lane import SharedLane
from tests.runtime.clockwork import Clockwork, clockwork
from tests.runtime.surroundings import Surroundings
from tests.runtime.threads.cast import JustA

WAITING = [Block(), BlockFirst(), Drop(0.01)]


@contextmanager
def crossed(overflow: Overflow, capacity_bytes: int | None) -> Iterator[tuple[Clockwork, Any, list[Any]]]:
    """A full lane whose receiver takes after a sender has found no room, and before it stands in line."""
    taken: list[Any] = []

    def take_first() -> bool:
        taken.append(lane.queue.popleft())
        if lane.pressed:
            lane.relieve()
        return False

    with clockwork() as loop:
        kind = SharedLane if capacity_bytes is None else SharedByteLane
        lane: Any = kind(
            "sink",
            LanePlan(Priority.DATA, 1, overflow, capacity_bytes),
            loop,
            Surroundings(
                arrived=lambda: None,
                bury=lambda entry, reason: None,
                closed=lambda message: Closed("closed", message, "sink"),
                sends_itself=take_first,
            ),
            None,
            RLock(),
            Door(loop, lambda message: Closed("closed", message, "sink")),
        )
        yield loop, lane, taken


@pytest.mark.parametrize("capacity_bytes", [None, 100])
@pytest.mark.parametrize("overflow", WAITING)
def test_a_sender_in_the_loop_gets_the_place(overflow: Overflow, capacity_bytes: int | None) -> None:
    with crossed(overflow, capacity_bytes) as (loop, lane, taken):
        assert lane.put_now(first := Box.seal(JustA(1)), first)
        second = Box.seal(JustA(2))
        sent = loop.create_task(lane.put(second, second))
        loop.settle()
        assert sent.result() is True
        assert (taken, list(lane.queue), lane.waiting) == ([first], [second], {})
        assert lane.room == 1


@pytest.mark.parametrize("capacity_bytes", [None, 100])
@pytest.mark.parametrize("overflow", WAITING)
def test_a_sender_in_a_thread_gets_the_place(overflow: Overflow, capacity_bytes: int | None) -> None:
    with crossed(overflow, capacity_bytes) as (_, lane, taken):
        assert lane.put_now(first := Box.seal(JustA(1)), first)
        second, bell = Box.seal(JustA(2)), Bell()
        ticket = lane.admit_in_thread(bell, second, second, None)
        assert bell.wait(0)
        assert lane.claim_in_thread(ticket, second, second) is True
        assert (taken, list(lane.queue), lane.waiting) == ([first], [second], {})


@pytest.mark.parametrize("overflow", WAITING)
def test_who_leaves_before_the_place_is_used_leaves_it_to_others(overflow: Overflow) -> None:
    with crossed(overflow, None) as (_, lane, _):
        assert lane.put_now(first := JustA(1), first)
        ticket = lane.admit_in_thread(Bell(), JustA(2), JustA(2), None)
        assert (ticket.granted, lane.room) == (True, 0)
        lane.withdraw(ticket)
        assert (len(lane.queue), lane.room, lane.senders_waiting) == (0, 1, 0)
