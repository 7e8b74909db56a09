"""The asker's side of an ask: who has its reply, and what came of it."""

import contextlib
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable, Iterator
from threading import get_ident
from types import TracebackType
from typing import Any, Literal, Protocol

from orchestra.box import Box
from orchestra.carrying import replies_of
from orchestra.errors import NoReply
from orchestra.messages import shown
from orchestra.reply import Reply
from orchestra.runtime.lane import Lane
from orchestra.runtime.ticket import Ticket

_DROPPED = "the reply was dropped without an answer"
_NOT_HELD = (
    "the message does not hold the reply that it was made with: write ask(lambda reply: Request(..., reply))"
)


class Keeper(Protocol):
    """What a pending ask needs of the orchestra that keeps it, and of that which has its reply."""

    loop: AbstractEventLoop
    thread: int

    def handed_on(self, pending: "Pending") -> None:
        """Other subsystems than before have the reply."""

    def handed_back(self, pending: "Pending") -> None:
        """It was not taken by those that it was handed on to, so those who had it before still do."""

    def count_late(self, pending: "Pending") -> None:
        """An answer came too late."""

    def welcome(self, pending: "Pending") -> None:
        """A subsystem of this orchestra has a reply that is waited for in another one."""

    def dismiss(self, pending: "Pending") -> None:
        """None has it any more, or nobody waits for it."""


class Pending:
    """The asker's side of one ask, and the edge of its asker in the graph of who waits for whom.

    `holders` are the subsystems that were last sent the reply, of the orchestra `place`; `asker` is the one
    whose own strand waits for it, or None for any other task. `over` says that there is an outcome, and
    `answered` that it is one which the receiver gave; `when_over` is called then, in the event loop.
    `on_the_way` counts the messages with the reply that are being sent just now.
    """

    __slots__ = (
        "_error",
        "_unclaimed",
        "_value",
        "answered",
        "asked",
        "asker",
        "holders",
        "keeper",
        "on_the_way",
        "over",
        "place",
        "when_over",
    )

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = self.place = keeper
        self._unclaimed = [None]
        self._value: Any = None
        self._error: Exception | None = None
        self.answered = False
        self.asked: type | None = None
        self.asker: str | None = None
        self.holders: tuple[str, ...] = ()
        self.on_the_way = 0
        self.over = False
        self.when_over: Callable[[], object] | None = None

    # for its reply, in any thread

    @property
    def kind(self) -> str:
        """What was asked, in words."""
        return "a request" if self.asked is None else shown(self.asked)

    @property
    def claimed(self) -> bool:
        """Whether there is an outcome, or one on its way from another thread, or nobody waits."""
        return not self._unclaimed

    def answer(self, value: Any, error: Exception | None = None) -> bool:
        """Give the asker its answer; False when that comes too late."""
        if not self.claim():
            self.place.count_late(self)
            return False
        self.answered = True
        if get_ident() == self.keeper.thread:
            self._settle(value, error)
            return True
        try:
            self.keeper.loop.call_soon_threadsafe(self._settle, value, error)
        except RuntimeError:  # the loop is closed
            return False
        return True

    def refuse(self, error: Exception) -> bool:
        """Let the ask raise this error; False when that comes too late."""
        return self.answer(None, error)

    def forgotten(self) -> None:
        """Nobody refers to the reply any more. It may be the garbage collector that says so, at any place."""
        if self._unclaimed:
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits
                why = _DROPPED if self.asked is not None else _NOT_HELD
                self.keeper.loop.call_soon_threadsafe(self.no_reply, why)

    # in the event loop

    def claim(self) -> bool:
        """Whether the outcome is the caller's to decide: True once, however many threads ask."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return False
        return True

    def fail(self, error: Exception) -> None:
        """Let the ask raise this error, unless there is an outcome."""
        if self.claim():
            self._settle(None, error)

    def no_reply(self, why: str, message: Any = None, cause: BaseException | None = None) -> None:
        """Let the ask raise `NoReply`, unless there is an outcome."""
        if self.claimed:
            return
        error = NoReply(f"no reply to {self.kind} from {self.told}: {why}", message, self.holder)
        error.__cause__ = cause
        self.fail(error)

    def lost(self, name: str, why: str, message: Any = None, cause: BaseException | None = None) -> None:
        """One of the holders will not answer; when it was the only one, nobody will."""
        if self.holders == (name,):
            self.no_reply(why, message, cause)
        else:
            self.holders = tuple(holder for holder in self.holders if holder != name)

    def hand_to(self, names: tuple[str, ...], place: Keeper) -> None:
        """These are the holders from now on, subsystems of the orchestra `place`.

        Of one in another event loop nothing is known: only the reply itself tells when it is gone.
        """
        if place.loop is not self.keeper.loop:
            names, place = (), self.keeper
        if place is not self.place:
            self._move(place)
        self.holders = names

    def leave(self) -> None:
        """Nobody waits any more."""
        self.when_over = None
        self.claim()
        if self.place is not self.keeper:
            self.place.dismiss(self)

    def _move(self, place: Keeper) -> None:
        if self.place is not self.keeper:
            self.place.dismiss(self)
        self.place = place
        if place is not self.keeper:
            place.welcome(self)

    def outcome(self) -> Any:
        """What the ask returns, or raises."""
        error = self._error
        if error is None:
            return self._value
        self._error = None
        try:
            raise error
        finally:
            del error

    @property
    def holder(self) -> str | None:
        """The subsystem that has the reply, where it is a single one."""
        return self.holders[0] if len(self.holders) == 1 else None

    @property
    def target(self) -> str | None:
        """The same, where it is of the asker's own orchestra: another one is no part of a circle."""
        return self.holder if self.place is self.keeper else None

    @property
    def lane(self) -> None:
        """An ask waits for no room."""

    @property
    def holds(self) -> Literal[True]:
        """It counts as long as it is there."""
        return True

    @property
    def told(self) -> str:
        """The holders, in words."""
        return " and ".join(map(repr, self.holders)) or "anybody"

    @property
    def what(self) -> str:
        """What its asker waits for."""
        return f"the reply of {self.told} to {self.kind}"

    def _settle(self, value: Any, error: Exception | None) -> None:
        self._value = value
        self._error = error
        self.over = True
        if self.when_over is not None:
            self.when_over()


class HandingOn:
    """While a message is sent: its receivers have its replies; those that did not take it have them not.

    When nobody took it, or its sender got an error, those who had the replies before have them still.
    """

    __slots__ = ("_before", "_names", "_place", "_seen", "_took")

    def __init__(self, pendings: Iterable[Pending], names: tuple[str, ...], place: Keeper) -> None:
        self._before = [(pending, pending.holders, pending.place) for pending in pendings]
        self._names = names
        self._place = place
        self._took: tuple[str, ...] = ()
        self._seen = False

    @property
    def taken(self) -> bool:
        """Whether somebody has taken the message."""
        return bool(self._took)

    def begin(self) -> None:
        """The message is on the way."""
        for pending, _, _ in self._before:
            pending.on_the_way += 1
            pending.hand_to(self._names, self._place)

    def note(self, lane: Lane, outcome: Ticket | bool) -> None:
        """A lane has taken the message or not, or lets it wait."""
        if outcome is True:
            self._took += (lane.subsystem,)
        if outcome:
            self.look()

    def look(self) -> None:
        """It is not only tried: a circle that is closed by it ends the ask."""
        if not self._seen:
            self._seen = True
            for pending, before, place in self._before:
                if (before, place) != (self._names, self._place):
                    pending.keeper.handed_on(pending)

    def end(self, *, failed: bool = False) -> None:
        """It is on the way no longer; `failed` says that its sender got an error."""
        missing = {name for name in self._names if name not in self._took}
        for pending, before, place in self._before:
            pending.on_the_way -= 1
            left = tuple(name for name in pending.holders if name not in missing)
            if left == pending.holders and (left or self._took):
                continue
            if left and not failed:
                pending.holders = left
            elif not left or place is self._place:
                pending.hand_to((*left, *(name for name in before if name not in left)), place)
                pending.place.handed_back(pending)

    def __enter__(self) -> "HandingOn":
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end(failed=error is not None)


def pendings_of(message: Any, fields: tuple[str, ...]) -> tuple[Pending, ...]:
    """The asks whose replies are in those fields of a message, or in a box."""
    if len(fields) == 1 and not isinstance(message, Box):
        reply: Any = getattr(message, fields[0], None)
        if reply.__class__ is Reply:
            return tuple(behind((reply,)))
    return tuple(behind(replies_of(message, fields)))


def behind(replies: Iterable[Reply[Any]]) -> Iterator[Pending]:
    """The asks that replies belong to."""
    for reply in replies:
        pending = reply._pending
        if isinstance(pending, Pending):
            yield pending
