"""The contexts that subsystems and `on_event` are given while the orchestra runs."""

from collections.abc import Callable
from typing import Any

from orchestra.context import Context
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.threads.door import Door
from orchestra.runtime.timers import PartTimers
from orchestra.timer import Missed, Timer


class LiveContext(Context[Any, Any, Any]):
    """A context whose verbs are the generated functions of one subsystem."""

    __slots__ = (
        "__anext__",
        "_door",
        "_inbox",
        "_stop",
        "_timers",
        "ask",
        "recipient",
        "recv",
        "recv_signal",
        "run_blocking",
        "send",
        "spawn",
        "try_recv",
        "try_send",
    )

    def __init__(
        self,
        inbox: Inbox,
        verbs: dict[str, Callable[..., Any]],
        stop: Callable[[], None],
        timers: PartTimers,
        door: Door,
    ) -> None:
        self._inbox = inbox
        self._door = door
        self._stop = stop
        self._timers = timers
        for name, verb in verbs.items():
            setattr(self, name, verb)

    @property
    def name(self) -> str:
        return self._inbox.name

    @property
    def closed(self) -> bool:
        return self._inbox.over

    def stop(self) -> None:
        self._door.check(self.name)
        self._stop()

    def finish(self) -> None:
        self._door.check(self.name)
        self._inbox.close("finished")

    def send_after(self, delay: float, message: Any) -> Timer:
        self._door.check(self.name)
        return self._timers.send_after(delay, message)

    def send_every(
        self, interval: float, factory: Callable[[], Any], *, missed: Missed = Missed.SKIP
    ) -> Timer:
        self._door.check(self.name)
        return self._timers.send_every(interval, factory, missed)

    def set_deadline(self, when: float | None) -> None:
        self._door.check(self.name)
        self._timers.set_deadline(when)

    def set_timeout(self, seconds: float | None) -> None:
        self._door.check(self.name)
        self._timers.set_timeout(seconds)

    def __repr__(self) -> str:
        return f"<context of {self.name!r}>"


def no_receiving(name: str, following: str = "__anext__") -> dict[str, Callable[..., Any]]:
    """The receiving verbs of an Actor, which say that it does not receive by itself."""
    return dict.fromkeys(("recv", "try_recv", "recv_signal", following), _Refusal(name))


class _Refusal:
    """As a function that raises, and smaller than one."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self) -> Any:
        raise TypeError(f"{self._name!r} is an Actor: its messages and signals come to its methods")


class Outgoing:
    """What leaves the orchestra: messages of the `outgoing` type, in the order in which they were sent.

    It ends when all that may send such messages have finished; what is queued then can still be read.
    """

    __slots__ = ("_following", "recv", "try_recv")

    def __init__(
        self, recv: Callable[[], Any], try_recv: Callable[[], Any], following: Callable[[], Any]
    ) -> None:
        self.recv = recv
        """Wait for the next message; raises `Closed` at the end. A cancelled `recv` loses nothing."""
        self.try_recv = try_recv
        """The next message, or None when there is none now; raises `Closed` at the end."""
        self._following = following

    def __aiter__(self) -> "Outgoing":
        return self

    async def __anext__(self) -> Any:
        return await self._following()
