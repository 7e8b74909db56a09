"""The places of senders that wait for room in a lane, by how they wait."""

import asyncio

from orchestra.runtime.clock import Handle
from orchestra.runtime.strand import Strand


class Ticket:
    """The place of one waiting sender."""

    __slots__ = ("due", "early", "first", "given_up", "granted", "since", "size", "timer")

    size: int
    """The bytes that it needs; only in lanes that count them."""

    def __init__(self, since: float, *, first: bool) -> None:
        self.since = since
        self.granted = False
        """A place in the queue is kept for it."""
        self.early = False
        """It was granted and has woken, but a ticket in front of it has not put its message yet."""
        self.given_up: str | None = None
        """Why the message is dropped, when its sender is to wait no longer."""
        self.first = first
        """It is the one sender that waits under `BlockFirst`."""
        self.due: float | None = None
        """When its sender waits no longer."""
        self.timer: Handle | None = None

    def wake(self) -> None:
        """Let its sender look what has become of it."""
        raise NotImplementedError

    async def wait(self) -> None:
        """Wait until it was woken."""
        raise NotImplementedError

    def renew(self) -> None:
        """It was woken for nothing: the next `wait` is for the next time."""


class TaskTicket(Ticket):
    """The place of a sender that waits in a Task, which the event loop wakes."""

    __slots__ = ("_future", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, since: float, *, first: bool) -> None:
        super().__init__(since, first=first)
        self._loop = loop
        self._future: asyncio.Future[None] = loop.create_future()

    def wake(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> None:
        await self._future

    def renew(self) -> None:
        self._future = self._loop.create_future()


class StrandTicket(Ticket):
    """The place of a sender that is a strand: it parks, and goes on at its turn without the event loop.

    All the tickets for which a strand waits wake it, so it may be woken while this one is not.
    """

    __slots__ = ("strand", "woken")

    def __init__(self, strand: Strand, since: float, *, first: bool) -> None:
        super().__init__(since, first=first)
        self.strand = strand
        self.woken = False

    def wake(self) -> None:
        self.woken = True
        self.strand.resume()

    async def wait(self) -> None:
        while not self.woken:
            await self.strand.rest()

    def renew(self) -> None:
        self.woken = False
