"""What it costs before the first message: import, decoration, start and stop."""

import os
import subprocess
import sys
from time import perf_counter_ns

from benchmarks import bars, loops
from benchmarks.floor import clock
from benchmarks.harness import Case, Group
from benchmarks.ring import Ring, synchronous
from orchestra import start

SIZE = 50
_TIMED_IMPORT = (
    "from time import perf_counter_ns as now\nbegan = now()\nimport orchestra\nprint(now() - began)\n"
)


def _import_ms() -> float:
    """An import as users have it: with the byte code that an earlier one has left."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", _TIMED_IMPORT], env=environment, check=True, capture_output=True, text=True
    )
    return int(done.stdout) / 1e6


def _decorate_ms() -> float:
    ring = Ring(SIZE, synchronous)
    began = clock()
    ring.decorate()
    return (clock() - began) / 1e6


async def _start_stop_ms(ring: Ring) -> float:
    app = ring.app(None)
    began = perf_counter_ns()
    async with start(app) as running:
        await running.stop()
    return (perf_counter_ns() - began) / 1e6


def group() -> Group:
    """The cases; each run does its work once."""
    ring = Ring(SIZE, synchronous)
    ring.decorate()
    return Group(
        name="start",
        title="import, decorate, start and stop",
        unit="ms",
        relative=False,
        cases=[
            Case(bars.IMPORT, _import_ms),
            Case(bars.DECORATE, _decorate_ms),
            Case(bars.START_STOP, lambda: loops.run(_start_stop_ms(ring))),
        ],
    )
