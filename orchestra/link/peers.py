"""The other processes, each with what is known of it and the way to it."""

import enum
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import attrs

from orchestra.errors import LinkError
from orchestra.link import wire
from orchestra.link.keys import CONTROL, Epoch, Keys
from orchestra.priority import Priority
from orchestra.runtime.afar import Peer


class State(enum.Enum):
    """How it stands with another process; the value is what `Peer.state` shows."""

    MET = "met"
    HERE = "here"
    AWAY = "away"
    GONE = "gone"
    REFUSED = "refused"


class Publishes(Protocol):
    """What puts to one key."""

    def put(self, payload: bytes, attachment: bytes) -> None: ...


class Sessions(Protocol):
    """What a session of the network has to do; `orchestra.link.session.Session` is one over Zenoh."""

    def publisher(self, key: str, *, priority: int, block: bool) -> Publishes: ...
    def subscribe(self, key: str, arrived: Callable[[str, bytes, bytes], object]) -> Any: ...
    def announce(self, key: str) -> Any: ...
    def answer(self, key: str, give: Callable[[], bytes]) -> Any: ...
    def watch(self, key: str, changed: Callable[[str, bool], object]) -> Any: ...
    def close(self, timeout: float) -> bool: ...


@attrs.define(eq=False)
class Neighbour:
    """One other process.

    `alive` says that its token is there. `noise` counts what came from it and was not as it should be.
    `ending` says that it has told that it stops, `ended` that it has said goodbye. `noticed` is its last
    answer to how quiet it is.
    """

    process: str
    epoch: Epoch
    keys: Keys
    session: Sessions
    state: State = State.MET
    alive: bool = False
    hosts: tuple[str, ...] = ()
    finished: frozenset[str] = frozenset()
    why: str = ""
    since: float = attrs.Factory(time.time)
    away_at: float = 0.0
    sent: int = 0
    received: int = 0
    lost: int = 0
    noise: int = 0
    noise_told: bool = False
    greeted_at: float = 0.0
    ending: bool = False
    ended: bool = False
    noticed: wire.Quiet | None = None
    _publishers: dict[Any, Publishes] = attrs.Factory(dict)

    @property
    def has_vanished(self) -> bool:
        """Whether its token has gone as it was to end, and it has not said goodbye."""
        return self.state is State.HERE and self.ending and not self.alive and self.away_at > 0

    def become(self, state: State, why: str = "") -> None:
        """It stands otherwise with it from now on."""
        self.state, self.why, self.since = state, why, time.time()

    @property
    def is_heard(self) -> bool:
        """Whether what comes from it counts. What it has sent before it went away may still come."""
        return self.state in (State.HERE, State.AWAY)

    def tell(self, control: wire.Control) -> None:
        """Send it something that is no message."""
        publisher = self._publishers.get("control")
        if publisher is None:
            key = self.keys.control_to(self.epoch)
            publisher = self._publishers["control"] = self.session.publisher(
                key, priority=CONTROL, block=False
            )
        with suppress(LinkError):  # the session is closed
            publisher.put(wire.write_control(control), b"")

    def publisher(self, level: Priority) -> Publishes:
        """What puts messages of a level to it."""
        publisher = self._publishers.get(level)
        if publisher is None:
            key = self.keys.messages_to(self.epoch, level)
            publisher = self._publishers[level] = self.session.publisher(key, priority=level, block=False)
        return publisher

    def shown(self, unacknowledged: int) -> Peer:
        """What its user is shown of it."""
        return Peer(
            process=self.process,
            epoch=self.epoch,
            hosts=self.hosts,
            state=self.state.value,
            why=self.why,
            since=self.since,
            sent=self.sent,
            received=self.received,
            lost=self.lost,
            unacknowledged=unacknowledged,
            refused=self.noise,
        )

    def __str__(self) -> str:
        return f"{self.process!r} ({self.epoch:016x})"
