"""A bounded queue for one sender and one receiver, written for this work: a deque and futures."""

import asyncio
from collections import deque
from typing import Any

from benchmarks.queues import peer


class HandMade:
    """A deque and one future for each side."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._items: deque[Any] = deque()
        self._room: asyncio.Future[None] | None = None
        self._item: asyncio.Future[None] | None = None

    async def put(self, item: Any, /) -> None:
        """Put the item at the end, when there is room."""
        items = self._items
        if len(items) >= self._capacity:
            self._room = asyncio.get_running_loop().create_future()
            await self._room
        items.append(item)
        if self._item is not None:
            self._item.set_result(None)
            self._item = None

    async def get(self) -> Any:
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


PEER = peer("hand-made deque with futures", HandMade, library=False)
