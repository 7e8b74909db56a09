"""A lane that threads and the event loop use together: the rules of `Lane`, under the lock of its inbox.

Who waits in the loop holds a ticket with a future, who waits in a thread one with a bell; both stand in one
line. Nothing that runs under the lock calls a user's function or waits: what has to happen in the loop is
left at the door.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import Any

from orchestra.errors import Closed
from orchestra.overflow import Overflow
from orchestra.plan import LanePlan
from orchestra.runtime.clock import Clock
from orchestra.runtime.lane import Lane, Surroundings
from orchestra.runtime.threads.door import Bell, Door
from orchestra.runtime.threads.home import home_here
from orchestra.runtime.ticket import TaskTicket, Ticket


class LoopTicket(TaskTicket):
    """The place of a sender in the loop; whoever wakes it may be in a thread."""

    __slots__ = ("_door",)

    def __init__(self, loop: asyncio.AbstractEventLoop, since: float, door: Door, *, first: bool) -> None:
        super().__init__(loop, since, first=first)
        self._door = door

    def wake(self) -> None:
        if self._door.here:
            super().wake()
        else:
            self._door.post(super().wake)


class ThreadTicket(Ticket):
    """The place of a sender in a thread."""

    __slots__ = ("_bell",)

    def __init__(self, bell: Bell, since: float, *, first: bool) -> None:
        super().__init__(since, first=first)
        self._bell = bell

    def wake(self) -> None:
        self._bell.ring()


def locked(method: Callable[..., Any]) -> Any:
    """A method of `Lane`, under the lock."""

    @wraps(method)
    def under_lock(self: "SharedLane", *args: Any, **keywords: Any) -> Any:
        with self.lock:
            return method(self, *args, **keywords)

    return under_lock


class SharedLane(Lane):
    """A lane whose senders and receiver may be in several threads.

    Generated code holds `lock` while it looks at the room and puts. The receiver takes without it where no
    other policy than `DropOldest` is at work, so a queue may become shorter under the lock, never longer.
    """

    inline = False

    __slots__ = ("_bell", "_door", "lock")

    def __init__(
        self,
        subsystem: str,
        plan: LanePlan,
        loop: asyncio.AbstractEventLoop,
        around: Surroundings,
        evict_after: float | None,
        lock: Any,
        door: Door,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(subsystem, plan, loop, around, evict_after, clock)
        self.lock = lock
        self._door = door
        self._bell: Bell | None = None

    offer = locked(Lane.offer)
    put_now = locked(Lane.put_now)
    admit = locked(Lane.admit)
    drop = locked(Lane.drop)
    relieve = locked(Lane.relieve)
    settle = locked(Lane.settle)
    stop = locked(Lane.stop)
    keep = locked(Lane.keep)
    close = locked(Lane.close)
    withdraw = locked(Lane.withdraw)
    _has_waited = locked(Lane._has_waited)
    _is_early = locked(Lane._is_early)
    _use = locked(Lane._use)
    _wait_ran_out = locked(Lane._wait_ran_out)
    _look = locked(Lane._look)

    def put_in_thread(self, entry: Any, message: Any, policy: Overflow | None = None) -> bool:
        """As `put`, in a thread that is not the loop's: it sleeps where `put` would await."""
        bell = Bell()
        outcome = self.admit_in_thread(bell, entry, message, policy)
        if isinstance(outcome, bool):
            return outcome
        (result,) = redeem_in_thread([(self, outcome, entry)], bell, message)
        if isinstance(result, Closed):
            raise result
        return result

    def admit_in_thread(self, bell: Bell, entry: Any, message: Any, policy: Overflow | None) -> Ticket | bool:
        """As `admit`, for a sender that sleeps on `bell`."""
        with self.lock:
            self._bell = bell
            try:
                return Lane.admit(self, entry, message, policy)
            finally:
                self._bell = None

    def claim_in_thread(self, ticket: Ticket, entry: Any, message: Any) -> bool | None:
        """Put the entry of a thread's ticket if it is its turn: as `redeem`; None when it waits on."""
        with self.lock:
            now = self._clock.time()
            if ticket.due is not None and now >= ticket.due:
                self._wait_ran_out(ticket)
            if ticket in self.waiting:
                return None
            if ticket.granted and self._granted[0] is not ticket:
                ticket.early = True
                return None
            self.blocked_seconds += now - ticket.since
            return Lane._use(self, ticket, entry, message)

    def watch(self, look: Callable[[], object]) -> None:
        with self.lock:
            super().watch(look)
            if not self.queue:  # all was taken meanwhile, without the lock
                self._tell_watchers()

    def _tell_watchers(self) -> None:
        watchers, self._watchers = self._watchers, None
        for look in watchers or ():
            self._door.post(look)

    def _join(self, entry: Any, *, directly: bool, first: bool = False) -> Ticket:
        ticket = super()._join(entry, directly=directly, first=first)
        self.settle()  # a message may have been taken meanwhile, by a receiver that saw nobody wait
        return ticket

    def _mark(self) -> None:
        super()._mark()
        if len(self.queue) < self.capacity:  # a message was taken meanwhile, without the lock
            self.congested = False

    def _bury_all(self, reason: str) -> None:
        with suppress(IndexError):  # the receiver was quicker
            super()._bury_all(reason)

    def _ticket(self, *, directly: bool, first: bool) -> Ticket:
        if self._bell is not None:
            return ThreadTicket(self._bell, self._clock.time(), first=first)
        return LoopTicket(self.loop, self._clock.time(), self._door, first=first)

    def _set_timer(self, ticket: Ticket, wait: float) -> None:
        if isinstance(ticket, LoopTicket):
            super()._set_timer(ticket, wait)

    def _look_again(self, taken: int, unchanged: int) -> None:
        if self._door.here:
            super()._look_again(taken, unchanged)
        else:
            self._door.post(partial(self._watch_anew, taken))

    def _watch_anew(self, taken: int) -> None:
        with self.lock:
            if self._watch is None:
                super()._look_again(taken, 0)


def redeem_in_thread(
    waits: Sequence[tuple[SharedLane, Ticket, Any]], bell: Bell, message: Any
) -> list[bool | Closed]:
    """Sleep until each ticket had its turn, in whatever order they come; their bell is one.

    When what runs in this thread is to end, the message is withdrawn where it still waits.
    """
    results: dict[int, bool | Closed] = {}
    home = home_here()
    if home is not None:
        home.bell = bell
    try:
        while not _redeemed(waits, results, message):
            if home is not None and home.cancelled:
                for lane, ticket, _ in waits:
                    lane.withdraw(ticket)
                raise home.freed(message)
            bell.wait(_until_due(waits))
        return [results[place] for place in range(len(waits))]
    finally:
        results.clear()  # an error in it refers to this frame
        if home is not None:
            home.bell = None


def _redeemed(
    waits: Sequence[tuple[SharedLane, Ticket, Any]], results: dict[int, bool | Closed], message: Any
) -> bool:
    """Use those tickets whose turn it is, and note what came of each; True when all have been used."""
    for place, (lane, ticket, entry) in enumerate(waits):
        if place not in results:
            try:
                outcome = lane.claim_in_thread(ticket, entry, message)
            except Closed as closed:
                results[place] = closed
            else:
                if outcome is not None:
                    results[place] = outcome
    return len(results) == len(waits)


def _until_due(waits: Sequence[tuple[SharedLane, Ticket, Any]]) -> float | None:
    left = [
        ticket.due - lane._clock.time()
        for lane, ticket, _ in waits
        if ticket.due is not None and ticket in lane.waiting
    ]
    return min(left, default=None)
