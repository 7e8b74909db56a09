"""Restarts: what is kept, what is not, how often, and that old and new never overlap."""

import asyncio
import contextvars
import logging
import math
from collections.abc import Callable
from typing import Any, Never

import attrs
import pytest

from orchestra import (
    Actor,
    DeadLetter,
    OrchestraError,
    Restart,
    Subsystem,
    deferred,
    orchestra,
    start,
    subsystem,
)
from tests.runtime.clockwork import run as virtually
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
    told,
    turns,
    until,
    within,
)

AGAIN = Restart(limit=3, within=10, backoff=0.1)


class Fragile(Calls):
    """Fails on the numbers that it is given, each time."""

    def __init__(self, *poison: int) -> None:
        super().__init__()
        self.poison = poison

    def handle(self, ctx: Any, message: Any) -> None:
        if message.n in self.poison:
            raise ValueError(f"poison {message.n}")
        self.got.append(message.n)


class AsyncFragile(Fragile):
    async def handle(self, ctx: Any, message: Any) -> None:
        await asyncio.sleep(0)
        super().handle(ctx, message)


class SignalFragile(Fragile):
    async def on_signal(self, ctx: Any, signal: Any) -> None:
        self.hooks.append(signal)


class RunFragile(Subsystem):
    def __init__(self, *poison: int) -> None:
        self.poison = poison
        self.got: list[int] = []
        self.hooks: list[str] = []

    async def run(self, ctx: Any) -> None:
        self.hooks.append("started")
        try:
            async for message in ctx:
                if message.n in self.poison:
                    raise ValueError(f"poison {message.n}")
                self.got.append(message.n)
        finally:
            self.hooks.append("stopped")


FRAGILE = [Fragile, AsyncFragile, SignalFragile, RunFragile]


@pytest.mark.parametrize("kind", FRAGILE)
def test_a_restart_keeps_what_is_queued_and_who_waits_in_order(kind: type) -> None:
    async def main() -> None:
        worker, letters = kind(1, 4), []
        app = alone(worker, message_capacity=2, restart=AGAIN)
        async with start(app, dead_letters=letters.append) as running:
            await asyncio.gather(*(running.send(Job(n)) for n in range(7)))
            await running.drain()
            meters = running.meters()["worker"]
        assert worker.got == [0, 2, 3, 5, 6]
        assert told(letters) == [(Job(n), "worker", "failed") for n in (1, 4)]
        assert [str(letter.error) for letter in letters] == ["poison 1", "poison 4"]
        assert worker.hooks == ["started", "stopped"] * 3
        assert (meters.sent, meters.received, meters.restarts) == (7, 7, 2)

    virtually(main())


@pytest.mark.parametrize("kind", FRAGILE)
def test_a_crash_loop_ends_after_its_limit_with_a_note(kind: type) -> None:
    async def main() -> None:
        worker, letters = kind(*range(9)), []
        app = alone(worker, restart=Restart(limit=2, within=5, backoff=0.01))
        async with start(app, dead_letters=letters.append) as running:
            for n in range(5):
                await running.send(Job(n))
            with pytest.raises(
                OrchestraError, match="'worker' of Alone failed: ValueError: poison 2"
            ) as failed:
                await running.wait()
            assert running.meters()["worker"].restarts == 2
        assert failed.value.__notes__ == [
            "'worker' was started again 2 times before that, 2 of them within 5 s"
        ]
        assert told(letters) == [(Job(n), "worker", "failed") for n in range(3)] + [
            (Job(n), "worker", "stopped") for n in (3, 4)
        ]

    virtually(main())


def test_failures_that_are_further_apart_than_the_window_go_on_for_ever() -> None:
    async def main() -> None:
        worker = Fragile(0)
        app = alone(worker, restart=Restart(limit=1, within=5, backoff=0))
        async with start(app, dead_letters=lambda _: None) as running:
            for _ in range(20):
                await running.send(Job(0))
                await asyncio.sleep(5.1)
            assert running.meters()["worker"].restarts == 20
            await running.send(Job(0))
            await asyncio.sleep(4.9)
            await running.send(Job(0))
            with pytest.raises(OrchestraError):
                await running.wait()

    virtually(main())


def test_nobody_takes_anything_during_the_backoff() -> None:
    async def main() -> None:
        worker, loop = SignalFragile(0), asyncio.get_running_loop()
        app = alone(worker, message_capacity=1, restart=Restart(backoff=2.0))
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job(0))
            await turns()
            await running.send(Job(1))
            await running.broadcast(Bell(1))
            waiting = asyncio.ensure_future(running.send(Job(2)))
            failed = loop.time()
            await asyncio.sleep(1.9)
            assert not waiting.done()
            assert (worker.got, worker.hooks) == ([], ["started", "stopped"])
            assert running.meters()["worker"].queued == 1
            await waiting
            assert loop.time() - failed == pytest.approx(2.0)
            await running.drain()
        assert worker.got == [1, 2]
        assert worker.hooks == ["started", "stopped", "started", Bell(1), "stopped"]

    virtually(main())


def test_a_growing_backoff_is_a_function() -> None:
    async def main() -> None:
        worker, loop = Fragile(0), asyncio.get_running_loop()
        began: list[float] = []
        worker.started = lambda ctx: began.append(loop.time())  # type: ignore[method-assign]
        app = alone(worker, restart=Restart(limit=3, within=math.inf, backoff=lambda n: 10.0**n))
        async with start(app, dead_letters=lambda _: None) as running:
            for _ in range(3):
                await running.send(Job(0))
            await running.drain()
        assert began == pytest.approx([0, 10, 110, 1110])

    virtually(main())


@pytest.mark.parametrize("backoff", [lambda n: 1 / 0, lambda n: -1.0, lambda n: float("soon")])
def test_a_backoff_function_that_goes_wrong_makes_the_failure_one_for_good(backoff: Any) -> None:
    async def main() -> None:
        app = alone(Fragile(0), restart=Restart(backoff=backoff))
        with pytest.raises(OrchestraError, match="poison 0") as failed:
            async with start(app, dead_letters=lambda _: None) as running:
                await running.send(Job(0))
                await running.wait()
        cause = failed.value.__cause__
        assert isinstance(cause, ValueError)
        assert cause.__notes__[0].startswith("and 'worker' cannot start again: ")

    virtually(main())


def test_a_stop_ends_the_backoff_at_once() -> None:
    async def main() -> None:
        worker, loop, letters = Fragile(0), asyncio.get_running_loop(), []
        app = alone(worker, restart=Restart(backoff=60))
        async with start(app, dead_letters=letters.append) as running:
            for n in range(2):
                await running.send(Job(n))
            await turns()
            began = loop.time()
            await running.stop()
            assert loop.time() - began < 1
        assert worker.hooks == ["started", "stopped"]
        assert told(letters) == [(Job(0), "worker", "failed"), (Job(1), "worker", "stopped")]

    virtually(main())


def test_a_stop_during_stopped_lets_no_life_follow() -> None:
    class Slow(Fragile):
        async def stopped(self, ctx: Any) -> None:
            await asyncio.sleep(1)
            self.hooks.append("stopped")

    async def main() -> None:
        worker = Slow(0)
        async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
            await running.send(Job(0))
            await asyncio.sleep(0.5)
            await running.stop()
            assert running.meters()["worker"].restarts == 0
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_a_failure_of_another_ends_the_backoff_too() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        first: Fragile = subsystem(consumes=Job, restart=Restart(backoff=60))
        second: Fragile = subsystem(consumes=Note)

    async def main() -> None:
        app = App(first=Fragile(0), second=Fragile(0))
        with pytest.raises(OrchestraError, match="'second' of App"):
            async with start(app, dead_letters=lambda _: None) as running:
                await running.send(Job(0))
                await turns()
                await running.send(Note(0))
                await running.wait()
        assert asyncio.get_running_loop().time() < 1
        assert app.first.hooks == ["started", "stopped"]

    virtually(main())


def test_a_drain_waits_for_the_backoff() -> None:
    async def main() -> None:
        worker, loop = Fragile(2), asyncio.get_running_loop()
        async with start(alone(worker, restart=Restart(backoff=5)), dead_letters=lambda _: None) as running:
            for n in range(3):
                await running.send(Job(n))
            await running.drain()
            assert 5 <= loop.time() < 6
        assert worker.hooks == ["started", "stopped"] * 2, "the last message failed, and it starts again"

    virtually(main())


def test_a_circle_is_not_quiet_while_a_member_waits_to_start_again() -> None:
    async def back(ctx: Any, message: Note) -> None:
        if message.n < 5:
            await ctx.send(Job(message.n + 1))

    class First(Fragile):
        def handle(self, ctx: Any, message: Any) -> None:
            super().handle(ctx, message)
            ctx.try_send(Note(message.n))

    async def main() -> None:
        first, second = First(2), Awaits(back)
        app = pair(first, second, circle=True, restart=AGAIN)
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job(0))
            await running.send(Job(2))
            await running.send(Job(4))
            await running.drain()
        assert sorted(first.got) == [0, 1, 4, 5]
        assert first.hooks == ["started", "stopped"] * 3

    virtually(main())


# started and stopped


@pytest.mark.parametrize("fails", [1, 2])
def test_a_failing_start_counts_and_messages_wait_for_a_good_one(fails: int) -> None:
    class Slow(Calls):
        def __init__(self) -> None:
            super().__init__()
            self.left = fails

        async def started(self, ctx: Any) -> None:
            await asyncio.sleep(0.01)
            self.left -= 1
            if self.left >= 0:
                self.hooks.append("broken")
                raise ConnectionError
            self.hooks.append("started")

    async def main() -> None:
        worker, letters = Slow(), []
        app = alone(worker, restart=Restart(limit=2, backoff=0.1))
        async with start(app, dead_letters=letters.append) as running:
            for n in range(3):
                await running.send(Job(n))
            await running.drain()
        assert worker.hooks == ["broken"] * fails + ["started", "stopped"]
        assert worker.got == [Job(n) for n in range(3)]
        assert letters == []

    virtually(main())


def test_an_error_in_stopped_is_noted_and_logged_and_does_not_stop_the_restart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors: list[BaseException] = []

    class Clumsy(Fragile):
        def handle(self, ctx: Any, message: Any) -> None:
            try:
                super().handle(ctx, message)
            except ValueError as error:
                errors.append(error)
                raise

        def stopped(self, ctx: Any) -> None:
            self.hooks.append("stopped")
            if len(self.hooks) == 2:
                raise KeyError("clumsy")

    async def main() -> None:
        worker = Clumsy(0)
        async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
            for n in range(2):
                await running.send(Job(n))
            await running.drain()
        assert worker.got == [1]

    with caplog.at_level(logging.WARNING, "orchestra"):
        virtually(main())
    assert errors[0].__notes__ == ["and stopped() of 'worker' then raised KeyError: 'clumsy'"]
    assert "stopped() of 'worker' then raised KeyError: 'clumsy'" in caplog.text


def test_an_error_in_stopped_at_a_good_end_is_no_reason_to_start_again() -> None:
    class Clumsy(Calls):
        def stopped(self, ctx: Any) -> None:
            super().stopped(ctx)
            raise KeyError("clumsy")

    async def main() -> None:
        worker = Clumsy()
        with pytest.raises(OrchestraError, match="clumsy"):
            async with start(alone(worker, restart=AGAIN)) as running:
                await running.drain()
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_old_and_new_never_overlap() -> None:
    class Careful(Calls):
        inside = 0

        async def started(self, ctx: Any) -> None:
            assert Careful.inside == 0
            Careful.inside += 1
            self.hooks.append("started")
            ctx.spawn(self.linger())
            await asyncio.sleep(0)

        async def linger(self) -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(0.25)
                self.hooks.append("lingered")

        def handle(self, ctx: Any, message: Any) -> None:
            raise ValueError

        async def stopped(self, ctx: Any) -> None:
            await asyncio.sleep(0.1)
            Careful.inside -= 1
            self.hooks.append("stopped")

    async def main() -> None:
        loop, made = asyncio.get_running_loop(), []

        def make() -> Careful:
            made.append(Careful())
            return made[-1]

        app = App(worker=deferred(make))
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job())
            while len(made) < 2:
                await asyncio.sleep(0.001)
            assert loop.time() == pytest.approx(0.25 + 0.1 + 0.1, abs=0.01)
            assert made[0].hooks == ["started", "lingered", "stopped"]
            await running.stop(1)

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Careful = subsystem(consumes=Job, restart=AGAIN)

    virtually(main())


# what is no reason to start again


def test_who_fails_in_a_stop_does_not_start_again() -> None:
    async def fail(ctx: Any, message: Any) -> None:
        await asyncio.sleep(1)
        raise ValueError("late")

    async def main() -> None:
        worker = Awaits(fail)
        with pytest.raises(OrchestraError, match="late"):
            async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await turns()
                await running.stop()
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_who_is_cancelled_at_the_limit_does_not_start_again() -> None:
    async def main() -> None:
        worker, letters = Gated(), []
        async with start(alone(worker, restart=AGAIN), dead_letters=letters.append) as running:
            await running.send(Job())
            await turns()
            await running.stop(1)
        assert worker.hooks == ["started", "stopped"]
        assert told(letters) == [(Job(), "worker", "cancelled")]

    virtually(main())


@pytest.mark.parametrize("ask", ["stop", "finish"])
def test_who_has_asked_to_end_does_not_start_again(ask: str) -> None:
    def fail(ctx: Any, message: Any) -> None:
        getattr(ctx, ask)()
        raise ValueError("on the way out")

    async def main() -> None:
        worker = Calls(fail)
        with pytest.raises(OrchestraError, match="on the way out"):
            async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await running.wait()
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_a_run_that_ends_is_not_started_again() -> None:
    lives = []

    async def live(ctx: Any) -> None:
        lives.append(ctx)
        if await ctx.recv() == Job(1):
            return
        await ctx.recv()

    async def main() -> None:
        for first in (0, 1):
            async with start(alone(Runs(live), restart=AGAIN)) as running:
                await running.send(Job(first))
                await running.drain()

    virtually(main())
    assert len(lives) == 2


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("style", [Calls, Awaits])
def test_an_interrupt_is_not_recovered_from(kind: type[BaseException], style: type[Calls]) -> None:
    async def later(ctx: Any, message: Any) -> None:
        raise kind

    def now(ctx: Any, message: Any) -> None:
        raise kind

    worker = style(now if style is Calls else later)

    async def main() -> None:
        async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await running.wait()

    with pytest.raises(kind):
        asyncio.run(main())
    assert worker.hooks == ["started", "stopped"]


def test_a_cancellation_by_somebody_else_is_a_failure_like_others() -> None:
    async def live(ctx: Any) -> None:
        lives.append(asyncio.current_task())
        if len(lives) == 1:
            lives[0].cancel()
        await asyncio.sleep(1)

    lives: list[Any] = []

    async def main() -> None:
        async with start(alone(Runs(live), restart=AGAIN)) as running:
            await running.drain()

    virtually(main())
    assert len(lives) == 2


# what fails, and what becomes of it


def test_the_restart_is_logged_with_its_error(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with start(alone(Fragile(0), restart=AGAIN)) as running:
            await running.send(Job(0))
            await running.drain()

    with caplog.at_level(logging.WARNING, "orchestra"):
        virtually(main())
    assert [record.getMessage() for record in caplog.records] == [
        "Job to 'worker' was not handled: failed",
        "'worker' failed and starts again in 0.1 s (restart 1 of 3 within 10 s): ValueError: poison 0",
    ]
    assert "in handle" in caplog.text


def test_a_failing_signal_hook_starts_again_and_the_signal_is_gone() -> None:
    class Startles(Calls):
        def on_signal(self, ctx: Any, signal: Any) -> None:
            super().on_signal(ctx, signal)
            if signal == Bell(1):
                raise ValueError

    async def main() -> None:
        worker, letters = Startles(), []
        async with start(alone(worker, restart=AGAIN), dead_letters=letters.append) as running:
            running.try_send(Job(7))
            await asyncio.gather(*(running.broadcast(Bell(n)) for n in (1, 2)))
            await running.drain()
        assert worker.hooks == ["started", Bell(1), "stopped", "started", Bell(2), "stopped"]
        assert worker.got == [Job(7)]
        assert letters == []

    virtually(main())


def test_an_error_group_starts_again_too() -> None:
    lives = []

    async def live(ctx: Any) -> None:
        lives.append(1)
        if len(lives) == 1:

            async def die() -> None:
                await asyncio.sleep(0.1)
                raise ValueError("inner")

            async with asyncio.TaskGroup() as group:
                group.create_task(die())
                group.create_task(ctx.recv())
        async for _ in ctx:
            pass

    async def main() -> None:
        async with start(alone(Runs(live), restart=AGAIN)) as running:
            await asyncio.sleep(1)
            await running.send(Job())
            await running.drain()

    virtually(main())
    assert len(lives) == 2


def test_what_is_sent_to_it_meanwhile_is_accepted_as_its_lane_says() -> None:
    async def main() -> None:
        worker = Fragile(0)
        async with start(
            alone(worker, message_capacity=2, restart=Restart(backoff=1)), dead_letters=lambda _: None
        ) as running:
            running.try_send(Job(0))
            await turns()
            assert running.try_send(Job(1))
            assert running.try_send(Job(2))
            await asyncio.gather(running.send(Job(3)), running.send(Job(4)))
            await running.drain()
        assert worker.got == [1, 2, 3, 4]

    virtually(main())


# fresh instances


@attrs.define(eq=False)
class Counts(Actor):
    """Counts what it handled in this life."""

    number: int
    got: list[int] = attrs.Factory(list)

    def handle(self, ctx: Any, message: Any) -> None:
        if message.n < 0:
            raise ValueError(message.n)
        self.got.append(message.n)


@attrs.define(eq=False)
class Counted:
    made: list[Any] = attrs.Factory(list)
    kind: Callable[[int], Any] = Counts

    def __call__(self) -> Any:
        self.made.append(self.kind(len(self.made)))
        return self.made[-1]


class AsyncCounts(Counts):
    async def handle(self, ctx: Any, message: Any) -> None:
        super().handle(ctx, message)


class RunCounts(Subsystem):
    def __init__(self, number: int) -> None:
        self.got: list[int] = []

    async def run(self, ctx: Any) -> None:
        async for message in ctx:
            if message.n < 0:
                raise ValueError(message.n)
            self.got.append(message.n)


@pytest.mark.parametrize("kind", [Counts, AsyncCounts, RunCounts])
@pytest.mark.parametrize("options", [{}, {"priorities": None, "fairness": None}])
def test_a_factory_gives_each_life_a_fresh_instance(kind: Any, options: dict[str, Any]) -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: kind = subsystem(consumes=Job, restart=AGAIN, **options)

    async def main() -> None:
        factory, letters = Counted(kind=kind), []
        app = App(worker=deferred(factory))
        async with start(app, dead_letters=letters.append) as running:
            assert running.instances == {"worker": factory.made[0]}
            for n in (0, 1, -1, 2, -2, 3, 4):
                await running.send(Job(n))
            await running.drain()
            meters = running.meters()["worker"]
            assert running.instances == {"worker": factory.made[2]}
        assert [each.got for each in factory.made] == [[0, 1], [2], [3, 4]]
        assert (meters.sent, meters.received, meters.queued, meters.restarts) == (7, 7, 0, 2)
        assert told(letters) == [(Job(-1), "worker", "failed"), (Job(-2), "worker", "failed")]

    virtually(main())


def test_meters_go_on_with_a_fresh_instance_behind_two_fair_lanes() -> None:
    from orchestra import Priority

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Counts = subsystem(
            consumes=Job, restart=AGAIN, priorities=[Priority.HIGH, Priority.NORMAL], fairness=2
        )

    async def main() -> None:
        async with start(App(worker=deferred(Counted())), dead_letters=lambda _: None) as running:
            for n in (-1, 1, 2):
                running.try_send(Job(n), priority=Priority.HIGH)
                running.try_send(Job(n))
            await running.drain()
            lanes = running.meters()["worker"].lanes
            assert [(lane.sent, lane.received) for lane in lanes.values()] == [(3, 3), (3, 3)]

    virtually(main())


def test_the_field_goes_on_holding_the_factory_and_each_start_makes_anew() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Counts = subsystem(consumes=Job)

    async def main() -> None:
        factory = Counted()
        app = App(worker=deferred(factory))
        for times in (1, 2):
            async with start(app) as running:
                assert len(factory.made) == times
                assert running.instances["worker"] is factory.made[-1]
                await running.send(Job(times))
                await running.drain()
        assert [each.got for each in factory.made] == [[1], [2]]

    virtually(main())


def test_instances_are_there_for_what_is_not_deferred_too() -> None:
    async def main() -> None:
        first, second = Calls(), Collects()
        async with start(pair(first, second)) as running:
            assert running.instances == {"first": first, "second": second}
            with pytest.raises(TypeError):
                running.instances["first"] = second  # type: ignore[index]

    virtually(main())


def test_a_factory_may_keep_the_running_handle_for_later() -> None:
    class Gate(Calls):
        def __init__(self, running: Any) -> None:
            super().__init__()
            self.running = running

        async def started(self, ctx: Any) -> None:
            await self.running.send(Note(9))

    @orchestra(signal=Bell, event=Knock)
    class App:
        gate: Gate = subsystem(consumes=Job)
        sink: Calls = subsystem(consumes=Note)

    async def main() -> None:
        sink = Calls()
        async with start(App(gate=deferred(Gate), sink=sink)) as running:
            assert running.instances["gate"].running is running
            await until(lambda: sink.got)

    virtually(main())


@pytest.mark.parametrize(
    "verb",
    [
        lambda running: running.try_send(Job()),
        lambda running: running.meters(),
        lambda running: running.instances,
        lambda running: running.outgoing,
        lambda running: running.stop().send(None),
        lambda running: running.send(Job()).send(None),
        lambda running: running.broadcast(Bell()).send(None),
        lambda running: running.drain().send(None),
        lambda running: running.wait().send(None),
    ],
)
def test_a_factory_that_uses_the_handle_at_once_is_told(verb: Any) -> None:
    def make(running: Any) -> Any:
        assert repr(running) == "<running App: open>"
        verb(running)

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Counts = subsystem(consumes=Job)

    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"App does not run yet: .* may keep the handle") as refused:
            async with start(App(worker=deferred(make))):
                pass
        assert refused.value.__notes__ == [
            "raised while test_a_factory_that_uses_the_handle_at_once_is_told.<locals>.App.worker was made"
        ]

    virtually(main())


def test_a_factory_that_raises_at_the_start_leaves_nothing_running() -> None:
    ran: list[Any] = []

    class Noisy(Calls):
        def started(self, ctx: Any) -> None:
            ran.append(self)

    def broken() -> Any:
        raise ConnectionError("no database")

    @orchestra(signal=Bell, event=Knock)
    class App:
        first: Noisy = subsystem(consumes=Job)
        second: Noisy = subsystem(consumes=Note)

    async def main() -> None:
        app = App(first=Noisy(), second=deferred(broken))
        for _ in range(2):
            with pytest.raises(ConnectionError, match="no database"):
                async with start(app):
                    pass
        await turns()
        assert ran == []
        assert len(asyncio.all_tasks()) == 1

    virtually(main())


@pytest.mark.parametrize("given", [7, None, Counts, Collects()])
def test_a_factory_that_gives_no_such_subsystem_is_refused_at_the_start(given: Any) -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Counts = subsystem(consumes=Job)

    async def main() -> None:
        with pytest.raises(TypeError, match=r"App\.worker holds"):
            async with start(App(worker=deferred(lambda: given))):
                pass

    virtually(main())


def test_an_asynchronous_factory_is_refused() -> None:
    async def make() -> Any: ...

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Counts = subsystem(consumes=Job)

    async def main() -> None:
        with pytest.raises(TypeError, match=r"App\.worker is deferred to a coroutine"):
            async with start(App(worker=deferred(make))):
                pass

    virtually(main())


def test_a_factory_that_fails_at_a_restart_is_tried_again_within_the_limit() -> None:
    made: list[Counts] = []
    attempts = iter([True, False, False, True])

    def make() -> Counts:
        if not next(attempts):
            raise ConnectionError("not yet")
        made.append(Counts(len(made)))
        return made[-1]

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Counts = subsystem(consumes=Job, restart=AGAIN)

    async def main() -> None:
        letters: list[DeadLetter] = []
        async with start(App(worker=deferred(make)), dead_letters=letters.append) as running:
            for n in (-1, 1):
                await running.send(Job(n))
            await running.drain()
        assert made[1].got == [1]
        assert told(letters) == [(Job(-1), "worker", "failed")]

    virtually(main())


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (lambda: AsyncCounts(1), "gave a AsyncCounts for a restart, but a Counts at the start"),
        (lambda: 7, "gave a int for a restart"),
    ],
)
def test_a_factory_that_gives_another_class_later_is_a_failure(second: Any, says: str) -> None:
    makers = iter([lambda: Counts(0), second])

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Counts = subsystem(consumes=Job, restart=Restart(limit=1, backoff=0.1))

    async def main() -> None:
        with pytest.raises(OrchestraError, match=says):
            async with start(
                App(worker=deferred(lambda: next(makers)())), dead_letters=lambda _: None
            ) as running:
                await running.send(Job(-1))
                await running.wait()

    virtually(main())


def test_the_wiring_is_made_for_the_class_that_the_factory_gives() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Counts = subsystem(consumes=Job)

    class More(Counts):
        async def started(self, ctx: Any) -> None:
            self.got.append(99)

    async def main() -> None:
        async with start(App(worker=deferred(lambda: More(0)))) as running:
            await running.send(Job(1))
            await until(lambda: running.instances["worker"].got == [99, 1])

    virtually(main())


# a failure from elsewhere


def part_of(running: Any, name: str) -> Any:
    return running._ensemble.parts[name]


class Swallows(Awaits):
    """Its handler goes on after a cancellation."""

    async def handle(self, ctx: Any, message: Any) -> None:
        try:
            await super().handle(ctx, message)
        except asyncio.CancelledError:
            self.got.append("swallowed")


async def forever(ctx: Any, message: Any = None) -> None:
    await asyncio.sleep(1e6)


async def swallow(ctx: Any) -> None:
    while True:
        try:
            async for _ in ctx:
                pass
        except asyncio.CancelledError:
            continue
        return


class StartsSlowly(Calls):
    async def started(self, ctx: Any) -> None:
        await asyncio.sleep(1)
        self.hooks.append("started")


class StartsStubbornly(Calls):
    async def started(self, ctx: Any) -> None:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            self.hooks.append("started")


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    ("worker", "jobs", "buried"),
    [
        (lambda: Calls(), 0, 0),
        (lambda: Awaits(), 0, 0),
        (lambda: Awaits(forever), 2, 1),
        (lambda: Swallows(forever), 2, 0),
        (lambda: Runs(forever), 2, 0),
        (lambda: Runs(lambda ctx: ctx.recv()), 0, 0),
        (lambda: Runs(swallow), 0, 0),
        (lambda: StartsSlowly(), 2, 0),
        (lambda: StartsStubbornly(), 2, 0),
    ],
)
def test_a_failure_from_elsewhere_ends_the_life_whatever_it_is_at(
    worker: Any, jobs: int, buried: int, again: bool
) -> None:
    async def main() -> None:
        cause, letters, made = ValueError("from elsewhere"), [], worker()
        options = {"restart": AGAIN} if again else {}
        async with start(alone(made, **options), dead_letters=letters.append) as running:
            for n in range(jobs):
                await running.send(Job(n))
            await turns()
            part = part_of(running, "worker")
            first = part.inbox.strand.task
            part.fail(cause)
            part.fail(KeyError("too late"))
            if again:
                await asyncio.wait([first], timeout=0.05)
                assert first.done()
                assert not part.done
                await asyncio.sleep(0.2)
                assert running.meters()["worker"].restarts == 1
                assert part.inbox.strand.task is not first
            else:
                with pytest.raises(OrchestraError, match="from elsewhere") as failed:
                    await running.wait()
                assert failed.value.__cause__ is cause
            assert cause.__notes__ == ["and 'worker' failed too: KeyError: 'too late'"]
            failed_letters = [letter for letter in letters if letter.reason == "failed"]
            assert [letter.message for letter in failed_letters] == [Job(n) for n in range(buried)]
            assert all(letter.error is cause for letter in failed_letters)
            await running.stop(0)

    virtually(main())


def test_a_failure_from_elsewhere_during_stopped_cancels_it() -> None:
    class Lingers(Calls):
        async def stopped(self, ctx: Any) -> None:
            self.hooks.append("stopping")
            await asyncio.sleep(1e6)

    async def main() -> None:
        worker = Lingers()
        async with start(alone(worker, restart=AGAIN)) as running:
            draining = asyncio.ensure_future(running.drain())
            await until(lambda: "stopping" in worker.hooks)
            part_of(running, "worker").fail(ValueError("meanwhile"))
            with pytest.raises(OrchestraError, match="meanwhile"):
                await draining
        assert worker.hooks == ["started", "stopping"]

    virtually(main())


def test_a_failure_from_elsewhere_between_two_lives_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        worker = Fragile(0)
        async with start(alone(worker, restart=Restart(backoff=5)), dead_letters=lambda _: None) as running:
            await running.send(Job(0))
            await asyncio.sleep(1)
            part_of(running, "worker").fail(ValueError("a ghost"))
            await running.send(Job(1))
            await running.drain()
            part_of(running, "worker").fail(ValueError("another ghost"))
        assert worker.got == [1]

    with caplog.at_level(logging.ERROR, "orchestra"):
        virtually(main())
    assert [record.getMessage() for record in caplog.records] == [
        "'worker' failed too: ValueError: a ghost",
        "'worker' failed too: ValueError: another ghost",
    ]


def test_a_failure_from_elsewhere_leaves_the_waiting_batch_for_the_next_life() -> None:
    async def main() -> None:
        worker = Calls()
        async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
            await turns()
            for n in range(3):
                running.try_send(Job(n))
            part_of(running, "worker").fail(ValueError())
            await turns()
            assert worker.got == []
            await running.drain()
        assert worker.got == [Job(n) for n in range(3)]

    virtually(main())


def test_a_time_limit_within_stopped_works_after_a_failure_from_elsewhere() -> None:
    class Patient(Awaits):
        async def stopped(self, ctx: Any) -> None:
            try:
                async with asyncio.timeout(1):
                    await asyncio.sleep(60)
            except TimeoutError:
                self.hooks.append("timed out")
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self.fail())
            except* LookupError:
                self.hooks.append("group")

        async def fail(self) -> None:
            raise LookupError

    async def main() -> None:
        worker = Patient(forever)
        async with start(alone(worker, restart=AGAIN), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await turns()
            part_of(running, "worker").fail(ValueError())
            await asyncio.sleep(5)
            assert worker.hooks == ["started", "timed out", "group", "started"]

    virtually(main())


# context variables

COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("COLOUR", default="none")


class Paints(Calls):
    """Notes the colour that it finds, and leaves its own."""

    def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(COLOUR.get())
        COLOUR.set(f"{message.n}")
        if message.n == 2:
            raise ValueError


class AsyncPaints(Paints):
    async def handle(self, ctx: Any, message: Any) -> None:
        super().handle(ctx, message)


@pytest.mark.parametrize("kind", [Paints, AsyncPaints])
def test_a_context_variable_stays_within_one_life_of_one_subsystem(kind: type[Paints]) -> None:
    async def main() -> None:
        COLOUR.set("outside")
        first, second = kind(), kind()
        app = pair(first, second, restart=AGAIN)
        async with start(app, dead_letters=lambda _: None) as running:
            COLOUR.set("later")
            for n in (1, 2, 3):
                await running.send(Job(n))
                await running.send(Note(n + 10))
            await running.drain()
        assert first.got == ["outside", "1", "outside"]
        assert second.got == ["outside", "11", "12"]
        assert COLOUR.get() == "later"

    virtually(main())


def test_a_waiting_conductor_is_told_when_the_new_life_reads_its_signals() -> None:
    async def main() -> None:
        worker, loop = SignalFragile(0), asyncio.get_running_loop()
        app = alone(worker, signal_capacity=1, restart=Restart(backoff=2))
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job(0))
            await turns()
            await running.broadcast(Bell(1))
            await running.broadcast(Bell(2))
            assert loop.time() == pytest.approx(2)
            await running.drain()

    virtually(main())


def test_a_source_that_fails_starts_again_also_in_a_drain() -> None:
    lives = []

    async def produce(ctx: Any) -> None:
        lives.append(ctx)
        await asyncio.sleep(1)
        if len(lives) < 3:
            raise ConnectionError
        await ctx.send(Note(1))

    @orchestra(signal=Bell, event=Knock)
    class App:
        source: Runs = subsystem(consumes=Never, sends=[Note], restart=AGAIN)
        sink: Calls = subsystem(consumes=Note)

    async def main() -> None:
        sink = Calls()
        async with start(App(source=Runs(produce), sink=sink)) as running:
            await running.drain()
        assert sink.got == [Note(1)]

    virtually(main())
    assert len(lives) == 3


def test_a_limit_of_one_restart_is_told_as_once() -> None:
    async def main() -> None:
        with pytest.raises(OrchestraError) as failed:
            async with start(
                alone(Fragile(0), restart=Restart(limit=1, within=math.inf, backoff=0)),
                dead_letters=lambda _: None,
            ) as running:
                for _ in range(2):
                    await running.send(Job(0))
                await running.wait()
        assert failed.value.__notes__ == ["'worker' was started again once before that"]

    within(10, main())
