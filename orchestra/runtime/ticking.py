"""A message made and sent again and again, at the multiples of an interval."""

import inspect
import math
from collections.abc import Callable
from typing import Any

from orchestra.errors import Closed, Full
from orchestra.overflow import Block
from orchestra.runtime.alarms import Alarm
from orchestra.runtime.jobs import Job, Tools
from orchestra.runtime.lane import Lane
from orchestra.runtime.line import InLine
from orchestra.runtime.pending import HandingOn
from orchestra.runtime.post import Places, Way
from orchestra.runtime.telling import note, raise_soon
from orchestra.runtime.ticket import Ticket
from orchestra.timer import Missed


def time_of(start: float, interval: float, number: int) -> float:
    """When a tick is due. Nothing is added up, so that nothing drifts."""
    return start + number * interval


def last_due(start: float, interval: float, now: float) -> int:
    """The number of the last tick whose time has come, exactly as `time_of` tells the times."""
    number = math.floor((now - start) / interval)
    while time_of(start, interval, number + 1) <= now:
        number += 1
    while time_of(start, interval, number) > now:
        number -= 1
    return number


class Tick:
    """One tick; `sent` when a lane has taken it. `handing` has the replies in it, if there are any.

    While a tick waits in line they are still with its sender, for it goes when its timer does.
    """

    __slots__ = ("_handing", "sent")

    def __init__(self, handing: HandingOn | None) -> None:
        self.sent = False
        self._handing = handing

    def put(self, lane: Lane) -> None:
        """A lane has taken it."""
        if self._handing is not None:
            with self._handing as handing:
                handing.note(lane, True)


class Trace:
    """Where the last tick of a timer is in one lane: in line for room, in the queue, or taken already."""

    __slots__ = ("_place", "lane", "line")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.line: InLine | None = None
        self._place = 0

    def put(self) -> None:
        """The tick is now the last of the queue."""
        self._place = self.lane.gone + len(self.lane.queue)

    @property
    def queued(self) -> bool:
        """Whether the tick is still in the queue."""
        return self.lane.gone < self._place


class Ticking(Job):
    """The ticks of `ctx.send_every`.

    `_owed` counts the ticks that are to be sent as soon as they can be: one that is due, and what the policy
    makes of those that were missed. Under `Block` a tick that finds no room waits in line, one at a time, so
    that a lane which is always full does not keep ticks out. It never does so longer than its timer lives:
    what is not in the queue by then is not sent.
    """

    __slots__ = (
        "_alarm",
        "_factory",
        "_interval",
        "_lanes",
        "_looking",
        "_missed",
        "_next",
        "_owed",
        "_place",
        "_start",
        "_traces",
    )

    def __init__(
        self, tools: Tools, interval: float, factory: Callable[[], Any], missed: Missed, place: str
    ) -> None:
        super().__init__(tools)
        self._place = place
        self._interval = interval
        self._factory = factory
        self._missed = missed
        self._start = tools.clock.time()
        self._next = 1
        self._owed = 0
        self._lanes: tuple[Lane, ...] = ()
        self._traces: dict[Lane, Trace] = {}
        self._looking = False
        self._alarm: Alarm | None = None

    def set(self) -> None:
        """Let the first tick come due after one interval."""
        self._alarm = self.tools.alarms.add(time_of(self._start, self._interval, self._next), self._come_due)

    @property
    def when(self) -> float | None:
        return None if self._alarm is None else self._alarm.when

    def cancel(self) -> None:
        if self._alarm is not None:
            self.tools.alarms.cancel(self._alarm)
        for trace in self._traces.values():
            if trace.line is not None:
                trace.line.withdraw()
        self.over()

    def _come_due(self) -> None:
        last = last_due(self._start, self._interval, self.tools.clock.time())
        due = last + 1 - self._next
        self._next = last + 1
        self.set()
        self.timer.due += due
        self._owed = self._owed + due if self._missed is Missed.BURST else 1
        self._send_owed()

    def _send_owed(self) -> None:
        """Send what is owed, as far as it can be sent now; see to it that the rest is tried again."""
        while self._owed and self.timer.active and self._send_one():
            self._owed -= 1
        if self._missed is Missed.SKIP:
            self._owed = 0
        if self._owed and self.timer.active:
            for lane in self._lanes:
                lane.watch(self._look_soon)
            if any(self._takes(lane) for lane in self._lanes):  # a thread has taken a message meanwhile
                self._look_soon()

    def _look_soon(self) -> None:
        """Try again at the next turn of the loop: a receiver that takes messages is not to be held up."""
        if not self._looking:
            self._looking = True
            self.tools.loop.call_soon(self._look)

    def _look(self) -> None:
        self._looking = False
        if self.timer.active:
            self._send_owed()

    def _send_one(self) -> bool:
        """Make one tick and give it to every lane that takes it; False when none does."""
        if self._lanes and not any(self._takes(lane) for lane in self._lanes):
            if all(lane.shut for lane in self._lanes):
                self.cancel()
            return False
        made = self._make()
        if made is None:
            return False
        message, places, way = made
        self._lanes = tuple(lane for lane, _ in places)
        takers = [lane for lane in self._lanes if self._takes(lane)]
        if places and not takers:
            return False
        self.tools.post.drop_for(way.wip)
        tick = Tick(self.tools.post.handing_on(message, way, places) if way.replies else None)
        del message  # a reply is known to be gone when the last reference is
        if not places:
            self._count(tick)
        for lane, entry in places:
            if lane in takers:
                self._put(tick, lane, entry)
            else:
                lane.drop("closed" if lane.shut else "missed")
        return True

    def _make(self) -> tuple[Any, Places, Way] | None:
        """Call the factory, and find where its message goes; None when that failed, or ended the timer."""
        try:
            message = self.tools.call(self._factory)
            if inspect.iscoroutine(message):
                message.close()
            places, way = self.tools.post.lay(message)
        except BaseException as error:
            self.cancel()
            note(error, f"raised for a tick of the timer that was set at {self._place}")
            self.tools.fail(error)
            raise_soon(error)
            return None
        return (message, places, way) if self.timer.active else None

    def _takes(self, lane: Lane) -> bool:
        """Whether a tick may go to this lane now: into its queue or, when it is full, into the line."""
        trace = self._traces.get(lane)
        if lane.shut or (trace is not None and trace.line is not None):
            return False
        if trace is not None and trace.queued and self._missed is not Missed.BURST:
            return False
        return len(lane.queue) < lane.room or (isinstance(lane.policy, Block) and not lane.stalled)

    def _put(self, tick: Tick, lane: Lane, entry: Any) -> None:
        trace = self._traces.setdefault(lane, Trace(lane))
        try:
            outcome = lane.admit(entry, None)
        except Closed:
            return
        except Full:  # there was room, but not for so many bytes
            lane.drop("missed")
            return
        if isinstance(outcome, Ticket):

            def left(_: InLine, put: bool | None) -> None:
                trace.line = None
                if put:
                    trace.put()
                    tick.put(lane)
                    self._count(tick)

            trace.line = InLine(lane, outcome, entry, left, self.tools.loop)
        elif outcome:
            trace.put()
            tick.put(lane)
            self._count(tick)

    def _count(self, tick: Tick) -> None:
        if not tick.sent:
            tick.sent = True
            self.timer.sent += 1
