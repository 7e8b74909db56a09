"""Deadlines of Actors."""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

import pytest

from orchestra import Actor, Closed, Missed, OrchestraError, Priority, orchestra, start, subsystem
from orchestra.runtime.ensemble import Ensemble
from orchestra.runtime.inbox import Order
from orchestra.runtime.scheduler import SLICE
from orchestra.timer import Deadline
from tests.runtime.clockwork import clockwork, run
from tests.runtime.players import Bell, Calls, Collects, Job, Knock, Runs, alone, turns, within


def now() -> float:
    return round(asyncio.get_running_loop().time(), 6)


class Timed(Actor):
    """Notes what happens, in order; `begin` is called in `started`, `do` for each message."""

    def __init__(
        self,
        begin: Callable[[Any], Any] = lambda ctx: None,
        do: Callable[[Any, Any], Any] = lambda ctx, message: None,
        passed: Callable[[Any, float], Any] = lambda ctx, deadline: None,
    ) -> None:
        self.begin = begin
        self.do = do
        self.passed = passed
        self.seen: list[Any] = []

    def started(self, ctx: Any) -> None:
        self.ctx = ctx
        self.begin(ctx)

    def handle(self, ctx: Any, message: Any) -> None:
        self.seen.append(message)
        self.do(ctx, message)

    def on_signal(self, ctx: Any, signal: Any) -> None:
        self.seen.append(signal)

    def deadline_passed(self, ctx: Any, deadline: float) -> None:
        self.seen.append((deadline, now()))
        self.passed(ctx, deadline)


class AsyncTimed(Timed):
    """The same, where everything is awaited."""

    async def handle(self, ctx: Any, message: Any) -> None:
        self.seen.append(message)
        if (result := self.do(ctx, message)) is not None:
            await result

    async def deadline_passed(self, ctx: Any, deadline: float) -> None:
        self.seen.append((deadline, now()))
        await asyncio.sleep(0)
        self.passed(ctx, deadline)


KINDS = [Timed, AsyncTimed]


@pytest.mark.parametrize("kind", KINDS)
def test_the_hook_is_called_once_when_the_deadline_has_passed(kind: type[Timed]) -> None:
    async def main() -> None:
        await asyncio.sleep(10)
        timed = kind(lambda ctx: ctx.set_timeout(2.5))
        async with start(alone(timed)):
            await asyncio.sleep(9)
            assert timed.seen == [(12.5, 12.5)]
            timed.ctx.set_deadline(30)
            await asyncio.sleep(20)
            assert timed.seen == [(12.5, 12.5), (30, 30)]

    run(main())


def test_the_last_call_counts() -> None:
    async def main() -> None:
        timed = Timed()
        async with start(alone(timed)):
            await turns()
            timed.ctx.set_timeout(1)
            timed.ctx.set_deadline(5)
            timed.ctx.set_timeout(3)
            await asyncio.sleep(9)
            timed.ctx.set_timeout(1)
            timed.ctx.set_timeout(None)
            timed.ctx.set_deadline(10.5)
            timed.ctx.set_deadline(None)
            timed.ctx.set_deadline(None)
            await asyncio.sleep(9)
            assert timed.seen == [(3, 3)]

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_the_hook_may_set_the_next_one(kind: type[Timed]) -> None:
    async def main() -> None:
        timed = kind(
            lambda ctx: ctx.set_timeout(1), passed=lambda ctx, deadline: ctx.set_deadline(deadline + 2)
        )
        async with start(alone(timed)):
            await asyncio.sleep(8)
            assert timed.seen == [(1, 1), (3, 3), (5, 5), (7, 7)]

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_it_comes_before_signals_and_messages_that_wait(kind: type[Timed]) -> None:
    async def main() -> None:
        gate = asyncio.Event()
        timed = AsyncTimed(do=lambda ctx, message: gate.wait())
        async with start(alone(timed)) as running:
            await running.send(Job(1))
            await running.send(Job(2))
            await turns()
            await running.broadcast(Bell(3))
            timed.ctx.set_timeout(1)
            await asyncio.sleep(2)
            gate.set()
            await turns()
            assert timed.seen == [Job(1), (1, 2), Bell(3), Job(2)]

    run(main())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("delay", [0, -5, -1e6])
def test_one_that_has_passed_already_is_told_before_the_next_message(kind: type[Timed], delay: float) -> None:
    async def main() -> None:
        def do(ctx: Any, message: Job) -> None:
            if message.n == 1:
                ctx.set_timeout(delay)

        timed = kind(do=do)
        async with start(alone(timed)) as running:
            await turns()
            for n in range(4):
                assert running.try_send(Job(n))
            await turns()
            assert timed.seen == [Job(0), Job(1), (delay, 0), Job(2), Job(3)]

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_busy_actor_gets_it_between_two_messages(kind: type[Timed]) -> None:
    """T01."""

    def do(ctx: Any, message: Job) -> None:
        time.sleep(2 * SLICE)
        ctx.try_send(Job(message.n + 1))

    class Busy(kind):  # type: ignore[valid-type,misc]
        pass

    @orchestra(signal=Bell, event=Knock)
    class App:
        busy: Busy = subsystem(consumes=Job, sends=[Job])

    async def main() -> None:
        app = App(busy=Busy(lambda ctx: ctx.set_timeout(0.1), do))
        async with start(app, dead_letters=lambda letter: None) as running:
            for n in range(3):
                await running.send(Job(n))
            async with asyncio.timeout(10):
                while not any(isinstance(each, tuple) for each in app.busy.seen):
                    await asyncio.sleep(0.01)
            deadline, at = next(each for each in app.busy.seen if isinstance(each, tuple))
            assert deadline - 0.002 <= at < deadline + 1  # the clock of uvloop counts milliseconds
            assert len(app.busy.seen) > 5

    within(15, main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_hook_that_always_sets_one_that_has_passed_holds_nobody_up(kind: type[Timed]) -> None:
    async def main() -> None:
        timed = kind(lambda ctx: ctx.set_timeout(0), passed=lambda ctx, deadline: ctx.set_deadline(deadline))
        async with start(alone(timed)) as running:
            for n in range(5):
                await running.send(Job(n))
            await turns(50)
            assert [each for each in timed.seen if isinstance(each, Job)] == [Job(n) for n in range(5)]
            before = len(timed.seen)
            await turns(20)
            assert before < len(timed.seen) <= before + 50
            await running.stop()

    within(10, main())


def test_a_hook_slower_than_its_deadlines_leaves_room_for_messages() -> None:
    """T02, for deadlines."""

    class Slow(AsyncTimed):
        async def deadline_passed(self, ctx: Any, deadline: float) -> None:
            self.seen.append((deadline, now()))
            await asyncio.sleep(0.05)
            ctx.set_deadline(deadline + 0.01)

    async def main() -> None:
        timed = Slow(lambda ctx: ctx.set_timeout(0.01))
        levels = [Priority.HIGH, Priority.NORMAL]
        async with start(alone(timed, priorities=levels)) as running:
            for n in range(10):
                await running.send(Job(n))
            await asyncio.sleep(0.1)
            for n in range(10, 20):
                await running.send(Job(n), priority=levels[n % 2])
            await asyncio.sleep(2)
            jobs = [place for place, each in enumerate(timed.seen) if isinstance(each, Job)]
            assert len(jobs) == 20
            deadlines = [each[0] for each in timed.seen if isinstance(each, tuple)]
            assert len(deadlines) == len(set(deadlines)) > 30

    run(main())


def test_one_that_had_to_wait_for_a_message_is_told_once() -> None:
    """Each lane with messages would tell that one was taken."""

    class Twice(AsyncTimed):
        async def deadline_passed(self, ctx: Any, deadline: float) -> None:
            self.seen.append(deadline)
            await asyncio.sleep(1)
            if deadline == 0:
                ctx.set_deadline(0.5)

    async def main() -> None:
        timed = Twice(lambda ctx: ctx.set_timeout(0), lambda ctx, message: asyncio.sleep(0.1))
        levels = [Priority.HIGH, Priority.NORMAL]
        async with start(alone(timed, priorities=levels)) as running:
            for n in range(6):
                await running.send(Job(n), priority=levels[n % 2])
            await asyncio.sleep(9)
            assert timed.seen == [0, Job(0), 0.5, Job(2), Job(4), Job(1), Job(3), Job(5)]

    run(main())


@pytest.mark.parametrize("change", [lambda ctx: ctx.set_deadline(None), lambda ctx: ctx.set_timeout(50)])
def test_moved_after_it_has_passed_it_is_not_told(change: Callable[[Any], None]) -> None:
    async def main() -> None:
        async def do(ctx: Any, message: Any) -> None:
            await asyncio.sleep(3)
            change(ctx)

        timed = AsyncTimed(lambda ctx: ctx.set_timeout(1), do)
        async with start(alone(timed)) as running:
            await running.send(Job(1))
            await running.send(Job(2))
            await asyncio.sleep(20)
            assert timed.seen == [Job(1), Job(2)]

    run(main())


def test_moved_from_elsewhere_while_its_actor_is_idle() -> None:
    async def main() -> None:
        timed = Timed()
        async with start(alone(timed)) as running:
            await turns()
            timed.ctx.set_timeout(0)
            timed.ctx.set_timeout(None)
            await turns()
            assert timed.seen == []
            await running.send(Job(1))
            await turns()
            assert timed.seen == [Job(1)]

    run(main())


def test_after_the_order_to_stop_it_is_not_told() -> None:
    async def main() -> None:
        def do(ctx: Any, message: Any) -> None:
            ctx.stop()
            ctx.set_timeout(0)

        timed = Timed(do=do)
        async with start(alone(timed)) as running:
            await running.send(Job(1))
            await running.wait()
        assert timed.seen == [Job(1)]

    run(main())


def test_it_stands_behind_orders_and_in_front_of_signals() -> None:
    with clockwork() as loop:

        async def main() -> None:
            @orchestra(signal=Bell, event=Knock)
            class App:
                worker: Timed = subsystem(consumes=Job)

            async with start(App(worker=Timed())) as running:
                await turns()
                inbox = running._ensemble.inboxes["worker"]
                inbox.signals.extend([Order.STOP, Bell(1)])
                inbox.pass_deadline(Deadline(1.0))
                assert [type(each) for each in inbox.signals] == [Order, Deadline, Bell]
                assert inbox.unread == 1
                inbox.signals.clear()
                assert inbox.unread == 0

        loop.run_until_complete(main())


def test_it_does_not_count_as_a_signal_that_is_unread() -> None:
    async def main() -> None:
        gate = asyncio.Event()
        timed = AsyncTimed(lambda ctx: ctx.set_timeout(0.5), lambda ctx, message: gate.wait())
        async with start(alone(timed, signal_capacity=1)) as running:
            await running.send(Job(1))
            await asyncio.sleep(1)
            await running.broadcast(Bell(1), timeout=1)
            assert now() == 1
            gate.set()
            await turns()
            assert timed.seen == [Job(1), (0.5, 1), Bell(1)]

    run(main())


@pytest.mark.parametrize("how", ["drain", "stop", "finish"])
def test_an_end_takes_the_deadline_along(how: str) -> None:
    async def main() -> None:
        letters: list[Any] = []

        async def do(ctx: Any, message: Any) -> None:
            if how == "finish":
                ctx.finish()
            await asyncio.sleep(5)
            ctx.set_timeout(0)
            await asyncio.sleep(5)

        timed = AsyncTimed(lambda ctx: ctx.set_timeout(2), do)
        async with start(alone(timed), dead_letters=letters.append) as running:
            await running.send(Job(1))
            await asyncio.sleep(1)
            if how == "finish":
                await running.wait()
            else:
                await (running.drain() if how == "drain" else running.stop(100))
        assert timed.seen == [Job(1)]
        assert letters == []
        assert now() == 10
        with pytest.raises(Closed, match="'worker' has ended: it sets no timer any more"):
            timed.ctx.set_deadline(1)
        with pytest.raises(Closed):
            timed.ctx.set_timeout(1)

    run(main())


def test_a_deadline_does_not_keep_an_actor_from_ending() -> None:
    async def main() -> None:
        timed = Timed(lambda ctx: ctx.set_timeout(1000))
        async with start(alone(timed)) as running:
            await running.send(Job(1))
            await running.drain()
        assert now() == 0

    run(main())


def test_a_hook_that_raises_is_a_failure_without_a_message() -> None:
    async def main(kind: type[Timed]) -> None:
        letters: list[Any] = []
        timed = kind(lambda ctx: ctx.set_timeout(1), passed=lambda ctx, deadline: 1 / 0)
        with pytest.raises(OrchestraError, match="ZeroDivisionError"):
            async with start(alone(timed), dead_letters=letters.append) as running:
                await running.send(Job(1))
                await asyncio.sleep(2)
        assert letters == []

    for kind in KINDS:
        run(main(kind))


def test_an_actor_may_have_nothing_but_this_hook() -> None:
    passed: list[float] = []

    class Alarm(Actor):
        async def deadline_passed(self, ctx: Any, deadline: float) -> None:
            passed.append(deadline)
            ctx.stop()

        def started(self, ctx: Any) -> None:
            ctx.set_timeout(3)

    class OnlyDeadline(Actor):
        def deadline_passed(self, ctx: Any, deadline: float) -> None: ...

    @orchestra(signal=Bell, event=Knock)
    class App:
        alarm: Alarm = subsystem(sends=[Job])
        only: OnlyDeadline = subsystem(sends=[Job])
        sink: Collects = subsystem(consumes=Job)

    async def main() -> None:
        async with start(App(alarm=Alarm(), only=OnlyDeadline(), sink=Collects())) as running:
            await running.broadcast(Bell())
            await running.wait()
        assert passed == [3]

    run(main())


def test_a_subclass_given_at_the_start_may_bring_the_hook() -> None:
    class Plain(Calls):
        pass

    class Better(Plain):
        def started(self, ctx: Any) -> None:
            ctx.set_timeout(1)

        def deadline_passed(self, ctx: Any, deadline: float) -> None:
            self.hooks.append(deadline)

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Plain = subsystem(consumes=Job)

    async def main() -> None:
        app = App(worker=Better())
        async with start(app):
            await asyncio.sleep(2)
            assert app.worker.hooks == [1]

    run(main())


@pytest.mark.parametrize("verb", ["set_deadline", "set_timeout"])
@pytest.mark.parametrize("given", [1.0, None])
def test_without_the_hook_there_is_no_deadline(verb: str, given: float | None) -> None:
    async def main() -> None:
        contexts: list[Any] = []

        class Plain(Calls):
            def started(self, ctx: Any) -> None:
                contexts.append(ctx)

        async def live(ctx: Any) -> None:
            contexts.append(ctx)
            await ctx.recv_signal()

        @orchestra(signal=Bell, event=Knock)
        class App:
            plain: Plain = subsystem(consumes=Job)
            runs: Runs = subsystem(sends=[Job])

        async with start(App(plain=Plain(), runs=Runs(live))) as running:
            await turns()
            with pytest.raises(TypeError) as actor:
                getattr(contexts[0], verb)(given)
            assert str(actor.value) == (
                f"Plain has no hook for ctx.{verb}(...): give it deadline_passed(self, ctx, deadline)"
            ).replace("Plain", Plain.__qualname__)
            with pytest.raises(TypeError) as subsystem_:
                getattr(contexts[1], verb)(given)
            assert str(subsystem_.value) == (
                "Runs has a run of its own: there `async with asyncio.timeout(...)` is the way, "
                f"not ctx.{verb}(...)"
            )
            await running.broadcast(Bell())

    run(main())


@pytest.mark.parametrize(
    ("given", "kind"),
    [(math.nan, ValueError), (math.inf, ValueError), (True, TypeError), ("1", TypeError), (1j, TypeError)],
)
def test_what_is_no_time_is_refused_and_the_old_deadline_stays(given: Any, kind: type[Exception]) -> None:
    async def main() -> None:
        timed = Timed(lambda ctx: ctx.set_timeout(1))
        async with start(alone(timed)):
            await turns()
            for verb, what in (("set_deadline", "deadline"), ("set_timeout", "timeout")):
                with pytest.raises(kind, match=f"the {what} is "):
                    getattr(timed.ctx, verb)(given)
            await asyncio.sleep(2)
            assert timed.seen == [(1, 1)]

    run(main())


# a clock that the test advances


class ByHand:
    """A clock that goes forward when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[list[Any]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, function: Callable[[], object], /) -> "Call":
        call = [self.now + delay, function]
        self.calls.append(call)
        return Call(self, call)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for call in [call for call in self.calls if call[0] <= self.now]:
            self.calls.remove(call)
            call[1]()


class Call:
    def __init__(self, clock: ByHand, call: list[Any]) -> None:
        self.clock = clock
        self.call = call

    def cancel(self) -> None:
        if self.call in self.clock.calls:
            self.clock.calls.remove(self.call)


def test_everything_goes_by_the_clock_that_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ByHand()
    made = Ensemble.__init__

    def with_clock(self: Any, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, clock=clock, **options)

    monkeypatch.setattr(Ensemble, "__init__", with_clock)

    async def main() -> None:
        timed = Timed()
        async with start(alone(timed)) as running:
            await turns()
            assert running._ensemble.clock is clock
            ctx = timed.ctx
            ctx.send_after(5, Job(5))
            ctx.send_after(0, Job(0))
            ctx.set_deadline(103)
            ticking = ctx.send_every(2, lambda: Job(2), missed=Missed.BURST)
            await turns()
            assert timed.seen == [Job(0)]
            for _ in range(5):
                clock.advance(1)
                await turns()
            assert [each[0] if isinstance(each, tuple) else each for each in timed.seen] == [
                Job(0),
                Job(2),
                103,
                Job(2),
                Job(5),
            ]
            assert ticking.when == 106
            clock.advance(4.5)
            await turns()
            assert timed.seen[5:] == [Job(2), Job(2)]
            ctx.set_timeout(0)
            await turns()
            assert timed.seen[-1][0] == 109.5
        assert clock.calls == []

    run(main())
