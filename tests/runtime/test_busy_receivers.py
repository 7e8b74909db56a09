"""Who took a message is at work until it waits again; errors and hooks that misbehave hang nothing."""

import asyncio
from typing import Any

import pytest

from orchestra import Actor, Context, DeadLetter, OrchestraError, Subsystem, orchestra, start, subsystem


class Bell: ...


class Job:
    def __init__(self, left: int) -> None:
        self.left = left


class Echo(Job): ...


class Pool(Subsystem):
    """Two tasks that receive: both beside `run`, or one of them `run` itself."""

    def __init__(self, *, beside: bool) -> None:
        self.beside = beside

    async def run(self, ctx: Context[Job, Echo, Bell]) -> None:
        if self.beside:
            await asyncio.gather(self.work(ctx), self.work(ctx))
        else:
            other = asyncio.create_task(self.work(ctx))
            await self.work(ctx)
            await other

    async def work(self, ctx: Context[Job, Echo, Bell]) -> None:
        async for job in ctx:
            await asyncio.sleep(0.02)
            if isinstance(job, Job) and job.left:
                await ctx.send(Echo(job.left))


class Back(Actor):
    def __init__(self) -> None:
        self.got: list[int] = []

    def handle(self, ctx: Context[Echo, Job, Bell], message: Echo) -> None:
        self.got.append(message.left)
        ctx.try_send(Job(message.left - 1))


@orchestra(signal=Bell, event=Bell)
class Circle:
    pool: Pool = subsystem(consumes=Job, sends=[Echo])
    back: Back = subsystem(consumes=Echo, sends=[Job])


@pytest.mark.parametrize("beside", [True, False])
def test_a_drain_waits_for_a_task_that_took_its_first_message_without_waiting(beside: bool) -> None:
    app = Circle(pool=Pool(beside=beside), back=Back())

    async def main() -> None:
        async with start(app) as running, asyncio.timeout(10):
            await running.send(Job(3))
            await running.drain()

    asyncio.run(main())
    assert app.back.got == [3, 2, 1]


class Reader(Subsystem):
    async def run(self, ctx: Context[Job, Any, Bell]) -> None:
        await ctx.recv()
        await asyncio.sleep(0.02)
        await ctx.recv()
        raise ValueError("after the signal")


@orchestra(signal=Bell, event=Bell)
class Reading:
    reader: Reader = subsystem(consumes=Job)


def test_a_message_that_was_followed_by_the_receipt_of_a_signal_is_not_the_failed_one() -> None:
    letters: list[DeadLetter] = []

    async def main() -> None:
        async with start(Reading(reader=Reader()), dead_letters=letters.append) as running:
            await running.send(Job(1))
            await asyncio.sleep(0.005)
            await running.broadcast(Bell())
            await asyncio.wait_for(running.wait(), 10)

    with pytest.raises(OrchestraError, match="after the signal"):
        asyncio.run(main())
    assert letters == []


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    def add_note(self, note: str) -> None:
        raise RuntimeError("no notes")


class Raiser(Actor):
    def handle(self, ctx: Context[Job, Any, Bell], message: Job) -> None:
        raise Unspeakable

    def stopped(self, ctx: Context[Job, Any, Bell]) -> None:
        raise Unspeakable


@orchestra(signal=Bell, event=Bell)
class Raising:
    raiser: Raiser = subsystem(consumes=Job)


@orchestra(signal=Bell, event=Bell, error=Unspeakable)
class RaisingItsOwn:
    raiser: Raiser = subsystem(consumes=Job)


def test_an_error_that_cannot_be_shown_ends_the_orchestra_as_any_other() -> None:
    async def main(app: Any) -> None:
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job(1))
            await asyncio.wait_for(running.wait(), 10)

    with pytest.raises(OrchestraError) as caught:
        asyncio.run(main(Raising(raiser=Raiser())))
    assert str(caught.value) == "subsystem 'raiser' of Raising failed: Unspeakable (its text cannot be shown)"
    with pytest.raises(Unspeakable):
        asyncio.run(main(RaisingItsOwn(raiser=Raiser())))


def test_a_hook_that_raises_cancelled_error_does_not_stop_a_stop() -> None:
    seen: list[DeadLetter] = []

    def hook(letter: DeadLetter) -> None:
        seen.append(letter)
        raise asyncio.CancelledError

    async def main() -> None:
        app = Circle(pool=Pool(beside=True), back=Back())
        async with start(app, dead_letters=hook) as running:
            for number in range(5):
                running.try_send(Job(number))
                running.try_send(Echo(number))
            await asyncio.wait_for(running.stop(), 10)

    asyncio.run(main())
    assert len(seen) == 10


def test_who_polls_under_a_time_limit_that_is_over_at_once_gets_all_the_same() -> None:
    got: list[int] = []

    class Polls(Subsystem):
        async def run(self, ctx: Context[Job, Echo, Bell]) -> None:
            while True:
                try:
                    async with asyncio.timeout(0):
                        job = await ctx.recv()
                except TimeoutError:
                    continue
                assert isinstance(job, Job)
                got.append(job.left)
                await asyncio.sleep(0)

    @orchestra(signal=Bell, event=Bell)
    class Alone:
        polls: Polls = subsystem(consumes=Job)

    async def main() -> None:
        async with asyncio.timeout(20), start(Alone(polls=Polls())) as running:
            for number in range(100):
                await running.send(Job(number))
            await running.drain()
        assert got == list(range(100))

    asyncio.run(main())
