"""A queue of alarms on one call of the clock: the earliest rings first, equal ones in the order they came.

asyncio keeps such a queue too, but does not promise an order for equal times, and keeps what was cancelled
until it is half of the queue and more than a hundred, with all that it refers to.
"""

import asyncio
import heapq
import math
from collections.abc import Callable

from orchestra.runtime.clock import Clock, Handle

AT_MOST = 86400.0
"""Seconds for which the clock is asked at a time: not every loop takes any number."""

Ring = Callable[[], None]


class Alarm:
    """One entry. `when` is in the clock's seconds; `ring` is None once it has rung or was cancelled."""

    __slots__ = ("ring", "when")

    def __init__(self, when: float, ring: Ring) -> None:
        self.when = when
        self.ring: Ring | None = ring


class Alarms:
    """The alarms of one orchestra. They ring in callbacks of its loop, never early."""

    __slots__ = ("_clock", "_dead", "_handle", "_loop", "_number", "_queue", "_ringing", "_set_for")

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = clock
        self._loop = loop
        self._queue: list[tuple[float, int, Alarm]] = []
        self._number = 0
        self._dead = 0
        self._handle: Handle | None = None
        self._set_for = math.inf
        self._ringing = False

    def __len__(self) -> int:
        """How many are still to ring."""
        return len(self._queue) - self._dead

    def add(self, when: float, ring: Ring) -> Alarm:
        """Ring at `when`, or at the next turn of the loop when that has passed."""
        alarm = Alarm(when, ring)
        heapq.heappush(self._queue, (when, self._number, alarm))
        self._number += 1
        if not self._ringing and when < self._set_for:
            self._set()
        return alarm

    def cancel(self, alarm: Alarm) -> None:
        """Do not ring; a second time, or after it rang, nothing happens."""
        if alarm.ring is None:
            return
        alarm.ring = None
        self._dead += 1
        if 2 * self._dead > len(self._queue):
            self._queue[:] = [entry for entry in self._queue if entry[2].ring is not None]
            heapq.heapify(self._queue)
            self._dead = 0
            if not self._queue:
                self._unset()

    def _ring(self) -> None:
        """Ring what is due. What is added meanwhile waits for the next turn, so that this one has an end."""
        self._unset()
        now, end = self._clock.time(), self._number
        self._ringing = True
        try:
            while self._queue and self._queue[0][0] <= now and self._queue[0][1] < end:
                _, _, alarm = heapq.heappop(self._queue)
                ring, alarm.ring = alarm.ring, None
                if ring is None:
                    self._dead -= 1
                else:
                    ring()
        finally:
            self._ringing = False
            self._set()

    def _set(self) -> None:
        while self._queue and self._queue[0][2].ring is None:
            heapq.heappop(self._queue)
            self._dead -= 1
        self._unset()
        if not self._queue:
            return
        self._set_for = self._queue[0][0]
        delay = self._set_for - self._clock.time()
        if delay > 0:
            self._handle = self._clock.call_later(min(delay, AT_MOST), self._ring)
        else:
            self._handle = self._loop.call_soon(self._ring)

    def _unset(self) -> None:
        self._set_for = math.inf
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
