"""Other ways to write a send that is accepted at once: what was tried, beside how it is done."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from benchmarks.messages import U8
from benchmarks.parts.standins import Inbox, Lane


class Exhausted:
    """Awaiting it takes no step, and gives None."""

    __await__ = ().__iter__


def made(loop: asyncio.AbstractEventLoop, lane: Lane, inbox: Inbox) -> dict[str, Callable[..., Any]]:
    """The ways by name; those that put something use this lane."""
    return {
        "future": _with_future(loop),
        "exhausted": _with_exhausted(),
        "closures": _with_closures(lane, inbox),
        "defaults": _with_defaults(lane, inbox),
        "method": Outbox(lane.queue, lane, inbox, lane.queue.append).try_send,
    }


def _with_future(loop: asyncio.AbstractEventLoop) -> Callable[..., Awaitable[bool]]:
    done = loop.create_future()
    done.set_result(True)

    def send(message: Any, priority: Any = None, overflow: Any = None) -> Awaitable[bool]:
        return done

    return send


def _with_exhausted() -> Callable[..., Any]:
    done = Exhausted()

    def send(message: Any, priority: Any = None, overflow: Any = None) -> Any:
        return done

    return send


def _with_closures(lane: Lane, inbox: Inbox) -> Callable[..., bool]:
    queue = lane.queue
    append = queue.append

    def try_send(message: Any, priority: Any = None, overflow: Any = None) -> bool:
        kind = message.__class__
        if kind is U8 and priority is None and overflow is None:  # noqa: SIM102  # as it is generated
            if len(queue) < lane.room:
                append(message)
                if inbox.idle:
                    inbox.idle = False
                return True
        return False

    return try_send


def _with_defaults(lane: Lane, inbox: Inbox) -> Callable[..., bool]:
    def try_send(
        message: Any,
        priority: Any = None,
        overflow: Any = None,
        *,
        lane: Lane = lane,
        inbox: Inbox = inbox,
        queue: deque[Any] = lane.queue,
        append: Callable[[Any], None] = lane.queue.append,
    ) -> bool:
        kind = message.__class__
        if kind is U8 and priority is None and overflow is None:  # noqa: SIM102  # as it is generated
            if len(queue) < lane.room:
                append(message)
                if inbox.idle:
                    inbox.idle = False
                return True
        return False

    return try_send


@attrs.define(eq=False)
class Outbox:
    """The same with attributes."""

    queue: deque[Any]
    lane: Lane
    inbox: Inbox
    append: Callable[[Any], None]

    def try_send(self, message: Any, priority: Any = None, overflow: Any = None) -> bool:
        kind = message.__class__
        if kind is U8 and priority is None and overflow is None:  # noqa: SIM102  # as it is generated
            if len(self.queue) < self.lane.room:
                self.append(message)
                if self.inbox.idle:
                    self.inbox.idle = False
                return True
        return False
