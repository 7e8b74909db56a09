"""Errors at run time that say what is the matter and what would be right, word for word."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Never

import pytest

from orchestra import (
    Actor,
    Closed,
    Conductor,
    Context,
    NoReply,
    OrchestraError,
    Priority,
    Reply,
    Subsystem,
    UndeclaredPriority,
    orchestra,
    run,
    start,
    subsystem,
)


class Job: ...


class Halt: ...


class Odd: ...


class Ev: ...


class Ask:
    def __init__(self, reply: "Reply[int] | None") -> None:
        self.reply = reply


class Worker(Actor[Job | Ask, Never]):
    def handle(self, ctx: Context[Job | Ask, Never, Halt], message: Job | Ask) -> None: ...


@orchestra(signal=Halt, event=Ev)
class App:
    worker: Worker = subsystem()

    async def on_event(self, conductor: Conductor[Halt], event: Ev) -> None: ...


async def _told(action: Callable[[Any], Awaitable[object]], kind: type[BaseException]) -> str:
    """What `action` is told of a running App."""
    async with start(App(worker=Worker())) as running:
        with pytest.raises(kind) as caught:
            await action(running)
        return str(caught.value)


# why a receiver takes no more messages


class Returns(Subsystem[Job, Never]):
    async def run(self, ctx: Context[Job, Never, Halt]) -> None:
        await ctx.recv()


class Finishes(Subsystem[Job, Never]):
    async def run(self, ctx: Context[Job, Never, Halt]) -> None:
        await ctx.recv()
        ctx.finish()


class Once(Actor[Job, Never]):
    def handle(self, ctx: Context[Job, Never, Halt], message: Job) -> None:
        ctx.finish()


class Stays(Actor[Odd, Never]):
    def handle(self, ctx: Context[Odd, Never, Halt], message: Odd) -> None: ...


@pytest.mark.parametrize(
    ("kind", "blocking", "why"),
    [
        (Returns, False, "its run has returned"),
        (Finishes, False, "it has called ctx.finish()"),
        (Once, False, "it has called ctx.finish()"),
        (Once, True, "it has called ctx.finish()"),
    ],
)
def test_a_receiver_that_ended_by_itself_says_how(kind: Any, blocking: bool, why: str) -> None:
    @orchestra(signal=Halt, event=Halt)
    class Two:
        ends: kind = subsystem(blocking=blocking)
        stays: Stays = subsystem()

    async def main() -> str:
        async with start(Two(ends=kind(), stays=Stays()), dead_letters=lambda letter: None) as running:
            while True:
                try:
                    await running.send(Job())
                except Closed as closed:
                    return str(closed)
                await asyncio.sleep(0)

    assert asyncio.run(main()) == f"'ends' takes no more messages, since {why}"


@pytest.mark.parametrize(
    ("fails", "why"), [(False, "the orchestra stops"), (True, "the orchestra has failed")]
)
def test_a_receiver_in_a_stop_says_so(fails: bool, why: str) -> None:
    class Late(Subsystem[Never, Job]):
        async def run(self, ctx: Context[Never, Job, Halt]) -> None:
            while not ctx.closed:
                await asyncio.sleep(0)
            try:
                while True:
                    ctx.try_send(Job())
            except Closed as closed:
                told.append(str(closed))

    class Fails(Actor[Job, Never]):
        def handle(self, ctx: Context[Job, Never, Halt], message: Job) -> None:
            if fails:
                raise ZeroDivisionError

    @orchestra(signal=Halt, event=Halt, message_capacity=2)
    class Two:
        late: Late = subsystem()
        sink: Fails = subsystem()

    told: list[str] = []

    async def main() -> None:
        async with start(Two(late=Late(), sink=Fails()), dead_letters=lambda letter: None) as running:
            await running.send(Job())
            await asyncio.sleep(0.01)

    if fails:
        with pytest.raises(OrchestraError):
            asyncio.run(main())
    else:
        asyncio.run(main())
    assert told == [f"'sink' takes no more messages, since {why}"]


# levels


def test_a_priority_that_returns_none_is_named() -> None:
    class Forgets(Actor[Job, Never]):
        @staticmethod
        def priority(message: Job) -> Priority:
            return None  # type: ignore[return-value]  # the mistake

        def handle(self, ctx: Context[Job, Never, Halt], message: Job) -> None: ...

    @orchestra(signal=Halt, event=Halt)
    class One:
        forgets: Forgets = subsystem()

    async def main() -> str:
        async with start(One(forgets=Forgets())) as running:
            with pytest.raises(UndeclaredPriority) as caught:
                await running.send(Job())
            return str(caught.value)

    assert asyncio.run(main()).endswith(
        "Forgets.priority returned None for Job: let it return a Priority, such as Priority.NORMAL"
    )


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("high", "Priority.HIGH"),
        (8, "a level, such as Priority.HIGH"),
        ("soon", "a level, such as Priority.HIGH"),
    ],
)
def test_what_is_no_priority_is_told_which_one_it_may_be(given: Any, right: str) -> None:
    told = asyncio.run(_told(lambda running: running.send(Job(), priority=given), UndeclaredPriority))
    assert told == f"'worker' has no lane {given!r}, for that is no Priority: give {right}"


# verbs of running


def test_running_in_another_thread_is_told_of_threadsafe() -> None:
    async def elsewhere(running: Any) -> None:
        def work() -> None:
            threading.current_thread().name = "mine"
            running.try_send(Job())

        await asyncio.to_thread(work)

    told = asyncio.run(_told(elsewhere, RuntimeError))
    assert told == (
        "<running App: open> belongs to the thread of its event loop, and this is 'mine': "
        "use running.threadsafe()"
    )


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (lambda running: running.broadcast(Halt), "Halt is the class itself: give an instance, Halt(...)"),
        (
            lambda running: running.broadcast(Ev()),
            "Ev is no signal of App; its signals are Halt. It is an event: use running.event(...)",
        ),
        (lambda running: running.broadcast(Odd()), "Odd is no signal of App; its signals are Halt"),
        (lambda running: running.event(Ev), "Ev is the class itself: give an instance, Ev(...)"),
        (
            lambda running: running.event(Halt()),
            "Halt is no event of App; its events are Ev. It is a signal: use running.broadcast(...)",
        ),
    ],
)
def test_a_signal_and_an_event_are_told_apart(action: Callable[[Any], Awaitable[object]], text: str) -> None:
    assert asyncio.run(_told(action, TypeError)) == text


def test_a_message_that_does_not_hold_the_reply_is_told_to() -> None:
    told = asyncio.run(_told(lambda running: running.ask(lambda reply: Ask(None)), NoReply))
    assert told == (
        "no reply to Ask from 'worker': the message does not hold the reply that it was made with: "
        "write ask(lambda reply: Request(..., reply))"
    )


# starting


def test_a_main_without_a_parameter_is_told_to_take_one() -> None:
    async def main() -> None: ...

    with pytest.raises(TypeError) as caught:
        run(App(worker=Worker()), main)  # type: ignore[arg-type]  # the mistake
    assert str(caught.value) == "main cannot be called with the running alone: write async def main(running)"


def test_start_is_told_to_be_entered_by_async_with() -> None:
    async def main() -> None:
        starting: Any = start(App(worker=Worker()))
        with pytest.raises(TypeError) as caught:
            with starting:
                pass
        assert str(caught.value) == "nothing runs yet: write `async with start(app) as running`"
        with pytest.raises(TypeError, match="nothing runs yet: write `async with start"):
            await starting
        with pytest.raises(AttributeError) as lacks:
            starting.send(Job())
        assert str(lacks.value) == (
            "'Starting' object has no attribute 'send': write `async with start(app) as running`"
        )

    asyncio.run(main())


# receiving


@pytest.mark.parametrize("actor", [False, True])
def test_a_for_over_an_asynchronous_context_is_told_to_be_async(actor: bool) -> None:
    class Runs(Subsystem[Job, Never]):
        async def run(self, ctx: Any) -> None:
            for _ in ctx:
                pass

    class Acts(Actor[Job, Never]):
        def handle(self, ctx: Any, message: Job) -> None:
            for _ in ctx:
                pass

    kind: Any = Acts if actor else Runs

    @orchestra(signal=Halt, event=Halt)
    class One:
        it: kind = subsystem()

    async def main() -> None:
        async with start(One(it=kind()), dead_letters=lambda letter: None) as running:
            await running.send(Job())
            await running.wait()

    with pytest.raises(OrchestraError) as caught:
        asyncio.run(main())
    assert str(caught.value.__cause__) == (
        "'it' is an Actor: its messages and signals come to its methods"
        if actor
        else "'it' receives asynchronously: write `async for message in ctx`"
    )


def test_a_for_over_outgoing_is_told_to_be_async() -> None:
    class Out(Actor[Job, Ev]):
        def handle(self, ctx: Context[Job, Ev, Halt], message: Job) -> None: ...

    @orchestra(signal=Halt, event=Halt, outgoing=Ev)
    class One:
        out: Out = subsystem()

    async def main() -> None:
        async with start(One(out=Out())) as running:
            outgoing: Any = running.outgoing
            with pytest.raises(TypeError) as caught:
                list(outgoing)
            assert str(caught.value) == (
                "what goes out comes asynchronously: write `async for message in running.outgoing`"
            )

    asyncio.run(main())


def test_a_run_that_waits_for_room_with_itself_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Own(Subsystem[Job, Job]):
        async def run(self, ctx: Context[Job, Job, Halt]) -> None:
            while True:
                await ctx.send(Job())

    @orchestra(signal=Halt, event=Halt, message_capacity=2)
    class One:
        own: Own = subsystem()

    async def main() -> None:
        async with start(One(own=Own()), dead_letters=lambda letter: None) as running:
            await asyncio.sleep(0.05)
            await running.stop(timeout=0)

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert (
        "nothing moves any more: 'own' sends to itself, and waits for room in the DATA lane of 'own', "
        "from which nobody else takes"
    ) in caplog.messages


def test_a_receiver_to_which_nothing_more_could_come_says_so() -> None:
    class Lends(Actor[Job, Never]):
        def started(self, ctx: Context[Job, Never, Halt]) -> None:
            kept.append(ctx.recipient(Job))

        def handle(self, ctx: Context[Job, Never, Halt], message: Job) -> None: ...

    class Slow(Actor[Odd, Never]):
        async def handle(self, ctx: Context[Odd, Never, Halt], message: Odd) -> None:
            await asyncio.sleep(0.05)
            try:
                await kept[0].send(Job())
            except Closed as closed:
                told.append(str(closed))

    @orchestra(signal=Halt, event=Halt)
    class Two:
        lends: Lends = subsystem()
        slow: Slow = subsystem()

    kept: list[Any] = []
    told: list[str] = []

    async def main() -> None:
        async with start(Two(lends=Lends(), slow=Slow())) as running:
            await running.send(Odd())
            await running.drain()

    asyncio.run(main())
    assert told == ["'lends' takes no more messages, since nothing more could come to it"]
