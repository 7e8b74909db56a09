"""How long an urgent message takes to its handler while others wait in a lower lane of the same receiver.

The receiver awaits on each of the others, for one turn of the event loop. So an urgent message comes while
one of them is being handled, and between two urgent ones a few are handled, however many wait. Were it
thousands where many wait, the processor's caches would have forgotten the way of an urgent message
meanwhile, and that alone would make it several times slower.
"""

import asyncio
import itertools
import math
import statistics
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Never

import msgspec

from benchmarks import bars, loops, queues
from benchmarks.floor import clock
from benchmarks.harness import Case, Group
from benchmarks.messages import U8, Signal
from orchestra import Actor, Context, Priority, Running, orchestra, start, subsystem


class Urgent(msgspec.Struct, frozen=True, gc=False):
    """`sent` is the time of the send, in nanoseconds."""

    sent: int


class Receiver(Actor):
    """Notes how long each urgent message took, and says when it has come."""

    def __init__(self) -> None:
        self.took: list[int] = []
        self.came = asyncio.Event()
        self.queued = 0

    async def handle(self, ctx: Context[U8 | Urgent, Never, Any], message: U8 | Urgent) -> None:
        if isinstance(message, Urgent):
            self.took.append(clock() - message.sent)
            self.came.set()
        else:
            self.queued -= 1
            await asyncio.sleep(0)


@orchestra(signal=Signal, event=Signal)
class Backlogged:
    receiver: Receiver = subsystem(
        consumes=U8 | Urgent, message_capacity={Priority.HIGH: 16, Priority.NORMAL: math.inf}
    )


async def _latency_us(backlog: int, samples: int) -> float:
    """The median of so many urgent messages, in microseconds, each sent when the backlog is full again."""
    receiver = Receiver()
    async with start(Backlogged(receiver=receiver), dead_letters=lambda letter: None) as running:
        for _ in range(samples):
            _fill(running, receiver, backlog)
            receiver.came.clear()
            running.try_send(Urgent(clock()), priority=Priority.HIGH)
            await receiver.came.wait()
    return statistics.median(receiver.took) / 1000


def _fill(running: Running, receiver: Receiver, backlog: int) -> None:
    for _ in range(backlog - receiver.queued):
        running.try_send(U8(7))
        receiver.queued += 1


async def _by_queue_us(backlog: int, samples: int) -> float:
    """The same through an `asyncio.PriorityQueue`: entries are compared, by level and then by number."""
    queue: asyncio.PriorityQueue[tuple[int, int, Any]] = asyncio.PriorityQueue()
    numbers = itertools.count()
    took: list[int] = []
    came = asyncio.Event()

    async def receive() -> None:
        while True:
            _, _, message = await queue.get()
            if isinstance(message, Urgent):
                took.append(clock() - message.sent)
                came.set()
            else:
                await asyncio.sleep(0)

    async with queues.tasks([receive()]):
        for _ in range(samples):
            for _ in range(backlog - queue.qsize()):
                queue.put_nowait((Priority.NORMAL, next(numbers), U8(7)))
            came.clear()
            queue.put_nowait((Priority.HIGH, next(numbers), Urgent(clock())))
            await came.wait()
    return statistics.median(took) / 1000


def _run(latency: Callable[[int, int], Coroutine[Any, Any, float]], backlog: int, samples: int) -> float:
    return loops.run(latency(backlog, samples))


def group(samples: int) -> Group:
    """The cases, each with so many urgent messages in a run."""
    least = bars.urgent(bars.BACKLOGS[0])
    return Group(
        name="priority",
        title="an urgent message, from its send to its handler, while others wait in a lower lane",
        unit="µs",
        cases=[
            *(
                Case(bars.urgent(backlog), partial(_run, _latency_us, backlog, samples), against=least)
                for backlog in bars.BACKLOGS
            ),
            *(
                Case(
                    bars.urgent_by_queue(backlog),
                    partial(_run, _by_queue_us, backlog, samples),
                    against=least,
                )
                for backlog in bars.BACKLOGS
            ),
        ],
        ratio=f"× {bars.BACKLOGS[0]} wait",
    )
