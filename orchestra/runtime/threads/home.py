"""The one thread in which a blocking subsystem lives, as its context knows it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from orchestra.errors import Closed
from orchestra.runtime.threads.door import Bell, Call, Door


class Home:
    """The thread that a context belongs to.

    Generated code compares `ident` with the running thread; it is 0 while there is none. `cancelled` says
    that what runs there is to end: what would wait raises `Closed` at once. `bell` is what the thread sleeps
    on while it waits for room in lanes.
    """

    __slots__ = ("_call", "_door", "_subsystem", "bell", "cancelled", "ident", "thread_name")

    def __init__(self, subsystem: str, door: Door) -> None:
        self._subsystem = subsystem
        self._door = door
        self._call: Call | None = None
        self.bell: Bell | None = None
        self.thread_name = f"orchestra:{subsystem}"
        self.ident = 0
        self.cancelled = False

    def enter(self) -> None:
        """The running thread is the one from now on."""
        self.ident = threading.get_ident()
        _here.home = self

    def leave(self) -> None:
        """There is no thread any more."""
        self.ident = 0

    def refuse(self) -> NoReturn:
        """Raise the error for the use of the context in another thread."""
        raise RuntimeError(
            f"the context of {self._subsystem!r} belongs to the thread {self.thread_name!r}, "
            f"and this is the thread {threading.current_thread().name!r}: "
            "outside it, use running, or running.threadsafe() in a thread"
        )

    def check(self) -> None:
        """Refuse every thread but this one."""
        if threading.get_ident() != self.ident:
            self.refuse()

    def do(self, work: Callable[[], Any], given: Any = None, door: Door | None = None) -> Any:
        """Have something done in the loop, and wait for it; see `Door.do`. `door` may be another loop's.

        Raises `Closed` at once when what runs here is to end, also when that comes while it waits.
        """
        self.check()
        try:
            return (door or self._door).do(work, given, began=self._begin)
        finally:
            self._call = None

    def order(self, work: Callable[[], object]) -> None:
        """Have something done in the loop that ends something; what runs here may be on its own way out."""
        try:
            self.do(work)
        except Closed:
            self._door.post(work)

    def cancel(self) -> None:
        """What runs here is to end: free the thread from what it waits for; called in the loop."""
        self.cancelled = True
        if (call := self._call) is not None:
            call.free(self.freed(call.given))
        if (bell := self.bell) is not None:
            bell.ring()

    def freed(self, given: Any) -> Closed:
        """The error for what would wait here when that is to end."""
        return Closed(f"{self._subsystem!r} is told to end and waits no more", given, self._subsystem)

    @property
    def waits(self) -> bool:
        """Whether the thread waits for something that the loop awaits. What the loop does at once is work."""
        call = self._call
        return call is not None and call.under_way

    def runs(self, task: "asyncio.Task[Any] | int | None") -> bool:
        """Whether a task of the loop is what the thread waits for."""
        call = self._call
        return task is not None and call is not None and call.task is task

    def _begin(self, call: Call) -> None:
        self._call = call
        if self.cancelled:
            call.free(self.freed(call.given))


_here = threading.local()


def home_here() -> Home | None:
    """The home that the running thread is; None for any other thread."""
    home: Home | None = getattr(_here, "home", None)
    return home


def do_from_here(door: Door, work: Callable[[], Any], given: Any = None) -> Any:
    """Have something done in the loop of a door by whatever other thread this is, and wait for it."""
    home = home_here()
    return door.do(work, given) if home is None else home.do(work, given, door)
