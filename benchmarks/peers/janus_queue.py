"""Queues of janus, with a side for threads and one for the tasks of one loop."""

from typing import Any

import janus

from benchmarks.queues import Queue, peer


def two_sided(capacity: int) -> janus.Queue[Any]:
    return janus.Queue(capacity)


def make(capacity: int) -> Queue:
    return two_sided(capacity).async_q


PEER = peer("janus", make, two_sided=two_sided, slower=5)
