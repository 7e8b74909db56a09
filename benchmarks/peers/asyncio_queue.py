"""`asyncio.Queue` between tasks."""

import asyncio

from benchmarks import loops
from benchmarks.queues import peer, start_ms


def start(size: int) -> float:
    return loops.run(start_ms(asyncio.Queue, size))


PEER = peer("asyncio.Queue", asyncio.Queue, start=start)
