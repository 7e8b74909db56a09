"""What two threads do between two steps of each other, one moment each, brought about by hand."""

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from orchestra import Box, Closed, Drop, Missed, start
from orchestra.plan import LanePlan
from orchestra.priority import Priority
from orchestra.runtime.asks import Asks
from orchestra.runtime.lane import Lane
from orchestra.runtime.pressure import Pressure
from orchestra.runtime.scheduler import Scheduler
from orchestra.runtime.threads.bytelane import SharedByteLane
from orchestra.runtime.threads.door import Bell, Call, Door
from orchestra.runtime.threads.inbox import ThreadInbox
from orchestra.runtime.threads.lane import SharedLane
from tests.runtime.clockwork import Clockwork, clockwork
from tests.runtime.players import within
from tests.runtime.surroundings import Surroundings
from tests.runtime.threads.cast import Acts, JustA, trio

NORMAL = LanePlan(Priority.NORMAL, 4, Drop(0.01))


def closed(message: Any) -> Closed:
    return Closed("closed", message, "sink")


def inbox_of(loop: Clockwork) -> ThreadInbox:
    scheduler, door = Scheduler(loop), Door(loop, closed)
    return ThreadInbox("sink", (NORMAL,), 2, loop, scheduler, bury, Pressure(None), door, opens=False)


def is_free(lock: Any) -> bool:
    """Whether another thread than this one could take the lock."""
    seen: list[bool] = []

    def look() -> None:
        seen.append(lock.acquire(blocking=False))
        if seen[0]:
            lock.release()

    other = threading.Thread(target=look)
    other.start()
    other.join()
    return seen[0]


def test_work_is_cancelled_that_has_begun_and_whose_task_has_not() -> None:
    with clockwork() as loop:
        door = Door(loop, closed)

        async def wait() -> None:
            done.append("begun")
            await loop.create_future()

        done: list[str] = []

        call = Call(door, wait, None)
        door.post(call.begin)
        door.post(call.cancel)  # a thread whose time is over leaves it while the door is open
        loop.settle()
        assert (call.over, done) == (True, [])
        with pytest.raises(asyncio.CancelledError):
            call.outcome()


def test_no_message_is_passed_over_that_came_just_before_the_end() -> None:
    with clockwork() as loop:
        inbox = inbox_of(loop)
        (lane,) = inbox.lanes
        lane.put_now(JustA(1), JustA(1))  # the receiver has looked, and found nothing, before this
        inbox.end()
        inbox.nothing()
        lane.queue.popleft()
        with pytest.raises(Closed):
            inbox.nothing()


@pytest.mark.parametrize("in_turn", [True, False])
def test_who_finds_nothing_has_handled_what_it_took_whatever_the_loop_does(in_turn: bool) -> None:
    with clockwork() as loop:
        inbox = inbox_of(loop)
        inbox.current = JustA(1)
        inbox.scheduler.began = 1.0 if in_turn else 0.0
        inbox.nothing()
        assert inbox.current is None


def test_the_longest_that_a_queue_was_seen_is_noted_under_the_lock() -> None:
    class Looked(deque[Any]):
        free = False

        def __len__(self) -> int:
            self.free = self.free or is_free(inbox.lock)
            return super().__len__()

    with clockwork() as loop:
        inbox = inbox_of(loop)
        (lane,) = inbox.lanes
        lane.queue = looked = Looked([JustA(1)])
        inbox.note_peaks()
        assert (lane.peak, looked.free) == (1, False)


@pytest.mark.parametrize("capacity_bytes", [None, 100])
def test_the_time_of_a_wait_is_added_up_under_the_lock(capacity_bytes: int | None) -> None:
    free: list[bool] = []

    class Timer:
        def cancel(self) -> None:
            free.append(is_free(lane.lock))

    with clockwork() as loop:
        lane = full_lane(loop, capacity_bytes)
        ticket: Any = lane.admit_in_thread(Bell(), box(2), box(2), None)
        ticket.timer = Timer()
        lane.abandon(ticket)
        assert free == [False]


def test_no_mark_of_congestion_outlives_a_message_whose_bytes_another_sender_let_go() -> None:
    with clockwork() as loop:
        lane = full_lane(loop, 100)
        ticket: Any = lane.admit_in_thread(Bell(), box(2), box(2), None)
        lane.queue.popleft()  # without the lock
        lane.fits(box(3))
        lane._wait_ran_out(ticket)
        lane.relieve()  # what the receiver does now
        assert (lane.congested, lane.pressed, lane.fits(box(4))) == (False, False, True)


def bury(entry: Any, *why: str) -> None: ...


def full_lane(loop: Clockwork, capacity_bytes: int | None) -> Any:
    kind = SharedLane if capacity_bytes is None else SharedByteLane
    around: Any = Surroundings(arrived=lambda: None, bury=lambda entry, reason: None, closed=closed)
    plan = LanePlan(Priority.DATA, 1, Drop(0.01), capacity_bytes)
    lane = kind("sink", plan, loop, around, None, threading.RLock(), Door(loop, closed))
    assert lane.put_now(box(1), box(1))
    return lane


def box(n: int) -> Any:
    return Box.seal(JustA(n))


def test_late_answers_of_two_threads_are_both_counted() -> None:
    together = threading.Barrier(2)

    class Slow(Counter[str]):
        def __getitem__(self, name: str) -> int:
            count = super().__getitem__(name)
            with suppress(threading.BrokenBarrierError):
                together.wait(0.2)
            return count

    with clockwork() as loop:
        given: Any = None
        asks = Asks(given, loop, Scheduler(loop), {}, given)
        asks.late = Slow()
        pending: Any = type("Pending", (), {"holder": "sink"})()
        threads = [threading.Thread(target=asks.count_late, args=(pending,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert dict(asks.late) == {"sink": 2}


def test_a_tick_is_sent_whose_place_is_made_just_before_its_lane_is_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tick before it is taken, by a receiver that sees nobody watch, and then kept long."""
    first, took, second = threading.Event(), threading.Event(), threading.Event()
    plain: Callable[..., None] = SharedLane.watch

    def watch(self: Lane, look: Callable[[], object]) -> None:
        if not took.is_set():
            self.put_now(JustA(3), JustA(3))  # else the lane is empty then, which is seen
            first.set()
            assert took.wait(5)
        plain(self, look)

    monkeypatch.setattr(SharedLane, "watch", watch)
    made = iter(range(1, 1000))
    soon: list[bool] = []

    def handle(ctx: Any, message: JustA) -> None:
        if message.n == 0:
            assert first.wait(5)
        elif not took.is_set():
            took.set()
            soon.append(second.wait(0.4))  # and not at the next interval only

    def make() -> JustA:
        if (n := next(made)) == 2:
            second.set()
        return JustA(n)

    def begin(ctx: Any) -> None:
        ctx.send(JustA(0))
        ctx.send_every(0.5, make, missed=Missed.COALESCE)

    async def main() -> None:
        a = Acts(handle)
        async with start(trio(a=a, b=Acts(started=begin))) as running:
            assert await asyncio.to_thread(partial(second.wait, 5))
            await running.stop()

    within(20, main())
    assert soon == [True]


def test_a_deadline_goes_before_the_next_message_when_one_was_taken_just_before_its_lane_is_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, took = threading.Event(), threading.Event()
    plain: Callable[..., None] = SharedLane.watch
    order: list[Any] = []

    def watch(self: Lane, look: Callable[[], object]) -> None:
        if not took.is_set():
            first.set()
            assert took.wait(5)
        plain(self, look)

    monkeypatch.setattr(SharedLane, "watch", watch)

    def handle(ctx: Any, message: JustA) -> None:
        order.append(message.n)
        took.set()
        until = time.monotonic() + 0.5
        while message.n == 1 and not ctx._inbox.signals and time.monotonic() < until:
            time.sleep(0.001)

    def passed(ctx: Any, deadline: float) -> None:
        order.append("deadline")
        if len(order) == 1:
            ctx.send(JustA(1))
            ctx.send(JustA(2))
            ctx.set_timeout(0.001)
            assert first.wait(5)

    async def main() -> None:
        a = Acts(handle, deadline_passed=passed, started=lambda ctx: ctx.set_timeout(0))
        async with start(trio(a=a)) as running:
            while len(order) < 4:
                await asyncio.sleep(0.001)
            await running.stop()

    within(20, main())
    assert order == ["deadline", 1, "deadline", 2]
