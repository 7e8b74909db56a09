"""The way from other threads into the event loop: what they leave there, and what they wait for."""

import asyncio
import enum
import inspect
import threading
from _thread import allocate_lock, get_ident
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from orchestra.errors import Closed
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


class Sleeper:
    """A thread that is woken when it is to wait no longer, though nothing has come.

    `bell` is that on which it sleeps for room, None while it does not; `cancelled` says that what would wait
    raises `Closed` at once.
    """

    __slots__ = ("bell", "cancelled", "subsystem")

    def __init__(self, subsystem: str) -> None:
        self.subsystem = subsystem
        self.bell: Bell | None = None
        self.cancelled = False

    def rouse(self) -> None:
        """Let it wait no longer, now and from now on."""
        self.cancelled = True
        if (bell := self.bell) is not None:
            bell.ring()

    def closed(self, message: Any) -> Closed:
        """The error for what would wait."""
        text = f"{self.subsystem!r} waits no longer: this life of it is to end"
        return Closed(text, message, self.subsystem)


class _State(enum.Enum):
    QUEUED = enum.auto()
    BEGUN = enum.auto()
    OVER = enum.auto()


class Call:
    """Work that another thread wants done in the loop, and its outcome.

    The work is a function; where it gives something to await, the outcome is that of the awaiting.
    """

    __slots__ = ("_bell", "_error", "_instead", "_lock", "_result", "_state", "_task", "_work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._bell = Bell()
        self._lock = allocate_lock()
        self._state = _State.QUEUED
        self._result: Any = None
        self._error: BaseException | None = None
        self._instead: BaseException | None = None
        self._task: asyncio.Task[Any] | None = None

    def begin(self) -> None:
        """Do the work; called in the loop."""
        with self._lock:
            if self._state is not _State.QUEUED:
                return
            self._state = _State.BEGUN
        try:
            result = self._work()
            if inspect.isawaitable(result):
                self._task = asyncio.ensure_future(_awaited(result))
                self._task.add_done_callback(self._finished)
            else:
                self._end(result, None)
        except BaseException as error:
            self._end(None, error)
            raise_soon(error)

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
        if self._task is not None:
            self._task.cancel()

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


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


class Door:
    """What other threads leave for the loop: many things for one wake-up of it.

    `closed` makes the error for what comes too late.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, closed: Callable[[], Closed]) -> None:
        self._loop = loop
        self._closed = closed
        self._thread = get_ident()
        self._left: deque[Callable[[], object]] = deque()
        self._poked = False
        self._lock = allocate_lock()
        self._calls: set[Call] = set()
        self.sleepers: dict[int, Sleeper] = {}
        """The threads of subsystems, by number."""
        self._ended = False

    @property
    def here(self) -> bool:
        """Whether the running thread is that of the loop."""
        return get_ident() == self._thread

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
            self._poked = True
            try:
                self._loop.call_soon_threadsafe(self.open)
            except RuntimeError:
                self._left.clear()  # the loop is closed

    def open(self) -> None:
        """Do what was left so far; called in the loop."""
        self._poked = False
        left = self._left
        while left:
            left.popleft()()

    def do(self, work: Callable[[], Any], timeout: float | None = None, began: Any = None) -> Any:
        """Have `work` done in the loop and wait for it, and for what it awaits; give its result.

        Raises what it raises; `Closed` when the orchestra or the loop has ended meanwhile; TimeoutError after
        `timeout` seconds: then the work was cancelled, and it had no result. `began` is called with the call
        before it begins, so that somebody can free it.
        """
        call = Call(work)
        with self._lock:
            if self._ended:
                raise self._closed()
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
            call.withdraw(self._closed())
        self.open()

    def _wait(self, call: Call, timeout: float | None) -> Any:
        due = None if timeout is None else monotonic() + timeout
        late = False
        while not call.over:
            left = HEARTBEAT if due is None or late else due - monotonic()
            if left > 0:
                call.sleep(min(left, HEARTBEAT))
            elif not call.withdraw(TimeoutError()):
                late = True
                self.post(call.cancel)
            if self._loop.is_closed() and not call.over:
                raise self._closed()
        try:
            return call.outcome()
        except asyncio.CancelledError:
            if late:
                raise TimeoutError from None
            raise self._closed() from None
