"""The context that a blocking subsystem is given."""

from collections.abc import Callable
from functools import partial
from typing import Any

from orchestra.context import BlockingContext
from orchestra.errors import Closed
from orchestra.runtime.telling import caller
from orchestra.runtime.threads.home import Home
from orchestra.runtime.threads.inbox import ThreadInbox
from orchestra.runtime.threads.pool import check_function
from orchestra.runtime.timers import PartTimers
from orchestra.timer import Missed, Timer


class LiveBlockingContext(BlockingContext[Any, Any, Any]):
    """A context whose verbs are the generated functions of one blocking subsystem."""

    __slots__ = (
        "__next__",
        "_finish",
        "_inbox",
        "_stop",
        "_timers",
        "ask",
        "recipient",
        "recv",
        "recv_signal",
        "send",
        "spawn",
        "try_recv",
        "try_send",
    )

    def __init__(
        self,
        inbox: ThreadInbox,
        verbs: dict[str, Callable[..., Any]],
        stop: Callable[[], None],
        finish: Callable[[], None],
        timers: PartTimers,
    ) -> None:
        self._inbox = inbox
        self._stop = stop
        self._finish = finish
        self._timers = timers
        for name, verb in verbs.items():
            setattr(self, name, verb)

    def __iter__(self) -> "LiveBlockingContext":
        self._inbox.home.check()
        return self

    @property
    def name(self) -> str:
        return self._inbox.name

    @property
    def closed(self) -> bool:
        return self._inbox.over

    def stop(self) -> None:
        self._inbox.home.check()
        self._stop()

    def finish(self) -> None:
        self._inbox.home.check()
        self._finish()

    def run_blocking(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Any:
        self._inbox.home.check()
        check_function(function)
        return function(*args, **keywords)

    def send_after(self, delay: float, message: Any) -> Timer:
        return self._timer(partial(self._timers.send_after, delay, message), message)

    def send_every(
        self, interval: float, factory: Callable[[], Any], *, missed: Missed = Missed.SKIP
    ) -> Timer:
        return self._timer(partial(self._timers.send_every, interval, factory, missed, caller()))

    def set_deadline(self, when: float | None) -> None:
        self._inbox.home.do(partial(self._timers.set_deadline, when))

    def set_timeout(self, seconds: float | None) -> None:
        self._inbox.home.do(partial(self._timers.set_timeout, seconds))

    def _timer(self, work: Callable[[], Timer], message: Any = None) -> Timer:
        home = self._inbox.home
        return ThreadTimer(home, home.do(work, message))

    def __repr__(self) -> str:
        return f"<blocking context of {self.name!r}>"


class ThreadTimer(Timer):
    """A timer of the loop, for the thread that has set it."""

    __slots__ = ("_home", "_timer")

    def __init__(self, home: Home, timer: Timer) -> None:
        self._home = home
        self._timer = timer

    def cancel(self) -> bool:
        try:
            return bool(self._home.do(self._timer.cancel))
        except Closed:
            return False

    @property
    def active(self) -> bool:
        return self._timer.active

    @property
    def when(self) -> float | None:
        return self._timer.when

    @property
    def missed(self) -> int:
        return self._timer.missed

    def __repr__(self) -> str:
        return repr(self._timer)
