"""Failure: an error stops the orchestra and comes out, as the declared type, with its cause and notes."""

import asyncio
import logging
from typing import Any

import attrs
import pytest

from orchestra import (
    Actor,
    Closed,
    DeadLetter,
    OrchestraError,
    Subsystem,
    handles,
    orchestra,
    run,
    start,
    subsystem,
)
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


class AppError(OrchestraError):
    """The declared error."""


def failing(error: BaseException) -> Any:
    def fail(ctx: Any, message: Any) -> None:
        raise error

    return fail


@orchestra(signal=Bell, event=Knock, error=AppError)
class Declared:
    worker: Calls = subsystem(consumes=Job)
    other: Collects = subsystem(consumes=Note)

    async def on_event(self, conductor: Any, event: Knock) -> None:
        raise ValueError("on the door")


async def outcome(app: Any, *messages: Any, letters: list[DeadLetter] | None = None) -> BaseException | None:
    """The error that comes out of a run with these messages."""
    hook = (lambda _: None) if letters is None else letters.append
    try:
        async with start(app, dead_letters=hook) as running:
            for message in messages:
                await running.send(message)
            await running.wait()
    except Exception as error:
        return error
    return None


def test_the_error_is_of_the_declared_type_with_the_cause_and_the_name() -> None:
    cause = ValueError("poison")
    error = within(10, outcome(Declared(worker=Calls(failing(cause)), other=Collects()), Job()))
    assert type(error) is AppError
    assert str(error) == "subsystem 'worker' of Declared failed: ValueError: poison"
    assert error.__cause__ is cause


def test_an_error_of_the_declared_type_comes_out_as_it_is_with_a_note() -> None:
    cause = AppError("mine")
    error = within(10, outcome(Declared(worker=Calls(failing(cause)), other=Collects()), Job()))
    assert error is cause
    assert error.__notes__ == ["raised in subsystem 'worker' of Declared"]


def test_a_declared_type_that_wants_other_arguments_does_not_hide_the_failure() -> None:
    class Picky(OrchestraError):
        def __init__(self, code: int, text: str) -> None:
            super().__init__(code, text)

    @orchestra(signal=Bell, event=Knock, error=Picky)
    class Odd:
        worker: Calls = subsystem(consumes=Job)

    cause = ValueError("poison")
    error = within(10, outcome(Odd(worker=Calls(failing(cause))), Job()))
    assert isinstance(error, OrchestraError)
    assert "'worker' of Odd failed: ValueError: poison" in str(error)
    assert error.__cause__ is cause
    assert "Picky" in error.__notes__[0]


class Hooks(Calls):
    """Raises in the hook that it is told."""

    def __init__(self, hook: str, error: BaseException) -> None:
        super().__init__()
        self.hook, self.error = hook, error

    def _maybe(self, hook: str) -> None:
        self.hooks.append(hook)
        if hook == self.hook:
            raise self.error

    def started(self, ctx: Any) -> None:
        self._maybe("started")

    def on_signal(self, ctx: Any, signal: Any) -> None:
        self._maybe("on_signal")

    def stopped(self, ctx: Any) -> None:
        self._maybe("stopped")


class AsyncHooks(Hooks):
    async def started(self, ctx: Any) -> None:
        await asyncio.sleep(0.001)
        self._maybe("started")

    async def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(message)

    async def on_signal(self, ctx: Any, signal: Any) -> None:
        await asyncio.sleep(0.001)
        self._maybe("on_signal")

    async def stopped(self, ctx: Any) -> None:
        await asyncio.sleep(0.001)
        self._maybe("stopped")


@pytest.mark.parametrize("kind", [Hooks, AsyncHooks])
@pytest.mark.parametrize("hook", ["started", "on_signal", "stopped"])
def test_an_error_in_a_hook_is_a_failure(kind: type[Hooks], hook: str) -> None:
    async def main() -> None:
        worker = kind(hook, ValueError(hook))
        letters: list[DeadLetter] = []
        with pytest.raises(OrchestraError, match=f"'first' of Pair failed: ValueError: {hook}"):
            async with start(pair(worker, Collects()), dead_letters=letters.append) as running:
                await running.send(Job(1))
                await running.broadcast(Bell())
                if hook == "stopped":
                    await until(lambda: worker.got)
                    await running.stop()
                await running.wait()
        if hook == "started":
            assert worker.hooks == ["started"], "stopped is not called when started failed"
            assert worker.got == []
            assert told(letters) == [(Job(1), "first", "stopped")]
        elif hook == "on_signal":
            assert worker.hooks == ["started", "on_signal", "stopped"]
            assert not [letter for letter in letters if letter.reason == "failed"]
        else:
            assert worker.got == [Job(1)]
            assert letters == []

    within(10, main())


def test_messages_are_kept_until_the_start_has_succeeded() -> None:
    class Slow(Calls):
        async def started(self, ctx: Any) -> None:
            await asyncio.sleep(0.02)
            self.got.append("started")

    async def main() -> None:
        worker = Slow()
        async with start(alone(worker, message_capacity=1)) as running:
            await asyncio.gather(*(running.send(Job(n)) for n in range(3)))
            await running.drain()
        assert worker.got == ["started", Job(0), Job(1), Job(2)]

    within(10, main())


def test_an_error_in_stopped_after_a_failure_is_a_note() -> None:
    class Twice(Calls):
        def stopped(self, ctx: Any) -> None:
            raise KeyError("again")

    cause = ValueError("poison")
    error = within(10, outcome(pair(Twice(failing(cause)), Collects()), Job()))
    assert error is not None
    assert error.__cause__ is cause
    assert cause.__notes__ == ["and stopped() of 'first' then raised KeyError: 'again'"]


def test_an_error_in_on_event_is_a_failure() -> None:
    async def main() -> None:
        letters: list[DeadLetter] = []
        app = Declared(worker=Calls(), other=Collects())
        with pytest.raises(AppError, match="on_event of Declared failed: ValueError: on the door"):
            async with start(app, dead_letters=letters.append) as running:
                await running.event(Knock(1))
                await running.event(Knock(2))
                await running.wait()
        assert told(letters) == [(Knock(1), "on_event", "failed"), (Knock(2), "on_event", "stopped")]
        assert app.worker.hooks == ["started", "stopped"]

    within(10, main())


def test_a_failure_stops_the_others_whose_running_handlers_finish() -> None:
    async def main() -> None:
        second = Awaits(lambda ctx, message: asyncio.sleep(0.03))
        letters: list[DeadLetter] = []
        with pytest.raises(OrchestraError):
            async with start(
                pair(Calls(failing(ValueError())), second), dead_letters=letters.append
            ) as running:
                for n in range(3):
                    await running.send(Note(n))
                await turns()
                for n in range(2):
                    await running.send(Job(n))
                await running.wait()
        assert second.got == [Note(0)]
        assert told(letters) == [
            (Job(0), "first", "failed"),
            (Job(1), "first", "stopped"),
            (Note(1), "second", "stopped"),
            (Note(2), "second", "stopped"),
        ]
        assert isinstance(letters[0].error, ValueError)
        assert letters[1].error is None

    within(10, main())


def test_closed_after_a_failure_has_the_failure_as_its_cause() -> None:
    seen: list[Any] = []

    async def send(ctx: Any) -> None:
        try:
            while True:
                await ctx.recv()
        except Closed as closed:
            seen.append(closed)
        try:
            await ctx.send(Job(2))
            await ctx.send(Job(3))
        except Closed as closed:
            seen.append(closed)

    @orchestra(signal=Bell, event=Knock)
    class Two:
        worker: Calls = subsystem(consumes=Job, message_capacity=1)
        other: Runs = subsystem(consumes=Note, sends=[Job])

    async def main() -> None:
        app = Two(worker=Calls(failing(ValueError("first"))), other=Runs(send))
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job(1))
            with pytest.raises(OrchestraError) as failure:
                await running.wait()
            with pytest.raises(Closed) as outside:
                running.try_send(Job(4))
        assert len(seen) == 2
        for closed in (*seen, outside.value):
            assert closed.__cause__ is failure.value
        assert [closed.message for closed in (*seen, outside.value)] == [None, Job(3), Job(4)]

    within(10, main())


def test_closed_after_a_failure_during_a_stop_has_it_as_its_cause() -> None:
    seen: list[Any] = []

    async def late(ctx: Any, message: Note) -> None:
        await asyncio.sleep(0.03)
        for n in range(9):
            try:
                await ctx.send(Job(n))
            except Closed as closed:
                seen.append(closed.__cause__)

    async def fail(ctx: Any, message: Job) -> None:
        await asyncio.sleep(0.01)
        raise ValueError("bad")

    @orchestra(signal=Bell, event=Knock)
    class Two:
        worker: Awaits = subsystem(consumes=Job, message_capacity=2)
        other: Awaits = subsystem(consumes=Note, sends=[Job])

    async def main() -> None:
        async with start(
            Two(worker=Awaits(fail), other=Awaits(late)), dead_letters=lambda _: None
        ) as running:
            await running.send(Job())
            await running.send(Note())
            await turns()
            with pytest.raises(OrchestraError) as failure:
                await running.stop()
        assert seen
        assert all(cause is failure.value for cause in seen)

    within(10, main())


def test_what_fails_after_the_first_failure_is_a_note_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail_late(ctx: Any, message: Note) -> None:
        await asyncio.sleep(0.02)
        raise KeyError("second")

    async def main() -> BaseException | None:
        return await outcome(pair(Calls(failing(ValueError("first"))), Awaits(fail_late)), Note(), Job())

    with caplog.at_level(logging.ERROR, "orchestra"):
        error = within(10, main())
    assert "first" in str(error)
    assert any("'second' failed too: KeyError: 'second'" in note for note in error.__notes__)
    assert "'second' failed too" in caplog.text


def test_the_error_is_raised_once_by_those_who_end_it_and_each_time_by_wait() -> None:
    async def main() -> None:
        async with start(alone(Calls(failing(ValueError()))), dead_letters=lambda _: None) as running:
            await running.send(Job())
            with pytest.raises(OrchestraError) as first:
                await running.drain()
            await running.drain()
            await running.stop()
            with pytest.raises(OrchestraError) as again:
                await running.wait()
            assert again.value is first.value

    within(10, main())


def test_every_task_that_waits_is_told_of_the_failure() -> None:
    async def main() -> None:
        async with start(alone(Calls(failing(ValueError()))), dead_letters=lambda _: None) as running:
            waiting = [asyncio.ensure_future(call()) for call in (running.wait, running.wait, running.drain)]
            await turns()
            worker_errors = await asyncio.gather(running.stop(), *waiting, return_exceptions=True)
            assert worker_errors == [None] * 4
        async with start(alone(Calls(failing(ValueError()))), dead_letters=lambda _: None) as running:
            waiting = [asyncio.ensure_future(running.wait()) for _ in range(3)]
            await running.send(Job())
            errors = await asyncio.gather(*waiting, return_exceptions=True)
            assert len({id(error) for error in errors}) == 1
            assert isinstance(errors[0], OrchestraError)

    within(10, main())


def test_leaving_raises_an_error_that_nobody_has_heard_of() -> None:
    async def main() -> None:
        with pytest.raises(OrchestraError, match="'worker' of Alone failed"):
            async with start(alone(Calls(failing(ValueError()))), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await turns()

    within(10, main())


def test_the_error_of_the_body_comes_out_when_the_orchestra_is_well() -> None:
    async def main() -> None:
        worker = Calls()
        with pytest.raises(LookupError):
            async with start(alone(worker)):
                raise LookupError
        assert worker.hooks == ["started", "stopped"]

    within(10, main())


def test_the_error_of_the_body_is_the_context_of_the_orchestras() -> None:
    async def main() -> None:
        with pytest.raises(OrchestraError) as failure:
            async with start(alone(Calls(failing(ValueError()))), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await turns()
                raise LookupError("body")
        assert isinstance(failure.value.__context__, LookupError) or isinstance(
            failure.value.__cause__.__context__, LookupError
        )

    within(10, main())


def test_a_cancelled_body_stays_cancelled_with_the_failure_as_a_note() -> None:
    async def main() -> None:
        notes: list[str] = []

        async def body() -> None:
            try:
                async with start(
                    alone(Calls(failing(ValueError("bad")))), dead_letters=lambda _: None
                ) as running:
                    await running.send(Job())
                    await asyncio.sleep(60)
            except asyncio.CancelledError as cancelled:
                notes.extend(cancelled.__notes__)
                raise

        task = asyncio.ensure_future(body())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert "ValueError: bad" in notes[0]

    within(10, main())


def test_a_cancellation_while_leaving_has_the_failure_as_a_note() -> None:
    async def main() -> None:
        second = Awaits(lambda ctx, message: asyncio.sleep(60))
        notes: list[str] = []

        async def body() -> None:
            try:
                app = pair(Calls(failing(ValueError("bad"))), second)
                async with start(app, dead_letters=lambda _: None) as running:
                    await running.send(Note())
                    await until(lambda: second.begun)
                    await running.send(Job())
                    await turns()
            except asyncio.CancelledError as cancelled:
                notes.extend(cancelled.__notes__)
                raise

        task = asyncio.ensure_future(body())
        await until(lambda: second.begun)
        await turns(100)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert "ValueError: bad" in notes[0]

    within(10, main())


def test_a_time_limit_around_a_failing_orchestra_times_out_with_the_failure_as_a_note() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError) as timeout:
            async with asyncio.timeout(0.02):
                async with start(
                    alone(Calls(failing(ValueError("bad")))), dead_letters=lambda _: None
                ) as running:
                    await running.send(Job())
                    await asyncio.sleep(60)
        assert "ValueError: bad" in timeout.value.__cause__.__notes__[0]

    within(10, main())


def test_a_subsystem_that_ends_early_with_an_error_ends_the_run_call() -> None:
    async def die(ctx: Any) -> None:
        await asyncio.sleep(0.01)
        raise ValueError("dead")

    with pytest.raises(OrchestraError, match="'first' of Pair failed: ValueError: dead"):
        run(pair(Runs(die), Gated()))


def test_the_last_message_that_run_received_is_dead_lettered_when_it_fails() -> None:
    async def live(ctx: Any) -> None:
        async for item in ctx:
            if item.n == 1:
                raise ValueError

    letters: list[DeadLetter] = []
    within(10, outcome(alone(Runs(live)), Job(0), Job(1), Job(2), letters=letters))
    assert told(letters) == [(Job(1), "worker", "failed"), (Job(2), "worker", "stopped")]


def test_a_failure_between_two_receives_buries_the_received_message_only() -> None:
    async def live(ctx: Any) -> None:
        await ctx.recv()
        assert ctx.try_recv() is None
        raise ValueError

    letters: list[DeadLetter] = []
    within(10, outcome(alone(Runs(live)), Job(0), letters=letters))
    assert letters == []


@pytest.mark.parametrize(
    "error", [StopIteration("x"), StopAsyncIteration(), GeneratorExit(), asyncio.CancelledError()]
)
@pytest.mark.parametrize("kind", [Calls, Awaits, Runs])
def test_odd_errors_are_failures_as_well(kind: type, error: BaseException) -> None:
    async def fail(ctx: Any, message: Any = None) -> None:
        raise error

    worker = Calls(failing(error)) if kind is Calls else kind(fail)

    async def main() -> None:
        found = await outcome(pair(worker, Collects()), Job())
        assert isinstance(found, OrchestraError), found
        assert "'first' of Pair failed" in str(found)

    within(10, main())


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("style", [Calls, Awaits, Runs])
def test_an_interrupt_in_a_handler_ends_the_program_after_a_stop(
    style: type, kind: type[BaseException]
) -> None:
    async def fail(ctx: Any, message: Any = None) -> None:
        if style is Runs:
            await ctx.recv()
        raise kind("now")

    other = Calls()
    app = pair(Calls(failing(kind("now"))) if style is Calls else style(fail), other)

    async def main(running: Any) -> None:
        await running.send(Job())
        await running.wait()

    async def program() -> None:
        async with start(app, dead_letters=lambda _: None) as running:
            await main(running)

    for call in (lambda: asyncio.run(program()), lambda: run(app, main, dead_letters=lambda _: None)):
        other.hooks.clear()
        with pytest.raises(kind, match="now"):
            call()
        assert other.hooks == ["started", "stopped"]


def test_a_group_of_errors_is_a_failure_with_all_of_them() -> None:
    async def fail(ctx: Any) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.send(Note()))
            group.create_task(asyncio.sleep(0, Closed("own", None, "first")))

            async def die() -> None:
                raise ValueError("inner")

            group.create_task(die())

    error = within(10, outcome(pair(Runs(fail), Collects())))
    assert isinstance(error, OrchestraError)
    assert isinstance(error.__cause__, ExceptionGroup)


def test_a_subsystem_that_is_cancelled_by_somebody_else_is_a_failure() -> None:
    async def cancelled(ctx: Any) -> None:
        asyncio.current_task().cancel()
        await asyncio.sleep(60)

    error = within(10, outcome(pair(Runs(cancelled), Collects())))
    assert "'first' of Pair failed: CancelledError" in str(error)


# subclass instances


class Base(Actor):
    def __init__(self) -> None:
        self.got: list[Any] = []

    def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(("base", message))


class Child(Base):
    """Has more hooks, and an asynchronous handler of its own."""

    async def started(self, ctx: Any) -> None:
        self.got.append("started")

    @handles(Job)
    async def on_job(self, ctx: Any, message: Job) -> None:
        await asyncio.sleep(0)
        self.got.append(("child", message))

    def on_signal(self, ctx: Any, signal: Any) -> None:
        self.got.append(signal)


def test_the_dispatch_is_generated_anew_for_an_instance_of_a_subclass() -> None:
    @orchestra(signal=Bell, event=Knock)
    class Field:
        worker: Base = subsystem(consumes=Job | Note)

    async def main() -> None:
        for worker, expected in (
            (Base(), [("base", Job(1)), ("base", Note(2))]),
            (Child(), ["started", Bell(), ("child", Job(1)), ("base", Note(2))]),
            (Base(), [("base", Job(1)), ("base", Note(2))]),
        ):
            async with start(Field(worker=worker)) as running:
                await running.broadcast(Bell())
                await running.send(Job(1))
                await running.send(Note(2))
                await running.drain()
            assert worker.got == expected

    within(10, main())


def test_an_instance_of_something_else_is_refused_at_the_start() -> None:
    @orchestra(signal=Bell, event=Knock)
    class Field:
        worker: Base = subsystem(consumes=Job)

    async def main() -> None:
        for wrong in (object(), Collects(), Base):
            with pytest.raises(TypeError, match="worker"):
                async with start(Field(worker=wrong)):
                    pass
        with pytest.raises(TypeError, match="instance"):
            async with start(Field):
                pass

    within(10, main())


def test_a_subclass_of_a_run_subsystem_is_taken_as_it_is() -> None:
    class Plain(Subsystem):
        async def run(self, ctx: Any) -> None:
            raise AssertionError

    class Better(Plain):
        async def run(self, ctx: Any) -> None:
            self.got = [item async for item in ctx]

    @orchestra(signal=Bell, event=Knock)
    class Field:
        worker: Plain = subsystem(consumes=Job)

    async def main() -> None:
        better = Better()
        async with start(Field(worker=better)) as running:
            await running.send(Job())
            await running.drain()
        assert better.got == [Job()]

    within(10, main())


def test_baggage_and_attrs_subsystems_work() -> None:
    @attrs.define
    class Keeps(Actor):
        got: list[Any] = attrs.Factory(list)

        def handle(self, ctx: Any, message: Any) -> None:
            self.got.append(message)

    async def main() -> None:
        worker = Keeps()
        async with start(alone(worker)) as running:
            await running.send(Job())
            await until(lambda: worker.got)

    within(10, main())
