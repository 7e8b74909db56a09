"""Asks: who waits for which reply, who has it, and that an asker hears of it when none can come.

An ask has two sides. The `Reply` is in the message; it may be handed on, kept, or dropped. The `Pending`
is what the asker waits for; an orchestra keeps each until it is over. It knows the holders of its reply, the
subsystems that were last sent it: when all of them have ended, or will never handle the message, nobody
can answer, whoever may still keep the reply alive.

Everything here belongs to the event loop, save that a reply may be answered, and dropped, in any thread.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from orchestra.box import open_entry
from orchestra.carrying import replies_in
from orchestra.errors import Deadlock
from orchestra.messages import shown
from orchestra.priority import Priority
from orchestra.reply import Reply
from orchestra.runtime.clock import Clock, Handle
from orchestra.runtime.gridlock import Gridlocks
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.lane import Lane, Ticket
from orchestra.runtime.letters import DeadLetter
from orchestra.runtime.part import Part
from orchestra.runtime.pending import HandingOn, Pending, behind, pendings_of
from orchestra.runtime.post import Post
from orchestra.runtime.scheduler import Scheduler
from orchestra.runtime.strand import park
from orchestra.runtime.telling import told
from orchestra.runtime.threads.inbox import held
from orchestra.runtime.waits import Edge, Waits

_WHY = {
    "cancelled": "its handler was cancelled",
    "stopped": "the orchestra stopped before it was handled",
    "finished": "its receiver had finished",
}


Runner: TypeAlias = "asyncio.Task[Any] | int | None"
"""What runs a subsystem: the task of its strand, or its thread, by number."""


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
        self.waits = Waits(self._is_free)
        self._scheduler = scheduler
        self._parts = parts
        self._gridlocks = gridlocks
        self._open: dict[Pending, None] = {}
        self._strands: dict[asyncio.Task[Any] | int, Inbox] = {}

    async def ask(
        self,
        post: Post,
        inbox: Inbox | None,
        make: Callable[[Reply[Any]], Any],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
        in_thread: bool = False,
    ) -> Any:
        """See `Context.ask`. `inbox` is that of the subsystem whose context is used, if it is one's.

        `in_thread` says that the thread of that subsystem waits meanwhile for the running task.
        """
        if not callable(make):
            raise TypeError(
                f"ask takes a function that makes the message of a reply, and was given {make!r}: "
                f"write ask(lambda reply: {type(make).__qualname__}(..., reply))"
            )
        deadline = None if timeout is None else self.clock.time() + timeout
        own = self._strand_of(asyncio.current_task())
        pending = Pending(self)
        self._open[pending] = None
        if inbox is not None:
            inbox.asking += 1
        try:
            asker = inbox if in_thread else own
            await self._send(pending, post, make, priority, asker, deadline, timeout)
            if not pending.over:
                await self._wait(pending, own, deadline, timeout)
            return pending.outcome()
        finally:
            pending.claim()
            del self._open[pending]
            if pending.asker is not None:
                self.waits.asking.pop(pending.asker, None)
            if inbox is not None:
                inbox.asking -= 1
                self._scheduler.poke()
            del pending

    # what becomes of replies

    def turn(self, pending: Pending) -> None:
        """The reply is with somebody else: so its asker waits for that one."""
        asker, edge = pending.asker, pending.edge()
        assert asker is not None
        if edge is None:
            self.waits.asking.pop(asker, None)
            return
        self.waits.asking[asker] = edge
        circle = self.waits.circle(asker, edge)
        if circle is not None:
            pending.fail(Deadlock(str(circle), circle.chain))

    def count_late(self, pending: Pending) -> None:
        """An answer came too late."""
        if pending.holder is not None:
            self.late[pending.holder] += 1

    def buried(self, letter: DeadLetter) -> None:
        """A message will never be handled, so nobody answers what it asks."""
        if not self._open:
            return
        error = letter.error
        why = _WHY.get(letter.reason, letter.reason) if error is None else f"its handler raised {told(error)}"
        for pending in self._pendings(letter.message):
            pending.lost(letter.subsystem, why, letter.message, error)

    def displaced(self, name: str, entry: Any) -> None:
        """`DropOldest` has thrown an entry out of a lane."""
        if self._open:
            for pending in self._pendings(entry):
                why = "the request was dropped, for a newer message took its place"
                pending.lost(name, why, open_entry(entry))

    def left(self, inbox: Inbox, error: BaseException | None) -> None:
        """A subsystem has ended, or begins again: what it had taken and not answered has no reply.

        What is queued, or waits for room, stays: it will be handled, or dead-lettered by itself.
        """
        self.waits.forget(inbox.name)
        for who in [who for who, owner in self._strands.items() if owner is inbox]:
            del self._strands[who]
        unanswered = [
            pending for pending in self._open if inbox.name in pending.holders and not pending.on_the_way
        ]
        if not unanswered:
            return
        with held([inbox]):
            entries = [entry for lane in inbox.lanes for entry in lane.queue]
        queued = {pending for entry in entries for pending in self._pendings(entry)}
        why = "it has ended without an answer" if error is None else f"it failed with {told(error)}"
        for pending in unanswered:
            if pending not in queued:
                pending.lost(inbox.name, why, cause=error)

    def close(self) -> None:
        """The orchestra has ended: nobody answers."""
        for pending in list(self._open):
            if not pending.on_the_way:
                pending.no_reply("the orchestra has ended")

    def blocked(self, lane: Lane, ticket: Ticket) -> None:
        """The running task waits without limit for room in a lane; see `blocks`."""
        self.blocks(asyncio.current_task(), lane, ticket)

    def blocks(self, who: Runner, lane: Lane, ticket: Ticket) -> None:
        """A sender waits without limit for room in a lane; when that closes a circle it is reported."""
        own = self._strand_of(who)
        if own is None or ticket not in lane.waiting:
            return
        what = f"room in the {lane.priority.name} lane of {lane.subsystem!r}"
        edge = Edge(lane.subsystem, what, lane.priority, lambda: ticket in lane.waiting)
        self.waits.sending[own.name] = edge
        circle = self.waits.circle(own.name, edge)
        if circle is not None:
            self._gridlocks.report(circle)

    # inside

    async def _send(
        self,
        pending: Pending,
        post: Post,
        make: Callable[[Reply[Any]], Any],
        priority: Priority | None,
        own: Inbox | None,
        deadline: float | None,
        timeout: float | None,
    ) -> None:
        """Send the message. When it returns, nothing here refers to it, nor to the reply."""
        message = make(Reply(pending))
        places, way = post.places(message, priority)
        pending.kind = shown(way.kind)
        names = way.receivers_at(places)
        if own is not None:
            self._begin(pending, own.name, names)
        carried = pendings_of(message, way.replies)
        with HandingOn(carried if pending in carried else (*carried, pending), names, self) as handing:
            spreading = post.spread(places, message)
            if deadline is not None and not all(len(lane.queue) < lane.room for lane, _ in places):
                spreading = self._within(deadline, f"{pending.kind} within {timeout:g} s", spreading)
            handing.taken = await spreading and not way.wip
        if not handing.taken and len(names) == 1:
            pending.holders = names
            pending.no_reply("the request was dropped, for there was no room", message)

    async def _within(self, deadline: float, what: str, spreading: Coroutine[Any, Any, bool]) -> bool:
        """Wait for room until the deadline."""
        try:
            async with asyncio.timeout(None) as limit:
                end = self._at(deadline, lambda: limit.reschedule(self.loop.time()))
                try:
                    return await spreading
                finally:
                    end.cancel()
        except TimeoutError:
            raise TimeoutError(f"there was no room for {what}") from None

    def _begin(self, pending: Pending, asker: str, names: tuple[str, ...]) -> None:
        """The strand of `asker` is about to wait; raises `Deadlock` where that would be for ever."""
        pending.holders = names
        edge = pending.edge()
        if edge is not None:
            circle = self.waits.circle(asker, edge)
            if circle is not None:
                raise Deadlock(str(circle), circle.chain)
            self.waits.asking[asker] = edge
        pending.asker = asker

    async def _wait(
        self, pending: Pending, own: Inbox | None, deadline: float | None, timeout: float | None
    ) -> None:
        """Wait for the outcome: a strand parks, and is stepped on; any other task waits for a future."""
        timer = None
        if deadline is not None:
            timer = self._at(deadline, partial(self._run_out, pending, timeout))
        try:
            if own is not None:
                assert own.strand is not None
                pending.when_over = partial(self._scheduler.add, own.strand.step)
                while not pending.over:
                    await park
            else:
                future: asyncio.Future[None] = self.loop.create_future()
                pending.when_over = partial(_wake, future)
                await future
        finally:
            pending.when_over = None
            if timer is not None:
                timer.cancel()

    def _at(self, deadline: float, function: Callable[[], None]) -> Handle:
        return self.clock.call_later(max(deadline - self.clock.time(), 0.0), function)

    def _run_out(self, pending: Pending, timeout: float | None) -> None:
        if not pending.claimed:
            pending.fail(TimeoutError(f"{pending.told} did not reply to {pending.kind} within {timeout:g} s"))

    def _pendings(self, message: Any) -> Iterator[Pending]:
        """The asks of this orchestra whose replies are in a message, or an entry of a lane."""
        return (pending for pending in behind(replies_in(message)) if pending in self._open)

    def _strand_of(self, who: Runner) -> Inbox | None:
        """The inbox of the subsystem whose strand this task is, or which lives in this thread."""
        if who is None:
            return None
        known = self._strands.get(who)
        if known is not None:
            return known
        for part in self._parts.values():
            if part.inbox.is_run_by(who):
                self._strands[who] = part.inbox
                return part.inbox
        return None

    def _is_free(self, name: str) -> bool:
        """Whether another task of the subsystem receives, so that its strand holds up nobody."""
        part = self._parts.get(name)
        return part is not None and part.inbox.is_received_elsewhere


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
