"""The lives of a blocking subsystem: failures in its thread and from elsewhere, and what is fresh after."""

import asyncio
import contextvars
import logging
import threading
import time
from typing import Any

import pytest

from orchestra import (
    Actor,
    Closed,
    OrchestraError,
    Restart,
    Subsystem,
    deferred,
    orchestra,
    start,
    subsystem,
)
from orchestra.runtime import life
from orchestra.wrappers import Retrying, Timed
from tests.runtime.players import Bell, Job, Knock, Note, alone, told, until, within
from tests.runtime.threads.cast import Acts, JustB, Lives, ToA, ToB, ToC, trio

SOON = Restart(limit=5, within=10.0, backoff=0.01)
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class Fragile(Actor):
    """Fails on the messages whose number divides by three, and notes its threads."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.threads: list[threading.Thread] = []
        self.overlaps = 0

    def started(self, ctx: Any) -> None:
        self.overlaps += any(thread.is_alive() for thread in self.threads)
        self.threads.append(threading.current_thread())

    def handle(self, ctx: Any, message: Job) -> None:
        assert threading.current_thread() is self.threads[-1]
        self.got.append(message.n)
        if message.n % 3 == 0:
            raise ValueError(message.n)

    def stopped(self, ctx: Any) -> None:
        assert threading.current_thread() is self.threads[-1]


class RunFragile(Subsystem):
    got: list[int]

    def __init__(self) -> None:
        self.got = []
        self.threads: list[threading.Thread] = []
        self.overlaps = 0

    def run(self, ctx: Any) -> None:
        Fragile.started(self, ctx)  # type: ignore[arg-type]  # it has what that needs
        for message in ctx:
            Fragile.handle(self, ctx, message)  # type: ignore[arg-type]  # the same


@pytest.mark.parametrize("kind", [Fragile, RunFragile])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_restart_keeps_what_is_queued_and_the_old_thread_has_ended(kind: Any, fresh: bool) -> None:
    letters: list[Any] = []
    made: list[Any] = []

    def make() -> Any:
        made.append(kind())
        return made[-1]

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: kind = subsystem(consumes=Job, blocking=True, restart=SOON, message_capacity=2)

    async def main() -> None:
        app = App(worker=deferred(make) if fresh else make())
        async with start(app, dead_letters=letters.append) as running:
            for n in range(1, 11):
                await running.send(Job(n))
            await running.drain()
            meters = running.meters()["worker"]
            assert (meters.sent, meters.received, meters.queued, meters.restarts) == (10, 10, 0, 3)

    within(15, main())
    assert len(made) == (4 if fresh else 1)
    assert [n for each in made for n in each.got] == list(range(1, 11))
    assert told(letters) == [(Job(n), "worker", "failed") for n in (3, 6, 9)]
    threads = [thread for each in made for thread in each.threads]
    assert len(set(threads)) == 4
    assert not any(thread.is_alive() for thread in threads)
    assert sum(each.overlaps for each in made) == 0


@pytest.mark.parametrize("kind", [Fragile, RunFragile])
def test_a_crash_loop_ends_after_its_limit(kind: Any) -> None:
    worker = kind()

    async def main() -> None:
        app = alone(worker, blocking=True, restart=Restart(limit=2, within=10, backoff=0.0))
        async with start(app, dead_letters=lambda _: None) as running:
            for _ in range(5):
                running.try_send(Job(0))
            await running.wait()

    with pytest.raises(OrchestraError, match="subsystem 'worker' of Alone failed: ValueError: 0"):
        within(15, main())
    assert worker.got == [0, 0, 0]


def test_each_life_has_a_fresh_copy_of_the_context_variables() -> None:
    seen: list[str] = []

    def handle(ctx: Any, message: Any) -> None:
        seen.append(variable.get())
        variable.set("stained")
        raise ValueError

    async def main() -> None:
        variable.set("clean")
        async with start(trio(Acts(handle), restart=SOON), dead_letters=lambda _: None) as running:
            for n in range(3):
                await running.send(ToA(n))
            await running.drain()

    within(15, main())
    assert seen == ["clean"] * 3


def test_a_thread_that_could_not_be_made_is_a_failure_and_what_it_was_to_do_is_not_done_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[str] = []
    plain = threading.Thread.start
    refused: list[str] = []

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "orchestra:a" and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        plain(thread)

    async def main() -> None:
        a = Acts(started=lambda ctx: started.append(ctx.name))
        async with start(trio(a, restart=SOON), dead_letters=lambda _: None) as running:
            await running.send(ToA(1))
            await until(lambda: a.got == [1])
            await running.drain()

    monkeypatch.setattr(threading.Thread, "start", refuse)
    within(15, main())
    assert (refused, started) == (["orchestra:a"], ["a"])


# a failure from elsewhere: a spawned task, or the factory of a timer


async def fails(go: threading.Event) -> None:
    while not go.is_set():
        await asyncio.sleep(0.001)
    raise LookupError("elsewhere")


def fail_from(how: str, ctx: Any, go: threading.Event) -> None:
    """Let this life fail from outside of its thread, soon after `go`."""
    if how == "task":
        ctx.spawn(fails(go))
    else:

        def make() -> Any:
            if go.is_set():
                raise LookupError("elsewhere")
            return ToC(0)

        ctx.send_every(0.002, make)


def full(ctx: Any, send: Any) -> None:
    """Send to `b`, whose lane holds one, until it has to wait for room."""
    for n in range(10):
        send(ToB(n))


BLOCKED = {
    "send": lambda ctx: [ctx.send(JustB(n)) for n in range(10)],
    "send for the first time": lambda ctx: send_late(ctx),
    "send to several": lambda ctx: [ctx.send(Note(n)) for n in range(10)],
    "send by the loop": lambda ctx: full(ctx, ctx.send),
    "recipient": lambda ctx: full(ctx, ctx.recipient(ToB).send),
    "ask": lambda ctx: ctx.ask(lambda reply: ToB(0, reply)),
    "ask for room": lambda ctx: [ctx.ask(lambda reply: ToB(0, reply)) for _ in range(3)],
    "recipient ask": lambda ctx: ctx.recipient(ToB).ask(lambda reply: ToB(0, reply)),
    "poll": lambda ctx: poll(ctx),
}


def send_late(ctx: Any) -> None:
    """What begins to wait when it has been told to end already."""
    time.sleep(0.1)
    for n in range(3):
        ctx.send(JustB(n))


def poll(ctx: Any) -> None:
    """A handler that does not wait: it sends now and then, and looks for an end."""
    while True:
        ctx.send_after(60, ToC(1)).cancel()
        time.sleep(0.001)


@pytest.mark.parametrize("how", ["task", "factory"])
@pytest.mark.parametrize("what", BLOCKED)
@pytest.mark.parametrize("style", ["actor", "run", "started"])
def test_a_failure_from_elsewhere_frees_the_thread_and_the_next_life_begins(
    how: str, what: str, style: str
) -> None:
    letters: list[Any] = []
    errors: list[BaseException] = []
    lives: list[threading.Thread] = []
    overlaps: list[bool] = []
    released = threading.Event()
    go = threading.Event()

    def live(ctx: Any) -> None:
        """In the first life, block until it fails; in the second one go on."""
        overlaps.append(any(thread.is_alive() for thread in lives))
        lives.append(threading.current_thread())
        if len(lives) > 1:
            assert ctx.ask(lambda reply: ToC(1, reply), timeout=5) == "c", (
                "nothing is left of the cancellation"
            )
            return
        fail_from(how, ctx, go)
        threading.Timer(0.02, go.set).start()
        try:
            BLOCKED[what](ctx)
        except BaseException as error:
            errors.append(error)
            raise

    def hold(ctx: Any, message: Any) -> None:
        released.wait(10)

    if style == "run":
        a: Any = Lives(lambda ctx: (live(ctx), list(ctx)))
    elif style == "started":
        a = Acts(started=live)
    else:
        a = Acts(lambda ctx, message: live(ctx))

    kind = type(a)

    @orchestra(signal=Bell, event=Knock)
    class App:
        a: kind = subsystem(consumes=ToA, sends=[ToB, ToC, JustB, Note], blocking=True, restart=SOON)
        b: Acts = subsystem(consumes=ToB | JustB, subscribes=[Note], blocking=True, message_capacity=1)
        c: Acts = subsystem(consumes=ToC, subscribes=[Note], blocking=True)

    async def main() -> None:
        async with start(App(a=a, b=Acts(hold), c=Acts()), dead_letters=letters.append) as running:
            if style == "actor":
                await running.send(ToA(1))
                await running.send(ToA(2))
            await until(lambda: len(lives) == 2)
            released.set()
            await running.drain()
            assert running.meters()["a"].restarts == 1

    within(15, main())
    assert [type(error) for error in errors] == [Closed]
    assert overlaps == [False, False]
    failed = [letter for letter in told(letters) if letter[2] == "failed"]
    assert failed == ([(ToA(1), "a", "failed")] if style == "actor" else [])


@pytest.mark.parametrize("how", ["task", "factory"])
@pytest.mark.parametrize("waits", ["recv", "recv_signal", "try_recv", "for"])
def test_a_failure_from_elsewhere_ends_a_run_that_receives(how: str, waits: str) -> None:
    lives: list[int] = []
    go = threading.Event()
    go.set()

    def run(ctx: Any) -> None:
        lives.append(1)
        if len(lives) == 2:
            return
        fail_from(how, ctx, go)
        while True:
            if waits == "for":
                list(ctx)
                raise Closed("over", None)
            getattr(ctx, waits)()
            time.sleep(0)

    async def main() -> None:
        async with start(trio(Lives(run), restart=SOON), dead_letters=lambda _: None) as running:
            await until(lambda: running.meters()["a"].restarts == 1)
            await running.drain()

    within(15, main())
    assert len(lives) == 2


def test_an_idle_actor_that_fails_from_elsewhere_starts_again_and_takes_what_is_queued() -> None:
    go = threading.Event()
    a = Acts(started=lambda ctx: a.lives == 1 and fail_from("task", ctx, go))

    async def main() -> None:
        async with start(trio(a, restart=SOON), dead_letters=lambda _: None) as running:
            await running.send(ToA(1))
            await until(lambda: a.got == [1])
            go.set()
            await until(lambda: a.lives == 2)
            await running.send(ToA(2))
            await running.drain()

    within(15, main())
    assert a.got == [1, 2]


def test_a_handler_that_swallows_the_end_takes_nothing_more() -> None:
    """The message counts as handled; the next one is for the next life."""
    letters: list[Any] = []
    go = threading.Event()
    notes: list[Any] = []

    def handle(ctx: Any, message: Any) -> None:
        notes.append((message.n, a.lives))
        if message.n == 1:
            fail_from("task", ctx, go)
            go.set()
            for _ in range(3):  # each verb that waits raises
                with pytest.raises(Closed):
                    ctx.ask(lambda reply: ToB(0, reply))
                with pytest.raises(Closed):
                    ctx.recipient(ToB)

    a = Acts(handle)

    async def main() -> None:
        app = trio(a, Acts(lambda ctx, message: notes.append(message)), restart=SOON)
        async with start(app, dead_letters=letters.append) as running:
            await running.send(ToA(1))
            await running.send(ToA(2))
            await until(lambda: (2, 2) in notes)
            notes[:] = [note for note in notes if isinstance(note, tuple)]
            await running.drain()

    within(15, main())
    assert notes == [(1, 1), (2, 2)]
    assert told(letters) == []


def test_stopped_may_wait_again_after_a_failure_from_elsewhere() -> None:
    results: list[Any] = []
    kept: list[Any] = []
    go = threading.Event()
    go.set()

    def handle(ctx: Any, message: Any) -> None:
        fail_from("task", ctx, go)
        time.sleep(0.02)
        ctx.ask(lambda reply: ToB(0, reply))

    def stopped(ctx: Any) -> None:
        results.append(ctx.ask(lambda reply: ToC(0, reply), timeout=5))

    async def main() -> None:
        app = trio(
            Acts(handle, stopped=stopped), Acts(lambda ctx, message: kept.append(message)), restart=SOON
        )
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(ToA(1))
            await until(lambda: running.meters()["a"].restarts == 1)
            await running.stop()

    within(15, main())
    assert results == ["c"], "the second time, in the stop, nobody replies"


def test_a_thread_that_does_not_end_is_reminded_of_and_delays_the_next_life(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(life, "REMINDER", 0.05)
    go, released = threading.Event(), threading.Event()
    go.set()

    def handle(ctx: Any, message: Any) -> None:
        if message.n == 1:
            fail_from("task", ctx, go)
            released.wait(10)

    a = Acts(handle)

    async def main() -> None:
        async with start(trio(a, restart=SOON), dead_letters=lambda _: None) as running:
            await running.send(ToA(1))
            await until(lambda: "its last life goes on" in caplog.text)
            assert a.lives == 1
            assert "thread orchestra:a at " in caplog.text
            released.set()
            await until(lambda: a.lives == 2)
            await running.drain()

    with caplog.at_level(logging.WARNING, "orchestra"):
        within(15, main())


def test_without_restart_a_failure_from_elsewhere_stops_the_orchestra() -> None:
    go = threading.Event()
    go.set()

    def handle(ctx: Any, message: Any) -> None:
        fail_from("task", ctx, go)
        ctx.ask(lambda reply: ToB(0, reply))

    kept: list[Any] = []

    async def main() -> None:
        async with start(trio(Acts(handle), Acts(lambda ctx, message: kept.append(message)))) as running:
            await running.send(ToA(1))
            await running.wait()

    with pytest.raises(OrchestraError, match="'a' of Trio failed: LookupError: elsewhere"):
        within(15, main())


def test_ctx_stop_of_a_life_that_is_to_end_still_stops() -> None:
    go = threading.Event()
    go.set()
    kept: list[Any] = []

    def run(ctx: Any) -> None:
        fail_from("task", ctx, go)
        try:
            ctx.ask(lambda reply: ToB(0, reply))
        finally:
            ctx.stop()

    async def main() -> None:
        app = trio(Lives(run), Acts(lambda ctx, message: kept.append(message)), restart=SOON)
        async with start(app, dead_letters=lambda _: None) as running:
            await running.wait()

    within(15, main())


# timers


def test_timers_end_with_the_life_and_delayed_messages_are_dead_letters() -> None:
    letters: list[Any] = []
    ticks: list[int] = []
    passed: list[float] = []

    def handle(ctx: Any, message: Any) -> None:
        if a.lives == 1:
            ctx.send_after(60, ToC(7))
            ctx.send_every(0.005, lambda: ToC(a.lives))
            ctx.set_timeout(0.05)
            while len(ticks) < 2:
                time.sleep(0.001)
            raise ValueError

    a = Acts(handle, deadline_passed=lambda ctx, deadline: passed.append(deadline))

    async def main() -> None:
        app = trio(a, c=Acts(lambda ctx, message: ticks.append(message.n)), restart=SOON)
        async with start(app, dead_letters=letters.append) as running:
            await running.send(ToA(1))
            await until(lambda: a.lives == 2)
            count = len(ticks)
            await asyncio.sleep(0.1)
            assert len(ticks) <= count + 1
            await running.send(ToA(2))
            await running.drain()

    within(15, main())
    assert set(ticks) == {1}
    assert passed == []
    assert told(letters) == [(ToA(1), "a", "failed"), (ToC(7), "c", "timer")]


@pytest.mark.parametrize("end", ["drain", "stop"])
def test_timers_end_with_a_drain_and_a_stop(end: str) -> None:
    letters: list[Any] = []
    after: list[Any] = []
    set_them = threading.Event()

    def run(ctx: Any) -> None:
        timers = [ctx.send_after(60, ToA(1)), ctx.send_every(60, lambda: ToA(2))]
        set_them.set()
        list(ctx)
        after.extend(timer.active for timer in timers)
        late = ctx.send_after(0, ToA(3))
        after.append(late.active)
        after.append(late.cancel())

    async def main() -> None:
        async with start(trio(Lives(run)), dead_letters=letters.append) as running:
            await until(set_them.is_set)
            await (running.drain() if end == "drain" else running.stop())

    within(15, main())
    assert after == [False] * 4
    assert told(letters) == [(ToA(1), "a", "timer"), (ToA(3), "a", "timer")]


def test_a_factory_that_fails_without_restart_is_the_subsystems_failure() -> None:
    def run(ctx: Any) -> None:
        ctx.send_every(0.001, lambda: 1 / 0)
        list(ctx)

    async def main() -> None:
        async with start(trio(Lives(run))) as running:
            await running.wait()

    with pytest.raises(OrchestraError, match="'a' of Trio failed: ZeroDivisionError"):
        within(15, main())


# wrappers


def test_timed_around_an_actor_in_a_thread() -> None:
    worker = Timed(Acts(lambda ctx, message: time.sleep(0.002)), warn_over=60)

    async def main() -> None:
        async with start(trio(worker, b=Timed(Timed(Acts())))) as running:
            for n in range(5):
                await running.send(ToA(n))
            assert await running.ask(lambda reply: ToB(0, reply)) == "b"
            await running.drain()

    within(15, main())
    figures = worker.meters()["ToA"]
    assert figures.count == 5
    assert figures.total >= 0.01
    assert worker.inner.got == list(range(5))


def test_retrying_around_an_actor_in_a_thread_sleeps_there() -> None:
    attempts: list[Any] = []

    def handle(ctx: Any, message: Any) -> None:
        attempts.append((message.n, threading.current_thread().name))
        if message.n == 1 and len(attempts) < 3:
            raise OSError("not yet")
        if message.n == 2:
            raise OSError("never")

    worker = Retrying(Acts(handle), attempts=3, wait_initial=0.001, wait_jitter=0.001)
    letters: list[Any] = []

    async def main() -> None:
        async with start(trio(worker, restart=SOON), dead_letters=letters.append) as running:
            for n in range(1, 4):
                await running.send(ToA(n))
            await running.drain()
            assert running.meters()["a"].restarts == 1

    within(15, main())
    assert attempts == [(n, "orchestra:a") for n in (1, 1, 1, 2, 2, 2, 3)]
    assert told(letters) == [(ToA(2), "a", "failed")]


@pytest.mark.parametrize("wrap", [Timed, lambda inner: Retrying(inner, wait_initial=0.001, wait_jitter=0)])
def test_wrapped_in_a_thread_it_asks_spawns_and_sets_deadlines(wrap: Any) -> None:
    passed: list[Any] = []

    async def work() -> None:
        passed.append("spawned")

    def handle(ctx: Any, message: Any) -> None:
        passed.append(ctx.ask(lambda reply: ToB(0, reply), timeout=5))
        ctx.spawn(work())
        ctx.set_timeout(0.01)

    inner = Acts(handle, deadline_passed=lambda ctx, deadline: passed.append("deadline"))

    async def main() -> None:
        async with start(trio(wrap(inner))) as running:
            await running.send(ToA(1))
            await until(lambda: "deadline" in passed)
            await running.drain()

    within(15, main())
    assert sorted(passed) == ["b", "deadline", "spawned"]


def test_a_retry_ends_at_once_when_its_life_does() -> None:
    """`Closed` is not worth another attempt."""
    attempts: list[int] = []
    kept: list[Any] = []
    go = threading.Event()
    go.set()

    def handle(ctx: Any, message: Any) -> None:
        attempts.append(a.inner.lives)
        if a.inner.lives == 1:
            fail_from("task", ctx, go)
            ctx.ask(lambda reply: ToB(0, reply))

    a = Retrying(Acts(handle), attempts=5, wait_initial=0.001, wait_jitter=0)

    async def main() -> None:
        app = trio(a, Acts(lambda ctx, message: kept.append(message)), restart=SOON)
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(ToA(1))
            await until(lambda: a.inner.lives == 2)
            await running.drain()

    within(15, main())
    assert attempts == [1]
