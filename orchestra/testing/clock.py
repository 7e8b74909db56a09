"""A clock that only moves when it is told to."""

import heapq
import itertools
from collections.abc import Callable

NEAR = 1e-6
"""Seconds within which two times are the same: sums of decimal fractions are not exact."""


class _Alarm:
    """A function that is to be called at some time."""

    __slots__ = ("cancelled", "number", "ring", "when")

    def __init__(self, when: float, number: int, ring: Callable[[], object]) -> None:
        self.when = when
        self.number = number
        self.ring = ring
        self.cancelled = False

    def __lt__(self, other: "_Alarm") -> bool:
        return (self.when, self.number) < (other.when, other.number)

    def cancel(self) -> None:
        """Do not call it. A second time changes nothing."""
        self.cancelled = True


class FakeClock:
    """A clock for a test: it stands at `start` seconds until it is moved.

    What is due at one time is called in the order in which it was asked for.
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._alarms: list[_Alarm] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        """The present time, in seconds."""
        return self._now

    def call_later(self, delay: float, function: Callable[[], object], /) -> _Alarm:
        """Call a function when `delay` seconds have passed; gives a handle with `cancel()`."""
        alarm = _Alarm(self._now + max(delay, 0.0), next(self._numbers), function)
        heapq.heappush(self._alarms, alarm)
        return alarm

    def next_due(self, until: float) -> Callable[[], object] | None:
        """Move to the next alarm that is due at `until` or before, and give it; None when there is none.

        Then the clock stands at `until`.
        """
        wait = self.wait
        if wait is not None and self._now + wait <= until + NEAR:
            alarm = heapq.heappop(self._alarms)
            self._now = max(self._now, alarm.when)
            return alarm.ring
        self._now = max(self._now, until)
        return None

    @property
    def wait(self) -> float | None:
        """Seconds until the next alarm is due; None when there is none."""
        while self._alarms and self._alarms[0].cancelled:
            heapq.heappop(self._alarms)
        return max(self._alarms[0].when - self._now, 0.0) if self._alarms else None

    def __repr__(self) -> str:
        return f"<fake clock at {self._now:g} s>"
