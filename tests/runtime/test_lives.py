"""The end of one life and the begin of the next, where several things come together."""

import asyncio
import gc
import logging
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from orchestra import (
    Actor,
    OrchestraError,
    Reply,
    Restart,
    Running,
    Subsystem,
    deferred,
    orchestra,
    run,
    start,
    subsystem,
)
from orchestra.wrappers import Timed
from tests.runtime.clockwork import clockwork
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


# what was handled already


def take_long() -> None:
    """Use up the slice of the loop, so that others run before anything more is taken."""
    time.sleep(0.005)


def test_what_a_run_has_handled_when_it_takes_breath_is_no_dead_letter() -> None:
    done: list[int] = []

    async def receive(ctx: Any) -> None:
        async for message in ctx:
            if message.n == 0:
                ctx.spawn(fail(ValueError()))
            take_long()
            done.append(message.n)

    async def main() -> None:
        letters: list[Any] = []
        async with start(alone(Runs(receive), restart=AGAIN), dead_letters=letters.append) as running:
            for n in range(4):
                running.try_send(Job(n))
            await running.drain()
            assert running.meters()["worker"].restarts == 1
        assert done == [0, 1, 2, 3]
        assert letters == []

    virtually(main())


class Shares(Subsystem):
    """Two tasks receive, and do the same with each message; `spawns` says how the tasks are made."""

    def __init__(self, do: Callable[[Any], Any], *, spawns: bool = False) -> None:
        self.do = do
        self.spawns = spawns
        self.begun: list[int] = []
        self.done: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def run(self, ctx: Any) -> None:
        if self.spawns:
            self.tasks = [ctx.spawn(self.receive(ctx)) for _ in range(2)]
            return
        async with asyncio.TaskGroup() as group:
            self.tasks = [group.create_task(self.receive(ctx)) for _ in range(2)]

    async def receive(self, ctx: Any) -> None:
        async for message in ctx:
            self.begun.append(message.n)
            await self.do(message)
            self.done.append(message.n)


def reasons(letters: list[Any]) -> dict[int, str]:
    assert len({letter.message.n for letter in letters}) == len(letters)
    return {letter.message.n: letter.reason for letter in letters}


async def fail_on_two(message: Any) -> None:
    await asyncio.sleep(0 if message.n == 2 else 1)
    if message.n == 2:
        raise ValueError(message.n)


@pytest.mark.parametrize("circle", [False, True])
@pytest.mark.parametrize("spawns", [False, True])
@pytest.mark.parametrize("jobs", [(1, 2, 3, 4), (2, 1, 3, 4)])
def test_what_several_tasks_had_received_when_one_fails_is_dead_lettered(
    jobs: tuple[int, ...], spawns: bool, circle: bool
) -> None:
    async def main() -> None:
        worker, letters = Shares(fail_on_two, spawns=spawns), []
        app = pair(worker, Calls(), circle=circle, restart=AGAIN)
        async with start(app, dead_letters=letters.append) as running:
            for n in jobs:
                running.try_send(Job(n))
            await running.drain()
        assert reasons(letters) == {1: "cancelled", 2: "failed"}
        assert worker.begun == [*jobs[:2], 3, 4]
        assert worker.done == [3, 4]

    virtually(main())


@pytest.mark.parametrize("spawns", [False, True])
def test_what_several_tasks_had_received_at_the_limit_of_a_stop_is_dead_lettered(spawns: bool) -> None:
    async def main() -> None:
        worker, letters = Shares(lambda message: asyncio.sleep(1e6), spawns=spawns), []
        async with start(alone(worker), dead_letters=letters.append) as running:
            for n in range(3):
                running.try_send(Job(n))
            await turns()
            await running.stop(1)
        assert reasons(letters) == {0: "cancelled", 1: "cancelled", 2: "stopped"}

    virtually(main())


def test_what_a_cancelled_task_had_received_is_dead_lettered_and_the_others_go_on() -> None:
    async def main() -> None:
        worker, letters = Shares(lambda message: asyncio.sleep(1), spawns=True), []
        async with start(alone(worker), dead_letters=letters.append) as running:
            for n in range(4):
                running.try_send(Job(n))
            await turns()
            worker.tasks[0].cancel()
            await running.drain()
        assert reasons(letters) == {0: "cancelled"}
        assert worker.done == [1, 2, 3]

    virtually(main())


def test_an_error_of_a_task_that_nobody_awaits_is_still_told_by_the_loop() -> None:
    async def receive(ctx: Any) -> None:
        async def take_one() -> None:
            await ctx.recv()
            raise ValueError

        task = asyncio.create_task(take_one())
        await asyncio.wait([task])
        del task
        gc.collect()

    async def main() -> None:
        async with start(alone(Runs(receive)), dead_letters=letters.append) as running:
            await running.send(Job(1))
            await running.wait()

    letters: list[Any] = []
    with clockwork(strict=False) as loop:
        loop.run_until_complete(main())
    assert reasons(letters) == {1: "failed"}
    assert [context["message"] for context in loop.errors] == ["Task exception was never retrieved"]


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
    backoff = {"backoff": lambda n: leave(7)} if options else {"backoff": 1.0}

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


# other threads


@pytest.mark.parametrize(
    "verb",
    [
        lambda ctx: ctx.stop(),
        lambda ctx: ctx.finish(),
        lambda ctx: ctx.send_after(0, Job(1)),
        lambda ctx: ctx.send_every(1, Job),
        lambda ctx: ctx.set_deadline(None),
        lambda ctx: ctx.set_timeout(1),
    ],
)
def test_the_context_of_a_subsystem_in_the_loop_is_refused_in_another_thread(verb: Any) -> None:
    class Worker(Awaits):
        def deadline_passed(self, ctx: Any, deadline: float) -> None:
            raise AssertionError

    async def handle(ctx: Any, message: Any) -> None:
        with pytest.raises(RuntimeError, match=r"'worker' belongs to the thread .*running\.threadsafe"):
            await ctx.run_blocking(verb, ctx)

    async def main() -> None:
        worker = Worker(handle)
        async with start(alone(worker)) as running:
            await running.send(Job())
            await running.drain()
        assert worker.got == [Job()]

    within(5, main())


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


# memory


class Traced:
    """A message that can be referred to weakly; `n` is 1 for one that is to fail."""

    def __init__(self, n: int, reply: Reply[int] | None = None) -> None:
        self.n = n
        self.reply = reply


class Question(Traced):
    reply: Reply[int]


class Forgets(Actor):
    def handle(self, ctx: Any, message: Any) -> None:
        if message.n == 1:
            ctx.send_after(1e6, message)
            raise ValueError(message)
        message.reply.send(7)


class ForgetsLater(Forgets):
    async def handle(self, ctx: Any, message: Any) -> None:
        if message.n == 1:
            ctx.spawn(fail(ValueError(message)))
            await asyncio.sleep(1e6)
        message.reply.send(7)


class ForgetsInRun(Subsystem):
    async def run(self, ctx: Any) -> None:
        async for message in ctx:
            Forgets().handle(ctx, message)
            del message


class ForgetsInThread(Subsystem):
    def run(self, ctx: Any) -> None:  # type: ignore[override]  # it is for blocking=True
        for message in ctx:
            Forgets().handle(ctx, message)
            del message


@pytest.mark.parametrize(
    ("make", "options", "end"),
    [
        (Forgets, {}, "drain"),
        (ForgetsLater, {}, "stop"),
        (lambda: Timed(ForgetsLater()), {}, "drain"),
        (ForgetsInRun, {}, "stop"),
        (Forgets, {"blocking": True}, "drain"),
        (lambda: Timed(Forgets()), {"blocking": True}, "stop"),
        (ForgetsInThread, {"blocking": True}, "stop"),
    ],
)
def test_nothing_of_a_life_is_kept_after_it_nor_of_an_orchestra_after_its_end(
    make: Callable[[], Any], options: dict[str, Any], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("orchestra"), "disabled", True)  # pytest keeps what is logged
    messages: list[weakref.ref[Any]] = []
    instances: list[weakref.ref[Any]] = []
    handles: list[weakref.ref[Any]] = []

    def traced(number: int, reply: Any = None) -> Question:
        message = Question(number, reply)
        messages.append(weakref.ref(message))
        return message

    def made() -> Any:
        instance = make()
        instances.append(weakref.ref(instance))
        return instance

    def alive(references: list[weakref.ref[Any]]) -> int:
        gc.collect()
        return sum(reference() is not None for reference in references)

    async def main() -> None:
        kind = type(make())

        @orchestra(signal=Bell, event=Knock)
        class App:
            worker: kind = subsystem(consumes=Question, restart=Restart(limit=9, backoff=0.001), **options)

        async with start(App(worker=deferred(made)), dead_letters=lambda _: None) as running:
            handles.extend([weakref.ref(running), weakref.ref(running._ensemble)])
            for restarts in (1, 2, 3):
                await running.send(traced(1))
                await until(lambda: running.meters()["worker"].restarts == restarts)  # noqa: B023
            assert await running.ask(lambda reply: traced(0, reply), timeout=5) == 7
            await until(
                lambda: (alive(messages), alive(instances)) == (0, 1)
            )  # a thread may be at its end yet
            await getattr(running, end)()

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main())
        loop.run_until_complete(asyncio.sleep(0))
        assert (alive(messages), alive(instances), alive(handles)) == (0, 0, 0)
    finally:
        loop.close()
