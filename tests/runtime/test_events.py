"""Events: one at a time, in order, turned into signals and messages by `on_event`."""

import asyncio
import contextlib
from typing import Any

import pytest

from orchestra import (
    Closed,
    DeadLetter,
    OrchestraError,
    StopTimeout,
    UndeclaredMessage,
    orchestra,
    start,
    subsystem,
)
from tests.runtime.players import Bell, Calls, Collects, Job, Knock, Note, alone, told, turns, until, within


def door(handle: Any, **options: Any) -> Any:
    """An orchestra whose `on_event` is the function that it is given."""

    @orchestra(signal=Bell, event=Knock, **options)
    class Door:
        worker: Calls = subsystem(consumes=Job)
        other: Collects = subsystem(consumes=Note)

        async def on_event(self, conductor: Any, event: Knock) -> None:
            await handle(conductor, event)

    return Door(worker=Calls(), other=Collects())


def test_events_are_handled_one_at_a_time_and_in_order() -> None:
    log: list[Any] = []

    async def handle(conductor: Any, event: Knock) -> None:
        log.append(("begin", event.n))
        await asyncio.sleep(0.001 * (3 - event.n))
        log.append(("end", event.n))

    async def main() -> None:
        async with start(door(handle)) as running:
            for n in range(3):
                await running.event(Knock(n))
            assert len(log) < 2, "it returns when the event is queued"
            await running.drain()
        assert log == [(step, n) for n in range(3) for step in ("begin", "end")]

    within(10, main())


def test_event_waits_while_the_queue_is_full() -> None:
    gate = asyncio.Event()
    handled: list[int] = []

    async def handle(conductor: Any, event: Knock) -> None:
        await gate.wait()
        handled.append(event.n)

    async def main() -> None:
        async with start(door(handle, event_capacity=2)) as running:
            await running.event(Knock(0))
            await turns()
            await running.event(Knock(1))
            await running.event(Knock(2))
            third, fourth = (asyncio.ensure_future(running.event(Knock(n))) for n in (3, 4))
            await turns()
            assert not third.done()
            third.cancel()
            gate.set()
            await fourth
            await running.drain()
        assert handled == [0, 1, 2, 4]

    within(10, main())


def test_an_event_becomes_signals_and_messages() -> None:
    @orchestra(signal=Bell, event=Knock)
    class Door:
        worker: Calls = subsystem(consumes=Job)
        other: Collects = subsystem(consumes=Note)

        async def on_event(self, conductor: Any, event: Knock) -> None:
            await conductor.broadcast(Bell(event.n))
            assert await conductor.send(Note(event.n)) is True
            assert conductor.try_send(Job(event.n)) is True
            with pytest.raises(UndeclaredMessage):
                conductor.try_send(event)

    async def main() -> None:
        app = Door(worker=Calls(), other=Collects())
        async with start(app) as running:
            await running.event(Knock(5))
            await running.drain()
        assert app.worker.got == [Job(5)]
        assert app.worker.hooks == ["started", Bell(5), "stopped"]
        assert app.other.got == [Bell(5), Note(5)]

    within(10, main())


def test_events_that_wait_when_a_stop_comes_are_dead_lettered() -> None:
    gate = asyncio.Event()
    done: list[Any] = []

    async def handle(conductor: Any, event: Knock) -> None:
        await gate.wait()
        done.append(event.n)
        with pytest.raises(Closed):
            await conductor.broadcast(Bell())
        done.append(await conductor.send(Job(1)))

    async def main() -> None:
        letters: list[DeadLetter] = []
        async with start(door(handle, event_capacity=2), dead_letters=letters.append) as running:
            for n in range(2):
                await running.event(Knock(n))
            await turns()
            await running.event(Knock(2))
            waiting = asyncio.ensure_future(running.event(Knock(3)))
            await turns()
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            with pytest.raises(Closed) as closed:
                await waiting
            assert closed.value.message == Knock(3)
            gate.set()
            await stopping
        assert done == [0, True]
        assert told(letters) == [
            (Knock(1), "on_event", "stopped"),
            (Knock(2), "on_event", "stopped"),
            (Job(1), "worker", "stopped"),
        ]

    within(10, main())


def test_an_orchestra_without_on_event_says_so() -> None:
    async def main() -> None:
        async with start(alone(Calls())) as running:
            with pytest.raises(
                TypeError, match="Alone takes no events: it has no on_event method: write async def"
            ):
                await running.event(Knock())

    within(10, main())


def test_what_is_no_event_is_refused() -> None:
    async def handle(conductor: Any, event: Knock) -> None: ...

    async def main() -> None:
        async with start(door(handle)) as running:
            with pytest.raises(TypeError, match="Job is no event of Door; its events are Knock"):
                await running.event(Job())

    within(10, main())


def test_a_failing_on_event_fails_the_orchestra() -> None:
    async def handle(conductor: Any, event: Knock) -> None:
        raise LookupError("no such door")

    async def main() -> None:
        with pytest.raises(OrchestraError, match="on_event of Door failed: LookupError: no such door"):
            async with start(door(handle), dead_letters=lambda _: None) as running:
                await running.event(Knock())
                await running.wait()

    within(10, main())


def test_an_endless_on_event_is_named_when_it_does_not_stop() -> None:
    async def handle(conductor: Any, event: Knock) -> None:
        for _ in range(8):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)

    async def main() -> None:
        async with start(door(handle)) as running:
            await running.event(Knock())
            await turns()
            with pytest.raises(StopTimeout, match="'on_event' at"):
                await running.stop(0.02)

    within(10, main())


def test_a_conductor_that_sends_to_a_full_lane_waits_and_a_drain_waits_for_it() -> None:
    async def handle(conductor: Any, event: Knock) -> None:
        for n in range(50):
            await conductor.send(Note(n))

    @orchestra(signal=Bell, event=Knock)
    class Door:
        other: Collects = subsystem(consumes=Note, message_capacity=1)

        async def on_event(self, conductor: Any, event: Knock) -> None:
            await handle(conductor, event)

    async def main() -> None:
        app = Door(other=Collects())
        async with start(app) as running:
            await running.event(Knock())
            await running.drain()
        assert app.other.got == [Note(n) for n in range(50)]

    within(10, main())


def test_on_event_keeps_every_subsystem_alive_while_events_may_come() -> None:
    async def handle(conductor: Any, event: Knock) -> None:
        await conductor.send(Note(event.n))

    async def main() -> None:
        app = door(handle)
        async with start(app) as running:
            for n in range(3):
                await running.event(Knock(n))
                await until(lambda n=n: len(app.other.got) == n + 1)

    within(10, main())
