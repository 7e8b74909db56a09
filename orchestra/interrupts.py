"""What `run` does about SIGINT and SIGTERM: the first stops the orchestra, the second ends the process."""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

SAME_MOMENT = 0.15
"""Seconds in which the same signal again is taken for the first one, sent twice."""

logger = logging.getLogger("orchestra.run")


@contextmanager
def interrupts(
    loop: asyncio.AbstractEventLoop, stop: Callable[[], None], timeout: float
) -> Generator[None, None, None]:
    """Call `stop` in the loop at the first SIGINT or SIGTERM, and leave the second to the system.

    `timeout` is the limit of the stop, for the log. The handlers are plain ones, not the loop's: the second
    signal must work while a handler blocks the loop. Outside the main thread signals are left alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def first(number: int, frame: FrameType | None) -> None:
        until = monotonic() + SAME_MOMENT

        def again(number: int, frame: FrameType | None) -> None:
            if monotonic() >= until:
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)

        for each in before:
            signal.signal(each, again if each == number else signal.SIG_DFL)
        if not loop.is_closed():
            loop.call_soon_threadsafe(begin, number, again)

    def begin(number: int, again: Callable[[int, FrameType | None], None]) -> None:
        name = signal.Signals(number).name
        logger.info("%s: stopping%s; a second signal ends the process at once", name, _within(timeout))
        loop.call_later(SAME_MOMENT, leave_to_the_system, number, again)
        stop()

    def leave_to_the_system(number: int, again: Callable[[int, FrameType | None], None]) -> None:
        """So that the second signal works within a long call of C code, too."""
        if signal.getsignal(number) is again:
            signal.signal(number, signal.SIG_DFL)

    before = {each: signal.signal(each, first) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _within(timeout: float) -> str:
    return "" if timeout == float("inf") else f" within {timeout:g} s"
