"""Random failures, restarts, spawned tasks, sends and ends: each message is settled once, in order."""

import asyncio
import random
from collections import Counter
from typing import Any

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra import (
    Actor,
    Closed,
    DeadLetter,
    Full,
    OrchestraError,
    Restart,
    Subsystem,
    deferred,
    orchestra,
    start,
    subsystem,
)
from tests.effort import examples
from tests.runtime.clockwork import run as virtually
from tests.runtime.players import Bell, Knock, turns


@attrs.frozen
class Parcel:
    """A message: who sent it, its place among those of its sender, and what befalls its handler."""

    sender: str
    number: int
    fate: str


class First(Parcel): ...


class Second(Parcel): ...


@attrs.define
class Books:
    """What happened to each parcel."""

    accepted: Counter[Any] = attrs.Factory(Counter)
    refused: Counter[Any] = attrs.Factory(Counter)
    begun: list[Parcel] = attrs.Factory(list)
    done: Counter[Any] = attrs.Factory(Counter)
    living: Counter[str] = attrs.Factory(Counter)
    lives: Counter[str] = attrs.Factory(Counter)

    async def put(self, parcel: Parcel, send: Any) -> None:
        try:
            assert await send(parcel)
            self.accepted[parcel] += 1
        except (Full, Closed) as error:
            assert error.message is parcel
            self.refused[parcel] += 1

    def put_now(self, parcel: Parcel, send: Any) -> None:
        try:
            assert send(parcel)
            self.accepted[parcel] += 1
        except (Full, Closed) as error:
            assert error.message is parcel
            self.refused[parcel] += 1

    def begin(self, parcel: Parcel) -> None:
        self.begun.append(parcel)
        if parcel.fate == "fails":
            raise ValueError(parcel)

    def enter(self, name: str) -> None:
        assert self.living[name] == 0, "old and new overlap"
        self.living[name] += 1
        self.lives[name] += 1


async def doomed(seconds: float) -> None:
    await asyncio.sleep(seconds)
    raise LookupError


class Plays:
    """What all the players have in common."""

    def __init__(self, books: Books, seed: int) -> None:
        self.books = books
        self.naps = random.Random(seed)

    def began(self, ctx: Any) -> None:
        self.books.enter(ctx.name)
        if self.naps.random() < 0.1:
            self.books.living[ctx.name] -= 1
            raise ConnectionError

    def left(self, ctx: Any) -> None:
        self.books.living[ctx.name] -= 1

    def forward(self, ctx: Any, parcel: Parcel) -> None:
        self.books.begin(parcel)
        if parcel.fate == "spawns":
            ctx.spawn(doomed(self.naps.random()))
        if ctx.name == "first" and parcel.fate != "last":
            self.books.put_now(Second(parcel.sender, parcel.number, self.fate()), ctx.try_send)

    def fate(self) -> str:
        return self.naps.choice(["passes"] * 8 + ["fails", "spawns"])


class Plain(Plays, Actor):
    def started(self, ctx: Any) -> None:
        self.began(ctx)

    def stopped(self, ctx: Any) -> None:
        self.left(ctx)

    def handle(self, ctx: Any, message: Any) -> None:
        self.forward(ctx, message)
        self.books.done[message] += 1


class Async(Plays, Actor):
    async def started(self, ctx: Any) -> None:
        await asyncio.sleep(self.naps.random())
        self.began(ctx)

    async def stopped(self, ctx: Any) -> None:
        try:
            await asyncio.sleep(self.naps.random() / 10)
        finally:
            self.left(ctx)

    async def handle(self, ctx: Any, message: Any) -> None:
        self.forward(ctx, message)
        await asyncio.sleep(self.naps.choice([0, 0, 0.01, 0.1]))
        self.books.done[message] += 1


class Loop(Plays, Subsystem):
    async def run(self, ctx: Any) -> None:
        self.began(ctx)
        try:
            async for message in ctx:
                self.forward(ctx, message)
                await asyncio.sleep(self.naps.choice([0, 0, 0.01]))
                self.books.done[message] += 1
        finally:
            self.left(ctx)


WAYS = [Plain, Async, Loop]


@attrs.frozen
class Shape:
    ways: tuple[type, type]
    fresh: tuple[bool, bool]
    capacities: tuple[int, int]
    policies: tuple[Restart, Restart]
    senders: int
    messages: int
    end: str
    after: float
    seed: int


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    def two(strategy: Any) -> Any:
        return draw(st.tuples(strategy, strategy))

    policies = st.builds(
        Restart,
        limit=st.sampled_from([1, 3, 1000]),
        within=st.sampled_from([0.5, 10.0]),
        backoff=st.sampled_from([0.0, 0.05, 1.0]),
    )
    return Shape(
        ways=two(st.sampled_from(WAYS)),
        fresh=two(st.booleans()),
        capacities=two(st.sampled_from([1, 2, 100])),
        policies=two(policies),
        senders=draw(st.integers(1, 3)),
        messages=draw(st.integers(0, 15)),
        end=draw(st.sampled_from(["drain", "stop", "stop now", "leave"])),
        after=draw(st.sampled_from([0.0, 0.02, 0.5, 3.0])),
        seed=draw(st.integers(0, 10_000)),
    )


async def play(shape: Shape, books: Books, letters: list[DeadLetter]) -> Any:
    naps = random.Random(shape.seed)

    @orchestra(signal=Bell, event=Knock)
    class App:
        first: shape.ways[0] = subsystem(
            consumes=First, sends=[Second], message_capacity=shape.capacities[0], restart=shape.policies[0]
        )
        second: shape.ways[1] = subsystem(
            consumes=Second, message_capacity=shape.capacities[1], restart=shape.policies[1]
        )

    def player(place: int) -> Any:
        way, seed = shape.ways[place], shape.seed + place
        if shape.fresh[place]:
            return deferred(lambda: way(books, naps.randrange(1000)))
        return way(books, seed)

    async def send(sender: str) -> None:
        for number in range(shape.messages):
            fate = naps.choice(["passes"] * 7 + ["fails", "spawns", "last"])
            await books.put(First(sender, number, fate), running.send)
            await asyncio.sleep(naps.choice([0, 0, 0.01]))

    app = App(first=player(0), second=player(1))
    failed = False
    try:
        async with start(app, dead_letters=letters.append) as running:
            sending = [asyncio.ensure_future(send(f"sender {n}")) for n in range(shape.senders)]
            await asyncio.sleep(shape.after)
            if shape.end == "drain":
                await running.drain()
            elif shape.end != "leave":
                await running.stop(0.0 if shape.end == "stop now" else 5.0)
    except OrchestraError as error:
        failed = True
        assert isinstance(error.__cause__, (ValueError, LookupError, ConnectionError)), error
    await asyncio.gather(*sending)
    await turns()
    return failed, running.meters()


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shape=shapes())
def test_each_message_is_handled_or_dead_lettered_or_returned_exactly_once(shape: Shape) -> None:
    books, letters = Books(), []
    failed, meters = virtually(play(shape, books, letters))
    buried = Counter(letter.message for letter in letters)
    assert books.done + buried == books.accepted
    assert set(books.accepted.values()) <= {1}
    assert not books.accepted & books.refused
    for kind in (First, Second):
        for sender in {parcel.sender for parcel in books.begun}:
            numbers = [each.number for each in books.begun if (type(each), each.sender) == (kind, sender)]
            assert numbers == sorted(set(numbers)), "out of order, or twice"
    for letter in letters:
        assert letter.reason in {"failed", "stopped", "cancelled", "finished"}
        assert (letter.error is not None) == (letter.reason == "failed")
    if shape.end == "drain" and not failed:
        assert {letter.reason for letter in letters} <= {"failed"}
    for name, each in meters.items():
        assert each.sent == each.received + each.evicted
        assert not each.queued
        assert not each.waiting
        assert books.living[name] == 0
        assert each.restarts in {books.lives[name] - 1, books.lives[name]}, "cancelled as it started, at most"
