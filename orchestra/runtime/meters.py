"""What went through each inbox, as immutable snapshots that add up."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import attrs

from orchestra.priority import Priority
from orchestra.runtime.bytelane import size_of
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.lane import Lane
from orchestra.runtime.threads.inbox import held


@attrs.frozen(kw_only=True)
class LaneMeters:
    """One lane, in messages: `sent` (accepted) = `received` + `queued` + `evicted`.

    `received` counts what was taken, that of failed handlers too; `evicted` what was accepted and will
    never be handled, thrown out by `DropOldest` or dead-lettered. `dropped_by` has the reasons: "congested"
    (dropped at once), "waited" (no room within the wait), "full" (a `try_send`, or a delayed message under
    `Fail`), "oldest" (thrown out), "behind the first", "stalled" (the receiver took nothing for
    `evict_after`), "missed" (a tick that only other subscribers took), "closed" (the subscriber had ended);
    of a subsystem that is only planned "wip". `blocked` counts how often a sender had to wait,
    `blocked_seconds` for how long in all, `waiting` those that wait now. `peak` is the longest the queue was
    seen: exact when the lane was full, else looked at once in a batch of messages.
    """

    sent: int
    received: int
    queued: int
    evicted: int
    dropped: int
    dropped_by: Mapping[str, int]
    blocked: int
    blocked_seconds: float
    waiting: int
    peak: int
    congested: bool
    starved: int
    """How often this lane has waited long behind more urgent ones."""
    bytes: int
    """How many bytes the boxes have that are queued now; what travels by reference counts none."""


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
    blocked_seconds: float
    waiting: int
    peak: int
    """The highest peak of a lane."""
    restarts: int
    """How often the subsystem has started again."""
    lanes: Mapping[Priority, LaneMeters]
    bytes: int = 0
    """How many bytes the boxes have that are queued now."""
    late_replies: int = 0
    """How many answers of this subsystem came when nobody waited any more."""


def read_meters(inbox: Inbox, restarts: int = 0, late_replies: int = 0) -> Meters:
    """A snapshot of one inbox, and what its subsystem counts besides."""
    with held([inbox]):
        taken = zip(inbox.lanes, inbox.taken(), strict=True)
        lanes = {lane.priority: _read_lane(lane, count) for lane, count in taken}
    return _sum(lanes, {}, restarts, late_replies)


def read_planned(dropped: int) -> Meters:
    """The meters of a subsystem that is only planned: all that was sent to it is dropped."""
    return _sum({}, {"wip": dropped} if dropped else {})


def _sum(
    lanes: Mapping[Priority, LaneMeters],
    dropped_by: Mapping[str, int],
    restarts: int = 0,
    late_replies: int = 0,
) -> Meters:
    every = lanes.values()
    reasons = Counter(dropped_by)
    for lane in every:
        reasons.update(lane.dropped_by)
    return Meters(
        sent=sum(lane.sent for lane in every),
        received=sum(lane.received for lane in every),
        queued=sum(lane.queued for lane in every),
        evicted=sum(lane.evicted for lane in every),
        dropped=reasons.total(),
        dropped_by=MappingProxyType(dict(reasons)),
        blocked=sum(lane.blocked for lane in every),
        blocked_seconds=sum(lane.blocked_seconds for lane in every),
        waiting=sum(lane.waiting for lane in every),
        peak=max((lane.peak for lane in every), default=0),
        restarts=restarts,
        lanes=MappingProxyType(dict(lanes)),
        bytes=sum(lane.bytes for lane in every),
        late_replies=late_replies,
    )


def _read_lane(lane: Lane, received: int) -> LaneMeters:
    queued = len(lane.queue)
    return LaneMeters(
        sent=received + queued + lane.evicted,
        received=received,
        queued=queued,
        evicted=lane.evicted,
        dropped=lane.dropped_in_all,
        dropped_by=MappingProxyType(lane.dropped_by),
        blocked=lane.blocked,
        blocked_seconds=lane.blocked_seconds,
        waiting=lane.senders_waiting,
        peak=lane.longest,
        bytes=_bytes_of(lane),
        congested=lane.congested,
        starved=lane.starved,
    )


def _bytes_of(lane: Lane) -> int:
    while True:
        try:
            return sum(map(size_of, tuple(lane.queue)))
        except RuntimeError:  # its receiver, in a thread, has taken from it meanwhile
            continue
