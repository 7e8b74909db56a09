"""Drain: nothing more from outside, all that is under way is handled, then the end."""

import asyncio
import time
from typing import Any

import pytest

from orchestra import Closed, DeadLetter, orchestra, start, subsystem
from tests.runtime.players import (
    Awaits,
    Bell,
    Calls,
    Collects,
    Gated,
    Job,
    Knock,
    Note,
    Runs,
    alone,
    pair,
    told,
    turns,
    until,
    within,
)


def test_all_that_is_queued_is_handled_before_drain_returns() -> None:
    async def slow(ctx: Any, message: Job) -> None:
        await asyncio.sleep(0)
        await ctx.send(Note(message.n))

    async def main() -> None:
        first, second = Awaits(slow), Calls()
        letters: list[DeadLetter] = []
        async with start(pair(first, second), dead_letters=letters.append) as running:
            for n in range(100):
                await running.send(Job(n))
            await running.drain()
            assert "ended" in repr(running)
            assert second.hooks[-1] == "stopped"
        assert second.got == [Note(n) for n in range(100)]
        assert letters == []

    within(10, main())


def test_outside_senders_that_wait_already_are_let_in_and_later_ones_are_refused() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1)) as running:
            sending = [asyncio.ensure_future(running.send(Job(n))) for n in range(6)]
            await turns()
            assert running.meters()["worker"].waiting == 4
            draining = asyncio.ensure_future(running.drain())
            await turns()
            for refused in (running.send, running.try_send):
                with pytest.raises(Closed) as closed:
                    result = refused(Job(9))
                    if asyncio.iscoroutine(result):
                        await result
                assert closed.value.message == Job(9)
            worker.gate.set()
            await draining
            assert await asyncio.gather(*sending) == [True] * 6
        assert worker.got == [Job(n) for n in range(6)]

    within(10, main())


def test_a_waiting_sender_that_gives_up_does_not_hold_the_drain() -> None:
    async def main() -> None:
        for circle in (False, True):
            first = Gated()
            async with start(pair(first, Collects(), circle=circle, message_capacity=1)) as running:
                sending = [asyncio.ensure_future(running.send(Job(n))) for n in range(4)]
                await turns()
                draining = asyncio.ensure_future(running.drain())
                await turns()
                sending[2].cancel()
                first.gate.set()
                await draining
                assert await asyncio.gather(*sending, return_exceptions=True)
            assert first.got == [Job(0), Job(1), Job(3)]

    within(10, main())


def test_drain_waits_for_a_running_handler_and_a_busy_run() -> None:
    done: list[str] = []

    async def busy(ctx: Any) -> None:
        await asyncio.sleep(0.03)
        done.append("run")

    async def main() -> None:
        async with start(pair(Runs(busy), Collects())) as running:
            await running.drain()
        assert done == ["run"]

    within(10, main())


def test_after_its_time_limit_drain_handles_what_is_left_as_stop_does() -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(0.2))
        letters: list[DeadLetter] = []
        began = time.monotonic()
        async with start(alone(worker), dead_letters=letters.append) as running:
            for n in range(5):
                await running.send(Job(n))
            await running.drain(timeout=0.3)
            assert worker.got == [Job(0), Job(1)]
        assert told(letters) == [(Job(n), "worker", "stopped") for n in (2, 3, 4)]
        assert time.monotonic() - began < 5

    within(10, main())


def test_a_drain_with_a_time_limit_returns_as_soon_as_all_is_done() -> None:
    async def main() -> None:
        began = time.monotonic()
        async with start(alone(Calls())) as running:
            await running.send(Job())
            await running.drain(timeout=30)
        assert time.monotonic() - began < 5

    within(10, main())


def test_cancelling_drain_ends_only_the_wait() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker)) as running:
            await running.send(Job(1))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(running.drain(), 0.02)
            with pytest.raises(Closed):
                running.try_send(Job(2))
            worker.gate.set()
            await running.drain()
        assert worker.got == [Job(1)]

    within(10, main())


def test_drain_may_be_asked_twice_and_stop_may_follow() -> None:
    async def main() -> None:
        worker = Gated()
        letters: list[DeadLetter] = []
        async with start(alone(worker), dead_letters=letters.append) as running:
            await running.send(Job(1))
            await running.send(Job(2))
            await turns()
            draining = [asyncio.ensure_future(running.drain()) for _ in range(2)]
            await turns()
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            assert told(letters) == [(Job(2), "worker", "stopped")]
            worker.gate.set()
            await asyncio.gather(stopping, *draining)
            await running.drain()

    within(10, main())


def test_drain_before_anything_has_run_still_starts_and_stops_everyone() -> None:
    async def main() -> None:
        worker = Calls()
        async with start(alone(worker)) as running:
            running.try_send(Job(1))
            await running.drain()
        assert worker.got == [Job(1)]
        assert worker.hooks == ["started", "stopped"]

    within(10, main())


def test_a_drain_waits_for_a_slow_start() -> None:
    class Slow(Calls):
        async def started(self, ctx: Any) -> None:
            await asyncio.sleep(0.02)
            assert not self.got

    async def main() -> None:
        for circle in (False, True):
            first = Slow()
            async with start(pair(first, Collects(), circle=circle)) as running:
                await running.send(Job(1))
                await running.drain()
            assert first.got == [Job(1)]

    within(10, main())


def test_a_drain_delivers_the_signals_that_were_broadcast() -> None:
    async def main() -> None:
        first, second = Gated(), Collects()
        async with start(pair(first, second, circle=True)) as running:
            await running.send(Job(1))
            await turns()
            for n in range(3):
                await running.broadcast(Bell(n))
            draining = asyncio.ensure_future(running.drain())
            await turns()
            with pytest.raises(Closed):
                await running.broadcast(Bell(9))
            first.gate.set()
            await draining
        assert first.hooks == ["started", Bell(0), Bell(1), Bell(2), "stopped"]
        assert second.got == [Bell(0), Bell(1), Bell(2)]

    within(10, main())


def test_recv_signal_ends_when_no_signal_can_come_any_more() -> None:
    async def listen(ctx: Any) -> None:
        assert await ctx.recv_signal() == Bell(1)
        with pytest.raises(Closed) as closed:
            await ctx.recv_signal()
        assert closed.value.message is None
        async for item in ctx:
            got.append(item)

    got: list[Any] = []

    async def main() -> None:
        async with start(alone(Runs(listen))) as running:
            await running.broadcast(Bell(1))
            await turns()
            await running.send(Job(1))
            await running.drain()
        assert got == [Job(1)]

    within(10, main())


@orchestra(signal=Bell, event=Knock)
class Door:
    first: Calls = subsystem(consumes=Job, message_capacity=1)
    second: Collects = subsystem(consumes=Note)

    async def on_event(self, conductor: Any, event: Knock) -> None:
        await asyncio.sleep(0.002)
        await conductor.broadcast(Bell(event.n))
        await conductor.send(Job(event.n))
        conductor.try_send(Note(event.n))


def test_drain_handles_the_queued_events_and_what_they_send() -> None:
    async def main() -> None:
        app = Door(first=Calls(), second=Collects())
        async with start(app) as running:
            for n in range(5):
                await running.event(Knock(n))
            draining = asyncio.ensure_future(running.drain())
            await turns()
            with pytest.raises(Closed) as closed:
                await running.event(Knock(9))
            assert closed.value.message == Knock(9)
            await draining
        assert app.first.got == [Job(n) for n in range(5)]
        assert [item for item in app.second.got if isinstance(item, Note)] == [Note(n) for n in range(5)]
        assert [item for item in app.second.got if isinstance(item, Bell)] == [Bell(n) for n in range(5)]

    within(10, main())


def test_drain_within_a_handler_is_refused() -> None:
    errors: list[Any] = []

    async def drain(ctx: Any, message: Job) -> None:
        try:
            await holder[0].drain()
        except RuntimeError as refused:
            errors.append(str(refused))

    holder: list[Any] = []

    async def main() -> None:
        async with start(alone(Awaits(drain))) as running:
            holder.append(running)
            await running.send(Job())
            await until(lambda: errors)
            await running.drain()
        assert "ctx.stop()" in errors[0]

    within(10, main())


def test_a_failure_during_the_drain_comes_out_of_every_drain_that_waits() -> None:
    async def fail(ctx: Any, message: Job) -> None:
        await asyncio.sleep(0.01)
        raise ValueError("bad")

    async def main() -> None:
        async with start(alone(Awaits(fail)), dead_letters=lambda _: None) as running:
            await running.send(Job())
            results = await asyncio.gather(running.drain(), running.drain(), return_exceptions=True)
            assert [str(result) for result in results] == [
                "subsystem 'worker' of Alone failed: ValueError: bad"
            ] * 2
            await running.drain()

    within(10, main())
