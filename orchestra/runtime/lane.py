"""One lane of an inbox: a bounded queue with senders that wait in order.

The room of a lane is what a send may compare with: its capacity, and 0 while any sender waits, while
a woken one has not put its message yet, and after the lane has closed. So `len(queue) < room` is all
that the quick way of a send has to ask, and nobody overtakes those who wait.

A waiting sender holds a ticket. When a message is taken, the oldest ticket is granted the place, and
its sender, woken at the next turn of the loop, puts its message itself. A send that is cancelled
before that has put nothing, and the place goes to the next.
"""

import asyncio
import enum
import math
import sys
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from orchestra.errors import Closed, Full
from orchestra.overflow import Fail
from orchestra.plan import LanePlan


class Gate(enum.Enum):
    """Whether a lane takes messages: all, those that fit and will not be handled, or none."""

    OPEN = enum.auto()
    STOPPING = enum.auto()
    SHUT = enum.auto()


class Ticket:
    """The place of one waiting sender."""

    __slots__ = ("early", "future", "granted")

    def __init__(self, future: asyncio.Future[None]) -> None:
        self.future = future
        self.granted = False
        """A place in the queue is kept for it."""
        self.early = False
        """It was granted and has woken, but a ticket in front of it has not put its message yet."""


class Lane:
    """A lane at run time. It belongs to one event loop.

    `arrived` is called after a message was put by a sender that had waited; `bury` gets each entry
    that will never be handled, with the reason; `refusal` makes the error for a closed lane; `left` is called
    when a waiting sender gave up; `itself` asks whether the running task is the only receiver of this lane.
    """

    __slots__ = (
        "_arrived",
        "_bury",
        "_fails",
        "_gate",
        "_granted",
        "_itself",
        "_keeps",
        "_left",
        "_loop",
        "_refusal",
        "_spare",
        "blocked",
        "capacity",
        "evicted",
        "priority",
        "queue",
        "room",
        "subsystem",
        "waiting",
    )

    def __init__(
        self,
        subsystem: str,
        plan: LanePlan,
        loop: asyncio.AbstractEventLoop,
        arrived: Callable[[], None],
        bury: Callable[[Any, str], None],
        refusal: Callable[[Any], Closed],
        left: Callable[[], None],
        itself: Callable[[], bool] = lambda: False,
    ) -> None:
        self.subsystem = subsystem
        self.priority = plan.priority
        self.capacity = sys.maxsize if plan.capacity == math.inf else int(plan.capacity)
        self.queue: deque[Any] = deque()
        self.room = self.capacity
        self.waiting: OrderedDict[Ticket, None] = OrderedDict()
        self.blocked = 0
        self.evicted = 0
        self._granted: deque[Ticket] = deque()
        self._fails = isinstance(plan.overflow, Fail)
        self._gate = Gate.OPEN
        self._spare = 0
        self._keeps = False
        self._loop = loop
        self._arrived = arrived
        self._bury = bury
        self._refusal = refusal
        self._left = left
        self._itself = itself

    @property
    def senders_waiting(self) -> int:
        """How many senders wait for room, those counted who were granted a place and have not used it."""
        return len(self.waiting) + len(self._granted)

    @property
    def shut(self) -> bool:
        """Whether the receiver has ended."""
        return self._gate is Gate.SHUT

    def offer(self, entry: Any) -> bool:
        """Put an entry if there is room, else return False."""
        if len(self.queue) < self.room:
            self.queue.append(entry)
            self._arrived()
            return True
        return False

    async def put(self, entry: Any, message: Any) -> bool:
        """Put an entry when there was no room at once: wait for room, or refuse, as the policy says.

        Raises `Full` or `Closed` with the message; when it raises anything, the entry is nowhere.
        """
        if self.offer(entry):
            return True
        ticket = self.claim(entry, message)
        return ticket is None or await self.redeem(ticket, entry, message)

    def put_now(self, entry: Any, message: Any) -> bool:
        """Put an entry without waiting, or raise `Full` or `Closed` with the message."""
        if self.offer(entry):
            return True
        if self._gate is not Gate.OPEN:
            return self._put_late(entry, message)
        raise Full(message, self.subsystem, self.priority)

    def claim(self, entry: Any, message: Any) -> Ticket | None:
        """Join those who wait for room, or raise `Full` when the policy is not to wait.

        A receiver that sends to itself gets `Full` too: if it waited, nobody would make room.

        A lane that is no longer open lets nobody wait: it takes the entry at once (None), or raises `Closed`.
        """
        if self._gate is not Gate.OPEN:
            self._put_late(entry, message)
            return None
        if self._fails or self._itself():
            raise Full(message, self.subsystem, self.priority)
        ticket = Ticket(self._loop.create_future())
        self.waiting[ticket] = None
        self.room = 0
        self.blocked += 1
        return ticket

    async def redeem(self, ticket: Ticket, entry: Any, message: Any) -> bool:
        """Wait for the ticket's turn, and put the entry. Cancelling gives the place to the next."""
        try:
            await ticket.future
            while ticket.granted and self._granted[0] is not ticket:
                ticket.future = self._loop.create_future()
                ticket.early = True
                await ticket.future
        except BaseException:
            self.withdraw(ticket)
            raise
        if not ticket.granted:
            raise self._refusal(message)
        self._granted.popleft()
        ticket.granted = False
        self._accept(entry)
        self.settle()
        return True

    def settle(self) -> None:
        """Grant what room there is to those who wait, and say what room others may use."""
        waiting, granted = self.waiting, self._granted
        while waiting and len(self.queue) + len(granted) < self.capacity:
            ticket, _ = waiting.popitem(last=False)
            granted.append(ticket)
            ticket.granted = True
            _wake(ticket)
        if granted and granted[0].early:
            _wake(granted[0])
        if not waiting:
            waiting.clear()  # gives back the memory of those who have left
        self.room = 0 if waiting or granted or self._gate is not Gate.OPEN else self.capacity

    def stop(self) -> None:
        """Bury what is queued; from now on messages that fit are accepted and buried at once."""
        if self._gate is Gate.OPEN:
            self._spare = self.capacity - len(self.queue) - len(self._granted)
            self._shut(Gate.STOPPING)
            self._bury_all("stopped")

    def keep(self) -> None:
        """As `stop`, but the receiver is outside and goes on: what is queued, and what fits, stays for it."""
        if self._gate is Gate.OPEN:
            self._spare = self.capacity - len(self.queue) - len(self._granted)
            self._keeps = True
            self._shut(Gate.STOPPING)

    def close(self, reason: str) -> None:
        """Take no more, bury what is queued, and let every waiting sender go with `Closed`."""
        self._shut(Gate.SHUT)
        self._bury_all(reason)

    def withdraw(self, ticket: Ticket) -> None:
        """Give up a place, kept or waited for: it goes to the next. A ticket that has none is let go."""
        if ticket.granted:
            ticket.granted = False
            self._granted.remove(ticket)
            if self._gate is not Gate.OPEN:
                self._spare += 1
        else:
            self.waiting.pop(ticket, None)
        self.settle()
        self._left()

    def _put_late(self, entry: Any, message: Any) -> bool:
        """Accept what fits after a stop; behind those for whom a place is kept, one would have to wait."""
        if self._gate is Gate.SHUT or self._spare <= 0 or self._granted:
            raise self._refusal(message)
        self._spare -= 1
        self._accept(entry)
        return True

    def _accept(self, entry: Any) -> None:
        if self._gate is Gate.OPEN or self._keeps:
            self.queue.append(entry)
            self._arrived()
        else:
            self.evicted += 1
            self._bury(entry, "stopped")

    def _shut(self, gate: Gate) -> None:
        """Let those who wait go; those for whom a place is kept use it, unless the receiver has ended."""
        self._gate = gate
        self.room = 0
        while self.waiting:
            ticket, _ = self.waiting.popitem(last=False)
            _wake(ticket)
        while self._granted and gate is Gate.SHUT:
            ticket = self._granted.popleft()
            ticket.granted = False
            _wake(ticket)

    def _bury_all(self, reason: str) -> None:
        while self.queue:
            self.evicted += 1
            self._bury(self.queue.popleft(), reason)


def _wake(ticket: Ticket) -> None:
    if not ticket.future.done():
        ticket.future.set_result(None)
