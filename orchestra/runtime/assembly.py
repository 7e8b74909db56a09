"""Making the inboxes, posts, contexts and parts of one orchestra from its plan and its wiring."""

from collections.abc import Callable, Mapping
from functools import partial
from operator import add
from types import MappingProxyType
from typing import Any

import attrs

from orchestra.generate.outbox import OUTGOING
from orchestra.generate.wiring import OUTSIDE, Wiring, outgoing_lanes
from orchestra.messages import class_of
from orchestra.overflow import Block
from orchestra.plan import LanePlan, Plan, Style, SubsystemPlan
from orchestra.priority import Priority
from orchestra.runtime.conductor import LiveConductor
from orchestra.runtime.ensemble import EVENTS, Ensemble, ask_to_stop
from orchestra.runtime.events import serve_events
from orchestra.runtime.face import faced
from orchestra.runtime.inbox import Inbox, Order
from orchestra.runtime.live import LiveContext, Outgoing, no_receiving
from orchestra.runtime.part import Part
from orchestra.runtime.post import Post
from orchestra.runtime.recipients import Recipients
from orchestra.runtime.threads.housing import house
from orchestra.runtime.threads.inbox import ThreadInbox
from orchestra.runtime.threads.post import ThreadPost

Verb = Callable[..., Any]


@attrs.frozen
class Assembly:
    """What the outside needs of a wired orchestra."""

    ensemble: Ensemble
    send: Verb
    try_send: Verb
    ask: Verb
    outgoing: Outgoing | None
    recipients: Recipients


def assemble(
    app: Any,
    plan: Plan,
    wiring: Wiring,
    ensemble: Ensemble,
    instances: Mapping[str, Any],
    remakers: Mapping[str, Callable[[], Any]],
    absent: Mapping[str, Inbox] = MappingProxyType({}),
) -> Assembly:
    """Wire an orchestra and the instances of its subsystems; nothing runs yet.

    `remakers` has what makes a fresh instance for a restart, where the same one is not to serve again;
    `absent` the inboxes of those that do not run: in a test of the others, or because another process hosts
    them.
    """
    for name, subsystem in plan.subsystems.items():
        if not subsystem.wip and name not in absent:
            inbox = ensemble.make_inbox(
                name, subsystem.lanes, subsystem.signal_capacity, subsystem.evict_after
            )
            if subsystem.has_priority:
                inbox.level = faced(instances[name], subsystem).priority
            ensemble.inboxes[name] = inbox
    receivers = {**ensemble.inboxes, **absent}
    outgoing = _make_outgoing(plan, wiring, ensemble, receivers)
    outside = Post(OUTSIDE, None, plan, receivers, ensemble.dropped, ensemble.asks)
    recipients = Recipients(plan, receivers, ensemble.dropped, ensemble.asks, ensemble.door)
    if plan.has_on_event:
        ensemble.add(_events_part(app, plan, ensemble, outside), ())
    for name, inbox in ensemble.inboxes.items():
        before = (EVENTS,) if plan.has_on_event else ()
        part = _part(plan.subsystems[name], inbox, plan, wiring, ensemble, receivers, recipients)
        part.equip(instances[name])
        part.remake = remakers.get(name)
        ensemble.add(
            part,
            (*before, *(sender for sender in plan.subsystems[name].senders if sender in ensemble.inboxes)),
        )
    send, try_send = wiring.outboxes[OUTSIDE](outside, receivers, ensemble.scheduler)
    return Assembly(ensemble, send, try_send, partial(ensemble.asks.ask, outside, None), outgoing, recipients)


def _make_outgoing(
    plan: Plan, wiring: Wiring, ensemble: Ensemble, receivers: dict[str, Inbox]
) -> Outgoing | None:
    if not plan.outgoing or OUTGOING in receivers:
        return None
    inbox = ensemble.make_inbox(OUTGOING, outgoing_lanes(plan))
    receivers[OUTGOING] = inbox
    senders = {
        name for name, subsystem in plan.subsystems.items() if not subsystem.wip and plan.leads_out(name)
    }
    ensemble.outgoing = inbox
    ensemble.outgoing_senders = senders | ({EVENTS} if plan.has_on_event else set())
    recv, try_recv, _, following, inbox.taken = wiring.receivers[OUTGOING](inbox)
    return Outgoing(recv, try_recv, following)


def _events_part(app: Any, plan: Plan, ensemble: Ensemble, post: Post) -> Part:
    lanes = (LanePlan(Priority.NORMAL, plan.event_capacity, Block()),)
    inbox = ensemble.make_inbox(EVENTS, lanes)
    inbox.serial = True
    part = Part(EVENTS, None, app, inbox, ensemble.scheduler, ensemble)
    conductor = LiveConductor(
        plan, ensemble.inboxes.values(), post, ensemble.closed_when_stopping, ensemble.afar
    )
    part.serve = partial(serve_events, inbox, partial(app.on_event, conductor))
    return part


def _part(
    subsystem: SubsystemPlan,
    inbox: Inbox,
    plan: Plan,
    wiring: Wiring,
    ensemble: Ensemble,
    receivers: Mapping[str, Inbox],
    recipients: Recipients,
) -> Part:
    """The part of one subsystem, to be equipped with an instance."""
    name = subsystem.name
    part = Part(name, subsystem, None, inbox, ensemble.scheduler, ensemble)
    sends = tuple(class_of(sent) for sent in subsystem.sends)
    facts = name, sends, plan, receivers, ensemble.dropped, ensemble.asks
    seldom = _Seldom(subsystem, part, wiring, ensemble, receivers, recipients)
    inbox.obey = seldom.obey
    timers = ensemble.timers.of(part, seldom.timed_post)
    part.leftovers.append(timers.cancel_all)
    part.equip = seldom.equip
    if isinstance(inbox, ThreadInbox):
        way = ThreadPost(inbox.home, ensemble.door, *facts)
        house(part, wiring, way, inbox, receivers, ensemble, timers, partial(recipients.of, subsystem))
        return part
    post = seldom.post = Post(*facts)
    send, try_send = wiring.outboxes[name](post, receivers, ensemble.scheduler)
    verbs: dict[str, Verb] = {
        "send": send,
        "try_send": try_send,
        "ask": seldom.ask,
        "recipient": seldom.recipient,
        "spawn": part.spawn,
        "run_blocking": seldom.run_blocking,
    }
    if subsystem.style is Style.RUN:
        recv, try_recv, recv_signal, following, inbox.taken = wiring.receivers[name](inbox)
        verbs |= {"recv": recv, "try_recv": try_recv, "recv_signal": recv_signal, "__anext__": following}
        part.ctx = LiveContext(inbox, verbs, ensemble.stop_unless_stopping, timers, ensemble.door)
    else:
        verbs |= no_receiving(name)
        inbox.serial = True
        part.ctx = LiveContext(inbox, verbs, seldom.ask_to_stop, timers, ensemble.door)
    return part


class _Seldom:
    """What a subsystem seldom uses: methods of one object, for a bound method takes less than a partial."""

    __slots__ = ("_ensemble", "_part", "_plan", "_receivers", "_recipients", "_wiring", "post")

    def __init__(
        self,
        plan: SubsystemPlan,
        part: Part,
        wiring: Wiring,
        ensemble: Ensemble,
        receivers: Mapping[str, Inbox],
        recipients: Recipients,
    ) -> None:
        self._plan = plan
        self._part = part
        self._wiring = wiring
        self._ensemble = ensemble
        self._receivers = receivers
        self._recipients = recipients
        self.post: Post | None = None

    def ask(self, *arguments: Any, **keywords: Any) -> Any:
        assert self.post is not None
        return self._ensemble.asks.ask(self.post, self._part.inbox, *arguments, **keywords)

    def recipient(self, *arguments: Any, **keywords: Any) -> Any:
        return self._recipients.of(self._plan, *arguments, **keywords)

    def run_blocking(self, *arguments: Any, **keywords: Any) -> Any:
        return self._ensemble.pool.run(self._part.name, *arguments, **keywords)

    def ask_to_stop(self) -> None:
        ask_to_stop(self._ensemble, self._part)

    def obey(self, order: Order) -> None:
        if order is Order.STOP:
            self._ensemble.stop_unless_stopping()
        else:
            self._part.obey(order)

    def equip(self, instance: Any) -> None:
        let = _let_run if self._plan.style is Style.RUN else _let_handle
        let(self._part, self._wiring, instance)

    def timed_post(self) -> Post:
        """The way of what timers send: a timer takes what its subsystem receives as well as what it sends."""
        plan, ensemble = self._plan, self._ensemble
        timed = (*plan.sends, *plan.consumes, *plan.subscribes)
        kinds = tuple(map(class_of, timed))
        return Post(plan.name, kinds, ensemble.plan, self._receivers, ensemble.dropped, ensemble.asks)


def _let_run(part: Part, wiring: Wiring, instance: Any) -> None:
    part.instance = part.actor = instance
    run = partial(instance.run, part.ctx)
    part.serve = run if part.worker is None else partial(part.worker.call, run)


def _let_handle(part: Part, wiring: Wiring, instance: Any) -> None:
    """Let an Actor handle what comes; what an instance before it has taken stays counted."""
    assert part.plan is not None
    before = part.inbox.taken()
    part.instance, part.actor = instance, faced(instance, part.plan)
    served, taken = wiring.workers[part.name](part.inbox, part.ctx, part.actor, part)
    part.inbox.taken = (lambda: tuple(map(add, before, taken()))) if any(before) else taken
    if part.worker is not None:
        part.serve = partial(part.worker.call, served)
    elif served.__name__ == "work":
        part.work = served
    else:
        part.serve = served
