"""The two ways to write a subsystem: `Subsystem` with a `run` of its own, `Actor` with handlers."""

import inspect
from collections.abc import Callable
from typing import Any, Generic

from typing_extensions import TypeVar

from orchestra.errors import DeclarationError
from orchestra.priority import Priority

__all__ = ["Actor", "Subsystem", "handles"]

In = TypeVar("In", default=Any)
SOut = TypeVar("SOut", default=Any)
Method = TypeVar("Method", bound=Callable[..., Any])

HANDLES = "__orchestra_handles__"
"""The attribute of a method that holds the types given to `handles`."""


class Subsystem(Generic[In, SOut]):
    """A long-lived part with full control: it receives by itself, in its own `run`.

    `Subsystem[In, SOut]` names what it receives and what it sends, each a class, a union or
    `Never`; then `consumes` and `sends` may be left out of `subsystem(...)`. A bare `Subsystem`
    takes both from there.

        class Adder(Subsystem[Numbers, Total]):
            async def run(self, ctx: Context[Numbers, Total, Conclude]) -> None:
                async for item in ctx:
                    match item:
                        case Numbers(items=items):
                            await ctx.send(Total(sum(items)))
                        case Conclude():
                            break

    A static method `priority(message)` that returns a `Priority` gives the lane for each message
    that was sent to it without `priority=`.
    """

    def run(self, ctx: Any, /) -> Any:
        """Live: receive, work and send until the loop over `ctx` ends or the work is done.

        Write it as `async def run(self, ctx: Context[In, SOut, Signal]) -> None`; with `blocking=True` in its
        field as `def run(self, ctx: BlockingContext[In, SOut, Signal]) -> None`. The subsystem
        has finished when it returns; what is still queued then goes to the dead letters. An error
        that leaves it stops the orchestra, or with `restart=` begins it anew. At a stop the receiving
        methods of `ctx` end; when the time to stop is over `run` is cancelled. A thread cannot be: there
        what waits raises `Closed`.
        """
        raise NotImplementedError(f"{type(self).__qualname__} has no run")


class Actor(Generic[In, SOut]):
    """A long-lived part that is called for each message; it never receives by itself.

    Write `handle`, or a method marked `@handles(Type)` for each type, or both: a marked method
    goes first, `handle` takes the rest. Every method may be `def` or `async def`, and of one
    subsystem one handler or hook runs at a time.

        class Counter(Actor[Line, Count]):
            def handle(self, ctx: Context[Line, Count, Flush], message: Line) -> None:
                ctx.try_send(Count(len(message.text.split())))

    Only hooks that a class really has are called. `ctx` is a `Context[In, SOut, Signal]`, or a
    `BlockingContext` of the same where the field has `blocking=True`; every method is then a plain `def`.
    """

    def handle(self, ctx: Any, message: In, /) -> Any:
        """Handle one message.

        An error that leaves it is a failure: the message is a dead letter, and the orchestra stops, or with
        `restart=` the subsystem starts again. It is cancelled when the time to stop is over.
        """
        raise NotImplementedError(f"{type(self).__qualname__} has no handle")

    def started(self, ctx: Any, /) -> Any:
        """Called once before the first message or signal, and again at the beginning of each restart."""

    def stopped(self, ctx: Any, /) -> Any:
        """Called once after the last message or signal, if `started` succeeded; also after a failure.

        The tasks of `ctx.spawn` have ended by then. With `restart=` it is called before each restart.
        """

    def on_signal(self, ctx: Any, signal: Any, /) -> Any:
        """Called for each signal, always before messages that still wait."""

    def deadline_passed(self, ctx: Any, deadline: float, /) -> Any:
        """Called when the deadline that `ctx.set_deadline` or `ctx.set_timeout` set has passed.

        It comes before all signals and messages that wait. `deadline` is the time that has passed, in the
        seconds of `time.monotonic()`; it is no longer set.
        """

    @staticmethod
    def priority(message: Any, /) -> Priority:
        """Say which lane takes `message` when the sender does not; a plain, fast static method.

        It is called in the sender, before the message is put anywhere.
        """
        return Priority.NORMAL


def handles(*types: Any) -> Callable[[Method], Method]:
    """Mark a method of an `Actor` as the handler of `types`, classes or unions.

        @handles(Pong)
        async def on_pong(self, ctx: Context[Pong | Tick, Ping, Halt], message: Pong) -> None: ...

    A message goes to the handler of its exact class, else of the nearest of its bases, in method
    resolution order, else to `handle`. The method may be `def` or `async def`. A subclass that
    overrides the method keeps its types, unless it is marked anew. Marks may be stacked.
    """
    if not types or (len(types) == 1 and inspect.isfunction(types[0])):
        where = f" ({types[0].__qualname__})" if types else ""
        raise DeclarationError(f"@handles{where} needs the message types it is for: write @handles(Type)")

    def mark(method: Method) -> Method:
        setattr(method, HANDLES, (*getattr(method, HANDLES, ()), *types))
        return method

    return mark
