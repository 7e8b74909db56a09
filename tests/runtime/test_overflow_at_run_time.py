"""The overflow policies in whole orchestras: each as the lane's own, and as what one send asks for."""

import asyncio
from typing import Any

import pytest

from orchestra import (
    Block,
    BlockFirst,
    Drop,
    DropOldest,
    Fail,
    Full,
    Priority,
    UndeclaredOverflow,
    start,
)
from orchestra.overflow import Overflow
from tests.runtime.clockwork import run
from tests.runtime.players import Awaits, Gated, Job, Note, alone, pair, turns

HIGH, NORMAL = Priority.HIGH, Priority.NORMAL


def numbers(messages: list[Any]) -> list[int]:
    return [message.n for message in messages]


async def filled(running: Any, count: int) -> None:
    """Let the receiver begin with one message, and fill its lane."""
    assert await running.send(Job(-1))
    await turns()
    for n in range(count):
        assert running.try_send(Job(n))


@pytest.mark.parametrize("capacity", [1, 3])
@pytest.mark.parametrize("asked", [None, DropOldest()], ids=repr)
def test_drop_oldest_keeps_the_newest_and_tells_true(capacity: int, asked: Overflow | None) -> None:
    async def main() -> None:
        worker, letters = Gated(), []
        app = alone(worker, message_capacity=capacity, overflow=DropOldest())
        async with start(app, dead_letters=letters.append) as running:
            await filled(running, capacity)
            for n in range(10, 20):
                assert await running.send(Job(n), overflow=asked) is True
                assert running.try_send(Job(n + 100), overflow=asked) is True
            meters = running.meters()["worker"]
            assert (meters.queued, meters.peak, meters.evicted) == (capacity, capacity, 20)
            assert dict(meters.dropped_by) == {"oldest": 20}
            assert meters.sent == meters.received + meters.queued + meters.evicted == 21 + capacity
            assert (meters.blocked, meters.lanes[NORMAL].congested) == (0, False)
            worker.gate.set()
            await running.drain()
        newest = [n + offset for n in range(10, 20) for offset in (0, 100)][-capacity:]
        assert numbers(worker.got) == [-1, *newest]

    run(main())


def test_block_first_lets_one_sender_wait_and_drops_what_others_send_meanwhile() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1, overflow=BlockFirst())) as running:
            await filled(running, 1)
            with pytest.raises(Full):
                running.try_send(Job(1))
            first = asyncio.ensure_future(running.send(Job(2)))
            await turns()
            assert await running.send(Job(3)) is False
            assert running.try_send(Job(4)) is False
            assert dict(running.meters()["worker"].dropped_by) == {"behind the first": 2}
            first.cancel()
            await turns()
            second = asyncio.ensure_future(running.send(Job(5)))
            await turns()
            assert not second.done()
            worker.gate.set()
            assert await second is True
            assert await running.send(Job(6)) is True
            await running.drain()
        assert numbers(worker.got) == [-1, 0, 5, 6]

    run(main())


def test_fail_raises_at_once_with_the_message() -> None:
    async def main() -> None:
        worker, message = Gated(), Job(7)
        async with start(alone(worker, message_capacity=1, overflow=Fail())) as running:
            await filled(running, 1)
            with pytest.raises(Full) as caught:
                await running.send(message)
            assert caught.value.message is message
            assert (caught.value.subsystem, caught.value.priority) == ("worker", NORMAL)
            meters = running.meters()["worker"]
            assert (meters.dropped, meters.blocked, meters.sent) == (0, 0, 2)
            worker.gate.set()

    run(main())


LANES: list[Overflow] = [Block(), Fail(), Drop(0.5), BlockFirst()]


@pytest.mark.parametrize("lane", LANES, ids=repr)
@pytest.mark.parametrize("asked", LANES, ids=repr)
def test_one_send_may_ask_for_another_policy(lane: Overflow, asked: Overflow) -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1, overflow=lane)) as running:
            await filled(running, 1)
            if isinstance(asked, Drop):
                assert running.try_send(Job(8), overflow=asked) is False
            else:
                with pytest.raises(Full):
                    running.try_send(Job(8), overflow=asked)
            sending = asyncio.ensure_future(running.send(Job(9), overflow=asked))
            await asyncio.sleep(2)
            assert sending.done() is isinstance(asked, Drop | Fail)
            worker.gate.set()
            if isinstance(asked, Fail):
                with pytest.raises(Full):
                    await sending
            else:
                assert await sending is not isinstance(asked, Drop)
            await turns()
            assert await running.send(Job(10), overflow=asked) is True

    run(main())


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    ("lane", "asked"),
    [(DropOldest(), each) for each in LANES]
    + [(each, DropOldest()) for each in LANES]
    + [(Block(), Drop), (Block(), "drop"), (Block(), 0)],
    ids=repr,
)
def test_what_a_lane_does_not_permit_is_refused_whether_there_is_room_or_not(
    lane: Overflow, asked: Any, full: bool
) -> None:
    async def main() -> None:
        worker, message = Gated(), Job(9)
        async with start(alone(worker, message_capacity=1, overflow=lane)) as running:
            await filled(running, int(full))
            before = running.meters()["worker"]
            with pytest.raises(UndeclaredOverflow) as caught:
                await running.send(message, overflow=asked)
            with pytest.raises(UndeclaredOverflow):
                running.try_send(message, overflow=asked)
            assert str(caught.value) == (
                f"the DATA lane of 'worker' has {lane!r}, which does not permit {asked!r} for one message"
                if isinstance(asked, Overflow)
                else "overflow is the class Drop: give a policy, Drop()"
                if asked is Drop
                else f"overflow is {asked!r}: give a policy, such as Drop()"
            )
            assert caught.value.message is message
            assert caught.value.subsystem == "worker"
            assert running.meters()["worker"] == before
            worker.gate.set()

    run(main())


def test_each_lane_has_the_policy_that_is_declared_for_it_and_block_where_none_is() -> None:
    async def main() -> None:
        worker = Gated()
        app = alone(worker, message_capacity={HIGH: 1, NORMAL: 1}, overflow={NORMAL: DropOldest()})
        async with start(app) as running:
            await filled(running, 1)
            assert running.try_send(Job(1), priority=HIGH)
            assert await running.send(Job(2)) is True
            waiting = asyncio.ensure_future(running.send(Job(3), priority=HIGH))
            await asyncio.sleep(10)
            assert not waiting.done()
            assert running.try_send(Job(4), overflow=DropOldest()) is True
            with pytest.raises(UndeclaredOverflow):
                running.try_send(Job(5), priority=HIGH, overflow=DropOldest())
            worker.gate.set()
            assert await waiting is True
            await running.drain()
        assert sorted(numbers(worker.got)) == [-1, 1, 3, 4]

    run(main())


def test_a_subsystem_may_ask_as_the_outside_does() -> None:
    outcomes: list[Any] = []

    async def pass_on(ctx: Any, message: Job) -> None:
        outcomes.append(await ctx.send(Note(message.n), overflow=Drop(0.01)))
        outcomes.append(ctx.try_send(Note(message.n), overflow=Drop(0.01)))

    async def main() -> None:
        first, second = Awaits(pass_on), Gated()
        async with start(pair(first, second, message_capacity=1)) as running:
            await running.send(Job(1))
            await asyncio.sleep(1)
            await running.send(Job(2))
            await asyncio.sleep(1)
            assert outcomes == [True, False, True, False]
            second.gate.set()
            await running.drain()
        assert numbers(second.got) == [1, 2]

    run(main())


def test_callers_share_the_room_of_a_lane() -> None:
    """The limit belongs to the lane, for all who send to it."""

    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=3, overflow=Drop(0.01))) as running:
            await filled(running, 0)
            outcomes = await asyncio.gather(*(running.send(Job(n)) for n in range(10)))
            assert outcomes.count(True) == 3
            worker.gate.set()

    run(main())
