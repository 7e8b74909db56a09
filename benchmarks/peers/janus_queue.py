"""The asynchronous side of a queue of janus, for one loop and threads beside it."""

import janus

from benchmarks.peers import Peer
from benchmarks.queues import Queue, works


def make(capacity: int) -> Queue:
    return janus.Queue[object](capacity).async_q


PEER = Peer("janus", **works(make), slower=5)
