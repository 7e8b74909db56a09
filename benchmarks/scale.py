"""How cost grows: with the number of subsystems, and with that of queued messages."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Never

import msgspec

from benchmarks import bars, loops
from benchmarks.floor import clock
from benchmarks.harness import Case, Group
from benchmarks.messages import U8, Signal
from benchmarks.queues import CAPACITY
from benchmarks.ring import Ring, synchronous
from benchmarks.send import Handler, Sender, Stopwatch
from orchestra import Context, Subsystem, orchestra, start, subsystem


def app_class(size: int) -> Any:
    """An orchestra class of a sender that sends to each of the others, which have a message type each."""
    others = [
        msgspec.defstruct(f"M{place}", [("value", int)], frozen=True, gc=False) for place in range(size - 2)
    ]
    handlers = {f"other{place}": subsystem(consumes=kind) for place, kind in enumerate(others)}
    body = {
        "__module__": __name__,
        "__annotations__": {"sender": Sender, "handler": Handler, **dict.fromkeys(handlers, Handler)},
        "sender": subsystem(sends=[*others, U8]),
        "handler": subsystem(consumes=U8),
        **handlers,
    }
    made = type(f"Of{size}", (), body)
    return orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)(made)


def _send_ns(app: Any, size: int, count: int) -> float:
    """Nanoseconds for a message to one of them, while the others have nothing to do."""
    watch = Stopwatch()
    others = {f"other{place}": Handler(0, watch) for place in range(size - 2)}

    async def run() -> None:
        sender, handler = Sender(U8, 7, count, watch), Handler(count, watch)
        async with start(app(sender=sender, handler=handler, **others)) as running:
            await running.drain()

    loops.run(run())
    return watch.per_message(count)


class Feeds(Subsystem):
    """Fills its own inbox, then sends itself a message and takes the first one, `count` times."""

    def __init__(self, queued: int, count: int) -> None:
        self.queued = queued
        self.count = count
        self.took = 0

    async def run(self, ctx: Context[U8, U8, Never]) -> None:
        for _ in range(self.queued):
            ctx.try_send(U8(7))
        began = clock()
        for _ in range(self.count):
            ctx.try_send(U8(7))
            ctx.try_recv()
        self.took = clock() - began
        while ctx.try_recv() is not None:
            pass


@orchestra(signal=Signal, event=Signal, message_capacity=1_000_000)
class Fed:
    feeds: Feeds = subsystem(consumes=U8, sends=[U8])


def _behind_ns(queued: int, count: int) -> float:
    feeds = Feeds(queued, count)

    async def run() -> None:
        async with start(Fed(feeds=feeds), dead_letters=lambda letter: None) as running:
            await running.drain()

    loops.run(run())
    return feeds.took / count


def _decorate_ms(size: int) -> float:
    """Milliseconds for each subsystem of a ring."""
    ring = Ring(size, synchronous)
    began = clock()
    ring.decorate()
    return (clock() - began) / 1e6 / size


def groups(count: int, rounds: int) -> Sequence[Group]:
    """The groups: `count` messages in a run, and so many rounds at most."""
    return [
        Group(
            name="subsystems",
            title="a send to one of them, a synchronous Actor",
            unit="ns a message",
            cases=[
                Case(
                    bars.among(size),
                    partial(_send_ns, app_class(size), size, count),
                    bars.among(bars.AMONG[0]),
                )
                for size in bars.AMONG
            ],
            ratio=f"× among {bars.AMONG[0]}",
            rounds=rounds,
            one_loop=True,
        ),
        Group(
            name="waiting",
            title="a send and a receive, while others wait",
            unit="ns a message",
            cases=[
                Case(bars.behind(queued), partial(_behind_ns, queued, count), bars.behind(bars.BEHIND[0]))
                for queued in bars.BEHIND
            ],
            ratio=f"× {bars.BEHIND[0]} queued",
            rounds=rounds,
            one_loop=True,
        ),
        Group(
            name="decorating",
            title="the decoration of a ring",
            unit="ms a subsystem",
            cases=[
                Case(bars.decorate(size), partial(_decorate_ms, size), bars.decorate(bars.DECORATED[0]))
                for size in bars.DECORATED
            ],
            ratio=f"× of {bars.DECORATED[0]}",
            rounds=rounds,
            one_loop=True,
            cold=True,
        ),
    ]
