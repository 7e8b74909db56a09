"""Signals: told to all before any runs, never behind a message, never lost, never held up by a slow one."""

import asyncio
import time
from typing import Any

import pytest

from orchestra import Actor, Closed, Context, SubsystemStalled, orchestra, start, subsystem
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


def numbers(items: list[Any], kind: type) -> list[int]:
    return [item.n for item in items if isinstance(item, kind)]


def test_every_subsystem_has_the_signal_before_any_runs_again() -> None:
    order: list[str] = []

    class First(Calls):
        def on_signal(self, ctx: Any, signal: Any) -> None:
            order.append("first")
            ctx.try_send(Note(signal.n))

    class Second(Calls):
        def on_signal(self, ctx: Any, signal: Any) -> None:
            order.append("second")

        def handle(self, ctx: Any, message: Any) -> None:
            order.append("message")

    async def main() -> None:
        async with start(pair(First(), Second())) as running:
            await turns()
            await running.broadcast(Bell())
            await running.drain()
        assert sorted(order[:2]) == ["first", "second"]
        assert order[2] == "message"

    within(10, main())


@pytest.mark.parametrize("kind", [Calls, Awaits, Collects])
def test_a_message_sent_after_its_sender_saw_a_signal_is_never_seen_before_it(kind: type) -> None:
    class Sender(Calls):
        def handle(self, ctx: Any, message: Any) -> None:
            ctx.try_send(Note(self.seen))

        def on_signal(self, ctx: Any, signal: Any) -> None:
            self.seen = signal.n
            ctx.try_send(Note(signal.n))

        seen = 0

    async def main() -> None:
        second = kind()
        seen: list[Any] = []
        if kind is not Collects:
            second.hooks, second.got = seen, seen
        async with start(pair(Sender(), second)) as running:
            for n in range(1, 40):
                await running.send(Job(n))
                await running.broadcast(Bell(n))
                await running.send(Job(n))
                if n % 7 == 0:
                    await turns(3)
            await running.drain()
        items = second.got if kind is Collects else seen
        latest = 0
        for item in items:
            if isinstance(item, Bell):
                latest = item.n
            elif isinstance(item, Note):
                assert item.n <= latest
        assert numbers(items, Bell) == list(range(1, 40))
        assert len(numbers(items, Note)) == 39 * 3

    within(10, main())


def test_signals_come_before_all_messages_that_wait() -> None:
    async def main() -> None:
        for worker in (Calls(), Awaits()):
            worker.hooks = worker.got
            async with start(alone(worker)) as running:
                for n in range(3):
                    running.try_send(Job(n))
                await running.broadcast(Bell(1))
                await running.drain()
            assert worker.got == ["started", Bell(1), Job(0), Job(1), Job(2), "stopped"]
        collects = Collects()
        async with start(alone(collects)) as running:
            for n in range(3):
                running.try_send(Job(n))
            await running.broadcast(Bell(1))
            await running.drain()
        assert collects.got == [Bell(1), Job(0), Job(1), Job(2)]

    within(10, main())


def test_every_way_of_receiving_takes_signals_and_counts_them() -> None:
    got: list[Any] = []

    async def live(ctx: Context[Any, Any, Any]) -> None:
        got.append(await ctx.recv())
        got.append(await ctx.recv_signal())
        got.append(await ctx.__anext__())
        while (item := ctx.try_recv()) is None:
            await asyncio.sleep(0)
        got.append(item)
        async for item in ctx:
            got.append(item)

    async def main() -> None:
        async with start(alone(Runs(live), signal_capacity=1)) as running:
            for n in range(6):
                await running.broadcast(Bell(n), timeout=5)
            await running.drain()
        assert got == [Bell(n) for n in range(6)]

    within(10, main())


def test_recv_signal_leaves_the_messages_queued() -> None:
    got: list[Any] = []

    async def live(ctx: Any) -> None:
        got.append(await ctx.recv_signal())
        async for item in ctx:
            got.append(item)

    async def main() -> None:
        async with start(alone(Runs(live))) as running:
            for n in range(3):
                running.try_send(Job(n))
            await turns()
            assert got == []
            await running.broadcast(Bell(7))
            await running.drain()
        assert got == [Bell(7), Job(0), Job(1), Job(2)]

    within(10, main())


def test_a_signal_is_seen_while_a_long_message_is_handled() -> None:
    heard: list[Any] = []

    async def live(ctx: Any) -> None:
        job = await ctx.recv()
        working = asyncio.create_task(asyncio.sleep(60, job))
        heard.append(await ctx.recv_signal())
        working.cancel()

    async def main() -> None:
        async with start(alone(Runs(live))) as running:
            await running.send(Job())
            await turns()
            began = time.monotonic()
            await running.broadcast(Bell(1))
            await until(lambda: heard)
            assert time.monotonic() - began < 5

    within(10, main())


@pytest.mark.parametrize("by", ["outside", "conductor"])
def test_a_slow_subsystem_does_not_hold_up_the_others_and_all_slow_ones_are_named(by: str) -> None:
    errors: list[Any] = []

    @orchestra(signal=Bell, event=Knock)
    class App:
        slow: Gated = subsystem(consumes=Job, signal_capacity=1)
        slower: Gated = subsystem(consumes=Note, signal_capacity=2)
        quick: Collects = subsystem(consumes=int, signal_capacity=1)

        async def on_event(self, conductor: Any, event: Knock) -> None:
            try:
                await conductor.broadcast(Bell(event.n), timeout=0.03)
            except SubsystemStalled as stalled:
                errors.append(stalled)

    async def main() -> None:
        app = App(slow=Gated(), slower=Gated(), quick=Collects())
        async with start(app) as running:
            await running.send(Job())
            await running.send(Note())
            await turns()
            for n in range(4):
                if by == "conductor":
                    await running.event(Knock(n))
                else:
                    try:
                        await running.broadcast(Bell(n), timeout=0.03)
                    except SubsystemStalled as stalled:
                        errors.append(stalled)
            await until(lambda: app.quick.got == [Bell(n) for n in range(4)])
            await until(lambda: len(errors) == 3)
            assert [error.subsystems for error in errors] == [
                ("slow",),
                ("slow", "slower"),
                ("slow", "slower"),
            ]
            assert errors[0].timeout == 0.03
            app.slow.gate.set()
            app.slower.gate.set()
            await running.drain()
        assert app.slow.hooks[1:-1] == app.slower.hooks[1:-1] == [Bell(n) for n in range(4)]

    within(10, main())


def test_a_broadcast_returns_when_the_queue_is_back_within_its_capacity() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, signal_capacity=1)) as running:
            await running.send(Job())
            await turns()
            await running.broadcast(Bell(0))
            waiting = asyncio.ensure_future(running.broadcast(Bell(1)))
            await turns()
            assert not waiting.done()
            worker.gate.set()
            await asyncio.wait_for(waiting, 5)

    within(10, main())


def test_cancelling_a_broadcast_ends_only_the_wait() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, signal_capacity=1)) as running:
            await running.send(Job())
            await turns()
            await running.broadcast(Bell(0))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(running.broadcast(Bell(1)), 0.02)
            worker.gate.set()
            await running.drain()
        assert worker.hooks == ["started", Bell(0), Bell(1), "stopped"]

    within(10, main())


def test_a_broadcast_that_waits_returns_when_the_slow_subsystem_ends() -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(60))
        async with start(pair(worker, Collects(), signal_capacity=1), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await turns()
            await running.broadcast(Bell(0))
            waiting = asyncio.ensure_future(running.broadcast(Bell(1), timeout=60))
            await turns()
            await running.stop(0.02)
            await asyncio.wait_for(waiting, 5)

    within(10, main())


def test_a_subsystem_that_has_ended_does_not_stop_the_broadcast_for_those_after_it() -> None:
    async def leave(ctx: Any) -> None:
        pass

    async def main() -> None:
        second = Collects()
        async with start(pair(Runs(leave), second)) as running:
            await turns()
            for n in range(100):
                await running.broadcast(Bell(n), timeout=1)
                await turns(2)
            assert second.got == [Bell(n) for n in range(100)]

    within(10, main())


def test_who_leaves_its_loop_at_a_signal_leaves_its_messages_to_the_dead_letters() -> None:
    async def live(ctx: Any) -> None:
        async for item in ctx:
            if isinstance(item, Bell):
                break

    async def main() -> None:
        letters: list[Any] = []
        async with start(pair(Runs(live), Collects()), dead_letters=letters.append) as running:
            await turns()
            for n in range(2):
                running.try_send(Job(n))
            await running.broadcast(Bell())
            await until(lambda: len(letters) == 2)
            assert told(letters) == [(Job(0), "first", "finished"), (Job(1), "first", "finished")]
            with pytest.raises(Closed):
                running.try_send(Job(3))

    within(10, main())


def test_after_the_end_recv_signal_raises_and_does_not_spin() -> None:
    count = 0

    async def naive(ctx: Any) -> None:
        nonlocal count
        while True:
            try:
                await ctx.recv_signal()
            except Closed:
                count += 1

    async def main() -> None:
        async with start(alone(Runs(naive))) as running:
            await turns()
            await running.stop(timeout=0.1)

    within(10, main())
    assert count < 2000


def test_two_tasks_wait_for_a_message_and_for_a_signal() -> None:
    got: list[Any] = []

    async def listen(ctx: Any) -> None:
        while True:
            got.append(await ctx.recv_signal())

    async def live(ctx: Any) -> None:
        listening = asyncio.create_task(listen(ctx))
        async for item in ctx:
            got.append(item)
        with pytest.raises(Closed):
            await listening

    async def main() -> None:
        async with start(alone(Runs(live))) as running:
            await turns()
            for n in range(5):
                await running.broadcast(Bell(n))
                await running.send(Job(n))
                await turns()
            await running.drain()
        assert numbers(got, Bell) == numbers(got, Job) == list(range(5))

    within(10, main())


def test_what_is_no_signal_is_refused() -> None:
    async def main() -> None:
        async with start(alone(Calls())) as running:
            with pytest.raises(TypeError, match="Job is no signal of Alone; its signals are Bell"):
                await running.broadcast(Job())

    within(10, main())


class Deaf(Actor):
    """Has no `on_signal`."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(message)


class DeafAwaits(Deaf):
    async def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(message)


@pytest.mark.parametrize("kind", [Deaf, DeafAwaits])
def test_an_actor_without_on_signal_passes_signals_over(kind: type[Deaf]) -> None:
    async def main() -> None:
        worker = kind()
        async with start(alone(worker, signal_capacity=1)) as running:
            for n in range(5):
                await running.broadcast(Bell(n), timeout=5)
            await running.send(Job())
            await running.drain()
        assert worker.got == [Job()]

    within(10, main())
