"""One subsystem sends, one receives: what a message costs through the whole framework."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Never

from benchmarks import bars, loops, peers
from benchmarks.floor import clock
from benchmarks.harness import Case, Group, Lead
from benchmarks.messages import BYTES, U8, Block, Signal
from benchmarks.queues import CAPACITY
from orchestra import Actor, Context, Full, Subsystem, orchestra, start, subsystem


class Stopwatch:
    """When the first message was sent and when the last was handled, in nanoseconds."""

    began = 0
    ended = 0

    def per_message(self, count: int) -> float:
        return (self.ended - self.began) / count


class Sender(Subsystem):
    """Awaits the send of `count` new messages, then ends."""

    def __init__(self, kind: Callable[[Any], Any], value: Any, count: int, watch: Stopwatch) -> None:
        self.kind = kind
        self.value = value
        self.count = count
        self.watch = watch

    async def run(self, ctx: Context[Never, Any, Any]) -> None:
        kind, value = self.kind, self.value
        self.watch.began = clock()
        for _ in range(self.count):
            await ctx.send(kind(value))


class Trier(Sender):
    """Sends what there is room for, and lets the others run when there is none."""

    async def run(self, ctx: Context[Never, Any, Any]) -> None:
        kind, value = self.kind, self.value
        self.watch.began = clock()
        left = self.count
        while left:
            try:
                while left:
                    ctx.try_send(kind(value))
                    left -= 1
            except Full:
                await asyncio.sleep(0)


class Handler(Actor):
    """Counts what it handles, in a synchronous handler."""

    def __init__(self, count: int, watch: Stopwatch) -> None:
        self.left = count
        self.watch = watch

    def handle(self, ctx: Context[Any, Never, Any], message: Any) -> None:
        self.left -= 1
        if not self.left:
            self.watch.ended = clock()


class Receiver(Subsystem):
    """Counts what it receives, in a loop of its own."""

    def __init__(self, count: int, watch: Stopwatch) -> None:
        self.count = count
        self.watch = watch

    async def run(self, ctx: Context[Any, Never, Any]) -> None:
        left = self.count
        while left:
            await ctx.recv()
            left -= 1
        self.watch.ended = clock()


@orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)
class ToHandler:
    sender: Sender = subsystem(sends=[U8, Block])
    handler: Handler = subsystem(consumes=U8 | Block)


@orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY, boxed_messages=True)
class ToHandlerBoxed:
    sender: Sender = subsystem(sends=[U8, Block])
    handler: Handler = subsystem(consumes=U8 | Block)


@orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)
class TriedToHandler:
    sender: Trier = subsystem(sends=[U8])
    handler: Handler = subsystem(consumes=U8)


@orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)
class ToReceiver:
    sender: Sender = subsystem(sends=[U8])
    receiver: Receiver = subsystem(consumes=U8)


async def _drained(app: Any) -> None:
    async with start(app) as running:
        await running.drain()


def to_handler_ns(app: type[ToHandler] | type[ToHandlerBoxed], kind: type, value: Any, count: int) -> float:
    watch = Stopwatch()
    loops.run(_drained(app(sender=Sender(kind, value, count, watch), handler=Handler(count, watch))))
    return watch.per_message(count)


def tried_to_handler_ns(count: int) -> float:
    watch = Stopwatch()
    loops.run(_drained(TriedToHandler(sender=Trier(U8, 7, count, watch), handler=Handler(count, watch))))
    return watch.per_message(count)


def to_receiver_ns(count: int) -> float:
    watch = Stopwatch()
    loops.run(_drained(ToReceiver(sender=Sender(U8, 7, count, watch), receiver=Receiver(count, watch))))
    return watch.per_message(count)


def group(count: int) -> Group:
    """The cases, each with `count` messages in a run, of the slower peers with fewer."""
    beside = list(peers.that_can("send"))
    return Group(
        name="send",
        title=f"one sender, one receiver, capacity {CAPACITY}",
        unit="ns a message",
        cases=[
            Case(bars.U8_PLAIN, lambda: to_handler_ns(ToHandler, U8, 7, count)),
            Case(bars.U8_TRY, lambda: tried_to_handler_ns(count)),
            Case(bars.U8_BOXED, lambda: to_handler_ns(ToHandlerBoxed, U8, 7, count)),
            Case(bars.BYTES_PLAIN, lambda: to_handler_ns(ToHandler, Block, BYTES, count)),
            Case(bars.BYTES_BOXED, lambda: to_handler_ns(ToHandlerBoxed, Block, BYTES, count)),
            Case(bars.U8_RECV, lambda: to_receiver_ns(count)),
            *(_by_peer(peer, count) for peer in beside),
        ],
        leads=[
            Lead(
                bars.HAND_MADE_SEND,
                bars.U8_PLAIN,
                [bars.sent(peer.name) for peer in beside if not peer.library],
            ),
            Lead(
                bars.FASTEST_SEND,
                bars.U8_PLAIN,
                [bars.sent(peer.name) for peer in beside if peer.library],
                judged=not peers.missing(),
            ),
        ],
    )


def _by_peer(peer: peers.Peer, count: int) -> Case:
    assert peer.send is not None
    run = partial(peer.send, peer.fewer(count))
    return Case(bars.sent(peer.name), run, on_loop=peer.on_loop, wall=peer.wall)
