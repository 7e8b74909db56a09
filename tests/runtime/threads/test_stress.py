"""Real threads against the loop: nothing lost or doubled, order, capacity, and signals before messages."""

import asyncio
import random
import sys
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra import Actor, Closed, DropOldest, Priority, Subsystem, orchestra, start, subsystem
from tests.effort import examples
from tests.runtime.players import Bell, Job, Knock, Note, within

COUNT = 150


@pytest.fixture(autouse=True)
def switching() -> Generator[None, None, None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def dither(chance: random.Random) -> None:
    if chance.random() < 0.05:
        time.sleep(chance.random() * 2e-4)


class Gauge:
    """Looks at the length of a queue whenever something is taken from it."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.signals = 0
        self.early = 0

    def take(self, item: Any) -> None:
        if isinstance(item, Bell):
            assert item.n == self.signals + 1
            self.signals += 1
            return
        seen, number = divmod(item.n, 1_000_000)
        self.early += seen > self.signals
        self.got.append(number)


class LoopSource(Subsystem):
    def __init__(self, number: int, seed: int) -> None:
        self.number, self.chance, self.signals = number, random.Random(seed), 0

    def look(self, ctx: Any) -> None:
        while True:
            try:
                if ctx.try_recv() is None:
                    return
            except Closed:
                return
            self.signals += 1

    async def run(self, ctx: Any) -> None:
        for n in range(COUNT):
            self.look(ctx)
            kind = Job if n % 2 else Note
            await ctx.send(kind(self.signals * 1_000_000 + self.number * 10_000 + n))
            if self.chance.random() < 0.1:
                await asyncio.sleep(0)


class ThreadSource(LoopSource):
    def run(self, ctx: Any) -> None:  # type: ignore[override]
        for n in range(COUNT):
            self.look(ctx)
            kind = Job if n % 2 else Note
            ctx.send(kind(self.signals * 1_000_000 + self.number * 10_000 + n))
            dither(self.chance)


class ThreadRun(Subsystem, Gauge):
    def __init__(self) -> None:
        Gauge.__init__(self)

    def run(self, ctx: Any) -> None:
        for item in ctx:
            self.take(item)


class ThreadActor(Actor, Gauge):
    def __init__(self) -> None:
        Gauge.__init__(self)

    def handle(self, ctx: Any, message: Any) -> None:
        self.take(message)

    def on_signal(self, ctx: Any, signal: Any) -> None:
        self.take(signal)


class LoopRun(Subsystem, Gauge):
    def __init__(self) -> None:
        Gauge.__init__(self)

    async def run(self, ctx: Any) -> None:
        async for item in ctx:
            self.take(item)


class LoopAsync(ThreadActor):
    async def handle(self, ctx: Any, message: Any) -> None:  # type: ignore[override]
        self.take(message)
        await asyncio.sleep(0)


RECEIVERS = {
    ThreadRun: True,
    ThreadActor: True,
    type("LoopActor", (ThreadActor,), {}): False,
    LoopRun: False,
    LoopAsync: False,
}


def mix(receivers: tuple[Any, Any], capacity: int, seed: int) -> Any:
    first, second = receivers

    @orchestra(signal=Bell, event=Knock)
    class Mix:
        one: LoopSource = subsystem(sends=[Job, Note])
        two: ThreadSource = subsystem(sends=[Job, Note], blocking=True)
        three: ThreadSource = subsystem(sends=[Job, Note], blocking=True)
        jobs: first = subsystem(consumes=Job, blocking=RECEIVERS[first], message_capacity=capacity)
        notes: second = subsystem(consumes=Note, blocking=RECEIVERS[second], message_capacity=capacity)

    return Mix(
        one=LoopSource(0, seed),
        two=ThreadSource(1, seed + 1),
        three=ThreadSource(2, seed + 2),
        jobs=first(),
        notes=second(),
    )


@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.tuples(*[st.sampled_from(sorted(RECEIVERS, key=lambda kind: kind.__name__))] * 2),
    st.sampled_from([1, 2, 7, 64]),
    st.integers(0, 1000),
)
def test_nothing_is_lost_doubled_or_out_of_order(receivers: Any, capacity: int, seed: int) -> None:
    app = mix(receivers, capacity, seed)

    async def main() -> None:
        async with start(app) as running:
            for n in range(1, 6):
                await asyncio.sleep(0.0005)
                try:
                    await running.broadcast(Bell(n))
                except Closed:
                    break
                meters = running.meters()
                for name in ("jobs", "notes"):
                    assert meters[name].queued <= capacity
                    assert meters[name].peak <= capacity
            await running.drain()
            for name in ("jobs", "notes"):
                meters = running.meters()[name]
                assert (meters.sent, meters.received, meters.queued) == (3 * COUNT // 2, 3 * COUNT // 2, 0)

    within(30, main())
    for receiver, remainder in ((app.jobs, 1), (app.notes, 0)):
        assert receiver.early == 0, "a message came before a signal that its sender had seen"
        for source in range(3):
            mine = [n % 10_000 for n in receiver.got if n // 10_000 == source]
            assert mine == [n for n in range(COUNT) if n % 2 == remainder]


@settings(
    max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from([1, 3, 50]), st.integers(0, 1000), st.sampled_from([0.0, 0.001, 0.004]))
def test_a_stop_in_the_middle_accounts_for_each_message(capacity: int, seed: int, pause: float) -> None:
    letters: list[Any] = []
    sent: list[int] = []
    lock = threading.Lock()

    class Sends(Subsystem):
        def __init__(self, first: int) -> None:
            self.first = first

        def run(self, ctx: Any) -> None:
            for n in range(self.first, self.first + 5000):
                ctx.send(Job(n))
                with lock:
                    sent.append(n)

    @orchestra(signal=Bell, event=Knock)
    class App:
        one: Sends = subsystem(sends=[Job], blocking=True)
        two: Sends = subsystem(sends=[Job], blocking=True)
        jobs: ThreadRun = subsystem(consumes=Job, blocking=True, message_capacity=capacity)

    app = App(one=Sends(0), two=Sends(10_000), jobs=ThreadRun())

    async def main() -> None:
        async with start(app, dead_letters=letters.append) as running:
            await asyncio.sleep(pause)
            waiting = [asyncio.ensure_future(running.send(Job(100_000 + n))) for n in range(20)]
            await asyncio.sleep(0)
            for task in waiting[::2]:
                task.cancel()
            results = await asyncio.gather(*waiting, running.stop(), return_exceptions=True)
            sent.extend(100_000 + n for n, result in enumerate(results[:-1]) if result is True)

    within(30, main())
    accounted = sorted(app.jobs.got + [letter.message.n for letter in letters])
    assert accounted == sorted(sent)


@pytest.mark.parametrize("blocking", [True, False])
def test_drop_oldest_under_fire(blocking: bool) -> None:
    kind = ThreadActor if blocking else next(k for k in RECEIVERS if k.__name__ == "LoopActor")

    class Sends(Subsystem):
        def run(self, ctx: Any) -> None:
            for n in range(3000):
                assert ctx.send(Job(n), priority=Priority.HIGH if n % 3 else Priority.NORMAL)

    @orchestra(signal=Bell, event=Knock)
    class App:
        one: Sends = subsystem(sends=[Job], blocking=True)
        two: Sends = subsystem(sends=[Job], blocking=True)
        jobs: kind = subsystem(
            consumes=Job,
            blocking=blocking,
            message_capacity={Priority.HIGH: 1, Priority.NORMAL: 2},
            overflow=DropOldest(),
        )

    app = App(one=Sends(), two=Sends(), jobs=kind())

    async def main() -> None:
        async with start(app) as running:
            await running.drain()
            meters = running.meters()["jobs"]
            assert meters.sent == 6000 == meters.received + meters.evicted
            assert meters.received == len(app.jobs.got)

    within(30, main())
