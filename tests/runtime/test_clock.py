"""The clock of a loop: it never calls early, whatever the loop counts in."""

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

import pytest

from orchestra.runtime.clock import LoopClock
from tests.runtime.clockwork import Clockwork, clockwork


def test_on_asyncio_it_is_the_clock_of_the_loop() -> None:
    with clockwork() as loop:
        clock, called = LoopClock(loop), list[float]()
        clock.call_later(1.5, lambda: called.append(clock.time()))
        handle = clock.call_later(1.0, lambda: called.append(-1.0))
        handle.cancel()
        handle.cancel()
        loop.pass_time(5)
        assert called == [1.5]
        assert clock.time() == loop.time() == 5.0


class Coarse(asyncio.AbstractEventLoop):
    """A loop that is none of asyncio's own: it rounds times to milliseconds, and is early when told to."""

    def __init__(self, inner: asyncio.AbstractEventLoop, early: float) -> None:
        self.inner = inner
        self.early = early
        self.asked: list[float] = []

    def time(self) -> float:
        return round(self.inner.time(), 3)

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, **_: Any) -> Any:
        self.asked.append(delay)
        return self.inner.call_later(max(round(delay, 3) - self.early, 0), callback, *args)


@pytest.mark.parametrize("early", [0.0, 0.004])
@pytest.mark.parametrize("delay", [0.0003, 0.0104, 0.03])
def test_on_another_loop_a_call_that_comes_early_is_put_off(delay: float, early: float) -> None:
    async def main() -> None:
        loop = Coarse(asyncio.get_running_loop(), early)
        clock, called = LoopClock(loop), asyncio.Event()
        before = clock.time()
        assert abs(before - monotonic()) < 1
        clock.call_later(delay, called.set)
        await asyncio.wait_for(called.wait(), 5)
        assert clock.time() - before >= delay
        assert all(asked >= 0.001 for asked in loop.asked)

    asyncio.run(main())


def test_a_call_that_was_put_off_can_be_cancelled() -> None:
    async def main() -> None:
        loop = Coarse(asyncio.get_running_loop(), 0.01)
        clock, called = LoopClock(loop), list[int]()
        handle = clock.call_later(0.02, lambda: called.append(1))
        await asyncio.sleep(0.012)
        handle.cancel()
        await asyncio.sleep(0.03)
        assert called == []

    asyncio.run(main())


def test_uvloop_never_calls_early() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        clock = LoopClock(asyncio.get_running_loop())
        late: list[float] = []
        done = asyncio.Event()

        def called(due: float) -> None:
            late.append(clock.time() - due)
            if len(late) == 40:
                done.set()

        for n in range(40):
            delay = 0.0007 * n + 0.0001
            clock.call_later(delay, partial(called, clock.time() + delay))
        await asyncio.wait_for(done.wait(), 10)
        assert min(late) >= 0

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def test_a_jump_of_the_wall_clock_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with clockwork() as loop:
        clock, called = LoopClock(loop), list[float]()
        clock.call_later(10, lambda: called.append(clock.time()))
        for wall in (0.0, 4e9):
            monkeypatch.setattr("time.time", lambda wall=wall: wall)
            loop.pass_time(4)
            assert called == []
        loop.pass_time(4)
        assert called == [10.0]
    assert isinstance(loop, Clockwork)
