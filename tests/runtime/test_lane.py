"""One lane: room, waiting senders, cancellation, stopping and closing, case by case."""

import asyncio
import math
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from orchestra.errors import Closed, Full
from orchestra.overflow import Block, BlockFirst, Drop, Fail, Overflow
from orchestra.plan import LanePlan
from orchestra.priority import Priority
from orchestra.runtime.lane import Lane
from tests.runtime.clockwork import Clockwork, clockwork, dawdling
from tests.runtime.surroundings import Surroundings


class Bench:
    """A lane on a clockwork, and what came out of it."""

    def __init__(self, loop: Clockwork, capacity: float = 1, overflow: Overflow | None = None) -> None:
        self.loop = loop
        self.buried: list[tuple[Any, str]] = []
        self.arrived = 0
        self.left = 0
        self.lane = Lane(
            "sink",
            LanePlan(Priority.HIGH, capacity, overflow or Block()),
            loop,
            Surroundings(
                arrived=self._arrived,
                bury=lambda entry, reason: self.bury(entry, reason),
                closed=lambda message: Closed("the sink is closed", message, "sink"),
                left=self._left,
            ),
        )

    def bury(self, entry: Any, reason: str) -> None:
        self.buried.append((entry, reason))

    def _arrived(self) -> None:
        self.arrived += 1

    def _left(self) -> None:
        self.left += 1

    def fill(self, *entries: Any) -> None:
        for entry in entries:
            assert self.lane.put_now(entry, entry)

    def send(self, entry: Any, late: int = 0) -> "asyncio.Task[bool]":
        """Send in a Task of its own, which has come as far as it can when this returns."""

        async def send() -> bool:
            return await dawdling(self.lane.put(entry, entry), late)

        task = self.loop.create_task(send())
        self.loop.settle()
        return task

    def take(self) -> Any:
        message = self.lane.queue.popleft()
        if self.lane.pressed:
            self.lane.relieve()
        return message


def test_a_lane_has_room_for_its_capacity() -> None:
    with clockwork() as loop:
        bench = Bench(loop, 2)
        assert bench.lane.room == 2
        bench.fill("a", "b")
        with pytest.raises(Full) as caught:
            bench.lane.put_now("c", "the message")
        assert caught.value.message == "the message"
        assert (caught.value.subsystem, caught.value.priority) == ("sink", Priority.HIGH)
        assert str(caught.value) == "the DATA_HIGH lane of 'sink' is full"


def test_an_unbounded_lane_is_never_full() -> None:
    with clockwork() as loop:
        bench = Bench(loop, math.inf)
        bench.fill(*range(5_000))
        assert len(bench.lane.queue) == 5_000


@pytest.mark.parametrize("entry", [None, 0, "", [], False])
def test_falsy_entries_are_entries(entry: Any) -> None:
    with clockwork() as loop:
        bench = Bench(loop)
        bench.fill(entry)
        waiting = bench.send(entry)
        assert bench.take() == entry
        loop.settle()
        assert waiting.result() is True
        assert bench.take() == entry


def test_a_waiting_sender_puts_its_message_itself_at_the_next_turn() -> None:
    with clockwork() as loop:
        bench = Bench(loop)
        bench.fill("a")
        waiting = bench.send("b")
        assert (bench.lane.room, bench.lane.senders_waiting, bench.lane.blocked) == (0, 1, 1)
        assert bench.take() == "a"
        assert not bench.lane.queue
        assert bench.lane.room == 0
        loop.turn()
        assert list(bench.lane.queue) == ["b"]
        assert (bench.lane.room, bench.lane.senders_waiting) == (1, 0)
        assert waiting.done()


def test_a_later_try_send_does_not_overtake_a_granted_sender() -> None:
    with clockwork() as loop:
        bench = Bench(loop)
        bench.fill("a")
        bench.send("b")
        bench.take()
        with pytest.raises(Full):
            bench.lane.put_now("c", "c")
        loop.settle()
        assert list(bench.lane.queue) == ["b"]


def test_senders_that_are_slow_to_wake_keep_their_place() -> None:
    with clockwork() as loop:
        bench = Bench(loop, 2)
        bench.fill(0, 1)
        bench.send(2, late=3)
        bench.send(3)
        assert [bench.take(), bench.take()] == [0, 1]
        loop.turn()
        loop.turn()
        assert not bench.lane.queue
        loop.settle()
        assert list(bench.lane.queue) == [2, 3]


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_when_a_slow_sender_is_cancelled_the_one_behind_it_goes_on(turns: int) -> None:
    with clockwork() as loop:
        bench = Bench(loop, 2)
        bench.fill(0, 1)
        slow = bench.send(2, late=9)
        quick = bench.send(3)
        assert len([bench.take(), bench.take()]) == 2
        for _ in range(turns):
            loop.turn()
        slow.cancel()
        loop.settle()
        assert slow.cancelled()
        assert quick.result() is True
        assert list(bench.lane.queue) == [3]
        assert bench.lane.room == 2


def test_a_cancelled_waiting_sender_is_nowhere_and_tells_that_it_left() -> None:
    with clockwork() as loop:
        bench = Bench(loop)
        bench.fill("a")
        first, second = bench.send("b"), bench.send("c")
        first.cancel()
        loop.settle()
        assert first.cancelled()
        assert bench.left == 1
        assert bench.take() == "a"
        loop.settle()
        assert second.result() is True
        assert list(bench.lane.queue) == ["c"]


def test_the_place_of_a_granted_sender_that_is_cancelled_goes_to_the_next() -> None:
    with clockwork() as loop:
        bench = Bench(loop)
        bench.fill("a")
        first, second = bench.send("b"), bench.send("c")
        bench.take()
        first.cancel()
        loop.settle()
        assert first.cancelled()
        assert second.result() is True
        assert list(bench.lane.queue) == ["c"]


def test_a_send_with_room_succeeds_under_a_time_limit_of_nothing() -> None:
    async def main() -> None:
        bench = Bench(loop)
        async with asyncio.timeout(0):
            assert await bench.lane.put("a", "a") is True

    with clockwork() as loop:
        loop.run_until_complete(main())


def test_a_fail_lane_never_lets_a_sender_wait() -> None:
    with clockwork() as loop:
        bench = Bench(loop, 1, Fail())
        bench.fill("a")
        with pytest.raises(Full):
            bench.send("b").result()
        assert bench.lane.blocked == 0
        assert bench.lane.room == 1


def test_closing_wakes_every_sender_with_its_message_and_buries_the_queue() -> None:
    with clockwork() as loop:
        bench = Bench(loop, 2)
        bench.fill("a", "b")
        waiting = [bench.send("c"), bench.send("d", late=2), bench.send("e")]
        bench.take()  # one is granted and has not woken
        bench.lane.close("finished")
        loop.settle()
        for task, message in zip(waiting, "cde", strict=True):
            error = task.exception()
            assert isinstance(error, Closed)
            assert error.message == message
        assert bench.buried == [("b", "finished")]
        assert (bench.lane.room, bench.lane.senders_waiting, bench.lane.evicted) == (0, 0, 1)
        with pytest.raises(Closed):
            bench.lane.put_now("f", "f")


def test_a_stopped_lane_accepts_what_fits_and_buries_it() -> None:
    with clockwork() as loop:
        bench = Bench(loop, 3)
        bench.fill("a")
        bench.lane.stop()
        assert bench.lane.put_now("b", "b")
        assert bench.send("c").result() is True
        with pytest.raises(Closed):
            bench.lane.put_now("d", "d")
        with pytest.raises(Closed):
            bench.send("d").result()
        assert bench.buried == [("a", "stopped"), ("b", "stopped"), ("c", "stopped")]
        assert bench.lane.evicted == 3


def test_a_stop_refuses_senders_that_wait() -> None:
    with clockwork() as loop:
        bench = Bench(loop)
        bench.fill("a")
        waiting = bench.send("b")
        bench.lane.stop()
        loop.settle()
        assert isinstance(waiting.exception(), Closed)
        assert bench.buried == [("a", "stopped")]


def _stop(lane: Lane) -> None:
    lane.stop()


def _keep(lane: Lane) -> None:
    lane.keep()


@pytest.mark.parametrize("end", [_stop, _keep])
def test_a_place_that_was_granted_before_a_stop_is_kept(end: Callable[[Lane], None]) -> None:
    with clockwork() as loop:
        bench = Bench(loop, 2)
        bench.fill("a", "b")
        slow, quick = bench.send("c", late=3), bench.send("d")
        assert len([bench.take(), bench.take()]) == 2
        end(bench.lane)
        with pytest.raises(Closed):
            bench.lane.put_now("e", "e")
        loop.settle()
        assert slow.result() is quick.result() is True
        there = [*bench.lane.queue, *(entry for entry, _ in bench.buried)]
        assert there == ["c", "d"]
        with pytest.raises(Closed):
            bench.lane.put_now("f", "f")


@pytest.mark.parametrize("end", [_stop, _keep])
def test_a_place_that_is_given_up_after_a_stop_may_be_used(end: Callable[[Lane], None]) -> None:
    with clockwork() as loop:
        bench = Bench(loop)
        bench.fill("a")
        waiting = bench.send("b")
        bench.take()
        end(bench.lane)
        waiting.cancel()
        loop.settle()
        assert waiting.cancelled()
        assert bench.lane.room == 0
        assert bench.lane.put_now("c", "c")


def test_a_kept_lane_keeps_what_is_queued_and_what_fits() -> None:
    with clockwork() as loop:
        bench = Bench(loop, 2)
        bench.fill("a")
        bench.lane.keep()
        arrived = bench.arrived
        assert bench.lane.put_now("b", "b")
        assert bench.arrived == arrived + 1
        with pytest.raises(Closed):
            bench.lane.put_now("c", "c")
        assert list(bench.lane.queue) == ["a", "b"]
        assert bench.buried == []


def test_stop_and_close_may_come_twice() -> None:
    with clockwork() as loop:
        bench = Bench(loop)
        bench.fill("a")
        bench.lane.stop()
        bench.lane.stop()
        bench.lane.keep()
        bench.lane.close("finished")
        bench.lane.close("finished")
        bench.lane.stop()
        assert bench.lane.shut
        assert bench.buried == [("a", "stopped")]


def test_a_dead_letter_hook_may_send_again() -> None:
    with clockwork() as loop:
        bench = Bench(loop, 4)
        bench.fill("a", "b")
        refused = []

        def again(entry: Any, reason: str) -> None:
            bench.buried.append((entry, reason))
            try:
                bench.lane.put_now(f"{entry}'", None)
            except Closed:
                refused.append(entry)

        bench.bury = again  # type: ignore[method-assign]  # it is what a hook would do
        bench.lane.stop()
        assert len(bench.buried) == 4
        assert len(refused) == 2


def test_many_cancelled_senders_cost_neither_memory_nor_time_out_of_proportion() -> None:
    with clockwork() as loop:
        loop.set_debug(False)
        bench = Bench(loop)
        bench.fill("a")
        tasks = [loop.create_task(bench.lane.put(number, number)) for number in range(20_000)]
        loop.settle()
        assert bench.lane.senders_waiting == 20_000
        random.Random(1).shuffle(tasks)
        for task in tasks:
            task.cancel()
        began = time.process_time()
        loop.settle()
        assert time.process_time() - began < 2  # far more when each of them has to be looked for among all
        assert bench.lane.senders_waiting == 0
        assert sys.getsizeof(bench.lane.waiting) < 1_000


@pytest.mark.parametrize("overflow", [Block(), Fail(), Drop(0), Drop(0.01), BlockFirst()])
def test_a_send_that_finds_no_room_leaves_a_mark(overflow: Overflow) -> None:
    with clockwork() as loop:
        bench = Bench(loop, 1, overflow)
        bench.fill("a")
        assert not bench.lane.sought
        with suppress(Full):
            bench.lane.put_now("b", "b")
        assert bench.lane.sought
        bench.lane.sought = False
        with suppress(Full):
            bench.lane.admit("c", "c")
        assert bench.lane.sought
