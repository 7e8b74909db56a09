"""The asynchronous side of a queue of culsans, for code of two kinds in several threads."""

import culsans

from benchmarks.peers import Peer
from benchmarks.queues import Queue, works


def make(capacity: int) -> Queue:
    return culsans.Queue[object](capacity).async_q


PEER = Peer("culsans", **works(make), slower=5)
