"""What went through each inbox, as immutable snapshots that add up."""

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from orchestra.priority import Priority
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.lane import Lane


@attrs.frozen(kw_only=True)
class LaneMeters:
    """One lane, in messages: `sent` (accepted) = `received` + `queued` + `evicted`.

    `received` counts what was taken, that of failed handlers too; `evicted` what was accepted and will
    never be handled; `blocked` how often a sender had to wait; `waiting` the senders that wait now.
    """

    sent: int
    received: int
    queued: int
    evicted: int
    dropped: int
    dropped_by: Mapping[str, int]
    blocked: int
    waiting: int
    congested: bool


@attrs.frozen(kw_only=True)
class Meters:
    """One inbox: the sums over its lanes, and `lanes`, most urgent first."""

    sent: int
    received: int
    queued: int
    evicted: int
    dropped: int
    dropped_by: Mapping[str, int]
    blocked: int
    waiting: int
    lanes: Mapping[Priority, LaneMeters]


def read_meters(inbox: Inbox) -> Meters:
    """A snapshot of one inbox."""
    lanes = {
        lane.priority: _read_lane(lane, taken) for lane, taken in zip(inbox.lanes, inbox.taken(), strict=True)
    }
    return _sum(lanes, {})


def read_planned(dropped: int) -> Meters:
    """The meters of a subsystem that is only planned: all that was sent to it is dropped."""
    return _sum({}, {"wip": dropped} if dropped else {})


def _sum(lanes: Mapping[Priority, LaneMeters], dropped_by: Mapping[str, int]) -> Meters:
    every = lanes.values()
    return Meters(
        sent=sum(lane.sent for lane in every),
        received=sum(lane.received for lane in every),
        queued=sum(lane.queued for lane in every),
        evicted=sum(lane.evicted for lane in every),
        dropped=sum(dropped_by.values()),
        dropped_by=MappingProxyType(dict(dropped_by)),
        blocked=sum(lane.blocked for lane in every),
        waiting=sum(lane.waiting for lane in every),
        lanes=MappingProxyType(dict(lanes)),
    )


def _read_lane(lane: Lane, received: int) -> LaneMeters:
    queued = len(lane.queue)
    return LaneMeters(
        sent=received + queued + lane.evicted,
        received=received,
        queued=queued,
        evicted=lane.evicted,
        dropped=0,
        dropped_by=MappingProxyType({}),
        blocked=lane.blocked,
        waiting=lane.senders_waiting,
        congested=False,
    )
