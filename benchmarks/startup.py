"""What it costs before the first message: import, decoration, start and stop."""

import os
import subprocess
import sys
from functools import partial
from time import perf_counter_ns

from benchmarks import bars, loops, peers
from benchmarks.floor import clock
from benchmarks.harness import Case, Group
from benchmarks.ring import Ring, synchronous
from orchestra import start

SIZE = 50
_TIMED_IMPORT = "from time import perf_counter_ns as now\nbegan = now()\nimport {}\nprint(now() - began)\n"
_MODULES = {"ezmsg": "ezmsg.core", "thespian": "thespian.actors"}


def _import_ms(module: str) -> float:
    """An import as users have it: with the byte code that an earlier one has left."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", _TIMED_IMPORT.format(module)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
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


def group(rounds: int) -> Group:
    """The cases; each run does its work once, in so many rounds at most."""
    ring = Ring(SIZE, synchronous)
    ring.decorate()
    cases = [
        Case(bars.IMPORT, partial(_import_ms, "orchestra"), on_loop=False),
        Case(bars.DECORATE, _decorate_ms, on_loop=False),
        Case(bars.START_STOP, lambda: loops.run(_start_stop_ms(ring))),
    ]
    for peer in peers.that_can("start"):
        assert peer.start is not None
        name = f"start and stop {SIZE}, {peer.name}"
        cases.append(Case(name, partial(peer.start, SIZE), on_loop=peer.on_loop))
    for library in filter(None, peers.PEERS.values()):
        if library not in peers.missing():
            run = partial(_import_ms, _MODULES.get(library, library))
            cases.append(Case(f"import {library}", run, on_loop=False))
    return Group(
        name="start",
        title="import, decorate, start and stop",
        unit="ms",
        relative=False,
        cases=cases,
        wall=True,
        rounds=rounds,
    )
