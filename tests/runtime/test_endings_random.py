"""Random small orchestras under random traffic: nothing is lost or handled twice, and drains end."""

import asyncio
import importlib.util
import random
import sys
from collections import Counter
from typing import Any

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra import Actor, Closed, DeadLetter, Full, Subsystem, orchestra, start, subsystem
from tests.effort import examples
from tests.runtime.players import Bell, Knock


@attrs.frozen
class Parcel:
    """A message: `hops` is how often it may be sent on; `number` is unique."""

    number: int
    hops: int


KINDS = [type(f"Parcel{n}", (Parcel,), {}) for n in range(5)]


@attrs.define
class Books:
    """What happened to each parcel."""

    handled: Counter[int] = attrs.Factory(Counter)
    accepted: Counter[int] = attrs.Factory(Counter)
    refused: Counter[int] = attrs.Factory(Counter)
    next_number: int = 0

    def make(self, target: int, hops: int) -> Parcel:
        self.next_number += 1
        return KINDS[target](self.next_number, hops)

    def put(self, parcel: Parcel, send: Any) -> None:
        try:
            assert send(parcel) is True
            self.accepted[parcel.number] += 1
        except (Full, Closed) as error:
            assert error.message is parcel
            self.refused[parcel.number] += 1

    async def put_waiting(self, parcel: Parcel, send: Any) -> None:
        try:
            assert await send(parcel) is True
            self.accepted[parcel.number] += 1
        except (Full, Closed) as error:
            assert error.message is parcel
            self.refused[parcel.number] += 1


@attrs.define
class Role:
    """How one subsystem behaves. It sends to `targets`, and waits for room only at those after it."""

    place: int
    targets: list[int]
    books: Books
    naps: random.Random

    def on(self, ctx: Any, parcel: Parcel) -> list[tuple[int, int]]:
        self.books.handled[parcel.number] += 1
        return [(target, parcel.hops - 1) for target in self.targets if parcel.hops]

    async def pass_on(self, ctx: Any, parcel: Parcel) -> None:
        for target, hops in self.on(ctx, parcel):
            if self.naps.random() < 0.3:
                await asyncio.sleep(0)
            made = self.books.make(target, hops)
            if target > self.place:
                await self.books.put_waiting(made, ctx.send)
            else:
                self.books.put(made, ctx.try_send)


class Plain(Actor):
    def __init__(self, role: Role) -> None:
        self.role = role

    def handle(self, ctx: Any, message: Any) -> None:
        for target, hops in self.role.on(ctx, message):
            self.role.books.put(self.role.books.make(target, hops), ctx.try_send)


class Async(Plain):
    async def handle(self, ctx: Any, message: Any) -> None:
        await self.role.pass_on(ctx, message)


class Loop(Subsystem):
    def __init__(self, role: Role) -> None:
        self.role = role

    async def run(self, ctx: Any) -> None:
        async for item in ctx:
            if isinstance(item, Parcel):
                await self.role.pass_on(ctx, item)


class Crowd(Loop):
    """Two tasks receive."""

    async def run(self, ctx: Any) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(super().run(ctx))


class Poll(Loop):
    """Receives under a time limit, over and over."""

    async def run(self, ctx: Any) -> None:
        while True:
            try:
                async with asyncio.timeout(0.0005):
                    item = await ctx.recv()
            except TimeoutError:
                continue
            if isinstance(item, Parcel):
                await self.role.pass_on(ctx, item)


WAYS = [Plain, Async, Loop, Crowd, Poll]


@attrs.frozen
class Shape:
    ways: list[int]
    edges: list[list[int]]
    capacities: list[int]
    traffic: list[tuple[int, int]]
    end: str
    pause: int
    seed: int
    loop: str


LOOPS: dict[str, Any] = {"asyncio": asyncio.SelectorEventLoop}
if sys.version_info >= (3, 12):

    def eager() -> asyncio.AbstractEventLoop:
        loop = asyncio.SelectorEventLoop()
        loop.set_task_factory(asyncio.eager_task_factory)
        return loop

    LOOPS["eager"] = eager
if importlib.util.find_spec("uvloop"):
    import uvloop

    LOOPS["uvloop"] = uvloop.new_event_loop


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    size = draw(st.integers(1, 4))
    places = st.integers(0, size - 1)
    return Shape(
        draw(st.lists(st.integers(0, len(WAYS) - 1), min_size=size, max_size=size)),
        draw(st.lists(st.lists(places, max_size=2, unique=True), min_size=size, max_size=size)),
        draw(st.lists(st.integers(1, 4), min_size=size, max_size=size)),
        draw(st.lists(st.tuples(places, st.integers(0, 3)), max_size=25)),
        draw(st.sampled_from(["drain", "stop", "leave", "drain, then stop", "drain with a limit"])),
        draw(st.integers(0, 12)),
        draw(st.integers(0, 1000)),
        draw(st.sampled_from(sorted(LOOPS))),
    )


def build(shape: Shape, books: Books) -> Any:
    kinds = [WAYS[way] for way in shape.ways]
    body: dict[str, Any] = {"__annotations__": {f"part_{n}": kind for n, kind in enumerate(kinds)}}
    for n, targets in enumerate(shape.edges):
        body[f"part_{n}"] = subsystem(
            consumes=KINDS[n],
            sends=[KINDS[target] for target in targets],
            message_capacity=shape.capacities[n],
        )
    made = orchestra(signal=Bell, event=Knock)(type("Random", (), body))
    naps = random.Random(shape.seed)
    return made(**{f"part_{n}": kind(Role(n, shape.edges[n], books, naps)) for n, kind in enumerate(kinds)})


async def play(shape: Shape, books: Books, letters: list[DeadLetter]) -> Any:
    async with asyncio.timeout(20):
        async with start(build(shape, books), dead_letters=letters.append) as running:
            outside = [
                asyncio.ensure_future(books.put_waiting(books.make(target, hops), running.send))
                for target, hops in shape.traffic
            ]
            for _ in range(shape.pause):
                await asyncio.sleep(0)
                for meters in running.meters().values():
                    assert meters.sent == meters.received + meters.queued + meters.evicted
            if shape.end == "drain":
                await running.drain()
            elif shape.end == "stop":
                await running.stop()
            elif shape.end == "drain with a limit":
                await running.drain(timeout=0.001)
            elif shape.end == "drain, then stop":
                draining = asyncio.ensure_future(running.drain())
                await asyncio.sleep(0)
                await running.stop()
                await draining
        await asyncio.gather(*outside)
    return running.meters()


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(shapes())
def test_everything_that_was_sent_is_handled_or_dead_lettered_exactly_once(shape: Shape) -> None:
    books, letters = Books(), []
    with asyncio.Runner(loop_factory=LOOPS[shape.loop]) as runner:
        meters = runner.run(play(shape, books, letters))
    buried = Counter(letter.message.number for letter in letters)
    assert books.handled + buried == books.accepted
    assert set(books.accepted.values()) <= {1}
    assert not books.accepted & books.refused
    if shape.end == "drain":
        assert not letters
    assert sum(each.sent for each in meters.values()) == books.accepted.total()
    assert sum(each.received for each in meters.values()) == books.handled.total()
    assert sum(each.evicted for each in meters.values()) == len(letters)
    assert not any(each.queued or each.waiting for each in meters.values())
