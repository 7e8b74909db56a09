"""Asks: who waits for which reply, who has it, and that an asker hears of it when none can come.

An ask has two sides. The `Reply` is in the message; it may be handed on, kept, or dropped. The `Pending`
is what the asker waits for; an orchestra keeps each until it is over. It knows the holders of its reply, the
subsystems that were last sent it: when all of them have ended, or will never handle the message, nobody
can answer, whoever may still keep the reply alive.

Everything here belongs to the event loop, save that a reply may be answered, and dropped, in any thread.
"""

import asyncio
import math
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import attrs

from orchestra.box import open_entry
from orchestra.carrying import replies_in
from orchestra.errors import Closed, Deadlock
from orchestra.priority import Priority
from orchestra.reply import Reply
from orchestra.runtime.clock import Clock, Handle, seconds
from orchestra.runtime.forking import renew
from orchestra.runtime.gridlock import Gridlocks
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.lane import Lane
from orchestra.runtime.letters import DeadLetter
from orchestra.runtime.part import Part
from orchestra.runtime.pending import HandingOn, Pending, behind, pendings_of
from orchestra.runtime.post import Post, Way
from orchestra.runtime.scheduler import Scheduler
from orchestra.runtime.strand import park
from orchestra.runtime.telling import told, wrong_thread
from orchestra.runtime.threads.inbox import held
from orchestra.runtime.ticket import Ticket
from orchestra.runtime.waits import Waits

_WHY = {
    "cancelled": "its handler was cancelled",
    "stopped": "the orchestra stopped before it was handled",
    "finished": "its receiver had finished",
    "timer": "the timer that was to send it ended before",
    "lost": "it was on its way to another process, and nobody knows whether it arrived",
}


Runner: TypeAlias = "asyncio.Task[Any] | int | None"
"""What runs a subsystem: the task of its strand, or its thread, by number."""


@attrs.frozen
class Asker:
    """A subsystem that asks by itself. Its strand parks meanwhile, and `wake` lets it go on.

    Where `wake` is None it lives in a thread, which waits for the task that asks.
    """

    name: str
    inbox: Inbox
    wake: Callable[[], None] | None


@attrs.frozen
class Blocked:
    """The edge of a sender that waits for room in a lane of `target`, without any limit."""

    target: str
    place: Lane
    ticket: Ticket

    @property
    def what(self) -> str:
        """What is waited for, in words."""
        return f"room in the {self.lane.name} lane of {self.target!r}"

    @property
    def lane(self) -> Priority:
        """The level of the lane."""
        return self.place.priority

    @property
    def holds(self) -> bool:
        """Whether it waits still: a place that was granted, or given up, is waited for no longer."""
        return self.ticket in self.place.waiting


class Asks:
    """The asks of one running orchestra that are not over, and who waits for whom because of them."""

    def __init__(
        self,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        scheduler: Scheduler,
        parts: Mapping[str, Part],
        gridlocks: Gridlocks,
    ) -> None:
        self.clock = clock
        self.loop = loop
        self.thread = threading.get_ident()
        self.late: Counter[str] = Counter()
        self._counting = threading.Lock()
        self.waits = Waits(self._is_free)
        self.absent: Callable[[str], bool] = lambda name: False
        """Whether no process hosts a subsystem now."""
        self._scheduler = scheduler
        self._parts = parts
        self._gridlocks = gridlocks
        self._open: dict[Pending, None] = {}
        self._guests: dict[Pending, None] = {}
        """Asks of other orchestras whose replies are with a subsystem of this one."""
        self._askers: dict[Runner, Asker] = {}

    async def ask(
        self,
        post: Post,
        inbox: Inbox | None,
        make: Callable[[Reply[Any]], Any],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any:
        """See `Context.ask`. `inbox` is that of the subsystem whose context is used, if it is one's."""
        self._check_thread()
        if not callable(make):
            raise TypeError(
                f"ask takes a function that makes the message of a reply, and was given {make!r}: "
                f"write ask(lambda reply: {type(make).__qualname__}(..., reply))"
            )
        task = asyncio.current_task()
        own = self._askers.get(task) or self._find_asker(task)
        if inbox is None and own is not None:
            inbox = own.inbox
        pending = Pending(self)
        self._open[pending] = None
        if inbox is not None:
            inbox.asking += 1
        timer = None
        try:
            deadline = self._deadline(timeout)
            sending = self._send(pending, post, make, priority, own, deadline, timeout)
            if sending is not None:
                await sending
            if deadline is not None:
                timer = self._at(deadline, partial(self._run_out, pending, timeout))
            if own is not None and own.wake is not None:
                pending.when_over = own.wake
                while not pending.over:
                    await park
            elif not pending.over:
                await self._over(pending)
            return pending.outcome()
        finally:
            if timer is not None:
                timer.cancel()
            pending.leave()
            del self._open[pending]
            if pending.asker is not None and self.waits.asking.get(pending.asker) is pending:
                del self.waits.asking[pending.asker]
            if inbox is not None:
                inbox.asking -= 1
                self._scheduler.poke()
            del pending

    def _check_thread(self) -> None:
        if threading.get_ident() != self.thread:
            raise wrong_thread()

    # what becomes of replies

    def handed_on(self, pending: Pending) -> None:
        """The reply is with somebody else, so its asker waits for that one."""
        if pending.asker is not None and not pending.claimed:
            circle = self.waits.circle(pending.asker, pending)
            if circle is not None:
                pending.fail(Deadlock(str(circle), circle.chain))

    def handed_back(self, pending: Pending) -> None:
        """The reply is again with those who had it before, as far as they have not ended meanwhile."""
        for name in pending.holders:
            part = self._parts.get(name)
            if part is not None and part.done:
                pending.lost(name, "it has ended without an answer")
        pending.keeper.handed_on(pending)

    def welcome(self, pending: Pending) -> None:
        """A subsystem of this orchestra has a reply that is waited for in another one."""
        self._guests[pending] = None

    def dismiss(self, pending: Pending) -> None:
        """None has it any more, or nobody waits for it."""
        self._guests.pop(pending, None)

    def open_for_another(self, pending: Pending) -> None:
        """Somebody in another process asks, and this stands for its ask."""
        self._open[pending] = None

    def closed_for_another(self, pending: Pending) -> None:
        """It has its outcome."""
        self._open.pop(pending, None)

    def count_late(self, pending: Pending) -> None:
        """An answer came too late."""
        if pending.holder is not None:
            with self._counting:
                self.late[pending.holder] += 1

    def buried(self, letter: DeadLetter) -> None:
        """A message will never be handled, so nobody answers what it asks."""
        if not self._open and not self._guests:
            return
        error = letter.error
        why = _WHY.get(letter.reason, letter.reason) if error is None else f"its handler raised {told(error)}"
        for pending in self._pendings(letter.message):
            pending.lost(letter.subsystem, why, letter.message, error)

    def displaced(self, name: str, entry: Any) -> None:
        """`DropOldest` has thrown an entry out of a lane."""
        if self._open or self._guests:
            for pending in self._pendings(entry):
                why = "the request was dropped, for a newer message took its place"
                pending.lost(name, why, open_entry(entry))

    def left(self, inbox: Inbox, error: BaseException | None) -> None:
        """A subsystem has ended, or begins again: what it had taken and not answered has no reply.

        What is queued, or waits for room, stays: it will be handled, or dead-lettered by itself.
        """
        self.waits.forget(inbox.name)
        for who in [who for who, asker in self._askers.items() if asker.inbox is inbox]:
            del self._askers[who]
        unanswered = [
            pending for pending in self._here() if inbox.name in pending.holders and not pending.on_the_way
        ]
        if not unanswered:
            return
        failure = error if isinstance(error, Exception) and not isinstance(error, Closed) else None
        with held([inbox]):
            entries = [entry for lane in inbox.lanes for entry in lane.queue]
        queued = {pending for entry in entries for pending in self._pendings(entry)}
        why = "it has ended without an answer" if failure is None else f"it failed with {told(failure)}"
        for pending in unanswered:
            if pending not in queued:
                pending.lost(inbox.name, why, cause=failure)

    def close(self) -> None:
        """The orchestra has ended: nobody answers."""
        for pending in (*self._open, *self._guests):
            if not pending.on_the_way:
                pending.no_reply("the orchestra has ended")

    def disown(self) -> None:
        """In a forked child: nobody waits here for an answer."""
        renew(self._counting)
        for pending in self._open:
            pending.claim()

    def blocked(self, lane: Lane, ticket: Ticket) -> None:
        """The running task waits without limit for room in a lane; see `blocks`."""
        self.blocks(asyncio.current_task(), lane, ticket)

    def blocks(self, who: Runner, lane: Lane, ticket: Ticket) -> None:
        """A sender waits without limit for room in a lane; when that closes a circle it is reported."""
        own = self._askers.get(who) or self._find_asker(who)
        if own is None or ticket not in lane.waiting:
            return
        edge = Blocked(lane.subsystem, lane, ticket)
        self.waits.send(own.name, edge)
        circle = self.waits.circle(own.name, edge)
        if circle is not None:
            self._gridlocks.report(circle)

    # inside

    def _send(
        self,
        pending: Pending,
        post: Post,
        make: Callable[[Reply[Any]], Any],
        priority: Priority | None,
        own: Asker | None,
        deadline: float | None,
        timeout: float | None,
    ) -> Coroutine[Any, Any, None] | None:
        """Put the message where it can be put at once; else give what is to be awaited.

        When that is done, nothing here refers to the message, nor to the reply.
        """
        message = make(Reply(pending))
        way = post.known_way(message.__class__)
        if way is None or way.lane is None or priority is not None or not _carries(message, way, pending):
            return self._send_anyhow(pending, post, message, priority, own, deadline, timeout)
        pending.asked = way.kind
        lane = way.lane
        if len(lane.queue) >= lane.room:
            return self._send_anyhow(pending, post, message, priority, own, deadline, timeout)
        self._begin(pending, own, (lane.subsystem,))
        if lane.offer(message):
            return None
        return self._send_anyhow(pending, post, message, priority, own, deadline, timeout)

    async def _send_anyhow(
        self,
        pending: Pending,
        post: Post,
        message: Any,
        priority: Priority | None,
        own: Asker | None,
        deadline: float | None,
        timeout: float | None,
    ) -> None:
        """Send the message in the general way, waiting for room until the deadline."""
        places, way = post.places(message, priority)
        pending.asked = way.kind
        names = way.receivers_at(places)
        self._begin(pending, own, names)
        carried = pendings_of(message, way.replies)
        with HandingOn(carried if pending in carried else (*carried, pending), names, self) as handing:
            spreading = post.spread(places, message, note=handing.note)
            limited = deadline is not None or len(places) > 1
            if limited and not all(lane.fits(entry) for lane, entry in places):
                spreading = self._at_most(pending, deadline, timeout, spreading)
            try:
                await spreading
            except Exception:
                if not pending.answered:
                    raise
        if not handing.taken:
            pending.holders = names
            why = (
                f"for there was no room{self._absence(pending)}"
                if places
                else "for its receiver is only planned"
            )
            pending.no_reply(f"the request was dropped, {why}", message)

    async def _at_most(
        self,
        pending: Pending,
        deadline: float | None,
        timeout: float | None,
        spreading: Coroutine[Any, Any, bool],
    ) -> bool:
        """Wait for room until the deadline, or until one of several receivers has given the outcome."""
        try:
            async with asyncio.timeout(None) as limit:

                def end() -> None:
                    if limit.when() is None:  # else it has ended: two reasons may come together
                        limit.reschedule(self.loop.time())

                pending.when_over = end
                timer = None if deadline is None else self._at(deadline, end)
                try:
                    return await spreading
                finally:
                    pending.when_over = None
                    if timer is not None:
                        timer.cancel()
        except TimeoutError:
            if pending.over:
                return False
            who = pending.told
            raise TimeoutError(
                f"{who} had no room for {pending.kind} within {timeout:g} s{self._absence(pending)}"
            ) from None

    def _begin(self, pending: Pending, own: Asker | None, names: tuple[str, ...]) -> None:
        """These are to get the request. Raises `Deadlock` where its asker would wait for ever."""
        pending.holders = names
        if own is None:
            return
        circle = self.waits.circle(own.name, pending)
        if circle is not None:
            raise Deadlock(str(circle), circle.chain)
        self.waits.asking[own.name] = pending
        pending.asker = own.name

    def _deadline(self, timeout: float | None) -> float | None:
        """When a time limit of so many seconds is over; None where there is none."""
        if timeout is None or timeout == math.inf:
            return None
        return self.clock.time() + seconds("the time limit of an ask", timeout)

    async def _over(self, pending: Pending) -> None:
        """Wait for the outcome in a task that is no strand's own."""
        future: asyncio.Future[None] = self.loop.create_future()
        pending.when_over = partial(_wake, future)
        await future

    def _at(self, deadline: float, function: Callable[[], None]) -> Handle:
        return self.clock.call_later(max(deadline - self.clock.time(), 0.0), function)

    def _run_out(self, pending: Pending, timeout: float | None) -> None:
        if not pending.claimed:
            late = f"{pending.told} did not reply to {pending.kind} within {timeout:g} s"
            pending.fail(TimeoutError(late + self._absence(pending)))

    def _absence(self, pending: Pending) -> str:
        """That no process hosts those that were asked, where that is so; to follow what came of it."""
        absent = " and ".join(repr(name) for name in pending.holders if self.absent(name))
        return f": no process hosts {absent} now" if absent else ""

    def _here(self) -> Iterator[Pending]:
        """The asks whose replies are with subsystems of this orchestra."""
        return (pending for pending in (*self._open, *self._guests) if pending.place is self)

    def _pendings(self, message: Any) -> Iterator[Pending]:
        """Those of them whose replies are in a message, or an entry of a lane."""
        return (pending for pending in behind(replies_in(message)) if pending.place is self)

    def _find_asker(self, who: Runner) -> Asker | None:
        """The subsystem that a task or a thread runs, remembered for the task of a strand; else None."""
        for part in self._parts.values():
            strand = part.inbox.strand
            if strand is not None and part.inbox.is_run_by(who):
                if part.worker is not None:
                    return Asker(part.name, part.inbox, None)
                wake = partial(self._scheduler.add, strand.step)
                asker = self._askers[who] = Asker(part.name, part.inbox, wake)
                return asker
        return None

    def _is_free(self, name: str) -> bool:
        """Whether another task of the subsystem receives, so that its strand holds up nobody."""
        part = self._parts.get(name)
        return part is not None and part.inbox.is_received_elsewhere


def _carries(message: Any, way: Way, pending: Pending) -> bool:
    """Whether the reply of this ask is the one that the message may carry by its class."""
    if len(way.replies) != 1:
        return False
    reply: Any = getattr(message, way.replies[0], None)
    return reply.__class__ is Reply and reply._pending is pending


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
