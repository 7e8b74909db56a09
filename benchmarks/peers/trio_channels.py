"""Memory channels of trio between tasks of a nursery, on the event loop of trio itself."""

import trio

from benchmarks.floor import clock
from benchmarks.messages import U8
from benchmarks.peers import Peer
from benchmarks.queues import CAPACITY

Sending = trio.MemorySendChannel[U8]
Receiving = trio.MemoryReceiveChannel[U8]


async def consume(receiving: Receiving) -> None:
    async with receiving:
        async for _ in receiving:
            pass


async def fanout_ns(subscribers: int, count: int) -> float:
    """A channel for each subscriber; a receiver ends when its sending side is closed."""
    sending: list[Sending] = []
    async with trio.open_nursery() as nursery:
        for _ in range(subscribers):
            send, receive = trio.open_memory_channel[U8](CAPACITY)
            sending.append(send)
            nursery.start_soon(consume, receive)
        began = clock()
        for _ in range(count):
            message = U8(7)
            for send in sending:
                await send.send(message)
        for send in sending:
            await send.aclose()
    return (clock() - began) / count / subscribers


async def ring_ns(size: int, hops: int, laps: int) -> float:
    channels = [trio.open_memory_channel[U8](CAPACITY) for _ in range(size)]
    left = laps
    took = 0

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
                    nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for place in range(size):
            nursery.start_soon(station, channels[place][1], channels[(place + 1) % size][0])
        began = clock()
        await channels[0][0].send(U8(hops))
    return took / ((hops + 1) * laps)


PEER = Peer(
    "trio",
    send=lambda count: trio.run(fanout_ns, 1, count),
    ring=lambda size, hops, laps: trio.run(ring_ns, size, hops, laps),
    fanout=lambda subscribers, count: trio.run(fanout_ns, subscribers, count),
    on_loop=False,
    slower=5,
)
