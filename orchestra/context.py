"""What a subsystem is given to receive and send with, and what `on_event` is given."""

from collections.abc import Callable
from typing import Any, Generic, Never, ParamSpec, Self

from typing_extensions import TypeVar

from orchestra.box import Box
from orchestra.errors import Closed
from orchestra.overflow import Overflow
from orchestra.priority import Priority

__all__ = ["BlockingContext", "Conductor", "Context"]

In = TypeVar("In", default=Any)
Out = TypeVar("Out", contravariant=True, default=Any)
Signal = TypeVar("Signal", covariant=True, default=Never)
Sig_contra = TypeVar("Sig_contra", contravariant=True, default=Any)
P = ParamSpec("P")
R = TypeVar("R")


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
        policy that the lane does not permit, `BoxError` for a message that cannot be packed. Priority,
        overflow and packing are checked before anything is put anywhere. The message is in the error.

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

    async def run_blocking(self, function: Callable[P, R], /, *args: P.args, **keywords: P.kwargs) -> R:
        """Run a function that blocks in a thread of the orchestra's own, and wait for its result.

        The threads are few (`start(..., pool_threads=)`); calls that find none free wait in order. The
        function sees a copy of the context variables. Its result and its error come back. Cancelling frees
        the caller at once; the function runs on, and its result is dropped. The orchestra does not end before
        it has returned: a drain waits for it, and a stop names it in `StopTimeout` when its time is over.
        Raises `Closed` once the orchestra has ended.
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
    loop too, they raise RuntimeError. A thread cannot be cancelled. When the time to stop is over, verbs that
    wait raise `Closed` at once.
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
        """
        raise NotImplementedError

    async def send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send a message of any type that the orchestra routes; otherwise as `Context.send`.

        True when each receiver's lane took it, False when it was dropped for some, which the lanes count.
        While it waits, no further event is handled.
        """
        raise NotImplementedError

    def try_send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send without ever waiting: as `send`, but `Full` is raised where it would wait without a limit.

        What is dropped gives False and is counted, as for `Context.try_send`.
        """
        raise NotImplementedError
