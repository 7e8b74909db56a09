"""The way from other threads into the event loop: what they leave there, and what they wait for."""

import asyncio
import contextvars
import enum
import inspect
import threading
from _thread import allocate_lock, get_ident
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from orchestra.errors import Closed
from orchestra.runtime.forking import renew
from orchestra.runtime.telling import raise_soon

HEARTBEAT = 0.5
"""Seconds after which a thread that waits for the loop looks whether the loop is still there."""


class Bell:
    """A thread sleeps on it until somebody rings. Ringing twice before it wakes is as ringing once."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()

    def ring(self) -> None:
        """Wake who waits, or who will wait next."""
        with suppress(RuntimeError):  # it has rung already
            self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until it rings, or until `timeout` seconds are over: then the answer is False."""
        return self._lock.acquire(timeout=-1 if timeout is None else max(timeout, 0.0))


class _State(enum.Enum):
    QUEUED = enum.auto()
    BEGUN = enum.auto()
    OVER = enum.auto()


class Call:
    """Work that another thread wants done in the loop, and its outcome.

    The work is a function; where it gives something to await, the outcome is that of the awaiting. Both run
    in a copy of the context variables of that thread. `given` is the message it is about, if there is one,
    and `task` the one that awaits.
    """

    __slots__ = (
        "_bell",
        "_cancelled",
        "_context",
        "_door",
        "_error",
        "_instead",
        "_lock",
        "_result",
        "_state",
        "_work",
        "given",
        "task",
    )

    def __init__(self, door: "Door", work: Callable[[], Any], given: Any) -> None:
        self.given = given
        self.task: asyncio.Task[Any] | None = None
        self._door = door
        self._work = work
        self._context = contextvars.copy_context()
        self._bell = Bell()
        self._lock = allocate_lock()
        self._state = _State.QUEUED
        self._result: Any = None
        self._error: BaseException | None = None
        self._instead: BaseException | None = None
        self._cancelled = False

    def begin(self) -> None:
        """Do the work; called in the loop."""
        with self._lock:
            if self._state is not _State.QUEUED:
                return
            self._state = _State.BEGUN
        try:
            result = self._context.run(self._work)
            if inspect.isawaitable(result):
                waiting = asyncio.get_running_loop().create_task(self._await(result), context=self._context)
                waiting.add_done_callback(self._finished)
            else:
                self._end(result, None)
        except BaseException as error:
            self._end(None, error)
            raise_soon(error)

    def free(self, error: BaseException) -> None:
        """Let the waiting thread go with an error, unless the work comes to its end all the same.

        Work that has not begun is not done; what is awaited is cancelled.
        """
        if not self.withdraw(error):
            self._door.post(partial(self.cancel, error))

    def withdraw(self, error: BaseException) -> bool:
        """End work that has not begun, with an error; False when it runs: only the loop can end it then."""
        with self._lock:
            if self._state is _State.BEGUN:
                return False
            queued, self._state = self._state is _State.QUEUED, _State.OVER
            if queued:
                self._error = error
        self._bell.ring()
        return True

    def cancel(self, error: BaseException | None = None) -> None:
        """Cancel what is awaited; called in the loop. When that ends it, the thread is told `error`."""
        self._instead = error
        self._cancelled = True
        if self.task is not None:
            self.task.cancel()

    @property
    def under_way(self) -> bool:
        """Whether the loop has begun it and there is no outcome."""
        return self._state is _State.BEGUN

    @property
    def over(self) -> bool:
        """Whether there is an outcome."""
        return self._state is _State.OVER

    def sleep(self, timeout: float) -> None:
        """Sleep until there may be an outcome."""
        self._bell.wait(timeout)

    def outcome(self) -> Any:
        """The result, or raise the error."""
        if self._error is not None:
            raise self._error
        return self._result

    async def _await(self, awaitable: Any) -> Any:
        self.task = asyncio.current_task()
        if self._cancelled:  # before this task had begun
            if inspect.iscoroutine(awaitable):
                awaitable.close()
            raise asyncio.CancelledError
        return await awaitable

    def _finished(self, task: "asyncio.Task[Any]") -> None:
        if task.cancelled():
            self._end(None, self._instead or asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._end(None, error)
        else:
            self._end(task.result(), None)

    def _end(self, result: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._state is _State.OVER:
                return
            self._result, self._error, self._state = result, error, _State.OVER
        self._bell.ring()


class Door:
    """What other threads leave for the loop: many things for one wake-up of it.

    `closed` makes the error for what comes too late, with the message it is about.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, closed: Callable[[Any], Closed]) -> None:
        self._loop = loop
        self._closed = closed
        self.thread = get_ident()
        self._left: deque[Callable[[], object]] = deque()
        self._poked = False
        self._lock = allocate_lock()
        self._calls: set[Call] = set()
        self._ended = False

    @property
    def here(self) -> bool:
        """Whether the running thread is that of the loop."""
        return get_ident() == self.thread

    def check(self, name: str) -> None:
        """Refuse every thread but that of the loop, for the context of a subsystem."""
        if not self.here:
            raise RuntimeError(
                f"the context of {name!r} belongs to the thread of its event loop, and this is the thread "
                f"{threading.current_thread().name!r}: there, use running.threadsafe()"
            )

    @property
    def who(self) -> "asyncio.Task[Any] | int | None":
        """The running task, in the loop; in another thread its number."""
        return asyncio.current_task() if self.here else get_ident()

    def post(self, work: Callable[[], object]) -> None:
        """Let the loop do something at its next turn. Once the loop is closed nothing comes of it."""
        self._left.append(work)
        if not self._poked:
            self._poke()

    def open(self) -> None:
        """Do what was left so far; called in the loop. What raises does not keep back the rest."""
        self._poked = False
        left = self._left
        try:
            while left:
                left.popleft()()
        finally:
            if left:
                self._poke()

    def _poke(self) -> None:
        self._poked = True
        try:
            self._loop.call_soon_threadsafe(self.open)
        except RuntimeError:
            self._left.clear()  # the loop is closed

    def do(
        self,
        work: Callable[[], Any],
        given: Any = None,
        timeout: float | None = None,
        began: Callable[[Call], object] | None = None,
    ) -> Any:
        """Have `work` done in the loop and wait for it, and for what it awaits; give its result.

        Raises what it raises; `Closed` with `given` when the orchestra or the loop has ended meanwhile;
        TimeoutError after `timeout` seconds: then the work was cancelled, and it had no result. `began` is
        called with the call before it begins, so that somebody can free it.
        """
        call = Call(self, work, given)
        with self._lock:
            if self._ended:
                raise self._closed(given)
            self._calls.add(call)
        try:
            if began is not None:
                began(call)
            self.post(call.begin)
            return self._wait(call, timeout)
        finally:
            self._calls.discard(call)

    def close(self) -> None:
        """The orchestra has ended: do what was left, and free every call that has not begun."""
        with self._lock:
            self._ended = True
            calls = list(self._calls)
        for call in calls:
            call.withdraw(self._closed(call.given))
        self.open()

    def disown(self) -> None:
        """In a forked child: nobody opens it any more."""
        renew(self._lock)
        self._ended = self._poked = True
        self._left.clear()

    def _wait(self, call: Call, timeout: float | None) -> Any:
        due = None if timeout is None else monotonic() + timeout
        late: TimeoutError | None = None
        while not call.over:
            left = HEARTBEAT if due is None or late else due - monotonic()
            if left > 0:
                call.sleep(min(left, HEARTBEAT))
            else:
                late = TimeoutError(f"the event loop had not done it within {timeout:g} s")
                if not call.withdraw(late):
                    self.post(call.cancel)
            if self._loop.is_closed() and not call.over:
                raise self._closed(call.given)
        try:
            return call.outcome()
        except asyncio.CancelledError:
            raise late or self._closed(call.given) from None
