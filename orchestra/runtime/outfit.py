"""What one subsystem seldom uses, as methods of one object: a function for each would take more memory."""

from collections.abc import Callable, Mapping
from operator import add
from typing import Any

import attrs

from orchestra.generate.wiring import Wiring
from orchestra.messages import class_of
from orchestra.plan import Style, SubsystemPlan
from orchestra.runtime.ensemble import Ensemble, ask_to_stop
from orchestra.runtime.face import faced
from orchestra.runtime.inbox import Inbox, Order
from orchestra.runtime.live import ActorContext, LiveContext, RunContext
from orchestra.runtime.part import Part
from orchestra.runtime.post import Post
from orchestra.runtime.recipients import LiveRecipient, Recipients
from orchestra.runtime.timers import PartTimers


@attrs.frozen
class Surroundings:
    """What the subsystems of one orchestra have in common."""

    ensemble: Ensemble
    wiring: Wiring
    receivers: Mapping[str, Inbox]
    recipients: Recipients

    def facts(self, plan: SubsystemPlan, declared: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a `Post` of a subsystem is made with, for what it may send."""
        ensemble = self.ensemble
        kinds = kept(tuple(map(class_of, declared)), declared)
        thread = ensemble.door.thread
        return plan.name, kinds, ensemble.plan, self.receivers, ensemble.dropped, ensemble.asks, thread


def kept(made: tuple[Any, ...], planned: tuple[Any, ...]) -> tuple[Any, ...]:
    """A tuple that was made from one of the plan; where they are equal, that one, of which all have one."""
    return planned if made == planned else made


class Outfit:
    """Makes an instance the one that serves, and sees to what the context is seldom asked for."""

    __slots__ = ("_around", "_part", "_plan", "_timers")

    def __init__(self, plan: SubsystemPlan, part: Part, around: Surroundings) -> None:
        self._plan = plan
        self._part = part
        self._around = around
        self._timers: PartTimers | None = None

    def equip(self, instance: Any) -> None:
        """Let an instance serve; what an Actor before it has taken stays counted."""
        part, plan = self._part, self._plan
        part.instance = instance
        if plan.style is Style.RUN:
            part.actor = instance
            _let_serve(part, lambda: instance.run(part.ctx))
            return
        before = part.inbox.taken()
        part.actor = faced(instance, plan)
        served, taken = self._around.wiring.workers[plan.name](part.inbox, part.ctx, part.actor, part)
        part.inbox.taken = (lambda: tuple(map(add, before, taken()))) if any(before) else taken
        if part.worker is None and served.__name__ == "work":
            part.work = served
        else:
            _let_serve(part, served)

    def context(self) -> LiveContext:
        """The context of a subsystem in the loop."""
        name, inbox, around = self._plan.name, self._part.inbox, self._around
        post = Post(*around.facts(self._plan, self._plan.sends))
        send, try_send = around.wiring.outboxes[name](post, around.receivers, around.ensemble.scheduler)
        if self._plan.style is not Style.RUN:
            return ActorContext(inbox, post, around.ensemble, self, send, try_send)
        ctx = RunContext(inbox, post, around.ensemble, self, send, try_send)
        *verbs, inbox.taken = around.wiring.receivers[name](inbox)
        ctx.receive_by(*verbs)
        return ctx

    @property
    def timers(self) -> PartTimers:
        """The timers of the subsystem, from their first use on."""
        if self._timers is None:
            self._timers = self._around.ensemble.timers.of(self._part, self._timed_post)
        return self._timers

    def leave(self) -> None:
        """A life is over."""
        if self._timers is not None:
            self._timers.cancel_all()

    def obey(self, order: Order) -> None:
        """Do what was ordered while a handler ran."""
        if order is Order.STOP:
            self._around.ensemble.stop_unless_stopping()
        else:
            self._part.obey(order)

    def stop(self) -> None:
        """See `Context.stop`."""
        if self._plan.style is Style.RUN:
            self._around.ensemble.stop_unless_stopping()
        else:
            ask_to_stop(self._around.ensemble, self._part)

    def spawn(self, coroutine: Any, *, name: str | None = None) -> Any:
        """See `Context.spawn`."""
        return self._part.spawn(coroutine, name=name)

    def recipient(self, kind: Any) -> LiveRecipient:
        """See `Context.recipient`."""
        return self._around.recipients.of(self._plan, kind)

    def _timed_post(self) -> Post:
        """The way of what timers send: a timer takes what its subsystem receives as well as what it sends."""
        plan = self._plan
        return Post(*self._around.facts(plan, (*plan.sends, *plan.consumes, *plan.subscribes)))


def _let_serve(part: Part, serve: Callable[[], Any]) -> None:
    worker = part.worker
    part.serve = serve if worker is None else lambda: worker.call(serve)
