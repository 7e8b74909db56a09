"""A coroutine that is stepped inline while it only waits for its inbox.

Waking a Task costs several microseconds, because the event loop stands in between. A strand's
coroutine is long-lived and mostly waits for one thing, its inbox; so it yields `PARKED` then, and
the scheduler steps it on directly. When it really suspends it yields an asyncio future, and then
the strand's own Task drives the same coroutine, from that future until it parks again. To the
coroutine there is no difference: `asyncio.current_task()` is the strand's Task throughout.
"""

import asyncio
import contextvars
import sys
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from time import monotonic
from typing import Any, Final

from orchestra.runtime.scheduler import BUDGET, Scheduler, Step

PARKED: Final = object()

_TAKES_BACK = sys.version_info >= (3, 13)
"""Whether `Task.uncancel` takes back a cancellation that the coroutine has not seen yet."""


BREATHING: Final = object()


class _Park:
    """Awaiting it yields `PARKED` once. A tuple's iterator does that with no frame of its own."""

    __slots__ = ()
    __await__ = (PARKED,).__iter__


class _Breathe:
    """Awaiting it yields `BREATHING` once."""

    __slots__ = ()
    __await__ = (BREATHING,).__iter__


park: Final[Any] = _Park()
"""`await park` waits until the strand is stepped again; only the strand's own coroutine may do so."""

breathe: Final[Any] = _Breathe()
"""As `park`, after a whole budget of messages: the scheduler is to look at the clock."""


@types.coroutine
def _relay(awaited: Any) -> Generator[Any, Any, None]:
    try:
        yield awaited
    finally:
        del awaited  # an error that it gives has this frame in its traceback


class _Handoff(asyncio.Future[None]):
    """What the Task of a strand waits for while that is stepped. `over` is `done()`, at a fifth of it."""

    __slots__ = ("over",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self.over = False

    def cancel(self, msg: Any | None = None) -> bool:
        self.over = True
        return super().cancel(msg)

    def give(self) -> None:
        """Let the Task go on."""
        if not self.over:
            self.over = True
            self.set_result(None)


class Strand:
    """One coroutine, its Task and its context variables.

    `scheduler` steps it, and is told when its Task steps it and when that has come to park.
    The Task ends when the coroutine does, with the coroutine's result or error.
    """

    __slots__ = (
        "_awaited",
        "_coroutine",
        "_handoff",
        "_loop",
        "_outcome",
        "_scheduler",
        "_step",
        "_thrown",
        "_waits",
        "context",
        "task",
    )

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, None],
        loop: asyncio.AbstractEventLoop,
        name: str,
        scheduler: Scheduler,
    ) -> None:
        context = self.context = contextvars.copy_context()
        self._loop = loop
        self._coroutine = coroutine
        self._scheduler = scheduler
        self._awaited: Any = PARKED
        self._thrown: BaseException | None = None
        self._outcome: BaseException | None = None
        self._handoff = _Handoff(loop)
        self.task: asyncio.Task[None] = loop.create_task(self._drive(), name=name, context=context)
        self._step: Step | None = None
        self._waits = False

    @property
    def step(self) -> Step:
        """What the ready-queue of a scheduler holds, from its first use until it is let go."""
        if self._step is None:
            self._step = _stepper(self, self._coroutine, self._loop)
        return self._step

    def let_go(self) -> None:
        """It is not to be stepped for long: this gives back the memory for that."""
        self._step = None

    async def rest(self) -> None:
        """Park until `resume` is called; only its own coroutine may. It may also end for no reason."""
        self._waits = True
        try:
            await park
        finally:
            self._waits = False

    def resume(self) -> None:
        """Let it go on when nothing else is ready, if it is in `rest`.

        A sender that went on as soon as there is any room would change with the receiver each few messages.
        """
        if self._waits:
            self._waits = False
            self._scheduler.add_later(self.step)

    def where(self) -> str:
        """The place in the source where the coroutine is suspended; see `place_of`."""
        return place_of(self._coroutine)

    def suspended(self, awaited: Any, outcome: BaseException | None) -> None:
        """A step came to something other than parking: the Task goes on from there."""
        self._awaited = awaited
        self._outcome = outcome
        self._handoff.give()

    async def _drive(self) -> None:
        while True:
            try:
                await self._handoff
            except asyncio.CancelledError as cancelled:
                self._cancel(cancelled)
            if isinstance(self._outcome, StopIteration):
                return
            if self._outcome is not None:
                raise self._outcome
            if not await self._take_over():
                return
            self._handoff = _Handoff(self._loop)
            self._scheduler.poke()

    def _cancel(self, cancelled: asyncio.CancelledError) -> None:
        """Cancel what is awaited, so that it ends by that, as in a plain Task; else the coroutine itself."""
        if _TAKES_BACK and not self.task.cancelling():
            return
        cancel = getattr(self._awaited, "cancel", None)
        if self._outcome is not None or cancel is None or not cancel(*cancelled.args):
            self._thrown = cancelled

    async def _take_over(self) -> bool:
        """Drive the coroutine as a plain Task would, until it parks (True) or ends (False).

        What it has awaited, and the errors of that, are let go of at once: like a plain Task it keeps nothing
        alive that is done with, and leaves no circles for the garbage collector.
        """
        while True:
            awaited, self._awaited = self._awaited, PARKED
            if self._thrown is None and awaited is not PARKED:
                try:
                    await _relay(awaited)
                except BaseException as raised:
                    self._thrown = raised
            del awaited
            self._scheduler.began = monotonic()
            if self._scheduler.on_begin is not None:
                self._scheduler.begins()
            try:
                self._awaited = self._go_on()
            except StopIteration:
                return False
            finally:
                self._scheduler.began = 0.0
            if self._awaited is PARKED or self._awaited is BREATHING:
                self._awaited = PARKED
                return True

    def _go_on(self) -> Any:
        """Let the coroutine run to its next suspension; give what it awaits there."""
        if self._thrown is None:
            return self._coroutine.send(None)
        thrown, self._thrown = self._thrown, None
        try:
            return self._coroutine.throw(thrown)
        finally:
            del thrown


def place_of(coroutine: Any) -> str:
    """The place in the source where a coroutine is suspended: file, line, function.

    It is the innermost one that belongs neither to this library nor to asyncio, where there is one.
    """
    frames = list(_frames_of(coroutine))
    if not frames:
        return "its end"
    frame = next((frame for frame in reversed(frames) if not _is_inside(frame)), frames[-1])
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"


def _frames_of(awaited: Any) -> Iterator[types.FrameType]:
    """The frames of a coroutine or generator and of what it awaits, outermost first."""
    while awaited is not None:
        for kind, following in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
            if hasattr(awaited, following):
                frame = getattr(awaited, f"{kind}_frame")
                if frame is not None:
                    yield frame
                awaited = getattr(awaited, following)
                break
        else:
            return


def _is_inside(frame: types.FrameType) -> bool:
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package in {"asyncio", "orchestra"} or frame.f_code.co_filename.startswith("<orchestra generated ")


def _stepper(strand: Strand, coroutine: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> Step:
    """What the ready-queue holds for a strand: a function that runs the coroutine until it suspends."""
    enter, leave = asyncio._enter_task, asyncio._leave_task
    run: Callable[..., Any] = strand.context.run
    send, task = coroutine.send, strand.task

    def step() -> int:
        if strand._handoff.over:
            return 0
        enter(loop, task)
        try:
            awaited = run(send, None)
        except BaseException as error:
            leave(loop, task)
            strand.suspended(None, error)
            return 0
        leave(loop, task)
        if awaited is not PARKED:
            if awaited is BREATHING:
                return BUDGET
            strand.suspended(awaited, None)
        return 0

    return step
