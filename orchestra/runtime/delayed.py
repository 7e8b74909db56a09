"""One message that is sent when its time has come."""

from typing import Any

from orchestra.box import open_entry
from orchestra.errors import Closed, Full
from orchestra.runtime.alarms import Alarm
from orchestra.runtime.jobs import Job, Tools
from orchestra.runtime.lane import Lane, Ticket
from orchestra.runtime.line import InLine
from orchestra.runtime.post import Places


class Delayed(Job):
    """A message of `ctx.send_after`: first it waits for its time, then, under `Block`, for room.

    While it waits for its time it can be abandoned, and becomes a dead letter. Afterwards it is a message
    whose sender waits, and shares the lot of such senders.
    """

    __slots__ = ("_alarm", "_lines", "_places", "_planned")

    def __init__(self, tools: Tools, places: Places, planned: tuple[str, ...]) -> None:
        super().__init__(tools)
        self._alarm: Alarm | None = None
        self._lines: dict[InLine, None] = {}
        self._places = places
        self._planned = planned

    def set(self, when: float) -> None:
        """Let it come due at `when`."""
        self._alarm = self.tools.alarms.add(when, self._come_due)

    @property
    def when(self) -> float | None:
        return None if self._alarm is None else self._alarm.when

    def cancel(self) -> None:
        if self._alarm is not None:
            self.tools.alarms.cancel(self._alarm)
        for line in self._lines:
            line.withdraw()
        self.over()

    def abandon(self) -> None:
        self.cancel()
        self.tools.post.drop_for(self._planned)
        for lane, entry in self._places:
            self.tools.bury(open_entry(entry), lane.subsystem, "timer")

    def _come_due(self) -> None:
        self._alarm = None
        self.tools.jobs.discard(self)
        self.tools.post.drop_for(self._planned)
        for lane, entry in self.tools.post.living(self._places, len(self._places)):
            self._put(lane, entry)
        if not self._lines:
            self.over()

    def _put(self, lane: Lane, entry: Any) -> None:
        try:
            outcome = lane.admit(entry, None)
        except Closed:
            self.tools.bury(open_entry(entry), lane.subsystem, "finished")
        except Full:
            lane.drop("full")
        else:
            if isinstance(outcome, Ticket):
                self._lines[InLine(lane, outcome, entry, self._left, self.tools.loop)] = None

    def _left(self, line: InLine, outcome: bool | None) -> None:
        del self._lines[line]
        if outcome is None:
            finished = "finished" if line.lane.shut else "timer"
            reason = "stopped" if self.tools.stopping() else finished
            self.tools.bury(open_entry(line.entry), line.lane.subsystem, reason)
        if not self._lines:
            self.over()
