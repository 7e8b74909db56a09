"""Lanes that starve are counted and warned of; others are not."""

import asyncio
from typing import Any

import pytest

from orchestra import Priority, start
from tests.runtime.clockwork import run
from tests.runtime.players import Awaits, Gated, Job, alone, turns

HIGH, NORMAL = Priority.HIGH, Priority.NORMAL
LEVELS = [HIGH, NORMAL]


def warnings(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if "behind more urgent messages" in record.getMessage()]


async def flood(running: Any, until: float) -> None:
    """Keep the urgent lane from ever being empty."""
    loop = asyncio.get_running_loop()
    while loop.time() < until:
        await running.send(Job(0), priority=HIGH)


@pytest.mark.parametrize("handling", [0.1, 0.9, 1.7])
def test_a_lane_that_starves_is_counted_and_warned_of_once(
    handling: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where one message takes longer than the time between two looks."""

    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(handling))
        async with start(alone(worker, priorities=LEVELS, message_capacity=4)) as running:
            await running.send(Job(0), priority=HIGH)
            await running.send(Job(1))
            await flood(running, 30)
            lanes = running.meters()["worker"].lanes
            assert (lanes[HIGH].starved, lanes[NORMAL].starved, lanes[NORMAL].received) == (0, 1, 0)
            await running.drain()
            assert running.meters()["worker"].lanes[NORMAL].received == 1

    run(main())
    assert [record.getMessage() for record in warnings(caplog)] == [
        "the DATA lane of 'worker' has waited 5 s behind more urgent messages; fairness=n would bound that"
    ]
    assert (warnings(caplog)[0].subsystem, warnings(caplog)[0].priority) == ("worker", "DATA")


def test_each_time_that_a_lane_starves_counts(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(0.1))
        async with start(alone(worker, priorities=LEVELS, message_capacity=4)) as running:
            for until in (10, 30):
                await running.send(Job(0), priority=HIGH)
                await running.send(Job(1))
                await flood(running, until)
                await asyncio.sleep(5)
            assert running.meters()["worker"].lanes[NORMAL].starved == 2
            await running.drain()

    run(main())
    assert len(warnings(caplog)) == 2


def test_with_fairness_nothing_starves(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(0.1))
        async with start(alone(worker, priorities=LEVELS, message_capacity=4, fairness=5)) as running:
            for n in range(4):
                await running.send(Job(n))
            await flood(running, 20)
            assert running.meters()["worker"].lanes[NORMAL].starved == 0
            await running.drain()

    run(main())
    assert warnings(caplog) == []


def test_a_receiver_that_takes_nothing_starves_no_lane(caplog: pytest.LogCaptureFixture) -> None:
    """One handler that never returns is another matter."""

    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, priorities=LEVELS)) as running:
            await running.send(Job(0))
            await turns()
            await running.send(Job(1))
            await running.send(Job(2), priority=HIGH)
            await asyncio.sleep(60)
            assert running.meters()["worker"].lanes[NORMAL].starved == 0
            worker.gate.set()
            await running.drain()

    run(main())
    assert warnings(caplog) == []


def test_a_lane_that_is_served_now_and_then_does_not_starve(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(0.3))
        async with start(alone(worker, priorities=LEVELS, message_capacity=2)) as running:
            for time in range(5):
                await running.send(Job(0), priority=HIGH)
                await running.send(Job(1))
                await flood(running, 6 * time + 3)
                await asyncio.sleep(3)
            assert running.meters()["worker"].lanes[NORMAL].starved == 0
            await running.drain()

    run(main())
    assert warnings(caplog) == []


@pytest.mark.parametrize("lanes", [[NORMAL], LEVELS])
def test_nothing_is_looked_at_after_the_end(lanes: list[Priority]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with start(alone(Awaits(), priorities=lanes)) as running:
            await running.send(Job(1))
            await asyncio.sleep(3)
        scheduled: Any = loop._scheduled  # type: ignore[attr-defined]  # asyncio tells this nowhere else
        assert [timer for timer in scheduled if not timer.cancelled()] == []

    run(main())
