"""What a send to a synchronous Actor is made of: each step of it alone, in a loop less the cost of the loop.

The steps are those of the generated code, in the order in which they run. What is left between their sum and
the whole are the turns of the ready-queue, the waits for room, and caches that are less warm than here.
"""

import asyncio
import timeit
from functools import partial
from typing import Any

from benchmarks.floor import clock
from benchmarks.harness import Case, Group
from benchmarks.messages import U8
from benchmarks.send import ToHandler, to_handler_ns

_SETUP = """
from collections import deque
queue, signals, budget, left = deque([0]), deque(), 10**9, 10**6
append, take = queue.append, queue.popleft
message, kind, priority, overflow, made = make(7), make, None, None, None
class Lane: __slots__ = ("room", "idle")
lane = Lane(); lane.room, lane.idle = 1024, False
class Actor:
    left = 10**6
    def handle(self, ctx, message):
        self.left -= 1
        if not self.left:
            pass
handle = Actor().handle
"""

STEPS = {
    "make the message": "kind(7)",
    "tell its class, and that no level or policy is given": (
        "if message.__class__ is kind and priority is None and overflow is None: pass"
    ),
    "compare the queue with its room": "if len(queue) < lane.room: pass",
    "look whether the receiver waits": "if lane.idle: pass",
    "put it into the queue and take it out": "append(made); take()",
    "look for a signal, and for a message": "if signals: pass\nif queue: pass",
    "count it": "if not budget: pass\nbudget -= 1",
    "call a handler, which counts it too": "handle(None, message)",
}
"""The steps but for the await, and their code."""

AWAIT = "await an async function that returns at once"
WHOLE = "a send, whole"
SUM = "the steps, in all"


def step_ns(code: str, count: int) -> float:
    """Nanoseconds of a piece of code, the best of three runs of `count`, less those of an empty loop."""

    def best(statement: str) -> float:
        timer = timeit.Timer(statement, _SETUP, timer=clock, globals={"make": U8})
        return min(timer.repeat(3, count)) / count

    return best(code) - best("pass")


async def _nothing(message: Any, priority: Any = None, overflow: Any = None) -> bool:
    return True


async def _awaits(count: int, message: Any) -> float:
    began = clock()
    for _ in range(count):
        await _nothing(message)
    waited = clock() - began
    began = clock()
    for _ in range(count):
        pass
    return (waited - (clock() - began)) / count


def await_ns(count: int) -> float:
    """Nanoseconds to await an async function with the arguments of a send, which waits for nothing."""
    return min(asyncio.run(_awaits(count, U8(7))) for _ in range(3))


def sum_ns(count: int) -> float:
    """Nanoseconds of all the steps together."""
    return await_ns(count) + sum(step_ns(code, count) for code in STEPS.values())


def group(count: int) -> Group:
    """The steps, their sum, and the whole; `count` of each in a run."""
    cases = [Case(name, partial(step_ns, code, count)) for name, code in STEPS.items()]
    cases.insert(1, Case(AWAIT, partial(await_ns, count)))
    cases.append(Case(SUM, partial(sum_ns, count)))
    cases.append(Case(WHOLE, partial(to_handler_ns, ToHandler, U8, 7, count)))
    return Group(
        name="parts",
        title="the steps of a send to a synchronous Actor",
        unit="ns",
        cases=cases,
        one_loop=True,
    )
