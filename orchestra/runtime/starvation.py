"""Noticing lanes that wait behind more urgent ones, by a look a second where there are several lanes."""

import asyncio
from collections.abc import Iterable

from orchestra.runtime.inbox import Inbox
from orchestra.runtime.lane import Lane
from orchestra.runtime.pressure import Pressure

INTERVAL = 1.0
"""Seconds between two looks."""

PATIENCE = 5.0
"""Seconds that a lane may wait, while its receiver takes from others, before it counts as starving."""


class StarvationWatch:
    """Counts, and reports once each time, lanes that hold messages while only other lanes are served.

    Time in which the receiver takes nothing at all counts neither for a lane nor against it.
    """

    def __init__(self, inboxes: Iterable[Inbox], loop: asyncio.AbstractEventLoop, pressure: Pressure) -> None:
        self._inboxes = [inbox for inbox in inboxes if len(inbox.lanes) > 1]
        self._loop = loop
        self._pressure = pressure
        self._taken: dict[Inbox, tuple[int, ...]] = {}
        self._waited: dict[Lane, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look from now on, if there is anything to look at."""
        if self._inboxes:
            self._timer = self._loop.call_later(INTERVAL, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        for inbox in self._inboxes:
            taken = inbox.taken()
            before = self._taken.get(inbox, taken)
            for lane, now, then in zip(inbox.lanes, taken, before, strict=True):
                if taken != before or not lane.queue:
                    self._judge(lane, passed=bool(lane.queue) and now == then)
            self._taken[inbox] = taken
        self.start()

    def _judge(self, lane: Lane, *, passed: bool) -> None:
        waited = self._waited.get(lane, 0.0) + INTERVAL if passed else 0.0
        if waited >= PATIENCE > waited - INTERVAL:
            lane.starved += 1
            self._pressure.starving(lane, waited)
        self._waited[lane] = waited
