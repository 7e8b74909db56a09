"""The live recipients: who receives a type, for whoever holds the handle."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from orchestra.box import Box
from orchestra.errors import UndeclaredMessage
from orchestra.messages import class_of, derives, shown, shown_all
from orchestra.overflow import Overflow
from orchestra.plan import Plan, SubsystemPlan
from orchestra.priority import Priority
from orchestra.recipient import Recipient
from orchestra.reply import Reply
from orchestra.runtime.asks import Asks
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.post import Post
from orchestra.runtime.threads.door import Door
from orchestra.runtime.threads.home import do_from_here


class LiveRecipient(Recipient[Any]):
    """A recipient of one running orchestra."""

    __slots__ = ("_asks", "_door", "_kind", "_post")

    def __init__(self, kind: type, post: Post, asks: Asks, door: Door) -> None:
        self._kind = kind
        self._post = post
        self._asks = asks
        self._door = door

    @property
    def kind(self) -> type[Any]:
        return self._kind

    @property
    def blocking(self) -> Any:
        if self._door.here:
            raise RuntimeError(
                f"{self!r}.blocking is for other threads than that of the event loop, which would wait for "
                "itself: await its verbs here"
            )
        return self

    def send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> Any:
        self._check(message)
        return self._do(partial(self._post.send, message, priority, overflow), message)

    def try_send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        self._check(message)
        return bool(self._do(partial(self._post.try_send, message, priority, overflow), message))

    def ask(
        self,
        make: Callable[[Reply[Any]], Any],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any:
        return self._do(
            partial(self._asks.ask, self._post, None, make, timeout=timeout, priority=priority), None
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LiveRecipient):
            return NotImplemented
        return self._asks is other._asks and self._kind is other._kind

    def __hash__(self) -> int:
        return hash((id(self._asks), self._kind))

    def __repr__(self) -> str:
        return f"<recipient of {shown(self._kind)}>"

    def _do(self, work: Callable[[], Any], message: Any) -> Any:
        """In the loop, what the work gives, to be awaited; in another thread, what comes of it."""
        if self._door.here:
            return work()
        if asyncio._get_running_loop() is not None:
            raise RuntimeError(
                f"{self!r} belongs to another event loop, and to wait for that one would block this one: "
                "use it in a thread, await asyncio.to_thread(recipient.send, message)"
            )
        return do_from_here(self._door, work, message)

    def _check(self, message: Any) -> None:
        kind = message.kind if isinstance(message, Box) else type(message)
        if not derives(kind, self._kind):
            raise UndeclaredMessage(
                f"{shown(kind)} cannot be sent: this is {self!r}, which takes {shown(self._kind)}", message
            )


class Recipients:
    """Makes the recipients of one running orchestra."""

    def __init__(
        self, plan: Plan, inboxes: Mapping[str, Inbox], dropped: dict[str, int], asks: Asks, door: Door
    ) -> None:
        self._plan = plan
        self._inboxes = inboxes
        self._dropped = dropped
        self._asks = asks
        self._door = door
        self._made: dict[type, LiveRecipient] = {}

    def of(self, subsystem: SubsystemPlan, declared: Any) -> LiveRecipient:
        """The recipient of a type that a subsystem declares; `UndeclaredMessage` for any other."""
        usable = (*subsystem.sends, *subsystem.consumes, *subsystem.subscribes)
        kind: Any = class_of(declared)
        if not isinstance(kind, type) or not any(derives(kind, class_of(each)) for each in usable):
            raise UndeclaredMessage(
                f"{subsystem.name!r} cannot have a recipient of {shown(declared)}: it may use what it "
                f"declares, {shown_all(usable)}",
                None,
                subsystem.name,
            )
        return self.to(kind)

    def to(self, kind: type) -> LiveRecipient:
        """The recipient of a class of messages."""
        made = self._made.get(kind)
        if made is None:
            post = Post(
                f"a recipient of {shown(kind)}",
                (kind,),
                self._plan,
                self._inboxes,
                self._dropped,
                self._asks,
                self._door.thread,
            )
            made = self._made[kind] = LiveRecipient(kind, post, self._asks, self._door)
        return made
