"""Noticing handlers that block the event loop, by a thread that looks at what the loop does.

There is one for the process, which sleeps while no orchestra runs, or all of them rest. It costs the loop
next to nothing: a scheduler notes when a turn began, and everything else happens here.
"""

import sys
import threading
import types
from collections.abc import Callable
from time import monotonic

import attrs

from orchestra.runtime import forking
from orchestra.runtime.log import logger
from orchestra.runtime.scheduler import Scheduler
from orchestra.runtime.threads.frames import innermost, outwards, told

QUIET = 10.0
"""Seconds after a warning about a subsystem in which no other one is logged."""

RESTING = 10
"""Looks in a row that have found nothing at work, after which the thread sleeps until something is."""

SLOW = 0.1
"""Seconds that a handler may keep the loop, unless `start` is told otherwise."""


@attrs.define(eq=False)
class Watch:
    """One loop that is watched: `threshold` is in seconds, `thread` the identity of its thread."""

    scheduler: Scheduler
    thread: int
    threshold: float
    names: Callable[[], dict[int, str]]
    """Gives the subsystems by the identity of their instances."""
    warned_of: float = 0.0
    warned: dict[str, float] = attrs.field(factory=dict)

    def look(self, now: float) -> None:
        """Warn if a turn has taken too long already, once for each turn."""
        began = self.scheduler.began
        if not began or now - began < self.threshold or began == self.warned_of:
            return
        frame = sys._current_frames().get(self.thread)
        if frame is None or self.scheduler.began != began:
            return
        self.warned_of = began
        name = self._subsystem(frame)
        if now - self.warned.get(name, -QUIET) >= QUIET:
            self.warned[name] = now
            _warn(name, now - began, innermost(frame))

    def _subsystem(self, frame: types.FrameType) -> str:
        """Whose handler runs: the one that is `self` in a frame of the loop's thread."""
        names = self.names()
        for each in outwards(frame):
            seen = each.f_locals
            if each.f_code.co_filename.startswith("<orchestra generated ") and "inbox" in seen:
                return str(seen["inbox"].name)
            if (name := names.get(id(seen.get("self")))) is not None:
                return name
        return "something"


def _warn(name: str, seconds: float, frame: types.FrameType) -> None:
    logger.warning(
        "%r has kept the event loop busy for %.2g s, at %s: nothing else runs meanwhile; "
        "for work that blocks use blocking=True, or await ctx.run_blocking(...)",
        name,
        seconds,
        told(frame),
        extra={"subsystem": name, "seconds": seconds},
    )


class Watcher:
    """The thread that looks, as often as the most impatient watch needs."""

    def __init__(self) -> None:
        self.disown()
        forking.watch(self)

    def disown(self) -> None:
        """Begin anew: nothing is watched. In a forked child there is no thread, nor what it watched."""
        self._watches: list[Watch] = []
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, watch: Watch) -> None:
        """Watch from now on."""
        with self._lock:
            self._watches = [*self._watches, watch]
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="orchestra:watcher", daemon=True)
                self._thread.start()
        self._changed.set()

    def discard(self, watch: Watch) -> None:
        """Watch no more."""
        with self._lock:
            self._watches = [each for each in self._watches if each is not watch]

    def _work(self) -> None:
        rested = 0
        while True:
            self._changed.clear()
            pause = min((watch.threshold / 2 for watch in self._watches), default=None)
            if rested >= RESTING and self._is_to_be_woken():
                pause = None
            woken = self._changed.wait(pause)
            rested = 0 if woken or self._look(monotonic()) else rested + 1

    def _look(self, now: float) -> bool:
        """Look once, and tell whether anything was at work.

        When this returns, nothing here refers to a watch that has been discarded.
        """
        for watch in self._watches:
            watch.look(now)
        return any(watch.scheduler.began for watch in self._watches)

    def _is_to_be_woken(self) -> bool:
        """Be woken by the first turn that begins from now on; False where one has begun already."""
        for watch in self._watches:
            watch.scheduler.on_begin = self._wake
        return not any(watch.scheduler.began for watch in self._watches)

    def _wake(self) -> None:
        self._changed.set()


watcher = Watcher()
"""The one of this process."""
