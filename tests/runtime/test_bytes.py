"""Lanes that are limited by bytes, and the bytes in the meters, through the public interface."""

import asyncio
import math
import pickle
from typing import Any

import msgspec
import pytest

from orchestra import (
    Actor,
    Block,
    BlockFirst,
    Box,
    DeadLetter,
    Drop,
    DropOldest,
    Fail,
    Full,
    Missed,
    Priority,
    Reply,
    Restart,
    Subsystem,
    TooLarge,
    boxed,
    orchestra,
    start,
    subsystem,
)
from orchestra.testing import alone as probed
from tests.runtime.players import Awaits, Bell, Calls, Gated, Job, Knock, Runs, told, turns, until, within


class Load(msgspec.Struct):
    """Its box has two bytes more than its data, and none more where they go beside the frame."""

    data: bytes


class SmallLoad(Load): ...


@boxed(False)
class Heavy(Load):
    """It travels by reference."""


class Query(msgspec.Struct):
    data: bytes
    reply: Reply[int]


def load(size: int) -> Load:
    """A message whose box has so many bytes."""
    made = Load(bytes(size - 2 if size < 258 else size))
    assert Box.seal(made).size == size
    return made


def app_of(worker: Any, consumes: Any = Load, **options: Any) -> Any:
    kind = type(worker)

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: kind = subsystem(**{"consumes": consumes, "boxed": True, **options})

    return App(worker=worker)


def both_of(first: Any, second: Any, one: dict[str, Any], other: dict[str, Any]) -> Any:
    first_kind, second_kind = type(first), type(second)

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        first: first_kind = subsystem(subscribes=[Load], **one)
        second: second_kind = subsystem(subscribes=[Load], **other)

    return App(first=first, second=second)


async def filled(running: Any, *sizes: int) -> None:
    """Send these to a worker that stands at its gate with the first of them."""
    first, *others = sizes
    assert await running.send(load(first))
    await until(lambda: running.meters()["worker"].received == 1)
    for size in others:
        assert await running.send(load(size))


# meters


def test_the_meters_have_the_bytes_that_are_queued_now() -> None:
    async def main() -> None:
        worker = Gated()
        lanes = {"priorities": [Priority.HIGH, Priority.NORMAL]}
        async with start(app_of(worker, **lanes)) as running:
            await filled(running, 10, 20, 30)
            await running.send(load(40), priority=Priority.HIGH)
            meters = running.meters()["worker"]
            assert meters.bytes == 90
            assert {level: lane.bytes for level, lane in meters.lanes.items()} == {
                Priority.HIGH: 40,
                Priority.NORMAL: 50,
            }
            worker.gate.set()
            await running.drain()
            assert running.meters()["worker"].bytes == 0

    within(10, main())


def test_what_travels_by_reference_counts_no_bytes() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, Load, boxed=False)) as running:
            await filled(running, 10, 20, 30)
            assert running.meters()["worker"].bytes == 0
            worker.gate.set()

    within(10, main())


# room


@pytest.mark.parametrize("messages", [8, math.inf])
def test_a_lane_takes_as_many_bytes_as_it_has(messages: float) -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=100, message_capacity=messages)) as running:
            await filled(running, 50, 60, 40)
            with pytest.raises(Full):
                running.try_send(load(2))
            assert running.meters()["worker"].bytes == 100
            worker.gate.set()
            await running.drain()
        assert [len(message.data) + 2 for message in worker.got] == [50, 60, 40]

    within(10, main())


def test_the_capacity_in_messages_holds_besides() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=100, message_capacity=2)) as running:
            await filled(running, 5, 5, 5)
            with pytest.raises(Full):
                running.try_send(load(5))
            worker.gate.set()

    within(10, main())


def test_the_first_that_waits_is_not_overtaken_by_one_that_would_fit() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=100)) as running:
            await filled(running, 10, 80)
            large = asyncio.create_task(running.send(load(90)))
            await turns()
            small = asyncio.create_task(running.send(load(5)))
            await turns()
            with pytest.raises(Full):
                running.try_send(load(6))
            assert running.meters()["worker"].waiting == 2
            large.cancel()
            await turns()
            assert small.done(), "the next fits"
            worker.gate.set()
            await running.drain()
        assert [len(message.data) + 2 for message in worker.got] == [10, 80, 5]

    within(10, main())


def test_messages_without_a_size_fit_where_no_bytes_are_left() -> None:
    async def main() -> None:
        worker = Gated()
        app = app_of(worker, Load | Heavy, capacity_bytes=50, message_capacity=3)
        async with start(app) as running:
            await filled(running, 10, 50)
            assert running.try_send(Heavy(bytes(1000)))
            assert running.meters()["worker"].bytes == 50
            assert running.try_send(Heavy(bytes(1000)))
            with pytest.raises(Full):
                running.try_send(Heavy(b""))
            worker.gate.set()

    within(10, main())


def test_lanes_have_limits_of_their_own() -> None:
    async def main() -> None:
        worker = Gated()
        app = app_of(
            worker, priorities=[Priority.HIGH, Priority.NORMAL], capacity_bytes={Priority.NORMAL: 50}
        )
        async with start(app) as running:
            await filled(running, 10, 50)
            with pytest.raises(Full):
                running.try_send(load(2))
            assert running.try_send(load(500), priority=Priority.HIGH)
            with pytest.raises(TooLarge):
                running.try_send(load(51), priority=Priority.NORMAL)
            worker.gate.set()

    within(10, main())


# what can never fit


def test_what_is_larger_than_the_lane_is_told_at_once() -> None:
    async def main() -> None:
        worker = Calls()
        async with start(app_of(worker, capacity_bytes=100)) as running:
            for send in (running.send, running.try_send):
                message = load(101)
                with pytest.raises(TooLarge) as caught:
                    result = send(message)
                    await result
                error = caught.value
                assert error.message is message
                assert (error.subsystem, error.priority) == ("worker", Priority.NORMAL)
                assert (error.size, error.capacity) == (101, 100)
                assert str(error) == (
                    "a box of 101 bytes can never fit into the DATA lane of 'worker', which holds 100 bytes"
                )
                again = pickle.loads(pickle.dumps(error))
                assert (again.size, again.capacity, str(again)) == (101, 100, str(error))
            assert await running.send(load(100))
            await running.drain()
        assert len(worker.got) == 1

    within(10, main())


@pytest.mark.parametrize("policy", [Block(), Fail(), Drop(), DropOldest(), BlockFirst()])
@pytest.mark.parametrize("subclass", [False, True])
def test_in_a_broadcast_nothing_is_put_anywhere_then(policy: Any, subclass: bool) -> None:
    async def main() -> None:
        first, second = Calls(), Calls()
        message = SmallLoad(bytes(60)) if subclass else Load(bytes(60))
        app = both_of(first, second, {}, {"capacity_bytes": 50, "overflow": policy})
        async with start(app) as running:
            for send in (running.send, running.try_send):
                for given in (message, Box.seal(message)):
                    with pytest.raises(TooLarge) as caught:
                        await send(given)
                    assert caught.value.message is given
            assert {name: meters.sent for name, meters in running.meters().items()} == {
                "first": 0,
                "second": 0,
            }
            assert running.meters()["second"].dropped == 0

    within(10, main())


def test_a_box_that_was_made_ahead_counts_and_is_refused_alike() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=50)) as running:
            await filled(running, 10)
            box = Box.seal(load(40))
            assert await running.send(box)
            with pytest.raises(Full) as caught:
                running.try_send(box)
            assert caught.value.message is box
            assert str(caught.value) == (
                "the DATA lane of 'worker' is full: it holds 40 of 50 bytes, in 1 message"
            )
            assert running.meters()["worker"].bytes == 40
            worker.gate.set()
            await running.drain()
        assert worker.got[1] == load(40)

    within(10, main())


# policies


def test_drop_oldest_throws_out_as_many_as_are_needed() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=100, overflow=DropOldest())) as running:
            await filled(running, 10, 40, 30, 20)
            assert running.try_send(load(60))
            meters = running.meters()["worker"]
            assert (meters.bytes, meters.queued, meters.evicted) == (80, 2, 2)
            assert meters.dropped_by == {"oldest": 2}
            assert meters.peak == 3
            assert await running.send(load(100))
            assert running.meters()["worker"].dropped_by == {"oldest": 4}
            worker.gate.set()
            await running.drain()
        assert [len(message.data) + 2 for message in worker.got] == [10, 100]

    within(10, main())


def test_drop_oldest_throws_out_nothing_for_what_can_never_fit() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=100, overflow=DropOldest())) as running:
            await filled(running, 10, 40, 30)
            with pytest.raises(TooLarge):
                await running.send(load(101))
            assert running.meters()["worker"].bytes == 70
            worker.gate.set()

    within(10, main())


def test_drop_waits_once_and_the_mark_goes_when_a_message_is_taken() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=100, overflow=Drop(0.01))) as running:
            await filled(running, 10, 60)
            assert not await running.send(load(50))
            lane = running.meters()["worker"].lanes[Priority.NORMAL]
            assert (lane.congested, lane.dropped_by) == (True, {"waited": 1})
            assert not await running.send(load(50))
            assert not running.try_send(load(50))
            assert running.try_send(load(40)), "it fits"
            dropped = running.meters()["worker"].dropped_by
            assert dropped == {"waited": 1, "congested": 2}
            worker.gate.set()
            await until(lambda: len(worker.got) == 3)
            assert not running.meters()["worker"].lanes[Priority.NORMAL].congested
            assert await running.send(load(50))

    within(10, main())


def test_block_first_lets_one_wait_for_its_bytes() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=100, overflow=BlockFirst())) as running:
            await filled(running, 10, 60)
            first = asyncio.create_task(running.send(load(50)))
            await turns()
            assert not await running.send(load(5))
            worker.gate.set()
            assert await first
            await running.drain()
            assert running.meters()["worker"].dropped_by == {"behind the first": 1}

    within(10, main())


def test_a_policy_for_one_send_holds_for_bytes() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=100)) as running:
            await filled(running, 10, 60)
            with pytest.raises(Full):
                await running.send(load(50), overflow=Fail())
            assert not await running.send(load(50), overflow=Drop(0.001))
            worker.gate.set()

    within(10, main())


def test_senders_are_freed_from_a_receiver_that_takes_nothing() -> None:
    async def main() -> None:
        worker = Gated()
        app = app_of(worker, capacity_bytes=100, message_capacity=math.inf, evict_after=0.02)
        async with start(app, dead_letters=lambda letter: None) as running:
            await filled(running, 10, 60)
            assert not await running.send(load(50))
            assert running.meters()["worker"].dropped_by == {"stalled": 1}
            worker.gate.set()

    within(10, main())


# kinds of senders and receivers


class Sends(Subsystem):
    """Sends loads of these sizes, one after the other."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes

    async def run(self, ctx: Any) -> None:
        for size in self.sizes:
            await ctx.send(load(size))


@pytest.mark.parametrize("style", ["run", "sync", "async", "fair"])
def test_everything_arrives_in_order_whatever_the_receiver_is(style: str) -> None:
    got: list[int] = []
    sizes = [n % 40 + 2 for n in range(300)]

    async def collect(ctx: Any) -> None:
        async for message in ctx:
            got.append(len(message.data) + 2)

    async def note(ctx: Any, message: Any) -> None:
        got.append(len(message.data) + 2)
        await asyncio.sleep(0)

    workers = {
        "run": Runs(collect),
        "sync": Calls(lambda ctx, message: got.append(len(message.data) + 2)),
        "async": Awaits(note),
        "fair": Awaits(note),
    }
    kind = type(workers[style])
    options: dict[str, Any] = (
        {"fairness": 2, "priorities": [Priority.HIGH, Priority.NORMAL]} if style == "fair" else {}
    )

    @orchestra(signal=Bell, event=Knock)
    class App:
        sends: Sends = subsystem(sends=[Load])
        worker: kind = subsystem(consumes=Load, boxed="auto", capacity_bytes=50, **options)

    async def main() -> None:
        async with start(App(sends=Sends(*sizes), worker=workers[style])) as running:
            await until(lambda: running.meters()["worker"].received == len(sizes))
            meters = running.meters()["worker"]
            assert (meters.sent, meters.received, meters.bytes, meters.waiting) == (300, 300, 0, 0)
            assert meters.blocked > 0

    within(10, main())
    assert got == sizes


def test_a_subclass_counts_its_own_bytes_and_one_by_reference_none() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=100)) as running:
            await filled(running, 10)
            await running.send(SmallLoad(bytes(58)))
            await running.send(Heavy(bytes(500)))
            assert running.meters()["worker"].bytes == 60
            with pytest.raises(TooLarge):
                running.try_send(SmallLoad(bytes(100)))
            worker.gate.set()
            await running.drain()
        assert [type(message) for message in worker.got] == [Load, SmallLoad, Heavy]

    within(10, main())


def test_an_ask_waits_for_bytes_no_longer_than_its_timeout() -> None:
    class Answers(Gated):
        async def _wait(self, ctx: Any, message: Any) -> None:
            await super()._wait(ctx, message)
            message.reply.send(len(message.data))

    async def main() -> None:
        worker = Answers()
        async with start(app_of(worker, Query, capacity_bytes=100, message_capacity=8)) as running:

            def asking(size: int, timeout: float | None = None) -> Any:
                return running.ask(lambda reply: Query(bytes(size), reply), timeout=timeout)

            first = asyncio.create_task(asking(10))
            second = asyncio.create_task(asking(60))
            await turns()
            with pytest.raises(TimeoutError, match="'worker' had no room for Query"):
                await asking(60, timeout=0.02)
            with pytest.raises(TooLarge):
                await asking(200)
            third = asyncio.create_task(asking(50, timeout=5))
            await turns()
            worker.gate.set()
            assert [await first, await second, await third] == [10, 60, 50]

    within(10, main())


class TimedSink(Gated):
    async def started(self, ctx: Any) -> None:  # type: ignore[override]
        self.ctx = ctx


def test_timers_put_into_lanes_that_count_bytes() -> None:
    async def main() -> None:
        worker = TimedSink()
        async with start(app_of(worker, capacity_bytes=100)) as running:
            await until(lambda: hasattr(worker, "ctx"))
            await filled(running, 10, 60)
            with pytest.raises(TooLarge):
                worker.ctx.send_after(0, load(101))
            late = worker.ctx.send_after(0.001, load(60))
            ticks = worker.ctx.send_every(0.001, lambda: load(30), missed=Missed.COALESCE)
            await asyncio.sleep(0.02)
            assert running.meters()["worker"].bytes == 60
            worker.gate.set()
            await until(lambda: len(worker.got) >= 5)
            ticks.cancel()
            assert load(60) in worker.got
            assert not late.active

    within(10, main())


@pytest.mark.parametrize("policy", [Fail(), Drop(0.001), DropOldest(), Drop(0)])
def test_ticks_that_find_no_bytes_are_counted(policy: Any) -> None:
    async def main() -> None:
        worker = TimedSink()
        async with start(app_of(worker, capacity_bytes=100, overflow=policy)) as running:
            await until(lambda: hasattr(worker, "ctx"))
            await filled(running, 10, 60)
            ticks = worker.ctx.send_every(0.001, lambda: load(50), missed=Missed.BURST)
            await until(lambda: running.meters()["worker"].dropped >= 3)
            ticks.cancel()
            assert running.meters()["worker"].bytes <= 100
            worker.gate.set()

    within(10, main())


def test_a_factory_whose_message_can_never_fit_fails_its_subsystem() -> None:
    async def main() -> None:
        worker = TimedSink()
        worker.gate.set()
        with pytest.raises(TooLarge):
            async with start(app_of(worker, capacity_bytes=100)) as running:
                await until(lambda: hasattr(worker, "ctx"))
                worker.ctx.send_every(0.001, lambda: load(101))
                await running.wait()

    within(10, main())


# ends


def test_a_stop_buries_what_is_queued_and_frees_who_waits() -> None:
    letters: list[DeadLetter] = []

    async def main() -> None:
        worker = Gated()
        async with start(app_of(worker, capacity_bytes=100), dead_letters=letters.append) as running:
            await filled(running, 10, 60, 40)
            waits = asyncio.create_task(running.send(load(50)))
            await turns()
            await running.stop(timeout=1)
            (error,) = await asyncio.gather(waits, return_exceptions=True)
            assert isinstance(error, Exception)
            meters = running.meters()["worker"]
            assert (meters.bytes, meters.queued, meters.waiting) == (0, 0, 0)
            assert meters.sent == meters.received + meters.evicted

    within(10, main())
    assert told(letters) == [
        (load(60), "worker", "stopped"),
        (load(40), "worker", "stopped"),
        (load(10), "worker", "cancelled"),
    ]


def test_a_drain_lets_in_who_waits_for_bytes() -> None:
    async def main() -> None:
        worker = Gated()
        sends = Sends(10, 60, 50, 90, 20)
        kind = type(worker)

        @orchestra(signal=Bell, event=Knock)
        class App:
            sends: Sends = subsystem(sends=[Load])
            worker: kind = subsystem(consumes=Load, boxed=True, capacity_bytes=100)

        async with start(App(sends=sends, worker=worker)) as running:
            await turns()
            worker.gate.set()
            await running.drain()
        assert [len(message.data) + 2 for message in worker.got] == [10, 60, 50, 90, 20]

    within(10, main())


def test_what_is_queued_and_its_bytes_stay_for_the_next_life() -> None:
    async def main() -> None:
        def once(ctx: Any, message: Any) -> None:
            if len(message.data) == 8:
                raise ValueError("once")

        worker = Calls(once)
        app = app_of(worker, capacity_bytes=100, restart=Restart(backoff=0.01))
        async with start(app, dead_letters=lambda letter: None) as running:
            for size in (10, 60, 38):
                running.try_send(load(size))
                await turns(3)
            assert running.meters()["worker"].bytes == 98
            with pytest.raises(Full):
                running.try_send(load(3))
            waits = asyncio.create_task(running.send(load(90)))
            await until(lambda: len(worker.got) == 3)
            await waits
            assert running.meters()["worker"].restarts == 1

    within(10, main())


def test_alone_everything_has_room_but_what_can_never_fit() -> None:
    refused: list[int] = []

    @orchestra(signal=Bell, event=Knock)
    class App:
        relay: Calls = subsystem(consumes=Job, sends=[Load])
        worker: Gated = subsystem(consumes=Load, boxed=True, capacity_bytes=100)

    async def main() -> None:
        def hand_on(ctx: Any, message: Job) -> None:
            try:
                ctx.try_send(load(message.n))
            except TooLarge as error:
                refused.append(error.size)

        async with probed(App, "relay", Calls(hand_on)) as probe:
            for _ in range(3):
                await probe.send(Job(60))
                assert await probe.expect(Load) == load(60)
            await probe.send(Job(101))
            await probe.settle()
        assert refused == [101]

    within(10, main())


class Echo(Actor):
    def handle(self, ctx: Any, message: Any) -> None: ...


def test_a_limit_in_bytes_is_a_bound() -> None:
    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        first: Echo = subsystem(
            consumes=Load, sends=[SmallLoad], message_capacity=math.inf, capacity_bytes=10
        )
        second: Echo = subsystem(consumes=SmallLoad, sends=[Load])

    assert App.__orchestra__.graph.cycles[0].kind.value == "locks"
