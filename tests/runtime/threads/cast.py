"""Three subsystems, each in the loop or in a thread, that may send and ask each other anything."""

from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import msgspec

from orchestra import Actor, Recipient, Reply, Subsystem, orchestra, start, subsystem
from tests.runtime.players import Bell, Knock, until, within


class ToA(msgspec.Struct):
    n: int = 0
    reply: Reply[Any] | None = None
    to: Recipient[Any] | None = None


class ToB(msgspec.Struct):
    n: int = 0
    reply: Reply[Any] | None = None
    to: Recipient[Any] | None = None


class ToC(msgspec.Struct):
    n: int = 0
    reply: Reply[Any] | None = None
    to: Recipient[Any] | None = None


class JustA(msgspec.Struct):
    """As `ToA`, without a question: so a thread sends it by itself, not by the loop."""

    n: int = 0
    reply: ClassVar[None] = None


class JustB(msgspec.Struct):
    n: int = 0
    reply: ClassVar[None] = None


class JustC(msgspec.Struct):
    n: int = 0
    reply: ClassVar[None] = None


EVERY = [ToA, ToB, ToC, JustA, JustB, JustC]


def answer(ctx: Any, message: Any) -> None:
    """Answer with one's name, where there is a question."""
    if getattr(message, "reply", None) is not None:
        message.reply.send(ctx.name)


class Acts(Actor):
    """An Actor with plain methods: `do` for each message; by default it answers."""

    def __init__(self, do: Callable[[Any, Any], Any] = answer, **hooks: Callable[..., Any]) -> None:
        self.do = do
        self.hooks = hooks
        self.got: list[int] = []
        self.lives = 0

    def started(self, ctx: Any) -> None:
        self.lives += 1
        self.hooks.get("started", lambda ctx: None)(ctx)

    def handle(self, ctx: Any, message: Any) -> None:
        self.do(ctx, message)
        self.got.append(message.n)

    def deadline_passed(self, ctx: Any, deadline: float) -> None:
        self.hooks["deadline_passed"](ctx, deadline)

    def stopped(self, ctx: Any) -> None:
        self.hooks.get("stopped", lambda ctx: None)(ctx)


class Awaits(Actor):
    """As `Acts`, in the loop: `do` is asynchronous."""

    def __init__(self, do: Callable[[Any, Any], Any]) -> None:
        self.do = do

    async def handle(self, ctx: Any, message: Any) -> None:
        await self.do(ctx, message)


class Lives(Subsystem):
    """Its `run`, in a thread, is the function that it is given."""

    def __init__(self, do: Callable[[Any], Any]) -> None:
        self.do = do

    def run(self, ctx: Any) -> None:
        self.do(ctx)


def trio(
    a: Any = None, b: Any = None, c: Any = None, *, blocking: str = "abc", boxed: bool = False, **options: Any
) -> Any:
    """An orchestra of three that may send each other everything; those in `blocking` live in threads."""
    given = {"a": a or Acts(), "b": b or Acts(), "c": c or Acts()}
    kinds = {name: type(each) for name, each in given.items()}

    @orchestra(signal=Bell, event=Knock, boxed_messages=boxed)
    class Trio:
        a: kinds["a"] = subsystem(consumes=ToA | JustA, sends=EVERY, blocking="a" in blocking, **options)
        b: kinds["b"] = subsystem(consumes=ToB | JustB, sends=EVERY, blocking="b" in blocking, **options)
        c: kinds["c"] = subsystem(consumes=ToC | JustC, sends=EVERY, blocking="c" in blocking, **options)

    return Trio(**given)


@attrs.define
class Done:
    """What came of a function that ran in a subsystem's thread."""

    result: Any = None
    error: BaseException | None = None
    over: bool = False


STYLES = ("actor", "run", "started", "stopped")
"""Where in a subsystem a function may be called: its handler, its run, its hooks."""


def doer(style: str, do: Callable[[Any], Any], done: Done) -> Any:
    """A subsystem for `a` that calls a function in its thread, in that place, and notes what came of it.

    A message makes it do so, where it is not at the start.
    """

    def call(ctx: Any, *_: Any) -> None:
        try:
            done.result = do(ctx)
        except BaseException as error:
            done.error = error
            raise
        finally:
            done.over = True

    if style == "actor":
        return Acts(call)
    if style == "run":
        return Lives(call)
    return Acts(lambda ctx, message: ctx.finish(), **{style: call})


def in_thread(style: str, do: Callable[[Any], Any], **others: Any) -> Any:
    """Run an orchestra whose blocking `a` calls a function; give what it gave, or raise what it raised."""
    done = Done()

    async def main() -> None:
        async with start(trio(doer(style, do, done), **others), dead_letters=lambda _: None) as running:
            running.try_send(ToA())
            await until(lambda: done.over)
            await running.stop()

    within(15, main())
    return done.result
