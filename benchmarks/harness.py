"""Cases, rounds and what comes out of them.

The cases of a group take turns: one round runs each of them once, and just before each the floor is
measured anew, so that a machine that becomes slower for a while slows both. A figure is the median
over the rounds, and a ratio the median of the rounds' own ratios.
"""

import gc
import os
import statistics
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import attrs

from benchmarks.bars import BARS
from benchmarks.floor import floor_ns

GC_POLICY = "garbage collected before each case, and the collector stays on while it runs"
CLOCK = "CPU time (wall time for start and stop)"


@attrs.frozen
class Case:
    """One thing to measure. `run` does it and returns the cost of one operation.

    The cost is in nanoseconds, or in milliseconds where the group's unit says so.
    """

    name: str
    run: Callable[[], float]


@attrs.frozen
class Group:
    """Cases that are compared with each other.

    `unit` is that of the cost. Where `relative` is true the figure that counts is the ratio to the
    floor, else it is the cost itself.
    """

    name: str
    title: str
    unit: str
    cases: Sequence[Case]
    relative: bool = True


@attrs.frozen
class Result:
    """The figures of one case: medians over the rounds, and the quartiles as the spread.

    `waits` is how often the process gave up its core of its own accord in a run. CPU time does not
    count such a wait, so where the figure is a ratio there must be next to none.
    """

    name: str
    cost: float
    low: float
    high: float
    ratio: float | None
    bar: float | None
    waits: float = 0

    @property
    def figure(self) -> float:
        """What is compared with the bar."""
        return self.cost if self.ratio is None else self.ratio

    def within(self, factor: float = 1.0) -> bool:
        """True when there is no bar, or the figure is at most `factor` times the bar."""
        return self.bar is None or self.figure <= self.bar * factor


@attrs.frozen
class Report:
    """All results of one group in one run."""

    group: Group
    rounds: int
    floor: float
    results: Sequence[Result]


def measure(group: Group, rounds: int, floor: Callable[[], float] = floor_ns) -> Report:
    """Run each case once to warm up, then all of them in turn, `rounds` times."""
    for case in group.cases:
        case.run()
    floors: list[float] = []
    waits: dict[str, list[int]] = {case.name: [] for case in group.cases}
    costs: dict[str, list[float]] = {case.name: [] for case in group.cases}
    ratios: dict[str, list[float]] = {case.name: [] for case in group.cases}
    for _ in range(rounds):
        for case in group.cases:
            gc.collect()
            unit = floor()
            before = _waits()
            cost = case.run()
            waits[case.name].append(_waits() - before)
            floors.append(unit)
            costs[case.name].append(cost)
            ratios[case.name].append(cost / unit)
    results = [
        _result(case.name, costs[case.name], ratios[case.name] if group.relative else None, waits[case.name])
        for case in group.cases
    ]
    return Report(group, rounds, statistics.median(floors), results)


def _waits() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def _result(
    name: str, costs: Sequence[float], ratios: Sequence[float] | None, waits: Sequence[int]
) -> Result:
    low, high = _quartiles(costs)
    return Result(
        name=name,
        cost=statistics.median(costs),
        low=low,
        high=high,
        ratio=None if ratios is None else statistics.median(ratios),
        bar=BARS.get(name),
        waits=statistics.median(waits),
    )


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


@contextmanager
def pinned() -> Generator[int | None]:
    """Keep this process on one core meanwhile; gives its number, or None where that cannot be done."""
    if not hasattr(os, "sched_setaffinity"):
        yield None
        return
    before = os.sched_getaffinity(0)
    core = max(before)
    os.sched_setaffinity(0, {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, before)
