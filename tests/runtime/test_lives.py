"""The end of one life and the begin of the next, where several things come together."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from orchestra import OrchestraError, Restart, Running, Subsystem, orchestra, run, start, subsystem
from tests.runtime.clockwork import run as virtually
from tests.runtime.players import (
    Awaits,
    Bell,
    Calls,
    Job,
    Knock,
    Note,
    alone,
    told,
    turns,
    until,
    within,
)

AGAIN = Restart(limit=3, within=10, backoff=0.1)


async def fail(error: BaseException) -> None:
    raise error


async def fail_now(ctx: Any, message: Any = None) -> None:
    raise ValueError("now")


class FailsThen(Awaits):
    """Its handler fails, and `stopped` does what it is given."""

    def __init__(self, then: Callable[[Any], Any]) -> None:
        super().__init__(fail_now)
        self.then = then

    def stopped(self, ctx: Any) -> None:
        super().stopped(ctx)
        self.then(ctx)


# what asks for the end when a restart is decided already


@pytest.mark.parametrize("verb", ["stop", "finish"])
def test_who_asks_to_end_in_stopped_does_not_start_again(verb: str) -> None:
    async def main() -> None:
        worker = FailsThen(lambda ctx: getattr(ctx, verb)())
        async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await running.wait()
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_who_asks_to_stop_while_it_is_cancelled_by_a_failing_task_does_not_start_again() -> None:
    async def handle(ctx: Any, message: Any) -> None:
        ctx.spawn(fail(ValueError()))
        try:
            await asyncio.sleep(1e6)
        finally:
            ctx.stop()

    async def main() -> None:
        worker = Awaits(handle)
        async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await running.wait()
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_a_stop_that_is_asked_for_between_two_lives_begins_at_once() -> None:
    async def main() -> None:
        kept: list[Any] = []

        async def handle(ctx: Any, message: Any) -> None:
            kept.append(ctx)
            raise ValueError

        worker = Awaits(handle)
        app = alone(worker, restart=Restart(backoff=100))
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job())
            await turns()
            kept[0].stop()
            await running.wait()
        assert asyncio.get_running_loop().time() < 1
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


# timers and tasks of a life that is over


@pytest.mark.parametrize("fails", ["started", "handle"])
def test_a_timer_that_a_cancelled_task_sets_does_not_outlive_its_life(fails: str) -> None:
    letters: list[Any] = []

    async def last_words(ctx: Any) -> None:
        try:
            await asyncio.sleep(1e6)
        finally:
            ctx.send_after(0.2, Job(77))

    class Worker(Calls):
        async def started(self, ctx: Any) -> None:
            self.hooks.append("started")
            if fails == "started" and len(self.hooks) == 1:
                await self.break_down(ctx)

        async def handle(self, ctx: Any, message: Any) -> None:
            self.got.append(message)
            if fails == "handle" and len(self.got) == 1:
                await self.break_down(ctx)

        async def break_down(self, ctx: Any) -> None:
            ctx.spawn(last_words(ctx))
            await asyncio.sleep(0)
            raise ValueError

    async def main() -> None:
        worker = Worker()
        async with start(alone(worker, restart=AGAIN), dead_letters=letters.append) as running:
            await running.send(Job(1))
            await asyncio.sleep(5)
        assert Job(77) not in worker.got
        assert (Job(77), "worker", "timer") in told(letters)

    virtually(main())


# errors that are to end the program


def leave(code: int) -> Any:
    raise SystemExit(code)


class Ticks(Calls):
    def started(self, ctx: Any) -> None:
        ctx.send_every(0.01, lambda: leave(7))


def exits() -> list[Any]:
    """Where a SystemExit may come from beside handlers, `started` and tasks."""
    failing = Awaits(fail_now)
    return [
        pytest.param(FailsThen(lambda ctx: leave(7)), {}, None, id="stopped of a life that failed"),
        pytest.param(failing, {"backoff": leave}, None, id="backoff"),
        pytest.param(Awaits(fail_now), {}, lambda letter: leave(7), id="dead_letters"),
        pytest.param(Ticks(), {}, None, id="factory of a timer"),
    ]


@pytest.mark.parametrize("way", ["start", "run"])
@pytest.mark.parametrize(("worker", "options", "hook"), exits())
def test_an_exit_ends_the_program_soon_wherever_it_comes_from(
    worker: Any, options: Any, hook: Any, way: str
) -> None:
    worker.hooks.clear()
    backoff = {"backoff": lambda n: leave(7)} if options else {"backoff": 0.01}

    def app() -> Any:
        return alone(worker, restart=Restart(**backoff))

    async def drive(running: Running) -> None:
        await running.send(Job())
        await asyncio.sleep(5)

    async def program() -> None:
        async with asyncio.timeout(5), start(app(), dead_letters=hook or (lambda _: None)) as running:
            await drive(running)

    with pytest.raises(SystemExit) as raised:
        if way == "start":
            asyncio.run(program())
        else:
            run(app(), drive, dead_letters=hook or (lambda _: None))
    assert raised.value.code == 7
    assert worker.hooks.count("started") <= 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_group_with_an_interrupt_is_not_recovered_from(kind: type[BaseException]) -> None:
    async def handle(ctx: Any, message: Any) -> None:
        raise BaseExceptionGroup("several", [ValueError(), BaseExceptionGroup("inner", [kind()])])

    async def main() -> None:
        worker = Awaits(handle)
        with pytest.raises(OrchestraError, match="several"):
            async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await running.wait()
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_a_group_of_cancellations_at_the_limit_of_a_stop_is_no_failure() -> None:
    async def handle(ctx: Any, message: Any) -> None:
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError as cancelled:
            raise BaseExceptionGroup("cancelled", [cancelled]) from None

    async def main() -> None:
        worker, letters = Awaits(handle), []
        async with start(alone(worker), dead_letters=letters.append) as running:
            await running.send(Job())
            await turns()
            await running.stop(0)
        assert told(letters) == [(Job(), "worker", "cancelled")]

    virtually(main())


# what goes wrong around a subsystem


class Refuses(logging.Filter):
    """A filter that fails on everything."""

    def filter(self, record: logging.LogRecord) -> bool:
        raise ZeroDivisionError("the filter is broken")


def test_what_breaks_around_a_subsystem_ends_the_orchestra_too() -> None:
    async def main() -> None:
        worker = Awaits(fail_now)
        with pytest.raises(OrchestraError, match="the filter is broken"):
            async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await running.wait()
        assert asyncio.get_running_loop().time() < 1

    refuses = Refuses()
    logging.getLogger("orchestra").addFilter(refuses)
    try:
        virtually(main())
    finally:
        logging.getLogger("orchestra").removeFilter(refuses)


# blocking subsystems


def test_a_thread_spawns_without_waiting_for_the_task() -> None:
    def handle(ctx: Any, message: Any) -> None:
        ctx.spawn(asyncio.sleep(0.3))

    async def main() -> None:
        worker = Calls(handle)
        async with start(alone(worker, blocking=True)) as running:
            await running.send(Job())
            await until(lambda: worker.got)
            assert asyncio.all_tasks() > {asyncio.current_task()}
            draining = asyncio.ensure_future(running.drain())
            await asyncio.sleep(0.05)
            assert not draining.done()
            await draining

    within(5, main())


def test_a_thread_may_wait_in_stopped_after_a_failing_task() -> None:
    class Worker(Calls):
        def handle(self, ctx: Any, message: Any) -> None:
            if message.n == 0:
                ctx.spawn(fail(ValueError()))
            self.got.append(message.n)

        def stopped(self, ctx: Any) -> None:
            ctx.send_after(1e6, Job(9)).cancel()
            super().stopped(ctx)

    async def main() -> None:
        worker = Worker()
        app = alone(worker, blocking=True, restart=Restart(backoff=0.01))
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job(0))
            await until(lambda: running.meters()["worker"].restarts)
            await running.send(Job(1))
            await running.drain()
        assert worker.got == [0, 1]
        assert worker.hooks == ["started", "stopped", "started", "stopped"]

    within(5, main())


@pytest.mark.parametrize("several", [False, True])
def test_a_thread_that_waits_for_room_is_let_go_by_a_failing_task(several: bool) -> None:
    class First(Calls):
        def handle(self, ctx: Any, message: Any) -> None:
            if message.n == 0:
                ctx.spawn(self.fail_late())
                for n in range(5):
                    ctx.send(Note(n))
            self.got.append(message.n)

        async def fail_late(self) -> None:
            await asyncio.sleep(0.05)
            raise ValueError

    class Idle(Subsystem):
        async def run(self, ctx: Any) -> None:
            await asyncio.sleep(1e6)

    role: dict[str, Any] = {"subscribes": [Note]} if several else {"consumes": Note}

    @orchestra(signal=Bell, event=Knock)
    class App:
        first: First = subsystem(consumes=Job, sends=[Note], blocking=True, restart=Restart(backoff=0.01))
        second: Idle = subsystem(message_capacity=1, **role)
        if several:
            third: Idle = subsystem(message_capacity=1, **role)

    async def main() -> None:
        first, letters = First(), []
        others = {"second": Idle(), "third": Idle()} if several else {"second": Idle()}
        app = App(first=first, **others)
        async with start(app, dead_letters=letters.append) as running:
            await running.send(Job(0))
            await until(lambda: running.meters()["first"].restarts)
            await running.send(Job(1))
            await until(lambda: first.got)
            assert first.got == [1]
            assert told(letters)[0] == (Job(0), "first", "failed")
            second = running.meters()["second"]
            assert (second.sent, second.queued, second.waiting) == (1, 1, 0)
            await running.stop(0)

    within(5, main())
