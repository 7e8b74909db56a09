"""Queues of culsans, with a side for threads and one for tasks."""

from typing import Any

import culsans

from benchmarks.peers import Peer
from benchmarks.queues import Queue, works


def two_sided(capacity: int) -> culsans.Queue[Any]:
    return culsans.Queue(capacity)


def make(capacity: int) -> Queue:
    return two_sided(capacity).async_q


PEER = Peer("culsans", **works(make), two_sided=two_sided, slower=5)
