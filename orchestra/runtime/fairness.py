"""The starvation guard: which lane a receiver with `fairness=n` takes from next. Pure but for the lanes."""

from collections.abc import Sequence

from orchestra.runtime.lane import Lane


class Turns:
    """Serves lanes by level, but after `limit` messages in a row that passed by a waiting lane, that lane.

    Of several waiting lanes the one that was served longest ago has its turn. Signals are no matter of
    lanes: they come before.
    """

    __slots__ = ("_lanes", "_limit", "_served", "_streak", "taken")

    def __init__(self, lanes: Sequence[Lane], limit: int) -> None:
        self._lanes = lanes
        self._limit = limit
        self._streak = 0
        self._served = [0] * len(lanes)
        self.taken = [0] * len(lanes)
        """How many messages were taken from each lane."""

    def next(self) -> Lane | None:
        """The lane to take one message from, or None when all are empty; the message counts as taken."""
        waiting = [place for place, lane in enumerate(self._lanes) if lane.queue]
        if not waiting:
            return None
        place, *passed = waiting
        if passed and self._streak >= self._limit:
            place = min(passed, key=self._served.__getitem__)
        self._streak = self._streak + 1 if passed and place == waiting[0] else 0
        self._served[place] = sum(self.taken) + 1
        self.taken[place] += 1
        return self._lanes[place]
