"""`Retrying`: what is tried again, how often, after which waits, and what comes of it in the end."""

import asyncio
import builtins
import gc
import logging
import sys
import weakref
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from orchestra import (
    Actor,
    Closed,
    DeclarationError,
    Full,
    OrchestraError,
    UndeclaredMessage,
    orchestra,
    start,
    subsystem,
)
from orchestra.chains import as_wrapped, chain_of
from orchestra.decorator import plan_of
from orchestra.plan import SubsystemPlan
from orchestra.priority import Priority
from orchestra.wrappers import Retrying, Timed
from tests.runtime.clockwork import run
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
)

stamina = pytest.importorskip("stamina")

EXACT = {"wait_initial": 1.0, "wait_max": 60.0, "wait_jitter": 0.0, "timeout": None}
"""Waits of 1, 2, 4 ... seconds and no end but that of the attempts."""


@pytest.fixture(autouse=True)
def silent() -> Any:
    """Without hooks of stamina, which would import what it logs with in the midst of a test."""
    stamina.instrumentation.set_on_retry_hooks([])
    yield
    stamina.instrumentation.set_on_retry_hooks(None)


class Flaky:
    """Fails so many times for each message, and notes when it was called, by the loop's clock."""

    def __init__(self, *errors: BaseException | type[BaseException]) -> None:
        self.errors = list(errors)
        self.at: list[float] = []

    def __call__(self, ctx: Any, message: Any) -> None:
        self.at.append(asyncio.get_running_loop().time())
        if self.errors:
            raise self.errors.pop(0)

    async def waiting(self, ctx: Any, message: Any) -> None:
        await asyncio.sleep(0)
        self(ctx, message)


def inner_of(flaky: Flaky, is_async: bool) -> Any:
    return Awaits(flaky.waiting) if is_async else Calls(flaky)


both = pytest.mark.parametrize("is_async", [False, True])


async def lived(worker: Any, *messages: Any, letters: list[Any] | None = None) -> None:
    hook = None if letters is None else letters.append
    async with start(alone(worker), dead_letters=hook) as running:
        for message in messages or (Job(),):
            await running.send(message)
        await running.drain()


@both
def test_a_failing_handler_is_called_again_after_growing_waits(is_async: bool) -> None:
    flaky = Flaky(ValueError, OSError, KeyError)
    inner = inner_of(flaky, is_async)
    run(lived(Retrying(inner, attempts=4, **EXACT)))
    assert flaky.at == [0.0, 1.0, 3.0, 7.0]
    assert inner.got == [Job()]


@both
def test_a_handler_that_does_not_fail_is_called_once(is_async: bool) -> None:
    flaky = Flaky()
    run(lived(Retrying(inner_of(flaky, is_async)), Job(1), Job(2)))
    assert flaky.at == [0.0, 0.0]


@both
def test_after_the_last_attempt_the_error_itself_comes_out_and_the_message_is_dead_lettered(
    is_async: bool,
) -> None:
    errors = [ValueError(n) for n in range(3)]
    flaky = Flaky(*errors)
    letters: list[Any] = []
    with pytest.raises(OrchestraError, match="failed: ValueError: 2") as caught:
        run(lived(Retrying(inner_of(flaky, is_async), attempts=3, **EXACT), letters=letters))
    assert caught.value.__cause__ is errors[2]
    assert told(letters) == [(Job(), "worker", "failed")]
    assert letters[0].error is errors[2]
    assert len(flaky.at) == 3


def test_one_attempt_is_none_more() -> None:
    flaky = Flaky(ValueError)
    with pytest.raises(OrchestraError):
        run(lived(Retrying(Calls(flaky), attempts=1), letters=[]))
    assert len(flaky.at) == 1


def test_the_waits_are_bounded_and_have_a_random_part() -> None:
    flaky = Flaky(*[ValueError] * 8)
    worker = Retrying(Calls(flaky), attempts=9, timeout=None, wait_initial=1.0, wait_max=4.0, wait_jitter=0.5)
    run(lived(worker))
    waits = [after - before for before, after in zip(flaky.at, flaky.at[1:], strict=False)]
    assert 1.0 < waits[0] < 1.5
    assert 2.0 < waits[1] < 2.5
    assert waits[2:] == pytest.approx([4.0] * 6)


def test_no_attempt_begins_after_the_timeout() -> None:
    flaky = Flaky(*[ValueError] * 100)

    async def main() -> None:
        with pytest.raises(OrchestraError):
            await lived(
                Retrying(Calls(slow), attempts=None, **{**EXACT, "timeout": 0.2, "wait_initial": 0.05}),
                letters=[],
            )

    def slow(ctx: Any, message: Any) -> None:
        flaky(ctx, message)

    asyncio.run(main())
    assert 2 <= len(flaky.at) <= 5
    assert flaky.at[-1] - flaky.at[0] < 2


@pytest.mark.parametrize(
    ("on", "error", "attempts"),
    [
        (Exception, ValueError("x"), 2),
        (ValueError, ValueError("x"), 2),
        (ValueError, KeyError("x"), 1),
        ((OSError, KeyError), KeyError("x"), 2),
        ((OSError, KeyError), ValueError("x"), 1),
        (lambda error: "again" in str(error), ValueError("again"), 2),
        (lambda error: "again" in str(error), ValueError("no"), 1),
        (Exception, Full(Job(), "other", Priority.NORMAL), 2),
        (Exception, Closed("gone"), 1),
        (lambda error: True, Closed("gone"), 1),
        (Exception, DeclarationError("wrong"), 1),
        (UndeclaredMessage, UndeclaredMessage("wrong"), 1),
    ],
    ids=repr,
)
def test_what_is_worth_another_attempt(on: Any, error: Exception, attempts: int) -> None:
    flaky = Flaky(error)
    try:
        run(lived(Retrying(Calls(flaky), on=on, **EXACT), letters=[]))
    except OrchestraError:
        assert attempts == 1
    assert len(flaky.at) == attempts


def test_a_function_may_say_how_long_to_wait() -> None:
    flaky = Flaky(ValueError("7.5"))
    run(lived(Retrying(Calls(flaky), on=lambda error: float(str(error)), **EXACT)))
    assert flaky.at == [0.0, 7.5]


@both
def test_while_it_waits_the_loop_is_free_and_the_next_message_waits(is_async: bool) -> None:
    flaky = Flaky(ValueError)
    inner = inner_of(flaky, is_async)
    seen: list[Any] = []

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Retrying = subsystem(consumes=Job)
        other: Calls = subsystem(consumes=Note)

    async def main() -> None:
        other = Calls()
        async with start(App(worker=Retrying(inner, **EXACT), other=other)) as running:
            await running.send(Job(1))
            await running.send(Job(2))
            await asyncio.sleep(0.5)
            await running.send(Note(3))
            await turns()
            seen.extend([list(inner.got), list(other.got)])
            await running.drain()
        assert seen == [[], [Note(3)]]
        assert inner.got == [Job(1), Job(2)]

    run(main())


@both
def test_a_stop_in_a_wait_ends_it_at_the_time_limit(is_async: bool) -> None:
    flaky = Flaky(*[ValueError] * 5)
    letters: list[Any] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        worker = Retrying(inner_of(flaky, is_async), **{**EXACT, "wait_initial": 50.0})
        async with start(alone(worker), dead_letters=letters.append) as running:
            await running.send(Job())
            await until(lambda: flaky.at)
            before = loop.time()
            await running.stop(timeout=3)
            assert loop.time() - before < 4

    run(main())
    assert len(flaky.at) == 1
    assert told(letters) == [(Job(), "worker", "cancelled")]


def test_a_wait_that_is_over_within_the_time_limit_of_a_stop_is_followed_by_its_attempt() -> None:
    flaky = Flaky(ValueError)

    async def main() -> None:
        async with start(alone(Retrying(Calls(flaky), **EXACT))) as running:
            await running.send(Job())
            await until(lambda: flaky.at)
            await running.stop(timeout=3)

    run(main())
    assert flaky.at == [0.0, 1.0]


@both
def test_a_cancellation_within_a_handler_is_not_taken_for_a_failure(is_async: bool) -> None:
    flaky = Flaky(asyncio.CancelledError())

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await Retrying(inner_of(flaky, is_async), on=lambda error: True, **EXACT).handle(Ctx(), Job())

    run(main())
    assert len(flaky.at) == 1


class Ctx:
    name = "worker"


class Held:
    """A message that can be watched."""


@both
def test_a_message_is_forgotten_when_it_is_handled_though_an_attempt_failed(is_async: bool) -> None:
    flaky = Flaky(ValueError)
    worker = Retrying(inner_of(flaky, is_async), **EXACT)

    async def main() -> None:
        message = Held()
        watched = weakref.ref(message)
        gc.disable()
        try:
            await worker.handle(Ctx(), message)
            worker.inner.got.clear()
            getattr(worker.inner, "begun", []).clear()
            del message
            assert watched() is None
        finally:
            gc.enable()

    run(main())


def test_hooks_are_not_called_again() -> None:
    class Fails(Calls):
        starts = 0

        def started(self, ctx: Any) -> None:
            self.starts += 1
            raise ValueError("no")

    worker = Retrying(Fails(), **EXACT)
    with pytest.raises(OrchestraError):
        run(lived(worker, letters=[]))
    assert worker.inner.starts == 1


def test_each_further_attempt_is_logged_by_the_field(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "orchestra")
    run(lived(Retrying(Calls(Flaky(ValueError, ValueError)), attempts=3, **EXACT)))
    assert [record.getMessage() for record in caplog.records if record.name == "orchestra"] == [
        "worker: attempt 2 of 3 for a Job",
        "worker: attempt 3 of 3 for a Job",
    ]


def test_it_can_be_timed_and_can_time_each_attempt() -> None:
    whole = Timed(Retrying(Timed(Calls(Flaky(ValueError, ValueError))), **EXACT))
    run(lived(whole))
    each: Timed[Any, Any] = whole.inner.inner  # type: ignore[attr-defined]  # inner is any Actor
    assert (whole.meters()["Job"].count, whole.meters()["Job"].failures) == (1, 0)
    assert (each.meters()["Job"].count, each.meters()["Job"].failures) == (3, 2)


def test_stamina_can_switch_the_retries_off() -> None:
    flaky = Flaky(ValueError)
    stamina.set_active(False)
    try:
        with pytest.raises(OrchestraError):
            run(lived(Retrying(Calls(flaky), **EXACT), letters=[]))
    finally:
        stamina.set_active(True)
    assert len(flaky.at) == 1


def test_where_no_loop_runs_it_waits_in_its_thread() -> None:
    calls: list[int] = []

    class Inner(Actor):
        def handle(self, ctx: Any, message: Job) -> None:
            calls.append(message.n)
            if len(calls) < 3:
                raise ValueError("no")

    worker = Retrying(Inner(), wait_initial=0.0, wait_jitter=0.001)
    assert worker.handle(Ctx(), Job(4)) is None
    assert calls == [4, 4, 4]

    worker = Retrying(Inner(), attempts=2, wait_initial=0.0, wait_jitter=0.001)
    calls.clear()
    with pytest.raises(ValueError, match="no"):
        worker.handle(Ctx(), Job(5))
    assert calls == [5, 5]


@attrs.frozen
class InThread(SubsystemPlan):
    """The plan of a subsystem with `blocking=True`."""

    blocking: bool = True


def in_thread(subsystem: SubsystemPlan) -> SubsystemPlan:
    names = [field.name for field in attrs.fields(SubsystemPlan) if field.name != "blocking"]
    return InThread(**{name: getattr(subsystem, name) for name in names})


@pytest.mark.parametrize("around", [Retrying, lambda inner: Timed(Retrying(inner))])
def test_its_handler_is_plain_in_a_thread_and_awaited_in_a_loop(around: Callable[[Any], Any]) -> None:
    worker = around(Calls())
    app = alone(worker)
    in_loop = plan_of(type(app)).subsystems["worker"]
    chain = chain_of("App.worker", worker)
    assert [h.is_async for h in as_wrapped(type(app), in_loop, chain).handlers] == [True]
    assert [h.is_async for h in as_wrapped(type(app), in_thread(in_loop), chain).handlers] == [False]


@pytest.mark.parametrize("worker", [Retrying(Awaits()), Timed(Retrying(Awaits()))], ids=repr)
def test_in_a_thread_an_asynchronous_handler_inside_is_refused(worker: Any) -> None:
    app = alone(worker)
    subsystem = in_thread(plan_of(type(app)).subsystems["worker"])
    text = (
        r"^Alone\.worker: Awaits\.handle is asynchronous, and blocking=True calls it in a thread: write def"
    )
    with pytest.raises(DeclarationError, match=text):
        as_wrapped(type(app), subsystem, chain_of("Alone.worker", worker))


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"on": 3}, TypeError, "on is 3: give an Exception class, a tuple of them, or a function"),
        ({"on": BaseException}, TypeError, "on is <class 'BaseException'>: give an Exception class"),
        ({"on": (ValueError, int)}, TypeError, "on is .*: give an Exception class, a tuple of them"),
        ({"on": ()}, TypeError, r"on is \(\): give an Exception class, a tuple of them"),
        ({"attempts": 0}, ValueError, "attempts is 0: give a whole number of 1 or more, or None"),
        ({"attempts": 1.5}, ValueError, "attempts is 1.5: give a whole number of 1 or more, or None"),
        ({"attempts": True}, ValueError, "attempts is True: give a whole number of 1 or more, or None"),
        ({"timeout": 0}, ValueError, "timeout is 0: give a number of seconds above 0, or None"),
        ({"wait_initial": -1}, ValueError, "wait_initial is -1: give a number of seconds, 0 or more"),
        ({"wait_max": -1}, ValueError, "wait_max is -1: give a number of seconds, 0 or more"),
        ({"wait_jitter": -1}, ValueError, "wait_jitter is -1: give a number of seconds, 0 or more"),
        ({"wait_exp_base": 0.5}, ValueError, "wait_exp_base is 0.5: give a number of 1 or more"),
    ],
)
def test_arguments_out_of_range(given: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{text}"):
        Retrying(Calls(), **given)


def test_without_stamina_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refusing(name: str, *args: Any) -> Any:
        if name == "stamina":
            raise ModuleNotFoundError("No module named 'stamina'", name="stamina")
        return real(name, *args)

    monkeypatch.delitem(sys.modules, "stamina")
    monkeypatch.setattr(builtins, "__import__", refusing)
    text = r"^orchestra\.wrappers\.Retrying needs stamina: pip install 'orchestra-wiring\[retry\]'$"
    with pytest.raises(ModuleNotFoundError, match=text):
        Retrying(Calls())
    Timed(Calls())
