"""Actors of xoscar in one pool, in this process: `tell` sends and waits for no result, `send` waits for one.

A pool of one process is the fastest for actors on one core. An actor gets its reference of another one by
`xo.actor_ref`, as in the guide: within a pool that leads straight to it, and a message is not packed.
"""

# It has no types, and may not be installed.
# pyright: reportMissingImports=false, reportUntypedBaseClass=false

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from time import perf_counter_ns as clock
from typing import Any

import xoscar as xo

from benchmarks import loops
from benchmarks.messages import U8
from benchmarks.peers import Peer

ADDRESS = "127.0.0.1"


class Counter(xo.Actor):
    """Counts what it is told."""

    def __init__(self, count: int, done: asyncio.Event) -> None:
        super().__init__()
        self.left = count
        self.done = done

    async def take(self, message: U8) -> None:
        self.left -= 1
        if not self.left:
            self.done.set()


class Sender(xo.Actor):
    async def send(self, names: list[str], count: int) -> None:
        counters = [await xo.actor_ref(self.address, name) for name in names]
        for _ in range(count):
            message = U8(7)
            for counter in counters:
                await counter.take.tell(message)


class Station(xo.Actor):
    """Passes the token on."""

    def __init__(self, done: asyncio.Event) -> None:
        super().__init__()
        self.done = done

    async def lead_to(self, onward: str) -> None:
        self.onward = await xo.actor_ref(self.address, onward)

    async def take(self, token: U8) -> None:
        if token.value:
            await self.onward.take.tell(U8(token.value - 1))
        else:
            self.done.set()


class Answers(xo.Actor):
    async def answer(self, question: U8) -> int:
        return 7


class Asks(xo.Actor):
    async def ask(self, name: str, count: int) -> float:
        answers = await xo.actor_ref(self.address, name)
        began = clock()
        for _ in range(count):
            await answers.answer(U8(7))
        return (clock() - began) / count


@asynccontextmanager
async def pool() -> AsyncGenerator[Callable[..., Coroutine[Any, Any, Any]]]:
    """A pool in this process; gives what makes an actor of a name in it."""
    made = await xo.create_actor_pool(address=ADDRESS, n_process=0)
    try:

        async def create(name: str, kind: type, *facts: Any) -> Any:
            return await xo.create_actor(kind, *facts, uid=name, address=made.external_address)

        yield create
    finally:
        await made.stop()


async def fanout_ns(subscribers: int, count: int) -> float:
    done = [asyncio.Event() for _ in range(subscribers)]
    async with pool() as create:
        names = [f"counter{place}" for place in range(subscribers)]
        for name, each in zip(names, done, strict=True):
            await create(name, Counter, count, each)
        sender = await create("sender", Sender)
        began = clock()
        await sender.send(names, count)
        for each in done:
            await each.wait()
        return (clock() - began) / count / subscribers


async def ring_ns(size: int, hops: int, laps: int) -> float:
    done = asyncio.Event()
    async with pool() as create:
        stations = [await create(f"station{place}", Station, done) for place in range(size)]
        for place, station in enumerate(stations):
            await station.lead_to(f"station{(place + 1) % size}")
        began = clock()
        for _ in range(laps):
            done.clear()
            await stations[0].take.tell(U8(hops))
            await done.wait()
        return (clock() - began) / ((hops + 1) * laps)


async def ask_ns(count: int) -> float:
    async with pool() as create:
        await create("answers", Answers)
        asks = await create("asks", Asks)
        return float(await asks.ask("answers", count))


async def start_ms(size: int) -> float:
    began = clock()
    async with pool() as create:
        for place in range(size):
            await create(f"answers{place}", Answers)
    return (clock() - began) / 1e6


PEER = Peer(
    "xoscar",
    send=lambda count: loops.run(fanout_ns(1, count)),
    ring=lambda size, hops, laps: loops.run(ring_ns(size, hops, laps)),
    fanout=lambda subscribers, count: loops.run(fanout_ns(subscribers, count)),
    ask=lambda count: loops.run(ask_ns(count)),
    start=lambda size: loops.run(start_ms(size)),
    wall=True,
    slower=10,
)
