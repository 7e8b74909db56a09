"""Topics of ezmsg by its low-level interface: a publisher, and subscribers that read without a copy.

All are in one process, where ezmsg passes messages by reference. By default a publisher waits for its slowest
subscriber; a leaky one is not waited for, and loses messages.
"""

# It has no types, and may not be installed.
# pyright: reportMissingImports=false, reportUntypedBaseClass=false

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from time import perf_counter_ns as clock
from typing import Any
from uuid import uuid4

import ezmsg.core as ez

from benchmarks import loops
from benchmarks.messages import U8
from benchmarks.peers import Peer
from benchmarks.queues import tasks

Publisher = Callable[[Callable[[Any], Coroutine[Any, Any, None]]], Coroutine[Any, Any, None]]
Rate = Callable[[Callable[[], int]], Coroutine[Any, Any, float]]

HOST = "127.0.0.1"
ROOM = 32
"""Messages that a publisher has room for: the default of ezmsg."""


@asynccontextmanager
async def graph() -> AsyncGenerator[Any]:
    """A graph server, in a thread, and a context of its own."""
    level = ez.logger.level
    ez.logger.setLevel(logging.ERROR)
    server = ez.GraphServer()
    server.start((HOST, 0))
    try:
        async with ez.GraphContext(server.address, auto_start=False) as context:
            yield context
    finally:
        server.stop()
        ez.logger.setLevel(level)


async def consume(subscriber: Any, count: int) -> None:
    for _ in range(count):
        async with subscriber.recv_zero_copy():
            pass


async def fanout_ns(subscribers: int, count: int) -> float:
    async with graph() as context:
        topic = uuid4().hex
        publisher = await context.publisher(topic, host=HOST, num_buffers=ROOM)
        consumers = [
            asyncio.create_task(consume(await context.subscriber(topic), count)) for _ in range(subscribers)
        ]
        await asyncio.sleep(0.01)
        began = clock()
        for _ in range(count):
            await publisher.broadcast(U8(7))
        await asyncio.wait(consumers)
        return (clock() - began) / count / subscribers


async def ring_ns(size: int, hops: int, laps: int) -> float:
    """Each station subscribes to a topic of its own and publishes to that of the next one."""
    done = asyncio.Event()

    async def station(here: Any, onward: Any) -> None:
        while True:
            async with here.recv_zero_copy() as token:
                left = token.value
            if left:
                await onward.broadcast(U8(left - 1))
            else:
                done.set()

    async with graph() as context:
        topics = [uuid4().hex for _ in range(size)]
        publishers = [await context.publisher(topic, host=HOST, num_buffers=ROOM) for topic in topics]
        subscribers = [await context.subscriber(topic) for topic in topics]
        first = publishers[0]
        onward = [*publishers[1:], first]
        pairs = zip(subscribers, onward, strict=True)
        async with tasks([station(here, there) for here, there in pairs]):
            await asyncio.sleep(0.01)
            began = clock()
            for _ in range(laps):
                done.clear()
                await first.broadcast(U8(hops))
                await done.wait()
            took = clock() - began
    return took / ((hops + 1) * laps)


async def rate_beside_slow(
    publisher: Publisher, rate: Rate, slow: float | None, room: int, *, leaky: bool
) -> float:
    """What `rate` finds of a fast subscriber, alone or beside one that takes `slow` seconds each."""
    count = 0

    async def serve(subscriber: Any) -> None:
        nonlocal count
        while True:
            async with subscriber.recv_zero_copy():
                count += 1

    async def serve_slowly(subscriber: Any, seconds: float) -> None:
        """With a copy: what is held without one keeps the publisher from going on."""
        while True:
            await subscriber.recv()
            await asyncio.sleep(seconds)

    async with graph() as context:
        topic = uuid4().hex
        sending = await context.publisher(topic, host=HOST, num_buffers=ROOM)
        serving = [serve(await context.subscriber(topic))]
        if slow is not None:
            queue = {"leaky": True, "max_queue": room} if leaky else {}
            serving.append(serve_slowly(await context.subscriber(topic, **queue), slow))
        await asyncio.sleep(0.01)
        async with tasks([*serving, publisher(sending.broadcast)]):
            return await rate(lambda: count)


def _run(work: Coroutine[Any, Any, float]) -> float:
    return loops.run(work)


PEER = Peer(
    "ezmsg",
    send=lambda count: _run(fanout_ns(1, count)),
    ring=lambda size, hops, laps: _run(ring_ns(size, hops, laps)),
    fanout=lambda subscribers, count: _run(fanout_ns(subscribers, count)),
    beside_slow=lambda *facts, leaky: _run(rate_beside_slow(*facts, leaky=leaky)),
    wall=True,
    slower=20,
    most=8,
)
