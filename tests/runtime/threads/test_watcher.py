"""Handlers that block the loop are warned of by name; others run on meanwhile where they live in threads."""

import asyncio
import time
from typing import Any

import pytest

from orchestra import Actor, Subsystem, orchestra, start, subsystem
from orchestra.runtime.threads.watcher import Watch
from tests.runtime.players import Awaits, Bell, Calls, Job, Knock, Runs, alone, until, within


def sleeps(ctx: Any, message: Any) -> None:
    time.sleep(0.2)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "busy" in record.getMessage()]


def play(worker: Any, jobs: int = 1, **options: Any) -> None:
    async def main() -> None:
        async with start(alone(worker), **options) as running:
            for n in range(jobs):
                await running.send(Job(n))
            await running.drain()

    within(20, main())


def test_a_plain_handler_that_sleeps_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    play(Calls(sleeps), jobs=3, slow_handler=0.05)
    (text,) = warned(caplog)
    assert text.startswith("'worker' has kept the event loop busy for 0.")
    assert "test_watcher.py" in text
    assert "in sleeps" in text
    assert "blocking=True, or await ctx.run_blocking(...)" in text


async def sleeps_after_a_while(ctx: Any, message: Any = None) -> None:
    await asyncio.sleep(0.01)
    time.sleep(0.2)  # noqa: ASYNC251 - this is what is warned of


def test_so_is_an_asynchronous_one_and_a_run(caplog: pytest.LogCaptureFixture) -> None:
    play(Awaits(sleeps_after_a_while), slow_handler=0.05)
    assert len(warned(caplog)) == 1
    assert "'worker'" in warned(caplog)[0]
    caplog.clear()
    play(Runs(sleeps_after_a_while), jobs=0, slow_handler=0.05)
    assert "'worker'" in warned(caplog)[0]
    assert "sleeps_after_a_while" in warned(caplog)[0]


def test_quick_handlers_threads_and_none_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    play(Calls(), jobs=50, slow_handler=0.05)
    play(Calls(sleeps), slow_handler=None)

    async def pooled(ctx: Any, message: Job) -> None:
        await ctx.run_blocking(time.sleep, 0.2)

    play(Awaits(pooled), slow_handler=0.05)
    assert not warned(caplog)


def test_a_thread_that_sleeps_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """K02."""

    class Slow(Actor):
        def handle(self, ctx: Any, message: Job) -> None:
            time.sleep(0.1)

    class Beats(Subsystem):
        longest = 0.0

        async def run(self, ctx: Any) -> None:
            last = time.monotonic()
            while not ctx.closed:
                await asyncio.sleep(0.005)
                now = time.monotonic()
                self.longest, last = max(self.longest, now - last), now

    @orchestra(signal=Bell, event=Knock)
    class App:
        slow: Slow = subsystem(consumes=Job, blocking=True)
        beats: Beats = subsystem(sends=[Job])

    app = App(slow=Slow(), beats=Beats())

    async def main() -> None:
        async with start(app, slow_handler=0.05) as running:
            for n in range(5):
                await running.send(Job(n))
            await asyncio.sleep(0.4)
            await running.stop()

    within(10, main())
    assert app.beats.longest < 0.09
    assert not warned(caplog)


@pytest.mark.parametrize("given", [0, -1, "0.1", True])
def test_a_wrong_limit_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"slow_handler is .*: give a number of seconds above 0, or None"):
        start(alone(Calls()), slow_handler=given)


def test_nobody_looks_while_all_rest_and_the_next_slow_handler_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = Watch.look

    def counted(watch: Watch, now: float) -> None:
        nonlocal looks
        looks += 1
        look(watch, now)

    monkeypatch.setattr(Watch, "look", counted)

    async def main() -> None:
        async with start(alone(Calls(sleeps)), slow_handler=0.02) as running:
            scheduler = running._ensemble.scheduler
            for n in (1, 2):
                await until(lambda: scheduler.on_begin is not None, 8)  # a turn is to wake the watcher
                seen = looks
                await asyncio.sleep(0.1)
                assert looks == seen
                await running.send(Job(n))
                await until(lambda n=n: sum(each.received for each in running.meters().values()) == n)
                assert looks > seen
            await running.drain()

    within(20, main())
    assert len(warned(caplog)) == 1  # one in ten seconds for each subsystem


def test_one_that_is_slow_after_a_wait_of_its_own_wakes_the_watcher(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def rests_first(ctx: Any, message: Job) -> None:
        await asyncio.sleep(0.6)
        time.sleep(0.2)  # noqa: ASYNC251 - this is what is warned of

    play(Awaits(rests_first), slow_handler=0.02)
    assert len(warned(caplog)) == 1
