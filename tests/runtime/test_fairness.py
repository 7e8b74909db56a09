"""The starvation guard: whose turn it is, as a pure matter of lanes, and in whole orchestras."""

import asyncio
from collections import deque
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra import Priority, start
from orchestra.runtime.fairness import Turns
from tests.runtime.clockwork import run
from tests.runtime.players import Awaits, Bell, Calls, Collects, Gated, Job, alone, turns

LEVELS = [Priority.HIGH, Priority.NORMAL, Priority.BACKGROUND]


@attrs.define
class Queue:
    """What `Turns` sees of a lane."""

    queue: deque[int] = attrs.Factory(deque)


def take(turns: Turns, lanes: list[Queue]) -> int | None:
    lane: Any = turns.next()
    if lane is None:
        return None
    lane.queue.popleft()
    return next(place for place, each in enumerate(lanes) if each is lane)


def test_without_a_waiting_lower_lane_the_level_decides() -> None:
    lanes = [Queue(), Queue()]
    order = Turns(lanes, 1)  # type: ignore[arg-type]  # queues are all it needs
    assert take(order, lanes) is None
    lanes[0].queue.extend(range(9))
    assert [take(order, lanes) for _ in range(9)] == [0] * 9
    lanes[1].queue.append(0)
    assert take(order, lanes) == 1
    assert order.taken == [9, 1]


def test_after_so_many_in_a_row_the_lower_lane_has_its_turn() -> None:
    lanes = [Queue(deque(range(99))), Queue(deque(range(99)))]
    order = Turns(lanes, 3)  # type: ignore[arg-type]
    assert [take(order, lanes) for _ in range(9)] == [0, 0, 0, 1, 0, 0, 0, 1, 0]


def test_of_several_lower_lanes_the_one_that_was_served_longest_ago_has_its_turn() -> None:
    lanes = [Queue(deque(range(99))), Queue(deque(range(99))), Queue(deque(range(99)))]
    order = Turns(lanes, 2)  # type: ignore[arg-type]
    assert [take(order, lanes) for _ in range(12)] == [0, 0, 1, 0, 0, 2, 0, 0, 1, 0, 0, 2]


def test_what_was_taken_before_the_lower_lane_had_a_message_does_not_count() -> None:
    lanes = [Queue(deque(range(99))), Queue()]
    order = Turns(lanes, 3)  # type: ignore[arg-type]
    for _ in range(10):
        take(order, lanes)
    lanes[1].queue.append(0)
    assert [take(order, lanes) for _ in range(4)] == [0, 0, 0, 1]


@given(st.integers(1, 5), st.integers(2, 4), st.lists(st.integers(0, 7), max_size=300))
def test_a_waiting_lane_is_served_within_its_bound(limit: int, count: int, happenings: list[int]) -> None:
    """Each lower lane waits for `limit` messages at most, and for each other lower lane as long again."""
    lanes = [Queue() for _ in range(count)]
    order = Turns(lanes, limit)  # type: ignore[arg-type]
    passed = [0] * count
    in_a_row = 0
    for happening in happenings:
        if happening < count:
            lanes[happening].queue.append(0)
            continue
        waiting = [place for place in range(count) if lanes[place].queue]
        place = take(order, lanes)
        assert (place is None) is (not waiting)
        if place is None:
            continue
        in_a_row = in_a_row + 1 if waiting[0] == place and len(waiting) > 1 else 0
        assert in_a_row <= limit
        for other in waiting:
            passed[other] = 0 if other == place else passed[other] + 1
            assert other == waiting[0] or passed[other] <= (limit + 1) * (count - 1)
    assert sum(order.taken) == sum(happening >= count for happening in happenings) - _idle(happenings, count)


def _idle(happenings: list[int], count: int) -> int:
    """How many takes found nothing."""
    queued = idle = 0
    for happening in happenings:
        if happening < count:
            queued += 1
        elif queued:
            queued -= 1
        else:
            idle += 1
    return idle


def levels(worker: Any) -> list[int]:
    return [item.n // 100 for item in worker.got if isinstance(item, Job)]


@pytest.mark.parametrize("style", [Calls, Awaits, Collects])
@pytest.mark.parametrize("fairness", [1, 3, None])
def test_a_lower_lane_is_served_within_the_bound(style: type, fairness: int | None) -> None:
    async def main() -> None:
        worker = style()
        app = alone(worker, priorities=LEVELS, fairness=fairness)
        async with start(app) as running:
            for n in range(30):
                for level, priority in enumerate(LEVELS):
                    running.try_send(Job(100 * level + n), priority=priority)
            await running.drain()
            meters = running.meters()["worker"]
            assert [lane.received for lane in meters.lanes.values()] == [30] * 3
        got = levels(worker)
        if fairness is None:
            assert got == [0] * 30 + [1] * 30 + [2] * 30
        else:
            row = [0] * fairness
            assert got[: 2 * fairness + 2] == [*row, 1, *row, 2]
        for level in range(3):
            own = [item.n for item in worker.got if item.n // 100 == level]
            assert own == sorted(own), "order within a lane"

    run(main())


def test_signals_and_control_stay_first() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(
            alone(worker, priorities=LEVELS, fairness=1), dead_letters=lambda _: None
        ) as running:
            await running.send(Job(0))
            await turns()
            for n in range(4):
                for level, priority in enumerate(LEVELS):
                    running.try_send(Job(100 * level + n), priority=priority)
            await running.broadcast(Bell(1))
            begun = list(worker.begun)
            worker.do = lambda ctx, message: _note(worker)
            worker.gate.set()
            await running.drain()
        assert begun == [Job(0)]
        assert worker.seen[0] == ["started", Bell(1)], "the signal came before the first message after it"

    async def _note(worker: Any) -> None:
        worker.seen = [*getattr(worker, "seen", []), list(worker.hooks)]

    run(main())


def test_senders_that_wait_for_a_lower_lane_are_let_in_when_it_has_its_turn() -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(0.001))
        app = alone(worker, message_capacity={Priority.HIGH: 50, Priority.NORMAL: 1}, fairness=4)
        async with start(app) as running:

            async def flood() -> None:
                while True:
                    await running.send(Job(0), priority=Priority.HIGH)

            flooding = asyncio.ensure_future(flood())
            await asyncio.sleep(0.1)
            assert [await running.send(Job(100 + n)) for n in range(5)] == [True] * 5
            flooding.cancel()
            await running.drain()
        assert sum(levels(worker)) == 5

    run(main())
