"""The one thread in which a blocking subsystem lives, as its context knows it."""

import threading
from collections.abc import Callable
from typing import Any, NoReturn

from orchestra.errors import Closed
from orchestra.runtime.threads.door import Call, Door


class Home:
    """The thread that a context belongs to.

    Generated code compares `ident` with the running thread; it is 0 while there is none. `cancelled` says
    that the time to stop is over: what would wait raises `Closed` at once.
    """

    __slots__ = ("_call", "_door", "_subsystem", "cancelled", "ident", "thread_name")

    def __init__(self, subsystem: str, door: Door) -> None:
        self._subsystem = subsystem
        self._door = door
        self._call: Call | None = None
        self.thread_name = f"orchestra:{subsystem}"
        self.ident = 0
        self.cancelled = False

    def refuse(self) -> NoReturn:
        """Raise the error for the use of the context in another thread."""
        raise RuntimeError(
            f"the context of {self._subsystem!r} belongs to the thread {self.thread_name!r}, "
            f"and this is the thread {threading.current_thread().name!r}"
        )

    def check(self) -> None:
        """Refuse every thread but this one."""
        if threading.get_ident() != self.ident:
            self.refuse()

    def do(self, work: Callable[[], Any]) -> Any:
        """Have something done in the loop, and wait for it; see `Door.do`.

        Raises `Closed` at once when the time to stop is over, also when that comes while it waits.
        """
        self.check()
        try:
            return self._door.do(work, began=self._begin)
        finally:
            self._call = None

    def cancel(self) -> None:
        """The time to stop is over; called in the loop."""
        self.cancelled = True
        if (call := self._call) is not None:
            self._free(call)

    def _begin(self, call: Call) -> None:
        self._call = call
        if self.cancelled:
            self._free(call)

    def _free(self, call: Call) -> None:
        call.free(Closed(f"the time to stop is over for {self._subsystem!r}", None, self._subsystem))
        self._door.post(call.cancel)
