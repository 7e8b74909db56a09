"""One subsystem alone, under the hand of a test."""

from typing import Any, Never

import msgspec
import pytest

from orchestra import (
    Actor,
    Context,
    Fail,
    OrchestraError,
    Priority,
    Reply,
    Restart,
    Subsystem,
    UndeclaredMessage,
    UndeclaredPriority,
    orchestra,
    subsystem,
)
from orchestra.testing import alone, recorded
from tests.runtime.players import within


class Line(msgspec.Struct, frozen=True):
    text: str


class Count(msgspec.Struct, frozen=True):
    words: int


class Total(msgspec.Struct, frozen=True):
    words: int


class Get(msgspec.Struct):
    key: str
    reply: Reply[int]


class Tick(msgspec.Struct, frozen=True):
    pass


class Flush(msgspec.Struct, frozen=True):
    pass


class Other(msgspec.Struct, frozen=True):
    """A message of somebody else."""


class Reader(Subsystem[Never, Line | Other]):
    async def run(self, ctx: Context[Never, Line | Other, Flush]) -> None:
        raise AssertionError("it is not to run")


class Counter(Actor[Line | Tick, Count | Total | Get | Tick]):
    """Counts words, tells every ten seconds, and asks for what it does not know."""

    def __init__(self) -> None:
        self.words = 0

    def started(self, ctx: Any) -> None:
        ctx.send_every(10, Tick)

    async def handle(self, ctx: Any, message: Line | Tick) -> None:
        match message:
            case Tick():
                await ctx.send(Total(self.words))
            case Line(text="?"):
                self.words += await ctx.ask(lambda reply: Get("words", reply), timeout=3)
            case Line(text="!"):
                raise ValueError("shouted")
            case Line(text=text):
                words = len(text.split())
                self.words += words
                await ctx.send(Count(words), priority=Priority.HIGH if words > 5 else None)

    async def on_signal(self, ctx: Any, signal: Flush) -> None:
        await ctx.send(Total(self.words))


class Totals(Actor[Count | Other, Never]):
    def handle(self, ctx: Any, message: Count | Other) -> None:
        raise AssertionError("it is not to run")


class Store(Actor[Get, Never]):
    def handle(self, ctx: Any, message: Get) -> None:
        raise AssertionError("it is not to run")


@orchestra(signal=Flush, event=Flush, boxed_messages=True, outgoing=Total)
class App:
    reader: Reader = subsystem()
    counter: Counter = subsystem(message_capacity=2, overflow=Fail())
    totals: Totals = subsystem(priorities=[Priority.HIGH, Priority.NORMAL], message_capacity=1)
    store: Store = subsystem()

    async def on_event(self, conductor: Any, event: Flush) -> None: ...


def test_it_gets_messages_and_signals_and_what_it_sends_can_be_looked_at() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            await probe.send(Line("to be"))
            await probe.send(Line("or not"))
            assert await probe.expect(Count) == Count(2)
            probe.signal(Flush())
            assert await probe.expect(Total) == Total(4)
            assert await probe.expect(Count) == Count(2)
            assert probe.sent == [Count(2), Count(2), Total(4)]
            assert [(each.receiver, each.priority) for each in probe.log] == [
                ("totals", Priority.NORMAL),
                ("totals", Priority.NORMAL),
                ("outgoing", Priority.NORMAL),
            ]
            assert probe.meters.received == 2
            assert probe.instance.words == 4
        assert probe.ended

    within(10, main())


def test_levels_are_those_of_the_receivers_that_are_not_there() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            await probe.send(Line("one two three four five six"))
            await probe.expect(Count)
            assert probe.log[0].priority is Priority.HIGH

    within(10, main())


def test_time_stands_still_until_it_is_advanced() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            await probe.advance(9.9)
            assert probe.sent == []
            await probe.advance(0.1)
            assert probe.sent == [Total(0)]
            await probe.advance(3600)
            assert len(probe.sent) == 361
            assert [round(each.time, 6) for each in probe.log[:3]] == [10, 20, 30]
            assert probe.clock.time() == pytest.approx(3610)
            with pytest.raises(ValueError, match="time goes forward"):
                await probe.advance(-1)

    within(10, main())


def test_the_test_answers_what_it_asks() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            await probe.send(Line("?"))
            get = await probe.expect(Get)
            assert get.key == "words"
            assert get.reply.send(7)
            await probe.settle()
            assert probe.instance.words == 7

    within(10, main())


def test_the_time_limit_of_an_ask_goes_by_the_same_clock() -> None:
    async def main() -> None:
        with pytest.raises(OrchestraError, match="did not reply to Get within 3 s"):
            async with alone(App, "counter", Counter()) as probe:
                await probe.send(Line("?"))
                get = await probe.expect(Get)
                await probe.advance(2.9)
                assert not probe.ended
                await probe.advance(0.2)
                assert probe.ended
                assert not get.reply.send(1)

    within(10, main())


def test_a_failure_comes_out_of_expect_and_of_the_block() -> None:
    async def main() -> None:
        with pytest.raises(OrchestraError, match="'counter' of App failed: ValueError: shouted"):
            async with alone(App, "counter", Counter()) as probe:
                await probe.send(Line("!"))
                with pytest.raises(
                    AssertionError, match="'counter' has sent no Count and has ended"
                ) as failed:
                    await probe.expect(Count)
                assert isinstance(failed.value.__cause__, OrchestraError)
                assert [letter.message for letter in probe.letters] == [Line("!")]

    within(10, main())


def test_what_does_not_come_is_told_with_what_came() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            await probe.send(Line("to be"))
            with pytest.raises(AssertionError) as failed:
                await probe.expect(Total, timeout=0.05)
        assert str(failed.value) == (
            "'counter' has sent no Total within 0.05 s; what it sent and nobody expected: Count(words=2); it "
            "waits for a message; time stands still, and await probe.advance(10) brings what is due"
        )

    within(10, main())


def test_what_is_not_for_it_is_refused() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            with pytest.raises(UndeclaredMessage, match="Other goes to 'totals', and only 'counter' is here"):
                await probe.send(Other())
            with pytest.raises(UndeclaredMessage, match="nobody receives it"):
                await probe.send("words")
            with pytest.raises(UndeclaredPriority):
                await probe.send(Line("x"), priority=Priority.HIGH)
            with pytest.raises(TypeError, match="no signal of App"):
                probe.signal(Tick())

    within(10, main())


def test_a_drain_lets_it_finish() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            await probe.send(Line("a b c"))
            await probe.drain()
            assert probe.sent == [Count(3)]

    within(10, main())


class Flaky(Actor[Line, Never]):
    def __init__(self) -> None:
        self.starts = 0

    def started(self, ctx: Any) -> None:
        self.starts += 1

    def handle(self, ctx: Any, message: Line) -> None:
        if message.text == "!":
            raise ValueError("shouted")


@orchestra(signal=Flush, event=Flush)
class Restarting:
    flaky: Flaky = subsystem(restart=Restart(backoff=60))


def test_a_backoff_goes_by_the_same_clock() -> None:
    async def main() -> None:
        async with alone(Restarting, "flaky", Flaky()) as probe:
            await probe.send(Line("!"))
            await probe.advance(59)
            assert probe.instance.starts == 1
            await probe.advance(2)
            assert probe.instance.starts == 2

    within(10, main())


class Drains(Subsystem[Line, Count]):
    async def run(self, ctx: Context[Line, Count, Flush]) -> None:
        async for item in ctx:
            if isinstance(item, Line):
                await ctx.send(Count(len(item.text)))


@orchestra(signal=Flush, event=Flush)
class Running:
    drains: Drains = subsystem()
    totals: Totals = subsystem(consumes=Count | Other)
    later: Reader = subsystem(wip=True, sends=[Line, Other])


def test_a_subsystem_with_a_run_works_as_well() -> None:
    async def main() -> None:
        async with alone(Running, "drains", Drains()) as probe:
            for text in ("a", "bb", "ccc"):
                await probe.send(Line(text))
            await probe.drain()
            assert probe.sent == [Count(1), Count(2), Count(3)]

    within(10, main())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            (App, "teller", Counter()),
            "App has no subsystem 'teller'; it has 'reader', 'counter', 'totals' and",
        ),
        (
            (App(reader=Reader(), counter=Counter(), totals=Totals(), store=Store()), "counter", Counter()),
            "alone takes the orchestra class, App, not an instance of it",
        ),
        ((App, "counter", recorded), "App.counter holds a function, and Counter is declared"),
        ((App, "counter", Counter), r"App.counter holds the class Counter: give an instance, Counter\(...\)"),
        ((App, "counter", Drains()), "App.counter holds a Drains, and Counter is declared"),
        ((Running, "later", Reader()), "Running.later is declared with wip=True: take that away to run it"),
    ],
)
def test_mistakes_are_told(arguments: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        alone(*arguments)
