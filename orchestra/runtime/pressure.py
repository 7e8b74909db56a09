"""What becomes visible of lanes under pressure: congestion, stalled receivers, starving lanes."""

from collections.abc import Callable

import attrs

from orchestra.priority import Priority
from orchestra.runtime.lane import Lane
from orchestra.runtime.log import logger
from orchestra.runtime.telling import raise_soon

QUIET = 1.0
"""Seconds after a line about a lane in which no other one is logged."""


@attrs.frozen
class Congestion:
    """A lane that has become congested (`congested` is True), or that has recovered.

    It has recovered when at most half of its capacity is used again and nobody waits. `dropped` counts the
    messages that this lane has dropped so far; `queued` and `capacity` are in messages.
    """

    subsystem: str
    priority: Priority
    congested: bool
    dropped: int
    queued: int
    capacity: float


class Pressure:
    """Tells the hook of each change, and the log, though not more than once a second for each lane.

    After changes that were left out, the last of them is logged when the second is over, and at the end how
    many messages were dropped, where the last line did not say it.
    """

    def __init__(self, hook: Callable[[Congestion], object] | None) -> None:
        self._hook = hook
        self._quiet: dict[Lane, list[Congestion]] = {}
        """The lanes that were logged within the last second, each with the changes left out since."""
        self._told: dict[Lane, int] = {}
        """How many dropped messages the last line about a lane told."""

    def report(self, lane: Lane, congested: bool) -> None:
        """A lane has become congested or has recovered."""
        change = Congestion(
            subsystem=lane.subsystem,
            priority=lane.priority,
            congested=congested,
            dropped=lane.dropped_in_all,
            queued=len(lane.queue),
            capacity=lane.capacity,
        )
        self._log(lane, change)
        if self._hook is None:
            return
        try:
            self._hook(change)
        except BaseException as error:
            logger.exception("the on_congestion hook failed on the lane of %r", lane.subsystem)
            raise_soon(error)

    def close(self) -> None:
        """Log, at the end, how many messages the lanes have dropped that dropped more than was told."""
        self._quiet.clear()
        for lane, told in self._told.items():
            if lane.dropped_in_all > told:
                logger.warning(
                    "the %s lane of %r has dropped %s in all",
                    lane.priority.name,
                    lane.subsystem,
                    _counted(lane.dropped_in_all, "message"),
                )
        self._told.clear()

    def stalled(self, lane: Lane) -> None:
        """Blocking senders were freed from a receiver that takes nothing."""
        logger.warning(
            "%r has taken nothing from its %s lane for %g s: its senders wait no longer",
            lane.subsystem,
            lane.priority.name,
            lane.evict_after,
            extra={"subsystem": lane.subsystem, "priority": lane.priority.name},
        )

    def starving(self, lane: Lane, seconds: float) -> None:
        """A lane has waited behind more urgent ones."""
        logger.warning(
            "the %s lane of %r has waited %g s behind more urgent messages; fairness=n would bound that",
            lane.priority.name,
            lane.subsystem,
            seconds,
            extra={"subsystem": lane.subsystem, "priority": lane.priority.name},
        )

    def _log(self, lane: Lane, change: Congestion, left_out: int = 0) -> None:
        if lane in self._quiet:
            self._quiet[lane].append(change)
            return
        self._quiet[lane] = []
        lane.loop.call_later(QUIET, self._log_latest, lane)
        self._told[lane] = change.dropped
        logger.warning(
            "the %s lane of %r %s%s%s",
            change.priority.name,
            change.subsystem,
            "is congested" if change.congested else "has recovered",
            f", {_counted(change.dropped, 'message')} dropped so far" if change.dropped else "",
            f" ({_counted(left_out, 'change')} not logged)" if left_out else "",
            extra=attrs.asdict(change),
        )

    def _log_latest(self, lane: Lane) -> None:
        if left_out := self._quiet.pop(lane, None):
            self._log(lane, left_out[-1], len(left_out) - 1)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
