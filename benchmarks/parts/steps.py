"""One step of the generated code alone: its nanoseconds in a loop, less those of the loop."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import coroutine
from typing import Any, TypeAlias

import attrs

from benchmarks.floor import clock
from benchmarks.messages import U8
from benchmarks.parts import names
from benchmarks.parts.standins import BATCH

REPEATS = 3

Timed: TypeAlias = Callable[[Iterable[int]], Coroutine[Any, Any, int]]


@attrs.frozen
class Step:
    """A step and its code, which stands for `each` messages.

    `less` is code that is part of it and does not count. `needed` says that no library could leave it out;
    `around` makes further names for it.
    """

    name: str
    code: str
    each: int = 1
    less: str = "pass"
    needed: bool = False
    around: Callable[[asyncio.AbstractEventLoop], Mapping[str, Any]] = lambda loop: {}


_AROUND = """
def made({names}):
    taken = left = allowed = 10**9
    {header} timed(numbers):
        nonlocal taken, left
        message, kind, priority, overflow = U8(7), U8, None, None
        value, number, budget, count, awaited = 7, 1000, {batch}, 0, parked
        began = clock()
        for _ in numbers:
            {code}
        return clock() - began
    return timed
"""
"""As in generated code, what lasts is found in closures, and what is new in locals."""


def _timed(code: str, known: dict[str, Any]) -> Timed:
    text = _AROUND.format(
        names=", ".join(known),
        batch=BATCH,
        header="@coroutine\n    def" if "yield" in code else "async def",
        code=code.replace("\n", "\n            "),
    )
    space: dict[str, Any] = {"U8": U8, "clock": clock, "coroutine": coroutine}
    exec(text, space)  # noqa: S102  # the steps are code, as the generated functions are
    timed: Timed = space["made"](**known)
    return timed


def step_ns(step: Step, count: int) -> float:
    """Nanoseconds of a step for one message: the best of some runs of `count`, less an empty loop."""
    loop = asyncio.new_event_loop()
    asyncio.events._set_running_loop(loop)
    try:
        runs = max(1, count // step.each)
        known = {**names.made(loop), **step.around(loop)}
        whole, less = (_timed(code, known) for code in (step.code, step.less))
        return (_best(whole, runs) - _best(less, runs)) / step.each
    finally:
        asyncio.events._set_running_loop(None)
        loop.close()


def _best(timed: Timed, runs: int) -> float:
    return min(_spent(timed(range(runs))) for _ in range(REPEATS)) / runs


def _spent(run: Coroutine[Any, Any, int]) -> int:
    """What it gives; no step waits for anything."""
    try:
        run.send(None)
    except StopIteration as ended:
        spent: int = ended.value
        return spent
    raise AssertionError("a step has waited")
