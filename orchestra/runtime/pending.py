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


class Keeper(Protocol):
    """What a pending ask needs of the orchestra that keeps it."""

    loop: AbstractEventLoop
    thread: int

    def handed_on(self, pending: "Pending") -> None: ...
    def count_late(self, pending: "Pending") -> None: ...


class Pending:
    """The asker's side of one ask, and the edge of its asker in the graph of who waits for whom.

    `holders` are the subsystems that were last sent the reply; `asker` is the one whose own strand waits
    for it, or None for any other task. `over` says that there is an outcome; `when_over` is called then, in
    the event loop. `on_the_way` says that a message with the reply is being sent just now.
    """

    __slots__ = (
        "_error",
        "_unclaimed",
        "_value",
        "asked",
        "asker",
        "holders",
        "keeper",
        "on_the_way",
        "over",
        "when_over",
    )

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self._unclaimed = [None]
        self._value: Any = None
        self._error: Exception | None = None
        self.asked: type | None = None
        self.asker: str | None = None
        self.holders: tuple[str, ...] = ()
        self.on_the_way = False
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
            self.keeper.count_late(self)
            return False
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
                self.keeper.loop.call_soon_threadsafe(
                    self.no_reply, "the reply was dropped without an answer"
                )

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
        error = NoReply(f"no reply to {self.kind} from {self.told}: {why}", message, self.target)
        error.__cause__ = cause
        self.fail(error)

    def lost(self, name: str, why: str, message: Any = None, cause: BaseException | None = None) -> None:
        """One of the holders will not answer; when it was the only one, nobody will."""
        if self.holders == (name,):
            self.no_reply(why, message, cause)
        else:
            self.holders = tuple(holder for holder in self.holders if holder != name)

    def hand_to(self, names: tuple[str, ...]) -> None:
        """These are the holders from now on. A circle that is closed by it ends the ask."""
        if names != self.holders:
            self.holders = names
            if self.asker is not None:
                self.keeper.handed_on(self)

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
    def target(self) -> str | None:
        """The subsystem that has the reply, where it is a single one."""
        return self.holders[0] if len(self.holders) == 1 else None

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
    """While a message is sent: its receivers have its replies; when they did not get it, those as before.

    Who is asked by another orchestra than the one that this message is sent in has no holder here.
    """

    __slots__ = ("_before", "_keeper", "_names", "taken")

    def __init__(self, pendings: Iterable[Pending], names: tuple[str, ...], keeper: Keeper | None) -> None:
        self._before = [(pending, pending.holders) for pending in pendings]
        self._names = names
        self._keeper = keeper
        self.taken = False

    def __enter__(self) -> "HandingOn":
        for pending, _ in self._before:
            pending.on_the_way = True
            pending.hand_to(self._names if pending.keeper is self._keeper else ())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        nowhere = error is not None or (not self.taken and len(self._names) < 2)
        for pending, before in self._before:
            pending.on_the_way = False
            if nowhere and pending.holders == self._names:
                pending.hand_to(before)


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
