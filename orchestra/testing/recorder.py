"""Wrapping a subsystem so that a test sees what it was given and what it sent."""

from collections.abc import Callable
from typing import Any, Protocol

from orchestra.box import open_entry
from orchestra.errors import Closed
from orchestra.inspection import has_priority, is_coroutine
from orchestra.messages import shown
from orchestra.subsystems import Actor, Subsystem
from orchestra.wrapping import Wrapper


class Recorded(Protocol):
    """What `recorded` adds to a subsystem; each list is in the order of time.

    The lists keep the messages, so the asker of a request that was forgotten waits for its time limit.
    """

    inner: Any
    """The subsystem itself."""
    received: list[Any]
    """Messages and signals that it was given; those whose handlers failed too."""
    sent: list[Any]
    """Messages that it gave to `send`, `try_send` and `ask`, before anything became of them."""
    hooks: list[str]
    """The hooks that were called, by name, such as "started"."""


def recorded(subsystem: Any) -> Any:
    """Wrap an Actor, or a Subsystem with a `run`, in one that does the same and is `Recorded`.

        counter = recorded(Counter())
        async with start(replace(app, counter=counter)) as running:
            ...
        assert counter.received == [Line("to be")]

    Raises TypeError for what is no instance of Subsystem or Actor.
    """
    if isinstance(subsystem, Actor):
        return _RecordedActor(subsystem)
    if isinstance(subsystem, Subsystem):
        return _run_recorder(type(subsystem))(subsystem)
    raise TypeError(f"recorded takes an instance of Subsystem or Actor, not {shown(subsystem)}")


class _Watching:
    """A context that notes down what goes through it, and is the one behind it in all else."""

    def __init__(self, ctx: Any, notes: Recorded) -> None:
        self._ctx = ctx
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __repr__(self) -> str:
        return f"<recorded {self._ctx!r}>"

    def send(self, message: Any, **options: Any) -> Any:
        self._notes.sent.append(open_entry(message))
        return self._ctx.send(message, **options)

    def try_send(self, message: Any, **options: Any) -> Any:
        self._notes.sent.append(open_entry(message))
        return self._ctx.try_send(message, **options)

    def ask(self, make: Callable[[Any], Any], **options: Any) -> Any:
        def noted(reply: Any) -> Any:
            self._notes.sent.append(message := make(reply))
            return message

        return self._ctx.ask(noted, **options)


class _Receiving(_Watching):
    """As `_Watching`, for a `run`: it receives by itself."""

    def try_recv(self) -> Any:
        item = self._ctx.try_recv()
        return item if item is None else self._took(item)

    def _took(self, item: Any) -> Any:
        self._notes.received.append(item)
        return item


class _WatchingRun(_Receiving):
    """That of a `run` in the event loop."""

    async def recv(self) -> Any:
        return self._took(await self._ctx.recv())

    async def recv_signal(self) -> Any:
        return self._took(await self._ctx.recv_signal())

    def __aiter__(self) -> "_WatchingRun":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.recv()
        except Closed:
            raise StopAsyncIteration from None


class _WatchingThread(_Receiving):
    """That of a `run` in a thread."""

    def recv(self) -> Any:
        return self._took(self._ctx.recv())

    def recv_signal(self) -> Any:
        return self._took(self._ctx.recv_signal())

    def __iter__(self) -> "_WatchingThread":
        return self

    def __next__(self) -> Any:
        try:
            return self.recv()
        except Closed:
            raise StopIteration from None


class _RecordedActor(Wrapper[Any, Any]):
    def __init__(self, inner: Actor[Any, Any]) -> None:
        super().__init__(inner)
        self.received: list[Any] = []
        self.sent: list[Any] = []
        self.hooks: list[str] = []

    def handle(self, ctx: Any, message: Any) -> Any:
        self.received.append(message)
        return super().handle(self._watching(ctx), message)

    def on_signal(self, ctx: Any, signal: Any) -> Any:
        self.received.append(signal)
        return super().on_signal(self._watching(ctx), signal)

    def started(self, ctx: Any) -> Any:
        self.hooks.append("started")
        return super().started(self._watching(ctx))

    def stopped(self, ctx: Any) -> Any:
        self.hooks.append("stopped")
        return super().stopped(self._watching(ctx))

    def deadline_passed(self, ctx: Any, deadline: float) -> Any:
        self.hooks.append("deadline_passed")
        return super().deadline_passed(self._watching(ctx), deadline)

    def _watching(self, ctx: Any) -> Any:
        return _Watching(ctx, self)


class _RecordedRun(Subsystem[Any, Any]):
    def __init__(self, inner: Subsystem[Any, Any]) -> None:
        self.inner = inner
        self.received: list[Any] = []
        self.sent: list[Any] = []
        self.hooks: list[str] = []

    async def run(self, ctx: Any) -> Any:
        await self.inner.run(_WatchingRun(ctx, self))


class _RecordedThread(_RecordedRun):
    def run(self, ctx: Any) -> None:  # type: ignore[override]  # it is for another kind of field
        self.inner.run(_WatchingThread(ctx, self))


def _run_recorder(kind: type[Subsystem[Any, Any]]) -> type[_RecordedRun]:
    """The recorder for subsystems of a class, with the `priority` of that class where it has one."""
    base = _RecordedRun if is_coroutine(kind, "run") else _RecordedThread
    if not has_priority(kind):
        return base
    priority = staticmethod(kind.priority)  # type: ignore[attr-defined]  # has_priority found it
    return type(f"Recorded{kind.__name__}", (base,), {"priority": priority})
