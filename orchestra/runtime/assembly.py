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
from orchestra.runtime.ensemble import EVENTS, Ensemble
from orchestra.runtime.events import serve_events
from orchestra.runtime.face import faced
from orchestra.runtime.inbox import Inbox, Order
from orchestra.runtime.live import LiveContext, Outgoing, no_receiving
from orchestra.runtime.part import Part
from orchestra.runtime.post import Post
from orchestra.runtime.recipients import Recipients

Verb = Callable[..., Any]


@attrs.frozen
class Assembly:
    """What the outside needs of a wired orchestra."""

    ensemble: Ensemble
    send: Verb
    try_send: Verb
    ask: Verb
    outgoing: Outgoing | None


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
    `absent` the inboxes of those that do not run, in a test of the others.
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
    recipients = Recipients(plan, receivers, ensemble.dropped, ensemble.asks)
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
    return Assembly(ensemble, send, try_send, partial(ensemble.asks.ask, outside, None), outgoing)


def _make_outgoing(
    plan: Plan, wiring: Wiring, ensemble: Ensemble, receivers: dict[str, Inbox]
) -> Outgoing | None:
    if not plan.outgoing or OUTGOING in receivers:
        return None
    inbox = ensemble.make_inbox(OUTGOING, outgoing_lanes(plan))
    receivers[OUTGOING] = inbox
    senders = {
        name
        for name, subsystem in plan.subsystems.items()
        if not subsystem.wip and any(_leads_out(plan, sent) for sent in subsystem.sends)
    }
    ensemble.outgoing = inbox
    ensemble.outgoing_senders = senders | ({EVENTS} if plan.has_on_event else set())
    recv, try_recv, _, following, inbox.taken = wiring.receivers[OUTGOING](inbox)
    return Outgoing(recv, try_recv, following)


def _leads_out(plan: Plan, sent: Any) -> bool:
    kind = class_of(sent)
    return any(issubclass(out, kind) or issubclass(kind, out) for out in plan.outgoing)


def _events_part(app: Any, plan: Plan, ensemble: Ensemble, post: Post) -> Part:
    lanes = (LanePlan(Priority.NORMAL, plan.event_capacity, Block()),)
    inbox = ensemble.make_inbox(EVENTS, lanes)
    inbox.serial = True
    part = Part(EVENTS, None, app, inbox, ensemble.scheduler, ensemble)
    conductor = LiveConductor(plan, ensemble.inboxes.values(), post, ensemble.closed_when_stopping)
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
    inbox.obey = partial(_obey, ensemble, part)
    finish = partial(inbox.close, "finished")
    sends = tuple(class_of(sent) for sent in subsystem.sends)
    post = Post(name, sends, plan, receivers, ensemble.dropped, ensemble.asks)
    send, try_send = wiring.outboxes[name](post, receivers, ensemble.scheduler)
    verbs: dict[str, Verb] = {
        "send": send,
        "try_send": try_send,
        "ask": partial(ensemble.asks.ask, post, inbox),
        "recipient": partial(recipients.of, subsystem),
        "spawn": part.spawn,
    }
    timers = ensemble.timers.of(part, partial(_timed_post, subsystem, plan, receivers, ensemble.dropped))
    part.leftovers.append(timers.cancel_all)
    if subsystem.style is Style.RUN:
        recv, try_recv, recv_signal, following, inbox.taken = wiring.receivers[name](inbox)
        verbs |= {"recv": recv, "try_recv": try_recv, "recv_signal": recv_signal, "__anext__": following}
        part.ctx = LiveContext(inbox, verbs, ensemble.stop_unless_stopping, finish, timers)
        part.equip = partial(_let_run, part)
    else:
        verbs |= no_receiving(name)
        inbox.serial = True
        part.ctx = LiveContext(inbox, verbs, partial(_ask_to_stop, ensemble, part), finish, timers)
        part.equip = partial(_let_handle, part, wiring.workers[name])
    return part


def _let_run(part: Part, instance: Any) -> None:
    part.instance = part.actor = instance
    part.serve = partial(instance.run, part.ctx)


def _let_handle(part: Part, worker: Callable[..., Any], instance: Any) -> None:
    """Let an Actor handle what comes; what an instance before it has taken stays counted."""
    assert part.plan is not None
    before = part.inbox.taken()
    part.instance, part.actor = instance, faced(instance, part.plan)
    served, taken = worker(part.inbox, part.ctx, part.actor, part)
    part.inbox.taken = lambda: tuple(map(add, before, taken()))
    if served.__name__ == "work":
        part.work = served
    else:
        part.serve = served


def _obey(ensemble: Ensemble, part: Part, order: Order) -> None:
    if order is Order.STOP:
        ensemble.stop_unless_stopping()
    else:
        part.obey(order)


def _timed_post(
    subsystem: SubsystemPlan, plan: Plan, receivers: Mapping[str, Inbox], dropped: dict[str, int]
) -> Post:
    """The way of what timers send: a timer takes what its subsystem receives as well as what it sends."""
    timed = (*subsystem.sends, *subsystem.consumes, *subsystem.subscribes)
    return Post(subsystem.name, tuple(map(class_of, timed)), plan, receivers, dropped)


def _ask_to_stop(ensemble: Ensemble, part: Part) -> None:
    """Stop when the running handler of an Actor has returned, at the latest when the Actor has ended."""
    if part.done or part.winding_up:
        ensemble.stop_unless_stopping()
    else:
        part.asked_to_stop = True
        part.inbox.order(Order.STOP)
