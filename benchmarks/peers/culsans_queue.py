"""Queues of culsans, with a side for threads and one for tasks."""

from typing import Any

import culsans

from benchmarks.queues import Queue, peer


def two_sided(capacity: int) -> culsans.Queue[Any]:
    return culsans.Queue(capacity)


def make(capacity: int) -> Queue:
    return two_sided(capacity).async_q


PEER = peer("culsans", make, two_sided=two_sided, slower=5)
