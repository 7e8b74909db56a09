"""A handle of a running orchestra for threads that are not its own."""

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from orchestra.errors import Closed
from orchestra.overflow import Overflow
from orchestra.priority import Priority
from orchestra.reply import Reply
from orchestra.runtime.clock import seconds
from orchestra.runtime.threads.door import Door

if TYPE_CHECKING:
    from orchestra.runtime.running import Running

R = TypeVar("R")


class Threadsafe:
    """What `running.threadsafe()` gives: the verbs of `Running`, synchronous, for any thread but the loop's.

    Each verb runs in the loop and waits for its outcome, so it takes a turn of the loop and is for what comes
    now and then; who sends much is better a subsystem with `blocking=True`. In the thread of the loop, which
    would wait for itself, each raises RuntimeError. When the orchestra or the loop has ended, also meanwhile,
    they raise `Closed`. After `timeout` seconds (None: no limit) they raise TimeoutError: what was to be done
    has not happened then, and does not happen later.
    """

    def __init__(self, running: "Running", door: Door) -> None:
        self._running = running
        self._door = door

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

    @overload
    def ask(
        self,
        make: Callable[[Reply[R]], Any],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> R: ...
    @overload
    def ask(
        self,
        make: Callable[[Reply[Any]], Any],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any: ...
    def ask(
        self,
        make: Callable[[Reply[Any]], Any],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any:
        """Send the message that `make` gives for a reply, and sleep until the reply comes; as `Running.ask`.

        `make` is called in the event loop. After a TimeoutError the request may still be handled, and its
        answer comes too late.
        """
        ask = partial(self._running.ask, make, timeout=timeout, priority=priority)
        return self._do(ask, timeout, None)

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
        if timeout is None or timeout == math.inf:
            return self._door.do(work, given)
        return self._door.do(work, given, seconds("the timeout", timeout))

    def _end(self, work: Callable[[], Any]) -> None:
        with suppress(Closed):  # it has ended already
            self._do(work, None, None)
