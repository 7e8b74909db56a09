"""What a lone subsystem stands on: threads, boxes for some, its end, and its clock."""

import asyncio
import threading
import time
from typing import Any, Never

import msgspec
import pytest

from orchestra import (
    Actor,
    OrchestraError,
    Priority,
    Reply,
    StopTimeout,
    Subsystem,
    deferred,
    handles,
    orchestra,
    subsystem,
)
from orchestra.testing import FakeClock, alone, recorded
from tests.runtime.players import Calls, within


class Job(msgspec.Struct, frozen=True):
    n: int


class Ask(msgspec.Struct):
    n: int
    reply: Reply[int]


class Done(msgspec.Struct, frozen=True):
    n: int


class Halt(msgspec.Struct, frozen=True):
    pass


class InThread(Actor[Job, Done | Ask]):
    """Sends from its thread, and beside that from a task in the loop."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def handle(self, ctx: Any, message: Job) -> None:
        self.threads.add(threading.get_ident())
        if message.n < 0:
            ctx.send(Done(ctx.ask(lambda reply: Ask(message.n, reply), timeout=5)))
        for n in range(message.n):
            ctx.send(Done(n))


class RunsInThread(Subsystem[Job, Done]):
    def run(self, ctx: Any) -> None:
        for item in ctx:
            if isinstance(item, Job):
                ctx.send(Done(item.n))


@orchestra(signal=Halt, event=Halt)
class Threaded:
    worker: InThread = subsystem(blocking=True)
    plain: Calls = subsystem(subscribes=[Done])
    boxed: Calls = subsystem(subscribes=[Done], boxed=True)
    also_boxed: Calls = subsystem(subscribes=[Done], boxed=True)
    asked: Calls = subsystem(consumes=Ask)


@orchestra(signal=Halt, event=Halt)
class ThreadedRun:
    runner: RunsInThread = subsystem(blocking=True)
    done: Calls = subsystem(consumes=Done)


def test_a_run_in_a_thread_can_be_alone_and_recorded() -> None:
    async def main() -> None:
        async with alone(ThreadedRun, "runner", recorded(RunsInThread())) as probe:
            await probe.send(Job(1))
            probe.signal(Halt())
            assert await probe.expect(Done) == Done(1)
            await probe.drain()
            assert sorted(map(repr, probe.instance.received)) == ["Halt()", "Job(n=1)"]
            assert probe.instance.sent == [Done(1)]

    within(20, main())


def test_what_a_thread_sends_comes_at_once_and_in_order() -> None:
    async def main() -> None:
        async with alone(Threaded, "worker", InThread()) as probe:
            began = asyncio.get_running_loop().time()
            await probe.send(Job(50))
            for n in range(50):
                assert await probe.expect(Done) == Done(n)
            assert asyncio.get_running_loop().time() - began < 2, "nobody waited for a time limit"
            assert probe.sent == [Done(n) for n in range(50)]
            assert [each.receiver for each in probe.log[:3]] == ["plain", "boxed", "also_boxed"]
            assert len(probe.log) == 150
            assert probe.instance.threads.isdisjoint({threading.get_ident()})

    within(20, main())


def test_a_thread_asks_the_test() -> None:
    async def main() -> None:
        async with alone(Threaded, "worker", InThread()) as probe:
            await probe.send(Job(-1))
            ask = await probe.expect(Ask)
            ask.reply.send(7)
            assert await probe.expect(Done) == Done(7)

    within(20, main())


def test_a_thread_that_asks_in_vain_does_not_hold_up_the_end() -> None:
    async def main() -> None:
        began = time.monotonic()
        async with alone(Threaded, "worker", InThread()) as probe:
            await probe.send(Job(-1))
            await probe.expect(Ask)
        assert time.monotonic() - began < 0.8

    within(20, main())


class Stubborn(Actor[Job, Never]):
    """Hangs, and for a negative number swallows its cancellation."""

    async def handle(self, ctx: Any, message: Job) -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if message.n >= 0 or self.free.is_set():
                    raise

    def __init__(self) -> None:
        self.free = asyncio.Event()


@orchestra(signal=Halt, event=Halt)
class Hanging:
    stubborn: Stubborn = subsystem(message_capacity=1)


def test_a_handler_that_hangs_is_cancelled_a_second_after_the_block() -> None:
    async def main() -> None:
        began = time.monotonic()
        async with alone(Hanging, "stubborn", Stubborn()) as probe:
            await probe.send(Job(0))
            await probe.settle()
        assert 0.9 < time.monotonic() - began < 5
        began = time.monotonic()
        async with alone(Hanging, "stubborn", Stubborn(), stop_timeout=0.05) as probe:
            await probe.send(Job(0))
            await probe.settle()
        assert time.monotonic() - began < 0.8
        began = time.monotonic()
        async with alone(Hanging, "stubborn", Stubborn()) as probe:
            await probe.send(Job(0))
            await probe.settle()
            await probe.stop(timeout=0)
        assert time.monotonic() - began < 0.8

    within(20, main())


def test_one_that_swallows_its_cancellation_is_named() -> None:
    async def main() -> None:
        stubborn = Stubborn()
        with pytest.raises(StopTimeout, match="stubborn"):
            async with alone(Hanging, "stubborn", stubborn, stop_timeout=0.05) as probe:
                await probe.send(Job(-1))
                await probe.settle()
        stubborn.free.set()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    within(20, main())


def test_a_body_that_is_cancelled_ends_at_once() -> None:
    async def main() -> None:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with (
                asyncio.timeout(0.1),
                alone(Hanging, "stubborn", Stubborn(), stop_timeout=0.05) as probe,
            ):
                await probe.send(Job(0))
                await probe.send(Job(1))
                await probe.send(Job(2), timeout=None)
        assert time.monotonic() - began < 2

    within(20, main())


class Busy(Actor[Job, Done]):
    """Waits in its handler until the test lets it go."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def handle(self, ctx: Any, message: Job) -> None:
        await self.gate.wait()
        await ctx.send(Done(message.n))


@orchestra(signal=Halt, event=Halt)
class Slow:
    busy: Busy = subsystem(message_capacity=1, evict_after=60)
    done: Calls = subsystem(consumes=Done)


def test_senders_are_freed_from_a_receiver_that_takes_nothing_when_the_clock_says_so() -> None:
    async def main() -> None:
        async with alone(Slow, "busy", Busy()) as probe:
            await probe.send(Job(0))
            await probe.settle()
            await probe.send(Job(1))
            waiting = asyncio.create_task(probe.send(Job(2), timeout=None))
            await probe.advance(50)
            assert not waiting.done()
            await probe.advance(30)
            assert await waiting is False
            assert probe.meters.dropped_by == {"stalled": 1}
            probe.instance.gate.set()
            await probe.settle()
            assert probe.sent == [Done(0), Done(1)]

    within(10, main())


class Spawns(Actor[Job, Done]):
    def handle(self, ctx: Any, message: Job) -> None:
        ctx.spawn(self.work(ctx, message.n))

    async def work(self, ctx: Any, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await ctx.send(Done(turns))
        if turns == 13:
            raise ValueError("thirteen")


@orchestra(signal=Halt, event=Halt)
class Spawning:
    spawns: Spawns = subsystem()
    done: Calls = subsystem(consumes=Done)


def test_settle_waits_for_what_its_tasks_do_at_once() -> None:
    async def main() -> None:
        async with alone(Spawning, "spawns", Spawns()) as probe:
            await probe.send(Job(40))
            await probe.settle()
            assert probe.sent == [Done(40)]

    within(10, main())


def test_settle_comes_back_while_other_tasks_of_the_test_are_busy() -> None:
    async def main() -> None:
        async def spin() -> None:
            while True:
                await asyncio.sleep(0)

        spinning = asyncio.create_task(spin())
        async with alone(Spawning, "spawns", Spawns()) as probe:
            began = time.monotonic()
            await probe.send(Job(1))
            await probe.settle()
            assert probe.sent == [Done(1)]
            assert time.monotonic() - began < 0.5
        spinning.cancel()

    within(10, main())


def test_the_failure_of_a_task_is_that_of_the_subsystem() -> None:
    async def main() -> None:
        with pytest.raises(OrchestraError, match="ValueError: thirteen"):
            async with alone(Spawning, "spawns", Spawns()) as probe:
                await probe.send(Job(13))
                assert await probe.expect(Done) == Done(13)
                await probe.settle()
                assert probe.ended

    within(10, main())


class Failing(Spawns):
    def started(self, ctx: Any) -> None:
        raise ValueError("not today")


def test_a_failing_start_is_told_at_the_end_of_the_block() -> None:
    async def main() -> None:
        with pytest.raises(OrchestraError, match="not today"):
            async with alone(Spawning, "spawns", Failing()) as probe:
                assert probe.ended

    within(10, main())


class Gate(Actor[Job, Done]):
    """Is made with the handle of the orchestra."""

    def __init__(self, running: Any) -> None:
        self.running = running

    async def handle(self, ctx: Any, message: Job) -> None:
        await self.running.send(Done(message.n))


def test_one_that_needs_the_running_orchestra_can_be_deferred() -> None:
    async def main() -> None:
        async with alone(Spawning, "spawns", deferred(lambda running: Gate(running))) as probe:
            await probe.send(Job(3))
            assert await probe.expect(Done) == Done(3)
            assert list(probe.instance.running.meters()) == ["spawns"]
        with pytest.raises(ZeroDivisionError) as caught:
            async with alone(Spawning, "spawns", deferred(lambda: Gate(1 / 0))):
                raise AssertionError("it was not made")
        assert caught.value.__notes__ == ["raised while Spawning.spawns was made"]
        with pytest.raises(TypeError, match="spawns holds a RunsInThread, and Spawns is"):
            async with alone(Spawning, "spawns", deferred(RunsInThread)):
                raise AssertionError("it does not fit")

    within(10, main())


class Echoes(Actor):
    """Gets what it sends, as others do."""

    def __init__(self) -> None:
        self.got: list[int] = []

    @handles(Done)
    def take(self, ctx: Any, message: Done) -> None:
        self.got.append(message.n)

    @handles(Job)
    async def work(self, ctx: Any, message: Job) -> None:
        await ctx.send(Done(message.n))


@orchestra(signal=Halt, event=Halt)
class Echoing:
    echoes: Echoes = subsystem(consumes=Job, subscribes=[Done], sends=[Done])
    other: Calls = subsystem(subscribes=[Done], boxed=True)
    third: Calls = subsystem(subscribes=[Done])


def test_one_that_subscribes_to_what_it_sends_gets_it_too() -> None:
    async def main() -> None:
        async with alone(Echoing, "echoes", Echoes()) as probe:
            for n in range(3):
                await probe.send(Job(n))
            await probe.settle()
            assert probe.instance.got == [0, 1, 2]
            assert probe.sent == [Done(0), Done(1), Done(2)]
            assert [each.receiver for each in probe.log] == ["other", "third"] * 3

    within(10, main())


@orchestra(signal=Halt, event=Halt)
class AnyActor:
    spawns: Spawns = subsystem()
    anybody: Actor = subsystem(consumes=Done, message_capacity={Priority.HIGH: 1, Priority.DATA_LOW: 1})


def test_where_any_actor_may_stand_a_message_goes_to_a_lane_that_there_is() -> None:
    async def main() -> None:
        async with alone(AnyActor, "spawns", Spawns()) as probe:
            await probe.send(Job(1))
            await probe.expect(Done)
            assert [each.priority for each in probe.log] == [Priority.HIGH]

    within(10, main())


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_time_that_makes_no_sense_is_refused(seconds: float) -> None:
    async def main() -> None:
        async with alone(Spawning, "spawns", Spawns()) as probe:
            with pytest.raises(
                ValueError, match="time goes forward: advance takes a finite number of 0 or more"
            ):
                await probe.advance(seconds)
            with pytest.raises(TypeError, match="advance takes a number of seconds, not '1'"):
                await probe.advance("1")  # type: ignore[arg-type]  # that is the mistake

    within(10, main())


def test_a_clock_tells_how_long_until_the_next_call() -> None:
    clock = FakeClock(100)
    assert clock.wait is None
    first, _ = clock.call_later(5, print), clock.call_later(7, print)
    assert clock.wait == 5
    first.cancel()
    assert clock.wait == 7
    assert repr(clock) == "<fake clock at 100 s>"


class Deadlines(Actor[Job, Done]):
    def started(self, ctx: Any) -> None:
        ctx.set_deadline(time.monotonic() + 5)

    def handle(self, ctx: Any, message: Job) -> None: ...

    def deadline_passed(self, ctx: Any, deadline: float) -> None:
        ctx.try_send(Done(1))


def test_a_clock_may_begin_at_the_real_time() -> None:
    async def main() -> None:
        async with alone(Spawning, "spawns", Deadlines(), start=time.monotonic()) as probe:
            await probe.advance(4.9)
            assert probe.sent == []
            await probe.advance(1)
            assert probe.sent == [Done(1)]

    within(10, main())
