"""`Timed`: figures by class of message, what is logged, and that a plain handler stays plain."""

import asyncio
import logging
import time
from typing import Any

import pytest

from orchestra import Actor, Wrapper, handles, orchestra, start, subsystem
from orchestra.fitting import wiring_for
from orchestra.wrappers import Timed, Timing, timed
from tests.runtime.clockwork import run
from tests.runtime.players import Awaits, Bell, Calls, Job, Knock, Note, alone, until


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> "Clock":
    clock = Clock()
    monkeypatch.setattr(timed, "perf_counter", clock)
    return clock


class Clock:
    """Time passes only when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def passes(self, ctx: Any, message: Any) -> None:
        self.now += message.n

    async def passes_waiting(self, ctx: Any, message: Any) -> None:
        await asyncio.sleep(0)
        self.now += message.n


async def lived(worker: Any, *messages: Any) -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Actor[Any, Any] = subsystem(consumes=Job | Note)

    async with start(App(worker=worker)) as running:
        for message in messages:
            await running.send(message)
        await running.drain()


@pytest.mark.parametrize("kind", [Calls, Awaits])
def test_it_counts_adds_up_and_keeps_the_longest_by_class(kind: Any, clock: Clock) -> None:
    worker = Timed(kind(clock.passes if kind is Calls else clock.passes_waiting))
    run(lived(worker, Job(1), Job(3), Note(5), Job(2)))
    assert worker.meters() == {
        "Job": Timing(count=3, total=6.0, longest=3.0, failures=0),
        "Note": Timing(count=1, total=5.0, longest=5.0, failures=0),
    }
    assert worker.meters()["Job"].mean == 2.0
    assert worker.inner.got == [Job(1), Job(3), Note(5), Job(2)]


def test_the_mean_of_nothing_is_zero() -> None:
    assert Timing().mean == 0.0


def test_the_time_of_an_asynchronous_handler_includes_its_waiting() -> None:
    worker = Timed(Awaits(lambda ctx, message: asyncio.sleep(0.05)))
    asyncio.run(lived(worker, Job()))
    assert 0.04 < worker.meters()["Job"].total < 5


def test_waiting_in_the_lane_is_not_included(clock: Clock) -> None:
    worker = Timed(Calls(clock.passes))
    run(lived(worker, *(Job(1) for _ in range(10))))
    assert worker.meters()["Job"].longest == 1.0


@pytest.mark.parametrize("kind", [Calls, Awaits])
def test_a_failing_handler_is_counted_and_fails_as_without_it(kind: Any, clock: Clock) -> None:
    def fail(ctx: Any, message: Any) -> None:
        clock.passes(ctx, message)
        raise ValueError("no")

    async def fail_waiting(ctx: Any, message: Any) -> None:
        fail(ctx, message)

    worker = Timed(kind(fail if kind is Calls else fail_waiting))
    with pytest.raises(Exception, match="failed: ValueError: no"):
        run(lived(worker, Job(2)))
    assert worker.meters()["Job"] == Timing(count=1, total=2.0, longest=2.0, failures=1)


def test_a_cancelled_handler_is_counted_as_failed() -> None:
    worker = Timed(Awaits(lambda ctx, message: asyncio.Event().wait()))

    async def main() -> None:
        async with start(alone(worker), dead_letters=lambda letter: None) as running:
            await running.send(Job())
            await until(lambda: worker.inner.begun)
            await running.stop(timeout=0.1)

    run(main())
    assert worker.meters()["Job"].failures == 1


def test_the_figures_are_a_snapshot_that_cannot_be_changed(clock: Clock) -> None:
    worker = Timed(Calls(clock.passes))
    run(lived(worker, Job(1)))
    before = worker.meters()
    run(lived(worker, Job(1)))
    assert (before["Job"].count, worker.meters()["Job"].count) == (1, 2)
    with pytest.raises(TypeError):
        before["Job"] = Timing()  # type: ignore[index]  # what the test is about
    with pytest.raises(AttributeError):
        before["Job"].count = 3  # type: ignore[misc]  # what the test is about


def test_there_is_one_series_for_each_class_however_many_messages() -> None:
    worker = Timed(Calls())
    run(lived(worker, *(Job(n) for n in range(500)), *(Note(n) for n in range(500))))
    assert set(worker.meters()) == {"Job", "Note"}


def test_classes_of_one_name_are_told_apart() -> None:
    class Other: ...

    first, second = Other, type("Other", (), {"__module__": "elsewhere"})
    worker = Timed(Calls())

    class Ctx:
        name = "worker"

    for message in (first(), second(), second()):
        worker.handle(Ctx(), message)
    assert {name: each.count for name, each in worker.meters().items()} == {
        f"{__name__}.Other": 1,
        "elsewhere.Other": 2,
    }


def test_messages_are_logged_at_debug(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "orchestra")
    run(lived(Timed(Calls(clock.passes)), Job(1)))
    assert caplog.record_tuples == [("orchestra", logging.DEBUG, "worker: a Job took 1.000000 s")]


def test_what_takes_longer_than_the_limit_is_warned_of(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    run(lived(Timed(Awaits(clock.passes_waiting), warn_over=1.5), Job(1), Job(2)))
    assert caplog.record_tuples == [
        ("orchestra", logging.WARNING, "worker: a Job took 2.000000 s, over the limit of 1.5 s")
    ]


def test_of_many_lines_one_is_logged_for_each_class_and_it_tells_how_many_were_left_out(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "orchestra")
    worker = Timed(Calls(clock.passes), warn_over=2)
    run(lived(worker, Job(3), Job(3), Job(3), Note(1), Note(1), Job(1), Job(3), Job(3)))
    assert caplog.messages == [
        "worker: a Job took 3.000000 s, over the limit of 2 s",  # at 3 s
        "worker: a Note took 1.000000 s",  # at 10 s
        "worker: a Job took 1.000000 s",  # at 12 s
        "worker: a Job took 3.000000 s, over the limit of 2 s (2 more since the last such line)",  # at 15 s
    ]
    assert worker.meters()["Job"].count == 6


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_limit_that_is_none(limit: float) -> None:
    with pytest.raises(ValueError, match=r"^warn_over is .*: give a number of seconds above 0, or leave it"):
        Timed(Calls(), warn_over=limit)


class Mixed(Actor):
    @handles(Job)
    def on_job(self, ctx: Any, message: Job) -> None: ...

    @handles(Note)
    async def on_note(self, ctx: Any, message: Note) -> None: ...


@pytest.mark.parametrize(
    ("worker", "is_async"), [(Timed(Calls()), False), (Timed(Awaits()), True), (Timed(Mixed()), True)]
)
def test_a_plain_handler_stays_plain(worker: Any, is_async: bool) -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Timed = subsystem(consumes=Job | Note)

    plan, _ = wiring_for(App, {"worker": worker})
    assert {handler.is_async for handler in plan.subsystems["worker"].handlers} == {is_async}


def test_of_a_mixed_actor_each_class_is_measured() -> None:
    worker = Timed(Wrapper(Mixed()))
    run(lived(worker, Job(), Note(), Job()))
    assert {name: each.count for name, each in worker.meters().items()} == {"Job": 2, "Note": 1}


def test_the_real_clock_is_monotonic() -> None:
    assert timed.perf_counter is time.perf_counter
