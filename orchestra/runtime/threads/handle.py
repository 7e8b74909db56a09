"""A handle of a running orchestra for threads that are not its own."""

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestra.errors import Closed
from orchestra.overflow import Overflow
from orchestra.priority import Priority
from orchestra.runtime.threads.door import Door

if TYPE_CHECKING:
    from orchestra.runtime.running import Running


class Threadsafe:
    """What `running.threadsafe()` gives: the verbs of `Running`, synchronous, for any thread but the loop's.

    Each verb runs in the loop and waits for its outcome, so it takes a turn of the loop and is for what comes
    now and then; who sends much is better a subsystem with `blocking=True`. In the thread of the loop, which
    would wait for itself, each raises RuntimeError. When the orchestra or the loop has ended, also meanwhile,
    they raise `Closed`. After `timeout` seconds (None: no limit) they raise TimeoutError: what was to be done
    has not happened then, and does not happen later.
    """

    def __init__(self, running: "Running", door: Door, closed: Callable[[Any], Closed]) -> None:
        self._running = running
        self._door = door
        self._closed = closed

    def send(
        self,
        message: Any,
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
        timeout: float | None = None,
    ) -> bool:
        """Send a message from outside, as `Running.send`, sleeping where a lane has no room."""
        send = partial(self._running.send, message, priority=priority, overflow=overflow)
        return bool(self._do(send, timeout, message))

    def try_send(
        self, message: Any, *, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send a message without waiting for room, as `Running.try_send`."""
        send = partial(self._running.try_send, message, priority=priority, overflow=overflow)
        return bool(self._do(send, None, message))

    def broadcast(self, signal: Any, timeout: float = 10.0) -> None:
        """Broadcast a signal, as `Running.broadcast`."""
        self._do(partial(self._running.broadcast, signal, timeout), None, signal)

    def event(self, event: Any, *, timeout: float | None = None) -> None:
        """Queue an event, as `Running.event`."""
        self._do(partial(self._running.event, event), timeout, event)

    def drain(self, timeout: float | None = None) -> None:
        """Take nothing more from outside, and wait for the end, as `Running.drain`."""
        self._end(partial(self._running.drain, timeout))

    def stop(self, timeout: float = 10.0) -> None:
        """Stop, and wait for the end, as `Running.stop`."""
        self._end(partial(self._running.stop, timeout))

    def __repr__(self) -> str:
        return f"<{self._running!r} for other threads>"

    def _do(self, work: Callable[[], Any], timeout: float | None, given: Any) -> Any:
        if self._door.here:
            raise RuntimeError(
                f"this handle is for other threads, and {threading.current_thread().name!r} is that of the "
                "event loop, which would wait for itself: use `running` here"
            )
        try:
            return self._door.do(work, None if timeout == math.inf else timeout)
        except Closed as closed:
            if closed.message is None:
                raise self._closed(given) from closed.__cause__
            raise

    def _end(self, work: Callable[[], Any]) -> None:
        with suppress(Closed):  # it has ended already
            self._do(work, None, None)
