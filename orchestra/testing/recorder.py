"""Wrapping a subsystem so that a test sees what it was given and what it sent."""

import inspect
from typing import Any, Generic, TypeVar, overload

from orchestra.box import open_entry
from orchestra.errors import Closed
from orchestra.inspection import has_priority
from orchestra.messages import shown
from orchestra.subsystems import Actor, Subsystem
from orchestra.supervision import Deferred
from orchestra.wrapping import Wrapper

A = TypeVar("A", bound=Actor[Any, Any])
S = TypeVar("S", bound=Subsystem[Any, Any])
Inner = TypeVar("Inner")


class Recorded(Generic[Inner]):
    """What `recorded` adds to a subsystem; each list is in the order of time, and may be cleared.

    The lists keep the messages, so the asker of a request that was forgotten waits for its time limit.
    """

    inner: Inner
    """The subsystem itself."""
    received: list[Any]
    """Messages and signals that it was given; those whose handlers failed too."""
    sent: list[Any]
    """Messages that it gave to `send`, `try_send` and `ask`, before anything became of them.

    What its timers and its recipients send is not there.
    """
    hooks: list[str]
    """The hooks of an Actor that were called, by name, such as "started"; of a `run` there are none."""

    def _begin(self) -> None:
        self.received = []
        self.sent = []
        self.hooks = []


class RecordedActor(Recorded[A], Wrapper[Any, Any]):
    """An Actor with what it was given and what it sent."""

    inner: A

    def __init__(self, inner: A) -> None:
        Wrapper.__init__(self, inner)
        self._begin()

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


class RecordedSubsystem(Recorded[S], Subsystem[Any, Any]):
    """A Subsystem with what it received and what it sent."""

    def __init__(self, inner: S) -> None:
        self.inner = inner
        self._begin()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"


@overload
def recorded(subsystem: A) -> RecordedActor[A]: ...
@overload
def recorded(subsystem: S) -> RecordedSubsystem[S]: ...
def recorded(subsystem: Any) -> Any:
    """Wrap an Actor, or a Subsystem with a `run`, in one that does the same and is `Recorded`.

        counter = recorded(Counter())
        async with start(replace(app, counter=counter)) as running:
            ...
        assert counter.received == [Line("to be")]
        assert counter.inner.words == 2

    To a type checker it is no `Counter`, so it goes into an orchestra by `replace`, or into `alone`. Each
    life of a subsystem that is made anew is recorded by `deferred(lambda: recorded(Counter()))`.

    Raises TypeError for what is no instance of Subsystem or Actor.
    """
    if isinstance(subsystem, Actor):
        return RecordedActor(subsystem)
    if isinstance(subsystem, Subsystem):
        return _run_recorder(type(subsystem))(subsystem)
    if isinstance(subsystem, Deferred):
        raise TypeError(
            "recorded takes an instance, not what deferred(...) gives: write deferred(lambda: recorded(...))"
        )
    raise TypeError(f"recorded takes an instance of Subsystem or Actor, not {shown(subsystem)}")


class _Watching:
    """A context that notes down what goes through it, and is the one behind it in all else."""

    def __init__(self, ctx: Any, notes: Recorded[Any]) -> None:
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

    def ask(self, make: Any, **options: Any) -> Any:
        def noted(reply: Any) -> Any:
            self._notes.sent.append(message := make(reply))
            return message

        return self._ctx.ask(noted if callable(make) else make, **options)

    def _took(self, item: Any) -> Any:
        self._notes.received.append(item)
        return item


class _WatchingRun(_Watching):
    """As `_Watching`, for a `run` of the event loop: it receives by itself."""

    async def recv(self) -> Any:
        return self._took(await self._ctx.recv())

    async def recv_signal(self) -> Any:
        return self._took(await self._ctx.recv_signal())

    def try_recv(self) -> Any:
        item = self._ctx.try_recv()
        return item if item is None else self._took(item)

    def __aiter__(self) -> "_WatchingRun":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.recv()
        except Closed:
            raise StopAsyncIteration from None


class _WatchingThread(_Watching):
    """As `_WatchingRun`, for a `run` in a thread of its own."""

    def recv(self) -> Any:
        return self._took(self._ctx.recv())

    def recv_signal(self) -> Any:
        return self._took(self._ctx.recv_signal())

    def try_recv(self) -> Any:
        item = self._ctx.try_recv()
        return item if item is None else self._took(item)

    def __iter__(self) -> "_WatchingThread":
        return self

    def __next__(self) -> Any:
        try:
            return self.recv()
        except Closed:
            raise StopIteration from None


class _RecordedRun(RecordedSubsystem[Any]):
    async def run(self, ctx: Any) -> None:
        await self.inner.run(_WatchingRun(ctx, self))


class _RecordedThread(RecordedSubsystem[Any]):
    def run(self, ctx: Any) -> None:
        self.inner.run(_WatchingThread(ctx, self))


def _run_recorder(kind: type) -> type[RecordedSubsystem[Any]]:
    """The recorder for subsystems of a class, with the `priority` of that class where it has one."""
    base = _RecordedRun if inspect.iscoroutinefunction(getattr(kind, "run", None)) else _RecordedThread
    if not has_priority(kind):
        return base
    priority = staticmethod(kind.priority)  # type: ignore[attr-defined]  # has_priority found it
    made: Any = type(f"Recorded{kind.__name__}", (base,), {"priority": priority})
    return made  # type: ignore[no-any-return]  # a subclass of `base`
