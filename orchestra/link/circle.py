"""Who is there: processes that come, are compared with this one, go, come back, and are gone or refused."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from orchestra.link import digest, wire
from orchestra.link.keys import Epoch, Sign, sign_of
from orchestra.link.peers import Neighbour, State
from orchestra.runtime.afar import Peer
from orchestra.runtime.lifecycle import Phase
from orchestra.runtime.log import logger

if TYPE_CHECKING:
    from orchestra.link.engine import Engine

KNOWN = 256
"""Processes that are gone and still known, in case they come back."""


class Circle:
    """The other processes, by epoch. `on_peer` is told of each change."""

    def __init__(self, engine: "Engine", on_peer: Callable[[Peer], object] | None) -> None:
        self._engine = engine
        self._on_peer = on_peer
        self._description = digest.described(engine.plan)
        self._digest = digest.digest(self._description)
        self.neighbours: dict[Epoch, Neighbour] = {}
        self.parted = False
        """This process has said goodbye."""

    def peers(self) -> Mapping[str, Peer]:
        """The other processes by name; of those with one name, all but the first with their epoch."""
        found: dict[str, Peer] = {}
        for each in self.neighbours.values():
            if each.state is not State.GONE:
                name = each.process if each.process not in found else f"{each.process}/{each.epoch:016x}"
                found[name] = self._peer(each)
        return found

    def sign(self, key: str, alive: bool) -> None:
        sign = sign_of(key)
        if sign is None or sign.epoch == self._engine.mailbox.epoch:
            return
        if alive:
            neighbour = self._meet(sign)
            neighbour.alive = True
            if neighbour.state is State.REFUSED:
                return
            self.greet(neighbour, back=True)
            return
        gone = self.neighbours.get(sign.epoch)
        if gone is None:
            return
        gone.alive = False
        if gone.state is State.HERE:
            gone.away_at = self._engine.loop.time()
            if not gone.ending:  # else its goodbye is on the way
                self._become(gone, State.AWAY, "nothing is heard of it")
                self._hosts_changed()
        elif gone.state in (State.MET, State.REFUSED):
            self._become(gone, State.GONE, "it has ended")

    def _meet(self, sign: Sign) -> Neighbour:
        neighbour = self.neighbours.get(sign.epoch)
        if neighbour is None:
            neighbour = Neighbour(
                sign.process, sign.epoch, self._engine.mailbox.keys, self._engine.mailbox.session
            )
            self.neighbours[sign.epoch] = neighbour
            self._forget_old()
        return neighbour

    def _forget_old(self) -> None:
        gone = [epoch for epoch, each in self.neighbours.items() if each.state is State.GONE]
        for epoch in gone[: max(0, len(gone) - KNOWN)]:
            forgotten = self.neighbours.pop(epoch)
            for each in self._engine.outlets.values():
                each.forget(forgotten)

    def greet(self, neighbour: Neighbour, *, back: bool) -> None:
        """Tell a process who this one is; with `back` it is to do the same."""
        if self.parted:
            return
        neighbour.greeted_at = self._engine.loop.time()
        neighbour.tell(
            wire.Hello(
                self._engine.process, self._digest, list(self._engine.hosts), self._engine.signals.count, back
            )
        )

    def hello(self, neighbour: Neighbour, hello: wire.Hello) -> None:
        vanished = neighbour.state in (State.AWAY, State.GONE) and not neighbour.alive
        if self.parted or neighbour.ended or vanished:
            return  # it was on its way when that process ended; one that comes back shows its token first
        neighbour.process = hello.process
        neighbour.hosts = tuple(name for name in hello.hosts if name in self._engine.plan.subsystems)
        if hello.digest != self._digest:
            neighbour.tell(wire.Declares(self._description))
            self.refuse(neighbour, "it declares another orchestra", tell=False)
            return
        if hello.back:
            self.greet(neighbour, back=False)
        self._engine.signals.greeted(neighbour, hello.signals)
        self._welcome(neighbour)

    def _welcome(self, neighbour: Neighbour) -> None:
        """A process that is one of ours is there, for the first time or again."""
        came = neighbour.state is not State.HERE
        if came:
            if not self._is_wanted(neighbour):
                return
            self._become(neighbour, State.HERE)
            self.greet(neighbour, back=False)  # there may have been signals since the last greeting
        for name in neighbour.hosts:
            if name in self._engine.outlets:
                self._engine.outlets[name].host_came(neighbour)
        self._hosts_changed()
        for place, found in self._engine.inlets.items():
            if self._engine.names[place] not in neighbour.hosts:
                for lane in found.lanes.values():
                    lane.join(neighbour)
        for each in self._engine.outlets.values():
            each.ask_again_of(neighbour)
        if came:
            self._engine.questions.came_back(neighbour)
        if self._engine.ensemble.phase is Phase.DRAINING:
            neighbour.tell(wire.Drain())
        elif self._engine.stop_told:
            neighbour.tell(wire.Stop(0.0))

    def _is_wanted(self, neighbour: Neighbour) -> bool:
        """Whether nobody else hosts what it hosts, where that can be only one."""
        for name in neighbour.hosts:
            if name in self._engine.outlets:
                other = self._engine.outlets[name].displaced_by(neighbour)
                if other is not None:
                    self.gone(other, "another process hosts what it did")
                why = self._engine.outlets[name].refuses(neighbour)
                if why is not None:
                    self.refuse(neighbour, why, tell=True)
                    return False
        return True

    def declares(self, neighbour: Neighbour, declares: wire.Declares) -> None:
        why = digest.told(self._description, declares.description)
        self.refuse(neighbour, f"it declares another orchestra: {why}", tell=False)

    def refuse(self, neighbour: Neighbour, why: str, *, tell: bool) -> None:
        if neighbour.state is State.REFUSED and neighbour.why == why:
            return
        if tell:
            neighbour.tell(wire.Refuses(why))
        if neighbour.state is State.HERE:
            self._let_go(neighbour)
        logger.error("the process %s is refused: %s", neighbour, why)
        self._become(neighbour, State.REFUSED, why)

    def gone(self, neighbour: Neighbour, why: str) -> None:
        if neighbour.state is not State.GONE:
            self._become(neighbour, State.GONE, why)
            self._let_go(neighbour)

    def _let_go(self, neighbour: Neighbour) -> None:
        """Nothing more is to be expected of a process."""
        for each in self._engine.outlets.values():
            each.host_gone(neighbour, "lost")
        for found in self._engine.inlets.values():
            for lane in found.lanes.values():
                lane.leave(neighbour)
        self._engine.questions.gone(neighbour)
        self._engine.signals.gone(neighbour)
        self._engine.ensemble.others_changed()
        for other in list(self.neighbours.values()):
            if other.state is State.REFUSED and other.alive and set(other.hosts) & set(neighbour.hosts):
                other.become(State.MET)
                self.greet(other, back=True)

    def _become(self, neighbour: Neighbour, state: State, why: str = "") -> None:
        neighbour.become(state, why)
        if self._on_peer is not None:
            try:
                self._on_peer(self._peer(neighbour))
            except Exception:
                logger.exception("the on_peer hook failed on %s", neighbour)

    def _hosts_changed(self) -> None:
        for each in self._engine.outlets.values():
            each.changed()

    def here(self) -> list[Neighbour]:
        """The processes that can be told something."""
        return [each for each in self.neighbours.values() if each.state is State.HERE]

    def _peer(self, neighbour: Neighbour) -> Peer:
        return neighbour.shown(sum(each.unheard_of(neighbour) for each in self._engine.outlets.values()))
