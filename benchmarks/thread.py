"""Messages between the loop and a thread, beside the queues of culsans, janus and aiologic, made for that.

The clock is one on the wall: what a thread and the loop wait for each other is part of the cost. It runs from
the first send until the last message is taken.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from time import perf_counter_ns as clock
from typing import Any, Never, TypeAlias

import msgspec

from benchmarks import bars, loops, peers
from benchmarks.harness import Case, Group
from benchmarks.messages import U8, Signal
from benchmarks.queues import CAPACITY
from orchestra import Actor, BlockingContext, Context, Subsystem, orchestra, start, subsystem

BESIDE = "culsans"
"""The library whose queue the bar of a message to a thread is for."""


class Echoed(msgspec.Struct, frozen=True, gc=False):
    """What comes back."""

    value: int


class Sends(Subsystem):
    """Sends `count` messages from the loop."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.began = 0

    async def run(self, ctx: Context[Never, U8, Any]) -> None:
        self.began = clock()
        for _ in range(self.count):
            await ctx.send(U8(7))


class SendsInThread(Sends):
    """The same from a thread."""

    def run(self, ctx: BlockingContext[Never, U8, Any]) -> None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # a thread needs a plain def
        self.began = clock()
        for _ in range(self.count):
            ctx.send(U8(7))


class TakesInThread(Subsystem):
    """Takes `count` messages in a thread."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.ended = 0

    def run(self, ctx: BlockingContext[U8, Never, Any]) -> None:
        left = self.count
        for _ in ctx:
            left -= 1
            if not left:
                break
        self.ended = clock()


class Echoes(Subsystem):
    """Sends back from a thread what it takes."""

    def run(self, ctx: BlockingContext[U8, Echoed, Any]) -> None:
        for item in ctx:
            ctx.send(Echoed(item.value))


class Takes(Actor):
    """Takes `count` messages in the loop."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.ended = 0

    def handle(self, ctx: Context[Any, Never, Any], message: Any) -> None:
        self.left -= 1
        if not self.left:
            self.ended = clock()


@orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)
class ToThread:
    sender: Sends = subsystem(sends=[U8])
    receiver: TakesInThread = subsystem(consumes=U8, blocking=True)


@orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)
class FromThread:
    sender: SendsInThread = subsystem(sends=[U8], blocking=True)
    receiver: Takes = subsystem(consumes=U8)


@orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)
class ThereAndBack:
    sender: Sends = subsystem(sends=[U8])
    echo: Echoes = subsystem(consumes=U8, sends=[Echoed], blocking=True)
    receiver: Takes = subsystem(consumes=Echoed)


async def _orchestra(app: Any, count: int) -> float:
    """Nanoseconds a message."""
    async with start(app) as running:
        await running.drain()
    return float(app.receiver.ended - app.sender.began) / count


Make: TypeAlias = Callable[[int], peers.TwoSided]
ByQueue: TypeAlias = Callable[[Make, int], Coroutine[Any, Any, float]]


async def _to_thread(make: Make, count: int) -> float:
    queue = make(CAPACITY)
    ended_at = 0

    def take() -> None:
        nonlocal ended_at
        for _ in range(count):
            queue.sync_q.get()
        ended_at = clock()

    with _thread(take) as ended:
        began = clock()
        for _ in range(count):
            await queue.async_q.put(U8(7))
        await ended()
    return (ended_at - began) / count


async def _from_thread(make: Make, count: int) -> float:
    queue = make(CAPACITY)
    began = 0

    def send() -> None:
        nonlocal began
        began = clock()
        for _ in range(count):
            queue.sync_q.put(U8(7))

    with _thread(send):
        for _ in range(count):
            await queue.async_q.get()
        ended_at = clock()
    return (ended_at - began) / count


async def _there_and_back(make: Make, count: int) -> float:
    there, back = make(CAPACITY), make(CAPACITY)

    def echo() -> None:
        for _ in range(count):
            back.sync_q.put(Echoed(there.sync_q.get().value))

    async def take() -> None:
        for _ in range(count):
            await back.async_q.get()

    with _thread(echo):
        taking = asyncio.ensure_future(take())
        began = clock()
        for _ in range(count):
            await there.async_q.put(U8(7))
        await taking
        ended_at = clock()
    return (ended_at - began) / count


class _thread:  # noqa: N801 - it is used as a function
    """A thread for the time of the `with`; it gives a function that awaits its end."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._work = work
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self._work()
        self._loop.call_soon_threadsafe(self._ended.set_result, None)

    def __enter__(self) -> Callable[[], Coroutine[Any, Any, None]]:
        self._thread.start()
        return self._wait

    async def _wait(self) -> None:
        await self._ended

    def __exit__(self, *error: object) -> None:
        self._thread.join()


def _beside(way: str, app: Callable[[], Any], by_queue: ByQueue, count: int) -> list[Case]:
    """One way through an orchestra, and the same through the queues of peers, of which the first counts."""
    beside = [
        (f"{way}, {peer.name}", partial(_run, by_queue, peer.two_sided, peer.fewer(count)))
        for peer in peers.found()
        if peer.two_sided is not None
    ]
    against = beside[0][0] if beside else way
    first = Case(
        way, lambda: loops.run(_orchestra(app(), count)), against, judged=BESIDE not in peers.missing()
    )
    return [first, *(Case(name, run, against) for name, run in beside)]


def _run(by_queue: ByQueue, make: Make, count: int) -> float:
    return loops.run(by_queue(make, count))


def group(count: int) -> Group:
    """The cases, each with `count` messages in a run."""
    cases = [
        *_beside(
            bars.TO_THREAD,
            lambda: ToThread(sender=Sends(count), receiver=TakesInThread(count)),
            _to_thread,
            count,
        ),
        *_beside(
            bars.FROM_THREAD,
            lambda: FromThread(sender=SendsInThread(count), receiver=Takes(count)),
            _from_thread,
            count,
        ),
        *_beside(
            bars.THERE_AND_BACK,
            lambda: ThereAndBack(sender=Sends(count), echo=Echoes(), receiver=Takes(count)),
            _there_and_back,
            count,
        ),
    ]
    return Group(
        name="thread",
        title=f"the event loop and a thread, capacity {CAPACITY}",
        unit="ns a message",
        cases=cases,
        ratio=f"× {next((peer.name for peer in peers.that_can('two_sided')), 'itself')}",
        wall=True,
    )
