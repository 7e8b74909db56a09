"""The parts, the three orchestras, and running them side by side."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from time import monotonic
from typing import Never, TypeAlias

import attrs
import msgspec

from orchestra import (
    Actor,
    Block,
    Context,
    Drop,
    DropOldest,
    Running,
    Subsystem,
    orchestra,
    start,
    subsystem,
)

SLOW = 0.1
"""Seconds that the slow subscriber takes for a sample."""

INTERVAL = 0.01
"""Seconds between two bursts of the publisher."""


class Sample(msgspec.Struct, frozen=True, gc=False):
    """`taken` is when it was published, in seconds of the monotonic clock."""

    number: int
    taken: float


class Halt(msgspec.Struct, frozen=True):
    """Every orchestra names a signal and an event; here nobody uses them."""


class Publisher(Subsystem[Never, Sample]):
    """Publishes `rate` samples a second, in small bursts, and does not make up for time it was held up."""

    def __init__(self, rate: float) -> None:
        self.burst = max(1, round(rate * INTERVAL))
        self.pause = self.burst / rate
        self.published = 0
        self.refused = 0

    async def run(self, ctx: Context[Never, Sample, Halt]) -> None:
        due = monotonic()
        while True:
            for _ in range(self.burst):
                sample = Sample(self.published, monotonic())
                self.published += 1
                self.refused += not await ctx.send(sample)
            due = max(due + self.pause, monotonic() - self.pause)
            await asyncio.sleep(due - monotonic())


class Fast(Actor[Sample, Never]):
    """Handles a sample at once."""

    def handle(self, ctx: Context[Sample, Never, Halt], message: Sample) -> None: ...


class Slow(Actor[Sample, Never]):
    """Takes its time, and notes how old the last sample was when its turn came."""

    def __init__(self) -> None:
        self.age = 0.0

    async def handle(self, ctx: Context[Sample, Never, Halt], message: Sample) -> None:
        self.age = monotonic() - message.taken
        await asyncio.sleep(SLOW)


@orchestra(signal=Halt, event=Halt)
class UnderBlock:
    publisher: Publisher = subsystem()
    fast: Fast = subsystem(subscribes=[Sample])
    slow: Slow = subsystem(subscribes=[Sample], message_capacity=8, overflow=Block())


@orchestra(signal=Halt, event=Halt)
class UnderDrop:
    publisher: Publisher = subsystem()
    fast: Fast = subsystem(subscribes=[Sample])
    slow: Slow = subsystem(subscribes=[Sample], message_capacity=8, overflow=Drop())


@orchestra(signal=Halt, event=Halt)
class UnderDropOldest:
    publisher: Publisher = subsystem()
    fast: Fast = subsystem(subscribes=[Sample])
    slow: Slow = subsystem(subscribes=[Sample], message_capacity=1, overflow=DropOldest())


@attrs.frozen
class Figures:
    """What one orchestra has done up to now, in samples. `age` is in seconds."""

    policy: str
    published: int
    fast_got: int
    fast_queued: int
    slow_got: int
    slow_queued: int
    refused: int
    """The publisher was told of so many that the slow one will not get them."""
    dropped: int
    """The slow one did not get them: refused, or thrown out for newer ones."""
    blocked_seconds: float
    """So long the publisher has waited for the slow one."""
    age: float
    """How old the last sample was when the slow one began to handle it."""


Show: TypeAlias = Callable[[float, Sequence[Figures]], None]
"""Called with the seconds that have passed and the figures of each orchestra."""

Studio: TypeAlias = UnderBlock | UnderDrop | UnderDropOldest


def figures_of(app: Studio, running: Running) -> Figures:
    """The figures of a running orchestra."""
    meters = running.meters()
    fast, slow = meters["fast"], meters["slow"]
    return Figures(
        policy=type(app).__name__.removeprefix("Under"),
        published=app.publisher.published,
        fast_got=fast.received,
        fast_queued=fast.queued,
        slow_got=slow.received,
        slow_queued=slow.queued,
        refused=app.publisher.refused,
        dropped=slow.dropped,
        blocked_seconds=slow.blocked_seconds,
        age=app.slow.age,
    )


async def compare(seconds: float, rate: float, show: Show, interval: float = 0.25) -> list[Figures]:
    """Run the three orchestras for so long, and show the figures now and then; gives the last ones.

    `rate` is in samples a second, `interval` the seconds from one show to the next.
    """
    apps: list[Studio] = [
        kind(publisher=Publisher(rate), fast=Fast(), slow=Slow())
        for kind in (UnderBlock, UnderDrop, UnderDropOldest)
    ]
    async with AsyncExitStack() as stack:
        running = [
            await stack.enter_async_context(start(app, dead_letters=lambda letter: None)) for app in apps
        ]
        began = monotonic()
        while (passed := monotonic() - began) < seconds:
            show(passed, [figures_of(app, each) for app, each in zip(apps, running, strict=True)])
            await asyncio.sleep(min(interval, seconds - passed))
        last = [figures_of(app, each) for app, each in zip(apps, running, strict=True)]
        await asyncio.gather(*(each.stop(timeout=0.1) for each in running))
    return last
