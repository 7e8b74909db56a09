"""The ready-queue: its order, its budget, and that the loop is served however busy the subsystems are."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from orchestra import Actor, Context, Subsystem, orchestra, start, subsystem
from orchestra.runtime import scheduler as module
from orchestra.runtime.scheduler import BUDGET, Scheduler
from tests.runtime.clockwork import clockwork


@attrs.frozen
class Ping:
    hops: int = 0


@attrs.frozen
class Pong:
    hops: int = 0


@attrs.frozen
class Halt: ...


def work(seconds: float) -> None:
    """Keep the processor busy."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


# the ready-queue by itself


def test_steps_run_in_the_order_in_which_they_became_ready() -> None:
    with clockwork() as loop:
        scheduler, ran = Scheduler(loop), list[str]()

        def step(name: str, following: str = "") -> Callable[[], int]:
            def run() -> int:
                ran.append(name)
                if following:
                    scheduler.add(step(following))
                return 0

            return run

        scheduler.add(step("a", "c"))
        scheduler.add(step("b"))
        assert ran == []
        loop.turn()
        assert ran == ["a", "b", "c"]
        assert not scheduler.ready
        assert not scheduler.awake


def test_a_turn_ends_when_its_slice_is_over_and_goes_on_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(module, "monotonic", lambda: clock)
    with clockwork() as loop:
        scheduler, ran = Scheduler(loop), 0

        def step() -> int:
            nonlocal clock, ran
            clock += 0.001
            ran += 1
            if ran < 10_000:
                scheduler.add(step)
            return 0

        scheduler.add(step)
        turns = []
        for _ in range(50):
            before = ran
            loop.turn()
            turns.append(ran - before)
        assert max(turns) <= 8
        assert min(turns) >= 1


def test_quick_steps_get_a_whole_budget_between_two_looks_at_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, clock = 0, 0.0

    def look() -> float:
        nonlocal looks
        looks += 1
        return clock

    monkeypatch.setattr(module, "monotonic", look)
    with clockwork() as loop:
        scheduler, ran = Scheduler(loop), 0

        def step() -> int:
            nonlocal clock, ran
            clock += 0.000_000_5
            ran += 1
            if ran < 50_000:
                scheduler.add(step)
            return 0

        scheduler.add(step)
        loop.settle()
        assert ran == 50_000
        assert looks < 1.2 * ran / BUDGET + 20


def test_after_quick_steps_slow_ones_cannot_hold_the_loop_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(module, "monotonic", lambda: clock)
    with clockwork() as loop:
        scheduler, ran, longest = Scheduler(loop), 0, 0.0

        def step() -> int:
            nonlocal clock, ran
            clock += 0.000_001 if ran < 2_000 else 0.001
            ran += 1
            if ran < 3_000:
                scheduler.add(step)
            return 0

        scheduler.add(step)
        while scheduler.awake:
            before = clock
            loop.turn()
            longest = max(longest, clock - before)
        assert longest < (BUDGET + 1) * 0.001, "one budget, and then a message a turn"


def test_a_step_goes_on_only_while_nobody_else_is_ready_and_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = 1.0
    monkeypatch.setattr(module, "monotonic", lambda: clock)
    with clockwork() as loop:
        scheduler, given = Scheduler(loop), list[int]()

        def step() -> int:
            nonlocal clock
            given.append(scheduler.more())
            given.append(scheduler.more())
            scheduler.add(lambda: 0)
            given.append(scheduler.more())
            scheduler.ready.clear()
            clock += module.SLICE
            given.append(scheduler.more())
            return 0

        assert scheduler.more() == 0, "no turn has begun"
        scheduler.add(step)
        loop.settle()
        assert given == [2, 4, 0, 0]


def test_no_more_than_a_budget_is_handled_between_two_looks_at_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handled, clock, between = 0, 0.0, list[int]()

    def look() -> float:
        nonlocal handled
        between.append(handled)
        handled = 0
        return clock

    monkeypatch.setattr(module, "monotonic", look)
    with clockwork() as loop:
        scheduler, total = Scheduler(loop), 0

        def step(wanted: int) -> Callable[[], int]:
            def run() -> int:
                nonlocal clock, handled, total
                number = min(wanted, scheduler.left() + 1)
                handled, total, clock = handled + number, total + number, clock + 1e-7 * number
                if total < 20_000:
                    scheduler.add(run)
                return number - 1

            return run

        for wanted in (1, 7, 1, 64, 20, 1):
            scheduler.add(step(wanted))
        loop.settle()
        assert total >= 20_000
        assert max(between) == BUDGET


def test_an_error_in_a_step_leaves_the_other_steps_alone() -> None:
    with clockwork() as loop:
        scheduler, ran = Scheduler(loop), list[str]()

        def fail() -> int:
            raise ValueError("in a step")

        def succeed() -> int:
            ran.append("the other")
            return 0

        for step in (fail, succeed, fail):
            scheduler.add(step)
        loop.settle()
        assert ran == ["the other"]
        assert [str(context["exception"]) for context in loop.errors] == ["in a step"] * 2
        loop.errors.clear()
        assert not scheduler.awake
        scheduler.add(succeed)
        loop.settle()
        assert ran == ["the other"] * 2


def test_rest_is_told_when_nothing_is_ready_and_after_a_poke() -> None:
    with clockwork() as loop:
        scheduler, rests = Scheduler(loop), list[int]()
        scheduler.poke()
        loop.settle()
        scheduler.on_rest = lambda: rests.append(len(scheduler.ready))
        scheduler.add(lambda: 0)
        scheduler.poke()
        loop.settle()
        assert rests == [0]
        scheduler.poke()
        loop.settle()
        assert rests == [0, 0]


# whole orchestras that never rest


class SyncPing(Actor[Ping, Pong]):
    busy = 0.0

    def handle(self, ctx: Context[Ping, Pong, Any], message: Ping) -> Any:
        work(self.busy)
        ctx.try_send(Pong(message.hops + 1))


class SyncPong(Actor[Pong, Ping]):
    def __init__(self) -> None:
        self.hops = 0

    def handle(self, ctx: Context[Pong, Ping, Any], message: Pong) -> Any:
        self.hops = message.hops
        ctx.try_send(Ping(message.hops + 1))


class AsyncPing(SyncPing):
    async def handle(self, ctx: Context[Ping, Pong, Any], message: Ping) -> None:
        work(self.busy)
        await ctx.send(Pong(message.hops + 1))


class AsyncPong(SyncPong):
    async def handle(self, ctx: Context[Pong, Ping, Any], message: Pong) -> None:
        self.hops = message.hops
        await ctx.send(Ping(message.hops + 1))


class SlowSyncPing(SyncPing):
    busy = 0.001


class SlowAsyncPing(AsyncPing):
    busy = 0.001


class RunPing(Subsystem[Ping, Pong]):
    async def run(self, ctx: Context[Ping, Pong, Any]) -> None:
        async for item in ctx:
            await ctx.send(Pong(item.hops + 1))


class RunPong(Subsystem[Pong, Ping]):
    def __init__(self) -> None:
        self.hops = 0

    async def run(self, ctx: Context[Pong, Ping, Any]) -> None:
        async for item in ctx:
            self.hops = item.hops
            await ctx.send(Ping(item.hops + 1))


class SyncSelf(Actor[Ping, Ping]):
    busy = 0.0

    def __init__(self) -> None:
        self.hops = 0

    def handle(self, ctx: Context[Ping, Ping, Any], message: Ping) -> Any:
        work(self.busy)
        self.hops = message.hops
        ctx.try_send(Ping(message.hops + 1))


class AsyncSelf(SyncSelf):
    async def handle(self, ctx: Context[Ping, Ping, Any], message: Ping) -> None:
        work(self.busy)
        self.hops = message.hops
        await ctx.send(Ping(message.hops + 1))


class SlowSyncSelf(SyncSelf):
    busy = 0.001


class SlowAsyncSelf(AsyncSelf):
    busy = 0.001


class RunSelf(Subsystem[Ping, Ping]):
    def __init__(self) -> None:
        self.hops = 0

    async def run(self, ctx: Context[Ping, Ping, Any]) -> None:
        async for item in ctx:
            self.hops = item.hops
            await ctx.send(Ping(item.hops + 1))


class SlowRunSelf(RunSelf):
    async def run(self, ctx: Context[Ping, Ping, Any]) -> None:
        async for item in ctx:
            work(0.001)
            self.hops = item.hops
            await ctx.send(Ping(item.hops + 1))


class PollSelf(RunSelf):
    async def run(self, ctx: Context[Ping, Ping, Any]) -> None:
        first = await ctx.recv()
        await ctx.send(first)
        async for item in ctx:
            self.hops += 1
            another = ctx.try_recv()
            await ctx.send(item)
            if another is not None:
                await ctx.send(another)


def app_of(**subsystems: Any) -> Any:
    """An instance of an orchestra with these subsystems; what they consume and send stands in their bases."""
    fields: dict[str, Any] = {name: subsystem() for name in subsystems}
    fields["__annotations__"] = {name: type(each) for name, each in subsystems.items()}
    kind: Any = orchestra(signal=Halt, event=Halt)(type("Busy", (), fields))
    return kind(**subsystems)


def ring_of(ping: Any, pong: Any) -> tuple[Any, Any]:
    return app_of(ping=ping, pong=pong), pong


def loop_of(oneself: Any) -> tuple[Any, Any]:
    return app_of(oneself=oneself), oneself


BUSY: dict[str, Callable[[], tuple[Any, Any]]] = {
    "synchronous ring": lambda: ring_of(SyncPing(), SyncPong()),
    "asynchronous ring": lambda: ring_of(AsyncPing(), AsyncPong()),
    "mixed ring": lambda: ring_of(SyncPing(), AsyncPong()),
    "ring of run": lambda: ring_of(RunPing(), RunPong()),
    "slow synchronous ring": lambda: ring_of(SlowSyncPing(), SyncPong()),
    "slow asynchronous ring": lambda: ring_of(SlowAsyncPing(), AsyncPong()),
    "sends to itself in a synchronous handler": lambda: loop_of(SyncSelf()),
    "sends to itself in an asynchronous handler": lambda: loop_of(AsyncSelf()),
    "sends to itself in run": lambda: loop_of(RunSelf()),
    "sends to itself what it polls": lambda: loop_of(PollSelf()),
    "sends to itself in a slow synchronous handler": lambda: loop_of(SlowSyncSelf()),
    "sends to itself in a slow asynchronous handler": lambda: loop_of(SlowAsyncSelf()),
    "sends to itself in a slow run": lambda: loop_of(SlowRunSelf()),
}


async def latest(tries: int = 3) -> float:
    """By how much a timer of 10 ms is late, at best of some tries: the machine may be busy as well."""
    best = 1e9
    for _ in range(tries):
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        best = min(best, time.perf_counter() - began)
    return best


@pytest.mark.parametrize("tokens", [1, 100])
@pytest.mark.parametrize("name", BUSY)
def test_a_timer_of_10_ms_fires_within_50_ms_however_busy_it_is(name: str, tokens: int) -> None:
    async def main() -> None:
        app, counting = BUSY[name]()
        async with start(app, dead_letters=lambda _: None) as running:
            for _ in range(tokens):
                assert running.try_send(Ping())
            assert await latest() < 0.05
            assert tokens > 1 or counting.hops > 3

    asyncio.run(main())


@pytest.mark.parametrize("kind", [SlowSyncSelf, SlowAsyncSelf, SlowRunSelf])
def test_the_first_burst_of_slow_messages_does_not_hold_the_loop(kind: Any) -> None:
    async def main() -> float:
        app, _ = loop_of(kind())
        async with start(app, dead_letters=lambda _: None) as running:
            for _ in range(1000):
                running.try_send(Ping())
            longest = 0.0
            for _ in range(20):
                began = time.perf_counter()
                await asyncio.sleep(0)
                longest = max(longest, time.perf_counter() - began)
            return longest

    assert min(asyncio.run(main()) for _ in range(3)) < 0.05


@pytest.mark.parametrize("kinds", [(SyncPing, SyncPong), (AsyncPing, AsyncPong)], ids=["sync", "async"])
def test_two_busy_rings_get_equal_shares(kinds: tuple[Any, Any]) -> None:
    async def main() -> None:
        first, second = ring_of(kinds[0](), kinds[1]()), ring_of(kinds[0](), kinds[1]())
        quiet: dict[str, Any] = {"dead_letters": lambda _: None}
        async with start(first[0], **quiet) as one, start(second[0], **quiet) as two:
            one.try_send(Ping())
            two.try_send(Ping())
            await asyncio.sleep(0.2)
            shares = sorted([first[1].hops, second[1].hops])
            assert shares[0] > 0.5 * shares[1]

    asyncio.run(main())


def test_two_busy_subsystems_of_one_orchestra_get_equal_shares() -> None:
    @attrs.frozen
    class Other:
        hops: int = 0

    class Right(Actor[Other, Other]):
        hops = 0

        def handle(self, ctx: Context[Other, Other, Any], message: Other) -> None:
            self.hops = message.hops
            ctx.try_send(Other(message.hops + 1))

    async def main() -> None:
        handled = 0

        class Left(SyncSelf):
            def handle(self, ctx: Context[Ping, Ping, Any], message: Ping) -> None:
                nonlocal handled
                handled += 1
                super().handle(ctx, message)

        app = app_of(left=Left(), right=Right())
        async with start(app, dead_letters=lambda _: None) as running:
            for _ in range(50):  # one of them has far more to do
                running.try_send(Ping())
            running.try_send(Other())
            await asyncio.sleep(0.2)
            assert app.right.hops > 100
            assert app.right.hops > 0.3 * handled

    asyncio.run(main())


@pytest.mark.parametrize("name", BUSY)
def test_nothing_is_left_in_the_ready_queue_after_the_end(name: str) -> None:
    async def main() -> None:
        app, counting = BUSY[name]()
        async with start(app, dead_letters=lambda _: None) as running:
            running.try_send(Ping())
            await until(lambda: counting.hops > 10)
            scheduler = running._ensemble.scheduler
        await asyncio.sleep(0)
        assert not scheduler.ready
        assert not scheduler.awake
        assert scheduler.on_rest is None

    asyncio.run(main())


async def until(
    holds: Callable[[], bool], pause: Callable[[], Awaitable[Any]] = lambda: asyncio.sleep(0)
) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await pause()
