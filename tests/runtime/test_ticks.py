"""Ticks: their times, and what becomes of those that are missed."""

import asyncio
import contextvars
import inspect
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestra import (
    Block,
    BlockFirst,
    Drop,
    DropOldest,
    Fail,
    Missed,
    OrchestraError,
    Priority,
    UndeclaredMessage,
    orchestra,
    start,
    subsystem,
)
from orchestra.overflow import Overflow
from orchestra.runtime.scheduler import SLICE
from orchestra.runtime.ticking import last_due, time_of
from tests.effort import examples
from tests.runtime.clockwork import Clockwork, run
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
    within,
)

POLICIES = list(Missed)


def now() -> float:
    return round(asyncio.get_running_loop().time(), 6)


def stall(seconds: float) -> None:
    """Hold the loop up, as a handler does that never awaits."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Clockwork)
    loop.now += seconds


class Ticked(Calls):
    """Notes when it handles what; `begin` is called in `started`."""

    def __init__(self, begin: Callable[[Any], Any], do: Callable[[Any, Any], Any] | None = None) -> None:
        super().__init__(do)
        self.begin = begin
        self.times: list[float] = []
        self.timer: Any = None

    def started(self, ctx: Any) -> None:
        self.ctx = ctx
        self.timer = self.begin(ctx)

    def handle(self, ctx: Any, message: Any) -> None:
        self.times.append(now())
        super().handle(ctx, message)


class AsyncTicked(Awaits):
    """As `Ticked`, with a handler that takes its time."""

    def __init__(self, begin: Callable[[Any], Any], do: Callable[[Any, Any], Awaitable[Any]]) -> None:
        super().__init__(do)
        self.begin = begin
        self.times: list[float] = []
        self.timer: Any = None

    def started(self, ctx: Any) -> None:
        self.ctx = ctx
        self.timer = self.begin(ctx)

    async def handle(self, ctx: Any, message: Any) -> None:
        self.times.append(now())
        await super().handle(ctx, message)


class Holds(Gated):
    """Handles nothing before its gate is open."""

    def __init__(self, begin: Callable[[Any], Any]) -> None:
        super().__init__()
        self.begin = begin
        self.timer: Any = None

    def started(self, ctx: Any) -> None:
        self.ctx = ctx
        self.timer = self.begin(ctx)


def every(interval: float, missed: Missed = Missed.SKIP, factory: Callable[[], Any] = Job) -> Any:
    return lambda ctx: ctx.send_every(interval, factory, missed=missed)


# times


@pytest.mark.parametrize("missed", POLICIES)
def test_the_first_comes_after_one_interval_and_the_others_at_the_multiples(missed: Missed) -> None:
    async def main() -> None:
        await asyncio.sleep(0.25)
        worker = Ticked(every(2, missed))
        async with start(alone(worker)):
            await asyncio.sleep(9)
            assert worker.times == [2.25, 4.25, 6.25, 8.25]
            assert (worker.timer.active, worker.timer.when, worker.timer.missed) == (True, 10.25, 0)

    run(main())


@pytest.mark.parametrize("interval", [0.1, 1 / 3, 0.001, 7.77])
def test_a_thousand_ticks_do_not_drift(interval: float) -> None:
    """T05: each is late, by up to half an interval, and the last is no later than the first."""

    async def main() -> None:
        worker = Ticked(every(interval), lambda ctx, message: stall(interval * (len(worker.got) % 6) / 10))
        async with start(alone(worker)):
            await asyncio.sleep(interval * 1000.5)
            assert len(worker.got) == 1000
            for n, at in enumerate(worker.times):
                assert 0 <= at - (n + 1) * interval + 1e-6 < interval
            assert worker.timer.missed == 0

    run(main())


@given(
    start=st.floats(0, 1e9),
    interval=st.floats(1e-6, 1e6),
    number=st.integers(1, 10**6),
    off=st.sampled_from([-1, 0, 1]),
)
def test_the_last_that_is_due_is_found_exactly(start: float, interval: float, number: int, off: int) -> None:
    now = time_of(start, interval, number)
    now = {-1: math.nextafter(now, 0), 0: now, 1: math.nextafter(now, math.inf)}[off]
    found = last_due(start, interval, now)
    assert time_of(start, interval, found) <= now < time_of(start, interval, found + 1)


def test_cancelled_no_tick_comes_any_more_and_a_queued_one_stays() -> None:
    async def main() -> None:
        worker = Ticked(every(1))
        async with start(alone(worker)):
            await asyncio.sleep(2.5)
            assert worker.timer.cancel() is True
            assert worker.timer.cancel() is False
            assert (worker.timer.active, worker.timer.when) == (False, None)
            await asyncio.sleep(5)
            assert worker.times == [1, 2]

    async def queued() -> None:
        worker = Holds(every(1))
        async with start(alone(worker)) as running:
            await running.send(Job(5))
            await asyncio.sleep(1.5)
            worker.timer.cancel()
            worker.gate.set()
            await asyncio.sleep(5)
            assert worker.got == [Job(5), Job(0)]

    run(main())
    run(queued())


def test_a_handler_may_cancel_its_own_ticks() -> None:
    async def main() -> None:
        worker = Ticked(
            every(1), lambda ctx, message: worker.timer.cancel() if len(worker.got) == 2 else None
        )
        async with start(alone(worker)):
            await asyncio.sleep(9)
            assert worker.times == [1, 2, 3]

    run(main())


def test_several_timers_are_first_in_first_out_at_equal_times() -> None:
    """T07."""

    async def main() -> None:
        def begin(ctx: Any) -> None:
            for n in range(50):
                ctx.send_every(1, lambda n=n: Job(n))  # type: ignore[misc]

        worker = Ticked(begin)
        async with start(alone(worker)):
            await asyncio.sleep(3.5)
            assert worker.got == [Job(n) for n in range(50)] * 3

    run(main())


def test_the_factory_is_called_for_each_tick_in_the_context_of_the_subsystem() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    asked: list[tuple[str, float]] = []

    def make() -> Job:
        asked.append((who.get(), now()))
        return Job(len(asked))

    def begin(ctx: Any) -> Any:
        who.set(ctx.name)
        return ctx.send_every(1, make)

    async def main() -> None:
        worker = Ticked(begin)
        async with start(alone(worker)):
            await asyncio.sleep(3)
            await turns()
            assert worker.got == [Job(1), Job(2), Job(3)]
            assert asked == [("worker", 1), ("worker", 2), ("worker", 3)]

    run(main())


@pytest.mark.parametrize(
    ("interval", "factory", "missed", "kind", "text"),
    [
        (0, Job, Missed.SKIP, ValueError, "the interval is 0 s; it is at least 1e-06"),
        (-2, Job, Missed.SKIP, ValueError, "the interval is -2 s; it is at least 1e-06"),
        (5e-324, Job, Missed.SKIP, ValueError, "the interval is 4.94066e-324 s; it is at least 1e-06"),
        (math.nan, Job, Missed.SKIP, ValueError, "the interval is nan s; it is a finite number of seconds"),
        (math.inf, Job, Missed.SKIP, ValueError, "the interval is inf s; it is a finite number of seconds"),
        (False, Job, Missed.SKIP, TypeError, "the interval is False; it is a number of seconds"),
        ("1", Job, Missed.SKIP, TypeError, "the interval is '1'; it is a number of seconds"),
        (
            1,
            Job(3),
            Missed.SKIP,
            TypeError,
            "a tick is made by a function: send_every(1, Tick) or a lambda, and this is one Job",
        ),
        (
            1,
            Job,
            "skip",
            TypeError,
            "missed is 'skip'; it is Missed.SKIP, Missed.COALESCE or Missed.BURST",
        ),
    ],
)
def test_what_is_no_interval_or_no_factory_is_refused(
    interval: Any, factory: Any, missed: Any, kind: type[Exception], text: str
) -> None:
    async def main() -> None:
        worker = Ticked(lambda ctx: None)
        async with start(alone(worker)):
            await turns()
            with pytest.raises(kind) as refused:
                worker.ctx.send_every(interval, factory, missed=missed)
            assert str(refused.value) == text

    run(main())


def test_an_asynchronous_factory_is_refused() -> None:
    async def make() -> Job:
        return Job()

    async def main() -> None:
        worker = Ticked(lambda ctx: None)
        async with start(alone(worker)):
            await turns()
            with pytest.raises(TypeError, match="is asynchronous; a tick is made by a plain function"):
                worker.ctx.send_every(1, make)

    run(main())


# a factory that fails


async def no_job() -> Job:
    return Job()


@pytest.mark.parametrize("kind", ["sync", "async", "busy", "run"])
@pytest.mark.parametrize(
    ("factory", "cause"),
    [
        (lambda: 1 / 0, ZeroDivisionError),
        (Bell, UndeclaredMessage),
        (lambda: None, UndeclaredMessage),
        (lambda: no_job(), UndeclaredMessage),
    ],
)
def test_a_failing_factory_is_a_failure_of_the_subsystem(
    kind: str, factory: Any, cause: type[Exception]
) -> None:
    async def forever(ctx: Any) -> None:
        ctx.send_every(1, factory)
        await asyncio.Event().wait()

    async def main() -> None:
        begin = every(1, Missed.SKIP, factory)
        worker: Any = {
            "sync": lambda: Ticked(begin),
            "async": lambda: AsyncTicked(begin, lambda ctx, message: asyncio.sleep(0)),
            "busy": lambda: AsyncTicked(begin, lambda ctx, message: asyncio.sleep(1000)),
            "run": lambda: Runs(forever),
        }[kind]()
        with pytest.raises(OrchestraError) as failed:
            async with start(alone(worker), dead_letters=lambda letter: None) as running:
                await running.send(Job())
                await running.wait()
        error = failed.value
        assert isinstance(error if isinstance(error, cause) else error.__cause__, cause)
        assert "subsystem 'worker' of Alone" in "".join([str(error), *getattr(error, "__notes__", [])])
        assert now() == 1
        if kind != "run":
            assert (worker.hooks or ["stopped"])[-1] == "stopped"

    run(main())


@pytest.mark.parametrize("blocking", [False, True])
def test_an_error_of_a_factory_tells_where_its_timer_was_set(blocking: bool) -> None:
    class Sets(Calls):
        def started(self, ctx: Any) -> None:
            self.line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
            ctx.send_every(0.01, lambda: 1 / 0)

    async def main() -> None:
        worker = Sets()
        with pytest.raises(OrchestraError) as failed:
            async with start(alone(worker, blocking=blocking)) as running:
                await running.wait()
        told = f"raised for a tick of the timer that was set at {__file__}:{worker.line}"
        assert told in failed.value.__cause__.__notes__  # type: ignore[union-attr]

    within(10, main())


def test_a_factory_may_cancel_its_own_timer() -> None:
    async def main() -> None:
        def make() -> Job:
            worker.timer.cancel()
            return Job()

        worker = Ticked(every(1, Missed.BURST, make))
        async with start(alone(worker)):
            await asyncio.sleep(5)
            assert (worker.got, worker.timer.active) == ([], False)

    run(main())


# missed: the loop was held up


@pytest.mark.parametrize(
    ("missed", "times"),
    [
        (Missed.SKIP, [1, 2, 5.2, 6, 7]),
        (Missed.COALESCE, [1, 2, 5.2, 6, 7]),
        (Missed.BURST, [1, 2, 5.2, 5.2, 5.2, 6, 7]),
    ],
)
def test_after_a_stall(missed: Missed, times: list[float]) -> None:
    """T03: the example in the docstring of `Missed`."""

    async def main() -> None:
        worker = Ticked(every(1, missed))
        async with start(alone(worker)):
            await asyncio.sleep(2.5)
            stall(2.7)
            await asyncio.sleep(2.3)
            assert worker.times == times
            assert worker.timer.missed == 7 - len(times)

    run(main())


@pytest.mark.parametrize("missed", POLICIES)
def test_a_handler_slower_than_its_interval(missed: Missed) -> None:
    """The other example there: when ticks are sent to a handler that takes 2.4 s."""
    sent: list[float] = []

    def make() -> Job:
        sent.append(now())
        return Job()

    async def main() -> None:
        worker = AsyncTicked(every(1, missed, make), lambda ctx, message: asyncio.sleep(2.4))
        async with start(alone(worker), dead_letters=lambda letter: None):
            await asyncio.sleep(9.1)
            assert worker.times == [1, 3.4, 5.8, 8.2]
            expected = {
                Missed.SKIP: [1, 2, 4, 6, 9],
                Missed.COALESCE: [1, 2, 3.4, 5.8, 8.2],
                Missed.BURST: [1, 2, 3, 4, 5, 6, 7, 8, 9],
            }
            assert sent == expected[missed]
            assert worker.timer.missed == 9 - len(sent)

    run(main())


@pytest.mark.parametrize("missed", POLICIES)
def test_a_handler_slower_than_its_interval_leaves_room_for_others(missed: Missed) -> None:
    """T02."""

    async def main() -> None:
        worker = AsyncTicked(every(0.01, missed), lambda ctx, message: asyncio.sleep(0.05))
        async with start(alone(worker, message_capacity=4)) as running:
            for n in range(1, 11):
                await running.send(Job(n))
            await running.drain()
            assert [job for job in worker.got if job.n] == [Job(n) for n in range(1, 11)]
            if missed is not Missed.BURST:
                assert len(worker.got) <= 22

    run(main())


@pytest.mark.parametrize("missed", POLICIES)
def test_a_stop_overtakes_a_flood_of_ticks(missed: Missed) -> None:
    """H02."""

    async def main() -> None:
        def begin(ctx: Any) -> None:
            for _ in range(30):
                ctx.send_every(0.003, Job, missed=missed)

        worker = AsyncTicked(begin, lambda ctx, message: asyncio.sleep(0.1))
        letters: list[Any] = []
        async with start(alone(worker), dead_letters=letters.append) as running:
            await asyncio.sleep(2.05)
            handled = len(worker.got)
            await running.stop()
            assert len(worker.got) == handled + 1
        assert now() == pytest.approx(2.1, abs=0.06)
        assert {letter.reason for letter in letters} == {"stopped"}

    run(main())


def test_ticks_do_not_keep_an_actor_from_ending() -> None:
    async def main() -> None:
        worker = AsyncTicked(every(0.001), lambda ctx, message: asyncio.sleep(0.01))
        async with start(alone(worker)) as running:
            await asyncio.sleep(1.005)
            await running.drain()
        assert now() < 1.1

    run(main())


# missed: no room


async def with_no_room(overflow: Overflow, missed: Missed) -> tuple[list[float], Any, Any]:
    """Ticks of 1 s into a lane of one place that is full until 4.5 s; when they were sent."""
    worker = Gated()
    timers: list[Any] = []
    sent: list[float] = []

    def make() -> Job:
        sent.append(now())
        return Job(len(sent))

    class Sends(Runs):
        pass

    async def sends(ctx: Any) -> None:
        timers.append(ctx.send_every(1, make, missed=missed))
        await asyncio.Event().wait()

    @orchestra(signal=Bell, event=Knock)
    class App:
        sender: Sends = subsystem(sends=[Job])
        worker: Gated = subsystem(consumes=Job, message_capacity=1, overflow=overflow)

    async with start(App(sender=Sends(sends), worker=worker)) as running:
        for n in (-1, -2):
            await running.send(Job(n))
            await turns()
        await asyncio.sleep(4.5)
        worker.gate.set()
        await asyncio.sleep(3)
        meters = running.meters()["worker"]
        got = [job.n for job in worker.got]
        assert got[:2] == [-1, -2]
        assert got[2:] == sorted(got[2:])
        assert timers[0].missed == 7 - len(got[2:])
        return sent, got[2:], meters


@pytest.mark.parametrize("missed", POLICIES)
def test_under_block_one_tick_waits_in_line(missed: Missed) -> None:
    sent, got, meters = run(with_no_room(Block(), missed))
    expected = {
        Missed.SKIP: [1, 5, 6, 7],
        Missed.COALESCE: [1, 4.5, 5, 6, 7],
        Missed.BURST: [1, 4.5, 4.5, 4.5, 5, 6, 7],
    }[missed]
    assert sent == expected
    assert len(got) == len(expected)
    assert meters.waiting == 0
    assert meters.dropped == 0


@pytest.mark.parametrize("overflow", [Drop(5.0), DropOldest(), Fail(), BlockFirst()], ids=str)
@pytest.mark.parametrize("missed", POLICIES)
def test_under_other_policies_it_is_missed_and_counts_nowhere_else(
    missed: Missed, overflow: Overflow
) -> None:
    sent, got, meters = run(with_no_room(overflow, missed))
    late = {Missed.SKIP: 0, Missed.COALESCE: 1, Missed.BURST: 4}[missed]
    assert sent[:1] == [1]  # made before anything is known of its lane, and thrown away
    assert sent[1:] == [4.5] * late + [5, 6, 7]
    assert len(got) == late + 3
    assert meters.dropped == 0
    assert meters.waiting == 0


def test_after_one_has_waited_the_others_fill_what_room_there_is() -> None:
    async def main() -> None:
        count = iter(range(100))
        asked = asyncio.Event()
        got: list[int] = []

        async def take(ctx: Any) -> None:
            ctx.send_every(1, lambda: Job(next(count)), missed=Missed.BURST)
            await asked.wait()
            got.extend(ctx.try_recv().n for _ in range(3))
            await asyncio.Event().wait()

        async with start(alone(Runs(take), message_capacity=3), dead_letters=lambda letter: None) as running:
            await asyncio.sleep(8.5)
            assert running.meters()["worker"].waiting == 1
            asked.set()
            await turns()
            assert got == [0, 1, 2]
            assert running.meters()["worker"].queued == 3
            assert running.meters()["worker"].waiting == 1
            assert next(count) == 7

    run(main())


def test_a_lane_that_is_always_full_does_not_keep_ticks_out() -> None:
    """T01: waiting senders have every place that frees, so a tick has to stand in line too."""

    async def main() -> None:
        async def slow(ctx: Any, message: Any) -> None:
            await asyncio.sleep(0.1)

        worker = AsyncTicked(every(1, Missed.SKIP, lambda: Job(-1)), slow)
        async with start(alone(worker, message_capacity=2), dead_letters=lambda letter: None) as running:

            async def flood() -> None:
                for n in range(1000):
                    await running.send(Job(n))

            flooding = [asyncio.ensure_future(flood()) for _ in range(3)]
            await asyncio.sleep(20.5)
            assert 18 <= worker.got.count(Job(-1)) <= 20
            for task in flooding:
                task.cancel()

    run(main())


@pytest.mark.parametrize("how", ["cancel", "drain", "stop", "finish"])
def test_a_tick_that_waits_in_line_is_gone_with_its_timer(how: str) -> None:
    async def main() -> None:
        worker, letters = Holds(every(1, Missed.SKIP, lambda: Job(9))), list[Any]()
        async with start(alone(worker, message_capacity=1), dead_letters=letters.append) as running:
            for n in range(2):
                await running.send(Job(n))
                await turns()
            await asyncio.sleep(1.5)
            assert running.meters()["worker"].waiting == 1
            if how == "cancel":
                assert worker.timer.cancel() is True
            elif how == "finish":
                worker.ctx.finish()
            else:
                ending = asyncio.ensure_future(getattr(running, how)())
            await turns()
            assert running.meters()["worker"].waiting == 0
            worker.gate.set()
            await asyncio.sleep(3)
            assert not worker.timer.active
            assert worker.timer.missed >= 1
            if how in ("drain", "stop"):
                await ending
        assert Job(9) not in worker.got
        assert Job(9) not in [letter.message for letter in letters]

    run(main())


def test_a_timer_whose_receiver_has_ended_is_over() -> None:
    async def main() -> None:
        asked: list[float] = []

        def make() -> Note:
            asked.append(now())
            return Note()

        first = Ticked(every(1, Missed.COALESCE, make))

        async def brief(ctx: Any) -> None:
            await ctx.recv()

        letters: list[Any] = []
        async with start(pair(first, Runs(brief)), dead_letters=letters.append):
            await asyncio.sleep(9)
            assert not first.timer.active
            assert asked == [1]
            late = first.ctx.send_every(1, make)
            await asyncio.sleep(9)
            assert not late.active
            assert len(asked) == 2
        assert letters == []

    run(main())


def test_to_several_the_rules_hold_for_each_lane() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        sender: Ticked = subsystem(consumes=Knock, sends=[Job])
        brief: Runs = subsystem(subscribes=[Job])
        slow: Gated = subsystem(subscribes=[Job], message_capacity=2)
        quick: Collects = subsystem(subscribes=[Job])

    async def main() -> None:
        async def brief(ctx: Any) -> None:
            await ctx.recv()

        count = iter(range(1, 100))
        app = App(
            sender=Ticked(every(1, Missed.SKIP, lambda: Job(next(count)))),
            brief=Runs(brief),
            slow=Gated(),
            quick=Collects(),
        )
        async with start(app, dead_letters=lambda letter: None) as running:
            await asyncio.sleep(5.5)
            assert app.quick.got == [Job(n) for n in range(1, 6)]
            meters = running.meters()
            assert meters["slow"].dropped_by == {"missed": 3}
            assert meters["brief"].dropped_by == {"closed": 4}
            app.slow.gate.set()
            await turns()
            assert app.slow.got == [Job(1), Job(2)]
            assert app.sender.timer.missed == 0

    run(main())


def test_ticks_to_a_planned_subsystem_count_as_dropped() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        sender: Ticked = subsystem(consumes=Knock, sends=[Job])
        planned: Collects = subsystem(consumes=Job, wip=True)

    async def main() -> None:
        app = App(sender=Ticked(every(1, Missed.BURST)))
        async with start(app) as running:
            await asyncio.sleep(3.5)
            assert running.meters()["planned"].dropped_by == {"wip": 3}
            assert app.sender.timer.missed == 0

    run(main())


def test_a_lane_of_their_own_lets_ticks_overtake() -> None:
    class Levels(AsyncTicked):
        @staticmethod
        def priority(message: Any) -> Priority:
            return Priority.HIGH if message.n < 0 else Priority.NORMAL

    async def main() -> None:
        async def slow(ctx: Any, message: Any) -> None:
            await asyncio.sleep(0.4)

        worker = Levels(every(1, Missed.SKIP, lambda: Job(-1)), slow)
        capacity = {Priority.HIGH: 1, Priority.NORMAL: 100}
        async with start(
            alone(worker, message_capacity=capacity), dead_letters=lambda letter: None
        ) as running:
            for n in range(50):
                await running.send(Job(n))
            await asyncio.sleep(10)
            ticks = [at for at, job in zip(worker.times, worker.got, strict=False) if job.n < 0]
            assert len(ticks) >= 8
            assert all(at % 1 < 0.41 for at in ticks)

    run(main())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"overflow": Drop(1.0)},
        {"overflow": DropOldest()},
        {"priorities": [Priority.HIGH, Priority.NORMAL], "fairness": 2},
    ],
    ids=str,
)
def test_a_coalesced_tick_follows_the_one_that_was_taken_within_a_batch(options: Any) -> None:
    """A synchronous Actor counts what it takes at the end of a batch; here one message is a batch."""

    def take(ctx: Any, message: Job) -> None:
        time.sleep(2 * SLICE)
        stall(0.3)

    async def main() -> None:
        worker = Ticked(every(1, Missed.COALESCE), take)
        async with start(alone(worker, **options)) as running:
            await turns()
            for n in range(1, 21):
                await running.send(Job(n))
            await asyncio.sleep(9)
            ticks = [at for at, job in zip(worker.times, worker.got, strict=True) if job == Job()]
            assert ticks[0] == pytest.approx(6.0, abs=0.7)
            assert ticks[1] - ticks[0] == pytest.approx(0.3)
            assert worker.timer.missed >= 3

    run(main())


# invariants

STALLS = st.lists(
    st.tuples(st.floats(0.01, 2.0), st.one_of(st.just(0.0), st.floats(0.01, 5.0))), min_size=1, max_size=12
)


@settings(deadline=None, max_examples=examples(60))
@given(
    missed=st.sampled_from(POLICIES),
    interval=st.sampled_from([0.1, 0.25, 1 / 3, 1.0]),
    stalls=STALLS,
    capacity=st.sampled_from([1, 2, 1000]),
    slow=st.sampled_from([0.0, 0.0, 0.07, 0.6]),
)
@example(missed=Missed.BURST, interval=0.1, stalls=[(0.05, 3.0)], capacity=1, slow=0.0)
def test_every_tick_is_sent_or_missed_and_none_is_early(
    missed: Missed, interval: float, stalls: list[tuple[float, float]], capacity: int, slow: float
) -> None:
    made: list[float] = []

    def make() -> Job:
        made.append(asyncio.get_running_loop().time())
        return Job(len(made))

    async def main() -> None:
        async def take(ctx: Any, message: Any) -> None:
            if slow:
                await asyncio.sleep(slow)

        worker = AsyncTicked(every(interval, missed, make), take)
        async with start(
            alone(worker, message_capacity=capacity), dead_letters=lambda letter: None
        ) as running:
            await turns()
            for pause, held_up in stalls:
                await asyncio.sleep(pause)
                stall(held_up)
            await asyncio.sleep(interval / 2)
            await turns(50)
            end = asyncio.get_running_loop().time()
            due = round(worker.timer.when / interval) - 1
            assert math.floor(end / interval - 1e-9) <= due <= math.floor(end / interval + 1e-9)
            sent = running.meters()["worker"].sent
            assert sent + worker.timer.missed == due
            for n, at in enumerate(made):
                assert at >= (n + 1) * interval - 1e-9, "the n-th tick is never made before the n-th is due"
            assert [job.n for job in worker.begun] == list(range(1, len(worker.begun) + 1))
            if missed is Missed.BURST and not slow:
                assert worker.timer.missed == 0
            if missed is not Missed.BURST:
                assert sent - len(worker.begun) <= 1, "only one is queued"

    run(main())
