"""Meters: immutable snapshots that add up at any time."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from orchestra import (
    Actor,
    Closed,
    DeadLetter,
    Fail,
    Full,
    OrchestraError,
    Priority,
    orchestra,
    start,
    subsystem,
)
from tests.runtime.players import (
    Awaits,
    Bell,
    Calls,
    Gated,
    Job,
    Knock,
    Note,
    Runs,
    alone,
    pair,
    turns,
    within,
)


def test_what_was_accepted_is_received_queued_or_evicted() -> None:
    async def main() -> None:
        worker = Gated()
        letters: list[DeadLetter] = []
        accepted = 0
        async with start(alone(worker, message_capacity=3), dead_letters=letters.append) as running:

            def check() -> Any:
                meters = running.meters()["worker"]
                assert meters.sent == accepted == meters.received + meters.queued + meters.evicted
                assert (meters.received, meters.evicted) == (len(worker.begun), len(letters))
                return meters

            check()
            for n in range(4):
                await running.send(Job(n))
                accepted += 1
                await turns(3)
                check()
            waiting = [asyncio.ensure_future(running.send(Job(n))) for n in (4, 5)]
            await turns()
            assert (check().waiting, check().blocked) == (2, 2)
            waiting[0].cancel()
            await turns()
            assert (check().waiting, check().blocked) == (1, 2)
            with pytest.raises(Full):
                running.try_send(Job(9))
            check()
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            assert (check().waiting, check().queued) == (0, 0)
            worker.gate.set()
            await stopping
            with pytest.raises(Closed):
                await waiting[1]
            check()
        assert check().evicted == 3

    within(10, main())


def test_each_lane_has_figures_of_its_own_and_the_inbox_has_the_sums() -> None:
    async def main() -> None:
        worker = Gated()
        app = alone(worker, message_capacity={Priority.HIGH: 2, Priority.NORMAL: 5}, overflow=Fail())
        async with start(app) as running:
            await running.send(Job(0))
            await turns()
            for n in range(3):
                running.try_send(Job(n))
            running.try_send(Job(9), priority=Priority.HIGH)
            meters = running.meters()["worker"]
            assert list(meters.lanes) == [Priority.HIGH, Priority.NORMAL]
            high, normal = meters.lanes.values()
            assert (high.sent, high.received, high.queued) == (1, 0, 1)
            assert (normal.sent, normal.received, normal.queued) == (4, 1, 3)
            assert (meters.sent, meters.received, meters.queued) == (5, 1, 4)
            assert not high.congested
            worker.gate.set()

    within(10, main())


def test_a_snapshot_does_not_change_and_cannot_be_changed() -> None:
    async def main() -> None:
        async with start(alone(Calls())) as running:
            before = running.meters()
            await running.send(Job())
            await running.drain()
            after = running.meters()
        assert (before["worker"].sent, after["worker"].sent) == (0, 1)
        assert isinstance(after, Mapping)
        with pytest.raises(TypeError):
            after["worker"] = None
        with pytest.raises(TypeError):
            after["worker"].lanes[Priority.NORMAL] = None
        with pytest.raises(TypeError):
            after["worker"].dropped_by["x"] = 1
        with pytest.raises(AttributeError):
            after["worker"].sent = 5

    within(10, main())


def test_messages_of_failed_handlers_are_received() -> None:
    def fail(ctx: Any, message: Any) -> None:
        raise ValueError

    async def main() -> None:
        with pytest.raises(OrchestraError):
            async with start(alone(Calls(fail)), dead_letters=lambda _: None) as running:
                running.try_send(Job(1))
                running.try_send(Job(2))
                await running.wait()
        meters = running.meters()["worker"]
        assert (meters.sent, meters.received, meters.evicted, meters.queued) == (2, 1, 1, 0)

    within(10, main())


def test_a_cancelled_receive_does_not_disturb_the_figures() -> None:
    async def live(ctx: Any) -> None:
        try:
            while True:
                try:
                    async with asyncio.timeout(0.001):
                        await ctx.recv()
                except TimeoutError:
                    await asyncio.sleep(0)
        except Closed:
            pass

    async def main() -> None:
        async with start(alone(Runs(live), message_capacity=2)) as running:
            for n in range(30):
                await running.send(Job(n))
                await asyncio.sleep(0.0007)
            await running.drain()
        meters = running.meters()["worker"]
        assert (meters.sent, meters.received, meters.queued, meters.evicted) == (30, 30, 0, 0)

    within(10, main())


class Planned(Actor):
    """Not written yet."""


def test_what_is_sent_to_a_planned_subsystem_is_dropped_and_counted() -> None:
    outcomes: list[Any] = []

    async def send(ctx: Any, message: Job) -> None:
        outcomes.extend([await ctx.send(Note(1)), ctx.try_send(Note(2))])

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Awaits = subsystem(consumes=Job, sends=[Note])
        planned: Planned = subsystem(consumes=Note, wip=True)

    async def main() -> None:
        async with start(App(worker=Awaits(send))) as running:
            await running.send(Job())
            assert await running.send(Note(3)) is False
            await running.drain()
            meters = running.meters()["planned"]
        assert outcomes == [False, False]
        assert (meters.dropped, dict(meters.dropped_by)) == (3, {"wip": 3})
        assert (meters.sent, meters.received, dict(meters.lanes)) == (0, 0, {})

    within(10, main())


def test_meters_of_a_pipeline_agree_with_each_other() -> None:
    async def main() -> None:
        first, second = Awaits(lambda ctx, message: ctx.send(Note(message.n))), Calls()
        async with start(pair(first, second, message_capacity=2)) as running:
            for n in range(100):
                await running.send(Job(n))
            await running.drain()
        meters = running.meters()
        assert meters["first"].received == meters["second"].sent == meters["second"].received == 100
        assert meters["second"].waiting == 0

    within(10, main())
