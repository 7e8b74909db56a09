"""Making the inboxes, posts, contexts and parts of one orchestra from its plan and its wiring."""

from collections.abc import Callable, Mapping
from functools import partial
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
from orchestra.runtime.inbox import Inbox, Order
from orchestra.runtime.live import LiveContext, Outgoing, no_receiving
from orchestra.runtime.part import Part
from orchestra.runtime.post import Post
from orchestra.runtime.threads.context import LiveBlockingContext, calmly
from orchestra.runtime.threads.inbox import ThreadInbox
from orchestra.runtime.threads.post import ThreadPost
from orchestra.runtime.threads.worker import Worker

Verb = Callable[..., Any]


@attrs.frozen
class Assembly:
    """What the outside needs of a wired orchestra."""

    ensemble: Ensemble
    send: Verb
    try_send: Verb
    outgoing: Outgoing | None


def assemble(app: Any, plan: Plan, wiring: Wiring, ensemble: Ensemble) -> Assembly:
    """Wire an instance; nothing runs yet."""
    for name, subsystem in plan.subsystems.items():
        if not subsystem.wip:
            inbox = ensemble.make_inbox(
                name, subsystem.lanes, subsystem.signal_capacity, subsystem.evict_after
            )
            if subsystem.has_priority:
                inbox.level = getattr(app, name).priority
            ensemble.inboxes[name] = inbox
    receivers = dict(ensemble.inboxes)
    outgoing = _make_outgoing(plan, wiring, ensemble, receivers)
    outside = Post(OUTSIDE, None, plan, receivers, ensemble.dropped)
    if plan.has_on_event:
        ensemble.add(_events_part(app, plan, ensemble, outside), ())
    for name, inbox in ensemble.inboxes.items():
        before = (EVENTS,) if plan.has_on_event else ()
        ensemble.add(
            _part(app, plan.subsystems[name], inbox, plan, wiring, ensemble, receivers),
            (*before, *(sender for sender in plan.subsystems[name].senders if sender in ensemble.inboxes)),
        )
    send, try_send = wiring.outboxes[OUTSIDE](outside, receivers, ensemble.scheduler)
    return Assembly(ensemble, send, try_send, outgoing)


def _make_outgoing(
    plan: Plan, wiring: Wiring, ensemble: Ensemble, receivers: dict[str, Inbox]
) -> Outgoing | None:
    if not plan.outgoing:
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
    part = Part(EVENTS, None, app, inbox, ensemble.scheduler, ensemble.part_ended)
    conductor = LiveConductor(plan, ensemble.inboxes.values(), post, ensemble.closed_when_stopping)
    part.serve = partial(serve_events, inbox, partial(app.on_event, conductor))
    return part


def _part(
    app: Any,
    subsystem: SubsystemPlan,
    inbox: Inbox,
    plan: Plan,
    wiring: Wiring,
    ensemble: Ensemble,
    receivers: Mapping[str, Inbox],
) -> Part:
    name, actor = subsystem.name, getattr(app, subsystem.name)
    part = Part(name, subsystem, actor, inbox, ensemble.scheduler, ensemble.part_ended)
    inbox.obey = lambda _order: ensemble.stop_unless_stopping()
    finish = partial(inbox.close, "finished")
    sends = tuple(class_of(sent) for sent in subsystem.sends)
    facts = name, sends, plan, receivers, ensemble.dropped
    if isinstance(inbox, ThreadInbox):
        _house(part, actor, wiring, ThreadPost(inbox.home, ensemble.door, *facts), inbox, receivers, ensemble)
        return part
    post = Post(*facts)
    send, try_send = wiring.outboxes[name](post, receivers, ensemble.scheduler)
    verbs = {"send": send, "try_send": try_send, "run_blocking": partial(ensemble.pool.run, name)}
    if subsystem.style is Style.RUN:
        recv, try_recv, recv_signal, following, inbox.taken = wiring.receivers[name](inbox)
        verbs |= {"recv": recv, "try_recv": try_recv, "recv_signal": recv_signal, "__anext__": following}
        part.ctx = LiveContext(inbox, verbs, ensemble.stop_unless_stopping, finish)
        part.serve = partial(actor.run, part.ctx)
    else:
        verbs |= no_receiving(name)
        inbox.serial = True
        part.ctx = LiveContext(inbox, verbs, partial(_ask_to_stop, ensemble, part), finish)
        served, inbox.taken = wiring.workers[name](inbox, part.ctx, actor, part)
        if served.__name__ == "work":
            part.work = served
        else:
            part.serve = served
    return part


def _house(
    part: Part,
    actor: Any,
    wiring: Wiring,
    post: ThreadPost,
    inbox: ThreadInbox,
    receivers: Mapping[str, Inbox],
    ensemble: Ensemble,
) -> None:
    """Let a blocking subsystem live in a thread."""
    assert part.plan is not None
    home, name = inbox.home, part.name
    send, try_send = wiring.outboxes[name](post, receivers, ensemble.scheduler)
    verbs = {"send": send, "try_send": try_send}
    worker = part.worker = Worker(home)
    stop = partial(home.do, ensemble.stop_unless_stopping)
    inbox.obey = lambda _order: calmly(stop)
    finish = partial(home.do, partial(inbox.close, "finished"))
    if part.plan.style is Style.RUN:
        recv, try_recv, recv_signal, following, inbox.taken = wiring.receivers[name](inbox)
        verbs |= {"recv": recv, "try_recv": try_recv, "recv_signal": recv_signal, "__next__": following}
        part.ctx = LiveBlockingContext(inbox, verbs, stop, finish)
        part.serve = partial(worker.call, partial(actor.run, part.ctx))
    else:
        verbs |= no_receiving(name, "__next__")
        inbox.serial = True
        part.ctx = LiveBlockingContext(inbox, verbs, partial(_ask_to_stop, ensemble, part), finish)
        serve, inbox.taken = wiring.workers[name](inbox, part.ctx, actor, part)
        part.serve = partial(worker.call, serve)


def _ask_to_stop(ensemble: Ensemble, part: Part) -> None:
    """Stop when the running handler of an Actor has returned, at the latest when the Actor has ended."""
    if part.done:
        ensemble.stop_unless_stopping()
    else:
        part.asked_to_stop = True
        part.inbox.order(Order.STOP)
