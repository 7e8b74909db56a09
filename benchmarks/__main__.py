"""`python -m benchmarks [GROUP ...]`: measure, print, write JSON; without a group all of them.

What runs on an event loop is measured on asyncio's and, where it is installed, on uvloop, in the same rounds.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import bars, loops, peers, report
from benchmarks.harness import Group, Report, Result, measure, pinned


def _send(quick: bool) -> Sequence[Group]:
    from benchmarks import send

    return [send.group(count=20_000 if quick else 100_000)]


def _parts(quick: bool) -> Sequence[Group]:
    from benchmarks import parts

    return parts.groups(count=8_000 if quick else 40_000)


def _ring(quick: bool) -> Sequence[Group]:
    from benchmarks import ring

    return [ring.group(laps=10 if quick else 50)]


def _fanout(quick: bool) -> Sequence[Group]:
    from benchmarks import fanout

    return [fanout.group(count=20_000 if quick else 100_000)]


def _memory(quick: bool) -> Sequence[Group]:
    from benchmarks import memory

    return memory.groups(rounds=1 if quick else 2, quick=quick)


def _scale(quick: bool) -> Sequence[Group]:
    from benchmarks import scale

    return scale.groups(count=20_000 if quick else 100_000, rounds=1 if quick else 5)


def _start(quick: bool) -> Sequence[Group]:
    from benchmarks import startup

    return [startup.group(rounds=3 if quick else 7)]


def _congestion(quick: bool) -> Sequence[Group]:
    from benchmarks import congestion

    if quick:
        return congestion.groups(seconds=0.1, count=10_000, rounds=3)
    return congestion.groups(seconds=0.4, count=50_000)


def _priority(quick: bool) -> Sequence[Group]:
    from benchmarks import priority

    return [priority.group(samples=200 if quick else 1_000)]


def _ask(quick: bool) -> Sequence[Group]:
    from benchmarks import ask

    return [ask.group(count=2_000 if quick else 20_000)]


def _thread(quick: bool) -> Sequence[Group]:
    from benchmarks import thread

    return [thread.group(count=5_000 if quick else 50_000)]


def _box(quick: bool) -> Sequence[Group]:
    from benchmarks import box

    if quick:
        return box.groups(count=20_000, waiting=20_000, rounds=3)
    return box.groups(count=100_000, waiting=bars.FULL_BACKLOG, rounds=5)


def _link(quick: bool) -> Sequence[Group]:
    from benchmarks import link

    if quick:
        return link.groups(count=10_000, million=20_000, seconds=0.5, rounds=1)
    return link.groups(count=bars.FULL_LINKED, million=1_000_000, seconds=3, rounds=3)


GROUPS: dict[str, Callable[[bool], Sequence[Group]]] = {
    "send": _send,
    "parts": _parts,
    "ring": _ring,
    "fanout": _fanout,
    "congestion": _congestion,
    "priority": _priority,
    "ask": _ask,
    "thread": _thread,
    "box": _box,
    "start": _start,
    "memory": _memory,
    "scale": _scale,
    "link": _link,
}
ROUNDS, QUICK_ROUNDS = 15, 3


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
        "--bars", type=float, metavar="FACTOR", help="exit with 1 when a figure misses its bar by FACTOR"
    )
    parser.add_argument("--loop", choices=loops.NAMES, help="this event loop only")
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.groups if name not in GROUPS]
    if unknown:
        parser.error(f"no such group: {', '.join(unknown)} (there are {', '.join(GROUPS)})")
    return arguments


def _over(reports: Sequence[Report], factor: float) -> list[str]:
    return [
        f"{name}: {result.figure:.2f} is {_beyond(result, factor)} its bar of {result.bar:g}"
        for each in reports
        for name, result in each.figures().items()
        if not result.within(factor)
    ]


def _beyond(result: Result, factor: float) -> str:
    return f"less than 1/{factor:g} of" if result.at_least else f"over {factor:g} times"


def _waiting(reports: Sequence[Report]) -> list[str]:
    return [
        f"{result.name}: waited {result.waits:.0f} times a run, and its CPU time does not count that"
        for each in reports
        if each.group.relative
        for result in each.results
        if result.waits > 10 and not result.wall
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Measure the groups named in `words` (by default the command line); gives the exit status."""
    arguments = _arguments(words)
    loops.choose(arguments.loop or "asyncio")
    beside = () if arguments.loop else loops.others()
    reports: dict[str, list[Report]] = {}
    with pinned() as core:
        where = report.machine(core, loops.chosen())
        print(report.summary(where))
        if peers.missing():
            print(
                f"not installed, so not measured beside: {', '.join(peers.missing())} (see the extra `peers`)"
            )
        for name in arguments.groups or GROUPS:
            reports[name] = []
            for group in GROUPS[name](arguments.quick):
                each = measure(group, QUICK_ROUNDS if arguments.quick else ROUNDS, beside=beside)
                report.show(each)
                reports[name].append(each)
    every = [each for measured in reports.values() for each in measured]
    if arguments.json:
        report.write_json(arguments.json, every, where)
    elif not arguments.quick and loops.chosen() == "asyncio":
        for name, measured in reports.items():
            report.write_json(report.default_path(name), measured, where)
    over = [] if arguments.bars is None else _over(every, arguments.bars)
    for line in [*_waiting(every), *over]:
        print(line, file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
