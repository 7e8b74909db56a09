"""Messages, subsystems that do what a test tells them, and small helpers for whole orchestras."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from orchestra import Actor, DeadLetter, Subsystem, orchestra, subsystem


class Job(msgspec.Struct, frozen=True):
    n: int = 0


class Note(msgspec.Struct, frozen=True):
    n: int = 0


class Bell(msgspec.Struct, frozen=True):
    """The signal."""

    n: int = 0


class Knock(msgspec.Struct, frozen=True):
    """The event."""

    n: int = 0


class Runs(Subsystem):
    """Its `run` is the function that it is given."""

    def __init__(self, do: Callable[[Any], Awaitable[None]]) -> None:
        self.do = do

    async def run(self, ctx: Any) -> None:
        await self.do(ctx)


class Collects(Subsystem):
    """Takes messages and signals until the end."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.ended = False

    async def run(self, ctx: Any) -> None:
        async for item in ctx:
            self.got.append(item)
        self.ended = True


class Calls(Actor):
    """A synchronous Actor; `do` may be given for each message."""

    def __init__(self, do: Callable[[Any, Any], Any] | None = None) -> None:
        self.do = do
        self.got: list[Any] = []
        self.hooks: list[Any] = []

    def started(self, ctx: Any) -> None:
        self.hooks.append("started")

    def handle(self, ctx: Any, message: Any) -> None:
        if self.do is not None:
            self.do(ctx, message)
        self.got.append(message)

    def on_signal(self, ctx: Any, signal: Any) -> None:
        self.hooks.append(signal)

    def stopped(self, ctx: Any) -> None:
        self.hooks.append("stopped")


class Awaits(Calls):
    """An asynchronous Actor; a message is in `got` once its handler has returned, in `begun` before."""

    def __init__(self, do: Callable[[Any, Any], Awaitable[Any]] | None = None) -> None:
        super().__init__(do)
        self.begun: list[Any] = []

    async def handle(self, ctx: Any, message: Any) -> None:
        self.begun.append(message)
        if self.do is not None:
            await self.do(ctx, message)
        self.got.append(message)


class Gated(Awaits):
    """Each handler waits until the gate is open."""

    def __init__(self) -> None:
        super().__init__(self._wait)
        self.gate = asyncio.Event()

    async def _wait(self, ctx: Any, message: Any) -> None:
        await self.gate.wait()


def alone(worker: Any, **options: Any) -> Any:
    """An orchestra of one subsystem that consumes `Job`."""
    kind = type(worker)

    @orchestra(signal=Bell, event=Knock)
    class Alone:
        worker: kind = subsystem(consumes=Job, **options)

    return Alone(worker=worker)


def pair(first: Any, second: Any, *, circle: bool = False, **options: Any) -> Any:
    """`first` consumes `Job` and sends `Note` to `second`; in a circle `second` sends `Job` back."""
    first_kind, second_kind = type(first), type(second)

    @orchestra(signal=Bell, event=Knock)
    class Pair:
        first: first_kind = subsystem(consumes=Job, sends=[Note], **options)
        second: second_kind = subsystem(consumes=Note, sends=[Job] if circle else [], **options)

    return Pair(first=first, second=second)


async def until(condition: Callable[[], Any], seconds: float = 5.0) -> None:
    """Wait until a condition holds: for a number of turns, and then so that threads get on too."""
    async with asyncio.timeout(seconds):
        for turn in itertools.count():
            if condition():
                return
            await asyncio.sleep(0 if turn < 100 else 0.001)


async def turns(count: int = 20) -> None:
    """Let everything run for a few turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


def within(seconds: float, main: Awaitable[Any]) -> Any:
    """Run a coroutine in a loop of its own; a test that hangs fails after `seconds`."""

    async def bounded() -> Any:
        async with asyncio.timeout(seconds):
            return await main

    return asyncio.run(bounded())


def told(letters: list[DeadLetter]) -> list[tuple[Any, str, str]]:
    """What a test compares of dead letters."""
    return [(letter.message, letter.subsystem, letter.reason) for letter in letters]
