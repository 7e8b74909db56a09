"""The orchestra's own threads for functions that block: few, made when they are needed, and daemons.

asyncio's default executor is left alone, so that nothing here can use it up; and no thread of this pool keeps
the interpreter from ending, as those of `concurrent.futures` do.
"""

import asyncio
import contextvars
import inspect
import os
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from orchestra.errors import Closed
from orchestra.messages import shown
from orchestra.runtime.threads.door import Bell, Door
from orchestra.runtime.threads.frames import place_of


def usual_size() -> int:
    """How many threads a pool has at most, unless it is told otherwise."""
    return min(32, (os.cpu_count() or 1) + 4)


@attrs.define(eq=False)
class _Job:
    owner: str
    given: Callable[..., Any]
    """The user's own function; `function` calls it with its arguments."""
    function: Callable[[], Any]
    done: "asyncio.Future[None]"
    result: Any = None
    error: BaseException | None = None


class Pool:
    """Runs functions in at most `size` threads; those that find none free wait in order.

    It belongs to the loop; only `_work` runs in the threads. `idle` is called when the last function that ran
    or waited is done.
    """

    def __init__(
        self, size: int, door: Door, closed: Callable[[], Closed], idle: Callable[[], object]
    ) -> None:
        self._size = size
        self._door = door
        self._closed = closed
        self._idle = idle
        self._waiting: deque[_Job] = deque()
        self._free: list[_Hand] = []
        self._hands: list[_Hand] = []
        self._running: dict[_Hand, _Job] = {}
        self._ended = False

    async def run(self, owner: str, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Any:
        """Run a function for a subsystem; see `Context.run_blocking`."""
        check_function(function)
        if self._ended:
            raise self._closed()
        run = partial(contextvars.copy_context().run, function, *args, **keywords)
        job = _Job(owner, function, run, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        try:
            self._begin()
            await job.done
        except BaseException:
            if job in self._waiting:
                self._waiting.remove(job)
            raise
        if job.error is None:
            return job.result
        try:
            raise _passable(job.error)
        finally:
            del job  # the error refers to this frame

    @property
    def busy(self) -> bool:
        """Whether a function runs or waits for its turn."""
        return bool(self._running or self._waiting)

    def stragglers(self) -> list[tuple[str, str]]:
        """The owners of the functions that run, and where these stand."""
        return [(job.owner, place_of(hand.thread, job.given)) for hand, job in self._running.items()]

    def end(self) -> None:
        """Take nothing more, and let the threads end: idle ones now, the others after their function."""
        self._ended = True
        for hand in self._free:
            hand.give(None)
        for hand in self._free:
            hand.thread.join(1.0)
        self._free.clear()

    def _begin(self) -> None:
        while self._waiting and (self._free or len(self._hands) < self._size):
            hand = self._free.pop() if self._free else self._hire()
            job = self._waiting.popleft()
            self._running[hand] = job
            hand.give(job)

    def _hire(self) -> "_Hand":
        hand = _Hand(f"orchestra:pool-{len(self._hands) + 1}", self._report)
        self._hands.append(hand)
        return hand

    def _report(self, hand: "_Hand", job: _Job) -> bool:
        """Called in the thread: whether that is to go on."""
        self._door.post(partial(self._finished, hand, job))
        return not self._ended

    def _finished(self, hand: "_Hand", job: _Job) -> None:
        del self._running[hand]
        if not job.done.done():
            job.done.set_result(None)
        if self._ended:
            hand.give(None)
            return
        self._free.append(hand)
        self._begin()
        if not self.busy:
            self._idle()


def check_function(function: Any) -> None:
    """Refuse what cannot be called, and what would only give something to await; a coroutine is closed."""
    if inspect.iscoroutine(function):
        function.close()
    elif inspect.iscoroutinefunction(function):
        raise TypeError(
            f"run_blocking takes a plain function, and {shown(function)} is asynchronous: await it"
        )
    if not callable(function):
        raise TypeError(
            f"run_blocking takes a function and its arguments, run_blocking(time.sleep, 1), not {function!r}"
        )


class _Hand:
    """One thread of a pool."""

    def __init__(self, name: str, report: "Callable[[_Hand, _Job], bool]") -> None:
        self._report = report
        self._bell = Bell()
        self._job: _Job | None = None
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.thread.start()

    def give(self, job: _Job | None) -> None:
        """Hand over the next job, when the last one was reported; None ends the thread."""
        self._job = job
        self._bell.ring()

    def _work(self) -> None:
        while True:
            self._bell.wait()
            job, self._job = self._job, None
            if job is None:
                return
            try:
                job.result = job.function()
            except BaseException as error:
                job.error = error
            if not self._report(self, job):
                return
            del job


def _passable(error: BaseException) -> BaseException:
    """The error; a StopIteration, which no coroutine can raise, within a RuntimeError."""
    if not isinstance(error, StopIteration):
        return error
    passed = RuntimeError(f"the function raised StopIteration({error.value!r})")
    passed.__cause__ = error
    return passed
