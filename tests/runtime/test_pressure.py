"""What is told of lanes under pressure, from the lane to the log, with a lane under the test's hand."""

import asyncio
import logging
import time
from typing import Any

import attrs
import pytest
import uvloop

from orchestra import Block, BlockFirst, Closed, Drop, DropOldest, Full, Priority
from orchestra.overflow import Overflow
from orchestra.plan import LanePlan
from orchestra.runtime.lane import Lane
from orchestra.runtime.pressure import Congestion, Pressure
from tests.runtime.clockwork import Clockwork, clockwork
from tests.runtime.surroundings import Surroundings


class Bench:
    """A lane on a clockwork, with the pressure that it reports to."""

    def __init__(self, loop: Any, overflow: Overflow, capacity: int = 1, **options: Any) -> None:
        self.loop = loop
        self.changes: list[Congestion] = []
        self.taken = 0
        self.told = Pressure(self.changes.append)
        around = Surroundings(
            arrived=lambda: None,
            bury=lambda entry, reason: None,
            closed=lambda message: Closed("closed", message, "sink"),
            taken_from=lambda lane: self.taken,
            report=self.told.report,
            stalled=self.told.stalled,
        )
        self.lane = Lane("sink", LanePlan(Priority.NORMAL, capacity, overflow), loop, around, **options)

    def send(self, entry: Any, overflow: Overflow | None = None) -> "asyncio.Task[bool]":
        task = self.loop.create_task(self.lane.put(entry, entry, overflow))
        self.loop.settle()
        return task

    def take(self) -> Any:
        self.taken += 1
        entry = self.lane.queue.popleft()
        if self.lane.pressed:
            self.lane.relieve()
        return entry


@pytest.fixture
def loop() -> Any:
    with clockwork() as loop:
        yield loop


def test_congestion_is_reported_once_until_half_of_the_lane_is_free(loop: Clockwork) -> None:
    bench = Bench(loop, Drop(0), 4)
    for n in range(4):
        bench.send(n)
    for _ in range(3):
        assert bench.send(9).result() is False
        assert bench.lane.congested
        bench.take()
        assert not bench.lane.congested
        assert bench.send(9).result() is True
    assert [change.congested for change in bench.changes] == [True]
    bench.take(), bench.take()
    assert [change.congested for change in bench.changes] == [True, False]
    assert not bench.lane.pressed
    assert attrs.asdict(bench.changes[1]) == {
        "subsystem": "sink",
        "priority": Priority.NORMAL,
        "congested": False,
        "dropped": 3,
        "queued": 2,
        "capacity": 4,
    }


def test_a_lane_has_not_recovered_while_senders_wait(loop: Clockwork) -> None:
    bench = Bench(loop, Drop(0), 1)
    bench.send(1)
    bench.send(2)
    waiting = bench.send(3, Block()), bench.send(4, Block())
    bench.take()
    assert [change.congested for change in bench.changes] == [True]
    loop.settle()
    bench.take()
    assert [change.congested for change in bench.changes] == [True, False]
    loop.settle()
    assert [task.result() for task in waiting] == [True, True]


def test_an_urgent_wait_and_a_long_one_each_end_in_their_own_time(loop: Clockwork) -> None:
    bench = Bench(loop, Block())
    bench.send(0)
    long, short, block = bench.send(1, Drop(0.5)), bench.send(2, Drop(0.1)), bench.send(3)
    loop.pass_time(0.099)
    assert not short.done()
    loop.pass_time(0.002)
    assert short.result() is False
    assert bench.lane.congested
    assert bench.send(4, Drop(9)).result() is False, "the lane is marked"
    loop.pass_time(0.398)
    assert not long.done()
    loop.pass_time(0.002)
    assert long.result() is False
    bench.take()
    loop.settle()
    assert block.result() is True
    assert bench.lane.dropped_by == {"congested": 1, "waited": 2}


def test_a_wait_that_is_cancelled_marks_nothing_and_leaves_no_timer(loop: Clockwork) -> None:
    bench = Bench(loop, Drop(0.1))
    bench.send(0)
    bench.send(1).cancel()
    loop.pass_time(1)
    assert not bench.lane.congested
    assert (bench.lane.dropped_in_all, bench.lane.senders_waiting, bench.lane.room) == (0, 0, 1)


@pytest.mark.parametrize("overflow", [Drop(5), Block(), BlockFirst()], ids=repr)
def test_a_close_ends_every_wait_and_every_mark(loop: Clockwork, overflow: Overflow) -> None:
    bench = Bench(loop, overflow)
    bench.send(0)
    assert bench.send(1, Drop(0)).result() is False
    waiting = bench.send(2, BlockFirst())
    bench.lane.close("finished")
    loop.settle()
    assert isinstance(waiting.exception(), Closed)
    assert (bench.lane.congested, bench.lane.stalled, bench.lane.room) == (False, False, 0)
    assert isinstance(bench.send(3).exception(), Closed)
    loop.pass_time(10)


def test_nothing_displaces_in_a_lane_that_is_no_longer_open(loop: Clockwork) -> None:
    bench = Bench(loop, DropOldest())
    bench.send(0)
    bench.lane.stop()
    assert bench.lane.displace(1) is False
    with pytest.raises(Closed):
        bench.lane.put_now(2, 2)


def test_senders_that_came_late_share_the_limit_of_the_first(loop: Clockwork) -> None:
    bench = Bench(loop, Block(), evict_after=4)
    bench.send(0)
    first = bench.send(1)
    loop.pass_time(3.9)
    second, dropping = bench.send(2), bench.send(3, Drop(9))
    loop.pass_time(0.2)
    assert first.result() is second.result() is False
    assert not dropping.done(), "only senders without a limit of their own are freed"
    assert bench.lane.stalled
    assert bench.send(4).result() is False
    bench.take()
    loop.settle()
    assert dropping.result() is True
    assert not bench.lane.stalled
    assert not bench.send(5).done()


def test_a_take_begins_the_limit_anew(loop: Clockwork) -> None:
    bench = Bench(loop, Block(), evict_after=4)
    bench.send(0)
    first, second = bench.send(1), bench.send(2)
    loop.pass_time(3.9)
    bench.take()
    loop.settle()
    assert first.result() is True
    loop.pass_time(3.9)
    assert not second.done()
    loop.pass_time(1.1)
    assert second.result() is False


def test_the_log_and_the_hook_hear_of_each_lane_by_itself(
    loop: Clockwork, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = Bench(loop, Drop(0)), Bench(loop, Drop(0))
    two.told = one.told
    for bench in (one, two):
        for congested in (True, False):
            one.told.report(bench.lane, congested)
    assert len(caplog.records) == 2
    loop.pass_time(1.1)
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        *["the DATA lane of 'sink' is congested"] * 2,
        *["the DATA lane of 'sink' has recovered"] * 2,
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert len(one.changes) == 4


def test_a_full_try_send_tells_nobody(loop: Clockwork) -> None:
    bench = Bench(loop, Drop(1))
    bench.send(0)
    assert bench.lane.put_now(1, 1) is False
    with pytest.raises(Full):
        bench.lane.put_now(1, 1, Block())
    assert (bench.changes, bench.lane.congested, bench.lane.peak) == ([], False, 1)


def test_a_timer_that_is_early_is_set_again() -> None:
    """The timers of some loops count in whole milliseconds."""

    async def main() -> None:
        bench = Bench(asyncio.get_running_loop(), Drop(0.0014))
        bench.lane.put_now(0, 0)
        for _ in range(20):
            began = time.monotonic()
            assert await bench.lane.put(1, 1) is False
            assert time.monotonic() - began >= 0.0014 - 2e-6
            assert bench.lane.blocked_seconds > 0
            bench.lane.congested = False

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_the_log_counts_what_was_dropped_and_leaves_out_what_was_not(
    loop: Clockwork, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(loop, Drop(0))
    bench.told.report(bench.lane, True)
    bench.send(0)
    bench.send(1)
    bench.told.report(bench.lane, False)
    loop.pass_time(1.1)
    bench.send(2)
    bench.told.close()
    bench.told.close()
    loop.pass_time(1.1)
    assert [record.getMessage() for record in caplog.records] == [
        "the DATA lane of 'sink' is congested",
        "the DATA lane of 'sink' has recovered, 1 message dropped so far (1 change not logged)",
        "the DATA lane of 'sink' has dropped 2 messages in all",
    ]
