"""The open session of a process, and what has come: threads leave it here, and wake the loop once."""

import asyncio
import json
import secrets
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from orchestra.link.keys import Keys, safe
from orchestra.link.peers import Sessions
from orchestra.plan import Plan
from orchestra.priority import Priority

CLOSING = 3.0
"""Seconds that a session may take to close; then it goes on closing by itself."""

Arrival = tuple[str, bytes, bytes]
"""A key, a payload, and what is beside it."""


class Link(Protocol):
    """How a process reaches the others: `ZenohLink`, or another network with the same few verbs."""

    @property
    def name(self) -> str | None: ...
    @property
    def app(self) -> str | None: ...
    @property
    def lease(self) -> float: ...
    def open(self, given_up: threading.Event, app: str | None = None) -> Sessions: ...


class Mailbox:
    """A session, and what came: `control`, `levels` by priority, and `signs` of life.

    `look` is called in the loop, once for all that came meanwhile; what came before it is set stays.
    """

    def __init__(self, link: Link, plan: Plan, loop: asyncio.AbstractEventLoop) -> None:
        self.link = link
        self.epoch = secrets.randbits(63) or 1
        self.keys = Keys(safe(link.app or plan.name), self.epoch)
        self.control: deque[Arrival] = deque()
        self.signs: deque[tuple[str, bool]] = deque()
        self.levels: dict[Priority, deque[Arrival]] = {
            lane.priority: deque()
            for level in Priority
            for subsystem in plan.subsystems.values()
            for lane in subsystem.lanes
            if lane.priority is level
        }
        self.look: Callable[[], object] | None = None
        self.session: Sessions
        self._loop = loop
        self._poked = False
        self._kept: list[Any] = []
        """What ends when nobody refers to it: subscriptions, and the token of this process."""

    def open(self, given_up: threading.Event) -> None:
        """Open the session and listen; blocking, in a thread. Raises `LinkError`."""
        self.session = self.link.open(given_up, self.keys.app)
        try:
            session = self.session
            self._kept.append(session.subscribe(self.keys.own_control, partial(self._arrived, self.control)))
            for level, arrivals in self.levels.items():
                self._kept.append(session.subscribe(self.keys.own(level), partial(self._arrived, arrivals)))
        except BaseException:
            self.session.close(CLOSING)
            raise

    def announce(self, process: str, hosts: tuple[str, ...]) -> None:
        """Let others know of this process, and look for them; blocking, in a thread."""
        about = json.dumps({"hosts": hosts}).encode()
        self._kept.append(self.session.answer(self.keys.about, lambda: about))
        self._kept.append(self.session.watch(self.keys.everybody, self._changed))
        self._kept.append(self.session.announce(self.keys.alive(process)))

    async def close(self) -> None:
        """Close the session; it takes no more than `CLOSING` seconds."""
        self.look = None
        closing = asyncio.get_running_loop().run_in_executor(None, self.session.close, CLOSING)
        await asyncio.shield(closing)

    # in threads of the session

    def _arrived(self, arrivals: "deque[Arrival]", key: str, payload: bytes, attachment: bytes) -> None:
        arrivals.append((key, payload, attachment))
        if not self._poked:
            self._poke()

    def _changed(self, key: str, alive: bool) -> None:
        self.signs.append((key, alive))
        if not self._poked:
            self._poke()

    def _poke(self) -> None:
        self._poked = True
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._open)

    def _open(self) -> None:
        self._poked = False
        if self.look is not None:
            self.look()


async def opened(link: Any, plan: Plan) -> Mailbox:
    """Open the session of a link in a thread. A start that is cancelled meanwhile leaves no session open."""
    mailbox = Mailbox(link, plan, asyncio.get_running_loop())
    given_up = threading.Event()
    opening = asyncio.get_running_loop().run_in_executor(None, mailbox.open, given_up)
    try:
        await asyncio.shield(opening)
    except asyncio.CancelledError:
        given_up.set()
        with suppress(Exception):
            await opening
            mailbox.session.close(0.0)
        raise
    return mailbox
