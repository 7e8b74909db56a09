"""Cases, rounds and what comes out of them.

The cases of a group take turns: one round runs each of them once, on each event loop that it is to run on,
and just before each the floor is measured anew, so that a machine that becomes slower for a while slows both.
A figure is the median over the rounds, and a ratio, to the floor or to another case, the median of the
rounds' own ratios.
"""

import gc
import os
import statistics
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import attrs

from benchmarks import loops
from benchmarks.bars import AT_LEAST, BARS
from benchmarks.floor import floor_ns

GC_POLICY = "garbage collected before each case, and the collector stays on while it runs"
CLOCK = "CPU time (wall time for start, stop, congestion, threads and processes)"


@attrs.frozen
class Case:
    """One thing to measure. `run` does it and returns the figure, in the unit of the group.

    The unit is nanoseconds where the ratio is to the floor. With `against` the ratio is to the case of that
    name in the same group, in the same round, instead of the floor.
    """

    name: str
    run: Callable[[], float]
    against: str | None = None
    on_loop: bool = True
    """Whether it runs on the loop of `benchmarks.loops`, so that it may be run on several."""
    wall: bool = False
    """Whether its clock is one on the wall, so that it may wait."""
    judged: bool = True
    """Whether to hold it to its bar: False where the bar is for a longer run, or for a ratio to another."""


@attrs.frozen
class Lead:
    """How many times as fast as the fastest of some others a case is, in each round."""

    name: str
    case: str
    beside: Sequence[str]
    judged: bool = True
    """Whether to hold it to its bar: False where some of the others are missing."""


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
    leads: Sequence[Lead] = ()
    one_loop: bool = False
    """Whether one event loop is enough, because little or nothing of the cost is the loop's."""
    cold: bool = False
    """Whether to leave out the run that warms up: where runs take long, or are processes of their own."""


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
    wall: bool = False
    elsewhere: Mapping[str, "Result"] = attrs.field(factory=dict)
    """The same on other event loops, by the name of the loop."""

    @property
    def figure(self) -> float:
        """What is compared with the bar."""
        return self.cost if self.ratio is None else self.ratio

    def everywhere(self) -> Mapping[str, "Result"]:
        """This one, and those on other loops; the name says on which."""
        return {
            self.name: self,
            **{f"{self.name} ({loop})": result for loop, result in self.elsewhere.items()},
        }

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
    leads: Sequence[Result] = ()

    def figures(self) -> Mapping[str, Result]:
        """All results and leads, on every loop."""
        return {
            name: each
            for result in (*self.results, *self.leads)
            for name, each in result.everywhere().items()
        }


@attrs.define
class _Series:
    """What the rounds of one case on one loop found."""

    costs: list[float] = attrs.Factory(list)
    floors: list[float] = attrs.Factory(list)
    waits: list[int] = attrs.Factory(list)


_Measured = Mapping[str, _Series]
"""The series of the cases on one loop, by name."""


def measure(
    group: Group, rounds: int, floor: Callable[[], float] = floor_ns, beside: Sequence[str] = ()
) -> Report:
    """Run each case once to warm up, then all of them in turn, `rounds` times or as many as the group may.

    They run on the loop that is chosen, and on those named in `beside`.
    """
    rounds = rounds if group.rounds is None else min(rounds, group.rounds)
    gc.collect()
    gc.freeze()  # the modules of all peers are no part of what a collection in a run should look at
    here = loops.chosen()
    names = [here] if group.one_loop else [here, *beside]
    measured = {name: {case.name: _Series() for case in _cases_on(group, name, here)} for name in names}
    for number in range(1 if group.cold else 0, rounds + 1):
        for case in group.cases:
            for name in names:
                if case.name in measured[name]:
                    with loops.on(name):
                        _run_once(case, measured[name][case.name], floor, keep=number > 0)
    anywhere = {name: {**measured[here], **series} for name, series in measured.items()}
    floors = [unit for series in measured[here].values() for unit in series.floors]
    return Report(
        group,
        rounds,
        statistics.median(floors),
        [_everywhere(measured, _result, group, case) for case in group.cases],
        [_everywhere(anywhere, _lead, group, lead) for lead in group.leads if _is_measured(lead, group)],
    )


def _cases_on(group: Group, loop: str, here: str) -> Sequence[Case]:
    return [case for case in group.cases if case.on_loop or loop == here]


def _is_measured(lead: Lead, group: Group) -> bool:
    return any(case.name in lead.beside for case in group.cases)


def _run_once(case: Case, series: _Series, floor: Callable[[], float], *, keep: bool) -> None:
    if not keep:
        case.run()
        return
    gc.collect()
    unit = floor()
    before = _waits()
    cost = case.run()
    series.waits.append(_waits() - before)
    series.floors.append(unit)
    series.costs.append(cost)


_Part = TypeVar("_Part", Case, Lead)


def _everywhere(
    measured: Mapping[str, _Measured],
    make: Callable[[_Measured, Group, _Part], Result | None],
    group: Group,
    part: _Part,
) -> Result:
    """The result on the first loop, with those on the others."""
    here, *others = measured.values()
    first = make(here, group, part)
    assert first is not None
    found = zip(list(measured)[1:], (make(other, group, part) for other in others), strict=True)
    return attrs.evolve(first, elsewhere={loop: result for loop, result in found if result is not None})


def _lead(measured: _Measured, group: Group, lead: Lead) -> Result:
    """What does not run on the loops counts beside each of them."""
    others = [measured[name].costs for name in lead.beside if name in measured]
    fastest = [min(costs) for costs in zip(*others, strict=True)]
    made = _made(lead.name, fastest, measured[lead.case].costs, (0,), lead.case)
    return made if lead.judged else attrs.evolve(made, bar=None)


def _waits() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def _result(measured: _Measured, group: Group, case: Case) -> Result | None:
    if case.name not in measured:
        return None
    series = measured[case.name]
    units = series.floors if case.against is None else measured[case.against].costs
    made = _made(case.name, series.costs, units if group.relative else None, series.waits, case.against)
    judged = case.judged and case.against != case.name
    return attrs.evolve(made, wall=case.wall or group.wall, bar=made.bar if judged else None)


def _made(
    name: str,
    costs: Sequence[float],
    units: Sequence[float] | None,
    waits: Sequence[int],
    against: str | None,
) -> Result:
    """`units` are what the costs of the rounds are divided by, or None where the figure is the cost."""
    low, high = _quartiles(costs)
    ratios = None if units is None else [cost / unit for cost, unit in zip(costs, units, strict=True)]
    return Result(
        name=name,
        cost=statistics.median(costs),
        low=low,
        high=high,
        ratio=None if ratios is None else statistics.median(ratios),
        bar=AT_LEAST.get(name, BARS.get(name)),
        waits=statistics.median(waits),
        against=against,
        at_least=name in AT_LEAST,
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
