"""Bounded queues of aiologic, whose primitives serve tasks and threads alike."""

from typing import Any

import aiologic
import attrs

from benchmarks.peers import AsyncSide, SyncSide
from benchmarks.queues import Queue, peer


class ForTasks:
    """The functions for tasks, under the names of the other queues."""

    def __init__(self, queue: aiologic.Queue[Any]) -> None:
        self.put = queue.async_put
        self.get = queue.async_get


class ForThreads:
    """The functions for threads."""

    def __init__(self, queue: aiologic.Queue[Any]) -> None:
        self.put = queue.green_put
        self.get = queue.green_get


@attrs.frozen
class Sides:
    sync_q: SyncSide
    async_q: AsyncSide


def two_sided(capacity: int) -> Sides:
    queue = aiologic.Queue[Any](capacity)
    return Sides(ForThreads(queue), ForTasks(queue))


def make(capacity: int) -> Queue:
    return ForTasks(aiologic.Queue(capacity))


PEER = peer("aiologic", make, two_sided=two_sided, slower=10)
