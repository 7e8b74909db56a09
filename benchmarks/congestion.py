"""A publisher, a fast subscriber and a slow one: what the fast one gets under each policy.

The slow subscriber takes 100 ms for a message, asynchronously, and its lane has room for 8. One publisher
sends as fast as it can; there the rates also show what the publish itself costs. The other sends 100,000
messages a second, in bursts; it makes up for what is late, so its rate falls only where it is held up for
longer than that.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Never, TypeAlias

import attrs

from benchmarks import bars, loops, peers
from benchmarks.floor import clock
from benchmarks.harness import Case, Group
from benchmarks.messages import U8, Signal
from benchmarks.queues import CAPACITY
from benchmarks.send import Handler, Sender, Stopwatch, ToHandler
from orchestra import Actor, Block, Context, Drop, DropOldest, Subsystem, orchestra, start, subsystem
from orchestra.overflow import Overflow

SLOW = 0.1
"""Seconds that the slow subscriber takes for a message."""

ROOM = 8
"""Capacity of the slow subscriber's lane."""

RATE = 100_000
"""Messages a second of the paced publisher."""

BURST = 0.001
"""Seconds between its bursts."""

LEAD = 0.02
"""Seconds that pass before counting begins: by then the slow lane is full."""

Send: TypeAlias = Callable[[U8], Coroutine[Any, Any, None]]


async def bursts() -> AsyncGenerator[int]:
    """At each burst how many messages are due, those that are late among them; for ever."""
    began, sent = perf_counter(), 0
    while True:
        await asyncio.sleep(BURST)
        due = int((perf_counter() - began) * RATE) - sent
        sent += due
        yield due


class Paced(Subsystem):
    """Publishes at `RATE`."""

    async def run(self, ctx: Context[Never, U8, Any]) -> None:
        async for due in bursts():
            for _ in range(due):
                await ctx.send(U8(7))


class FullSpeed(Paced):
    """Publishes as fast as it can."""

    async def run(self, ctx: Context[Never, U8, Any]) -> None:
        while True:
            await ctx.send(U8(7))


class Fast(Actor):
    """Counts what it gets."""

    def __init__(self) -> None:
        self.count = 0

    def handle(self, ctx: Context[U8, Never, Any], message: U8) -> None:
        self.count += 1


class Slow(Actor):
    """Takes its time."""

    async def handle(self, ctx: Context[U8, Never, Any], message: U8) -> None:
        await asyncio.sleep(SLOW)


@orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)
class FastAlone:
    publisher: Paced = subsystem(sends=[U8])
    fast: Fast = subsystem(subscribes=[U8])


def _beside(policy: Overflow) -> Any:
    """An orchestra class with a slow subscriber whose lane has this policy."""

    @orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)
    class FastAndSlow:
        publisher: Paced = subsystem(sends=[U8])
        fast: Fast = subsystem(subscribes=[U8])
        slow: Slow = subsystem(subscribes=[U8], message_capacity=ROOM, overflow=policy)

    return FastAndSlow


@orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)
class ToTwo:
    sender: Sender = subsystem(sends=[U8])
    one: Handler = subsystem(subscribes=[U8])
    two: Handler = subsystem(subscribes=[U8])


async def _rate(count: Callable[[], int], seconds: float) -> float:
    """Messages a second that `count` tells, after the lead."""
    await asyncio.sleep(LEAD)
    before, began = count(), perf_counter()
    await asyncio.sleep(seconds)
    return (count() - before) / (perf_counter() - began)


async def _orchestra_rate(make: Callable[[Fast], Any], seconds: float) -> float:
    fast = Fast()
    async with start(make(fast), dead_letters=lambda letter: None) as running:
        rate = await _rate(lambda: fast.count, seconds)
        await running.stop(timeout=0.001)
    return rate


def _case(name: str, make: Callable[[Fast], Any], seconds: float, alone: str) -> Case:
    return Case(name, lambda: loops.run(_orchestra_rate(make, seconds)), against=alone)


@attrs.define
class Queues:
    """The same by hand: a queue and a task for each subscriber."""

    fast: asyncio.Queue[U8] = attrs.field(factory=lambda: asyncio.Queue(CAPACITY))
    slow: asyncio.Queue[U8] = attrs.field(factory=lambda: asyncio.Queue(ROOM))
    count: int = 0
    dropped: int = 0

    async def serve_fast(self) -> None:
        while True:
            await self.fast.get()
            self.count += 1

    async def serve_slow(self) -> None:
        while True:
            await self.slow.get()
            await asyncio.sleep(SLOW)

    async def publish_alone(self, message: U8) -> None:
        await self.fast.put(message)

    async def publish_to_both(self, message: U8) -> None:
        await self.fast.put(message)
        await self.slow.put(message)

    async def publish_or_drop(self, message: U8) -> None:
        await self.fast.put(message)
        try:
            self.slow.put_nowait(message)
        except asyncio.QueueFull:
            self.dropped += 1


Publish: TypeAlias = Callable[[Queues, U8], Coroutine[Any, Any, None]]
ByHand: TypeAlias = Callable[[Send], Coroutine[Any, Any, None]]


async def _paced_by_hand(publish: Send) -> None:
    async for due in bursts():
        for _ in range(due):
            await publish(U8(7))


async def _full_speed_by_hand(publish: Send) -> None:
    while True:
        await publish(U8(7))


async def _by_hand_rate(publisher: ByHand, publish: Publish, seconds: float) -> float:
    queues = Queues()
    work = (publisher(partial(publish, queues)), queues.serve_fast(), queues.serve_slow())
    tasks = [asyncio.create_task(each) for each in work]
    rate = await _rate(lambda: queues.count, seconds)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return rate


def _rates(publisher: str, make: type[Paced], by_hand: ByHand, seconds: float, rounds: int | None) -> Group:
    alone = f"{bars.ALONE}, {publisher}"
    queue_alone = f"asyncio.Queue: alone, {publisher}"
    cases = [_case(alone, lambda fast: FastAlone(publisher=make(), fast=fast), seconds, alone)]
    for policy in (Block(), Drop(), DropOldest()):
        app = _beside(policy)
        name = bars.beside(type(policy).__name__, publisher)
        cases.append(_case(name, partial(_with_slow, app, make), seconds, alone))
    for name, publish in (
        (queue_alone, Queues.publish_alone),
        (f"asyncio.Queue: await both, {publisher}", Queues.publish_to_both),
        (f"asyncio.Queue: drop by hand, {publisher}", Queues.publish_or_drop),
    ):
        cases.append(Case(name, partial(_run_by_hand, by_hand, publish, seconds), against=queue_alone))
    for peer in peers.that_can("beside_slow"):
        assert peer.beside_slow is not None
        peer_alone = f"{peer.name}: alone, {publisher}"
        for name, slow, leaky in (
            (peer_alone, None, False),
            (f"{peer.name}: await both, {publisher}", SLOW, False),
            (f"{peer.name}: leaky, {publisher}", SLOW, True),
        ):
            run = partial(peer.beside_slow, by_hand, partial(_rate, seconds=seconds), slow, ROOM, leaky=leaky)
            cases.append(Case(name, run, against=peer_alone))
    pace = f", {RATE:,} messages/s published" if publisher == bars.PACED else ""
    return Group(
        name=publisher,
        title=f"a fast subscriber beside one of {SLOW * 1000:g} ms a message, {publisher}{pace}",
        unit="messages/s",
        cases=cases,
        ratio="of its rate alone",
        wall=True,
        rounds=rounds,
        one_loop=True,
    )


def _with_slow(app: Any, make: type[Paced], fast: Fast) -> Any:
    return app(publisher=make(), fast=fast, slow=Slow())


def _run_by_hand(publisher: ByHand, publish: Publish, seconds: float) -> float:
    return loops.run(_by_hand_rate(publisher, publish, seconds))


async def _drained(app: Any) -> None:
    async with start(app) as running:
        await running.drain()


def _to_one(count: int) -> float:
    watch = Stopwatch()
    loops.run(_drained(ToHandler(sender=Sender(U8, 7, count, watch), handler=Handler(count, watch))))
    return watch.per_message(count)


def _to_two(count: int) -> float:
    watch = Stopwatch()
    sender = Sender(U8, 7, count, watch)
    loops.run(_drained(ToTwo(sender=sender, one=Handler(count, watch), two=Handler(count, watch))))
    return watch.per_message(count)


async def _queue_to_two(count: int) -> float:
    queues: tuple[asyncio.Queue[U8], ...] = (asyncio.Queue(CAPACITY), asyncio.Queue(CAPACITY))

    async def consume(queue: asyncio.Queue[U8]) -> None:
        for _ in range(count):
            await queue.get()

    consumers = [asyncio.create_task(consume(queue)) for queue in queues]
    began = clock()
    for _ in range(count):
        message = U8(7)
        for queue in queues:
            await queue.put(message)
    await asyncio.wait(consumers)
    return (clock() - began) / count


def _publishes(count: int) -> Group:
    one = bars.SEND_TO_ONE
    return Group(
        name="publish",
        title="a message to two fast subscribers, synchronous handlers",
        unit="ns a message",
        cases=[
            Case(one, partial(_to_one, count), against=one),
            Case(bars.PUBLISH_TO_TWO, partial(_to_two, count), against=one),
            Case("asyncio.Queue: put to two", lambda: loops.run(_queue_to_two(count)), against=one),
        ],
        ratio="× a send to one",
    )


def groups(seconds: float, count: int, rounds: int | None = None) -> Sequence[Group]:
    """The rates, each counted for so many seconds, and the cost of a publish of `count` messages.

    `rounds` is the most rounds for the rates.
    """
    return [
        _rates(bars.PACED, Paced, _paced_by_hand, seconds, rounds),
        _rates(bars.FULL_SPEED, FullSpeed, _full_speed_by_hand, seconds, rounds),
        _publishes(count),
    ]
