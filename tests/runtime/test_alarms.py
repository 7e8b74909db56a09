"""The queue of alarms: order, memory, and one call of the clock at a time."""

import asyncio
import gc
import tracemalloc
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.runtime.alarms import AT_MOST, Alarm, Alarms
from orchestra.runtime.clock import LoopClock
from tests.runtime.clockwork import Clockwork, clockwork


class Asked(LoopClock):
    """Counts what the queue asks of the clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.delays: list[float] = []

    def call_later(self, delay: float, function: Any, /) -> Any:
        self.delays.append(delay)
        return super().call_later(delay, function)


def queue(loop: Clockwork) -> Alarms:
    return Alarms(LoopClock(loop), loop)


def test_the_earliest_rings_first_and_equal_ones_in_the_order_they_came() -> None:
    with clockwork() as loop:
        alarms, rung = queue(loop), list[tuple[float, int]]()
        for n in range(3000):
            when = float(n * 7 % 5)
            alarms.add(when, lambda n=n: rung.append((loop.time(), n)))  # type: ignore[misc]
        loop.pass_time(10)
        assert rung == sorted(rung)
        assert [n for when, n in rung if when == 3.0] == [n for n in range(3000) if n * 7 % 5 == 3]
        assert len(rung) == 3000
        assert len(alarms) == 0


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(-1, 20)), max_size=40))
def test_it_rings_as_a_sorted_list_would(steps: list[tuple[int, int]]) -> None:
    """Each step adds an alarm, and cancels an earlier one or lets half a second pass."""
    with clockwork() as loop:
        alarms, rung, made = queue(loop), list[int](), list[Alarm]()
        expected: dict[int, float] = {}
        for when, other in steps:
            n = len(made)
            made.append(alarms.add(float(when), lambda n=n: rung.append(n)))  # type: ignore[misc]
            expected[n] = max(float(when), loop.time())
            if other < 0:
                loop.pass_time(0.5)
            elif other < len(made) and other not in rung:
                alarms.cancel(made[other])
                expected.pop(other, None)
            assert len(alarms) == sum(n not in rung for n in expected)
        loop.pass_time(20)
        assert sorted(rung) == sorted(expected)
        times = [expected[n] for n in rung]
        assert times == sorted(times)
        assert len(alarms) == 0
        assert not loop.busy


def test_what_was_cancelled_gives_its_memory_back() -> None:
    with clockwork() as loop:
        alarms, kept = queue(loop), bytes(100)
        alarms.add(1e6, lambda: None)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            every = [alarms.add(1e6 + n, lambda n=n: (kept, n)) for n in range(20_000)]  # type: ignore[misc,return-value]
            full = tracemalloc.get_traced_memory()[0] - before
            for alarm in every:
                alarms.cancel(alarm)
            del alarm
            every.clear()
            left = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert full > 2_000_000
        assert left < full / 20
        assert len(alarms) == 1


def test_setting_and_cancelling_one_after_the_other_piles_nothing_up() -> None:
    with clockwork() as loop:
        alarms = queue(loop)
        keep = [alarms.add(1e6, lambda: None) for _ in range(10)]
        for _ in range(10_000):
            alarms.cancel(alarms.add(5.0, lambda: None))
        assert len(alarms) == len(keep)
        assert len(alarms._queue) <= 2 * len(keep) + 1


def test_a_cancelled_alarm_lets_go_of_what_it_would_have_called() -> None:
    class Held:
        def ring(self) -> None:
            raise AssertionError

    with clockwork() as loop:
        alarms, held = queue(loop), Held()
        alarms.add(1.0, lambda: None)
        alarms.add(1.0, lambda: None)
        alarm = alarms.add(9.0, held.ring)
        seen = weakref.ref(held)
        alarms.cancel(alarm)
        del held
        gc.collect()
        assert seen() is None


def test_the_clock_is_asked_for_one_call_at_a_time() -> None:
    with clockwork() as loop:
        clock = Asked(loop)
        alarms = Alarms(clock, loop)
        for n in range(100):
            alarms.add(10.0 + n, lambda: None)
        assert clock.delays == [10.0]
        early = alarms.add(4.0, lambda: None)
        assert clock.delays == [10.0, 4.0]
        alarms.cancel(early)
        loop.pass_time(10)
        assert clock.delays == [10.0, 4.0, 6.0, 1.0]
        assert len(alarms) == 99


def test_without_alarms_nothing_is_left_with_the_loop() -> None:
    with clockwork() as loop:
        alarms = queue(loop)
        alarms.cancel(alarms.add(3.0, lambda: None))
        assert all(handle.cancelled() for handle in loop._scheduled)  # type: ignore[attr-defined]


def test_cancelling_twice_or_after_it_rang_changes_nothing() -> None:
    with clockwork() as loop:
        alarms, rung = queue(loop), list[int]()
        first, second = alarms.add(1.0, lambda: rung.append(1)), alarms.add(2.0, lambda: rung.append(2))
        third = alarms.add(2.0, lambda: rung.append(3))
        alarms.cancel(second)
        alarms.cancel(second)
        loop.pass_time(1)
        alarms.cancel(first)
        assert len(alarms) == 1
        loop.pass_time(1)
        assert rung == [1, 3]
        alarms.cancel(third)
        assert len(alarms) == 0


def test_one_may_cancel_another_that_is_due_too() -> None:
    with clockwork() as loop:
        alarms, rung = queue(loop), list[int]()
        alarms.add(1.0, lambda: alarms.cancel(second))
        second = alarms.add(1.0, lambda: rung.append(2))
        alarms.add(1.0, lambda: rung.append(3))
        loop.pass_time(2)
        assert rung == [3]


def test_one_that_adds_another_at_once_does_not_hold_up_the_loop() -> None:
    with clockwork() as loop:
        alarms, rung = queue(loop), list[int]()

        def ring() -> None:
            rung.append(len(rung))
            if len(rung) < 50:
                alarms.add(loop.time(), ring)

        alarms.add(loop.time(), ring)
        assert rung == []
        loop.turn()
        loop.turn()
        assert 0 < len(rung) <= 2
        loop.settle()
        assert len(rung) == 50


def test_one_that_raises_does_not_keep_the_others_from_ringing() -> None:
    with clockwork(strict=False) as loop:
        alarms, rung = queue(loop), list[int]()
        alarms.add(1.0, lambda: 1 / 0)  # type: ignore[arg-type,return-value]
        alarms.add(1.0, lambda: rung.append(2))
        loop.pass_time(1)
        assert rung == [2]
        assert [type(each["exception"]) for each in loop.errors] == [ZeroDivisionError]


def test_a_time_that_no_loop_takes_at_once_is_asked_for_in_parts() -> None:
    with clockwork() as loop:
        clock, rung = Asked(loop), list[float]()
        Alarms(clock, loop).add(2.5 * AT_MOST, lambda: rung.append(loop.time()))
        loop.pass_time(3 * AT_MOST)
        assert rung == [2.5 * AT_MOST]
        assert clock.delays == [AT_MOST, AT_MOST, 0.5 * AT_MOST]


@pytest.mark.parametrize("late", [0.0, 0.25, 1e-9])
def test_a_clock_that_calls_early_is_asked_again(late: float) -> None:
    class Early(LoopClock):
        def call_later(self, delay: float, function: Any, /) -> Any:
            return super().call_later(max(delay - 0.25, 0.001), function)

    with clockwork() as loop:
        rung = list[float]()
        Alarms(Early(loop), loop).add(1.0 + late, lambda: rung.append(loop.time()))
        loop.pass_time(2)
        assert len(rung) == 1
        assert rung[0] >= 1.0 + late
