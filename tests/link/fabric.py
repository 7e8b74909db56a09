"""A network in one event loop, in place of Zenoh: it delays, drops, cuts, freezes and kills."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from orchestra.errors import LinkError


class Network:
    """What all sessions hang on. `delay` gives the seconds that a packet takes, `drops` whether it is lost.

    Packets to one key from one session never overtake each other. `puts` has all of them, by key.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.sessions: list[Session] = []
        self.delay: Callable[[str], float] = lambda key: 0.0
        self.drops: Callable[[str], bool] = lambda key: False
        self.puts: list[tuple[str, bytes, bytes]] = []

    def link(self, name: str, **more: Any) -> "FakeLink":
        return FakeLink(self, name, **more)

    def session(self, name: str) -> "Session":
        """The last session that a process of this name has opened."""
        return [each for each in self.sessions if each.name == name][-1]

    def tokens(self, seen_by: "Session") -> Iterator[str]:
        for each in self.sessions:
            if each is not seen_by and not each.cut and not seen_by.cut:
                yield from each.tokens

    def put(self, source: "Session", key: str, payload: bytes, attachment: bytes) -> None:
        self.puts.append((key, payload, attachment))
        if source.frozen:
            source.waiting.append(lambda: self.put(source, key, payload, attachment))
            return
        if source.cut or self.drops(key):
            return
        now = self.loop.time()
        due = max(now + self.delay(key), source.last.get(key, 0.0))
        source.last[key] = due
        if due <= now:
            self.loop.call_soon(self._deliver, source, key, payload, attachment)
        else:
            self.loop.call_at(due, self._deliver, source, key, payload, attachment)

    def _deliver(self, source: "Session", key: str, payload: bytes, attachment: bytes) -> None:
        for each in list(self.sessions):
            if each is not source and not each.cut:
                each.get(key, payload, attachment)

    def cut(self, name: str) -> None:
        """Nothing goes to or from a process; all see each other vanish."""
        session = self.session(name)
        others = list(self.tokens(session))
        session.cut = True
        for each in self.sessions:
            if each is not session:
                each.see([(token, False) for token in session.tokens])
        session.see([(token, False) for token in others])

    def mend(self, name: str) -> None:
        """The cable is in again."""
        session = self.session(name)
        session.cut = False
        for each in self.sessions:
            if each is not session and not each.cut:
                each.see([(token, True) for token in session.tokens])
        session.see([(token, True) for token in self.tokens(session)])

    def freeze(self, name: str) -> None:
        """The process does nothing from now on; the others notice it after the lease: call `vanish`."""
        self.session(name).frozen = True

    def vanish(self, name: str) -> None:
        """The others take a process for gone."""
        session = self.session(name)
        for each in self.sessions:
            if each is not session:
                each.see([(token, False) for token in session.tokens])

    def thaw(self, name: str, *, again: bool = False) -> None:
        """It goes on, and gets what had come; `again` says that the others see it come back."""
        session = self.session(name)
        session.frozen = False
        if again:
            for each in self.sessions:
                if each is not session:
                    each.see([(token, True) for token in session.tokens])
        waiting, session.waiting = session.waiting, []
        for deliver in waiting:
            deliver()


@attrs.define(eq=False)
class FakeLink:
    network: Network
    name: str | None
    app: str | None = None
    lease: float = 0.4

    def open(self, given_up: threading.Event, app: str | None = None) -> "Session":
        session = Session(self.network, self.name or "")
        self.network.sessions.append(session)
        return session


class Publisher:
    def __init__(self, session: "Session", key: str, block: bool) -> None:
        self._session = session
        self._key = key
        self.block = block

    def close(self) -> None:
        pass

    def put(self, payload: bytes, attachment: bytes) -> None:
        if self._session.closed:
            raise LinkError("the link is closed")
        network = self._session.network
        if self.block:
            network.loop.call_soon_threadsafe(network.put, self._session, self._key, payload, attachment)
        else:
            network.put(self._session, self._key, payload, attachment)


class Session:
    def __init__(self, network: Network, name: str) -> None:
        self.network = network
        self.name = name
        self.cut = self.frozen = self.closed = False
        self.tokens: list[str] = []
        self.last: dict[str, float] = {}
        self.waiting: list[Callable[[], None]] = []
        self._subscribers: list[tuple[str, Callable[[str, bytes, bytes], object]]] = []
        self._watchers: list[Callable[[str, bool], object]] = []

    def publisher(self, key: str, *, priority: int, block: bool) -> Publisher:
        return Publisher(self, key, block)

    def subscribe(self, key: str, arrived: Callable[[str, bytes, bytes], object]) -> None:
        assert key.endswith("/*")
        self._subscribers.append((key[:-1], arrived))

    def answer(self, key: str, give: Callable[[], bytes]) -> None:
        """Nobody asks here."""

    def announce(self, key: str) -> None:
        self.tokens.append(key)
        for each in self.network.sessions:
            if each is not self and not self.cut and not each.cut:
                each.see([(key, True)])

    def watch(self, key: str, changed: Callable[[str, bool], object]) -> None:
        self._watchers.append(changed)
        for token in self.network.tokens(self):
            changed(token, True)

    def close(self, timeout: float) -> bool:
        if not self.closed:
            self.closed = True
            self.network.loop.call_soon_threadsafe(self._end)
        return True

    def kill(self) -> None:
        """As `kill -9`: it is gone without a word."""
        self.closed = self.cut = True
        self._end()

    def _end(self) -> None:
        if self in self.network.sessions:
            self.network.sessions.remove(self)
        for each in self.network.sessions:
            each.see([(token, False) for token in self.tokens])

    def get(self, key: str, payload: bytes, attachment: bytes) -> None:
        for prefix, arrived in self._subscribers:
            if key.startswith(prefix):
                self._do(lambda arrived=arrived: arrived(key, payload, attachment))

    def see(self, changes: list[tuple[str, bool]]) -> None:
        for token, alive in changes:
            for changed in self._watchers:
                self._do(lambda changed=changed, token=token, alive=alive: changed(token, alive))

    def _do(self, work: Callable[[], object]) -> None:
        if self.frozen:
            self.waiting.append(work)  # type: ignore[arg-type]  # its result is of no use
        else:
            work()


def lossy(share: float, seed: int, only: str = "") -> Callable[[str], bool]:
    """Lose a share of all packets whose key has `only` in it."""
    chance = random.Random(seed)
    return lambda key: only in key and chance.random() < share


async def until(condition: Callable[[], Any], seconds: float = 5.0) -> None:
    """Wait until a condition holds."""
    end = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < end, "it does not come true"
        await asyncio.sleep(0.005)
