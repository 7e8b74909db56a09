"""`asyncio.Queue` between tasks."""

import asyncio
from functools import partial

from benchmarks import loops
from benchmarks.peers import Peer
from benchmarks.queues import start_ms, works


def start(size: int) -> float:
    return loops.run(start_ms(asyncio.Queue, size))


PEER = Peer("asyncio.Queue", **works(partial(asyncio.Queue)), start=start)
