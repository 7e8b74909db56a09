"""Memory object streams of anyio between tasks of a task group."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from benchmarks import loops
from benchmarks.floor import clock
from benchmarks.messages import U8
from benchmarks.peers import Peer
from benchmarks.queues import CAPACITY

Sending = MemoryObjectSendStream[U8]
Receiving = MemoryObjectReceiveStream[U8]


async def consume(receiving: Receiving) -> None:
    async with receiving:
        async for _ in receiving:
            pass


async def fanout_ns(subscribers: int, count: int) -> float:
    """A stream for each subscriber; a receiver ends when its sending side is closed."""
    sending: list[Sending] = []
    began = 0
    async with anyio.create_task_group() as group:
        for _ in range(subscribers):
            send, receive = anyio.create_memory_object_stream[U8](CAPACITY)
            sending.append(send)
            group.start_soon(consume, receive)
        began = clock()
        for _ in range(count):
            message = U8(7)
            for send in sending:
                await send.send(message)
        for send in sending:
            await send.aclose()
    return (clock() - began) / count / subscribers


async def ring_ns(size: int, hops: int, laps: int) -> float:
    streams = [anyio.create_memory_object_stream[U8](CAPACITY) for _ in range(size)]
    left = laps
    began = took = 0

    async def station(receiving: Receiving, onward: Sending) -> None:
        nonlocal left, took
        async with receiving, onward:
            async for token in receiving:
                if token.value:
                    await onward.send(U8(token.value - 1))
                    continue
                left -= 1
                if left:
                    await onward.send(U8(hops))
                else:
                    took = clock() - began
                    group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for place in range(size):
            group.start_soon(station, streams[place][1], streams[(place + 1) % size][0])
        began = clock()
        await streams[0][0].send(U8(hops))
    return took / ((hops + 1) * laps)


def _run(work: Callable[..., Coroutine[Any, Any, float]], *facts: int) -> float:
    return loops.run(work(*facts))


PEER = Peer(
    "anyio",
    send=lambda count: _run(fanout_ns, 1, count),
    ring=lambda size, hops, laps: _run(ring_ns, size, hops, laps),
    fanout=lambda subscribers, count: _run(fanout_ns, subscribers, count),
    slower=5,
)
