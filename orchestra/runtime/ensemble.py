"""The parts of one running orchestra as a whole: when inboxes end, how it stops, and what went wrong."""

import asyncio
import contextvars
import math
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any

from orchestra.errors import Closed, NoReply, OrchestraError, StopTimeout
from orchestra.plan import LanePlan, Plan
from orchestra.runtime import forking
from orchestra.runtime.afar import Afar
from orchestra.runtime.asks import Asks
from orchestra.runtime.clock import Clock, Handle, LoopClock
from orchestra.runtime.endings import Group, ending, groups_of
from orchestra.runtime.gridlock import Gridlocks
from orchestra.runtime.inbox import Inbox, Order
from orchestra.runtime.letters import DeadLetter, Letters
from orchestra.runtime.lifecycle import Phase, may_follow
from orchestra.runtime.log import logger
from orchestra.runtime.part import Part
from orchestra.runtime.pressure import Pressure
from orchestra.runtime.scheduler import Scheduler
from orchestra.runtime.starvation import StarvationWatch
from orchestra.runtime.telling import interrupts, note, raise_soon, told
from orchestra.runtime.threads.door import Door
from orchestra.runtime.threads.inbox import SharedInbox, ThreadInbox, held
from orchestra.runtime.threads.pool import Pool, usual_size
from orchestra.runtime.threads.watcher import Watch, watcher
from orchestra.runtime.timers import Timers

GRACE = 0.5
"""Seconds that cancelled subsystems have before they are named in a `StopTimeout`."""

PATIENCE = 10.0
"""Seconds that running handlers have to end after a failure, or after `ctx.stop()`."""

EVENTS = "on_event"
"""The part that handles events; it comes before all others and may send to each."""


class Ensemble:
    """The parts, their phase, and the first failure.

    `ended` is done when every part has finished, or was given up after a stop that took too long.
    """

    def __init__(
        self,
        plan: Plan,
        letters: Letters,
        pressure: Pressure,
        gridlocks: Gridlocks | None = None,
        *,
        clock: Clock | None = None,
        pool_threads: int | None = None,
        slow_handler: float | None = None,
    ) -> None:
        self.plan = plan
        self.letters = letters
        self.pressure = pressure
        self.loop = asyncio.get_running_loop()
        self.scheduler = Scheduler(self.loop)
        self.phase = Phase.OPEN
        self.clock: Clock = clock or LoopClock(self.loop)
        self.timers = Timers(self.clock, self.loop, self._bury, lambda: self.phase, self.scheduler.poke)
        self.door = Door(self.loop, self.closed)
        self.pool = Pool(
            usual_size() if pool_threads is None else pool_threads,
            self.door,
            lambda: self.closed(None),
            self._end_if_over,
        )
        self.inboxes: dict[str, Inbox] = {}
        self.parts: dict[str, Part] = {}
        self.asks = Asks(self.clock, self.loop, self.scheduler, self.parts, gridlocks or Gridlocks())
        self._make = partial(Inbox, blocks=self.asks.blocked)
        self._unhandled = self._bury_in_hand
        letters.buried = self.asks.buried
        self.dropped = {name: 0 for name, subsystem in plan.subsystems.items() if subsystem.wip}
        self.outgoing: Inbox | None = None
        self.outgoing_senders: Collection[str] = ()
        self.error: Exception | None = None
        self.sealed = False
        self.afar: Afar | None = None
        self.ended: asyncio.Future[None] = self.loop.create_future()
        self._senders: dict[str, tuple[str, ...]] = {}
        self._groups: tuple[Group, ...] | None = None
        self._finished: set[str] = set()
        self._timeout = PATIENCE
        self._deadline: Handle | None = None
        self._due = math.inf
        self._cancelling = False
        self._starvation: StarvationWatch | None = None
        self._slow_handler = slow_handler
        self._watch: Watch | None = None

    # making

    def make_inbox(
        self,
        name: str,
        lanes: tuple[LanePlan, ...],
        signal_capacity: float = 1,
        evict_after: float | None = None,
    ) -> Inbox:
        """An inbox whose dead letters come here."""
        routes = self.plan.routes_to.get(name, ())
        make: Callable[..., Inbox] = self._make
        if name in self.plan.shared:
            lives_in_thread = name in self.plan.subsystems and self.plan.subsystems[name].blocking
            kind = ThreadInbox if lives_in_thread else SharedInbox
            make = partial(kind, door=self.door, blocks=self.asks.blocks)
        return make(
            name,
            lanes,
            signal_capacity,
            self.loop,
            self.scheduler,
            self.timers.bury,
            self.pressure,
            opens=self.plan.opens(name),
            evict_after=evict_after,
            displaced=partial(self.asks.displaced, name) if any(route.replies for route in routes) else None,
            clock=self.clock,
        )

    def add(self, part: Part, senders: tuple[str, ...]) -> None:
        """Take a part in; `senders` are the parts that may send to it."""
        self.parts[part.name] = part
        part.inbox.unhandled = self._unhandled
        self._senders[part.name] = senders

    def launch(self) -> None:
        """Let every part run from the next turn of the loop."""
        forking.watch(self)
        context = contextvars.copy_context()
        for part in self.parts.values():
            part.launch(self.loop, context)
        self._starvation = StarvationWatch(self.inboxes.values(), self.loop, self.pressure)
        self._starvation.start()
        if self._slow_handler is not None:
            self._watch = Watch(self.scheduler, get_ident(), self._slow_handler, self._names)
            watcher.add(self._watch)
        if not self.parts and self.afar is None:
            self._end()

    def _names(self) -> dict[int, str]:
        """The subsystems by the identity of their present instances."""
        return {id(part.instance): part.name for part in self.parts.values()}

    # its end

    def close_outside(self) -> None:
        """Nothing more comes from outside: inboxes end one after the other, as the rest finishes or rests."""
        if self.phase is Phase.OPEN:
            self._enter(Phase.DRAINING)
            if self.afar is not None:
                self.afar.drain()
            self.timers.cancel_all()
            self.scheduler.on_rest = self._settle
            self.scheduler.poke()

    def seal(self) -> None:
        """Nothing ever comes from outside: inboxes end as in a drain, but not before their timers."""
        self.sealed = True
        self.scheduler.on_rest = self._settle
        self.scheduler.poke()

    def begin_stop(self, timeout: float = PATIENCE, failure: BaseException | None = None) -> None:
        """Tell every part to stop, at once; those that still run after `timeout` seconds are cancelled.

        A second call can only make the time shorter.
        """
        if self.phase is Phase.ENDED:
            return
        if self.phase is not Phase.STOPPING:
            self._enter(Phase.STOPPING)
            self.scheduler.on_rest = None
            self.timers.cancel_all()
            for part in self.parts.values():
                part.stop(failure)
            if self.outgoing is not None:
                self.outgoing.keep(failure)
            if self.afar is not None:
                self.afar.stopping()
                self.loop.call_soon(self._end_if_over)  # it may have no part of its own
        self._set_deadline(timeout)

    def stop_unless_stopping(self) -> None:
        """Stop as for `ctx.stop()`: once a stop has begun it changes nothing, not the limit either."""
        if self.phase in (Phase.OPEN, Phase.DRAINING):
            if self.afar is not None:
                self.afar.stop(PATIENCE)
            self.begin_stop()

    def disown(self) -> None:
        """This is a child process: it has ended here, without an end, and takes nothing more."""
        if self.phase is Phase.ENDED:
            return
        self._enter(Phase.ENDED)
        self.error = OrchestraError(
            f"{self.plan.name} was started in the process {os.getppid()}, from which this one was forked: "
            "it runs there, and takes nothing here"
        )
        self.scheduler.on_rest = None
        for inbox in (*(part.inbox for part in self.parts.values()), self.outgoing):
            if inbox is not None:
                inbox.disown(self.error)
        self.door.disown()
        self.asks.disown()
        if not self.ended.done():
            with suppress(RuntimeError):  # a loop in debug mode knows that this is another thread
                self.ended.set_result(None)

    def cancel(self) -> None:
        """Cancel every part that still runs; a second time changes nothing."""
        if self.phase is not Phase.STOPPING or self._cancelling:
            return
        self._cancelling = True
        if self._deadline is not None:
            self._deadline.cancel()
        for part in self._running():
            part.cancel()
        self._deadline = self.loop.call_later(GRACE, self._give_up)

    def is_failure(self, part: Part, error: BaseException) -> bool:
        """Whether an error is more than the end that a part was given: `Closed`, or being cancelled."""
        return not (self.loop.is_closed() or self._is_end(part, error))

    def bury_current(self, part: Part, error: BaseException) -> None:
        """What a part was handling when its life ended with an error is dead-lettered."""
        message, part.inbox.current = part.inbox.current, None
        if message is not None and not self.loop.is_closed():
            cancelled = self._cancelling and _is_cancellation(error)
            self._bury_taken(part.name, message, None if cancelled else error)

    def part_failed(self, part: Part, error: BaseException, *, again: bool = True) -> float | None:
        """A part fails: the seconds until it starts again, or None when the orchestra fails with it.

        `again` is False where it had done what it had to do, so that there is nothing to start again for.
        """
        if again and (delay := self._backoff(part, error)) is not None:
            logger.warning(
                "%r failed and starts again in %g s (%s): %s",
                part.name,
                delay,
                part.lives.told(),
                told(error),
                exc_info=error,
            )
            return delay
        self._fail(part, error)
        return None

    def life_ended(self, part: Part, error: BaseException | None) -> None:
        """A life is over: nobody answers what it had been asked."""
        if not self.loop.is_closed():
            self.asks.left(part.inbox, error)

    def part_ended(self, part: Part, error: BaseException | None = None) -> None:
        """A part has finished, perhaps after it was given up; an error is one that nobody was told of yet."""
        if self.loop.is_closed():
            return
        if error is not None:
            self.bury_current(part, error)
            if self.is_failure(part, error):
                self._fail(part, error)
        if self.phase is Phase.ENDED:
            return
        if part.asked_to_stop:
            self.stop_unless_stopping()
        if self.phase is Phase.STOPPING:
            part.inbox.leave()
        else:
            over = "nothing more could come to it" if part.inbox.over else "its run has returned"
            part.inbox.close("finished", over)
        self.asks.left(part.inbox, error)
        self._finished.add(part.name)
        self._groups = None
        if self.afar is not None:
            self.afar.finished(part.name)
        if self.outgoing is not None and self._finished.issuperset(self.outgoing_senders):
            self.outgoing.end()
        if not self._end_if_over():
            self.scheduler.poke()

    def later(self, delay: float, function: Callable[[], None]) -> Handle:
        """Call a function when the clock has gone on by `delay` seconds, at the next turn at the earliest."""
        return self.clock.call_later(delay, function) if delay > 0 else self.loop.call_soon(function)

    def closed_when_stopping(self) -> Closed | None:
        """The error for what a stopping orchestra does not do any more."""
        if self.phase in (Phase.OPEN, Phase.DRAINING):
            return None
        return self.closed(None)

    def closed(self, message: Any) -> Closed:
        """The error for what the outside may not do any more."""
        if self.phase is Phase.ENDED:
            state = "has ended"
        else:
            state = "is run without main" if self.sealed else f"is {self.phase.value}"
        closed = Closed(f"{self.plan.name} takes nothing more from outside: it {state}", message)
        closed.__cause__ = self.error
        return closed

    # inside

    def _settle(self) -> None:
        if self.phase is not Phase.DRAINING and not (self.sealed and self.phase is Phase.OPEN):
            return
        if self.afar is not None and not self.afar.released:
            return
        if not self.parts and self._end_if_over():
            return
        if EVENTS not in self.parts or EVENTS in self._finished:
            for inbox in self.inboxes.values():
                if not inbox.silent:
                    inbox.fall_silent()
        if self._groups is None:
            senders = {part.name: self._living_senders(part) for part in self._running()}
            if self.afar is not None:
                senders = self._with_those_afar(senders, self.afar)
            self._groups = groups_of(senders)
        with held(self.inboxes.values()):
            for name in ending(self._groups, self._rests, self._awaited):
                if name in self.parts and not self.parts[name].inbox.over:
                    self.parts[name].inbox.end()

    def _with_those_afar(self, senders: dict[str, tuple[str, ...]], afar: Afar) -> dict[str, tuple[str, ...]]:
        """Who may send to whom over all processes, as far as it has not finished."""
        others = afar.unfinished
        living = others.keys() | senders.keys()
        every: dict[str, Collection[str]] = {
            name: (*those, *self.plan.subsystems[name].senders) if name != EVENTS else ()
            for name, those in senders.items()
        }
        every |= others
        return {name: tuple(each for each in those if each in living) for name, those in every.items()}

    def others_changed(self) -> None:
        """Parts in other processes have finished: look again which inboxes end."""
        self._groups = None
        self.scheduler.poke()

    def _end_if_over(self) -> bool:
        """End when every part has finished, and so has every function in a thread of the pool."""
        over = len(self._finished) == len(self.parts) and not self.pool.busy and self.phase is not Phase.ENDED
        if over:
            self._end()
        return over

    def _enter(self, phase: Phase) -> None:
        assert may_follow(self.phase, phase)
        self.phase = phase

    def _living_senders(self, part: Part) -> tuple[str, ...]:
        return tuple(sender for sender in self._senders[part.name] if sender not in self._finished)

    def _rests(self, name: str) -> bool:
        if name not in self.parts:
            return True  # it is in another process, and all rested before anything was to end
        return self.parts[name].inbox.resting and not self.timers.active(name)

    def _awaited(self, name: str) -> bool:
        """Whether an inbox is not to end yet: a sender waits, a timer runs, or it is a source at work.

        A source receives nothing but signals, so for it the end means only that it should stop.
        """
        if name not in self.parts:
            return False
        part = self.parts[name]
        source = part.plan is not None and not (part.plan.consumes or part.plan.subscribes)
        if (source and not part.inbox.resting) or self.timers.active(name):
            return True
        return any(lane.senders_waiting for lane in part.inbox.lanes)

    def _running(self) -> list[Part]:
        return [part for part in self.parts.values() if part.name not in self._finished]

    def _set_deadline(self, timeout: float) -> None:
        when = self.loop.time() + timeout
        if self._cancelling or self._due <= when:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._timeout = timeout
        self._deadline = self.loop.call_at(when, self.cancel)
        self._due = when

    def _give_up(self) -> None:
        left = [(part.name, part.where()) for part in self._running()] + self.pool.stragglers()
        for part in self._running():
            if part.worker is not None:
                part.worker.abandon()
        late = StopTimeout([name for name, _ in left], [place for _, place in left], self._timeout)
        if self.error is None:
            self.error = late
        else:
            note(self.error, str(late))
        self._end()

    def _end(self) -> None:
        self._enter(Phase.ENDED)
        self.scheduler.on_rest = None
        if self._deadline is not None:
            self._deadline.cancel()
        for part in self.parts.values():
            part.close()
        if self.outgoing is not None:
            self.outgoing.end()
        self.asks.close()
        self.door.close()
        self.pool.end()
        if self._watch is not None:
            watcher.discard(self._watch)
        self.letters.close()
        self.pressure.close()
        if self._starvation is not None:
            self._starvation.stop()
        if not self.ended.done():
            self.ended.set_result(None)

    def _backoff(self, part: Part, error: BaseException) -> float | None:
        """The seconds until a part that failed starts again, or None when it does not."""
        if (
            self.phase not in (Phase.OPEN, Phase.DRAINING)
            or part.asked_to_stop
            or part.inbox.shut
            or interrupts(error)
        ):
            return None
        try:
            return part.lives.again(self.clock.time())
        except BaseException as wrong:
            note(error, f"and {part.name!r} cannot start again: {told(wrong)}")
            raise_soon(wrong)
            return None

    def _is_end(self, part: Part, error: BaseException) -> bool:
        """Whether it only saw the end: `Closed` from its own inbox or, in a stop, from any, or no reply."""
        if isinstance(error, BaseExceptionGroup):
            return all(self._is_end(part, each) for each in error.exceptions)
        if isinstance(error, asyncio.CancelledError):
            return self._cancelling
        if not isinstance(error, Closed | NoReply):
            return False
        if self.phase in (Phase.STOPPING, Phase.ENDED):
            return True
        own = isinstance(error, Closed) and error.message is None
        return own and error.subsystem == part.name and part.inbox.over

    def _fail(self, part: Part, error: BaseException) -> None:
        if self.error is not None:
            logger.error("%r failed too: %s", part.name, told(error))
            note(self.error, f"{part.name!r} failed too: {told(error)}")
            return
        self.error = self._declared(part, error)
        if part.lives.restarts:
            note(self.error, f"{part.name!r} was {part.lives.spent()}")
        if self.phase in (Phase.OPEN, Phase.DRAINING):
            self.begin_stop(PATIENCE, self.error)
            return
        for inbox in (*self.inboxes.values(), *((self.outgoing,) if self.outgoing is not None else ())):
            inbox.failure = self.error

    def _declared(self, part: Part, error: BaseException) -> Exception:
        """The failure as an instance of the error type that the orchestra declares."""
        where = "on_event" if part.name == EVENTS else f"subsystem {part.name!r}"
        if isinstance(error, self.plan.error):
            note(error, f"raised in {where} of {self.plan.name}")
            return error
        text = f"{where} of {self.plan.name} failed: {told(error)}"
        declared = _made(self.plan.error, text)
        declared.__cause__ = error
        return declared

    def _bury_in_hand(self, name: str, message: Any, error: BaseException) -> None:
        """What one of several tasks had received when it ended with an error is dead-lettered."""
        self._bury_taken(name, message, None if _is_cancellation(error) else error)

    def _bury_taken(self, subsystem: str, message: Any, error: BaseException | None) -> None:
        """Dead-letter what was taken: it failed with an error, or was cancelled."""
        reason = "cancelled" if error is None else "failed"
        self.letters.bury(DeadLetter(message, subsystem, reason, error))

    def _bury(self, entry: Any, subsystem: str, reason: str) -> None:
        self.letters.bury(DeadLetter(entry, subsystem, reason))


def _is_cancellation(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_cancellation, error.exceptions))
    return isinstance(error, asyncio.CancelledError)


def ask_to_stop(ensemble: Ensemble, part: Part) -> None:
    """Stop when the running handler of an Actor has returned, at the latest when the Actor has ended."""
    part.asked_to_stop = True
    if part.at_work:
        part.inbox.order(Order.STOP)
    else:
        ensemble.stop_unless_stopping()


def _made(kind: type[Exception], text: str) -> Exception:
    """An error of the declared type, or of the default one where that cannot be made from a text."""
    try:
        return kind(text)
    except Exception as refused:
        error = OrchestraError(text)
        note(error, f"the declared {kind.__qualname__} could not be made from a text: {told(refused)}")
        return error
