"""The timers and the deadline of each subsystem: what they are set with, and how they end."""

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from orchestra.errors import Closed
from orchestra.plan import Style
from orchestra.runtime.alarms import Alarm, Alarms
from orchestra.runtime.clock import Clock, seconds
from orchestra.runtime.delayed import Delayed
from orchestra.runtime.jobs import Tools
from orchestra.runtime.lifecycle import Phase
from orchestra.runtime.part import Part
from orchestra.runtime.post import Post
from orchestra.runtime.telling import caller
from orchestra.runtime.ticking import Ticking
from orchestra.timer import Deadline, Missed, Timer

SHORTEST = 1e-6
"""Seconds of the shortest interval."""


class Timers:
    """All timers of one orchestra, by subsystem. `phase` tells that of the orchestra."""

    def __init__(
        self,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        bury: Callable[[Any, str, str], None],
        phase: Callable[[], Phase],
        rested: Callable[[], None] = lambda: None,
    ) -> None:
        self.clock = clock
        self.loop = loop
        self.bury = bury
        self.phase = phase
        self.rested = rested
        self.alarms = Alarms(clock, loop)
        self._parts: dict[str, PartTimers] = {}

    def of(self, part: Part, post: Callable[[], Post]) -> "PartTimers":
        """The timers of one subsystem; `post` makes the way for what it consumes and sends."""
        made = self._parts[part.name] = PartTimers(part, self, post)
        return made

    def cancel_all(self, name: str | None = None) -> None:
        """Cancel the timers and the deadline of a subsystem, or of all; delayed messages become dead letters.

        What is in an inbox, or waits for room in one, is a message like any other, save a tick that waits.
        """
        for part in list(self._parts) if name is None else [name]:
            if part in self._parts:
                self._parts[part].cancel_all()

    def active(self, name: str) -> bool:
        """Whether a subsystem has something set that has yet to come due."""
        part = self._parts.get(name)
        return part is not None and part.active

    def stopping(self) -> bool:
        """Whether nobody takes another message."""
        return self.phase() in (Phase.STOPPING, Phase.ENDED)


class PartTimers:
    """The verbs of one subsystem's context that have to do with time. They belong to the event loop."""

    __slots__ = ("_alarm", "_deadline", "_gone", "_hurried", "_made", "_part", "_post", "_timers")

    def __init__(self, part: Part, timers: Timers, post: Callable[[], Post]) -> None:
        self._part = part
        self._timers = timers
        self._post = post
        self._made: Tools | None = None
        self._deadline: Deadline | None = None
        self._alarm: Alarm | None = None
        self._hurried = False
        self._gone = -1

    def send_after(self, delay: float, message: Any) -> Timer:
        """See `Context.send_after`."""
        delay = seconds("the delay", delay)
        if delay < 0:
            raise ValueError(f"the delay is {delay:g} s; it is 0 or more")
        self._check_alive(message)
        tools = self._tools()
        job = Delayed(tools, message)
        if self._is_open:
            self._part.inbox.go_on()
            job.set(tools.clock.time() + delay)
        else:
            job.abandon()
        return job.timer

    def send_every(
        self, interval: float, factory: Callable[[], Any], missed: Missed, place: str | None = None
    ) -> Timer:
        """See `Context.send_every`. `place` is where it is called, by default the running code."""
        interval = seconds("the interval", interval)
        if interval < SHORTEST:
            raise ValueError(f"the interval is {interval:g} s; it is at least {SHORTEST:g}")
        if not callable(factory):
            raise TypeError(
                f"a tick is made by a function: send_every({interval:g}, Tick) or a lambda, and this is one "
                f"{type(factory).__qualname__}"
            )
        if inspect.iscoroutinefunction(factory):
            raise TypeError(f"{factory!r} is asynchronous; a tick is made by a plain function")
        if not isinstance(missed, Missed):
            raise TypeError(f"missed is {missed!r}; it is Missed.SKIP, Missed.COALESCE or Missed.BURST")
        self._check_alive(None)
        job = Ticking(self._tools(), interval, factory, missed, place or caller())
        if self._is_open:
            self._part.inbox.go_on()
            job.set()
        else:
            job.abandon()
        return job.timer

    def set_deadline(self, when: float | None) -> None:
        """See `Context.set_deadline`."""
        self._check_hook("set_deadline")
        self._change_deadline(None if when is None else seconds("the deadline", when))

    def set_timeout(self, timeout: float | None) -> None:
        """See `Context.set_timeout`."""
        self._check_hook("set_timeout")
        self._change_deadline(
            None if timeout is None else self._timers.clock.time() + seconds("the timeout", timeout)
        )

    def cancel_all(self) -> None:
        """Cancel everything; delayed messages become dead letters."""
        self._forget_deadline()
        if self._made is not None:
            for job in list(self._made.jobs):
                job.abandon()

    @property
    def active(self) -> bool:
        """Whether a timer has something to send, or a deadline is to pass."""
        to_pass = self._deadline is not None and not self._deadline.passed
        return to_pass or (self._made is not None and bool(self._made.jobs))

    @property
    def _is_open(self) -> bool:
        return self._timers.phase() is Phase.OPEN

    def _tools(self) -> Tools:
        if self._made is None:
            timers = self._timers
            self._made = Tools(
                alarms=timers.alarms,
                clock=timers.clock,
                loop=timers.loop,
                post=self._post(),
                bury=timers.bury,
                fail=self._part.fail,
                call=self._call,
                stopping=timers.stopping,
                rested=timers.rested,
            )
        return self._made

    def _call(self, function: Callable[[], Any]) -> Any:
        assert self._part.inbox.strand is not None
        return self._part.inbox.strand.context.run(function)

    def _check_alive(self, message: Any) -> None:
        if self._part.done or self._timers.phase() is Phase.ENDED:
            name = self._part.name
            closed = Closed(f"{name!r} has ended: it sets no timer any more", message, name)
            closed.__cause__ = self._part.inbox.failure
            raise closed

    def _check_hook(self, verb: str) -> None:
        plan = self._part.plan
        assert plan is not None
        if "deadline_passed" in plan.hooks:
            return
        kind = type(self._part.instance).__qualname__
        if plan.style is Style.RUN:
            raise TypeError(
                f"{kind} has a run of its own: there `async with asyncio.timeout(...)` is the way, "
                f"not ctx.{verb}(...)"
            )
        raise TypeError(
            f"{kind} has no hook for ctx.{verb}(...): give it deadline_passed(self, ctx, deadline)"
        )

    def _change_deadline(self, when: float | None) -> None:
        self._check_alive(None)
        self._forget_deadline()
        if when is None or not self._is_open:
            self._timers.rested()
            return
        self._part.inbox.go_on()
        deadline = self._deadline = Deadline(when)
        if when <= self._timers.clock.time() and not self._hurried:
            self._hurried = (
                True  # once in a turn of the loop: a hook may set one that has passed again and again
            )
            self._timers.loop.call_soon(self._calm)
            self._pass(deadline)
        else:
            self._alarm = self._timers.alarms.add(when, partial(self._pass, deadline))

    def _calm(self) -> None:
        self._hurried = False

    def _pass(self, deadline: Deadline) -> None:
        """Have the hook called, after another message if none was taken since the last time and some wait.

        Else a hook that takes longer than its deadlines are apart would keep all messages waiting.
        """
        if deadline.off or deadline.passed:
            return
        self._alarm = None
        inbox = self._part.inbox
        gone = sum(lane.gone for lane in inbox.lanes)
        if gone == self._gone and any(lane.queue for lane in inbox.lanes):

            def again() -> None:
                self._timers.loop.call_soon(self._pass, deadline)

            for lane in inbox.lanes:
                lane.watch(again)
            if gone != sum(lane.gone for lane in inbox.lanes):  # a thread has taken a message meanwhile
                again()
        else:
            self._gone = gone
            deadline.passed = True
            inbox.pass_deadline(deadline)

    def _forget_deadline(self) -> None:
        if self._alarm is not None:
            self._timers.alarms.cancel(self._alarm)
            self._alarm = None
        if self._deadline is not None:
            self._deadline.off = True
            self._deadline = None
