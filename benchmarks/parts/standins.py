"""What stands for the parts of an orchestra in the steps: the same attributes, and little code."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from types import coroutine
from typing import Any, ClassVar

import attrs

from orchestra.priority import Priority
from orchestra.runtime.scheduler import BUDGET, COURSE, SLICE
from orchestra.runtime.strand import PARKED, breathe

BATCH = BUDGET
"""Messages between two looks at the clock."""


def nothing() -> int:
    """A step that has nothing to do."""
    return 0


@attrs.define(eq=False)
class Lane:
    queue: deque[Any]
    room: int = 1024
    pressed: bool = False
    peak: int = 1024


@attrs.define(eq=False)
class Turns:
    """The part of the scheduler that says how many messages may follow."""

    ready: deque[Any]
    awake: bool = True
    began: float = 1e18  # so that the time is never up
    budget: int = BATCH
    left: Callable[[], int] = iter(COURSE[1:]).__length_hint__  # type: ignore[attr-defined]  # as there

    def more(self) -> int:
        if self.ready or monotonic() - self.began >= SLICE:
            return 0
        if self.budget < BATCH:
            self.budget *= 2
        return self.budget


@attrs.define(eq=False)
class Inbox:
    lanes: tuple[Lane, ...]
    scheduler: Turns
    work: Callable[[], int] = nothing
    batch: Callable[[], int] = nothing
    broke: Callable[[BaseException, Any], int] | None = None
    signals: deque[Any] = attrs.Factory(deque)
    idle: bool = False
    alert: bool = False
    over: bool = False
    current: Any = None
    _course: list[int] = COURSE

    PARKED: ClassVar = PARKED

    @property
    def by_priority(self) -> dict[Priority, Lane]:
        return {Priority.NORMAL: self.lanes[0]}

    def course(self, most: int, queued: int) -> list[int]:
        (lane,) = self.lanes
        if queued > lane.peak:  # noqa: PLR1730  # as in the library
            lane.peak = queued
        self._course = course = COURSE[: queued if queued < most else most]  # noqa: FURB136  # likewise
        return course

    def more(self) -> int:
        for lane in self.lanes:
            if len(lane.queue) > lane.peak:  # noqa: PLR1730  # as in the library
                lane.peak = len(lane.queue)
        return self.scheduler.more()

    async def breathe(self) -> int:
        self.scheduler.ready.append(self.work)
        await breathe
        return self.scheduler.budget


@attrs.define(eq=False)
class Part:
    _inbox: Inbox

    def broke(self, error: BaseException, message: Any) -> int:
        raise error

    def again(self) -> None:
        self._inbox.scheduler.ready.append(self._inbox.work)


@attrs.define(eq=False)
class Handoff:
    over: bool = False


@attrs.define(eq=False)
class Strand:
    _handoff: Handoff
    context: contextvars.Context
    task: asyncio.Future[None]


@attrs.define(eq=False)
class Ctx:
    """What a subsystem sends and receives by; its verbs are functions in slots."""

    send: Callable[..., Awaitable[bool]]
    try_send: Callable[..., bool]
    recv: Any = None


class Actor:
    """Its handlers do nothing: what they do is a step of its own."""

    def __init__(self) -> None:
        self.left = 10**9

    def handle(self, ctx: Any, message: Any) -> None:
        pass

    async def handle_async(self, ctx: Any, message: Any) -> None:
        pass


async def send(message: Any, priority: Any = None, overflow: Any = None) -> bool:
    return True


def try_send(message: Any, priority: Any = None, overflow: Any = None) -> bool:
    return True


async def recv() -> None:
    pass


@coroutine
def parks(parked: object) -> Any:
    """What serves an asynchronous Actor, without the serving."""
    while True:
        yield parked


async def lives(parked: object) -> None:
    """The coroutine around that."""
    await parks(parked)
