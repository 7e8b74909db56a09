"""Three subsystems that may ask each other anything, and keep nothing of what they are asked."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from orchestra import Actor, Reply, Subsystem, orchestra, subsystem
from tests.runtime.players import Bell, Knock

Do = Callable[[Any, Any], Awaitable[Any]]


class ToA(msgspec.Struct):
    reply: Reply[Any] | None = None


class ToB(msgspec.Struct):
    reply: Reply[Any] | None = None


class ToC(msgspec.Struct):
    reply: Reply[Any] | None = None


class ToAll(msgspec.Struct):
    """Both `b` and `c` subscribe to it."""

    reply: Reply[Any] | None = None


EVERY = [ToA, ToB, ToC, ToAll]


async def answer(ctx: Any, message: Any) -> None:
    message.reply.send(ctx.name)


class Acts(Actor):
    """An asynchronous Actor: `do` for each message; by default it answers with its name."""

    def __init__(self, do: Do = answer, started: Any = None, stopped: Any = None) -> None:
        self.do = do
        self.hooks = {"started": started, "stopped": stopped}
        self.kept: list[Any] = []

    async def _call(self, name: str, ctx: Any) -> None:
        hook = self.hooks[name]
        if hook is not None:
            await hook(ctx)

    async def started(self, ctx: Any) -> None:
        await self._call("started", ctx)

    async def handle(self, ctx: Any, message: Any) -> None:
        await self.do(ctx, message)

    async def stopped(self, ctx: Any) -> None:
        await self._call("stopped", ctx)


class Plain(Actor):
    """A synchronous Actor."""

    def __init__(self, do: Callable[[Any, Any], Any]) -> None:
        self.do = do

    def handle(self, ctx: Any, message: Any) -> None:
        self.do(ctx, message)


class Lives(Subsystem):
    """Its `run` is the function that it is given."""

    def __init__(self, do: Callable[[Any], Awaitable[None]]) -> None:
        self.do = do

    async def run(self, ctx: Any) -> None:
        await self.do(ctx)


def trio(a: Any = None, b: Any = None, c: Any = None, **options: Any) -> Any:
    """An orchestra of `a`, `b` and `c`, each of which consumes a type of its own and may send all."""
    given = {"a": a or Acts(), "b": b or Acts(), "c": c or Acts()}
    kinds = {name: type(each) for name, each in given.items()}
    common = {name: value for name, value in options.items() if name not in given}

    @orchestra(signal=Bell, event=Knock, boxed_messages=common.pop("boxed_messages", False))
    class Trio:
        a: kinds["a"] = subsystem(consumes=ToA, sends=EVERY, **common)
        b: kinds["b"] = subsystem(consumes=ToB, subscribes=[ToAll], sends=EVERY, **common)
        c: kinds["c"] = subsystem(consumes=ToC, subscribes=[ToAll], sends=EVERY, **common)

    return Trio(**given)
