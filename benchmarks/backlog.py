"""A backlog: many messages wait until the last one is sent, and are handled then.

Each run is a process of its own, so that the memory and the garbage collector belong to its messages
alone: `python -m benchmarks.backlog KIND COUNT LOOP` prints the figures of one run as JSON. The clock is the
CPU time of that process, also for the pauses of the collector. Memory is what is resident when all messages
wait, less what was before the first one (`/proc/self/statm`; where there is none, the peak of `getrusage`).
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Never

import attrs

from benchmarks import bars, loops
from benchmarks.floor import clock
from benchmarks.harness import Case, Group
from benchmarks.messages import (
    Signal,
    SlottedTenDicts,
    TenDicts,
    TenRecords,
    ten_dicts,
    ten_records,
)
from orchestra import Actor, Context, Subsystem, orchestra, start, subsystem

Make = Callable[[int], Any]

KINDS: Mapping[str, tuple[Make, bool]] = {
    bars.SLOTTED: (lambda number: SlottedTenDicts(ten_dicts(number)), False),
    bars.STRUCT: (lambda number: TenDicts(ten_dicts(number)), False),
    bars.WITHOUT_GC: (lambda number: TenRecords(ten_records(number)), False),
    bars.IN_BOXES: (lambda number: TenDicts(ten_dicts(number)), True),
}
"""How a message is made, and whether it is boxed."""


@attrs.define
class Figures:
    """What one run found: nanoseconds and bytes a message, and milliseconds."""

    fill: float = 0
    drain: float = 0
    memory: float = 0
    pause: float = 0


class Filler(Subsystem):
    """Sends `count` new messages. Every lane has room for them, so nobody else runs meanwhile."""

    def __init__(self, make: Make, count: int, figures: Figures) -> None:
        self.make = make
        self.count = count
        self.figures = figures

    async def run(self, ctx: Context[Never, Any, Any]) -> None:
        make, figures = self.make, self.figures
        before, began = resident(), clock()
        for number in range(self.count):
            await ctx.send(make(number))
        figures.fill = (clock() - began) / self.count
        figures.memory = (resident() - before) / self.count


class Drainer(Actor):
    """Handles them."""

    def __init__(self, count: int, figures: Figures) -> None:
        self.count = self.left = count
        self.figures = figures
        self.began = 0

    def handle(self, ctx: Context[Any, Never, Any], message: Any) -> None:
        if self.left == self.count:
            self.began = clock()
        self.left -= 1
        if not self.left:
            self.figures.drain = (clock() - self.began) / self.count


def app_class(boxed: bool, capacity: int) -> Any:
    """An orchestra class whose lanes have room for a whole backlog."""
    kinds = [SlottedTenDicts, TenDicts, TenRecords]

    @orchestra(signal=Signal, event=Signal, message_capacity=capacity)
    class Backlog:
        filler: Filler = subsystem(sends=kinds)
        drainer: Drainer = subsystem(subscribes=kinds, boxed=boxed)

    return Backlog


def resident() -> int:
    """Bytes of this process in memory."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def longest_pause(figures: Figures) -> Generator[None]:
    """Meanwhile, find the longest pause of the garbage collector, in milliseconds."""
    began = 0

    def told(phase: str, info: Mapping[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = clock()
        else:
            figures.pause = max(figures.pause, (clock() - began) / 1e6)

    gc.callbacks.append(told)
    try:
        yield
    finally:
        gc.callbacks.remove(told)


async def _filled_and_drained(kind: str, count: int) -> Figures:
    make, boxed = KINDS[kind]
    figures = Figures()
    app = app_class(boxed, count)(filler=Filler(make, count, figures), drainer=Drainer(count, figures))
    gc.collect()
    with longest_pause(figures):
        async with start(app) as running:
            await running.drain()
    return figures


@attrs.define
class Runs:
    """The runs of one kind, each made once: the groups look at the same ones."""

    kind: str
    count: int
    done: list[Figures] = attrs.Factory(list)

    def looked_at(self, figure: Callable[[Figures], float]) -> Callable[[], float]:
        """A function that gives `figure` of the first run, then of the second, and so on."""
        place = -1

        def of_next() -> float:
            nonlocal place
            place += 1
            if place == len(self.done):
                self.done.append(self._run())
            return figure(self.done[place])

        return of_next

    def _run(self) -> Figures:
        words = [sys.executable, "-m", __spec__.name, self.kind, str(self.count), loops.chosen()]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        return Figures(**json.loads(done.stdout))


def groups(count: int, rounds: int | None = None) -> Sequence[Group]:
    """Time, memory and pauses of the same backlogs of `count` messages."""
    runs = [Runs(kind, count) for kind in KINDS]
    whose = f"a backlog of {count:,} messages of ten small dicts"
    group = partial(Group, wall=True, rounds=rounds, one_loop=True)
    return [
        group(
            name="backlog time",
            title=f"{whose}, filled and drained",
            unit="ns a message",
            cases=_cases(runs, bars.TIME, lambda figures: figures.fill + figures.drain),
            ratio="× slotted class",
        ),
        group(
            name="backlog memory",
            title=whose,
            unit="bytes a message",
            cases=_cases(runs, bars.MEMORY, lambda figures: figures.memory),
            ratio="× slotted class",
        ),
        group(
            name="backlog pause",
            title=f"{whose}: the longest pause of the garbage collector",
            unit="ms",
            cases=_cases(runs, bars.PAUSE, lambda figures: figures.pause, relative=False),
            relative=False,
        ),
    ]


def _cases(
    runs: Sequence[Runs], what: str, figure: Callable[[Figures], float], *, relative: bool = True
) -> Sequence[Case]:
    against = bars.backlog(bars.SLOTTED, what) if relative else None
    return [
        Case(
            bars.backlog(each.kind, what),
            each.looked_at(figure),
            against,
            judged=each.count >= bars.FULL_BACKLOG,
        )
        for each in runs
    ]


def main(words: Sequence[str]) -> None:
    """Make one run and print its figures."""
    kind, count, loop = words
    loops.choose(loop)
    print(json.dumps(attrs.asdict(loops.run(_filled_and_drained(kind, int(count))))))


if __name__ == "__main__":
    main(sys.argv[1:])
