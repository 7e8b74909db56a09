"""A drain over several processes: is everybody at rest, and nothing on the way?

Each process that drains asks the others again and again. One is at rest when its subsystems are, and all that
it has sent was acknowledged. When all were at rest twice in a row, and between the two nobody has sent or had
anything, nothing is on the way and nothing can begin any more (after Mattern's four counters, 1987). From
then on inboxes end as in one process.
"""

from typing import TYPE_CHECKING

from orchestra.link import wire
from orchestra.runtime.ensemble import EVENTS
from orchestra.runtime.lifecycle import Phase

if TYPE_CHECKING:
    from orchestra.link.engine import Engine

PAUSE = 0.02
"""Seconds between two questions."""

REPEAT = 0.3
"""Seconds after which it is told again what has finished."""


class Rest:
    """How a process of an orchestra finds out that all of them are at rest."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self.released = False
        self._number = 0
        self._last: dict[int, wire.Quiet] | None = None
        self._finished: list[str] = []
        self._silent = 0
        self._repeats = False

    def begin(self) -> None:
        """Nothing comes from outside any more, anywhere."""
        self._ask()

    def told(self, number: int) -> wire.Quiet:
        """What this process says when it is asked."""
        engine = self._engine
        sent = sum(each.sent for each in engine.circle.neighbours.values())
        had = sum(each.received + each.lost for each in engine.circle.neighbours.values())
        return wire.Quiet(number, self._rests(), sent, had)

    def finished(self, name: str) -> None:
        """A subsystem here has finished; others are told when all that it has sent has arrived."""
        self._finished.append(name)
        if self.released:
            self._say_finished()

    def _rests(self) -> bool:
        ensemble = self._engine.ensemble
        if ensemble.phase is Phase.OPEN or not self._engine.all_arrived:
            return False
        return all(
            part.done or (part.inbox.resting and not (name != EVENTS and ensemble.timers.active(name)))
            for name, part in ensemble.parts.items()
        )

    def _ask(self) -> None:
        engine = self._engine
        if engine.ensemble.phase is not Phase.DRAINING or self.released:
            return
        here = engine.circle.here()
        said = {each.epoch: each.noticed for each in here if each.noticed is not None}
        heard = len(said) == len(here) and all(quiet.number == self._number for quiet in said.values())
        if heard and self._number and self._is_over(said):
            self.released = True
            engine.ensemble.others_changed()
            self._say_finished()
            return
        self._silent = 0 if heard else self._silent + 1
        if heard or self._silent % 10 == 0:
            self._number += 1
            for each in here:
                each.tell(wire.HowQuiet(self._number))
        engine.loop.call_later(PAUSE, self._ask)

    def _is_over(self, said: dict[int, wire.Quiet]) -> bool:
        """Whether all are at rest, as they were before, and nothing has come or gone between the two."""
        every = {**said, 0: self.told(self._number)}
        last, self._last = self._last, every
        if not all(quiet.rests for quiet in every.values()):
            self._last = None
            return False
        return last is not None and _counts(last) == _counts(every)

    def _say_finished(self) -> None:
        engine = self._engine
        if not self._finished or engine.ensemble.phase is Phase.ENDED:
            return
        if not engine.all_arrived:
            engine.loop.call_later(PAUSE, self._say_finished)
            return
        for each in engine.circle.here():
            each.tell(wire.Finished(self._finished))
        if not self._repeats:  # nobody says that it was heard
            self._repeats = True
            engine.loop.call_later(REPEAT, self._say_again)

    def _say_again(self) -> None:
        self._repeats = False
        self._say_finished()


def _counts(said: dict[int, wire.Quiet]) -> dict[int, tuple[int, int]]:
    return {epoch: (quiet.sent, quiet.had) for epoch, quiet in said.items()}
