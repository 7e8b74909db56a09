"""The generated functions of a benchmark's own orchestra class, wired to stand-ins: all the steps together.

A step takes longer than alone, where the processor overlaps the few instructions of a short loop.
What is left from these to the whole is the library's: the turns of the event loop, and waits for room.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from types import MethodType
from typing import Any, TypeAlias

from benchmarks.fanout import app_class
from benchmarks.parts.standins import Ctx, Handoff, Inbox, Lane, Part, Strand, Turns
from benchmarks.ring import HOPS, MakeMessage, MakeStation, Ring
from benchmarks.send import Handler, Stopwatch, ToHandler, ToReceiver
from orchestra.runtime.strand import _stepper

Around: TypeAlias = Callable[[asyncio.AbstractEventLoop], Mapping[str, Any]]

CAPACITY = range(1024)


class Wired:
    """Inboxes and contexts, by the names of the subsystems of an orchestra class."""

    def __init__(self, app: Any) -> None:
        self._wiring = app.__orchestra_wiring__
        self.turns = Turns(deque())
        names = [name for name in self._wiring.outboxes if name != "outside"]
        self.inboxes = {name: Inbox((Lane(deque()),), self.turns) for name in names}
        self.contexts = {name: self._context(name) for name in (*names, "outside")}

    def _context(self, name: str) -> Ctx:
        send, try_send = self._wiring.outboxes[name](None, self.inboxes, self.turns)
        make = self._wiring.receivers.get(name)
        return Ctx(send, try_send, None if make is None else make(self.inboxes[name])[0])

    def served(self, name: str, actor: Any) -> Any:
        """`work` or `serve` of a subsystem."""
        inbox, ctx = self.inboxes[name], self.contexts[name]
        served, _ = self._wiring.workers[name](inbox, ctx, actor, Part(inbox))
        return served

    def serve(self, name: str, actor: Any) -> None:
        """Let plain functions handle what comes."""
        inbox = self.inboxes[name]
        inbox.work = MethodType(contextvars.copy_context().run, self.served(name, actor))
        inbox.idle = True

    def serve_async(self, name: str, actor: Any, loop: asyncio.AbstractEventLoop) -> None:
        """Let a coroutine handle what comes, which is stepped up to where it parks."""

        async def live() -> None:
            await serve()

        serve, inbox = self.served(name, actor), self.inboxes[name]
        strand: Any = Strand(Handoff(), contextvars.copy_context(), loop.create_future())
        inbox.work = _stepper(strand, live(), loop)
        inbox.work()

    def names(self, sender: str) -> dict[str, Any]:
        """What the steps use."""
        ready = self.turns.ready
        return {
            "capacity": CAPACITY,
            "sender": self.contexts[sender],
            "turn": ready,
            "following": ready.popleft,
        }


def to_handler(loop: asyncio.AbstractEventLoop) -> Mapping[str, Any]:
    """One sender, one synchronous Actor."""
    wired = Wired(ToHandler)
    wired.serve("handler", Handler(10**9, Stopwatch()))
    return wired.names("sender")


def to_receiver(loop: asyncio.AbstractEventLoop) -> Mapping[str, Any]:
    """One sender, one subsystem with a `run`."""
    wired = Wired(ToReceiver)
    return {**wired.names("sender"), "receiver": wired.contexts["receiver"]}


def to_many(subscribers: int) -> Around:
    """One publisher, some synchronous Actors."""

    def made(loop: asyncio.AbstractEventLoop) -> Mapping[str, Any]:
        wired = Wired(published(subscribers))
        for place in range(subscribers):
            wired.serve(f"subscriber{place}", Handler(10**9, Stopwatch()))
        return wired.names("publisher")

    return made


@cache
def published(subscribers: int) -> Any:
    """A class of one publisher and so many subscribers."""
    return app_class(subscribers)


@cache
def ring_of(size: int, station: Callable[[MakeMessage], MakeStation]) -> Ring:
    """A ring whose class is an orchestra."""
    made = Ring(size, station)
    made.decorate()
    return made


class Endless:
    """A track on which another token always follows."""

    def another(self) -> bool:
        return True


def in_ring(station: Callable[[MakeMessage], MakeStation], *, coroutines: bool) -> Around:
    """Two stations, one of which has a token and is ready."""

    def made(loop: asyncio.AbstractEventLoop) -> Mapping[str, Any]:
        ring = ring_of(2, station)
        wired, track = Wired(ring.orchestra), Endless()
        for name, make in ring.stations.items():
            if coroutines:
                wired.serve_async(name, make(track), loop)
            else:
                wired.serve(name, make(track))
        wired.contexts["outside"].try_send(ring.tokens[0](HOPS))
        return wired.names("outside")

    return made
