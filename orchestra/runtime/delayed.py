"""One message that is sent when its time has come."""

from typing import Any

from orchestra.box import open_entry
from orchestra.errors import Closed, Full
from orchestra.runtime.alarms import Alarm
from orchestra.runtime.jobs import Job, Tools
from orchestra.runtime.lane import Lane
from orchestra.runtime.line import InLine
from orchestra.runtime.ticket import Ticket


class Delayed(Job):
    """A message of `ctx.send_after`: first it waits for its time, then, under `Block`, for room.

    While it waits for its time it can be abandoned, and becomes a dead letter. Afterwards it is a message
    whose sender waits, and shares the lot of such senders. All the while the replies in it are on the way.
    """

    __slots__ = ("_alarm", "_handing", "_lines", "_places", "_planned")

    def __init__(self, tools: Tools, message: Any) -> None:
        self._places, way = tools.post.lay(message)
        super().__init__(tools)
        self._alarm: Alarm | None = None
        self._lines: dict[InLine, None] = {}
        self._planned = way.wip
        self._handing = tools.post.handing_on(message, way, self._places) if way.replies else None
        if self._handing is not None:
            self._handing.begin()
            self._handing.look()

    def set(self, when: float) -> None:
        """Let it come due at `when`."""
        self._alarm = self.tools.alarms.add(when, self._come_due)

    @property
    def when(self) -> float | None:
        return None if self._alarm is None else self._alarm.when

    def cancel(self) -> None:
        self._leave()
        self.over()

    def abandon(self) -> None:
        self._leave()
        super().over()
        self.tools.post.drop_for(self._planned)
        for lane, entry in self._places:
            self.tools.bury(open_entry(entry), lane.subsystem, "timer")
        self._end()

    def over(self) -> None:
        super().over()
        self._end()

    def _leave(self) -> None:
        if self._alarm is not None:
            self.tools.alarms.cancel(self._alarm)
        for line in self._lines:
            line.withdraw()

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
            self._note(lane, outcome)
            if isinstance(outcome, Ticket):
                self._lines[InLine(lane, outcome, entry, self._left, self.tools.loop)] = None

    def _left(self, line: InLine, outcome: bool | None) -> None:
        del self._lines[line]
        if outcome is None:
            finished = "finished" if line.lane.shut else "timer"
            reason = "stopped" if self.tools.stopping() else finished
            self.tools.bury(open_entry(line.entry), line.lane.subsystem, reason)
        else:
            self._note(line.lane, outcome)
        if not self._lines:
            self.over()

    def _end(self) -> None:
        if self._handing is not None:
            self._handing.end()

    def _note(self, lane: Lane, outcome: Ticket | bool) -> None:
        if self._handing is not None:
            self._handing.note(lane, outcome)
