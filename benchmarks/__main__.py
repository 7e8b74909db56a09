"""`python -m benchmarks [send] [ring] [start]`: measure, print tables, write JSON."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import loops, report
from benchmarks.harness import Group, Report, measure, pinned


def _send(quick: bool) -> Group:
    from benchmarks import send

    return send.group(count=20_000 if quick else 100_000)


def _ring(quick: bool) -> Group:
    from benchmarks import ring

    return ring.group(laps=10 if quick else 50)


def _start(quick: bool) -> Group:
    from benchmarks import startup

    return startup.group()


GROUPS: dict[str, Callable[[bool], Group]] = {"send": _send, "ring": _ring, "start": _start}
ROUNDS, QUICK_ROUNDS = 15, 5


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"{', '.join(GROUPS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, for a first look")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the figures there; by default those that are not quick go to benchmarks/results/",
    )
    parser.add_argument(
        "--bars", type=float, metavar="FACTOR", help="exit with 1 when a figure is over FACTOR times its bar"
    )
    parser.add_argument("--loop", choices=loops.NAMES, default="asyncio", help="the event loop")
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.groups if name not in GROUPS]
    if unknown:
        parser.error(f"no such group: {', '.join(unknown)} (there are {', '.join(GROUPS)})")
    return arguments


def _over(reports: Sequence[Report], factor: float) -> list[str]:
    return [
        f"{result.name}: {result.figure:.1f} is over {factor:g} times its bar of {result.bar:g}"
        for each in reports
        for result in each.results
        if not result.within(factor)
    ]


def _waiting(reports: Sequence[Report]) -> list[str]:
    return [
        f"{result.name}: waited {result.waits:.0f} times a run, and its CPU time does not count that"
        for each in reports
        if each.group.relative
        for result in each.results
        if result.waits > 10
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Measure the groups named in `words` (by default the command line); gives the exit status."""
    arguments = _arguments(words)
    loops.choose(arguments.loop)
    reports: list[Report] = []
    with pinned() as core:
        where = report.machine(core, arguments.loop)
        print(report.summary(where))
        for name in arguments.groups or GROUPS:
            each = measure(GROUPS[name](arguments.quick), QUICK_ROUNDS if arguments.quick else ROUNDS)
            report.show(each)
            reports.append(each)
    if arguments.json:
        report.write_json(arguments.json, reports, where)
    elif not arguments.quick and arguments.loop == "asyncio":
        for each in reports:
            report.write_json(report.default_path(each), [each], where)
    over = [] if arguments.bars is None else _over(reports, arguments.bars)
    for line in [*_waiting(reports), *over]:
        print(line, file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
