"""The ready-queue: what has work is run in turn, within one callback of the event loop.

A callback ends when nothing is ready or its slice of time is over, so timers and sockets of the
loop are served however busy the subsystems are.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from orchestra.runtime.telling import wrong_thread

if TYPE_CHECKING:
    from orchestra.runtime.strand import Strand

Step = Callable[[], int]
"""It handles messages, up to a budget, and returns how many more than one; 0 or less where not more."""

SLICE = 0.002
"""Seconds after which a callback gives the loop back."""

BUDGET = 64
"""Messages between two looks at the clock, at most: that many while handlers are quick."""

COURSE: Final = [*range(1, BUDGET + 1)]
"""The numbers of the messages of a budget. A loop over a copy of it ends sooner when that is shortened."""


class Scheduler:
    """Runs steps in the order in which they became ready; those added for later when no other one is.

    A step that has more to do than a budget of messages puts itself into `ready` again. When as many messages
    were handled the clock is looked at: while there is time left the budget doubles, and after a callback
    that took twice its slice it begins anew, with one message.
    """

    __slots__ = (
        "_course",
        "_later",
        "_loop",
        "awake",
        "began",
        "budget",
        "left",
        "on_begin",
        "on_rest",
        "ready",
        "strands",
        "thread",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.thread = get_ident()
        self.budget = 1
        self._course: list[int] = []
        self.left: Callable[[], int] = self._course.__len__
        """Gives how many messages may follow that of the present step until the clock is looked at."""
        self.ready: deque[Step] = deque()
        self._later: deque[Step] = deque()
        self.awake = False
        self.began = 0.0
        """When the present turn began, on the monotonic clock; 0.0 between turns."""
        self.on_begin: Callable[[], None] | None = None
        """Called once, and forgotten, when the next turn has begun."""
        self.on_rest: Callable[[], None] | None = None
        self.strands: dict[asyncio.Task[Any] | None, Strand] = {}
        """Those that serve by a coroutine, by their Tasks."""

    def add(self, step: Step) -> None:
        """Run a step at its turn."""
        self.ready.append(step)
        if not self.awake:
            self.rise()

    def add_later(self, step: Step) -> None:
        """Run a step when nothing else is ready, at the latest in the next callback."""
        self._later.append(step)
        if not self.awake:
            self.rise()

    def discard(self, step: Step) -> None:
        """Do not run a step that was added and has not had its turn."""
        if step in self.ready:
            self.ready.remove(step)

    def rise(self) -> None:
        """Ask the loop for a callback; called once when the first step becomes ready.

        Raises RuntimeError in another thread than the loop's, where no context of the loop is to be used.
        What was put is handled all the same.
        """
        self.awake = True
        if get_ident() != self.thread:
            self._loop.call_soon_threadsafe(self._turn)
            raise wrong_thread(". The message was sent")
        self._loop.call_soon(self._turn)

    def more(self) -> int:
        """How many messages a step whose budget is spent may handle with no pause.

        That is 0 when others are ready, or its slice of time is over, or it runs outside a turn.
        """
        if self.ready or monotonic() - self.began >= SLICE:
            return 0
        self._course.clear()  # the turn is to look at the clock after this step
        if self.budget < BUDGET:
            self.budget *= 2
        return self.budget

    def begins(self) -> None:
        """Tell who waits for a turn to begin."""
        told, self.on_begin = self.on_begin, None
        if told is not None:
            told()

    def poke(self) -> None:
        """Something came to rest outside a turn: look whether everything rests."""
        if self.on_rest is not None and not self.awake:
            self.awake = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        ready = self.ready
        following = ready.popleft
        began = self.began = monotonic()
        if self.on_begin is not None:
            self.begins()
        self._recall()
        try:
            while ready or self._recall():
                course = self._course = COURSE[: self.budget]
                steps = iter(course)
                self.left = steps.__length_hint__  # type: ignore[attr-defined]  # that of a list has it
                for _ in steps:
                    if (more := following()()) > 0:
                        del course[-more:]
                    if not (ready or self._recall()):
                        break
                else:
                    spent = monotonic() - began
                    if spent >= SLICE:
                        if spent >= 2 * SLICE:
                            self.budget = 1
                        break
                    if self.budget < BUDGET:
                        self.budget *= 2
        finally:
            self.began = 0.0
            self.awake = bool(ready or self._later)
            if self.awake:
                self._loop.call_soon(self._turn)
        if self.on_rest is not None and not self.awake:
            self.on_rest()

    def _recall(self) -> bool:
        """Make those ready that stood back; False when there are none."""
        self.ready.extend(self._later)
        self._later.clear()
        return bool(self.ready)
