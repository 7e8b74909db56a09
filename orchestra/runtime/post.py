"""The general way of a send: for what the generated outbox did not decide beforehand.

That is: subclasses of a declared message, boxes made ahead, types with several receivers, messages to
a subsystem that is only planned (`wip`), an explicit level for a receiver with one lane, and every mistake.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import attrs

from orchestra.box import Box, Codec, codec_of
from orchestra.errors import Closed, Full, UndeclaredMessage
from orchestra.messages import derives
from orchestra.plan import Plan, Route
from orchestra.priority import Priority
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.lane import Lane, Ticket


@attrs.frozen
class _Way:
    """Where messages of one exact class go, and how they are packed for those who get a box."""

    inboxes: tuple[Inbox, ...]
    boxed: frozenset[str]
    codec: Codec | None
    wip: tuple[str, ...]


class Post:
    """What one sender may send, found once for each class of message and kept.

    `sends` are the declared classes, or None for a sender that may send every message of the orchestra.
    """

    def __init__(
        self,
        sender: str,
        sends: tuple[type, ...] | None,
        plan: Plan,
        inboxes: Mapping[str, Inbox],
        dropped: dict[str, int],
    ) -> None:
        self._sender = sender
        self._sends = sends
        self._plan = plan
        self._inboxes = inboxes
        self._dropped = dropped
        self._ways: dict[type, _Way] = {}

    async def send(self, message: Any, priority: Priority | None) -> bool:
        """Send a message, waiting where a lane has no room; see `Context.send`."""
        places, dropped = self._places(message, priority)
        if len(places) == 1:
            lane, entry = places[0]
            return await lane.put(entry, message) and not dropped
        await _spread(places, message)
        return not dropped

    def try_send(self, message: Any, priority: Priority | None) -> bool:
        """Send a message without waiting; see `Context.try_send`."""
        places, dropped = self._places(message, priority)
        for lane, entry in [(lane, entry) for lane, entry in places if not lane.offer(entry)]:
            lane.put_now(entry, message)
        return not dropped

    def _places(self, message: Any, priority: Priority | None) -> tuple[list[tuple[Lane, Any]], bool]:
        """The lanes and what to put into each, with all that can be wrong found before anything is put."""
        box = message if isinstance(message, Box) else None
        kind = message.__class__ if box is None else box.kind
        way = self._ways.get(kind) or self._find(kind, message)
        if box is None and way.codec is not None:
            box = way.codec.seal(message)
        places = []
        for inbox in way.inboxes:
            level = priority
            if level is None:
                level = Priority.NORMAL if inbox.level is None else inbox.level(_plain(message))
            lane = inbox.by_priority.get(level) or inbox.no_lane(level, message)
            places.append((lane, _entry(inbox, message, box if inbox.name in way.boxed else None)))
        if len(places) > 1:
            places = [(lane, entry) for lane, entry in places if not lane.shut] or places[:1]
        for name in way.wip:
            self._dropped[name] += 1
        return places, bool(way.wip)

    def _find(self, kind: type, message: Any) -> _Way:
        route = self._plan.route_of(kind)
        if route is None:
            raise self._undeclared(kind, message, self._why_nobody_receives(message))
        if self._sends is not None and not self._declares(kind, route.kind):
            raise self._undeclared(kind, message, f"{self._sender!r} does not declare that it sends it")
        way = self._ways[kind] = self._way(kind, route)
        return way

    def _why_nobody_receives(self, message: Any) -> str:
        if isinstance(message, self._plan.signals):
            return "it is a signal, which the conductor or running.broadcast(...) sends"
        if isinstance(message, type) and self._plan.route_of(message) is not None:
            return f"it is the class {message.__qualname__} itself: send an instance"
        return "nobody receives it"

    def _declares(self, kind: type, routed: type) -> bool:
        """Whether the sender declares a base of this class, and one in line with the type it is routed as.

        With two bases the class may be routed by the other one; the receiver would not know of the sender.
        """
        assert self._sends is not None
        bases = [sent for sent in self._sends if derives(kind, sent)]
        return any(derives(sent, routed) or derives(routed, sent) for sent in bases)

    def _way(self, kind: type, route: Route) -> _Way:
        names = ("outgoing",) if route.outgoing else route.receivers
        wip = tuple(name for name in names if name in self._dropped)
        inboxes = tuple(self._inboxes[name] for name in names if name not in wip)
        declared = route.message if kind is route.kind else None
        boxed = self._plan.boxed_of(kind)
        codec = codec_of(kind, declared) if boxed else None
        if codec is None or codec.whole:
            return _Way(inboxes, frozenset(), None, wip)
        return _Way(inboxes, boxed, codec, wip)

    def _undeclared(self, kind: type, message: Any, why: str) -> UndeclaredMessage:
        text = f"{kind.__qualname__} cannot be sent: {why}"
        if self._sends is not None:
            declared = ", ".join(sent.__qualname__ for sent in self._sends) or "nothing"
            text += f"; it declares {declared}"
        return UndeclaredMessage(text, message, self._sender)


def _plain(message: Any) -> Any:
    return message.codec.open(message) if isinstance(message, Box) else message


def _entry(inbox: Inbox, message: Any, box: Box[Any] | None) -> Any:
    """What is put into a lane: the box where the receiver opens boxes, else the message in it."""
    if box is None:
        return _plain(message)
    return box if inbox.opens else _plain(box)


async def _spread(places: list[tuple[Lane, Any]], message: Any) -> None:
    """Offer to every lane at once, and wait side by side for those that had no room.

    Cancelling withdraws the message where it still waits. A lane that fails does so when the rest is done.
    """
    tickets: list[tuple[Lane, Ticket, Any]] = []
    errors: list[BaseException | None] = []
    for lane, entry in [(lane, entry) for lane, entry in places if not lane.offer(entry)]:
        try:
            ticket = lane.claim(entry, message)
        except (Full, Closed) as refusal:
            errors.append(refusal)
        else:
            if ticket is not None:
                tickets.append((lane, ticket, entry))
    if tickets:
        errors += await _redeem_all(tickets, message)
    for error in errors:
        if error is not None:
            raise error


async def _redeem_all(tickets: list[tuple[Lane, Ticket, Any]], message: Any) -> list[BaseException | None]:
    waits = [_redeem(lane, ticket, entry, message) for lane, ticket, entry in tickets]
    try:
        return await asyncio.gather(*waits, return_exceptions=True)
    except BaseException:
        for lane, ticket, _ in tickets:
            lane.withdraw(ticket)  # one whose Task had not begun to wait knows nothing of the cancelling
        raise


async def _redeem(lane: Lane, ticket: Ticket, entry: Any, message: Any) -> None:
    try:
        await lane.redeem(ticket, entry, message)
    except Closed:
        if not lane.shut:  # one that has ended meanwhile is passed over
            raise
