"""`run`: an orchestra as the whole program, with its signals, exit statuses and errors."""

import asyncio
import contextlib
import gc
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from orchestra import (
    Actor,
    Closed,
    OrchestraError,
    StopTimeout,
    deferred,
    interrupts,
    orchestra,
    run,
    start,
    subsystem,
)
from orchestra.interrupts import SAME_MOMENT
from tests.runtime.players import (
    Awaits,
    Bell,
    Calls,
    Collects,
    Gated,
    Job,
    Knock,
    Note,
    Runs,
    alone,
    pair,
    turns,
)

ROOT = Path(__file__).parents[2]
QUIET = {name: value for name, value in os.environ.items() if name != "PYTHONASYNCIODEBUG"}
"""The environment of programs whose whole output a test compares."""

# in this process


def test_main_drives_and_its_value_is_returned_after_a_drain() -> None:
    worker = Awaits(lambda ctx, message: asyncio.sleep(0.001))

    async def main(running: Any) -> str:
        for n in range(10):
            await running.send(Job(n))
        return "value"

    assert run(alone(worker), main) == "value"
    assert len(worker.got) == 10
    assert worker.hooks == ["started", "stopped"]


def test_without_main_it_returns_none_when_all_have_ended() -> None:
    async def three(ctx: Any) -> None:
        for n in range(3):
            await ctx.send(Note(n))

    second = Collects()
    assert run(pair(Runs(three), second)) is None
    assert second.got == [Note(0), Note(1), Note(2)]


def test_without_main_nothing_comes_from_outside_and_a_resting_circle_ends_at_once() -> None:
    run(pair(Calls(), Calls(), circle=True))


def test_the_error_of_main_comes_out_and_the_orchestra_is_stopped() -> None:
    worker = Calls()

    async def main(running: Any) -> None:
        await turns()
        raise LookupError("main")

    with pytest.raises(LookupError, match="main"):
        run(alone(worker), main)
    assert worker.hooks == ["started", "stopped"]


def test_a_failure_comes_out_though_main_does_not_look() -> None:
    def fail(ctx: Any, message: Any) -> None:
        raise ValueError("unseen")

    cancelled: list[str] = []

    async def main(running: Any) -> None:
        await running.send(Job())
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append("main")
            raise

    began = time.monotonic()
    with pytest.raises(OrchestraError, match="ValueError: unseen"):
        run(alone(Calls(fail)), main, dead_letters=lambda _: None)
    assert time.monotonic() - began < 5
    assert cancelled == ["main"]


def test_main_may_deal_with_a_failure() -> None:
    def fail(ctx: Any, message: Any) -> None:
        raise ValueError("seen")

    async def main(running: Any) -> str:
        await running.send(Job())
        try:
            await running.wait()
        except OrchestraError as error:
            return str(error)
        raise AssertionError

    assert "seen" in run(alone(Calls(fail)), main, dead_letters=lambda _: None)


def test_main_goes_on_when_the_orchestra_stops_from_inside() -> None:
    async def main(running: Any) -> str:
        await running.send(Job())
        await running.wait()
        await asyncio.sleep(0.01)
        with pytest.raises(Closed):
            await running.send(Job())
        return "after"

    assert run(alone(Calls(lambda ctx, _: ctx.stop())), main) == "after"


def test_in_a_running_loop_the_asynchronous_way_is_offered() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"async with start\(app\)"):
            run(alone(Calls()))

    asyncio.run(main())


def test_in_another_thread_it_runs_and_leaves_the_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    results: list[Any] = []

    async def main(running: Any) -> str:
        await running.send(Job())
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
        return "done"

    thread = threading.Thread(target=lambda: results.append(run(alone(Calls()), main)))
    thread.start()
    thread.join(10)
    assert results == ["done"]


def test_the_handlers_of_signals_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    async def main(running: Any) -> None:
        assert signal.getsignal(signal.SIGINT) not in before

    run(alone(Calls()), main)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_signal_cancels_main_and_stops_the_orchestra() -> None:
    worker = Gated()
    seen: list[str] = []

    async def main(running: Any) -> str:
        try:
            await running.send(Job())
            await turns()
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            worker.gate.set()
            raise
        return "never"

    assert run(alone(worker), main) is None
    assert seen == ["cancelled"]
    assert worker.got == [Job()]
    assert worker.hooks[-1] == "stopped"


def test_an_error_of_main_while_it_is_cancelled_comes_out() -> None:
    async def main(running: Any) -> None:
        signal.raise_signal(signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        finally:
            raise LookupError("clean-up of main")

    with pytest.raises(LookupError, match="clean-up of main"):
        run(alone(Calls()), main)


def test_a_main_that_swallows_its_cancellation_is_named() -> None:
    async def main(running: Any) -> None:
        signal.raise_signal(signal.SIGTERM)
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    began = time.monotonic()
    with pytest.raises(StopTimeout, match="'main'") as late:
        run(alone(Calls()), main, timeout=0.05)
    assert late.value.subsystems == ("main",)
    assert time.monotonic() - began < 5
    del late
    gc.collect()  # the task that was left behind is destroyed here, and not in some other test


def test_it_runs_again_after_it_has_run() -> None:
    app = alone(Calls())

    async def main(running: Any) -> None:
        await running.broadcast(Bell())
        await running.send(Job())

    run(app, main)
    run(app, main)
    assert app.worker.got == [Job(), Job()]


# in processes of their own


class Program:
    """A program in a process of its own, which says "ready" before it is sent a signal."""

    def __init__(self, code: str) -> None:
        text = (
            "import asyncio, sys, time\n"
            "from orchestra import run, start\n"
            "from tests.runtime.players import *\n"
            "def say(*words): print(*words, flush=True)\n"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", text + textwrap.dedent(code)],
            cwd=ROOT,
            env=QUIET,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Program":
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "ready\n", line + self.end()[1]
        return self

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> tuple[str, str, int]:
        out, err = self.process.communicate(timeout=20)
        return out, err, self.process.returncode

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


PATIENT = """
    class Says(Gated):
        def started(self, ctx):
            say("ready")
        def stopped(self, ctx):
            say("stopped")

    async def main(running):
        await asyncio.sleep(60)

    say("value", run(alone(Says()), main))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_it_and_it_returns_with_status_0(number: signal.Signals) -> None:
    with Program(PATIENT) as program:
        program.send(number)
        assert program.end() == ("stopped\nvalue None\n", "", 0)


STUCK = """
    class Stuck(Awaits):
        async def handle(self, ctx, message):
            say("ready")
            for _ in range(600):
                try:
                    await asyncio.sleep(0.1)
                    if ctx.closed:
                        say("stopping")
                        await asyncio.sleep(60)
                except asyncio.CancelledError:
                    pass

    async def main(running):
        await running.send(Job())
        await asyncio.sleep(60)

    run(alone(Stuck()), main)
"""


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_the_process_with_its_status(second: signal.Signals) -> None:
    with Program(STUCK) as program:
        program.send(signal.SIGINT)
        assert program.line() == "stopping"
        time.sleep(2 * SAME_MOMENT)
        program.send(second)
        assert program.end() == ("", "", -second)


def test_the_other_signal_ends_the_process_at_the_same_moment_too() -> None:
    with Program(STUCK) as program:
        program.send(signal.SIGINT)
        assert program.line() == "stopping"
        program.send(signal.SIGTERM)
        assert program.end() == ("", "", -signal.SIGTERM)


@pytest.mark.parametrize("twice", [signal.SIGINT, signal.SIGTERM])
def test_the_same_signal_twice_at_the_same_moment_is_one(
    twice: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts, "SAME_MOMENT", 60)
    worker = Calls()

    async def main(running: Any) -> None:
        signal.raise_signal(twice)
        signal.raise_signal(twice)
        await asyncio.sleep(60)

    assert run(alone(worker), main) is None
    assert worker.hooks == ["started", "stopped"]


def test_after_the_moment_the_signal_is_left_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "SAME_MOMENT", 0.01)
    seen: list[Any] = []

    async def main(running: Any) -> None:
        signal.raise_signal(signal.SIGTERM)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(0.05)
        seen.append(signal.getsignal(signal.SIGTERM))

    run(alone(Calls()), main)
    assert seen == [signal.SIG_DFL]


@pytest.mark.parametrize(("timeout", "within"), [(2.5, " within 2.5 s"), (math.inf, "")])
def test_a_signal_is_logged_with_the_limit_and_what_a_second_one_does(
    timeout: float, within: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(running: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(60)

    with caplog.at_level("INFO", "orchestra"):
        run(alone(Calls()), main, timeout=timeout)
    assert caplog.messages == [f"SIGINT: stopping{within}; a second signal ends the process at once"]


def test_the_second_signal_works_while_a_handler_blocks_the_loop() -> None:
    code = """
        class Blocks(Calls):
            def handle(self, ctx, message):
                say("ready")
                time.sleep(60)

        async def main(running):
            await running.send(Job())

        run(alone(Blocks()), main)
    """
    with Program(code) as program:
        program.send(signal.SIGTERM)
        time.sleep(0.3)
        assert program.process.poll() is None
        program.send(signal.SIGTERM)
        assert program.end() == ("", "", -signal.SIGTERM)


def test_a_subsystem_that_swallows_its_cancellation_for_ever_does_not_keep_the_process() -> None:
    code = """
        async def stubborn(ctx):
            say("ready")
            while True:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    pass

        run(alone(Runs(stubborn)), timeout=0.1)
    """
    with Program(code) as program:
        program.send(signal.SIGTERM)
        _, err, status = program.end()
    assert status == 1
    assert "StopTimeout: still running 0.1 s after the stop: 'worker' at" in err
    assert "in stubborn" in err


def test_a_signal_ends_a_backoff_at_once_with_status_0() -> None:
    code = """
        from orchestra import Restart

        class Fails(Calls):
            def handle(self, ctx, message):
                raise ValueError

        async def main(running):
            await running.send(Job())
            await turns()
            say("ready")
            await asyncio.sleep(60)

        say("value", run(alone(Fails(), restart=Restart(backoff=60)), main))
    """
    with Program(code) as program:
        program.send(signal.SIGINT)
        assert program.end() == ("value None\n", "", 0)


SPAWNS = """
    async def finishes(ctx):
        say("ready")
        while not ctx.closed:
            await asyncio.sleep(0.01)
        say("stopping")
        await asyncio.sleep({seconds})
        say("finished")

    async def main(running):
        await running.send(Job())
        await asyncio.sleep(60)

    say("value", run(alone(Calls(lambda ctx, message: ctx.spawn(finishes(ctx)))), main))
"""


def test_at_a_signal_a_spawned_task_may_finish() -> None:
    with Program(SPAWNS.format(seconds=0.1)) as program:
        program.send(signal.SIGTERM)
        assert program.end() == ("stopping\nfinished\nvalue None\n", "", 0)


def test_the_second_signal_does_not_wait_for_a_spawned_task() -> None:
    with Program(SPAWNS.format(seconds=60)) as program:
        program.send(signal.SIGINT)
        assert program.line() == "stopping"
        time.sleep(2 * SAME_MOMENT)
        program.send(signal.SIGINT)
        assert program.end() == ("", "", -signal.SIGINT)


def test_a_spawned_task_that_swallows_its_cancellation_for_ever_does_not_keep_the_process() -> None:
    code = """
        async def stubborn():
            say("ready")
            while True:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    pass

        async def live(ctx):
            ctx.spawn(stubborn(), name="mole")

        run(alone(Runs(live)), timeout=0.1)
    """
    with Program(code) as program:
        program.send(signal.SIGTERM)
        _, err, status = program.end()
    assert status == 1
    assert "StopTimeout: still running 0.1 s after the stop: 'worker' task 'mole' at" in err


def test_a_crash_loop_ends_the_process_with_the_number_of_its_restarts() -> None:
    code = """
        from orchestra import Restart

        async def live(ctx):
            say("ready")
            raise ValueError("no use")

        run(alone(Runs(live), restart=Restart(limit=2, backoff=0.01)))
    """
    with Program(code) as program:
        _, err, status = program.end()
    assert status == 1
    assert "ValueError: no use" in err
    assert "'worker' was started again 2 times before that, 2 of them within 10 s" in err


def test_what_is_queued_at_a_signal_is_dead_lettered() -> None:
    code = """
        class Slow(Calls):
            def handle(self, ctx, message):
                if message.n == 0:
                    say("ready")
                time.sleep(0.05)
                self.got.append(message)

        async def main(running):
            for n in range(1000):
                await running.send(Job(n))
            await running.drain()

        letters = []
        app = alone(Slow())
        run(app, main, dead_letters=letters.append)
        say(len(letters) > 0, len(letters) + len(app.worker.got))
    """
    with Program(code) as program:
        program.send(signal.SIGINT)
        assert program.end() == ("True 1000\n", "", 0)


def test_a_keyboard_interrupt_under_start_is_a_clean_end() -> None:
    code = """
        import signal

        class Says(Calls):
            def stopped(self, ctx):
                say("stopped")

        async def main():
            async with start(alone(Says())):
                await asyncio.sleep(0.01)
                say("ready")
                await asyncio.sleep(60)

        signal.signal(signal.SIGINT, signal.default_int_handler)  # the shell may have it ignored
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            say("interrupted")
    """
    with Program(code) as program:
        program.send(signal.SIGINT)
        assert program.end() == ("stopped\ninterrupted\n", "", 0)


def test_a_failure_is_a_traceback_and_status_1() -> None:
    code = """
        def fail(ctx, message):
            raise ValueError("poison")

        async def main(running):
            say("ready")
            await running.send(Job())

        run(alone(Calls(fail)), main, dead_letters=lambda _: None)
    """
    with Program(code) as program:
        _, err, status = program.end()
    assert status == 1
    assert "ValueError: poison" in err
    assert "subsystem 'worker' of Alone failed" in err


def test_sys_exit_in_a_handler_gives_its_status() -> None:
    code = """
        def leave(ctx, message):
            sys.exit(3)

        async def main(running):
            say("ready")
            await running.send(Job())
            await asyncio.sleep(60)

        run(alone(Calls(leave)), main, dead_letters=lambda _: None)
    """
    with Program(code) as program:
        assert program.end() == ("", "", 3)


def test_start_works_in_a_loop_that_somebody_else_made() -> None:
    worker = Calls()

    async def main() -> None:
        async with start(alone(worker)) as running:
            await running.send(Job())
            await running.drain()

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
    assert worker.got == [Job()]


class Ticks(Actor):
    """Sends itself jobs, some of them, and is over then."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.got: list[Any] = []

    def started(self, ctx: Any) -> None:
        self.timer = ctx.send_every(0.002, Job)

    def handle(self, ctx: Any, message: Job) -> None:
        self.got.append(message)
        if len(self.got) == self.most:
            self.timer.cancel()


def test_without_main_it_ends_when_its_timers_are_over() -> None:
    app = alone(Ticks(5))
    run(app)
    assert app.worker.got == [Job()] * 5


class Late(Actor):
    def __init__(self) -> None:
        self.passed = 0

    def started(self, ctx: Any) -> None:
        ctx.set_timeout(0.01)

    def handle(self, ctx: Any, message: Job) -> None: ...

    def deadline_passed(self, ctx: Any, deadline: float) -> None:
        self.passed += 1


def test_without_main_a_deadline_is_waited_for() -> None:
    app = alone(Late())
    run(app)
    assert app.worker.passed == 1


class Delays(Actor):
    """Sets one timer after the other, each after a wait in a hook or a handler."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    async def started(self, ctx: Any) -> None:
        await asyncio.sleep(0.02)
        ctx.send_after(0.002, Job(0))

    async def handle(self, ctx: Any, message: Job) -> None:
        self.got.append(message)
        await ctx.run_blocking(time.sleep, 0.02)
        if message.n < 2:
            ctx.send_after(0.002, Job(message.n + 1))


class DelaysInThread(Actor):
    """The same in a thread."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def started(self, ctx: Any) -> None:
        time.sleep(0.02)
        ctx.send_after(0.002, Job(0))

    def handle(self, ctx: Any, message: Job) -> None:
        self.got.append(message)
        time.sleep(0.02)
        if message.n < 2:
            ctx.send_after(0.002, Job(message.n + 1))


@pytest.mark.parametrize(("kind", "blocking"), [(Delays, False), (DelaysInThread, True)])
def test_without_main_an_actor_at_work_may_still_set_a_timer(kind: type, blocking: bool) -> None:
    app = alone(kind(), blocking=blocking)
    run(app)
    assert app.worker.got == [Job(0), Job(1), Job(2)]


def test_without_main_timers_of_a_circle_and_of_a_source_are_waited_for() -> None:
    async def source(ctx: Any) -> None:
        ctx.send_after(0.02, Note(1))
        await ctx.recv()

    first, second = Runs(source), Calls()
    app = pair(first, second, circle=True)
    run(app)
    assert second.got == [Note(1)]


def test_without_main_nothing_may_come_from_outside() -> None:
    errors: list[str] = []

    class Asks(Runs):
        def __init__(self, running: Any) -> None:
            super().__init__(self.send)
            self.running = running

        async def send(self, ctx: Any) -> None:
            try:
                await self.running.send(Job())
            except Closed as closed:
                errors.append(str(closed))

    @orchestra(signal=Bell, event=Knock)
    class App:
        asks: Asks = subsystem(consumes=Job)

    run(App(asks=deferred(Asks)))
    assert errors == ["App takes nothing more from outside: it is run without main"]
