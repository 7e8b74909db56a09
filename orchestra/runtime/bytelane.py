"""A lane that is limited by the bytes of the boxes that wait in it, besides their number.

What travels by reference counts 0 bytes. The sizes of the entries stand in a second queue beside the first.
Who takes an entry knows nothing of it, and need not: whenever room is asked for, the sizes of what was taken
meanwhile are let go. That is also when the marks of congestion go, for a message has been taken.

The first of those who wait waits until its own bytes fit, and nobody overtakes it: a small message stays
behind a large one. The bytes of a place that was granted are kept for it.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

from orchestra.box import BOXES
from orchestra.errors import TooLarge
from orchestra.plan import LanePlan
from orchestra.runtime.clock import Clock
from orchestra.runtime.lane import Gate, Lane, Surroundings
from orchestra.runtime.ticket import Ticket


def size_of(entry: Any) -> int:
    """The bytes that an entry of a lane counts: those of a box, and none for what is no box."""
    return entry.size if entry.__class__ in BOXES else 0


def _counted(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages:,} messages"


class ByteLane(Lane):
    """A lane with a capacity in bytes. `held` are the bytes that are queued, or kept for granted tickets.

    Generated code does not put into it by itself, but calls `offer`, and `check` before it waits or anything
    is put elsewhere. It has no slots of its own, so that a class may derive from it and from another lane.
    """

    def __init__(
        self,
        subsystem: str,
        plan: LanePlan,
        loop: asyncio.AbstractEventLoop,
        around: Surroundings,
        evict_after: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(subsystem, plan, loop, around, evict_after, clock)
        assert plan.capacity_bytes is not None
        self.capacity_bytes = plan.capacity_bytes
        self.held = 0
        self._sizes: deque[int] = deque()

    @property
    def longest(self) -> int:
        return max(self.peak, len(self.queue))

    def check(self, entry: Any, message: Any) -> None:
        """Raise `TooLarge` for an entry that does not even fit into the empty lane."""
        size = size_of(entry)
        if size > self.capacity_bytes:
            raise TooLarge(message, self.subsystem, self.priority, size, self.capacity_bytes)

    def fits(self, entry: Any) -> bool:
        return self._let_go() + size_of(entry) <= self.capacity_bytes and super().fits(entry)

    def offer(self, entry: Any) -> bool:
        size = entry.size if entry.__class__ in BOXES else 0
        queue, sizes = self.queue, self._sizes
        if len(sizes) > len(queue):
            self._let_go()
        held = self.held + size
        if held <= self.capacity_bytes and len(queue) < self.room:
            self.held = held
            sizes.append(size)
            queue.append(entry)
            self._around.arrived()
            return True
        return False

    def take_over(self, entries: Iterable[Any]) -> None:
        """Put entries for which room was kept elsewhere; they count their bytes from now on."""
        for entry in entries:
            size = size_of(entry)
            self.held += size
            self._sizes.append(size)
            self.queue.append(entry)

    def displace(self, entry: Any) -> bool:
        """Put an entry in place of as many of the oldest ones as needed; False when the lane is not open."""
        if not self.displaces:
            return False
        size = size_of(entry)
        self._around.interrupt()
        while self._let_go() + size > self.capacity_bytes or len(self.queue) >= self.capacity:
            oldest = self.queue.popleft()
            self.displaced += 1
            if self._around.displaced is not None:
                self._around.displaced(oldest)
        self.held += size
        self._sizes.append(size)
        self.queue.append(entry)
        return True

    def relieve(self) -> None:
        self.settle()
        if self.episode and not self.waiting and self._half_empty:
            self.episode = False
            self._around.report(self, False)
        self.pressed = self.episode or self.stalled or bool(self.waiting)
        if self._watchers is not None:
            self._tell_watchers()

    def settle(self) -> None:
        self._let_go()
        waiting, granted = self.waiting, self._granted
        while waiting and len(self.queue) + len(granted) < self.capacity:
            ticket = next(iter(waiting))
            if self.held + ticket.size > self.capacity_bytes:
                break
            del waiting[ticket]
            self.held += ticket.size
            granted = self._grant(ticket)
            ticket.wake()
        if granted and granted[0].early:
            granted[0].wake()
        if not waiting:
            waiting.clear()
        self.room = 0 if waiting or granted or self._gate is not Gate.OPEN else self.capacity

    def withdraw(self, ticket: Ticket) -> None:
        if ticket.granted:
            self.held -= ticket.size
        super().withdraw(ticket)
        if len(self.queue) < self.room and self.held < self.capacity_bytes:
            self.congested = False

    def _how_full(self) -> str:
        return f": it holds {self.held:,} of {self.capacity_bytes:,} bytes, in {_counted(len(self.queue))}"

    @property
    def _half_empty(self) -> bool:
        return 2 * len(self.queue) <= self.capacity and 2 * self.held <= self.capacity_bytes

    def _let_go(self) -> int:
        """Let go of the sizes of what was taken; give the bytes that are held.

        A lane that is no longer open gets no room back: what it may still accept was decided then.
        """
        sizes = self._sizes
        if len(sizes) > len(self.queue) and self._gate is Gate.OPEN:
            while len(sizes) > len(self.queue):
                self.held -= sizes.popleft()
            self.congested = self.stalled = False
        return self.held

    def _join(self, entry: Any, *, directly: bool, first: bool = False) -> Ticket:
        ticket = super()._join(entry, directly=directly, first=first)
        ticket.size = size_of(entry)
        return ticket

    def _put_late(self, entry: Any, message: Any) -> bool:
        size = size_of(entry)
        if self.held + size > self.capacity_bytes:
            raise self._around.closed(message)
        super()._put_late(entry, message)
        self.held += size
        return True

    def _accept(self, entry: Any) -> None:
        """Accept an entry whose bytes are held already."""
        self._sizes.append(size_of(entry))
        super()._accept(entry)

    def _shut(self, gate: Gate) -> None:
        self._let_go()
        super()._shut(gate)
