"""Other subsystems in an orchestra, and subsystems that note down what they do."""

from typing import Any, Never

import msgspec
import pytest

from orchestra import (
    Actor,
    Context,
    DeclarationError,
    Priority,
    Subsystem,
    deferred,
    orchestra,
    start,
    subsystem,
)
from orchestra.testing import recorded, replace
from tests.runtime.players import within


class Line(msgspec.Struct, frozen=True):
    text: str


class Count(msgspec.Struct, frozen=True):
    words: int


class Halt(msgspec.Struct, frozen=True):
    pass


class Reader(Subsystem[Never, Line]):
    async def run(self, ctx: Context[Never, Line, Halt]) -> None:
        for text in ("to be", "or not to be"):
            await ctx.send(Line(text))
        await ctx.recv()


class Counter(Actor[Line, Count]):
    @staticmethod
    def priority(message: Line) -> Priority:
        return Priority.NORMAL

    def started(self, ctx: Any) -> None: ...

    def handle(self, ctx: Context[Line, Count, Halt], message: Line) -> None:
        ctx.try_send(Count(len(message.text.split())))


class Totals(Subsystem[Count, Never]):
    def __init__(self) -> None:
        self.words = 0

    @staticmethod
    def priority(message: Count) -> Priority:
        return Priority.HIGH

    async def run(self, ctx: Context[Count, Never, Halt]) -> None:
        async for item in ctx:
            if isinstance(item, Count):
                self.words += item.words


class Deaf(Actor):
    """Has no handler."""


class FakeCounter(Actor[Line, Count]):
    def handle(self, ctx: Context[Line, Count, Halt], message: Line) -> None:
        ctx.try_send(Count(100))


@orchestra(signal=Halt, event=Halt)
class App:
    reader: Reader = subsystem()
    counter: Counter = subsystem()
    totals: Totals = subsystem(message_capacity={Priority.HIGH: 8})
    later: Reader = subsystem(wip=True)
    title: str = "words"


def app() -> App:
    return App(reader=Reader(), counter=Counter(), totals=Totals(), title="other words")


async def play(app: App) -> None:
    async with start(app) as running:
        await running.broadcast(Halt())
        await running.drain()


def test_a_replaced_subsystem_stands_where_the_other_stood() -> None:
    real = app()
    fake = replace(real, counter=FakeCounter())
    within(10, play(fake))
    assert fake.totals.words == 200
    assert fake.title == "other words"
    assert fake.reader is real.reader
    assert isinstance(real.counter, Counter)


def test_what_is_deferred_can_be_put_in_too() -> None:
    made: list[FakeCounter] = []

    def make() -> FakeCounter:
        made.append(FakeCounter())
        return made[-1]

    fake = replace(app(), counter=deferred(make))
    assert made == []
    within(10, play(fake))
    assert (len(made), fake.totals.words) == (1, 200)


def test_what_an_instance_was_given_later_is_kept() -> None:
    real = app()
    real.title = "later"
    real.extra = 5  # type: ignore[attr-defined]  # Python lets it
    other = replace(real, counter=FakeCounter())
    assert (other.title, other.extra) == ("later", 5)  # type: ignore[attr-defined]  # as above
    assert isinstance(real.counter, Counter)


def test_baggage_can_be_replaced_too() -> None:
    assert replace(app(), title="new").title == "new"


def test_a_recorded_subsystem_does_the_same_and_shows_it() -> None:
    reader, counter, totals = recorded(Reader()), recorded(Counter()), recorded(Totals())
    within(10, play(replace(app(), reader=reader, counter=counter, totals=totals)))
    lines, counts = [Line("to be"), Line("or not to be")], [Count(2), Count(4)]
    assert reader.sent == lines
    assert reader.received == [Halt()]
    assert counter.received in ([Halt(), *lines], [lines[0], Halt(), lines[1]], [*lines, Halt()])
    assert counter.sent == counts
    assert counter.hooks == ["started", "stopped"]
    assert [item for item in totals.received if isinstance(item, Count)] == counts
    assert totals.inner.words == 6


def test_mistakes_are_told() -> None:
    with pytest.raises(
        TypeError, match="App has no field 'teller' to replace; it has reader, counter, totals"
    ):
        replace(app(), teller=Counter())
    with pytest.raises(TypeError, match=r"App\.counter needs an instance of Subsystem or Actor, not Counter"):
        replace(app(), counter=Counter)
    with pytest.raises(TypeError, match="recorded takes an instance of Subsystem or Actor, not Counter"):
        recorded(Counter)
    with pytest.raises(TypeError, match=r"recorded takes an instance, .* write deferred\(lambda: recorded"):
        recorded(deferred(Counter))
    with pytest.raises(TypeError, match=r"App\.later is declared with wip=True: there is nothing to replace"):
        replace(app(), later=Reader())
    with pytest.raises(
        TypeError, match=r"replace takes an instance: replace\(App\(\.\.\.\), \.\.\.\), not the class"
    ):
        replace(App, counter=Counter())
    with pytest.raises(
        TypeError, match=r"App\.counter holds a Totals, and Counter is declared, so it must be of Actor"
    ):
        replace(app(), counter=Totals())
    with pytest.raises(DeclarationError, match="Deaf"):
        replace(app(), counter=Deaf())
