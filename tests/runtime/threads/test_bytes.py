"""Lanes that count bytes, used by threads and the loop together."""

import asyncio
import random
import sys
import time
from collections.abc import Generator
from typing import Any

import msgspec
import pytest

from orchestra import (
    Actor,
    BlockFirst,
    Drop,
    DropOldest,
    Fail,
    Full,
    Priority,
    Subsystem,
    TooLarge,
    orchestra,
    start,
    subsystem,
)
from tests.runtime.players import Bell, Knock, until, within

COUNT = 200
LIMIT = 100


class Load(msgspec.Struct):
    sender: int
    number: int
    data: bytes


class News(Load): ...


@pytest.fixture(autouse=True)
def switching() -> Generator[None, None, None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class LoopSource(Subsystem):
    """Sends loads of every size; notes how many were taken by every receiver."""

    def __init__(self, number: int) -> None:
        self.number, self.chance, self.accepted = number, random.Random(number), 0

    def loads(self) -> Generator[Load, None, None]:
        for number in range(COUNT):
            yield (Load if number % 2 else News)(
                self.number, number, bytes(self.chance.choice([1, 10, 40, 80]))
            )

    async def run(self, ctx: Any) -> None:
        for load in self.loads():
            self.accepted += await ctx.send(load)
            if self.chance.random() < 0.1:
                await asyncio.sleep(0)


class ThreadSource(LoopSource):
    def run(self, ctx: Any) -> None:  # type: ignore[override]
        for load in self.loads():
            self.accepted += ctx.send(load)
            if self.chance.random() < 0.05:
                time.sleep(self.chance.random() * 2e-4)


class Taker:
    def __init__(self) -> None:
        self.got: list[tuple[int, int]] = []

    def take(self, load: Load) -> None:
        self.got.append((load.sender, load.number))


class ThreadRun(Subsystem, Taker):
    def __init__(self) -> None:
        Taker.__init__(self)

    def run(self, ctx: Any) -> None:
        for load in ctx:
            self.take(load)


class ThreadActor(Actor, Taker):
    def __init__(self) -> None:
        Taker.__init__(self)

    def handle(self, ctx: Any, message: Any) -> None:
        self.take(message)


class LoopActor(ThreadActor): ...


class LoopAsync(ThreadActor):
    async def handle(self, ctx: Any, message: Any) -> None:  # type: ignore[override]
        self.take(message)
        await asyncio.sleep(0)


RECEIVERS = {ThreadRun: True, ThreadActor: True, LoopActor: False, LoopAsync: False}


def mix(receiver: Any, policy: Any) -> Any:
    """Two sources, in the loop and in a thread, of what one consumes and both subscribe to."""
    options: dict[str, Any] = {"capacity_bytes": LIMIT, "message_capacity": 8}
    if policy is not None:
        options["overflow"] = policy

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class Mix:
        loop: LoopSource = subsystem(sends=[Load, News])
        thread: ThreadSource = subsystem(sends=[Load, News], blocking=True)
        first: receiver = subsystem(consumes=Load, subscribes=[News], blocking=RECEIVERS[receiver], **options)
        second: ThreadRun = subsystem(subscribes=[News], blocking=True, capacity_bytes=LIMIT)

    return Mix(loop=LoopSource(0), thread=ThreadSource(1), first=receiver(), second=ThreadRun())


@pytest.mark.parametrize("receiver", RECEIVERS)
@pytest.mark.parametrize("policy", [None, Drop(0.0005), DropOldest(), BlockFirst()])
def test_nothing_is_lost_unseen_and_the_bytes_hold(receiver: Any, policy: Any) -> None:
    app = mix(receiver, policy)

    async def main() -> None:
        async with start(app) as running:

            def done() -> bool:
                meters = running.meters()
                assert all(0 <= each.bytes <= LIMIT for each in meters.values())
                first = meters["first"]
                seen = first.received + first.dropped
                return seen == 2 * COUNT and meters["second"].received == COUNT

            await until(done, 20)
            await running.drain()
            meters = running.meters()["first"]
            assert (meters.bytes, meters.queued, meters.waiting) == (0, 0, 0)
            assert meters.received == len(app.first.got)
            if policy is None:
                assert meters.dropped == 0
                assert app.loop.accepted == app.thread.accepted == COUNT

    within(30, main())
    for got in (app.first.got, app.second.got):
        for sender in (0, 1):
            numbers = [number for who, number in got if who == sender]
            assert numbers == sorted(set(numbers)), "doubled, or out of order"


class Slow(ThreadActor):
    def handle(self, ctx: Any, message: Any) -> None:
        time.sleep(0.05)
        super().handle(ctx, message)


def test_a_thread_is_told_what_can_never_fit_and_waits_for_what_will() -> None:
    told: list[Any] = []

    class Asks(Subsystem):
        def run(self, ctx: Any) -> None:
            for send in (ctx.send, ctx.try_send):
                try:
                    send(Load(0, 0, bytes(200)))
                except TooLarge as error:
                    told.append(error.capacity)
            for number in range(4):
                ctx.send(Load(0, number, bytes(60)))
            try:
                ctx.try_send(Load(0, 9, bytes(60)))
            except Full:
                told.append("full")
            try:
                ctx.send(Load(0, 9, bytes(60)), overflow=Fail())
            except Full:
                told.append("fails")
            told.append(ctx.send(Load(0, 9, bytes(60)), overflow=Drop(0.001)))

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        asks: Asks = subsystem(sends=[Load], blocking=True)
        slow: Slow = subsystem(
            consumes=Load, blocking=True, capacity_bytes=LIMIT, priorities=[Priority.HIGH, Priority.NORMAL]
        )

    app = App(asks=Asks(), slow=Slow())

    async def main() -> None:
        async with start(app) as running:
            await until(lambda: len(told) == 5)
            await running.drain()

    within(20, main())
    assert told == [LIMIT, LIMIT, "full", "fails", False]
    assert app.slow.got == [(0, number) for number in range(4)]


def test_a_stop_accounts_for_each_message() -> None:
    for seed in range(6):
        app = mix(ThreadActor, None)
        letters: list[Any] = []

        async def main(app: Any = app, letters: Any = letters, seed: int = seed) -> None:
            async with start(app, dead_letters=letters.append) as running:
                await asyncio.sleep(0.002 * seed)
                await running.stop(timeout=5)
                for name in ("first", "second"):
                    meters = running.meters()[name]
                    assert meters.sent == meters.received + meters.evicted
                    buried = [letter for letter in letters if letter.subsystem == name]
                    assert meters.bytes == 0
                    assert len(buried) >= meters.evicted

        within(30, main())
