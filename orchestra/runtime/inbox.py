"""What one subsystem receives from: its signals, then its lanes, and whoever waits for them.

Generated code looks at `signals` and the lanes' queues directly; it comes here when there is nothing
to take (`rest`), when a sender finds the receiver waiting (`wake`), and when the inbox ends.
"""

import asyncio
import enum
from collections.abc import Callable
from typing import Any, Final, Protocol

from orchestra.box import open_entry
from orchestra.errors import Closed, UndeclaredPriority
from orchestra.plan import LanePlan
from orchestra.priority import Priority
from orchestra.runtime.bytelane import ByteLane
from orchestra.runtime.clock import Clock
from orchestra.runtime.fairness import Turns
from orchestra.runtime.lane import Lane
from orchestra.runtime.pressure import Pressure
from orchestra.runtime.scheduler import COURSE, Scheduler, Step
from orchestra.runtime.short import EMPTY, Short
from orchestra.runtime.strand import PARKED, Strand, breathe, park
from orchestra.runtime.ticket import Ticket
from orchestra.timer import Deadline

CALLED_FINISH: Final = "it has called ctx.finish()"

_NO_COURSE: Final[list[int]] = []

_NONE: Final[dict[Any, Any]] = {}
"""What most inboxes have; where something is put, a dict of its own is made first."""


class Order(enum.Enum):
    """What is to be done as soon as a running handler has returned."""

    STOP = enum.auto()
    """An Actor asked for it: stop the orchestra."""

    FAIL = enum.auto()
    """A failure came from elsewhere: take nothing more in this life."""


class Leader(Protocol):
    """Who does what is ordered."""

    def obey(self, order: Order) -> None:
        """Do what was ordered while a handler ran."""


class Inbox:
    """The receiving side of one subsystem. It belongs to one event loop.

    `idle` says that somebody waits for a message: who puts one then calls `wake`. `over` says that no
    receiver may take anything more once what it can see is gone: it has ended, or was stopped. `opens` says
    whether its receiver opens boxes; `serial` that one handler at a time is all that receives from it.
    `asking` counts the asks of its subsystem that are not over. `current` is the message that its strand, or
    its thread, has received last, until that receives again; `in_hand` has those of other tasks that receive.
    `unhandled` is called with the one of a task that has ended by an error, or was cancelled, and with that.
    `alert` says that there may be something else than messages to look at: signals, a lane that is pressed,
    or the end; a receiver that looks at it instead of them calls `attend` then.
    `absent` says that no process hosts its subsystem now; `why` tells in words why it takes no more messages.
    `work` is the step that serves it. Where that is for one message, `batch` is for many, and `broke` is told
    of an error of a handler; the generated code sets both.
    """

    __slots__ = (
        "_blocks",
        "_bury",
        "_course",
        "_errands",
        "_listeners",
        "_listening",
        "_loop",
        "_others",
        "_pressure",
        "_receivers",
        "_room_for_signals",
        "_told",
        "absent",
        "alert",
        "asking",
        "batch",
        "broke",
        "current",
        "displaced",
        "failure",
        "idle",
        "in_hand",
        "lanes",
        "leader",
        "level",
        "name",
        "opens",
        "over",
        "parked",
        "scheduler",
        "serial",
        "shut",
        "signal_capacity",
        "signals",
        "silent",
        "strand",
        "taken",
        "unhandled",
        "why",
        "work",
    )

    def __init__(
        self,
        name: str,
        lanes: tuple[LanePlan, ...],
        signal_capacity: float,
        loop: asyncio.AbstractEventLoop,
        scheduler: Scheduler,
        bury: Callable[[Any, str, str], None],
        pressure: Pressure,
        *,
        opens: bool,
        evict_after: float | None = None,
        blocks: Callable[[Lane, Ticket], None] = lambda lane, ticket: None,
        displaced: Callable[[Any], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self._loop = loop
        self.scheduler = scheduler
        self._bury = bury
        self._pressure = pressure
        self._blocks = blocks
        self.displaced = displaced
        self.lanes = tuple([self._make_lane(lane, evict_after, clock) for lane in lanes])
        self.opens = opens
        self.level: Callable[[Any], Priority] | None = None
        self.signals: Short[Any] = Short()
        self.signal_capacity = signal_capacity
        self.current: Any = None
        self.in_hand: dict[asyncio.Task[Any], Any] = _NONE
        self.unhandled: Callable[[str, Any, BaseException], None] = lambda name, message, error: None
        self.failure: BaseException | None = None
        self.absent = False
        self.why = ""
        self.alert = False
        self._course: list[int] = _NO_COURSE
        self.idle = False
        self.parked = False
        self.serial = False
        self.asking = 0
        self.over = False
        self.silent = False
        self.shut = False
        self.work: Step | None = None
        self.batch: Step | None = None
        self.broke: Callable[[BaseException, Any], int] | None = None
        self.strand: Strand | None = None
        self.leader: Leader | None = None
        self.taken: Callable[[], tuple[int, ...]] = lambda: (0,) * len(self.lanes)
        self._others: Short[asyncio.Future[None]] = EMPTY
        self._receivers: dict[asyncio.Task[Any], None] = _NONE
        self._errands: dict[asyncio.Task[Any], None] = _NONE
        self._told = 0
        self._listening = False
        self._listeners: Short[asyncio.Future[None]] = EMPTY
        self._room_for_signals: Short[asyncio.Future[None]] = EMPTY

    PARKED = PARKED

    @property
    def by_priority(self) -> dict[Priority, Lane]:
        """The lanes by their levels."""
        return {lane.priority: lane for lane in self.lanes}

    @property
    def thread(self) -> int:
        """The identity of the thread of its event loop."""
        return self.scheduler.thread

    # senders

    def wake(self) -> None:
        """What a sender calls that finds the inbox idle: it lets one of those who wait go on."""
        if self._others:
            self.wake_other()
            return
        self.idle = self.parked = False
        scheduler = self.scheduler
        scheduler.ready.append(self.work)  # type: ignore[arg-type]  # it is set before anything waits
        if not scheduler.awake:
            scheduler.rise()

    def no_lane(self, priority: Any, message: Any) -> Any:
        """Raise the error for a level that this inbox has no lane for."""
        raise UndeclaredPriority(self._why_no_lane(priority, message), message, self.name)

    def wake_other(self) -> None:
        """Let a receiver in a Task of its own go on; the strand goes first where it waits too."""
        if self.parked:
            self.parked = False
            assert self.work is not None
            self.scheduler.add(self.work)
        else:
            _release_one(self._others)
        self.idle = bool(self._others)

    def signal(self, signal: Any) -> None:
        """Put a signal, whatever the capacity: the conductor waits afterwards, not before."""
        self.signals.append(signal)
        self.interrupt()
        self._notify_listener()

    def order(self, order: Order) -> None:
        """Put an order in front of all signals."""
        self.keep_order(order)
        self._notify_listener()

    def keep_order(self, order: Order) -> None:
        """Put an order in front of all signals, for when the receiver looks at them by itself."""
        self.signals.appendleft(order)
        self.interrupt()

    def pass_deadline(self, deadline: Deadline) -> None:
        """Put a deadline that has passed in front of all signals, behind what the Actor itself ordered."""
        if not self.shut:
            self.signals.insert(self._in_front(Order), deadline)
            self.interrupt()
            self._notify_listener()

    def closed(self, message: Any) -> Closed:
        """The error for a message that this inbox does not take any more."""
        error = Closed(f"{self.name!r} takes no more messages{self._since}", message, self.name)
        error.__cause__ = self.failure
        return error

    # receivers

    def ended(self) -> Closed:
        """The error for a receiver: no more can come."""
        error = Closed(f"no more can come to {self.name!r}{self._since}", None, self.name)
        error.__cause__ = self.failure
        return error

    def turns(self, limit: int) -> Turns:
        """The order of a receiver that guards its lower lanes against starving."""
        return Turns(self.lanes, limit)

    def take_signal(self) -> Any:
        """The next signal or passed deadline, or None after an order was obeyed."""
        self._receives_again()
        signal = self.signals.popleft()
        if signal.__class__ is Order:
            assert self.leader is not None
            self.leader.obey(signal)
            return None
        if signal.__class__ is Deadline:
            return None if signal.off else signal
        if self._room_for_signals and self.unread <= self.signal_capacity:
            self._free_conductors()
        self._wake_for_queued()  # who takes it may have been woken for a message
        return signal

    async def rest(self) -> None:
        """Wait until there may be something to take; raise `Closed` when nothing can come any more.

        Cancelling it loses nothing: what came meanwhile stays queued, and another waiting receiver
        is woken for it.
        """
        self._receives_again()
        if self.over:
            await self._tell_end()
        task = asyncio.current_task()
        if task not in self._receivers:
            self._know(task)
        if self.strand is not None and task is self.strand.task:
            self.parked = self.idle = True
            try:
                await park
            except BaseException:
                self.parked = False
                self._pass_on()
                raise
            self.parked = False
            self.idle = bool(self._others)
        else:
            self.idle = True
            if self._others is EMPTY:
                self._others = Short()
            await self._wait_in(self._others)

    async def rest_for_signal(self) -> None:
        """Wait until there may be a signal; raise `Closed` when no signal can come any more."""
        self._receives_again()
        if self.silent:
            await self._tell_end()
        task = asyncio.current_task()
        self._know(task)
        if self.strand is not None and task is self.strand.task:
            self._listening = True
            try:
                await park
            except BaseException:
                self._listening = False
                self._pass_on()
                raise
            self._listening = False
        else:
            if self._listeners is EMPTY:
                self._listeners = Short()
            await self._wait_in(self._listeners)

    def course(self, most: int, queued: int) -> list[int]:
        """The numbers of the messages to take in a row from the only lane, until something interrupts."""
        (lane,) = self.lanes
        if queued > lane.peak:  # noqa: PLR1730  # a call of max() or min() takes longer, each batch
            lane.peak = queued
        self._course = course = COURSE[: queued if queued < most else most]  # noqa: FURB136  # likewise
        return course

    def interrupt(self) -> None:
        """Something else than messages is to be looked at, before the next message."""
        self.alert = True
        self._course.clear()

    def attend(self) -> None:
        """Let in the senders that wait for room, and see whether anything is left to look at."""
        for lane in self.lanes:
            if lane.pressed:
                lane.relieve()
        self.alert = self.over or bool(self.signals) or any(lane.pressed for lane in self.lanes)

    def more(self) -> int:
        """How many messages to take before the next pause, with none now: 0 when others are to run first."""
        self.note_peaks()
        return self.scheduler.more()

    async def breathe(self) -> int:
        """Let all others run once before taking more; return how many to take until the next time."""
        self._receives_again()
        if self.strand is not None and asyncio.current_task() is self.strand.task:
            assert self.work is not None
            self.scheduler.add(self.work)
            pause = breathe
        else:
            pause = asyncio.sleep(0)
        try:
            await pause
        except BaseException:
            self._pass_on()
            raise
        return self.scheduler.budget

    def hold(self, message: Any) -> None:
        """The running task has taken a message: the inbox does not rest until that task waits for another."""
        task = _running_task()
        self._know(task)
        if self.scheduler.began or task is None:
            self.current = message
        else:
            if self.in_hand is _NONE:
                self.in_hand = {}
            self.in_hand[task] = message

    def employ(self, task: "asyncio.Task[Any]") -> None:
        """A task of the subsystem's own has begun: the inbox does not rest until it ends or receives."""
        if task not in self._receivers:
            if self._errands is _NONE:
                self._errands = {}
            self._errands[task] = None

    def dismiss(self, task: "asyncio.Task[Any]") -> None:
        """A task of the subsystem's own has ended."""
        self._errands.pop(task, None)
        self.scheduler.poke()

    def note_peaks(self) -> None:
        """Remember how long the queues are; called once in a batch of messages."""
        for lane in self.lanes:
            if len(lane.queue) > lane.peak:  # noqa: PLR1730  # max() costs twice as much, each batch
                lane.peak = len(lane.queue)

    def nothing(self) -> None:
        """What `try_recv` gives when there is nothing: None, or `Closed` when nothing can come."""
        self._receives_again()
        if self.over:
            raise self.ended()

    # its end

    def pause(self) -> None:
        """A life of the subsystem is over: its strand takes nothing more. What is queued stays."""
        self.parked = self._listening = False
        self.idle = bool(self._others)
        self.current = None
        kept = [signal for signal in self.signals if signal is not Order.FAIL]
        self.signals.clear()
        self.signals.extend(kept)

    def end(self) -> None:
        """No more can come: receivers take what is queued, then see the end."""
        self.over = self.alert = True
        self._wake_all()

    def go_on(self) -> None:
        """More can come after all: a timer was set before the end of all that was at work."""
        self.over = self.shut

    def fall_silent(self) -> None:
        """No more signals can come."""
        self.silent = True
        self._wake_all()

    def stop(self, failure: BaseException | None) -> None:
        """Nobody takes another message: bury what is queued. Signals that came before are still seen."""
        self._stops(failure)
        for lane in self.lanes:
            lane.stop()
        self.over = self.silent = True
        self.interrupt()
        self._wake_all()

    def keep(self, failure: BaseException | None) -> None:
        """As `stop`, but what is queued stays for the outside to read."""
        self._stops(failure)
        for lane in self.lanes:
            lane.keep()

    def close(self, reason: str, why: str = "") -> None:
        """The subsystem has finished, and `why`: take no more, and bury what is left."""
        self.why = self.why or why
        for lane in self.lanes:
            lane.close(reason)
        self.leave()

    def leave(self) -> None:
        """Nobody receives here any more; in a stop the lanes still accept what fits, and bury it."""
        self.over = self.silent = self.shut = True
        self.interrupt()
        self.signals.clear()
        self._free_conductors()
        self._wake_all()

    def disown(self, failure: BaseException) -> None:
        """In a forked child: take nothing, and have nothing. The messages are the parent's."""
        self.failure = failure
        self.over = self.silent = self.shut = True
        self.interrupt()
        self.signals.clear()
        for lane in self.lanes:
            lane.disown()

    # questions

    @property
    def queued(self) -> bool:
        """Whether anything waits to be taken or to be put."""
        return bool(self.signals) or any(lane.queue or lane.senders_waiting for lane in self.lanes)

    @property
    def unread(self) -> int:
        """How many signals wait; what stands in front of them does not count."""
        return len(self.signals) - self._in_front(Order, Deadline)

    @property
    def resting(self) -> bool:
        """Whether every receiver waits, nothing spawned or asked is open, and there is nothing to take."""
        waiting = len(self._others) + len(self._listeners) + (self.parked or self._listening)
        if self.asking or self.queued or self._errands or len(self._receivers) > waiting:
            return False
        return self.idle or self._listening or bool(self._listeners)

    def is_run_by(self, who: "asyncio.Task[Any] | int | None") -> bool:
        """Whether a task, or a thread by its number, is that in which the handlers of this inbox run."""
        return self.strand is not None and self.strand.task is who

    @property
    def is_received_elsewhere(self) -> bool:
        """Whether a task other than the strand's own receives, too."""
        own = None if self.strand is None else self.strand.task
        return any(task is not own for task in self._receivers)

    def over_capacity(self) -> asyncio.Future[None] | None:
        """A future for when the signals are within their capacity, or None when they are."""
        if self.unread <= self.signal_capacity:
            return None
        future = self._loop.create_future()
        self._room_for_signals = Short((*self._room_for_signals, future))
        return future

    # for its lanes

    def arrived(self) -> None:
        """A message was put by a sender that found no room at first."""
        if self.idle:
            self.wake()

    def bury(self, entry: Any, reason: str) -> None:
        """An entry will never be handled."""
        self._bury(open_entry(entry), self.name, reason)

    def left(self) -> None:
        """A waiting sender gave up."""
        self.scheduler.poke()

    def sends_itself(self) -> bool:
        """Whether the running task is the only receiver."""
        return self.serial and self.strand is not None and asyncio.current_task() is self.strand.task

    def running_strand(self) -> Strand | None:
        """The strand whose coroutine runs now, if it is one's."""
        return self.scheduler.strands.get(asyncio.current_task())

    def taken_from(self, lane: Lane) -> int:
        """How many messages were taken from a lane."""
        return self.taken()[self.lanes.index(lane)]

    def report(self, lane: Lane, congested: bool) -> None:
        """A lane has become congested, or has recovered."""
        self._pressure.report(lane, congested)

    def stalled(self, lane: Lane) -> None:
        """Blocking senders were freed from a lane."""
        self._pressure.stalled(lane)

    def blocks(self, lane: Lane, ticket: Ticket) -> None:
        """A sender waits in a lane without any limit."""
        self._blocks(lane, ticket)

    # inside

    @property
    def _since(self) -> str:
        return f", since {self.why}" if self.why else ""

    def _stops(self, failure: BaseException | None) -> None:
        self.failure = failure
        self.why = self.why or ("the orchestra stops" if failure is None else "the orchestra has failed")

    def _why_no_lane(self, priority: Any, message: Any) -> str:
        if priority is None:
            kind = type(open_entry(message)).__qualname__
            by = getattr(self.level, "__qualname__", f"the priority of {self.name!r}")
            return f"{by} returned None for {kind}: let it return a Priority, such as Priority.NORMAL"
        if priority not in Priority.__members__.values():
            return (
                f"{self.name!r} has no lane {priority!r}, for that is no Priority: give {_nearest(priority)}"
            )
        has = ", ".join(lane.priority.name for lane in self.lanes)
        return f"{self.name!r} has no {Priority(priority).name} lane; it has {has}"

    def _make_lane(self, plan: LanePlan, evict_after: float | None, clock: Clock | None) -> Lane:
        kind = Lane if plan.capacity_bytes is None else ByteLane
        return kind(self.name, plan, self._loop, self, evict_after, clock)

    def _in_front(self, *kinds: type) -> int:
        """How many of these kinds come before everything else in the queue of signals."""
        for place, signal in enumerate(self.signals):
            if signal.__class__ not in kinds:
                return place
        return len(self.signals)

    async def _tell_end(self) -> None:
        """Raise `Closed`; after a pause when it was told a thousand times, to a loop that ignores it."""
        self._told += 1
        if self._told > 1000:
            await asyncio.sleep(0.001)
        raise self.ended()

    async def _wait_in(self, line: Short[asyncio.Future[None]]) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        line.append(future)
        self.scheduler.poke()
        try:
            await future
        except BaseException:
            if future in line:
                line.remove(future)
            self._pass_on()
            raise

    def _know(self, task: "asyncio.Task[Any] | None") -> None:
        if task is not None and task not in self._receivers:
            self._errands.pop(task, None)
            if self._receivers is _NONE:
                self._receivers = {}
            self._receivers[task] = None
            task.add_done_callback(self._receiver_left)

    def _receives_again(self) -> None:
        """What the running task has received before counts as handled."""
        if self.scheduler.began:
            self.current = None
        elif self.in_hand:
            self.in_hand.pop(_running_task(), None)  # type: ignore[arg-type]  # None is none of them

    def _receiver_left(self, task: "asyncio.Task[Any]") -> None:
        self._receivers.pop(task, None)
        if task in self.in_hand:
            message = self.in_hand.pop(task)
            error = asyncio.CancelledError() if task.cancelled() else outcome_of(task)
            if error is not None:
                self.unhandled(self.name, message, error)
        self.scheduler.poke()

    def _pass_on(self) -> None:
        """A receiver left without taking: what it may have been woken for goes to another one."""
        self.idle = self.parked or bool(self._others)
        if self.signals:
            self._notify_listener()
        self._wake_for_queued()

    def _wake_for_queued(self) -> None:
        if self.idle and any(lane.queue for lane in self.lanes):
            self.wake()

    def _notify_listener(self) -> None:
        if self._listening:
            self._listening = False
            assert self.work is not None
            self.scheduler.add(self.work)
        elif self._listeners:
            _release_one(self._listeners)
        elif self.idle:
            self.wake()

    def _wake_all(self) -> None:
        if self._listening:
            self._notify_listener()
        while self._listeners:
            _release_one(self._listeners)
        while self.idle:
            self.wake()

    def _free_conductors(self) -> None:
        waiting, self._room_for_signals = self._room_for_signals, EMPTY
        for future in waiting:
            if not future.done():
                future.set_result(None)


def _running_task() -> "asyncio.Task[Any] | None":
    """The task that runs; None outside of one, where a plain `try_recv` may be called too."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def outcome_of(task: "asyncio.Task[Any]") -> BaseException | None:
    """The error of a task that has ended; the loop goes on to warn of it where nobody else asks for it."""
    error: BaseException | None = getattr(task, "_exception")  # noqa: B009 - task.exception() asks for it
    return error


def _nearest(given: Any) -> str:
    """The level that was most likely meant, as it is written."""
    if isinstance(given, str) and given.upper() in Priority.__members__:
        return f"Priority.{given.upper()}"
    return "a level, such as Priority.HIGH"


def _release_one(line: Short[asyncio.Future[None]]) -> None:
    """Wake the first of a line that is still waiting."""
    while line:
        future = line.popleft()
        if not future.done():
            future.set_result(None)
            return
