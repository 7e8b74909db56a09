"""Signals: put into every inbox at once, then waited for."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from orchestra.context import Conductor
from orchestra.errors import Closed, SubsystemStalled
from orchestra.overflow import Overflow
from orchestra.plan import Plan
from orchestra.priority import Priority
from orchestra.runtime.afar import Afar
from orchestra.runtime.clock import limit
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.post import Post
from orchestra.runtime.threads.inbox import held


async def broadcast(
    inboxes: Iterable[Inbox], signal: Any, timeout: float | None, afar: Afar | None = None
) -> None:
    """Put a signal into every inbox that is not shut, then wait until all are within their capacity.

    Nothing is awaited before every inbox has it, so no subsystem runs between the first and the last. Those
    `afar` are told then too, and waited for.
    """
    packed = None if afar is None else afar.pack(signal)
    told = put(inboxes, signal)
    over = [future for inbox in told if (future := inbox.over_capacity()) is not None]
    if afar is not None and (others := afar.tell(packed)) is not None:
        over.append(others)
    if not over:
        return
    await asyncio.wait(over, timeout=timeout)
    stalled = [inbox.name for inbox in told if inbox.unread > inbox.signal_capacity]
    if afar is not None:
        stalled += afar.stalled(packed)
    if stalled and timeout is not None:
        raise SubsystemStalled(stalled, timeout)


def put(inboxes: Iterable[Inbox], signal: Any) -> list[Inbox]:
    """Put a signal into every inbox that is not shut, at once; gives those."""
    told = [inbox for inbox in inboxes if not inbox.shut]
    with held(told):
        for inbox in told:
            inbox.signal(signal)
    return told


class LiveConductor(Conductor[Any]):
    """What `on_event` is given."""

    __slots__ = ("_afar", "_inboxes", "_plan", "_post", "_stopping")

    def __init__(
        self,
        plan: Plan,
        inboxes: Iterable[Inbox],
        post: Post,
        stopping: Callable[[], Closed | None],
        afar: Afar | None = None,
    ) -> None:
        self._afar = afar
        self._plan = plan
        self._inboxes = tuple(inboxes)
        self._post = post
        self._stopping = stopping

    async def broadcast(self, signal: Any, timeout: float = 10.0) -> None:
        check_signal(self._plan, signal)
        within = limit("the timeout of broadcast", timeout)
        if (closed := self._stopping()) is not None:
            raise closed
        await broadcast(self._inboxes, signal, within, self._afar)

    async def send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        return await self._post.send(message, priority, overflow)

    def try_send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        return self._post.try_send(message, priority, overflow)


def check_signal(plan: Plan, signal: Any) -> None:
    """Raise TypeError unless this is a signal of the orchestra."""
    if not isinstance(signal, plan.signals):
        events = plan.events if plan.has_on_event else ()
        raise TypeError(_not_one("signal", signal, plan.name, plan.signals, events, "running.event(...)"))


def check_event(plan: Plan, event: Any) -> None:
    """Raise TypeError unless the orchestra takes such events."""
    if not plan.has_on_event:
        raise TypeError(f"{plan.name} takes no events: it has no async def on_event(self, conductor, event)")
    if not isinstance(event, plan.events):
        other = "running.broadcast(...)"
        raise TypeError(_not_one("event", event, plan.name, plan.events, plan.signals, other))


def _not_one(
    what: str, given: Any, app: str, kinds: tuple[type, ...], others: tuple[type, ...], other: str
) -> str:
    """Why something is no signal, or no event; `others` are the kinds that are given by `other`."""
    if isinstance(given, type) and issubclass(given, kinds):
        return f"{given.__qualname__} is the class itself: give an instance, {given.__qualname__}(...)"
    text = f"{type(given).__qualname__} is no {what} of {app}; its {what}s are {_names(kinds)}"
    if isinstance(given, others):
        another = "event" if what == "signal" else "signal"
        text += f". It is {'an' if another == 'event' else 'a'} {another}: use {other}"
    return text


def _names(kinds: Iterable[type]) -> str:
    return ", ".join(kind.__qualname__ for kind in kinds)
