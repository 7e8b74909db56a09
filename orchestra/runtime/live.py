"""The contexts that subsystems and `on_event` are given while the orchestra runs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from orchestra.context import Context
from orchestra.reply import Reply
from orchestra.runtime.ensemble import Ensemble
from orchestra.runtime.inbox import CALLED_FINISH, Inbox
from orchestra.runtime.post import Post
from orchestra.runtime.timers import PartTimers
from orchestra.timer import Missed, Timer

Verb = Callable[..., Any]


class Outfit(Protocol):
    """What of a context is seldom used."""

    @property
    def timers(self) -> PartTimers:
        """The timers of the subsystem."""
        ...

    def stop(self) -> None:
        """See `Context.stop`."""

    def spawn(self, coroutine: Any, *, name: str | None = None) -> Any:
        """See `Context.spawn`."""

    def recipient(self, kind: Any) -> Any:
        """See `Context.recipient`."""


class LiveContext(Context[Any, Any, Any]):
    """A context whose ways of sending are the generated functions of one subsystem."""

    __slots__ = ("_ensemble", "_inbox", "_outfit", "_post", "send", "try_send")

    def __init__(
        self, inbox: Inbox, post: Post, ensemble: Ensemble, outfit: Outfit, send: Verb, try_send: Verb
    ) -> None:
        self._inbox = inbox
        self._post = post
        self._ensemble = ensemble
        self._outfit = outfit
        self.send = send  # type: ignore[method-assign]  # a slot in place of the method
        self.try_send = try_send  # type: ignore[method-assign]

    @property
    def name(self) -> str:
        return self._inbox.name

    @property
    def closed(self) -> bool:
        return self._inbox.over

    def stop(self) -> None:
        self._ensemble.door.check(self.name)
        self._outfit.stop()

    def finish(self) -> None:
        self._ensemble.door.check(self.name)
        self._inbox.close("finished", CALLED_FINISH)

    def send_after(self, delay: float, message: Any) -> Timer:
        self._ensemble.door.check(self.name)
        return self._outfit.timers.send_after(delay, message)

    def send_every(
        self, interval: float, factory: Callable[[], Any], *, missed: Missed = Missed.SKIP
    ) -> Timer:
        self._ensemble.door.check(self.name)
        return self._outfit.timers.send_every(interval, factory, missed)

    def set_deadline(self, when: float | None) -> None:
        self._ensemble.door.check(self.name)
        self._outfit.timers.set_deadline(when)

    def set_timeout(self, seconds: float | None) -> None:
        self._ensemble.door.check(self.name)
        self._outfit.timers.set_timeout(seconds)

    def ask(
        self, make: Callable[[Reply[Any]], Any], *, timeout: float | None = None, priority: Any = None
    ) -> Any:
        return self._ensemble.asks.ask(self._post, self._inbox, make, timeout=timeout, priority=priority)

    def recipient(self, kind: Any) -> Any:
        return self._outfit.recipient(kind)

    def spawn(self, coroutine: Any, *, name: str | None = None) -> Any:
        return self._outfit.spawn(coroutine, name=name)

    def run_blocking(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Any:
        return self._ensemble.pool.run(self.name, function, *args, **keywords)

    def __repr__(self) -> str:
        return f"<context of {self.name!r}>"


class RunContext(LiveContext):
    """That of a subsystem with a `run` of its own, which receives by generated functions too."""

    __slots__ = ("__anext__", "recv", "recv_signal", "try_recv")

    def receive_by(self, recv: Verb, try_recv: Verb, recv_signal: Verb, following: Verb) -> None:
        """Take the generated functions."""
        self.recv = recv  # type: ignore[method-assign]  # a slot in place of the method
        self.try_recv = try_recv  # type: ignore[method-assign]
        self.recv_signal = recv_signal  # type: ignore[method-assign]
        self.__anext__ = following  # type: ignore[method-assign]

    if not TYPE_CHECKING:  # a type checker finds it by itself

        def __iter__(self) -> NoReturn:
            raise TypeError(f"{self.name!r} receives asynchronously: write `async for message in ctx`")


class ActorContext(LiveContext):
    """That of an Actor, which does not receive by itself."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker finds it by itself

        def __iter__(self) -> NoReturn:
            raise refused(self.name)

    def recv(self) -> Any:
        raise refused(self.name)

    def try_recv(self) -> Any:
        raise refused(self.name)

    def recv_signal(self) -> Any:
        raise refused(self.name)

    def __anext__(self) -> Any:
        raise refused(self.name)


def refused(name: str) -> TypeError:
    """The error for an Actor that receives."""
    return TypeError(f"{name!r} is an Actor: its messages and signals come to its methods")


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

    if not TYPE_CHECKING:  # a type checker finds it by itself

        def __iter__(self) -> NoReturn:
            raise TypeError(
                "what goes out comes asynchronously: write `async for message in running.outgoing`"
            )

    def __aiter__(self) -> "Outgoing":
        return self

    async def __anext__(self) -> Any:
        return await self._following()
