"""Tasks that a subsystem spawns: held, awaited, cancelled with it, and their errors are its failures."""

import asyncio
import contextlib
import contextvars
import gc
import logging
import sys
import weakref
from typing import Any, Never

import pytest

from orchestra import (
    Closed,
    OrchestraError,
    Restart,
    StopTimeout,
    orchestra,
    run,
    start,
    subsystem,
)
from tests.runtime.clockwork import run as virtually
from tests.runtime.players import (
    Awaits,
    Bell,
    Calls,
    Job,
    Knock,
    Note,
    Runs,
    alone,
    pair,
    told,
    turns,
    until,
    within,
)

AGAIN = Restart(limit=3, within=10, backoff=0.1)


async def fail_after(seconds: float, error: BaseException) -> None:
    await asyncio.sleep(seconds)
    raise error


def spawning(kind: type, make: Any, **options: Any) -> Any:
    """A subsystem of this kind that spawns what `make` gives, for each message (or once, when it runs)."""
    if kind is Calls:
        return Calls(lambda ctx, message: ctx.spawn(make(), **options))

    async def handle(ctx: Any, message: Any = None) -> None:
        ctx.spawn(make(), **options)

    async def live(ctx: Any) -> None:
        ctx.spawn(make(), **options)
        async for _ in ctx:
            pass

    return Awaits(handle) if kind is Awaits else Runs(live)


KINDS = [Calls, Awaits, Runs]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_a_task_is_the_failure_of_its_subsystem(kind: type) -> None:
    async def main() -> None:
        cause = ValueError("in the background")
        worker = spawning(kind, lambda: fail_after(1, cause), name="digger")
        with pytest.raises(OrchestraError, match="'worker' of Alone failed: ValueError") as failed:
            async with start(alone(worker), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await running.wait()
        assert failed.value.__cause__ is cause
        assert cause.__notes__ == ["raised in the task 'digger' of 'worker'"]

    virtually(main())


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_a_task_starts_the_subsystem_again(kind: type) -> None:
    lives: list[Any] = []

    async def work() -> None:
        lives.append(asyncio.current_task())
        if len(lives) == 1:
            await fail_after(1, ValueError())
        await asyncio.sleep(1e6)

    async def main() -> None:
        async with start(alone(spawning(kind, work), restart=AGAIN), dead_letters=lambda _: None) as running:
            await running.send(Job(0))
            await asyncio.sleep(2)
            await running.send(Job(1))
            await turns()
            assert len(lives) == 2
            assert lives[0].done()
            assert not lives[1].done()
            assert running.meters()["worker"].restarts == 1
            await running.stop(0)
        assert lives[1].cancelled()

    virtually(main())


def test_the_running_handler_is_cancelled_and_its_message_dead_lettered() -> None:
    async def handle(ctx: Any, message: Job) -> None:
        ctx.spawn(fail_after(1, ValueError("beside")))
        await asyncio.sleep(1e6)

    async def main() -> None:
        letters: list[Any] = []
        worker = Awaits(handle)
        with pytest.raises(OrchestraError, match="beside"):
            async with start(alone(worker), dead_letters=letters.append) as running:
                await running.send(Job(1))
                await running.send(Job(2))
                await running.wait()
        assert sorted(told(letters), key=str) == [
            (Job(1), "worker", "failed"),
            (Job(2), "worker", "stopped"),
        ]
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_a_handler_that_awaits_its_task_fails_with_it() -> None:
    async def handle(ctx: Any, message: Job) -> None:
        assert await ctx.spawn(asyncio.sleep(1, result=7)) == 7
        await ctx.spawn(fail_after(1, ValueError("awaited")))

    async def main() -> None:
        letters: list[Any] = []
        with pytest.raises(OrchestraError, match="awaited"):
            async with start(alone(Awaits(handle)), dead_letters=letters.append) as running:
                await running.send(Job())
                await running.wait()
        assert [(letter.reason, str(letter.error)) for letter in letters] == [("failed", "awaited")]

    virtually(main())


@pytest.mark.parametrize("by", ["itself", "handle", "raise"])
def test_a_task_that_is_cancelled_is_no_failure(by: str) -> None:
    async def work() -> None:
        if by == "itself":
            asyncio.current_task().cancel()  # type: ignore[union-attr]
        elif by == "raise":
            raise asyncio.CancelledError
        await asyncio.sleep(1e6)

    def handle(ctx: Any, message: Job) -> None:
        task = ctx.spawn(work())
        if by == "handle":
            task.cancel()

    async def main() -> None:
        worker = Calls(handle)
        async with start(alone(worker)) as running:
            for n in range(3):
                await running.send(Job(n))
            await running.drain()
        assert len(worker.got) == 3

    virtually(main())


def test_an_error_in_a_task_counts_also_after_its_actor_has_seen_the_end() -> None:
    def handle(ctx: Any, message: Job) -> None:
        ctx.spawn(fail_after(1, ValueError("left alone")))
        ctx.finish()
        raise Closed("the end", None, ctx.name)

    async def main() -> None:
        with pytest.raises(OrchestraError, match="left alone"):
            async with start(alone(Calls(handle)), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await running.wait()

    virtually(main())


def test_a_second_error_is_noted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def cleanup() -> None:
        try:
            await asyncio.sleep(1e6)
        finally:
            raise KeyError("cleaning up")

    def handle(ctx: Any, message: Job) -> None:
        ctx.spawn(fail_after(1, ValueError("first")))
        ctx.spawn(cleanup())

    async def main() -> None:
        with pytest.raises(OrchestraError, match="first") as failed:
            async with start(alone(Calls(handle)), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await running.wait()
        assert "and 'worker' failed too: KeyError: 'cleaning up'" in failed.value.__cause__.__notes__

    with caplog.at_level(logging.ERROR, "orchestra"):
        virtually(main())
    assert "'worker' failed too: KeyError" in caplog.text


# what is refused


@pytest.mark.parametrize("given", [7, None, asyncio.sleep, lambda: None])
def test_what_is_no_coroutine_is_refused(given: Any) -> None:
    def handle(ctx: Any, message: Job) -> None:
        with pytest.raises(TypeError, match=r"'worker' was to spawn .*, which is no coroutine"):
            ctx.spawn(given)

    async def main() -> None:
        worker = Calls(handle)
        async with start(alone(worker)) as running:
            await running.send(Job())
            await running.drain()
        assert worker.got

    virtually(main())


def test_a_coroutine_is_closed_when_it_is_refused_after_the_end() -> None:
    contexts: list[Any] = []

    async def main() -> None:
        async with start(alone(Calls(lambda ctx, message: contexts.append(ctx)))) as running:
            await running.send(Job())
            await running.drain()
        refused = asyncio.sleep(1)
        with pytest.raises(Closed, match="'worker' spawns nothing more") as closed:
            contexts[0].spawn(refused)
        assert closed.value.subsystem == "worker"
        with pytest.raises(RuntimeError, match="cannot reuse"):
            await refused

    virtually(main())


def test_nothing_is_spawned_between_two_lives() -> None:
    contexts: list[Any] = []

    def handle(ctx: Any, message: Job) -> None:
        contexts.append(ctx)
        raise ValueError

    async def main() -> None:
        app = alone(Calls(handle), restart=Restart(backoff=5))
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job())
            await asyncio.sleep(1)
            with pytest.raises(Closed):
                contexts[0].spawn(asyncio.sleep(1))
            await asyncio.sleep(5)
            await contexts[0].spawn(asyncio.sleep(1))

    virtually(main())


def test_another_thread_is_refused_and_the_coroutine_closed() -> None:
    async def live(ctx: Any) -> None:
        refused = asyncio.sleep(1)
        with pytest.raises(RuntimeError):
            await asyncio.to_thread(ctx.spawn, refused)
        with pytest.raises(RuntimeError, match="cannot reuse"):
            await refused

    within(10, _until_ended(alone(Runs(live))))


async def _until_ended(app: Any) -> None:
    async with start(app) as running:
        await running.drain()


# its end


@pytest.mark.parametrize("kind", KINDS)
def test_a_subsystem_waits_for_its_tasks_before_it_has_stopped(kind: type) -> None:
    log: list[str] = []

    async def work() -> None:
        await asyncio.sleep(5)
        log.append("worked")

    async def main() -> None:
        worker = spawning(kind, work)
        loop = asyncio.get_running_loop()
        async with start(alone(worker)) as running:
            await running.send(Job())
            await running.drain()
            log.append("drained")
            assert 5 <= loop.time() < 6
        assert log == ["worked", "drained"]
        if kind is not Runs:
            assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_tasks_of_tasks_and_of_stopped_are_waited_for_too() -> None:
    log: list[str] = []

    class Late(Calls):
        def stopped(self, ctx: Any) -> None:
            log.append("stopped")
            ctx.spawn(self.work(ctx, 1))

        async def work(self, ctx: Any, depth: int) -> None:
            await asyncio.sleep(1)
            log.append(f"worked {depth}")
            if depth:
                ctx.spawn(self.work(ctx, depth - 1))

        def handle(self, ctx: Any, message: Any) -> None:
            ctx.spawn(self.work(ctx, 2))

    async def main() -> None:
        async with start(alone(Late())) as running:
            await running.send(Job())
            await running.drain()

    virtually(main())
    assert log == ["worked 2", "worked 1", "worked 0", "stopped", "worked 1", "worked 0"]


def test_what_a_task_sends_in_a_drain_is_handled() -> None:
    async def work(ctx: Any) -> None:
        for n in range(3):
            await asyncio.sleep(1)
            await ctx.send(Note(n))

    async def main() -> None:
        second = Calls()
        async with start(pair(Calls(lambda ctx, message: ctx.spawn(work(ctx))), second)) as running:
            await running.send(Job())
            await running.drain()
        assert second.got == [Note(n) for n in range(3)]

    virtually(main())


@pytest.mark.parametrize("kind", [Calls, Awaits])
def test_a_circle_is_not_quiet_while_a_task_works(kind: type) -> None:
    async def work(ctx: Any, n: int) -> None:
        await asyncio.sleep(1)
        await ctx.send(Note(n))

    def first(ctx: Any, message: Job) -> Any:
        if message.n:
            ctx.spawn(work(ctx, message.n))
        return asyncio.sleep(0) if kind is Awaits else None

    def second(ctx: Any, message: Note) -> None:
        ctx.try_send(Job(message.n - 1))

    async def main() -> None:
        players = kind(first), Calls(second)
        async with start(pair(*players, circle=True)) as running:
            await running.send(Job(3))
            await running.drain()
        assert players[0].got == [Job(n) for n in (3, 2, 1, 0)]

    virtually(main())


def test_a_circle_ends_though_a_spawned_task_waits_for_messages() -> None:
    got: list[Any] = []

    async def receive(ctx: Any) -> None:
        async for message in ctx:
            got.append(message)

    async def live(ctx: Any) -> None:
        for _ in range(2):
            ctx.spawn(receive(ctx))

    def back(ctx: Any, message: Note) -> None:
        ctx.try_send(Job(1))

    async def main() -> None:
        async with start(pair(Runs(live), Calls(back), circle=True)) as running:
            await running.send(Job(0))
            await running.send(Note(0))
            await running.drain()
        assert got == [Job(0), Job(1)]

    virtually(main())


def test_a_task_keeps_a_source_alive_in_a_drain() -> None:
    class Ticks(Calls):
        def started(self, ctx: Any) -> None:
            ctx.spawn(self.tick(ctx))

        async def tick(self, ctx: Any) -> None:
            for n in range(3):
                await asyncio.sleep(1)
                await ctx.send(Note(n))

    @orchestra(signal=Bell, event=Knock)
    class App:
        ticks: Ticks = subsystem(consumes=Never, sends=[Note])
        sink: Calls = subsystem(consumes=Note)

    async def main() -> None:
        sink = Calls()
        async with start(App(ticks=Ticks(), sink=sink)) as running:
            await running.drain()
        assert len(sink.got) == 3

    virtually(main())


def test_in_a_stop_tasks_may_finish_within_the_limit() -> None:
    log: list[str] = []

    async def work() -> None:
        await asyncio.sleep(5)
        log.append("worked")

    async def main() -> None:
        worker, loop = spawning(Calls, work), asyncio.get_running_loop()
        async with start(alone(worker)) as running:
            await running.send(Job())
            await turns()
            await running.stop(10)
            assert loop.time() == pytest.approx(5)
        assert log == ["worked"]
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


@pytest.mark.parametrize("kind", KINDS)
def test_at_the_limit_tasks_are_cancelled(kind: type) -> None:
    async def main() -> None:
        tasks: list[Any] = []

        async def work() -> None:
            tasks.append(asyncio.current_task())
            await asyncio.sleep(1e6)

        async with start(alone(spawning(kind, work)), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await turns()
            await running.stop(2)
            assert asyncio.get_running_loop().time() == pytest.approx(2, abs=0.1)
        assert [task.cancelled() for task in tasks] == [True]

    virtually(main())


def test_a_send_of_a_task_that_gets_closed_in_a_stop_is_no_failure() -> None:
    async def flood(ctx: Any) -> None:
        n = 0
        while True:
            await ctx.send(Note(n))
            n += 1

    async def main() -> None:
        first = Awaits(lambda ctx, message: _spawn_and_nap(ctx, flood(ctx)))
        second = Awaits(lambda ctx, message: asyncio.sleep(1))
        async with start(pair(first, second, message_capacity=2), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await asyncio.sleep(5)
            await running.stop()
        assert first.got == [Job()], "the handler may finish"

    virtually(main())


async def _spawn_and_nap(ctx: Any, coroutine: Any) -> None:
    ctx.spawn(coroutine)
    await asyncio.sleep(7)


def test_a_task_that_swallows_its_cancellation_is_named_with_its_place() -> None:
    over = False

    async def stubborn() -> None:
        while not over:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    async def main() -> None:
        nonlocal over
        worker = Calls(
            lambda ctx, message: (ctx.spawn(stubborn(), name="mole"), ctx.spawn(asyncio.sleep(1e6)))
        )
        with pytest.raises(StopTimeout) as late:
            async with start(alone(worker)) as running:
                await running.send(Job())
                await turns()
                await running.stop(0.1)
        over = True
        assert late.value.subsystems == ("worker",)
        text = str(late.value)
        assert text.startswith("still running 0.1 s after the stop: 'worker' task 'mole' at ")
        assert "test_spawn.py:" in text
        assert text.endswith("<locals>.stubborn")
        await asyncio.sleep(5)
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_a_handler_that_swallows_it_is_named_beside_its_task() -> None:
    over = False

    async def stubborn(ctx: Any = None, message: Any = None) -> None:
        if ctx is not None:
            ctx.spawn(stubborn(), name="mole")
        while not over:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    async def main() -> None:
        nonlocal over
        with pytest.raises(StopTimeout) as late:
            async with start(alone(Awaits(stubborn)), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await turns()
                await running.stop(0.1)
        over = True
        assert "'worker' at " in str(late.value)
        assert ", task 'mole' at " in str(late.value)
        await asyncio.sleep(5)

    virtually(main())


def test_a_failing_subsystem_whose_task_goes_on_for_ever_is_bounded_too() -> None:
    over = False

    async def stubborn() -> None:
        while not over:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    def handle(ctx: Any, message: Job) -> None:
        if message.n:
            raise ValueError("poison")
        ctx.spawn(stubborn(), name="mole")

    async def main() -> None:
        nonlocal over
        loop = asyncio.get_running_loop()
        with pytest.raises(OrchestraError, match="poison") as failed:
            async with start(alone(Calls(handle)), dead_letters=lambda _: None) as running:
                await running.send(Job(0))
                await turns()
                await running.send(Job(1))
                await running.wait()
        assert loop.time() == pytest.approx(10.5, abs=0.1)
        assert any("'worker' task 'mole' at" in note for note in failed.value.__notes__)
        over = True
        await asyncio.sleep(5)

    virtually(main())


@pytest.mark.parametrize("at", ["task", "handler"])
def test_a_life_that_does_not_end_is_told_of_while_the_next_one_waits(
    at: str, caplog: pytest.LogCaptureFixture
) -> None:
    over = False
    lives = []

    async def stubborn() -> None:
        while not over:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    async def live(ctx: Any) -> None:
        lives.append(ctx)
        if len(lives) == 1:
            ctx.spawn(fail_after(1, ValueError("poison")))
            if at == "task":
                ctx.spawn(stubborn(), name="mole")
            else:
                await stubborn()
        await ctx.recv()

    async def main() -> None:
        nonlocal over
        async with start(alone(Runs(live), restart=AGAIN)) as running:
            await asyncio.sleep(25)
            assert len(lives) == 1, "old and new never overlap"
            over = True
            await asyncio.sleep(5)
            assert len(lives) == 2
            await running.send(Job())
            await running.drain()

    with caplog.at_level(logging.WARNING, "orchestra"):
        virtually(main())
    first, *reminders = (record.getMessage() for record in caplog.records)
    assert first.startswith("'worker' failed and starts again in 0.1 s")
    assert len(reminders) == 2
    for reminder in reminders:
        assert reminder.startswith("'worker' is to start again, but its last life goes on: ")
        assert "stubborn" in reminder


@pytest.mark.parametrize("verb", ["stop", "drain", "wait"])
def test_a_task_that_would_wait_for_its_own_end_is_told(verb: str) -> None:
    async def main() -> None:
        told: list[str] = []

        async def ask() -> None:
            try:
                await getattr(running, verb)()
            except RuntimeError as error:
                told.append(str(error))

        async with start(alone(Calls(lambda ctx, message: ctx.spawn(ask())))) as running:
            await running.send(Job())
            await until(lambda: told)
        assert "would wait for its own end" in told[0]

    within(10, main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_may_stop_the_orchestra(kind: type) -> None:
    async def main() -> None:
        async def ask(ctx: Any) -> None:
            await asyncio.sleep(1)
            ctx.stop()

        async def live(ctx: Any) -> None:
            ctx.spawn(ask(ctx))

        worker = {
            Calls: lambda: Calls(lambda ctx, message: ctx.spawn(ask(ctx))),
            Awaits: lambda: Awaits(lambda ctx, message: live(ctx)),
            Runs: lambda: Runs(live),
        }[kind]()
        async with start(alone(worker), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await running.wait()
            assert asyncio.get_running_loop().time() == pytest.approx(1)

    virtually(main())


def test_a_task_may_stop_the_orchestra_while_its_actor_only_waits_for_it() -> None:
    async def ask(ctx: Any) -> None:
        await asyncio.sleep(1)
        ctx.stop()
        await asyncio.sleep(1e6)

    def handle(ctx: Any, message: Job) -> None:
        ctx.spawn(ask(ctx))
        ctx.finish()

    async def main() -> None:
        second = Calls()
        async with start(pair(Calls(handle), second)) as running:
            await running.send(Job())
            await running.wait()
            assert asyncio.get_running_loop().time() == pytest.approx(11, abs=0.1)

    virtually(main())


# what it is to Python


def test_tasks_are_held_until_they_have_ended() -> None:
    done: list[int] = []

    async def work(n: int) -> None:
        future = asyncio.get_running_loop().create_future()
        waiting.append(weakref.ref(future))
        await future
        done.append(n)

    waiting: list[Any] = []

    async def main() -> None:
        async with start(alone(Calls(lambda ctx, message: ctx.spawn(work(message.n))))) as running:
            for n in range(20):
                await running.send(Job(n))
            await turns()
            for _ in range(3):
                gc.collect()
            futures = [each() for each in waiting]
            assert len(futures) == 20
            assert None not in futures, "a task was collected with what it waits for"
            for future in futures:
                future.set_result(None)
            await running.drain()
        assert sorted(done) == list(range(20))

    virtually(main())


def test_nothing_of_a_task_is_held_after_its_end() -> None:
    class Load: ...

    loads: list[Any] = []

    async def work(load: Any) -> None:
        await asyncio.sleep(0)

    def handle(ctx: Any, message: Job) -> None:
        load = Load()
        loads.append(weakref.ref(load))
        ctx.spawn(work(load))

    async def main() -> None:
        async with start(alone(Calls(handle))) as running:
            for n in range(5):
                await running.send(Job(n))
            await turns()
            gc.collect()
            assert [load() for load in loads] == [None] * 5

    virtually(main())


COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("COLOUR", default="none")


def test_a_task_has_a_copy_of_its_callers_context_variables() -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append(COLOUR.get())
        COLOUR.set("task")

    def handle(ctx: Any, message: Job) -> None:
        seen.append(COLOUR.get())
        COLOUR.set(f"{message.n}")
        ctx.spawn(work())

    async def main() -> None:
        async with start(alone(Calls(handle))) as running:
            for n in range(2):
                await running.send(Job(n))
                await turns()
            await running.drain()

    virtually(main())
    assert seen == ["none", "0", "0", "1"]


def test_the_name_of_a_task_is_given_or_that_of_its_coroutine() -> None:
    names: list[str] = []

    async def digging() -> None: ...

    def handle(ctx: Any, message: Job) -> None:
        names.extend((ctx.spawn(digging()).get_name(), ctx.spawn(digging(), name="mole").get_name()))

    async def main() -> None:
        async with start(alone(Calls(handle))) as running:
            await running.send(Job())
            await running.drain()

    virtually(main())
    assert names[0].endswith("digging")
    assert names[1] == "mole"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("again", [False, True])
def test_an_interrupt_in_a_task_ends_the_program(kind: type[BaseException], again: bool) -> None:
    options = {"restart": AGAIN} if again else {}
    worker = spawning(Calls, lambda: fail_after(0, kind("now")))

    async def main(running: Any) -> None:
        await running.send(Job())
        await running.wait()

    async def program() -> None:
        async with start(alone(worker, **options), dead_letters=lambda _: None) as running:
            await main(running)

    for call in (
        lambda: asyncio.run(program()),
        lambda: run(alone(worker, **options), main, dead_letters=lambda _: None),
    ):
        worker.hooks.clear()
        with pytest.raises(kind):
            call()
        assert worker.hooks == ["started", "stopped"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks_are_owned_as_well() -> None:
    async def fails() -> None:
        raise ValueError("at once")

    async def passes() -> None: ...

    async def receives(ctx: Any) -> None:
        async for _ in ctx:
            pass

    async def live(ctx: Any) -> None:
        ctx.spawn(passes())
        ctx.spawn(receives(ctx))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(asyncio.eager_task_factory)
        async with start(pair(Runs(live), Calls(), circle=True)) as running:
            await running.send(Job())
            await running.drain()
        with pytest.raises(OrchestraError, match="at once"):
            async with start(alone(spawning(Calls, fails)), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await running.wait()
        worker = spawning(Calls, fails)
        app = alone(worker, restart=AGAIN)
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job())
            await running.drain()
            assert running.meters()["worker"].restarts == 1
        assert worker.hooks == ["started", "stopped"] * 2

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(asyncio.wait_for(main(), 10))
