"""Making the inboxes, posts, contexts and parts of one orchestra from its plan and its wiring."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import attrs

from orchestra.generate.outbox import OUTGOING
from orchestra.generate.wiring import OUTSIDE, Wiring, outgoing_lanes
from orchestra.overflow import Block
from orchestra.plan import LanePlan, Plan, Style, SubsystemPlan
from orchestra.priority import Priority
from orchestra.runtime.conductor import LiveConductor
from orchestra.runtime.ensemble import EVENTS, Ensemble
from orchestra.runtime.events import serve_events
from orchestra.runtime.face import faced
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.live import Outgoing
from orchestra.runtime.outfit import Outfit, Surroundings, kept
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
    around = Surroundings(ensemble, wiring, receivers, recipients)
    if plan.has_on_event:
        ensemble.add(_events_part(app, plan, ensemble, outside), ())
    for name, inbox in ensemble.inboxes.items():
        before = (EVENTS,) if plan.has_on_event else ()
        senders = plan.subsystems[name].senders
        part = _part(plan.subsystems[name], inbox, around, instances[name])
        part.remake = remakers.get(name)
        ensemble.add(
            part,
            kept((*before, *(each for each in senders if each in ensemble.inboxes)), senders),
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


def _part(subsystem: SubsystemPlan, inbox: Inbox, around: Surroundings, instance: Any) -> Part:
    """The part of one subsystem, equipped with its first instance."""
    ensemble = around.ensemble
    part = Part(subsystem.name, subsystem, None, inbox, ensemble.scheduler, ensemble)
    outfit = part.outfit = Outfit(subsystem, part, around)
    inbox.serial = subsystem.style is not Style.RUN
    if isinstance(inbox, ThreadInbox):
        post = ThreadPost(inbox.home, ensemble.door, *around.facts(subsystem, subsystem.sends))
        house(part, around.wiring, post, inbox, around.receivers, ensemble, outfit.timers, outfit.recipient)
    else:
        inbox.leader = outfit
        part.ctx = outfit.context()
    outfit.equip(instance)
    return part
