"""Mistakes at `start`, `run` and at a send: one clear error that says what would be right."""

import asyncio
import math
import re
from typing import Any, Never

import pytest

from orchestra import (
    Actor,
    Closed,
    Context,
    DeclarationError,
    Drop,
    OrchestraError,
    Subsystem,
    UndeclaredMessage,
    UndeclaredOverflow,
    Wrapper,
    orchestra,
    run,
    start,
    subsystem,
)
from orchestra.link import ZenohLink
from orchestra.testing import alone


class Job: ...


class Halt: ...


class Result: ...


class Worker(Actor[Job, Result]):
    def handle(self, ctx: Context[Job, Result, Halt], message: Job) -> None: ...


@orchestra(signal=Halt, event=Halt, outgoing=Result)
class App:
    worker: Worker = subsystem()


class Ticker(Subsystem[Never, Job]):
    def __init__(self) -> None:
        self.sent = 0

    async def run(self, ctx: Context[Never, Job, Halt]) -> None:
        while not ctx.closed:
            self.sent += 1
            await ctx.send(Job())
            await asyncio.sleep(0.001)


class Sink(Actor[Job, Never]):
    def handle(self, ctx: Context[Job, Never, Halt], message: Job) -> None: ...


@orchestra(signal=Halt, event=Halt)
class Ticking:
    ticker: Ticker = subsystem()
    sink: Sink = subsystem()


def _refused_send(message: Any) -> str:
    async def main() -> str:
        async with start(App(worker=Worker())) as running:
            with pytest.raises(UndeclaredMessage) as caught:
                await running.send(message)
            return str(caught.value)

    return asyncio.run(main())


def test_a_signal_that_is_sent_is_told_to_be_broadcast() -> None:
    assert _refused_send(Halt()) == (
        "Halt cannot be sent: it is a signal, which the conductor or running.broadcast(...) sends"
    )


def test_a_class_that_is_sent_is_told_to_be_an_instance() -> None:
    assert _refused_send(Job) == "type cannot be sent: it is the class Job itself: send an instance"


@pytest.mark.parametrize("wrapped", [False, True])
def test_one_instance_in_two_fields_is_refused(wrapped: bool) -> None:
    class Around(Wrapper[Job, Never]): ...

    class Each(Actor):
        def handle(self, ctx: Context[Job, Never, Halt], message: Job) -> None: ...

    sink = Each()

    @orchestra(signal=Halt, event=Halt)
    class Both:
        one: Each = subsystem(subscribes=[Job])
        other: Each = subsystem(subscribes=[Job])

    async def main() -> None:
        async with start(Both(one=sink, other=Around(sink) if wrapped else sink)):
            pass

    with pytest.raises(TypeError) as caught:
        asyncio.run(main())
    assert str(caught.value) == "Both.one and Both.other hold the same Each: give each an instance of its own"


def test_an_actor_that_would_wait_for_itself_is_told_so() -> None:
    class Echo(Actor[Job, Job]):
        async def handle(self, ctx: Context[Job, Job, Halt], message: Job) -> None:
            for _ in range(3):
                await ctx.send(Job())

    @orchestra(signal=Halt, event=Halt, message_capacity=2)
    class Alone:
        echo: Echo = subsystem()

    async def main() -> None:
        async with start(Alone(echo=Echo())) as running:
            await running.send(Job())
            await running.drain()

    with pytest.raises(OrchestraError) as caught:
        asyncio.run(main())
    assert str(caught.value).endswith(
        "the DATA lane of 'echo' is full: 'echo' sends to itself and would wait for ever; "
        "give the lane more room, or a policy that drops"
    )


def test_a_class_in_a_field_is_told_to_be_an_instance() -> None:
    async def main() -> None:
        async with start(App(worker=Worker)):  # type: ignore[arg-type]  # the mistake
            pass

    with pytest.raises(TypeError) as caught:
        asyncio.run(main())
    assert str(caught.value) == "App.worker holds the class Worker: give an instance, Worker(...)"


def test_run_without_main_refuses_an_orchestra_whose_outgoing_nobody_would_read() -> None:
    with pytest.raises(TypeError) as caught:
        run(App(worker=Worker()))
    assert str(caught.value) == (
        "App sends Result out, and without main nobody reads it: "
        "give async def main(running), which reads running.outgoing"
    )


def test_run_refuses_a_main_that_was_called() -> None:
    async def main(running: object) -> None: ...

    with pytest.raises(TypeError) as caught:
        run(Ticking(ticker=Ticker(), sink=Sink()), main(None))  # type: ignore[call-overload]  # the mistake
    assert str(caught.value).startswith("main is a coroutine: give the function itself")


def test_run_refuses_a_main_that_cannot_be_awaited() -> None:
    with pytest.raises(TypeError) as caught:
        run(Ticking(ticker=Ticker(), sink=Sink()), lambda running: None)  # type: ignore[arg-type,return-value]  # the mistake
    assert str(caught.value) == "main gave None, which cannot be awaited: write async def main(running)"


def test_a_source_that_looks_at_closed_goes_on_until_the_stop() -> None:
    app = Ticking(ticker=Ticker(), sink=Sink())

    async def main() -> float:
        loop = asyncio.get_running_loop()
        async with start(app) as running:
            draining = asyncio.ensure_future(running.drain())
            while app.ticker.sent < 5:
                await asyncio.sleep(0.001)
            began = loop.time()
            await running.stop()
            await draining
            return loop.time() - began

    assert asyncio.run(main()) < 2


@pytest.mark.parametrize(
    ("hook", "example"),
    [
        ("dead_letters", "letters.append"),
        ("on_congestion", "changes.append"),
        ("on_gridlock", "gridlocks.append"),
    ],
)
def test_a_hook_that_is_no_function_is_refused_at_once(hook: str, example: str) -> None:
    given: dict[str, Any] = {hook: []}
    for begin in (start, run):
        with pytest.raises(TypeError) as caught:
            begin(Ticking(ticker=Ticker(), sink=Sink()), **given)
        assert str(caught.value) == f"{hook} is []: give a function, such as {example}"


def test_a_hook_that_counts_as_false_is_one() -> None:
    class Letters(list[Any]):
        __call__ = list.append

    async def main() -> Letters:
        letters = Letters()
        async with start(Ticking(ticker=Ticker(), sink=Sink()), dead_letters=letters) as running:
            assert await running.send(Job())
            await running.stop()
        return letters

    assert [type(letter.message) for letter in asyncio.run(main())] == [Job]


@pytest.mark.parametrize(
    ("app", "text"),
    [
        (Ticking, "takes an instance: Ticking(...), not the class"),
        (None, "takes an instance of a class with @orchestra, and None is none"),
        (3, "takes an instance of a class with @orchestra, and 3 is none"),
    ],
)
def test_what_is_no_instance_of_an_orchestra_is_refused(app: Any, text: str) -> None:
    async def main() -> None:
        async with start(app):
            pass

    with pytest.raises(TypeError) as caught:
        asyncio.run(main())
    assert str(caught.value) == f"start {text}"
    with pytest.raises(TypeError) as caught:
        run(app)
    assert str(caught.value) == f"run {text}"


def test_alone_refuses_a_class_that_is_no_orchestra() -> None:
    with pytest.raises(DeclarationError) as caught:
        alone(Sink, "sink", Sink())
    assert str(caught.value) == (
        "Sink is no orchestra: alone takes a class with @orchestra, then the name of a field of it, "
        "then the subsystem to put there"
    )


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ("5", TypeError, "'5'; it is a number of seconds"),
        (True, TypeError, "True; it is a number of seconds"),
        (math.nan, ValueError, "nan s; it is a finite number of seconds"),
        (-1, ValueError, "-1 s; it is 0 seconds or more"),
    ],
)
def test_what_is_no_limit_of_time_is_refused_before_anything_is_done(
    given: Any, error: type[Exception], told: str
) -> None:
    app = Ticking(ticker=Ticker(), sink=Sink())

    def refused(verb: str) -> Any:
        return pytest.raises(error, match=rf"^the timeout of {verb} is {re.escape(told)}$")

    async def main() -> None:
        async with start(app) as running:
            handle = running.threadsafe()
            with refused("stop"):
                await running.stop(given)
            with refused("drain"):
                await running.drain(given)
            with refused("broadcast"):
                await running.broadcast(Halt(), given)
            with refused("stop"):
                await asyncio.to_thread(handle.stop, given)
            with refused("drain"):
                await asyncio.to_thread(handle.drain, given)
            with refused("broadcast"):
                await asyncio.to_thread(handle.broadcast, Halt(), given)
            assert await running.send(Job())

    asyncio.run(main())
    with refused("run"):
        run(app, timeout=given)


def test_a_limit_of_time_may_be_infinite() -> None:
    async def main() -> None:
        async with start(Ticking(ticker=Ticker(), sink=Sink())) as running:
            await running.broadcast(Halt(), math.inf)
            draining = asyncio.ensure_future(running.drain(math.inf))
            await asyncio.sleep(0)
            await running.stop(math.inf)
            await draining

    asyncio.run(main())


def test_a_thread_is_told_at_once_that_its_limit_is_none() -> None:
    async def main() -> None:
        async with start(Ticking(ticker=Ticker(), sink=Sink())) as running:
            send: Any = running.threadsafe().send
            with pytest.raises(TypeError, match=r"^the timeout is '5'; it is a number of seconds$"):
                await asyncio.to_thread(send, Job(), timeout="5")

    asyncio.run(main())


class Urgent(Job): ...


class Note: ...


class OfNote(Actor[Note, Never]):
    def handle(self, ctx: Any, message: Any) -> None: ...


class OfMore(Actor[Note | Job, Never]):
    def handle(self, ctx: Any, message: Any) -> None: ...


class OfNothingSaid(Actor):
    def handle(self, ctx: Any, message: Any) -> None: ...


class Runs(Subsystem):
    async def run(self, ctx: Any) -> None: ...


class RunsNotes(Subsystem[Note, Never]):
    async def run(self, ctx: Any) -> None: ...


@orchestra(signal=Halt, event=Halt)
class Fields:
    worker: Actor[Urgent, Any] = subsystem()
    source: Runs = subsystem(subscribes=[Job])
    sink: Actor = subsystem(consumes=Note)


@pytest.mark.parametrize(
    ("field", "given", "text"),
    [
        (
            "worker",
            OfNote(),
            (
                "Fields.worker consumes Urgent, and OfNote is an Actor of Note: give an instance that "
                "receives Urgent, or name that in the base of OfNote"
            ),
        ),
        (
            "source",
            RunsNotes(),
            (
                "Fields.source subscribes to Job, and RunsNotes is a Subsystem of Note: give an instance "
                "that receives Job, or name that in the base of RunsNotes"
            ),
        ),
    ],
)
def test_an_instance_whose_base_names_other_messages_is_refused(field: str, given: Any, text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        alone(Fields, field, given)
    told, _, place = str(caught.value).rpartition(", at ")
    assert told == text
    assert place.startswith(__file__)


@pytest.mark.parametrize("given", [Sink(), OfMore(), OfNothingSaid()], ids=["base", "more", "nothing"])
def test_an_instance_may_name_more_or_a_base_class_or_nothing(given: Any) -> None:
    alone(Fields, "worker", given)


def test_what_is_no_subsystem_in_a_field_is_named() -> None:
    with pytest.raises(TypeError, match=r"^Fields\.sink holds an int, and Actor is declared, so it must be"):
        alone(Fields, "sink", 3)  # type: ignore[type-var]  # the mistake


@pytest.mark.parametrize(
    ("overflow", "text"),
    [
        (Drop, "overflow is the class Drop: give a policy, Drop()"),
        ("drop", "overflow is 'drop': give a policy, such as Drop()"),
    ],
)
def test_what_is_no_policy_at_a_send(overflow: Any, text: str) -> None:
    async def main() -> None:
        async with start(Ticking(ticker=Ticker(), sink=Sink())) as running:
            with pytest.raises(UndeclaredOverflow) as caught:
                await running.send(Job(), overflow=overflow)
            assert str(caught.value) == text

    asyncio.run(main())


def test_a_send_after_the_end_says_that_it_has_ended() -> None:
    async def main() -> None:
        async with start(Ticking(ticker=Ticker(), sink=Sink())) as running:
            await running.stop()
            with pytest.raises(Closed, match=r"^Ticking takes nothing more from outside: it has ended$"):
                await running.send(Job())

    asyncio.run(main())


@pytest.mark.parametrize("link", ["tcp/127.0.0.1:7447", ZenohLink])
def test_a_link_is_no_address_and_no_class(link: Any) -> None:
    with pytest.raises(TypeError, match=r"link is .*: give a ZenohLink, such as ZenohLink\(connect="):
        start(App(worker=Worker()), link=link)
