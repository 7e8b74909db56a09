"""The test's hand on a subsystem that runs alone: what reaches it, what it does, its time and its end."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from types import UnionType
from typing import Any, Generic, TypeVar, overload

from orchestra.box import open_entry
from orchestra.errors import UndeclaredMessage
from orchestra.messages import class_of, derives, joined, members, shown, shown_all
from orchestra.mistakes import Wrong
from orchestra.overflow import Overflow
from orchestra.priority import Priority
from orchestra.recipient import Recipient
from orchestra.reply import Reply
from orchestra.runtime.conductor import check_signal
from orchestra.runtime.letters import DeadLetter
from orchestra.runtime.meters import Meters, read_meters
from orchestra.testing.caught import NOTHING, Sent
from orchestra.testing.clock import FakeClock
from orchestra.testing.stage import Stage

M = TypeVar("M")
N = TypeVar("N")
R = TypeVar("R")
T = TypeVar("T")
S_co = TypeVar("S_co", covariant=True)

QUIET = 2
"""Turns of an idle event loop after which a subsystem is taken to be at rest."""

GLANCE = 0.0005
"""Seconds between two looks at a thread that works."""

QUIET_AMONG_OTHERS = 50
"""The same where other tasks keep the loop busy, or it does not tell."""

PATIENCE = 5.0
"""Seconds of real time that a test waits for anything by default."""

FEW = 8
"""How many messages an error tells."""


class Probe(Generic[S_co]):
    """A subsystem that runs alone, and the test's hand on all that is around it.

    It runs as it would in its orchestra, with its own lanes, policies, boxing and restart. Time stands still
    for its timers, deadlines, backoffs, the time limits of its asks and the waits of its lanes, until
    `advance` moves it. What it waits for otherwise (`asyncio.sleep`, a thread, the network) takes as long as
    ever.

    No wait of a test is without limit: what does not come within `timeout` seconds of real time is an
    AssertionError that tells where the subsystem stands.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._inbox = stage.inbox
        self._name = stage.name
        caught = self._caught = stage.caught
        self.sent: list[Any] = caught.messages
        """The messages that it sent so far, in order; one to several subscribers is there once.

        What it sent to itself is not, nor what was dropped for a subsystem that is only planned. The list
        may be cleared.
        """
        self.log: list[Sent] = caught.log
        """What it sent so far, each message once for each receiver, with level and time."""
        self.letters: list[DeadLetter] = stage.letters
        """The dead letters so far."""
        self.clock: FakeClock = stage.clock
        """Its time, which begins with the `start` of `alone`."""

    # what reaches the subsystem

    async def send(
        self,
        message: Any,
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
        timeout: float | None = PATIENCE,
    ) -> bool:
        """Send it a message, as another subsystem would; True when its lane took it, False when not.

        Nobody else gets it, not even of a message to several subscribers. It waits where the lane has no
        room; raises AssertionError when there is none for `timeout` seconds (None: no limit). Else it raises
        as `running.send` does, and `UndeclaredMessage` for what another subsystem receives.
        """
        self._check_receives(message)
        sending = self._stage.post.send(message, priority, overflow)
        return await self._within(timeout, f"{self._name!r} had no room for {shown_of(message)}", sending)

    def try_send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send it a message without waiting: as `send`, but `Full` is raised where `send` would wait."""
        self._check_receives(message)
        return self._stage.post.try_send(message, priority, overflow)

    @overload
    async def ask(
        self,
        make: Callable[[Reply[R]], Any],
        *,
        timeout: float | None = PATIENCE,
        priority: Priority | None = None,
    ) -> R: ...
    @overload
    async def ask(
        self,
        make: Callable[[Reply[Any]], Any],
        *,
        timeout: float | None = PATIENCE,
        priority: Priority | None = None,
    ) -> Any: ...
    async def ask(
        self, make: Any, *, timeout: float | None = PATIENCE, priority: Priority | None = None
    ) -> Any:
        """Ask it, and wait for the reply: as `running.ask`, in real time.

        Raises AssertionError when it has not answered within `timeout` seconds (None: no limit). One that
        answers only when its time goes on is asked in a task beside the test: `asyncio.create_task(...)`.
        """
        asked = "it"

        def checked(reply: Reply[Any]) -> Any:
            nonlocal asked
            message = make(reply)
            asked = shown_of(message)
            self._check_receives(message)
            return message

        self._stage.check_open(None)
        asking = self._stage.ask(checked if callable(make) else make, priority)
        return await self._within(timeout, lambda: f"{self._name!r} did not reply to {asked}", asking)

    def signal(self, signal: Any) -> None:
        """Give it a signal, as a broadcast would, whatever the capacity.

        Raises TypeError for what is no signal of the orchestra, and `Closed` when it has ended.
        """
        check_signal(self._stage.plan, signal)
        self._stage.check_open(signal)
        self._inbox.signal(signal)

    def recipient(self, kind: type[M]) -> Recipient[M]:
        """A handle to put into messages, as other subsystems would give it.

        What the subsystem sends by it is in `sent`, or comes to itself where it is the receiver. Raises
        `UndeclaredMessage` for a type that nobody receives.
        """
        return self._stage.recipient(kind)

    # what it does

    @overload
    async def expect(self, kind: type[M], /, *, timeout: float | None = PATIENCE) -> M: ...
    @overload
    async def expect(
        self, kind: type[M], other: type[N], /, *, timeout: float | None = PATIENCE
    ) -> M | N: ...
    @overload
    async def expect(self, *kinds: type | UnionType, timeout: float | None = PATIENCE) -> Any: ...
    async def expect(self, *kinds: Any, timeout: float | None = PATIENCE) -> Any:
        """The first message of a type that it sent and that was not expected before; waits for one.

        Several types, or a union, mean the first message of any of them; subclasses count. Messages of other
        types stay, to be expected later. A message to several subscribers comes out once.

        Raises AssertionError when none comes: `timeout` seconds of real time are over (None: no limit), or
        the subsystem has ended or failed. Raises TypeError at once for what is no type, or one of which no
        message can leave this subsystem.
        """
        wanted = self._wanted(kinds)
        told = " or ".join(map(shown, wanted))
        return await self._within(
            timeout,
            lambda: f"{self._name!r} has sent no {told}",
            self._arriving(wanted, told),
            lambda: f"; what it sent and nobody expected: {self._unexpected()}{self._why_not(wanted)}",
        )

    def bury(self, message: Any, error: Exception | None = None) -> None:
        """Let a message that it sent be one that its receiver never handles, or failed on with this error.

        Who waits for the reply to it gets `NoReply` at once, as if the receiver had ended. To forget the
        message is not enough: `sent` and `log` keep it. Raises ValueError for what it has not sent.
        """
        receivers = self._caught.receivers_of(message)
        if not receivers:
            raise ValueError(
                f"{self._name!r} has not sent this very {shown_of(message)}: give one that came out of "
                "expect, or that is in sent"
            )
        for receiver in receivers:
            self._stage.bury(DeadLetter(message, receiver, "failed" if error else "finished", error))

    async def settle(self) -> None:
        """Wait until it rests, or waits for something that does not come from the test or the clock.

        A handler that waits for the network, say, counts as at rest. One that works on without end is
        waited for no longer than a second of real time; so is the thread of a blocking subsystem, in which
        nobody can tell a wait from work.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + 1
        quiet = 0
        while loop.time() < end and not self.ended:
            await asyncio.sleep(GLANCE if self._stage.thread_works else 0)
            quiet = 0 if self._stage.busy else quiet + 1
            if quiet >= (QUIET if self._stage.idle else QUIET_AMONG_OTHERS):
                break

    async def advance(self, seconds: float) -> None:
        """Let its time go on by some seconds: what comes due meanwhile happens in order, each at its time.

        It settles before, between and after. Raises ValueError for a time that would go backwards or has no
        end.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise TypeError(f"advance takes a number of seconds, not {seconds!r}")
        if not 0 <= seconds < math.inf:
            raise ValueError(
                f"time goes forward: advance takes a finite number of 0 or more, not {seconds:g}"
            )
        until = self.clock.time() + seconds
        await self.settle()
        while (ring := self.clock.next_due(until)) is not None:
            ring()
            await self.settle()

    @property
    def instance(self) -> S_co:
        """The subsystem itself: the one that was given, or what `deferred` made last."""
        return self._stage.running.instances[self._name]  # type: ignore[no-any-return]  # as it was given

    @property
    def meters(self) -> Meters:
        """What went through its inbox; as in `running.meters()`."""
        return read_meters(self._inbox, self._stage.part.lives.restarts, self._stage.late_replies)

    @property
    def ended(self) -> bool:
        """Whether it has ended, by itself or with a failure."""
        return self._stage.ensemble.ended.done()

    # its end

    async def drain(self, timeout: float | None = PATIENCE) -> None:
        """Let it handle all that is queued and end, as when nobody is left who could send to it.

        Its timers are cancelled. Raises its error, unless that was raised before, and AssertionError when it
        has not ended within `timeout` seconds of real time (None: no limit): in an ask that the test does not
        answer, say, or a backoff. It goes on ending then.
        """
        await self._within(timeout, f"{self._name!r} has not ended", self._stage.running.drain())

    async def stop(self, timeout: float | None = None) -> None:
        """Stop it, as `running.stop` and as leaving the block does; raises its error.

        `timeout` is in seconds of real time; by default the `stop_timeout` of `alone`.
        """
        self._stage.begin_stop(timeout)
        await self._stage.running.stop()

    async def wait(self, timeout: float | None = PATIENCE) -> None:
        """Wait until it has ended by itself; raises its error.

        Raises AssertionError when it has not within `timeout` seconds of real time (None: no limit).
        """
        await self._within(timeout, f"{self._name!r} has not ended", self._stage.running.wait())

    def __repr__(self) -> str:
        return f"<probe of {self._name!r}>"

    # inside

    def _check_receives(self, message: Any) -> None:
        route = self._stage.plan.route_of(type(open_entry(message)))
        if route is not None and self._name not in route.receivers:
            who = joined(map(repr, route.receivers)) if route.receivers else "the outside"
            raise UndeclaredMessage(
                f"{shown_of(message)} goes to {who}, and only {self._name!r} is here", message, self._name
            )
        self._stage.check_open(message)

    def _wanted(self, kinds: tuple[Any, ...]) -> tuple[type, ...]:
        """The classes to be expected, after checking that messages of each can leave the subsystem."""
        try:
            wanted = [class_of(each) for kind in kinds for each in members(kind)]
        except Wrong as wrong:
            raise TypeError(f"expect takes types of messages, and {wrong}") from None
        if not wanted:
            raise TypeError("expect takes the type of a message: await probe.expect(Type)")
        for kind in wanted:
            self._check_leaves(kind)
        return tuple(wanted)

    def _check_leaves(self, kind: type) -> None:
        if any(derives(kind, routed) or derives(routed, kind) for routed in self._stage.leaving):
            return
        route = self._stage.plan.route_of(kind)
        if route is None:
            why = f"nobody in {self._stage.plan.name} receives it"
        elif self._name in route.receivers:
            why = f"only {self._name!r} itself receives it"
        else:
            why = f"{joined(map(repr, route.receivers))} is only planned (wip=True), so it is dropped"
        raise TypeError(f"no {shown(kind)} can come out of {self._name!r}: {why}")

    async def _arriving(self, kinds: tuple[type, ...], told: str) -> Any:
        while (message := self._caught.pop(kinds)) is NOTHING:
            if self.ended:
                text = f"{self._name!r} has sent no {told} and has ended; what it sent and nobody expected: "
                raise AssertionError(text + self._unexpected()) from self._stage.ensemble.error
            self._caught.arrival.clear()
            await self._caught.arrival.wait()
        return message

    async def _within(
        self,
        timeout: float | None,
        what: "str | Callable[[], str]",
        doing: Awaitable[T],
        more: Callable[[], str] = lambda: "",
    ) -> T:
        """Wait for something of the subsystem; AssertionError when it takes too long."""
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await doing
        except TimeoutError:
            if not limit.expired():
                raise
            text = what if isinstance(what, str) else what()
            raise AssertionError(
                f"{text} within {timeout:g} s{more()}; {self._stage.standing()}"
            ) from self._stage.ensemble.error

    def _why_not(self, kinds: tuple[type, ...]) -> str:
        """That messages of these types could only go by a recipient that it was given, in words."""
        declared = self._stage.subsystem.sends
        sends = [class_of(each) for each in declared]
        if any(derives(kind, sent) or derives(sent, kind) for kind in kinds for sent in sends):
            return ""
        return f"; it declares that it sends {shown_all(declared)}"

    def _unexpected(self) -> str:
        """What it sent beside, in words."""
        every = self._caught.unexpected
        told = [repr(message) for message in every[:FEW]]
        if len(every) > FEW:
            told.append(f"{len(every) - FEW} more")
        return joined(told) or "nothing"


def shown_of(message: Any) -> str:
    """The class of a message, or of the one in a box, in words."""
    return shown(type(open_entry(message)))
