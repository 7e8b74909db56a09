"""What a subsystem is given to receive and send with, and what `on_event` is given."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Never, ParamSpec, Self, overload

from typing_extensions import TypeVar

from orchestra.box import Box
from orchestra.errors import Closed
from orchestra.overflow import Overflow
from orchestra.priority import Priority
from orchestra.recipient import Recipient
from orchestra.reply import Reply
from orchestra.timer import Missed, Timer

__all__ = ["BlockingContext", "Conductor", "Context"]

In = TypeVar("In", default=Any)
Out = TypeVar("Out", contravariant=True, default=Any)
Signal = TypeVar("Signal", covariant=True, default=Never)
T = TypeVar("T")
Sig_contra = TypeVar("Sig_contra", contravariant=True, default=Any)
P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M")


class Context(Generic[In, Out, Signal]):
    """The side of the wiring that one subsystem sees.

    `In` is what it receives, `Out` what it sends, `Signal` the signals of its orchestra; each may
    be a union or `Never`. The type checker holds each send against `Out`. A helper that sends
    for any subsystem takes `Context[Any, B, Any]`: `Signal` defaults to `Never`, and a context
    with signals is none without.

    The runtime makes it; a subsystem never does. It belongs to the event loop of its orchestra
    and is of use until its subsystem has finished.
    """

    __slots__ = ()

    async def send(
        self,
        message: Out | Box[Out],
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
    ) -> bool:
        """Send `message` to the subsystem that consumes its type, or to all that subscribe to it.

        Where a lane has no room its overflow policy says what happens: under `Block` the send waits,
        under `Drop` for a limited time. True when each receiver's lane took the message, False when
        it was dropped for some; each lane counts what it accepted, and what was dropped by reason.
        `DropOldest` always takes the message: what it throws away instead is counted, and not told here.

        The message is offered at once to every receiver with room; the waits for the rest run side by
        side. A receiver that has ended is passed over where there are others.

        `priority` picks the lane; without it the receiver's `priority(message)` does, else it is
        `Priority.NORMAL`. A box made by `Box.seal` counts as the message in it. `overflow` is the
        policy of this one send instead of the lanes' own: any for any lane, save that a `DropOldest`
        lane takes only `DropOldest` and no other lane takes that.

        Raises `Full` where the policy is `Fail`, and under `Block` and `BlockFirst` to an Actor that finds
        no room in its own lane: it would hang, for nobody else makes any. Raises `Closed` when the receiver
        takes no more, `UndeclaredMessage` for a type this subsystem does not declare to send,
        `UndeclaredPriority` for a level the receiver has no lane for, `UndeclaredOverflow` for a
        policy that the lane does not permit, `BoxError` for a message that cannot be packed, `TooLarge`
        for a box that is larger than the `capacity_bytes` of a lane. Priority, overflow, packing and size
        are checked before anything is put anywhere. The message is in the error.

        Cancelling a send that waits withdraws it: if CancelledError comes out, the message is
        nowhere it had not been put before. Waiting senders are let in in the order they came.
        """
        raise NotImplementedError

    def try_send(
        self,
        message: Out | Box[Out],
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
    ) -> bool:
        """Send without ever waiting: as `send`, but `Full` is raised where it would wait without a limit.

        So a full lane gives `Full` under `Block` and `Fail`, and False under `Drop`, which drops the message
        at once and does not mark the lane as congested. `DropOldest` puts it and gives True.
        `BlockFirst` gives `Full`, or False while another sender waits. Drops are counted as for `send`.
        """
        raise NotImplementedError

    async def recv(self) -> In | Signal:
        """Receive the next item: a waiting signal first, then messages, the most urgent lane first.

        Waits until there is one. Raises `Closed` once no more can come: after a stop, after
        `finish`, or when all that may send here have finished and the queue is empty; after a
        failure the failure is its cause. A cancelled receive loses nothing. Two tasks may
        wait at the same time: each item goes to one of them.
        """
        raise NotImplementedError

    def try_recv(self) -> In | Signal | None:
        """Receive the next item, or None when nothing waits. Raises `Closed` as `recv` does."""
        raise NotImplementedError

    async def recv_signal(self) -> Signal:
        """Receive the next signal and leave the messages queued: for a subsystem that is saturated.

        Raises `Closed` once no signal can come any more. A cancelled receive loses nothing.
        """
        raise NotImplementedError

    def __aiter__(self) -> Self:
        """Iterate over messages and signals, as `recv` gives them; the loop ends where it raises `Closed`."""
        return self

    async def __anext__(self) -> In | Signal:
        try:
            return await self.recv()
        except Closed:
            raise StopAsyncIteration from None

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> "asyncio.Task[T]":
        """Run a coroutine beside the handlers, in a task that belongs to this subsystem; returns the task.

        An error in it is a failure of the subsystem, also when somebody awaits the task: the running
        handler is cancelled. A task that is cancelled, by `task.cancel()`, is none. The task is held
        until it has ended, and has a copy of the caller's context variables.

        A subsystem ends when its tasks have: it waits for them before `stopped` is called, and a drain
        waits too. In a stop they may finish within the limit; then they are cancelled. When the subsystem
        fails they are cancelled at once. `name` is what a `StopTimeout` calls a task that swallows that;
        by default it is that of the coroutine.

        Raises TypeError for what is no coroutine, and `Closed` once the subsystem has ended, after the
        coroutine was closed. It is for the event loop's own thread.
        """
        raise NotImplementedError

    def send_after(self, delay: float, message: In | Out) -> Timer:
        """Send `message` once, `delay` seconds from now (0 or more); the `Timer` can cancel it.

        It may be a message that this subsystem consumes or subscribes to as well as one that it sends. It is
        checked, and packed where it travels in a box, at once. When its time has come it goes into its own
        lane, the one that the receiver's `priority(message)` says, and wakes the receiver. Under `Block` it
        waits for room there as a sender would; other policies may drop it, and count it: `Fail` too, by
        the reason "full", for there is nobody to tell. If its receiver has ended by then it is a dead letter.

        Messages that come due at the same time are sent in the order in which they were set. Time is that of
        `time.monotonic()`: the wall clock does not matter.

        When this subsystem ends, fails or is restarted, and when a drain or stop begins, its timers are
        cancelled, and a message whose time had not come is a dead letter with the reason "timer". During a
        drain or stop this gives a timer that has been cancelled so.

        Raises `UndeclaredMessage`, `UndeclaredPriority`, `BoxError` and `TooLarge` as a send does, ValueError
        and TypeError for what is no delay, `Closed` when this subsystem has ended.
        """
        raise NotImplementedError

    def send_every(
        self, interval: float, factory: Callable[[], In | Out], *, missed: Missed = Missed.SKIP
    ) -> Timer:
        """Send what `factory()` makes every `interval` seconds, first after one interval.

        The times are the multiples of the interval, counted from now: there is no drift, however late a
        tick is. `factory`, often the message class itself, is called for each tick just before it is sent, in
        the context variables of this subsystem. It is a plain function; an error that leaves it, and a
        message that may not be sent, is a failure of this subsystem, with a note where the timer was set.

        `missed` says what becomes of ticks that could not be sent in time. Under `Block` a tick that finds no
        room waits in line for it, and further ones are missed meanwhile; under every other policy it is
        missed. So no more than one tick of a timer is under way, save with `Missed.BURST`, and a handler that
        is slower than its interval leaves room for other messages. To several subscribers the rules hold for
        each lane by itself; a tick that only some took counts as dropped, by the reason "missed", for others.

        A timer is over when it is cancelled, when this subsystem ends, fails or is restarted, when its
        receivers have ended, and when a drain or stop begins; set later than that it is over at once.

        Raises ValueError and TypeError for what is no interval (0.000001 seconds is the shortest) or no
        factory, `Closed` when this subsystem has ended.
        """
        raise NotImplementedError

    def set_deadline(self, when: float | None) -> None:
        """Have `deadline_passed` called at `when`, in the seconds of `time.monotonic()`; None takes it away.

        An Actor has one deadline: each call replaces the one before, also when it has passed and the hook was
        not called yet. The hook is called once, before signals and messages that wait, though never within
        a handler; a deadline that has passed when it is set counts at once. Between two deadlines at least
        one message that waits is handled. In a `run` without main a deadline that is to pass keeps
        the inbox from ending, as a timer does; otherwise it does not. What cancels the timers cancels it too.

        Raises TypeError for an Actor without the hook `deadline_passed`, and in a `run`, where
        `asyncio.timeout` is the way; TypeError and ValueError for what is no time; `Closed` when this
        subsystem has ended.
        """
        raise NotImplementedError

    def set_timeout(self, seconds: float | None) -> None:
        """Set the deadline to `seconds` from now; None takes it away. Otherwise as `set_deadline`."""
        raise NotImplementedError

    @overload
    async def ask(
        self,
        make: Callable[[Reply[R]], Out],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> R: ...
    @overload
    async def ask(
        self,
        make: Callable[[Reply[Any]], Out],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any: ...
    async def ask(
        self,
        make: Callable[[Reply[Any]], Out],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any:
        """Send the message that `make` gives for a reply, and wait until that reply is answered.

            balance = await ctx.ask(lambda reply: GetBalance("a", reply), timeout=1.0)

        Gives what the receiver passes to `reply.send`, and raises what it passes to `reply.fail`. Raises
        `NoReply` as soon as nobody can answer any more: the reply was dropped without an answer, the message
        was dropped or dead-lettered, its handler failed, or who has the reply has ended. Raises the builtin
        TimeoutError after `timeout` seconds (None: no limit), which begin with the call and count the wait
        for room in the receiver's lane. Raises `Deadlock`, before anything is sent, when this subsystem
        would wait for itself: over any number of others that wait in an ask or for room. And whatever `send`
        raises; TypeError and ValueError for what is no time limit.

        While a handler or `run` waits here its subsystem takes no other message; in a drain it counts as at
        work. Cancelling ends the wait: a later answer is ignored and counted.
        """
        raise NotImplementedError

    def recipient(self, kind: type[M]) -> Recipient[M]:
        """A small handle to send messages of one type with, which may travel in messages itself.

        `kind` is what this subsystem sends, consumes or subscribes to, or a subclass; `UndeclaredMessage`
        for any other. See `Recipient`.
        """
        raise NotImplementedError

    async def run_blocking(self, function: Callable[P, R], /, *args: P.args, **keywords: P.kwargs) -> R:
        """Run a function that blocks in a thread of the orchestra's own, and wait for its result.

        The threads are few (`start(..., pool_threads=)`); calls that find none free wait in order. The
        function sees a copy of the context variables. Its result and its error come back. Cancelling frees
        the caller at once; the function runs on, and its result is dropped. The orchestra does not end before
        it has returned: a drain waits for it, and a stop names it in `StopTimeout` when its time is over.
        Raises `Closed` once the orchestra has ended, TypeError for what is no plain function. The function
        must not use this context, which belongs to the thread of the event loop.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the whole orchestra, as `running.stop()` does, once the running handler has ended.

        A plain call that returns at once; further calls change nothing.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """End this subsystem once the running handler has ended; the others go on.

        A plain call that returns at once. The inbox closes at once: further sends to it raise
        `Closed`, and what is queued goes to the dead letters.
        """
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The field that this subsystem stands in."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether the inbox takes no more messages; what is queued may still come out of it."""
        raise NotImplementedError


class BlockingContext(Generic[In, Out, Signal]):
    """The side of the wiring that a subsystem with `blocking=True` sees: `Context`, synchronous.

    Its verbs wait by sleeping. It belongs to the thread of its subsystem: in any other one, that of the event
    loop too, they raise RuntimeError. A thread cannot be cancelled. Where a handler in the loop would be, for
    the time to stop is over or a task of the subsystem has failed, verbs that wait raise `Closed` at once,
    until the handler has returned.
    """

    __slots__ = ()

    def send(
        self,
        message: Out | Box[Out],
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
    ) -> bool:
        """Send `message` to the subsystem that consumes its type, or to all that subscribe to it.

        As `Context.send`, but it sleeps where that one would await; those who wait in threads and in the loop
        stand in one line. A `run` too gets `Full` where it would have to wait for itself.
        """
        raise NotImplementedError

    def try_send(
        self,
        message: Out | Box[Out],
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
    ) -> bool:
        """Send without ever waiting: as `Context.try_send`."""
        raise NotImplementedError

    def recv(self) -> In | Signal:
        """Receive the next item: a waiting signal first, then messages, the most urgent lane first.

        Sleeps until there is one. Raises `Closed` once no more can come, as `Context.recv` does.
        """
        raise NotImplementedError

    def try_recv(self) -> In | Signal | None:
        """Receive the next item, or None when nothing waits. Raises `Closed` as `recv` does."""
        raise NotImplementedError

    def recv_signal(self) -> Signal:
        """Receive the next signal and leave the messages queued: for a subsystem that is saturated.

        Raises `Closed` once no signal can come any more.
        """
        raise NotImplementedError

    def __iter__(self) -> Self:
        """Iterate over messages and signals, as `recv` gives them; the loop ends where it raises `Closed`."""
        return self

    def __next__(self) -> In | Signal:
        try:
            return self.recv()
        except Closed:
            raise StopIteration from None

    def spawn(self, coroutine: Coroutine[Any, Any, Any], *, name: str | None = None) -> None:
        """Run a coroutine in the event loop, in a task that belongs to this subsystem; gives nothing.

        As `Context.spawn`, with a copy of the context variables of this thread. An error in it is a failure
        of the subsystem: verbs that wait raise `Closed` then. It cannot use this context, which belongs to
        the thread; it may use recipients.
        """
        raise NotImplementedError

    def send_after(self, delay: float, message: In | Out) -> Timer:
        """Send `message` once, `delay` seconds from now (0 or more), as `Context.send_after`.

        The `Timer` belongs to this thread.
        """
        raise NotImplementedError

    def send_every(
        self, interval: float, factory: Callable[[], In | Out], *, missed: Missed = Missed.SKIP
    ) -> Timer:
        """Send what `factory()` makes every `interval` seconds, as `Context.send_every`.

        `factory` is called in the event loop, with the context variables that the orchestra was started in:
        it must not block, nor touch what only this thread may. The `Timer` belongs to this thread.
        """
        raise NotImplementedError

    def set_deadline(self, when: float | None) -> None:
        """Have `deadline_passed` called at `when`, in this thread; otherwise as `Context.set_deadline`.

        In a `run`, where it raises TypeError, there is no way to be woken at a time but a timer.
        """
        raise NotImplementedError

    def set_timeout(self, seconds: float | None) -> None:
        """Set the deadline to `seconds` from now; None takes it away. Otherwise as `set_deadline`."""
        raise NotImplementedError

    @overload
    def ask(
        self,
        make: Callable[[Reply[R]], Out],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> R: ...
    @overload
    def ask(
        self,
        make: Callable[[Reply[Any]], Out],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any: ...
    def ask(
        self,
        make: Callable[[Reply[Any]], Out],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any:
        """Send the message that `make` gives for a reply, and sleep until that reply is answered.

        In all as `Context.ask`, `NoReply`, `Deadlock` and TimeoutError too. `make` is called in the event
        loop, with a copy of the context variables of this thread: it should only make the message.
        """
        raise NotImplementedError

    def recipient(self, kind: type[M]) -> Recipient[M]:
        """A small handle to send messages of one type with, which may travel in messages itself.

        As `Context.recipient`. To use it in this thread write `recipient.blocking`.
        """
        raise NotImplementedError

    def run_blocking(self, function: Callable[P, R], /, *args: P.args, **keywords: P.kwargs) -> R:
        """Call a function, here and now, and give its result: this thread may block.

        So that what is written for both kinds of context can say where it blocks. Raises TypeError for what
        is no plain function.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the whole orchestra, as `running.stop()` does, once the running handler has ended.

        A plain call that does not wait for the end; further calls change nothing.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """End this subsystem once the running handler has ended; the others go on.

        A plain call. When it returns the inbox is closed: further sends to it raise `Closed`, and what was
        queued goes to the dead letters.
        """
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The field that this subsystem stands in."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether the inbox takes no more messages; what is queued may still come out of it."""
        raise NotImplementedError


class Conductor(Generic[Sig_contra]):
    """What `on_event` turns an event into signals and messages with.

    `Sig_contra` is the orchestra's signal type. What is sent here counts as coming from inside:
    a drain waits for it.
    """

    __slots__ = ()

    async def broadcast(self, signal: Sig_contra, timeout: float = 10.0) -> None:
        """Put `signal` into the signal queue of every subsystem, before any of them runs again.

        Then waits, `timeout` seconds at most, until each queue is back within its
        `signal_capacity`. Raises one `SubsystemStalled` that names all that stay over; every
        subsystem has the signal all the same. Cancelling ends the wait only: the signal is out.
        Raises `Closed` once a stop has begun, TypeError for what is no signal of the orchestra.
        """
        raise NotImplementedError

    async def send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send a message of any type that the orchestra routes; otherwise as `Context.send`.

        True when each receiver's lane took it, False when it was dropped for some, which the lanes count.
        While it waits, no further event is handled. Once a stop has begun, what would have to wait raises
        `Closed`, and the rest is dead-lettered.
        """
        raise NotImplementedError

    def try_send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send without ever waiting: as `send`, but `Full` is raised where it would wait without a limit.

        What is dropped gives False and is counted, as for `Context.try_send`.
        """
        raise NotImplementedError
