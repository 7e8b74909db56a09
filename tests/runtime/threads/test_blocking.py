"""Subsystems in threads of their own: hooks, order, failure, stop, drain, and whose thread it is."""

import asyncio
import contextvars
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from orchestra import (
    Actor,
    Block,
    BlockFirst,
    Closed,
    Drop,
    DropOldest,
    Fail,
    Full,
    OrchestraError,
    Priority,
    StopTimeout,
    Subsystem,
    orchestra,
    start,
    subsystem,
)
from tests.runtime.players import (
    Bell,
    Calls,
    Collects,
    Job,
    Knock,
    Note,
    Runs,
    alone,
    pair,
    told,
    until,
    within,
)


class RunsInThread(Subsystem):
    """Its `run` is the function that it is given."""

    def __init__(self, do: Callable[[Any], Any]) -> None:
        self.do = do
        self.ctx: Any = None

    def run(self, ctx: Any) -> None:
        self.ctx = ctx
        self.do(ctx)


def taking(got: list[Any]) -> RunsInThread:
    def run(ctx: Any) -> None:
        got.extend(ctx)

    return RunsInThread(run)


def mixed(first: Any, second: Any, **options: Any) -> Any:
    """`first`, in a thread, sends notes to `second`, in the loop."""
    kinds = type(first), type(second)

    @orchestra(signal=Bell, event=Knock)
    class Mixed:
        first: kinds[0] = subsystem(consumes=Job, sends=[Note], blocking=True)
        second: kinds[1] = subsystem(consumes=Note, **options)

    return Mixed(first=first, second=second)


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def test_an_actor_lives_in_one_thread_and_one_context() -> None:
    seen: list[Any] = []

    class Keeper(Actor):
        def note(self, what: Any) -> None:
            seen.append((what, threading.current_thread().name, variable.get()))

        def started(self, ctx: Any) -> None:
            self.note("started")
            variable.set("mine")

        def handle(self, ctx: Any, message: Job) -> None:
            self.note(message.n)

        def on_signal(self, ctx: Any, signal: Bell) -> None:
            self.note("bell")

        def stopped(self, ctx: Any) -> None:
            self.note("stopped")

    async def main() -> None:
        variable.set("outer")
        async with start(alone(Keeper(), blocking=True)) as running:
            await running.send(Job(1))
            await until(lambda: len(seen) == 2)
            await running.broadcast(Bell())
            await running.send(Job(2))
            await running.drain()
        assert variable.get() == "outer"

    within(10, main())
    assert [what for what, _, _ in seen] == ["started", 1, "bell", 2, "stopped"]
    assert {name for _, name, _ in seen} == {"orchestra:worker"}
    assert [value for _, _, value in seen] == ["outer", *["mine"] * 4]
    assert not [thread for thread in threading.enumerate() if thread.name == "orchestra:worker"]


def test_a_run_has_every_way_to_receive() -> None:
    got: list[Any] = []
    go = threading.Event()

    def run(ctx: Any) -> None:
        assert ctx.name == "worker"
        got.append(ctx.recv())
        got.append(ctx.recv_signal())
        go.wait()
        got.append(ctx.try_recv())
        got.append(ctx.try_recv())
        got.extend(ctx)
        with pytest.raises(Closed):
            ctx.recv()
        with pytest.raises(Closed):
            ctx.try_recv()
        with pytest.raises(Closed):
            ctx.recv_signal()
        assert ctx.closed

    async def main() -> None:
        async with start(alone(RunsInThread(run), blocking=True)) as running:
            await running.send(Job(1))
            await until(lambda: got)
            await running.send(Job(2))
            await running.broadcast(Bell(1))
            await until(lambda: len(got) == 2)
            go.set()
            await until(lambda: len(got) == 4)
            await running.send(Job(3))
            await running.drain()

    within(10, main())
    assert got == [Job(1), Bell(1), Job(2), None, Job(3)]


@pytest.mark.parametrize(
    "verb", ["send", "try_send", "recv", "try_recv", "recv_signal", "__iter__", "stop", "finish"]
)
def test_a_context_is_refused_in_any_other_thread(verb: str) -> None:
    async def main() -> None:
        got: list[Any] = []
        worker = taking(got)
        async with start(mixed(worker, Calls())) as running:
            await until(lambda: worker.ctx is not None)
            await running.send(Job())
            await until(lambda: got)
            call = getattr(worker.ctx, verb)
            arguments = [Note()] if "send" in verb else []
            with pytest.raises(RuntimeError, match="'orchestra:first', and this is the thread 'MainThread'"):
                call(*arguments)
            with pytest.raises(
                RuntimeError, match=r"'orchestra:first', and this is the thread '(?!MainThread)"
            ):
                await asyncio.to_thread(call, *arguments)

    within(10, main())


def test_a_failure_in_a_thread_is_the_subsystems() -> None:
    letters: list[Any] = []

    def handle(ctx: Any, message: Job) -> None:
        if message.n == 1:
            raise ValueError("one")

    async def main() -> None:
        async with start(alone(Calls(handle), blocking=True), dead_letters=letters.append) as running:
            for n in range(3):
                await running.send(Job(n))
            await running.wait()

    with pytest.raises(OrchestraError, match="subsystem 'worker' of Alone failed: ValueError: one"):
        within(10, main())
    assert told(letters) == [(Job(1), "worker", "failed"), (Job(2), "worker", "stopped")]


def test_a_stop_lets_the_running_handler_finish_and_buries_the_rest() -> None:
    letters: list[Any] = []
    begun, go = threading.Event(), threading.Event()

    def handle(ctx: Any, message: Job) -> None:
        begun.set()
        go.wait(5)

    worker = Calls(handle)

    async def main() -> None:
        async with start(alone(worker, blocking=True), dead_letters=letters.append) as running:
            for n in range(3):
                await running.send(Job(n))
            await until(begun.is_set)
            asyncio.get_running_loop().call_later(0.05, go.set)

    within(10, main())
    assert worker.got == [Job(0)]
    assert told(letters) == [(Job(n), "worker", "stopped") for n in (1, 2)]
    assert worker.hooks == ["started", "stopped"]


def test_ctx_stop_and_finish_in_a_thread() -> None:
    letters: list[Any] = []

    def stops(ctx: Any, message: Job) -> None:
        ctx.stop()

    def finishes(ctx: Any) -> None:
        ctx.recv()
        ctx.finish()
        with pytest.raises(Closed):
            ctx.recv()

    async def main(worker: Any) -> None:
        async with start(alone(worker, blocking=True), dead_letters=letters.append) as running:
            running.try_send(Job(1))
            running.try_send(Job(2))
            await running.wait()

    worker = Calls(stops)
    within(10, main(worker))
    assert worker.got == [Job(1)]
    assert told(letters) == [(Job(2), "worker", "stopped")]
    letters.clear()
    within(10, main(RunsInThread(finishes)))
    assert told(letters) == [(Job(2), "worker", "finished")]


def test_a_thread_that_sleeps_on_is_named_with_its_place() -> None:
    go = threading.Event()

    def sleeps_on(ctx: Any) -> None:
        go.wait(20)

    async def main() -> None:
        async with start(alone(RunsInThread(sleeps_on), blocking=True)) as running:
            await asyncio.sleep(0.05)
            await running.stop(timeout=0.05)

    with pytest.raises(StopTimeout) as stopped:
        within(10, main())
    go.set()
    assert stopped.value.subsystems == ("worker",)
    assert stopped.value.places[0].startswith("thread orchestra:worker at ")
    assert "test_blocking.py" in stopped.value.places[0]
    assert "sleeps_on" in stopped.value.places[0]


def test_a_verb_that_waits_is_freed_at_the_limit() -> None:
    """What the loop is to do for a thread and never does."""
    letters: list[Any] = []

    async def forever() -> None:
        await asyncio.Event().wait()

    def handle(ctx: Any, message: Job) -> None:
        ctx._inbox.home.do(forever)

    async def main() -> None:
        async with start(alone(Calls(handle), blocking=True), dead_letters=letters.append) as running:
            await running.send(Job())
            await asyncio.sleep(0.05)
            await running.stop(timeout=0.05)

    within(10, main())
    assert told(letters) == [(Job(), "worker", "cancelled")]


SLEEPER = """
    import asyncio, sys, time
    from typing import Never
    from orchestra import Subsystem, StopTimeout, orchestra, run, start, subsystem

    class Halt: ...

    class Sleeps(Subsystem):
        def run(self, ctx):
            time.sleep(60)

    class Pools(Subsystem):
        async def run(self, ctx):
            await ctx.run_blocking(time.sleep, 60)

    @orchestra(signal=Halt, event=Halt)
    class App:
        sleeps: Sleeps = subsystem(consumes=Never, blocking=True)
        pools: Pools = subsystem(consumes=Never)

    async def main(running):
        await asyncio.sleep(0.1)
        await running.stop(0.1)

    async def started():
        async with start(App(sleeps=Sleeps(), pools=Pools())) as running:
            await main(running)

    try:
        run(App(sleeps=Sleeps(), pools=Pools()), main) if sys.argv[1] == "run" else asyncio.run(started())
    except StopTimeout as late:
        print(*late.subsystems, *late.places, sep="\\n")
"""


@pytest.mark.parametrize("how", ["run", "start"])
def test_a_blocked_thread_does_not_keep_the_interpreter(how: str) -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(SLEEPER), how],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert time.monotonic() - began < 10
    assert done.stderr == ""
    assert "sleeps" in done.stdout
    assert "pools" in done.stdout
    assert "thread orchestra:sleeps at <string>" in done.stdout
    assert "thread orchestra:pool-1 at <string>" in done.stdout or "thread orchestra:pool-1" in done.stdout


def test_a_full_lane_to_itself_is_refused() -> None:
    refused: list[Any] = []

    class Both(Subsystem):
        def run(self, ctx: Any) -> None:
            assert ctx.send(Job(1))
            with pytest.raises(Full) as full:
                ctx.send(Job(2))
            refused.append(full.value.message)

    @orchestra(signal=Bell, event=Knock)
    class Circle:
        both: Both = subsystem(consumes=Job, sends=[Job], blocking=True, message_capacity=1)

    async def main() -> None:
        async with start(Circle(both=Both()), dead_letters=lambda _: None) as running:
            await running.wait()

    within(10, main())
    assert refused == [Job(2)]


def test_a_circle_of_threads_drains() -> None:
    """None ends while the other may still send to it."""

    def bounce(ctx: Any, message: Any) -> None:
        if message.n:
            ctx.send(Job(message.n - 1) if isinstance(message, Note) else Note(message.n - 1))

    first, second = Calls(bounce), Calls(bounce)

    async def main() -> None:
        async with start(pair(first, second, circle=True, blocking=True)) as running:
            await running.send(Job(200))
            await running.drain()

    within(20, main())
    assert len(first.got) + len(second.got) == 201


class TestPolicies:
    """G07: each policy does the same as between two subsystems in the loop, in either direction."""

    def test_drop_waits_marks_and_then_drops_at_once(self) -> None:
        took: list[float] = []
        results: list[bool] = []
        go = threading.Event()

        def send(ctx: Any) -> None:
            for n in range(4):
                began = time.monotonic()
                results.append(ctx.send(Note(n)))
                took.append(time.monotonic() - began)
            go.set()

        async def waits(ctx: Any) -> None:
            while not go.is_set():
                await asyncio.sleep(0.001)
            async for _ in ctx:
                pass

        async def main() -> None:
            app = mixed(RunsInThread(send), Runs(waits), message_capacity=2, overflow=Drop(0.1))
            async with start(app) as running:
                await running.drain()
                meters = running.meters()["second"]
                assert (meters.received, meters.dropped_by) == (2, {"waited": 1, "congested": 1})

        within(10, main())
        assert results == [True, True, False, False]
        assert took[2] >= 0.1 > took[3]

    def test_fail_drop_oldest_and_block_first(self) -> None:
        go = threading.Event()
        got: list[Any] = []

        def send(ctx: Any) -> None:
            try:
                for n in range(4):
                    got.append(ctx.send(Note(n)))
            except Full as full:
                got.append(full.message)
            finally:
                go.set()

        async def waits(ctx: Any) -> None:
            while not go.is_set():
                await asyncio.sleep(0.001)
            async for item in ctx:
                got.append(item)

        async def main(policy: Any) -> None:
            got.clear()
            go.clear()
            app = mixed(RunsInThread(send), Runs(waits), message_capacity=2, overflow=policy)
            async with start(app) as running:
                await running.drain()

        within(10, main(Fail()))
        assert got == [True, True, Note(2), Note(0), Note(1)]
        within(10, main(DropOldest()))
        assert got == [True] * 4 + [Note(2), Note(3)]

    def test_block_first_lets_one_wait(self) -> None:
        go = threading.Event()

        async def main() -> None:
            worker = RunsInThread(lambda ctx: (go.wait(5), list(ctx)))
            async with start(
                alone(worker, blocking=True, message_capacity=1, overflow=BlockFirst())
            ) as running:
                assert await running.send(Job(0))
                first = asyncio.ensure_future(running.send(Job(1)))
                await asyncio.sleep(0)
                assert await running.send(Job(2)) is False
                go.set()
                assert await first
                await running.drain()

        within(10, main())

    def test_evict_after_frees_a_thread(self) -> None:
        results: list[bool] = []
        go = threading.Event()

        def send(ctx: Any) -> None:
            results.extend(ctx.send(Note(n)) for n in range(4))
            go.set()

        async def waits(ctx: Any) -> None:
            while not go.is_set():
                await asyncio.sleep(0.001)
            async for _ in ctx:
                pass

        async def main() -> None:
            app = mixed(
                RunsInThread(send), Runs(waits), message_capacity=2, overflow=Block(), evict_after=0.1
            )
            async with start(app) as running:
                await running.drain()

        within(10, main())
        assert results == [True, True, False, False]


def test_a_cancelled_sender_leaves_the_line() -> None:
    got: list[Any] = []
    go = threading.Event()

    async def main() -> None:
        worker = RunsInThread(lambda ctx: (go.wait(5), got.extend(ctx)))
        async with start(alone(worker, blocking=True, message_capacity=1)) as running:
            await running.send(Job(0))
            waiting = [asyncio.ensure_future(running.send(Job(n))) for n in range(1, 4)]
            await asyncio.sleep(0.01)
            assert running.meters()["worker"].waiting == 3
            waiting[1].cancel()
            await asyncio.sleep(0.01)
            assert running.meters()["worker"].waiting == 2
            go.set()
            await running.drain()

    within(10, main())
    assert got == [Job(0), Job(1), Job(3)]


def test_a_thread_wakes_the_loop_once_for_many_messages() -> None:
    go = threading.Event()
    receiver = Calls()

    def send(ctx: Any) -> None:
        go.wait(5)
        for n in range(1000):
            ctx.send(Note(n))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        wakes = 0
        plain = loop.call_soon_threadsafe

        def counting(*args: Any, **keywords: Any) -> Any:
            nonlocal wakes
            wakes += 1
            return plain(*args, **keywords)

        loop.call_soon_threadsafe = counting  # type: ignore[method-assign]
        async with start(mixed(RunsInThread(send), receiver)) as running:
            await asyncio.sleep(0.01)
            go.set()
            time.sleep(0.1)  # noqa: ASYNC251 - the loop is busy while they come
            await running.drain()
        assert len(receiver.got) == 1000
        assert wakes < 20

    within(10, main())


def test_levels_and_boxes_work_across_threads() -> None:
    got: list[Any] = []
    go = threading.Event()

    @orchestra(signal=Bell, event=Knock, boxed_messages=True, outgoing=Note)
    class Levels:
        worker: RunsInThread = subsystem(
            consumes=Job,
            sends=[Note],
            blocking=True,
            message_capacity={Priority.HIGH: 2, Priority.NORMAL: 2},
            fairness=8,
        )

    def run(ctx: Any) -> None:
        go.wait(5)
        for item in ctx:
            got.append(item.n)
            ctx.send(Note(item.n))

    async def main() -> None:
        async with start(Levels(worker=RunsInThread(run))) as running:
            for n in range(2):
                await running.send(Job(n))
                await running.send(Job(10 + n), priority=Priority.HIGH)
            go.set()
            assert [await running.outgoing.recv() for _ in range(4)] == [Note(10), Note(11), Note(0), Note(1)]
            await running.drain()

    within(10, main())
    assert got == [10, 11, 0, 1]


def test_collecting_in_the_loop_from_a_thread() -> None:
    receiver = Collects()

    def send(ctx: Any) -> None:
        for n in range(500):
            ctx.send(Note(n))

    async def main() -> None:
        async with start(mixed(RunsInThread(send), receiver, message_capacity=3)) as running:
            await running.drain()

    within(20, main())
    assert [note.n for note in receiver.got] == list(range(500))
