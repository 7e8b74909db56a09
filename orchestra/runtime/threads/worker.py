"""The thread of a blocking subsystem: it does one call after the other for the subsystem's strand."""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from orchestra.errors import Closed
from orchestra.runtime.threads.door import Bell
from orchestra.runtime.threads.frames import place_of
from orchestra.runtime.threads.home import Home

Outcome: TypeAlias = "asyncio.Future[tuple[Any, BaseException | None]]"


class Worker:
    """A thread that begins with the first call and ends with `end`; the next call begins another one.

    All calls of one thread run in one copy of the context variables of who made the first. `calling` says
    that a call is not over.
    """

    __slots__ = ("_abandoned", "_bell", "_home", "_jobs", "_thread", "calling")

    def __init__(self, home: Home) -> None:
        self.calling = False
        self._home = home
        self._jobs: deque[tuple[Callable[[], Any], Outcome] | None] = deque()
        self._bell = Bell()
        self._thread: threading.Thread | None = None
        self._abandoned: asyncio.Future[None] | None = None

    async def call(self, function: Callable[[], Any]) -> Any:
        """Run a function in the thread; give its result, or raise its error.

        A thread cannot be cancelled: when the caller is, what would wait in the thread raises `Closed`, until
        the function has ended; that is waited for all the same, until the thread is abandoned.
        """
        loop = asyncio.get_running_loop()
        if self._abandoned is None:
            self._abandoned = loop.create_future()
        abandoned = self._abandoned
        if abandoned.done():
            raise asyncio.CancelledError
        outcome: Outcome = loop.create_future()
        either: tuple[asyncio.Future[Any], ...] = outcome, abandoned
        if self._thread is None:
            self._thread = self._begin(loop)
        self._jobs.append((function, outcome))
        self.calling = True
        self._bell.ring()
        cancelled: asyncio.CancelledError | None = None
        while not outcome.done():
            if abandoned.done():
                raise cancelled or asyncio.CancelledError
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as told:
                cancelled = told
                self._home.cancel()
        self._home.cancelled = self.calling = False
        result, error = outcome.result()
        if cancelled is not None and isinstance(error, Closed):
            raise cancelled
        if error is not None:
            raise error
        return result

    def calm(self) -> None:
        """The cancellation is over: what waits in the thread may do so again."""
        self._home.cancelled = False

    def abandon(self) -> None:
        """Wait for the thread no longer: it ends when its function returns, and keeps nothing from ending."""
        if self._abandoned is not None and not self._abandoned.done():
            self._abandoned.set_result(None)
            self._jobs.append(None)
            self._bell.ring()

    def end(self) -> None:
        """End the thread, which does nothing at the time, and see it off."""
        if self._thread is None or (self._abandoned is not None and self._abandoned.done()):
            return
        self._jobs.append(None)
        self._bell.ring()
        self._thread.join(1.0)
        self._thread = None
        self._home.leave()

    def where(self) -> str | None:
        """Where the thread stands in its source; None when there is none."""
        return None if self._thread is None else place_of(self._thread)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> threading.Thread:
        run = contextvars.copy_context().run
        thread = threading.Thread(
            target=run, args=(self._work, loop), name=self._home.thread_name, daemon=True
        )
        thread.start()
        return thread

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        self._home.enter()
        while True:
            self._bell.wait()
            while self._jobs:
                job = self._jobs.popleft()
                if job is None:
                    return
                function, outcome = job
                done = _done(function)
                try:
                    loop.call_soon_threadsafe(_settle, outcome, done)
                except RuntimeError:
                    return  # the loop is closed: nobody waits for it
                del job, function, outcome, done


def _done(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except BaseException as error:
        return None, error


def _settle(outcome: Outcome, done: tuple[Any, BaseException | None]) -> None:
    if not outcome.done():
        outcome.set_result(done)
