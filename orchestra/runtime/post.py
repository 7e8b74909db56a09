"""The general way of a send: for what the generated outbox did not decide beforehand.

That is: subclasses of a declared message, boxes made ahead, a policy for one message, messages to a
subsystem that is only planned (`wip`), an explicit level for a receiver with one lane, the lanes that had no
room in a broadcast, and every mistake.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import get_ident
from typing import Any, Final, TypeAlias

import attrs

from orchestra.box import BOXES, Box, codec_of, open_entry
from orchestra.carrying import reply_fields
from orchestra.errors import BoxError, Closed, Full, UndeclaredMessage, UndeclaredOverflow
from orchestra.messages import derives
from orchestra.overflow import POLICIES, Overflow, is_policy, permits
from orchestra.packing.codec import Codec
from orchestra.plan import Plan, Route
from orchestra.priority import Priority
from orchestra.runtime.bytelane import ByteLane
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.lane import Lane
from orchestra.runtime.pending import HandingOn, Keeper, pendings_of
from orchestra.runtime.redeeming import Note, redeem_all
from orchestra.runtime.telling import wrong_thread
from orchestra.runtime.ticket import Ticket

Places: TypeAlias = list[tuple[Lane, Any]]
"""The lanes that a message goes to, each with the entry that is put there."""


def _ignore(lane: Lane, outcome: Ticket | bool) -> None:
    """Nobody wants to know."""


@attrs.frozen
class Way:
    """Where messages of one exact class go, and how they are packed for those who get a box.

    `wip` are the receivers that are only planned, `replies` the fields that may hold a reply. `lane` is the
    one to which every message goes that comes without a level, as it is; None where that has to be decided.
    `boxes` are the lanes into each of which a box goes as it is; empty where more has to be decided.
    `counts_bytes` says that it may go into a lane that counts the bytes of its box, `leaves` that it goes to
    another process.
    """

    kind: type
    inboxes: tuple[Inbox, ...]
    boxed: frozenset[str]
    codec: Codec | None
    wip: tuple[str, ...]
    replies: tuple[str, ...]
    lane: Lane | None = None
    boxes: tuple[Lane, ...] = ()
    counts_bytes: bool = False
    leaves: bool = False

    def receivers_at(self, places: Places) -> tuple[str, ...]:
        """Those who are to get a message; those who drop it only when there is nobody else."""
        return tuple([lane.subsystem for lane, _ in places]) or self.wip


_NO_WAYS: Final[dict[type, Way]] = {}


class Post:
    """What one sender may send, found once for each class of message and kept.

    `sends` are the declared classes, or None for a sender that may send every message of the orchestra.
    `thread` is that of the event loop, by default the running one: another one must not send.
    """

    __slots__ = (
        "_dropped",
        "_inboxes",
        "_keeper",
        "_plan",
        "_sender",
        "_sends",
        "_thread",
        "_ways",
    )

    def __init__(
        self,
        sender: str,
        sends: tuple[type, ...] | None,
        plan: Plan,
        inboxes: Mapping[str, Inbox],
        dropped: dict[str, int],
        keeper: Keeper | None = None,
        thread: int | None = None,
    ) -> None:
        self._sender = sender
        self._sends = sends
        self._plan = plan
        self._inboxes = inboxes
        self._dropped = dropped
        self._keeper = keeper
        self._ways: dict[type, Way] = _NO_WAYS
        self._thread = get_ident() if thread is None else thread

    async def send(
        self, message: Any, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send a message, waiting where a lane has no room; see `Context.send`."""
        if get_ident() != self._thread:
            raise wrong_thread()
        if message.__class__ in BOXES and priority is None and overflow is None:
            way = self._ways.get(message.kind)
            if way is not None and way.boxes:
                return await self._send_box(message, way.boxes)
        places, way = self.places(message, priority, overflow)
        if not way.replies:
            return await self.spread(places, message, overflow) and not way.wip
        with self.handing_on(message, way, places) as handing:
            return await self.spread(places, message, overflow, note=handing.note) and not way.wip

    def try_send(
        self, message: Any, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send a message without waiting; see `Context.try_send`."""
        if get_ident() != self._thread:
            raise wrong_thread()
        return self.try_send_here(message, priority, overflow)

    def try_send_here(
        self, message: Any, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """As `try_send`, in whatever thread the lanes are for."""
        places, way = self.places(message, priority, overflow)
        if not way.replies:
            return self.spread_now(places, message, overflow) and not way.wip
        with self.handing_on(message, way, places) as handing:
            return self.spread_now(places, message, overflow, handing.note) and not way.wip

    async def spread(
        self,
        places: Places,
        message: Any,
        overflow: Overflow | None = None,
        *,
        others: bool = False,
        note: Note = _ignore,
    ) -> bool:
        """Offer to every lane at once, and wait side by side for those that had no room.

        True when every lane took the message, False when one dropped it. Cancelling withdraws the message
        where it still waits. A lane that fails does so when the rest is done. A receiver that ends meanwhile
        is passed over where there are more of them; `others` says that these places are not all.
        """
        if len(places) == 1 and not others:
            lane, entry = places[0]
            outcome = lane.admit(entry, message, overflow, directly=True)
            note(lane, outcome)
            if isinstance(outcome, Ticket):
                outcome = await lane.redeem(outcome, entry, message)
                note(lane, outcome)
            return outcome
        directly = all(lane.inline for lane, _ in places)

        def admit(lane: Lane, entry: Any) -> Ticket | bool:
            return lane.admit(entry, message, overflow, directly=directly)

        offered = offer(places, admit, note)
        try:
            every = len(offered.tickets) == len(places) and not others
            return decided(offered.outcome(await redeem_all(offered.tickets, message, note), every=every))
        finally:
            del offered

    def spread_now(
        self, places: Places, message: Any, overflow: Overflow | None = None, note: Note = _ignore
    ) -> bool:
        """As `spread`, without waiting."""
        offered = offer(places, lambda lane, entry: lane.put_now(entry, message, overflow), note)
        try:
            return decided(offered.outcome((), every=False))
        finally:
            del offered

    async def _send_box(self, box: Box[Any], lanes: tuple[Lane, ...]) -> bool:
        """Put a box that was made ahead into each lane, waiting only for those that have no room."""
        late = [(lane, box) for lane in lanes if not lane.offer(box)]
        if not late:
            return True
        return await self.spread(self.living(late, len(lanes)), box, others=len(late) < len(lanes))

    def known_way(self, kind: type) -> Way | None:
        """The way of messages of a class, if one has gone there before."""
        return self._ways.get(kind)

    def places(
        self, message: Any, priority: Priority | None, overflow: Overflow | None = None
    ) -> tuple[Places, Way]:
        """The lanes of receivers that have not ended and what to put into each, to be put now."""
        places, way = self._laid(message, priority, overflow)
        self.drop_for(way.wip)
        return self.living(places, len(places)), way

    def lay(self, message: Any) -> tuple[Places, Way]:
        """The lanes of all receivers and what to put into each, with all that can be wrong found beforehand.

        Nothing is put or counted yet.
        """
        return self._laid(message, None, None)

    def _laid(self, message: Any, priority: Priority | None, overflow: Overflow | None) -> tuple[Places, Way]:
        box: Box[Any] | None = message if message.__class__ in BOXES else None
        kind = message.__class__ if box is None else box.kind
        way = self._ways.get(kind) or self._find(kind, message)
        if box is None and way.codec is not None:
            if type(message) is not kind:
                raise BoxError(kind, "", f"it is a {type(message).__qualname__} that stands for one", message)
            box = way.codec.seal(message)
        elif box is not None and way.leaves:
            from orchestra.link.crossing import fit_to_cross

            assert way.codec is not None
            if box.codec.open is not way.codec.open:  # `Box.seal` knows nothing of a subscripted type
                box = way.codec.seal(box.open())
            else:
                box = fit_to_cross(box, message)
        places = []
        for inbox in way.inboxes:
            level = priority
            if level is None:
                level = Priority.NORMAL if inbox.level is None else inbox.level(open_entry(message))
            lane = inbox.by_priority.get(level) or inbox.no_lane(level, message)
            if overflow is not None and not permits(lane.policy, overflow):
                raise _not_permitted(lane, overflow, message)
            places.append((lane, _entry(inbox, message, box if inbox.name in way.boxed else None)))
        if way.counts_bytes:
            for lane, entry in places:
                if isinstance(lane, ByteLane):
                    lane.check(entry, message)
        return places, way

    def drop_for(self, planned: Iterable[str]) -> None:
        """Count a message as dropped for subsystems that are only planned."""
        for name in planned:
            self._count_planned(name)

    def handing_on(self, message: Any, way: Way, places: Places) -> HandingOn:
        """What becomes of the replies in a message that is sent."""
        assert self._keeper is not None
        return HandingOn(pendings_of(message, way.replies), way.receivers_at(places), self._keeper)

    def _count_planned(self, name: str) -> None:
        """Count a message to a subsystem that is only planned."""
        self._dropped[name] += 1

    def living(self, places: Sequence[tuple[Lane, Any]], receivers: int) -> Places:
        """The places of receivers that have not ended. Those that have are passed over, and count it.

        When all `receivers` of a message have ended, one place is left, which will say so.
        """
        living = [(lane, entry) for lane, entry in places if not lane.shut]
        if not living and len(places) == receivers:
            return list(places[:1])
        for lane, _ in places:
            if lane.shut:
                lane.drop("closed")
        return living

    def _find(self, kind: type, message: Any) -> Way:
        route = self._plan.route_of(kind)
        if route is None:
            raise self._undeclared(kind, message, self._why_nobody_receives(message))
        if self._sends is not None and not self._declares(kind, route.kind):
            raise self._undeclared(kind, message, self._why_not_declared(kind))
        if self._ways is _NO_WAYS:
            self._ways = {}
        way = self._ways[kind] = self._way(kind, route)
        return way

    def _why_nobody_receives(self, message: Any) -> str:
        if isinstance(message, self._plan.signals):
            return "it is a signal, which the conductor or running.broadcast(...) sends"
        if isinstance(message, type) and self._plan.route_of(message) is not None:
            return f"it is the class {message.__qualname__} itself: send an instance"
        if message is None:
            return "it is no message"
        return "nobody receives it; let a subsystem consume it, or name it in outgoing="

    def _why_not_declared(self, kind: type) -> str:
        assert self._sends is not None
        declared = " and ".join(sent.__qualname__ for sent in self._sends)
        only = f"it, only {declared}" if declared else "anything"
        return f"{self._sender!r} does not declare that it sends {only}; add {kind.__qualname__} to its sends"

    def _declares(self, kind: type, routed: type) -> bool:
        """Whether the sender declares a base of this class, and one in line with the type it is routed as.

        With two bases the class may be routed by the other one; the receiver would not know of the sender.
        """
        assert self._sends is not None
        bases = [sent for sent in self._sends if derives(kind, sent)]
        return any(derives(sent, routed) or derives(routed, sent) for sent in bases)

    def _way(self, kind: type, route: Route) -> Way:
        names = ("outgoing",) if route.outgoing else route.receivers
        wip = tuple(name for name in names if name in self._dropped)
        inboxes = tuple(self._inboxes[name] for name in names if name not in wip)
        declared = route.message if kind is route.kind else None
        boxed = self._plan.boxed_of(kind)
        codec = codec_of(kind, declared) if boxed else None
        leaves = codec is not None and self._plan.leaves(kind)
        if codec is not None and leaves:
            from orchestra.link.crossing import crossing

            codec = crossing(codec)
        replies = route.replies if kind is route.kind else reply_fields(kind)
        if codec is None or (codec.whole and not leaves):
            alone = inboxes[0] if len(inboxes) == 1 and not wip else None
            lane = None if alone is None or alone.level else alone.by_priority.get(Priority.NORMAL)
            return Way(kind, inboxes, frozenset(), None, wip, replies, lane)
        counts = any(isinstance(lane, ByteLane) for inbox in inboxes for lane in inbox.lanes)
        lanes = tuple(
            inbox.by_priority[Priority.NORMAL] for inbox in inboxes if Priority.NORMAL in inbox.by_priority
        )
        all_boxed = boxed.issuperset(names) and len(lanes) == len(inboxes)
        more = wip or replies or counts or leaves or any(inbox.level for inbox in inboxes)
        boxes = lanes if all_boxed and not more else ()
        return Way(kind, inboxes, boxed, codec, wip, replies, boxes=boxes, counts_bytes=counts, leaves=leaves)

    def _undeclared(self, kind: type, message: Any, why: str) -> UndeclaredMessage:
        name = "None" if message is None else kind.__qualname__
        return UndeclaredMessage(f"{name} cannot be sent: {why}", message, self._sender)


@attrs.frozen
class Offered:
    """What became of a message that was offered to several lanes: who took it, failed, or is waited for."""

    taken: bool
    error: BaseException | None
    tickets: list[tuple[Lane, Ticket, Any]]

    def outcome(self, redeemed: Sequence[bool | BaseException], *, every: bool) -> bool | BaseException:
        """True when every lane took the message, False when one dropped it; or what went wrong.

        `redeemed` has what came of each ticket. A receiver that has ended meanwhile is passed over, unless
        `every` lane was waited for and all their receivers have.
        """
        taken, error = self.taken, self.error
        ended: list[Lane] = []
        refused: Closed | None = None
        for (lane, _, _), result in zip(self.tickets, redeemed, strict=True):
            if isinstance(result, Closed) and lane.shut:
                ended.append(lane)
                refused = refused or result
            elif isinstance(result, BaseException):
                error = error or result
            else:
                taken = taken and result
        if every and len(ended) == len(self.tickets):
            error = error or refused
        else:
            for lane in ended:
                lane.drop("closed")
        return taken if error is None else error


def decided(outcome: bool | BaseException) -> bool:
    """Give what came of a message, or raise it.

    No frame that the traceback will hold refers to the error, here and where it comes from: the message in
    those frames, and a reply in it, are to go with the error, and not wait for the garbage collector.
    """
    try:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome
    finally:
        del outcome


def offer(places: Places, admit: Callable[[Lane, Any], Ticket | bool], note: Note = _ignore) -> Offered:
    """Offer a message to each lane at once, by `admit`."""
    taken = True
    tickets: list[tuple[Lane, Ticket, Any]] = []
    error: BaseException | None = None
    for lane, entry in places:
        try:
            outcome = admit(lane, entry)
        except (Full, Closed) as refusal:
            error = error or refusal
        else:
            note(lane, outcome)
            if isinstance(outcome, Ticket):
                tickets.append((lane, outcome, entry))
            else:
                taken = taken and outcome
    try:
        return Offered(taken, error, tickets)
    finally:
        del error


def _entry(inbox: Inbox, message: Any, box: Box[Any] | None) -> Any:
    """What is put into a lane: the box where the receiver opens boxes, else the message in it."""
    if box is None:
        return open_entry(message)
    return box if inbox.opens else open_entry(box)


def _not_permitted(lane: Lane, overflow: Any, message: Any) -> UndeclaredOverflow:
    if isinstance(overflow, type) and overflow in POLICIES:
        text = f"overflow is the class {overflow.__name__}: give a policy, {overflow.__name__}()"
    elif not is_policy(overflow):
        text = f"overflow is {overflow!r}: give a policy, such as Drop()"
    else:
        text = (
            f"the {lane.priority.name} lane of {lane.subsystem!r} has {lane.policy!r}, "
            f"which does not permit {overflow!r} for one message"
        )
    return UndeclaredOverflow(text, message, lane.subsystem)
