"""The same work without orchestra: on `asyncio.Queue`, and on a deque with a future for each side."""

import asyncio
from collections import deque
from typing import Protocol

from benchmarks.floor import clock
from benchmarks.messages import U8


class Queue(Protocol):
    """What the two queues have in common."""

    async def put(self, item: U8, /) -> None: ...
    async def get(self) -> U8: ...


class HandMade:
    """A bounded queue for one sender and one receiver: a deque and one future for each side."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._items: deque[U8] = deque()
        self._room: asyncio.Future[None] | None = None
        self._item: asyncio.Future[None] | None = None

    async def put(self, item: U8, /) -> None:
        """Put the item at the end, when there is room."""
        items = self._items
        if len(items) >= self._capacity:
            self._room = asyncio.get_running_loop().create_future()
            await self._room
        items.append(item)
        if self._item is not None:
            self._item.set_result(None)
            self._item = None

    async def get(self) -> U8:
        """Take the first item, when there is one."""
        items = self._items
        if not items:
            self._item = asyncio.get_running_loop().create_future()
            await self._item
        item = items.popleft()
        if self._room is not None:
            self._room.set_result(None)
            self._room = None
        return item


async def send_ns(queue: Queue, count: int) -> float:
    """Nanoseconds for a message from one task to another through `queue`."""

    async def produce() -> None:
        for _ in range(count):
            await queue.put(U8(7))

    async def consume() -> int:
        left = count
        while left:
            await queue.get()
            left -= 1
        return clock()

    consumer = asyncio.create_task(consume())
    began = clock()
    await produce()
    return (await consumer - began) / count


async def ring_ns(size: int, hops: int, laps: int) -> float:
    """Nanoseconds a hop for a token that goes round `size` tasks with an `asyncio.Queue` each."""
    queues: list[asyncio.Queue[U8]] = [asyncio.Queue() for _ in range(size)]
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    left = laps

    async def station(here: asyncio.Queue[U8], onward: asyncio.Queue[U8]) -> None:
        nonlocal left
        while True:
            token = await here.get()
            if token.value:
                await onward.put(U8(token.value - 1))
                continue
            left -= 1
            if left:
                await onward.put(U8(hops))
            else:
                done.set_result(clock())

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(station(here, onward))
            for here, onward in zip(queues, queues[1:] + queues[:1], strict=True)
        ]
        began = clock()
        await queues[0].put(U8(hops))
        took = await done - began
        for task in tasks:
            task.cancel()
    return took / ((hops + 1) * laps)
