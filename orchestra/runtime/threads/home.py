"""The one thread in which a blocking subsystem lives, as its context knows it."""

import threading
from collections.abc import Callable
from typing import Any, NoReturn

from orchestra.runtime.threads.door import Call, Door, Sleeper


class Home(Sleeper):
    """The thread that a context belongs to.

    Generated code compares `ident` with the running thread; it is 0 while there is none.
    """

    __slots__ = ("_call", "_door", "ident", "thread_name")

    def __init__(self, subsystem: str, door: Door) -> None:
        super().__init__(subsystem)
        self._door = door
        self._call: Call | None = None
        self.thread_name = f"orchestra:{subsystem}"
        self.ident = 0

    def enter(self) -> None:
        """The running thread is the one, from now on."""
        self.ident = threading.get_ident()
        self._door.sleepers[self.ident] = self

    def leave(self) -> None:
        """There is no thread any more."""
        self._door.sleepers.pop(self.ident, None)
        self.ident = 0

    def refuse(self) -> NoReturn:
        """Raise the error for the use of the context in another thread."""
        raise RuntimeError(
            f"the context of {self.subsystem!r} belongs to the thread {self.thread_name!r}, "
            f"and this is the thread {threading.current_thread().name!r}"
        )

    def check(self) -> None:
        """Refuse every thread but this one."""
        if threading.get_ident() != self.ident:
            self.refuse()

    def do(self, work: Callable[[], Any]) -> Any:
        """Have something done in the loop, and wait for it; see `Door.do`.

        Raises `Closed` at once when it is to wait no longer, also when that comes while it waits.
        """
        self.check()
        try:
            return self._door.do(work, began=self._begin)
        finally:
            self._call = None

    def cancel(self) -> None:
        """It is to wait no longer: the time to stop is over, or its life has failed; called in the loop."""
        self.rouse()
        if (call := self._call) is not None:
            self._free(call)

    def _begin(self, call: Call) -> None:
        self._call = call
        if self.cancelled:
            self._free(call)

    def _free(self, call: Call) -> None:
        call.free(self.closed(None))
        self._door.post(call.cancel)
