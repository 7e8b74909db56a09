"""What is around a subsystem that runs alone: its part of the orchestra, and sinks in place of the others."""

import functools
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import attrs

from orchestra.decorator import plan_of
from orchestra.fitting import wiring_for
from orchestra.generate.outbox import OUTGOING
from orchestra.generate.wiring import OUTSIDE, outgoing_lanes
from orchestra.plan import LanePlan, Plan, SubsystemPlan
from orchestra.priority import Priority
from orchestra.recipient import Recipient
from orchestra.runtime.assembly import assemble
from orchestra.runtime.ensemble import Ensemble
from orchestra.runtime.gridlock import Gridlocks
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.instances import instance_of, remakers_of
from orchestra.runtime.letters import DeadLetter, Letters
from orchestra.runtime.part import Part
from orchestra.runtime.post import Post
from orchestra.runtime.pressure import Pressure
from orchestra.runtime.recipients import Recipients
from orchestra.runtime.running import Running
from orchestra.runtime.threads.inbox import ThreadInbox
from orchestra.subsystems import Actor
from orchestra.testing.caught import Caught
from orchestra.testing.clock import FakeClock

M = TypeVar("M")


class Stage:
    """One subsystem of an orchestra class, wired and running, with nobody else.

    `post` is the way of messages from the test to it, and `leaving` are the classes that are caught when it
    sends them.
    """

    def __init__(self, app: type, name: str, given: Any, clock: FakeClock, stop_timeout: float) -> None:
        self.name = name
        self.clock = clock
        self.letters: list[DeadLetter] = []
        declared = plan_of(app)
        self.running = Running(declared)
        self._stop_timeout = stop_timeout
        holder: Any = object.__new__(app)
        vars(holder)[name] = given
        instances = {name: instance_of(holder, name, self.running)}
        stand_ins = _stand_ins(declared)
        fitted, wiring = wiring_for(app, {**stand_ins, **instances})
        self.plan = attrs.evolve(fitted, has_on_event=False)
        self.caught = Caught(self._subscribers, clock.time)
        self.ensemble = Ensemble(
            self.plan, Letters(self.letters.append), Pressure(None), Gridlocks(None), clock=clock
        )
        absent = self._absent(stand_ins)
        remakers = remakers_of(holder, self.running, instances)
        self.running.wire(assemble(None, self.plan, wiring, self.ensemble, instances, remakers, absent))
        self._receivers = {**self.ensemble.inboxes, **absent}
        own = {name: self.inbox}
        self.post = Post(OUTSIDE, None, _narrowed(self.plan, name), own, {}, self.ensemble.asks)
        self.leaving = [
            kind for kind, route in self.plan.routes.items() if route.outgoing or self._subscribers(kind)
        ]
        self.ensemble.ended.add_done_callback(lambda _: self.caught.arrival.set())

    @property
    def subsystem(self) -> SubsystemPlan:
        """The subsystem as it was planned."""
        return self.plan.subsystems[self.name]

    @property
    def inbox(self) -> Inbox:
        """The inbox of the subsystem."""
        return self.ensemble.inboxes[self.name]

    @property
    def part(self) -> Part:
        """The subsystem while it runs."""
        return self.ensemble.parts[self.name]

    @property
    def busy(self) -> bool:
        """Whether something is about to be done by the subsystem itself."""
        return self.ensemble.scheduler.awake or self.thread_works

    @property
    def thread_works(self) -> bool:
        """Whether its thread, if it has one, waits neither for its inbox nor for the event loop."""
        worker, inbox = self.part.worker, self.inbox
        return worker is not None and worker.calling and isinstance(inbox, ThreadInbox) and not inbox.waits

    @property
    def idle(self) -> bool:
        """Whether the loop has nothing to do beside the running task. Only asyncio's own loops tell."""
        return not getattr(self.ensemble.loop, "_ready", True)

    @property
    def late_replies(self) -> int:
        """How many of its answers came when nobody waited any more."""
        return self.ensemble.asks.late[self.name]

    def check_open(self, given: Any) -> None:
        """Raise `Closed` with what was given once nothing is taken from outside any more."""
        self.running._check_open(given)

    def ask(self, make: Callable[[Any], Any], priority: Priority | None) -> Coroutine[Any, Any, Any]:
        """Ask the subsystem from outside."""
        return self.ensemble.asks.ask(self.post, None, make, priority=priority)

    def recipient(self, kind: type[M]) -> Recipient[M]:
        """A recipient of a type that somebody in the orchestra receives."""
        anybody = attrs.evolve(self.subsystem, name="the test", sends=self.plan.messages)
        ensemble = self.ensemble
        return Recipients(self.plan, self._receivers, ensemble.dropped, ensemble.asks, ensemble.door).of(
            anybody, kind
        )

    def bury(self, letter: DeadLetter) -> None:
        """Let a message that was caught be one that is never handled."""
        self.ensemble.asks.buried(letter)

    def standing(self) -> str:
        """Where the subsystem stands, and what its time has in store, in words."""
        if self.ensemble.ended.done():
            return "it has ended"
        wait = self.clock.wait
        due = (
            ""
            if wait is None
            else f"; time stands still, and await probe.advance({wait:g}) brings what is due"
        )
        return self._place() + due

    def begin_stop(self, timeout: float | None = None) -> None:
        """Tell it to stop. The others have stopped by then, so nobody answers what it has asked."""
        self.ensemble.begin_stop(self._stop_timeout if timeout is None else timeout)
        self.ensemble.asks.close()

    async def leave(self, error: BaseException | None) -> None:
        """The end of the `async with`."""
        self.begin_stop()
        await self.running.leave(error)

    # inside

    def _place(self) -> str:
        if self.inbox.resting:
            return "it waits for a message"
        if self.part.life is None:
            return "it has failed and is to start again"
        return f"it is at {self.part.where()}"

    def _subscribers(self, kind: type) -> frozenset[str]:
        """Who of those that are not here receives messages of a class."""
        route = self.plan.route_of(kind)
        names = () if route is None else route.receivers
        return frozenset(name for name in names if name != self.name and not self.plan.subsystems[name].wip)

    def _absent(self, stand_ins: Mapping[str, Actor]) -> dict[str, Inbox]:
        """The inboxes of all that is not here, where what is put is caught."""
        absent = {
            name: self._catching(
                name, subsystem.lanes, getattr(stand_ins.get(name, subsystem.kind), "priority", None)
            )
            for name, subsystem in self.plan.subsystems.items()
            if name != self.name and not subsystem.wip
        }
        if self.plan.outgoing:
            absent[OUTGOING] = self._catching(OUTGOING, outgoing_lanes(self.plan), None)
        return absent

    def _catching(
        self, name: str, lanes: tuple[LanePlan, ...], level: Callable[[Any], Priority] | None
    ) -> Inbox:
        inbox = self.ensemble.make_inbox(name, lanes)
        inbox.level = level
        for lane in inbox.lanes:
            lane.queue = self.caught.sink(name, lane.priority)
        return inbox


def _stand_ins(plan: Plan) -> dict[str, Actor]:
    """Actors for the fields where any may stand, and must have a `priority`, for there is no NORMAL lane."""
    return {
        name: _stand_in(subsystem.lanes[0].priority)
        for name, subsystem in plan.subsystems.items()
        if subsystem.made_at_start and Priority.NORMAL not in [lane.priority for lane in subsystem.lanes]
    }


@functools.cache
def _stand_in(level: Priority) -> Actor:
    class StandIn(Actor):
        def handle(self, ctx: Any, message: Any) -> None: ...

        @staticmethod
        def priority(message: Any) -> Priority:
            return level

    return StandIn()


def _narrowed(plan: Plan, name: str) -> Plan:
    """The plan as the test sends by it: every message goes to this subsystem alone."""
    routes = {
        kind: attrs.evolve(route, receivers=(name,), boxed=route.boxed & {name})
        for kind, route in plan.routes.items()
        if name in route.receivers
    }
    return attrs.evolve(plan, routes=MappingProxyType(routes))
