"""The live recipients: who receives a type, for whoever holds the handle."""

import threading
from collections.abc import Callable, Mapping
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


class LiveRecipient(Recipient[Any]):
    """A recipient of one running orchestra."""

    __slots__ = ("_asks", "_kind", "_post")

    def __init__(self, kind: type, post: Post, asks: Asks) -> None:
        self._kind = kind
        self._post = post
        self._asks = asks

    @property
    def kind(self) -> type[Any]:
        return self._kind

    async def send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        self._check(message)
        return await self._post.send(message, priority, overflow)

    def try_send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        self._check(message)
        return self._post.try_send(message, priority, overflow)

    async def ask(
        self,
        make: Callable[[Reply[Any]], Any],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any:
        self._check_thread()
        return await self._asks.ask(self._post, None, make, timeout=timeout, priority=priority)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LiveRecipient):
            return NotImplemented
        return self._asks is other._asks and self._kind is other._kind

    def __hash__(self) -> int:
        return hash((id(self._asks), self._kind))

    def __repr__(self) -> str:
        return f"<recipient of {shown(self._kind)}>"

    def _check(self, message: Any) -> None:
        self._check_thread()
        kind = message.kind if isinstance(message, Box) else type(message)
        if not derives(kind, self._kind):
            raise UndeclaredMessage(
                f"{shown(kind)} cannot be sent: this is {self!r}, which takes {shown(self._kind)}", message
            )

    def _check_thread(self) -> None:
        if threading.get_ident() != self._asks.thread:
            raise RuntimeError(f"{self!r} belongs to the thread of its event loop, and this is another one")


class Recipients:
    """Makes the recipients of one running orchestra."""

    def __init__(self, plan: Plan, inboxes: Mapping[str, Inbox], dropped: dict[str, int], asks: Asks) -> None:
        self._plan = plan
        self._inboxes = inboxes
        self._dropped = dropped
        self._asks = asks
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
        made = self._made.get(kind)
        if made is None:
            post = Post(
                f"a recipient of {shown(kind)}",
                (kind,),
                self._plan,
                self._inboxes,
                self._dropped,
                self._asks,
            )
            made = self._made[kind] = LiveRecipient(kind, post, self._asks)
        return made
