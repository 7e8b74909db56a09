"""A bounded queue of aiologic, whose primitives serve tasks and threads alike."""

import aiologic

from benchmarks.peers import Peer
from benchmarks.queues import works


class Queue:
    """`aiologic.Queue` under the names of the other queues."""

    def __init__(self, capacity: int) -> None:
        queue = aiologic.Queue[object](capacity)
        self.put = queue.async_put
        self.get = queue.async_get


PEER = Peer("aiologic", **works(Queue), slower=10)
