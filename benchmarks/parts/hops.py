"""A hop of a ring: a handler gets a token and sends another one, which wakes the next subsystem."""

from collections.abc import Callable
from functools import partial

from benchmarks import loops
from benchmarks.parts import wired
from benchmarks.parts.section import Section
from benchmarks.parts.send import AWAIT, CALL, CLASS, HANDLE, PUT_AND_TAKE
from benchmarks.parts.standins import BATCH
from benchmarks.parts.steps import Step
from benchmarks.ring import HOPS, MakeMessage, MakeStation, asynchronous, synchronous
from orchestra.runtime.scheduler import SLICE

READ = Step("what the handler does: it reads", "number = message.value\nif number:\n    pass", needed=True)
MAKE = Step("make the next message", "make(number - 1)", needed=True)
WAKE = Step(
    "tell that it waits, and wake it when a message comes",
    "inbox.idle = True\n"
    "if inbox.idle and lane.room:\n    inbox.idle = False\n    ready.append(inbox.work)\n"
    "    if not scheduler.awake:\n        pass\n"
    "following()",
)
TURN = Step(
    "the loop of the turn, and the look at the clock, one message's share",
    f"for more in inbox.course({BATCH}, len(batch)):\n"
    "    if more < 0:\n        pass\n"
    "    if not full:\n        pass\n"
    f"if monotonic() - scheduler.began >= {SLICE}:\n    pass\n"
    f"if scheduler.budget < {BATCH}:\n    pass",
    each=BATCH,
)

SYNCHRONOUS = (
    Step("call its step", "count = nothing()"),
    Step("in context variables of its own", "count = step()", less="count = nothing()"),
    Step(
        "look for signals and other messages, before and after",
        "if inbox.alert or len(one) != 1:\n    pass\nif inbox.alert or queue:\n    pass",
    ),
    Step("count it", "taken += 1"),
    HANDLE,
)
"""How a message that has come is handled."""

ASYNCHRONOUS = (
    Step("call its step", "count = nothing()"),
    Step(
        "see that no Task has the coroutine, and that it parks again",
        "if strand._handoff.over:\n    pass\nif awaited is not parked:\n    pass",
    ),
    Step("make its Task the current one, and unmake it", "enter(loop, task)\nleave(loop, task)"),
    Step("resume its coroutine, until it parks", "awaited = resume(None)"),
    Step("in context variables of its own", "awaited = run(resume, None)", less="awaited = resume(None)"),
    Step(
        "look for signals, the clock and messages, twice; for waiting senders and for the end",
        "if signals:\n    pass\nif not left:\n    pass\nif full:\n    pass\nif lane.pressed:\n    pass\n"
        "if signals:\n    pass\nif not left:\n    pass\nif queue:\n    pass\nif inbox.over:\n    pass",
    ),
    Step("count it", "left -= 1"),
    Step(
        "call the handler, and await its coroutine",
        "yield from handle_async(ctx, message)",
        needed=True,
    ),
)
"""The same where the handler is a coroutine."""


def _together(station: Callable[[MakeMessage], MakeStation], *, coroutines: bool) -> Step:
    code = "if following()():\n    pass\nif not turn:\n    pass"
    return Step("", code, around=wired.in_ring(station, coroutines=coroutines))


def _hop_ns(size: int, station: Callable[[MakeMessage], MakeStation], count: int) -> float:
    return loops.run(wired.ring_of(size, station).ns_a_hop(max(1, count // HOPS)))


def _wholes(station: Callable[[MakeMessage], MakeStation]) -> dict[str, Callable[[int], float]]:
    return {f"a hop, whole, in a ring of {size}": partial(_hop_ns, size, station) for size in (2, 50)}


HOP = Section(
    name="hop",
    title="a hop between synchronous Actors",
    steps=[READ, MAKE, CALL, CLASS, PUT_AND_TAKE, WAKE, TURN, *SYNCHRONOUS],
    together=_together(synchronous, coroutines=False),
    whole=_wholes(synchronous),
)

ASYNC_HOP = Section(
    name="async_hop",
    title="a hop between asynchronous Actors",
    steps=[READ, MAKE, AWAIT, CLASS, PUT_AND_TAKE, WAKE, TURN, *ASYNCHRONOUS],
    together=_together(asynchronous, coroutines=True),
    whole=_wholes(asynchronous),
)
