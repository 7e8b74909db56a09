"""The handle of a running orchestra, for those outside it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast, overload

from orchestra.overflow import Overflow
from orchestra.plan import Plan
from orchestra.priority import Priority
from orchestra.reply import Reply
from orchestra.runtime.afar import Peer
from orchestra.runtime.assembly import Assembly
from orchestra.runtime.clock import limit
from orchestra.runtime.conductor import broadcast, check_event, check_signal
from orchestra.runtime.ensemble import PATIENCE, Ensemble
from orchestra.runtime.lifecycle import Phase
from orchestra.runtime.live import Outgoing
from orchestra.runtime.meters import Meters, read_meters, read_planned
from orchestra.runtime.telling import note, told
from orchestra.runtime.threads.handle import Threadsafe

R = TypeVar("R")


class _Unwired:
    """What a handle has before the orchestra is wired: while its deferred subsystems are made."""

    phase = Phase.OPEN
    sealed = False

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(
            f"{self.plan.name} does not run yet: what makes a deferred subsystem may keep the handle, "
            "and use it once its subsystem has started"
        )


class Running:
    """A running orchestra, as `start` gives it, for those outside it.

    Its methods belong to the loop that it was started in. In another thread they raise RuntimeError; for
    those, `threadsafe()` gives a handle. `drain`, `stop` and `wait` raise RuntimeError within a subsystem,
    which would wait for its own end: `ctx.stop()` is for those.
    """

    def __init__(self, plan: Plan) -> None:
        self._assembly: Assembly = cast("Assembly", _Unwired(plan))
        self._ensemble: Ensemble = cast("Ensemble", self._assembly)
        self._thread = threading.get_ident()
        self._raised = False

    def wire(self, assembly: Assembly) -> None:
        """From now on this is the handle of what was assembled; called once, by `start`."""
        self._assembly = assembly
        self._ensemble = assembly.ensemble

    async def send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send a message from outside to whoever receives its type, waiting where a lane has no room.

        Returns True when every receiver's lane took it, False when it was dropped by a policy. `priority`
        and `overflow` are as for `Context.send`. Raises `Full`, `Closed` (also once a drain or stop has
        begun), `UndeclaredMessage`, `UndeclaredPriority`, `UndeclaredOverflow`, `TooLarge`, each with the
        message, or `BoxError`; then, or when it is cancelled, the message is nowhere.
        """
        self._check_open(message)
        return await self._assembly.send(message, priority, overflow)  # type: ignore[no-any-return]  # generated

    def try_send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send a message without waiting: as `send`, but `Full` is raised where `send` would wait."""
        self._check_open(message)
        return self._assembly.try_send(message, priority, overflow)  # type: ignore[no-any-return]  # generated

    @overload
    async def ask(
        self,
        make: Callable[[Reply[R]], Any],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> R: ...
    @overload
    async def ask(
        self,
        make: Callable[[Reply[Any]], Any],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any: ...
    async def ask(
        self,
        make: Callable[[Reply[Any]], Any],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any:
        """Send the message that `make` gives for a reply, and wait for the reply; as `Context.ask`.

        It counts as coming from outside: raises `Closed` once a drain or stop has begun. A reply that was
        asked for before still comes.
        """
        self._check_open(None)
        return await self._assembly.ask(make, timeout=timeout, priority=priority)

    async def broadcast(self, signal: Any, timeout: float = 10.0) -> None:
        """Put a signal into the queue of every subsystem before any of them runs again.

        Then waits, `timeout` seconds at most, until each queue is back within its capacity. Raises
        `SubsystemStalled` with the names of those that are not, though they too have the signal queued;
        `Closed` once a drain or stop has begun; TypeError for what is no signal of this orchestra.
        Cancelling ends only the wait.
        """
        check_signal(self._ensemble.plan, signal)
        within = limit("the timeout of broadcast", timeout)
        self._check_open(signal)
        await broadcast(self._ensemble.inboxes.values(), signal, within, self._ensemble.afar)

    async def event(self, event: Any) -> None:
        """Queue an event for `on_event`, waiting while `event_capacity` events are queued.

        Events are handled one at a time, in order; this returns when the event is queued. Raises `Closed`
        once a drain or stop has begun; TypeError for what is no event of this orchestra, or when its class
        has no `on_event`.
        """
        check_event(self._ensemble.plan, event)
        self._check_open(event)
        (lane,) = self._ensemble.parts["on_event"].inbox.lanes
        await lane.put(event, event)

    @property
    def outgoing(self) -> Outgoing:
        """The messages of the `outgoing` type: `async for`, `await recv()` or `try_recv()`."""
        if self._assembly.outgoing is None:
            raise TypeError(
                f"{self._ensemble.plan.name} declares no outgoing type: give @orchestra outgoing="
            )
        return self._assembly.outgoing

    async def drain(self, timeout: float | None = None) -> None:
        """Take nothing more from outside, let all that is under way be handled, then end.

        Senders from outside that already wait are let in. After `timeout` seconds (None: no limit) what is
        left is handled as by `stop`. Raises the orchestra's error, if it failed and the error was not
        raised yet. Cancelling ends only the wait.
        """
        self._check_outside("drain")
        within = None if timeout is None else limit("the timeout of drain", timeout)
        self._ensemble.close_outside()
        if within is not None:
            await asyncio.wait([self._ensemble.ended], timeout=within)
            self._ensemble.stop_unless_stopping()
        await self._ended()

    async def stop(self, timeout: float = PATIENCE, *, everywhere: bool = True) -> None:
        """Tell every subsystem to stop, at once, and wait until all have.

        In an orchestra of several processes that is so in all; `everywhere=False` stops only this one.

        A handler that runs may finish within `timeout` seconds; nobody takes another message, and what is
        queued goes to the dead letters. Then all that still run are cancelled, and after a short grace
        `StopTimeout` names those that are left. Raises the orchestra's error, if it failed and the error
        was not raised yet. It may be called again, also while another call waits. Cancelling ends only the
        wait.
        """
        self._check_outside("stop")
        limit("the timeout of stop", timeout)
        afar = self._ensemble.afar if everywhere else None
        if afar is not None:
            afar.stop(timeout)
        self._ensemble.begin_stop(timeout)
        try:
            await self._ended()
        finally:
            if afar is not None:
                await afar.others_ended(timeout)

    async def wait(self) -> None:
        """Wait until the orchestra has ended; raise its error, each time. It does not make it end."""
        self._check_outside("wait")
        if (error := await self.outcome()) is not None:
            self._raised = True
            raise error

    def run_alone(self) -> Coroutine[Any, Any, None]:
        """Let nothing come from outside; what it gives waits for the end, and raises the error."""
        self._ensemble.seal()
        return self._ended()

    async def outcome(self) -> Exception | None:
        """Wait until the orchestra has ended; return its error, or None. Cancelling ends only the wait."""
        await asyncio.shield(self._ensemble.ended)
        return self._ensemble.error

    @property
    def left_behind(self) -> bool:
        """Whether the orchestra has ended and subsystems still run: those that a `StopTimeout` named."""
        ended = self._ensemble.phase is Phase.ENDED
        return ended and not all(part.done for part in self._ensemble.parts.values())

    @property
    def instances(self) -> Mapping[str, Any]:
        """The present instance of each subsystem, by field: the one given, or what `deferred` made last."""
        parts = self._ensemble.parts
        return MappingProxyType({name: parts[name].instance for name in self._ensemble.inboxes})

    def peers(self) -> Mapping[str, Peer]:
        """The other processes of this orchestra, by name, as this one sees them; none without a link."""
        return MappingProxyType({} if self._ensemble.afar is None else self._ensemble.afar.peers())

    def threadsafe(self) -> Threadsafe:
        """A handle for threads that are not the orchestra's: its verbs wait by sleeping."""
        return Threadsafe(self, self._ensemble.door)

    def meters(self) -> Mapping[str, Meters]:
        """A snapshot of what went through each subsystem's inbox, in messages.

        A synchronous Actor counts what it takes once in a batch of at most 64 messages, so within its own
        handlers `sent` and `received` may lag behind by that many. While a thread takes a message from its
        inbox, both may lag behind by that one. Of a subsystem in another process it tells what this process
        has sent there: `received` is what has left it, `queued` what waits here for room over there.
        """
        planned = self._ensemble.dropped
        afar = {} if self._ensemble.afar is None else self._ensemble.afar.inboxes
        return MappingProxyType(
            {
                name: read_planned(planned[name])
                if name in planned
                else read_meters(afar[name])
                if name in afar
                else read_meters(
                    self._ensemble.inboxes[name],
                    self._ensemble.parts[name].lives.restarts,
                    self._ensemble.asks.late[name],
                )
                for name in self._ensemble.plan.subsystems
                if name in planned or name in afar or name in self._ensemble.inboxes
            }
        )

    def __repr__(self) -> str:
        return f"<running {self._ensemble.plan.name}: {self._ensemble.phase.value}>"

    async def leave(self, error: BaseException | None) -> None:
        """Stop at the end of `async with`; the orchestra's own error comes before that of the body."""
        self._ensemble.begin_stop()
        try:
            await self._ended()
        except asyncio.CancelledError as cancelled:
            self._ensemble.cancel()
            await asyncio.wait([self._ensemble.ended])
            self._note_failure(cancelled)
            raise
        except Exception as failure:
            if error is None or isinstance(error, Exception):
                raise
            note(error, f"and {self._ensemble.plan.name} failed: {told(failure)}")

    def _note_failure(self, error: BaseException) -> None:
        if self._ensemble.error is not None and not self._raised:
            note(error, f"and {self._ensemble.plan.name} failed: {told(self._ensemble.error)}")

    async def _ended(self) -> None:
        """Wait for the end, and raise the error unless somebody had been told it before this call."""
        told = self._raised
        error = await self.outcome()
        if error is not None and not told:
            self._raised = True
            raise error

    def _check_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError(
                f"{self!r} belongs to the thread of its event loop, and this is "
                f"{threading.current_thread().name!r}: use running.threadsafe()"
            )

    def _check_open(self, given: Any) -> None:
        self._check_thread()
        if self._ensemble.phase is not Phase.OPEN or self._ensemble.sealed:
            raise self._ensemble.closed(given)

    def _check_outside(self, verb: str) -> None:
        self._check_thread()
        task = asyncio.current_task()
        for part in self._ensemble.parts.values():
            if part.runs(task):
                raise RuntimeError(
                    f"{part.name!r} would wait for its own end in running.{verb}(): call ctx.stop() instead"
                )
