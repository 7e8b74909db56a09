"""Cases, rounds and what comes out of them.

The cases of a group take turns: one round runs each of them once, and just before each the floor is
measured anew, so that a machine that becomes slower for a while slows both. A figure is the median
over the rounds, and a ratio, to the floor or to another case, the median of the rounds' own ratios.
"""

import gc
import os
import statistics
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import attrs

from benchmarks.bars import AT_LEAST, BARS
from benchmarks.floor import floor_ns

GC_POLICY = "garbage collected before each case, and the collector stays on while it runs"
CLOCK = "CPU time (wall time for start, stop, congestion and threads)"


@attrs.frozen
class Case:
    """One thing to measure. `run` does it and returns the figure, in the unit of the group.

    The unit is nanoseconds where the ratio is to the floor. With `against` the ratio is to the case of that
    name in the same group, in the same round, instead of the floor.
    """

    name: str
    run: Callable[[], float]
    against: str | None = None


@attrs.frozen
class Group:
    """Cases that are compared with each other.

    `unit` is that of the cost. Where `relative` is true the figure that counts is the ratio, which `ratio`
    is the heading of, else it is the cost itself. `wall` says that the clock is one on the wall, so that the
    cases may wait.
    """

    name: str
    title: str
    unit: str
    cases: Sequence[Case]
    relative: bool = True
    ratio: str = "× floor"
    wall: bool = False
    rounds: int | None = None
    """The most rounds, where they take long."""


@attrs.frozen
class Result:
    """The figures of one case: medians over the rounds, and the quartiles as the spread.

    `against` is the case that the ratio is to, or None for the floor. `waits` is how often the process
    gave up its core of its own accord in a run. CPU time does not count such a wait, so where that is the
    clock there must be next to none.
    """

    name: str
    cost: float
    low: float
    high: float
    ratio: float | None
    bar: float | None
    waits: float = 0
    against: str | None = None
    at_least: bool = False
    """The figure must reach the bar, instead of staying below it."""

    @property
    def figure(self) -> float:
        """What is compared with the bar."""
        return self.cost if self.ratio is None else self.ratio

    def within(self, factor: float = 1.0) -> bool:
        """True when there is no bar, or the figure is no worse than `factor` times the bar."""
        if self.bar is None:
            return True
        return self.figure * factor >= self.bar if self.at_least else self.figure <= self.bar * factor


@attrs.frozen
class Report:
    """All results of one group in one run."""

    group: Group
    rounds: int
    floor: float
    results: Sequence[Result]


def measure(group: Group, rounds: int, floor: Callable[[], float] = floor_ns) -> Report:
    """Run each case once to warm up, then all of them in turn, `rounds` times or as many as the group may."""
    rounds = rounds if group.rounds is None else min(rounds, group.rounds)
    for case in group.cases:
        case.run()
    floors: list[float] = []
    waits: dict[str, list[int]] = {case.name: [] for case in group.cases}
    costs: dict[str, list[float]] = {case.name: [] for case in group.cases}
    units: dict[str, list[float]] = {case.name: [] for case in group.cases}
    for _ in range(rounds):
        for case in group.cases:
            gc.collect()
            unit = floor()
            before = _waits()
            cost = case.run()
            waits[case.name].append(_waits() - before)
            floors.append(unit)
            costs[case.name].append(cost)
            units[case.name].append(unit)
    results = [
        _result(
            case,
            costs[case.name],
            (units[case.name] if case.against is None else costs[case.against]) if group.relative else None,
            waits[case.name],
        )
        for case in group.cases
    ]
    return Report(group, rounds, statistics.median(floors), results)


def _waits() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def _result(
    case: Case, costs: Sequence[float], units: Sequence[float] | None, waits: Sequence[int]
) -> Result:
    """`units` are what the costs of the rounds are divided by, or None where the figure is the cost."""
    low, high = _quartiles(costs)
    ratios = None if units is None else [cost / unit for cost, unit in zip(costs, units, strict=True)]
    return Result(
        name=case.name,
        cost=statistics.median(costs),
        low=low,
        high=high,
        ratio=None if ratios is None else statistics.median(ratios),
        bar=AT_LEAST.get(case.name, BARS.get(case.name)),
        waits=statistics.median(waits),
        against=case.against,
        at_least=case.name in AT_LEAST,
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
