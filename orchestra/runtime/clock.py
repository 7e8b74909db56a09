"""The time that timers go by: seconds that only ever go forward, whatever is done to the wall clock."""

import asyncio
import math
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol


class Handle(Protocol):
    """A call that was asked for."""

    def cancel(self) -> object:
        """Do not make the call; nothing happens when it was made or cancelled before."""


class Clock(Protocol):
    """What tells the time and calls when it has come. A test may put one in place that it advances itself."""

    def time(self) -> float:
        """Seconds since some moment; never less than before."""
        ...

    def call_later(self, delay: float, function: Callable[[], object], /) -> Handle:
        """Call a function in the event loop after `delay` seconds, 0 or more."""
        ...


class LoopClock:
    """The clock of an event loop. On asyncio's own loops it counts as `time.monotonic()` does.

    The times of other loops (uvloop) are whole milliseconds, and a call may come before its time. There the
    clock is `time.monotonic()` itself, and a call that comes early is put off again.
    """

    __slots__ = ("_is_fine", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_fine = isinstance(loop, asyncio.BaseEventLoop)

    def time(self) -> float:
        return self._loop.time() if self._is_fine else monotonic()

    def call_later(self, delay: float, function: Callable[[], object], /) -> Handle:
        if self._is_fine:
            return self._loop.call_later(delay, function)
        return _PutOff(self._loop, monotonic() + delay, function)


class _PutOff:
    """A call by a loop that counts in milliseconds: it is set again as often as it comes early."""

    __slots__ = ("_function", "_handle", "_loop", "_when")

    def __init__(self, loop: asyncio.AbstractEventLoop, when: float, function: Callable[[], object]) -> None:
        self._loop = loop
        self._when = when
        self._function = function
        self._handle = self._set()

    def cancel(self) -> None:
        self._handle.cancel()

    def _set(self) -> asyncio.TimerHandle:
        milliseconds = max(math.ceil((self._when - monotonic()) * 1000), 1)
        return self._loop.call_later(milliseconds / 1000, self._look)

    def _look(self) -> Any:
        if monotonic() < self._when:
            self._handle = self._set()
        else:
            self._function()


def seconds(what: str, given: Any) -> float:
    """A finite number of seconds, after checking that it is one."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"{what} is {given!r}; it is a number of seconds")
    try:
        number = float(given)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{what} is {number:g} s; it is a finite number of seconds")
    return number


def limit(what: str, given: Any) -> float | None:
    """A limit of time, after checking that it is one: 0 seconds or more; None for math.inf."""
    if isinstance(given, float) and given == math.inf:
        return None
    number = seconds(what, given)
    if number < 0:
        raise ValueError(f"{what} is {number:g} s; it is 0 seconds or more")
    return number
