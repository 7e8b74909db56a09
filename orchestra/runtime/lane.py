"""One lane of an inbox: a bounded queue with senders that wait in order.

The room of a lane is what a send may compare with: its capacity, and 0 while any sender waits, while
a woken one has not put its message yet, and after the lane has closed. So `len(queue) < room` is all
that the quick way of a send has to ask, and nobody overtakes those who wait.

A waiting sender holds a ticket. When a message is taken, the oldest ticket is granted the place, and
its sender, when it goes on, puts its message itself: a strand does so when nothing else is ready, another
Task at the next turn of the loop. A send that is cancelled before that has put nothing, and the place goes
to the next.

What a send does when there is no room is the policy's matter. A `Drop` send whose wait ran out marks the
lane as congested, and while it is marked further ones are dropped without a wait; the mark goes when a
message is taken. That is the rule of Eclipse Zenoh, for each lane by itself.
"""

import asyncio
import enum
import math
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Any, Final, Protocol

from orchestra.errors import Closed, Full
from orchestra.overflow import Block, BlockFirst, Drop, DropOldest, Overflow
from orchestra.plan import LanePlan
from orchestra.runtime.clock import Clock, Handle, LoopClock
from orchestra.runtime.short import EMPTY, Short
from orchestra.runtime.strand import Strand
from orchestra.runtime.telling import wrong_thread
from orchestra.runtime.ticket import StrandTicket, TaskTicket, Ticket


class Gate(enum.Enum):
    """Whether a lane takes messages: all, those that fit and will not be handled, or none."""

    OPEN = enum.auto()
    STOPPING = enum.auto()
    SHUT = enum.auto()


class Surroundings(Protocol):
    """What a lane needs of the inbox around it."""

    alert: bool
    """To be set when a lane is pressed."""

    @property
    def absent(self) -> bool:
        """Whether no process hosts the receiver now."""
        ...

    @property
    def thread(self) -> int:
        """The identity of the thread of its event loop."""
        ...

    @property
    def displaced(self) -> Callable[[Any], None] | None:
        """What gets the entries that `DropOldest` throws out, if anything."""
        ...

    def arrived(self) -> None:
        """A message was put by a sender that found no room at first."""

    def interrupt(self) -> None:
        """The queue has become shorter, and nothing was taken."""

    def bury(self, entry: Any, reason: str) -> None:
        """An entry will never be handled."""

    def closed(self, message: Any) -> Closed:
        """The error for a closed lane."""
        ...

    def left(self) -> None:
        """A waiting sender gave up."""

    def sends_itself(self) -> bool:
        """Whether the running task is the only receiver."""
        ...

    def running_strand(self) -> Strand | None:
        """The strand whose coroutine runs now, if it is one's."""
        ...

    def taken_from(self, lane: "Lane") -> int:
        """How many messages were taken from a lane."""
        ...

    def report(self, lane: "Lane", congested: bool) -> None:
        """A lane has become congested, or has recovered."""

    def stalled(self, lane: "Lane") -> None:
        """Blocking senders were freed from a lane."""

    def blocks(self, lane: "Lane", ticket: Ticket) -> None:
        """A sender waits without any limit."""


_NO_TICKETS: Final[OrderedDict[Ticket, None]] = OrderedDict()
_NO_DROPS: Final[Counter[str]] = Counter()
"""What most lanes have; where something is put, one of its own is made first."""


class Lane:
    """A lane at run time. It belongs to one event loop.

    Generated code reads `queue`, `room`, `congested`, `displaces` and `pressed`; who takes a message calls
    `relieve` when the lane is pressed. `sought` says that a send has found no room; who lends room to a lane
    looks at it, and clears it. `early` counts what was dropped because of the mark, `displaced` what
    `DropOldest` threw out, `dropped` the rest by reason. `evict_after` is in seconds of the clock, which is
    that of the loop where none is given.
    """

    inline = True
    """Whether a strand may wait for room without the event loop: no thread is concerned."""

    __slots__ = (
        "_around",
        "_clock",
        "_gate",
        "_granted",
        "_keeps",
        "_spare",
        "_watch",
        "_watchers",
        "blocked",
        "blocked_seconds",
        "buried",
        "capacity",
        "congested",
        "displaced",
        "displaces",
        "dropped",
        "early",
        "episode",
        "evict_after",
        "loop",
        "peak",
        "policy",
        "pressed",
        "priority",
        "queue",
        "room",
        "sought",
        "stalled",
        "starved",
        "subsystem",
        "waiting",
    )

    def __init__(
        self,
        subsystem: str,
        plan: LanePlan,
        loop: asyncio.AbstractEventLoop,
        around: Surroundings,
        evict_after: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.subsystem = subsystem
        self.priority = plan.priority
        self.policy = plan.overflow
        self.capacity = sys.maxsize if plan.capacity == math.inf else int(plan.capacity)
        self.evict_after = evict_after
        self.queue: deque[Any] = deque()
        self.room = self.capacity
        self.waiting = _NO_TICKETS
        self.pressed = False
        self.congested = False
        self.episode = False
        self.stalled = False
        self.sought = False
        self.blocked = 0
        self.blocked_seconds = 0.0
        self.buried = 0
        self.early = 0
        self.displaced = 0
        self.displaces = isinstance(plan.overflow, DropOldest)
        self.dropped = _NO_DROPS
        self.peak = 0
        self.starved = 0
        self._granted: Short[Ticket] = EMPTY
        self._gate = Gate.OPEN
        self._spare = 0
        self._keeps = False
        self.loop = loop
        self._clock = clock or LoopClock(loop)
        self._around = around
        self._watch: Handle | None = None
        self._watchers: dict[Callable[[], object], None] | None = None

    @property
    def gone(self) -> int:
        """How many entries have left the queue, by whatever way."""
        return self._around.taken_from(self) + self.evicted

    @property
    def evicted(self) -> int:
        """How many accepted messages will never be handled: buried, or thrown out by `DropOldest`."""
        return self.buried + self.displaced

    @property
    def dropped_by(self) -> dict[str, int]:
        """How many messages were dropped, by reason."""
        counts = {"congested": self.early, "oldest": self.displaced}
        for reason, count in self.dropped.items():
            counts[reason] = counts.get(reason, 0) + count
        return {reason: count for reason, count in counts.items() if count}

    @property
    def dropped_in_all(self) -> int:
        """How many messages were dropped."""
        return self.early + self.displaced + self.dropped.total()

    @property
    def senders_waiting(self) -> int:
        """How many senders wait for room, those counted who were granted a place and have not used it."""
        return len(self.waiting) + len(self._granted)

    @property
    def senders_granted(self) -> int:
        """How many of those have a place that is kept for them."""
        return len(self._granted)

    @property
    def longest(self) -> int:
        """The longest that the queue was seen, in messages."""
        return self.capacity if self.displaced else max(self.peak, len(self.queue))

    @property
    def shut(self) -> bool:
        """Whether the receiver has ended."""
        return self._gate is Gate.SHUT

    def fits(self, entry: Any) -> bool:
        """Whether an entry could be put now."""
        return len(self.queue) < self.room

    def check(self, entry: Any, message: Any) -> None:
        """Raise `TooLarge` for an entry that can never be put, where the lane counts bytes."""

    def offer(self, entry: Any) -> bool:
        """Put an entry if there is room, else return False."""
        if len(self.queue) < self.room:
            self.queue.append(entry)
            self._around.arrived()
            return True
        return False

    async def put(self, entry: Any, message: Any, policy: Overflow | None = None) -> bool:
        """Put an entry, doing what the policy says when there is no room: the lane's, or the one given.

        True when it was put, False when it was dropped. Raises `Full` or `Closed` with the message; when it
        raises anything, the entry is nowhere.
        """
        if get_ident() != self._around.thread:
            raise wrong_thread()
        outcome = self.admit(entry, message, policy, directly=True)
        return outcome if isinstance(outcome, bool) else await self.redeem(outcome, entry, message)

    def put_now(self, entry: Any, message: Any, policy: Overflow | None = None) -> bool:
        """As `put`, but without waiting: where it would wait, `Full` is raised, or the message dropped."""
        if self.offer(entry):
            return True
        if self._gate is not Gate.OPEN:
            return self._put_late(entry, message)
        self.sought = True
        self.peak = max(self.peak, len(self.queue))
        match policy or self.policy:
            case DropOldest():
                return self.displace(entry)
            case Drop():
                return self.drop("congested" if self.congested else "full")
            case BlockFirst() if self._first_waits():
                return self.drop("behind the first")
            case _:
                raise self._full(message)

    def admit(
        self, entry: Any, message: Any, policy: Overflow | None = None, *, directly: bool = False
    ) -> Ticket | bool:
        """Put an entry now (True), drop it now (False), or join those who wait, with a ticket to redeem.

        `directly` says that it is redeemed by who asks, in the running task; else any Task may.
        Raises `Full` or `Closed` with the message. A receiver that sends to itself gets `Full`, or drops,
        where it would wait: nobody would make room. A lane that is no longer open lets nobody join.
        """
        if self.offer(entry):
            return True
        if self._gate is not Gate.OPEN:
            return self._put_late(entry, message)
        self.sought = True
        self.peak = max(self.peak, len(self.queue))
        match policy or self.policy:
            case Block():
                return self._join_to_block(entry, message, directly=directly)
            case Drop(wait_before_drop=wait):
                return self._join_for(entry, wait, directly=directly)
            case DropOldest():
                return self.displace(entry)
            case BlockFirst():
                return (
                    self.drop("behind the first")
                    if self._first_waits()
                    else self._join_to_block(entry, message, directly=directly, first=True)
                )
            case _:
                raise self._full(message)

    def displace(self, entry: Any) -> bool:
        """Put an entry into a full lane in place of the oldest one; False when the lane is not open."""
        if not self.displaces:
            return False
        oldest = self.queue.popleft()
        self.queue.append(entry)
        self.displaced += 1
        if self._around.displaced is not None:
            self._around.displaced(oldest)
        return True

    def drop(self, reason: str) -> bool:
        """Count a message that is dropped; gives False, for the sender."""
        if self.dropped is _NO_DROPS:
            self.dropped = Counter()
        self.dropped[reason] += 1
        return False

    async def redeem(self, ticket: Ticket, entry: Any, message: Any) -> bool:
        """Wait for the ticket's turn, and put the entry; False when it is to be dropped instead.

        Cancelling gives the place to the next.
        """
        try:
            await ticket.wait()
            while self._is_early(ticket):
                await ticket.wait()
        except BaseException:
            self.abandon(ticket)
            raise
        self._has_waited(ticket)
        return self._use(ticket, entry, message)

    def claim(self, ticket: StrandTicket, entry: Any, message: Any) -> bool | None:
        """As `redeem`, if the ticket was woken and it is its turn; None when it waits on."""
        if not ticket.woken or self._is_early(ticket):
            return None
        self._has_waited(ticket)
        return self._use(ticket, entry, message)

    def abandon(self, ticket: Ticket) -> None:
        """Wait no longer for a ticket that is not to be redeemed."""
        self._has_waited(ticket)
        self.withdraw(ticket)

    def _has_waited(self, ticket: Ticket) -> None:
        self.blocked_seconds += self._clock.time() - ticket.since
        if ticket.timer is not None:
            ticket.timer.cancel()

    def _is_early(self, ticket: Ticket) -> bool:
        """Whether a ticket has woken before one that was granted earlier; then it waits anew."""
        if not ticket.granted or self._granted[0] is ticket:
            return False
        ticket.renew()
        ticket.early = True
        return True

    def _use(self, ticket: Ticket, entry: Any, message: Any) -> bool:
        """Put the entry of a ticket that waits no longer: True, or False when it is dropped."""
        if ticket.given_up is not None:
            return self.drop(ticket.given_up)
        if not ticket.granted:
            raise self._around.closed(message)
        self._granted.popleft()
        ticket.granted = False
        self._accept(entry)
        self.settle()
        return True

    def relieve(self) -> None:
        """After messages may have been taken from a lane under pressure: let senders in.

        No mark outlives the taking of a message; while none was taken the queue is full and the marks stay.
        """
        if len(self.queue) < self.capacity:
            self.congested = self.stalled = False
        self.settle()
        if self.episode and not self.waiting and 2 * len(self.queue) <= self.capacity:
            self.episode = False
            self._around.report(self, False)
        self.pressed = self.episode or self.stalled or bool(self.waiting)
        if self._watchers is not None:
            self._tell_watchers()

    def _press(self) -> None:
        self.pressed = self._around.alert = True

    def watch(self, look: Callable[[], object]) -> None:
        """Call `look` once, within the receiver, when a message may have been taken."""
        if self._watchers is None:
            self._watchers = {}
        self._watchers[look] = None
        self._press()

    def _tell_watchers(self) -> None:
        watchers, self._watchers = self._watchers, None
        for look in watchers or ():
            look()

    def settle(self) -> None:
        """Grant what room there is to those who wait, and say what room others may use."""
        waiting, granted = self.waiting, self._granted
        while waiting and len(self.queue) + len(granted) < self.capacity:
            ticket, _ = waiting.popitem(last=False)
            granted = self._grant(ticket)
            ticket.wake()
        if granted and granted[0].early:
            granted[0].wake()
        if not waiting:
            self.waiting = _NO_TICKETS  # gives back the memory of those who have left
        self.room = 0 if waiting or granted or self._gate is not Gate.OPEN else self.capacity
        if len(self.queue) < self.room:  # the place of a sender that was cancelled may be free again
            self.congested = False

    def _grant(self, ticket: Ticket) -> Short[Ticket]:
        """Keep a place for a ticket; gives all those that have one."""
        if self._granted is EMPTY:
            self._granted = Short()
        self._granted.append(ticket)
        ticket.granted = True
        return self._granted

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

    def disown(self) -> None:
        """In a forked child: take nothing, and have nothing."""
        self._gate = Gate.SHUT
        self.room = 0
        self.displaces = self.congested = self.stalled = False
        self._around.interrupt()
        self.queue.clear()

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
        self._around.left()

    def _full(self, message: Any) -> Full:
        absent = f": no process hosts {self.subsystem!r} now"
        why = absent if self._around.absent else self._how_full()
        return Full(message, self.subsystem, self.priority, why)

    def _how_full(self) -> str:
        """What is to be said of a full lane, where it is not plain what fills it."""
        return ""

    def _first_waits(self) -> bool:
        return any(ticket.first for line in (self.waiting, self._granted) for ticket in line)

    def _join(self, entry: Any, *, directly: bool, first: bool = False) -> Ticket:
        ticket = self._ticket(directly=directly, first=first)
        if self.waiting is _NO_TICKETS:
            self.waiting = OrderedDict()
        self.waiting[ticket] = None
        self.room = 0
        self._press()
        self.blocked += 1
        return ticket

    def _join_to_block(
        self, entry: Any, message: Any, *, directly: bool, first: bool = False
    ) -> Ticket | bool:
        if self._around.sends_itself():
            why = f": {self.subsystem!r} sends to itself and would wait for ever; give the lane more room, "
            raise Full(message, self.subsystem, self.priority, why + "or a policy that drops")
        if self.stalled:
            return self.drop("stalled")
        if self.evict_after is not None and self._watch is None:
            self._look_again(self._around.taken_from(self), 0)
        ticket = self._join(entry, directly=directly, first=first)
        if self.evict_after is None:
            self._around.blocks(self, ticket)
        return ticket

    def _join_for(self, entry: Any, wait: float, *, directly: bool) -> Ticket | bool:
        if self.congested:
            self.early += 1
            return False
        if self._around.sends_itself():
            return self.drop("full")
        if wait == 0:
            self.drop("waited")
            self._mark()
            return False
        ticket = self._join(entry, directly=directly)
        ticket.due = ticket.since + wait
        self._set_timer(ticket, wait)
        return ticket

    def _ticket(self, *, directly: bool, first: bool) -> Ticket:
        if directly and (strand := self._around.running_strand()) is not None:
            return StrandTicket(strand, self._clock.time(), first=first)
        return TaskTicket(self.loop, self._clock.time(), first=first)

    def _set_timer(self, ticket: Ticket, wait: float) -> None:
        ticket.timer = self._clock.call_later(wait, partial(self._wait_ran_out, ticket))

    def _wait_ran_out(self, ticket: Ticket) -> None:
        if ticket in self.waiting:
            self._give_up(ticket, "waited")
            self._mark()

    def _mark(self) -> None:
        self.congested = True
        self._press()
        if not self.episode:
            self.episode = True
            self._around.report(self, True)

    def _give_up(self, ticket: Ticket, reason: str) -> None:
        ticket.given_up = reason
        del self.waiting[ticket]
        self.settle()
        ticket.wake()

    def _look_again(self, taken: int, unchanged: int) -> None:
        """Every quarter of `evict_after`: has a message been taken since blocking senders began to wait?"""
        assert self.evict_after is not None
        self._watch = self._clock.call_later(self.evict_after / 4, partial(self._look, taken, unchanged + 1))

    def _look(self, taken: int, unchanged: int) -> None:
        self._watch = None
        blocking = [ticket for ticket in self.waiting if ticket.due is None]
        if not blocking:
            return
        if (now := self._around.taken_from(self)) != taken:
            self._look_again(now, 0)
        elif unchanged < 4:
            self._look_again(taken, unchanged)
        else:
            self.stalled = True
            self._press()
            for ticket in blocking:
                if ticket in self.waiting:  # one that needs little may fit when one before it is let go
                    self._give_up(ticket, "stalled")
            self._around.stalled(self)

    def _put_late(self, entry: Any, message: Any) -> bool:
        """Accept what fits after a stop; behind those for whom a place is kept, one would have to wait."""
        if self._gate is Gate.SHUT or self._spare <= 0 or self._granted:
            raise self._around.closed(message)
        self._spare -= 1
        self._accept(entry)
        return True

    def _accept(self, entry: Any) -> None:
        if self._gate is Gate.OPEN or self._keeps:
            self.queue.append(entry)
            self._around.arrived()
        else:
            self.buried += 1
            self._around.bury(entry, "stopped")

    def _shut(self, gate: Gate) -> None:
        """Let those who wait go; those for whom a place is kept use it, unless the receiver has ended."""
        self._gate = gate
        self.room = 0
        self.displaces = False
        self.congested = self.stalled = False
        while self.waiting:
            ticket, _ = self.waiting.popitem(last=False)
            ticket.wake()
        while self._granted and gate is Gate.SHUT:
            ticket = self._granted.popleft()
            ticket.granted = False
            ticket.wake()

    def _bury_all(self, reason: str) -> None:
        self._around.interrupt()
        while self.queue:
            self._around.bury(self.queue.popleft(), reason)
            self.buried += 1
