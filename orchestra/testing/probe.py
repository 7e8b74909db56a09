"""One subsystem alone: what reaches it comes from the test, and what it sends stays with the test."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import attrs

from orchestra.box import open_entry
from orchestra.decorator import plan_of
from orchestra.errors import UndeclaredMessage
from orchestra.fitting import wiring_for
from orchestra.generate.outbox import OUTGOING
from orchestra.generate.wiring import outgoing_lanes
from orchestra.messages import joined, shown
from orchestra.plan import Plan
from orchestra.priority import Priority
from orchestra.runtime.assembly import assemble
from orchestra.runtime.conductor import check_signal
from orchestra.runtime.ensemble import PATIENCE, Ensemble
from orchestra.runtime.gridlock import Gridlocks
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.letters import DeadLetter, Letters
from orchestra.runtime.meters import Meters, read_meters
from orchestra.runtime.pressure import Pressure
from orchestra.runtime.running import Running
from orchestra.runtime.threads.door import Door
from orchestra.runtime.threads.inbox import ThreadInbox
from orchestra.testing.clock import FakeClock

M = TypeVar("M")

QUIET = 5
"""Turns of the event loop in a row without work after which a subsystem is taken to be at rest."""

GLANCE = 0.0005
"""Seconds between two looks at a thread that works."""

PATIENT = 5.0
"""Seconds of real time that a test waits for a message by default."""


@attrs.frozen
class Sent:
    """A message that the subsystem sent: to whom, at which level, and at what time of the clock."""

    message: Any
    receiver: str
    priority: Priority
    time: float


class Probe:
    """A subsystem that runs alone, and the test's hand on all that is around it.

    It runs as it would in its orchestra, with its own lanes, policies, boxing and restart. Time stands
    still for its timers, deadlines, backoffs and the time limits of its asks, until `advance` moves it.
    """

    def __init__(self, name: str, plan: Plan, clock: FakeClock) -> None:
        self.clock = clock
        self.letters: list[DeadLetter] = []
        """The dead letters so far."""
        self.log: list[Sent] = []
        """What it sent so far, with receiver, level and time, in order."""
        self._name = name
        self._running = Running(plan)
        self._ensemble: Ensemble = None  # type: ignore[assignment]  # set by `begin`, before anybody has the probe
        self._unexpected: list[Any] = []
        self._arrival = asyncio.Event()

    def begin(self, plan: Plan, wiring: Any, instance: Any) -> None:
        """Wire the subsystem to this probe and let it run from the next turn of the loop."""
        pressure, gridlocks = Pressure(None), Gridlocks(None)
        ensemble = Ensemble(plan, Letters(self.letters.append), pressure, gridlocks, clock=self.clock)
        absent = {
            name: self._absent(ensemble, name, subsystem.lanes, subsystem.kind)
            for name, subsystem in plan.subsystems.items()
            if name != self._name and not subsystem.wip
        }
        if plan.outgoing:
            absent[OUTGOING] = self._absent(ensemble, OUTGOING, outgoing_lanes(plan), None)
        self._running.wire(assemble(None, plan, wiring, ensemble, {self._name: instance}, {}, absent))
        self._ensemble = ensemble
        ensemble.ended.add_done_callback(lambda _: self._arrival.set())
        ensemble.launch()

    # what reaches the subsystem

    async def send(self, message: Any, *, priority: Priority | None = None) -> bool:
        """Send it a message, as another subsystem would; gives True when its lane took it.

        Waits where its lane has no room. Raises as `running.send` does, and `UndeclaredMessage` for what
        another subsystem receives.
        """
        self._check_receives(message)
        return await self._running.send(message, priority=priority)

    def try_send(self, message: Any, *, priority: Priority | None = None) -> bool:
        """Send it a message without waiting; as `running.try_send`."""
        self._check_receives(message)
        return self._running.try_send(message, priority=priority)

    async def ask(self, make: Callable[[Any], Any], *, timeout: float | None = PATIENT) -> Any:
        """Ask it, and wait for the reply; as `running.ask`, with `timeout` in seconds of its clock."""
        return await self._running.ask(make, timeout=timeout)

    def signal(self, signal: Any) -> None:
        """Give it a signal, as a broadcast would; raises TypeError for what is no signal of the orchestra."""
        check_signal(self._ensemble.plan, signal)
        self._inbox.signal(signal)

    # what it does

    @property
    def sent(self) -> list[Any]:
        """The messages that it sent so far, in order; `log` has more about each."""
        return [each.message for each in self.log]

    async def expect(self, kind: type[M], timeout: float = PATIENT) -> M:
        """The first message of a type that it sent and that was not expected before; waits for one.

        Messages of other types stay, to be expected later. `timeout` is in seconds of real time. Raises
        AssertionError when none comes: the time is over, or the subsystem has ended or failed.
        """
        try:
            async with asyncio.timeout(timeout):
                while True:
                    for place, message in enumerate(self._unexpected):
                        if isinstance(message, kind):
                            del self._unexpected[place]
                            return message
                    if self._ensemble.ended.done():
                        raise AssertionError(self._told(kind, "and has ended")) from self._ensemble.error
                    self._arrival.clear()
                    await self._arrival.wait()
        except TimeoutError:
            raise AssertionError(self._told(kind, f"within {timeout:g} s")) from None

    async def settle(self) -> None:
        """Wait until it rests, or waits for something that does not come from the test or the clock.

        A handler that waits for the network, say, counts as at rest. One that works on without end is
        waited for no longer than a second of real time; so is the thread of a blocking subsystem, in which
        nobody can tell a wait from work.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + 1
        quiet = 0
        while quiet < QUIET and loop.time() < end and not self._ensemble.ended.done():
            await asyncio.sleep(GLANCE if self._thread_works else 0)
            quiet = 0 if self._ensemble.scheduler.awake or self._thread_works else quiet + 1

    async def advance(self, seconds: float) -> None:
        """Let its time go on by some seconds: what comes due meanwhile happens in order, each at its time.

        It settles before, between and after. Raises ValueError for a time that would go backwards.
        """
        if seconds < 0:
            raise ValueError(f"time goes forward: advance takes 0 seconds or more, not {seconds:g}")
        until = self.clock.time() + seconds
        await self.settle()
        while (ring := self.clock.next_due(until)) is not None:
            ring()
            await self.settle()

    @property
    def instance(self) -> Any:
        """The subsystem itself."""
        return self._running.instances[self._name]

    @property
    def meters(self) -> Meters:
        """What went through its inbox; as in `running.meters()`."""
        return read_meters(self._inbox)

    @property
    def ended(self) -> bool:
        """Whether it has ended, by itself or with a failure."""
        return self._ensemble.ended.done()

    # its end

    async def drain(self, timeout: float | None = PATIENT) -> None:
        """Let it handle all that is queued and end, as when nobody is left who could send to it.

        Its timers are cancelled. What is left after `timeout` seconds is handled as by a stop. Raises
        its error.
        """
        await self._running.drain(timeout)

    async def stop(self, timeout: float = PATIENCE) -> None:
        """Stop it, as `running.stop`. Raises its error."""
        await self._running.stop(timeout)

    async def wait(self) -> None:
        """Wait until it has ended by itself. Raises its error."""
        await self._running.wait()

    async def leave(self, error: BaseException | None) -> None:
        """The end of the `async with`."""
        await self._running.leave(error)

    def __repr__(self) -> str:
        return f"<probe of {self._name!r}>"

    # inside

    @property
    def _inbox(self) -> Inbox:
        return self._ensemble.inboxes[self._name]

    @property
    def _thread_works(self) -> bool:
        """Whether its thread, if it has one, waits neither for its inbox nor for the event loop."""
        worker, inbox = self._ensemble.parts[self._name].worker, self._inbox
        return worker is not None and worker.calling and isinstance(inbox, ThreadInbox) and not inbox.waits

    def _check_receives(self, message: Any) -> None:
        kind = type(open_entry(message))
        route = self._ensemble.plan.route_of(kind)
        if route is not None and self._name not in route.receivers:
            who = joined(map(repr, route.receivers)) if route.receivers else "the outside"
            raise UndeclaredMessage(
                f"{shown(kind)} goes to {who}, and only {self._name!r} is here", message, self._name
            )

    def _absent(self, ensemble: Ensemble, name: str, lanes: Any, kind: Any) -> Inbox:
        """The inbox of a subsystem that is not here: whatever is put there comes to the test."""
        inbox = ensemble.make_inbox(name, lanes)
        inbox.level = getattr(kind, "priority", None)
        for lane in inbox.lanes:
            lane.queue = _Sink(self, ensemble.door, name, lane.priority)
        return inbox

    def take(self, message: Any, receiver: str, priority: Priority) -> None:
        """Note down what the subsystem sent."""
        self.log.append(Sent(message, receiver, priority, self.clock.time()))
        self._unexpected.append(message)
        self._arrival.set()

    def _told(self, kind: type, when: str) -> str:
        sent = joined(map(repr, self._unexpected))
        return f"{self._name!r} has sent no {shown(kind)} {when}; what it sent and nobody expected: {sent}"


class _Sink(deque[Any]):
    """A queue that is always empty, for what is put goes straight to the probe.

    What a thread puts comes there at the next turn of the event loop, which `settle` waits for.
    """

    def __init__(self, probe: Probe, door: Door, receiver: str, priority: Priority) -> None:
        super().__init__()
        self._probe = probe
        self._door = door
        self._receiver = receiver
        self._priority = priority

    def append(self, entry: Any, /) -> None:
        take = partial(self._probe.take, open_entry(entry), self._receiver, self._priority)
        if self._door.here:
            take()
        else:
            self._door.post(take)


class alone:  # noqa: N801 - it reads as a verb: `async with alone(...) as probe`
    """Run one subsystem of an orchestra and no other: `async with alone(App, "counter", Counter()) as probe`.

    It is wired as the class declares the field `name`, and gets messages and signals from the probe alone.
    What it sends goes to the probe, which has room for everything; levels, boxing and undeclared types
    are checked as ever. No event comes, and time stands still until `probe.advance`.

    Leaving the block stops it and raises its error, as for `start`. Raises TypeError for a name that is no
    subsystem of the class, or one that is only planned, and for what is no instance that may stand there.
    """

    def __init__(self, app: type, name: str, subsystem: Any, *, start: float = 0.0) -> None:
        plan = plan_of(app)
        if name not in plan.subsystems:
            there = joined(map(repr, plan.subsystems))
            raise TypeError(f"{plan.name} has no subsystem {name!r}; it has {there}")
        if plan.subsystems[name].wip:
            raise TypeError(f"{plan.name}.{name} is declared with wip=True: take that away to run it")
        given, self._wiring = wiring_for(app, {name: subsystem})
        self._plan = attrs.evolve(given, has_on_event=False)
        self._name = name
        self._subsystem = subsystem
        self._start = start
        self._probe: Probe | None = None

    async def __aenter__(self) -> Probe:
        probe = self._probe = Probe(self._name, self._plan, FakeClock(self._start))
        probe.begin(self._plan, self._wiring, self._subsystem)
        await probe.settle()
        return probe

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._probe is not None
        await self._probe.leave(error)
