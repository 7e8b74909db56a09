"""Inboxes that threads put into, and the one that a thread takes from."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from threading import RLock
from typing import Any, NoReturn

from orchestra.plan import LanePlan
from orchestra.runtime.clock import Clock
from orchestra.runtime.forking import renew
from orchestra.runtime.inbox import Inbox, Order
from orchestra.runtime.lane import Lane
from orchestra.runtime.pressure import Pressure
from orchestra.runtime.scheduler import Scheduler
from orchestra.runtime.threads.bytelane import SharedByteLane
from orchestra.runtime.threads.door import Bell, Door
from orchestra.runtime.threads.home import Home
from orchestra.runtime.threads.lane import SharedLane
from orchestra.runtime.ticket import Ticket
from orchestra.timer import Deadline


class SharedInbox(Inbox):
    """The inbox of a subsystem in the loop, to which threads may send.

    Senders put under `lock`, and look there whether it is `idle`. The one receiver takes without it, where
    nobody else takes; before it waits it looks once more under the lock, so it misses neither a message nor a
    sender that has begun to wait. `wake` may be called from anywhere; the loop is woken once for many.
    """

    __slots__ = ("_door", "_looks", "lock")

    def __init__(
        self,
        name: str,
        lanes: tuple[LanePlan, ...],
        signal_capacity: float,
        loop: asyncio.AbstractEventLoop,
        scheduler: Scheduler,
        bury: Callable[[Any, str, str], None],
        pressure: Pressure,
        door: Door,
        *,
        opens: bool,
        evict_after: float | None = None,
        blocks: Callable[[Any, Lane, Ticket], None] = lambda who, lane, ticket: None,
        displaced: Callable[[Any], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.lock: Any = RLock()
        self._door = door
        super().__init__(
            name,
            lanes,
            signal_capacity,
            loop,
            scheduler,
            bury,
            pressure,
            opens=opens,
            evict_after=evict_after,
            blocks=lambda lane, ticket: door.post(partial(blocks, door.who, lane, ticket)),
            displaced=None if displaced is None else lambda entry: door.post(partial(displaced, entry)),
            clock=clock,
        )
        self._looks = False

    def sleeps(self) -> bool:
        """Say that the receiver waits from now on; False when a message has come meanwhile."""
        with self.lock:
            if self._looks_again():
                return False
            self.idle = True
            return True

    def disown(self, failure: BaseException) -> None:
        renew(self.lock)
        super().disown(failure)

    async def rest(self) -> None:
        if self.over or self.sleeps():
            await super().rest()

    @property
    def queued(self) -> bool:
        with self.lock:
            return super().queued

    def note_peaks(self) -> None:
        with self.lock:
            super().note_peaks()

    def wake(self) -> None:
        if self._door.here:
            super().wake()
        elif not self._looks:
            self._looks = True
            self._door.post(self._look)

    def _look(self) -> None:
        """Wake a receiver for each message that threads have put, as far as receivers wait."""
        with self.lock:
            self._looks = False
            count = sum(len(lane.queue) for lane in self.lanes)
        while self.idle and count:
            Inbox.wake(self)
            count -= 1

    def _looks_again(self) -> bool:
        """Whether there is a message; and let in the senders that have begun to wait meanwhile."""
        for lane in self.lanes:
            if lane.pressed:
                lane.relieve()
        return any(lane.queue for lane in self.lanes)

    def _make_lane(self, plan: LanePlan, evict_after: float | None, clock: Clock | None) -> Lane:
        kind = SharedLane if plan.capacity_bytes is None else SharedByteLane
        return kind(self.name, plan, self._loop, self, evict_after, self.lock, self._door, clock)

    def bury(self, entry: Any, reason: str) -> None:
        self._door.post(partial(super().bury, entry, reason))

    def left(self) -> None:
        self._door.post(self.scheduler.poke)

    def report(self, lane: Lane, congested: bool) -> None:
        self._door.post(partial(super().report, lane, congested))

    def stalled(self, lane: Lane) -> None:
        self._door.post(partial(super().stalled, lane))

    def sends_itself(self) -> bool:
        return self._door.here and super().sends_itself()


class ThreadInbox(SharedInbox):
    """The inbox of a blocking subsystem: its one thread takes from it, and sleeps when there is nothing."""

    __slots__ = ("_bell", "_listening", "home")

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.home = Home(self.name, self._door)
        self._listening = False
        self._bell = Bell()

    # the thread

    def sleep(self) -> bool:
        """Sleep until there may be something to take; False when nothing can come any more."""
        with self.lock:
            if self._looks_again() or self.signals:
                return True
            self.current = None
            if self.over:
                return False
            self.idle = True
        self._sleep()
        return True

    def sleep_for_signal(self) -> None:
        """Sleep until there may be a signal; raise `Closed` when no signal can come any more."""
        with self.lock:
            if self.signals:
                return
            self.current = None
            silent = self.silent
            self._listening = not silent
        if silent:
            self.tell_end()
        self._sleep()

    def take_signal(self) -> Any:
        self.current = None
        with self.lock:
            if not self.signals:  # they were cleared by the end
                raise self.ended()
            signal = self.signals.popleft()
            if self._room_for_signals and self.unread <= self.signal_capacity:
                self._door.post(self._free_conductors)
        if signal.__class__ is Order:
            assert self.leader is not None
            self.leader.obey(signal)
            return None
        if signal.__class__ is Deadline:
            return None if signal.off else signal
        return signal

    def nothing(self) -> None:
        """As that of `Inbox`; a message may have come, and the end after it, since the thread has looked."""
        self.current = None
        with self.lock:
            if self.over and not self.signals and not any(lane.queue for lane in self.lanes):
                raise self.ended()

    def _sleep(self) -> None:
        self.note_peaks()
        if self.scheduler.on_rest is not None:
            self._door.post(self.scheduler.poke)
        self._bell.wait()

    def tell_end(self) -> NoReturn:
        """Raise `Closed`; after a pause when it was told a thousand times, to a loop that ignores it."""
        self._told += 1
        if self._told > 1000:
            Bell().wait(0.001)
        raise self.ended()

    # others

    def signal(self, signal: Any) -> None:
        with self.lock:
            super().signal(signal)

    def order(self, order: Order) -> None:
        with self.lock:
            super().order(order)

    def pass_deadline(self, deadline: Deadline) -> None:
        with self.lock:
            super().pass_deadline(deadline)

    def is_run_by(self, who: Any) -> bool:
        return bool(who == self.home.ident) or self.home.runs(who)

    def over_capacity(self) -> asyncio.Future[None] | None:
        with self.lock:
            return super().over_capacity()

    @property
    def resting(self) -> bool:
        with self.lock:
            at_work = self._errands or self.asking or self.queued
            return (self.idle or self._listening) and not at_work

    @property
    def waits(self) -> bool:
        """Whether the thread waits: for something to take, or for the loop."""
        with self.lock:
            return self.idle or self._listening or self.home.waits

    def hold(self, message: Any) -> None:
        """A thread holds what it has taken until it sleeps again."""
        self.current = message

    def leave(self) -> None:
        with self.lock:
            super().leave()

    # inside

    def wake(self) -> None:
        with self.lock:
            if self.idle or self._listening:
                self.idle = self._listening = False
                self._bell.ring()

    def _notify_listener(self) -> None:
        self.wake()

    def _wake_all(self) -> None:
        self.wake()

    def sends_itself(self) -> bool:
        return self.is_run_by(self._door.who)


def held(inboxes: Iterable[Inbox]) -> AbstractContextManager[object]:
    """Keep all threads from putting into these inboxes and taking from them, for a moment.

    Whoever holds several does so in the loop, so nobody waits for another. Nothing may be called meanwhile
    that waits for a thread.
    """
    locks = [inbox.lock for inbox in inboxes if isinstance(inbox, SharedInbox)]
    stack = ExitStack()
    for lock in locks:
        stack.enter_context(lock)
    return stack
