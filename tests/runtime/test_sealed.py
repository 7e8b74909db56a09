"""Without anything from outside, as in `run(app)` without main: it ends when all is done, not before."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from orchestra import Actor, Missed, Restart, Subsystem, orchestra, start, subsystem
from tests.runtime.asking import Acts, ToA, ToB, ToC, trio
from tests.runtime.clockwork import run
from tests.runtime.players import Bell, Calls, Job, Knock, Note, Runs, alone, pair


def lasts(app: Any) -> float:
    """Run an orchestra until it ends by itself; give the seconds that it took."""
    letters: list[Any] = []

    async def main() -> float:
        async with start(app, dead_letters=letters.append) as running:
            async with asyncio.timeout(100):
                await running.run_alone()
        assert [letter for letter in letters if letter.error is None] == []
        return asyncio.get_running_loop().time()

    return run(main())


class Sets(Actor):
    """Sets a timer for the next message when it has taken some time, until it has had three."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    async def started(self, ctx: Any) -> None:
        await asyncio.sleep(1)
        ctx.send_after(1, Job(0))

    async def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(message)
        await asyncio.sleep(1)
        if len(self.got) < 3:
            ctx.send_after(1, Job(message.n + 1))


def test_a_timer_that_is_set_late_in_a_handler_counts() -> None:
    worker = Sets()
    assert lasts(alone(worker)) == 7
    assert worker.got == [Job(0), Job(1), Job(2)]


def test_it_counts_also_when_all_senders_have_ended() -> None:
    got: list[Any] = []

    async def source(ctx: Any) -> None:
        await ctx.send(Note(0))

    async def sink(ctx: Any) -> None:
        async for message in ctx:
            got.append(message)
            await asyncio.sleep(1)
            if message.n < 3:
                ctx.send_after(1, Note(message.n + 1))

    assert lasts(pair(Runs(source), Runs(sink))) == 7
    assert got == [Note(n) for n in range(4)]


def test_a_deadline_that_is_set_late_counts() -> None:
    class Waits(Actor):
        def __init__(self) -> None:
            self.passed = 0

        async def started(self, ctx: Any) -> None:
            await asyncio.sleep(1)
            ctx.set_timeout(1)

        def handle(self, ctx: Any, message: Any) -> None: ...

        async def deadline_passed(self, ctx: Any, deadline: float) -> None:
            self.passed += 1
            await asyncio.sleep(1)
            if self.passed < 3:
                ctx.set_timeout(1)

    worker = Waits()
    assert lasts(alone(worker)) == 7
    assert worker.passed == 3


@pytest.mark.parametrize("missed", list(Missed))
def test_ticks_count_until_they_are_cancelled(missed: Missed) -> None:
    class Ticks(Calls):
        async def started(self, ctx: Any) -> None:
            await asyncio.sleep(1)
            self.timer = ctx.send_every(1, Job, missed=missed)

        def handle(self, ctx: Any, message: Any) -> None:
            super().handle(ctx, message)
            if len(self.got) == 5:
                self.timer.cancel()

    worker = Ticks()
    assert lasts(alone(worker)) == 6
    assert len(worker.got) == 5


def test_a_restart_may_set_timers_anew() -> None:
    class Fails(Sets):
        async def handle(self, ctx: Any, message: Any) -> None:
            self.got.append(message)
            if len(self.got) < 3:
                raise ValueError("not yet")

    worker = Fails()
    assert lasts(alone(worker, restart=Restart(backoff=1))) == 8
    assert len(worker.got) == 3


def cancel(worker: Any) -> None:
    worker.timer.cancel()


def take_away(worker: Any) -> None:
    worker.ctx.set_timeout(None)


@pytest.mark.parametrize("end", [cancel, take_away])
def test_the_end_of_the_last_timer_is_noticed_whoever_ends_it(end: Callable[[Any], None]) -> None:
    class Idle(Actor):
        def started(self, ctx: Any) -> None:
            self.ctx = ctx
            if end is cancel:
                self.timer = ctx.send_after(1000, Job())
            else:
                ctx.set_timeout(1000)
            asyncio.get_running_loop().call_later(5, end, self)

        def handle(self, ctx: Any, message: Any) -> None: ...

        def deadline_passed(self, ctx: Any, deadline: float) -> None: ...

    assert lasts(alone(Idle())) == 5


def test_a_reply_that_a_timer_gives_is_waited_for() -> None:
    got: list[Any] = []

    async def a(ctx: Any) -> None:
        got.append(await ctx.ask(ToB))

    async def b(ctx: Any, message: Any) -> None:
        ctx.send_after(1, ToC(message.reply))

    assert lasts(trio(Acts(started=a), Acts(b))) == 1
    assert got == ["c"]


def test_a_source_that_asks_is_at_work() -> None:
    got: list[Any] = []

    async def slow(ctx: Any, message: Any) -> None:
        await asyncio.sleep(1)
        message.reply.send(len(got))

    class Source(Subsystem):
        async def run(self, ctx: Any) -> None:
            for _ in range(3):
                got.append(await ctx.ask(ToB))
                await asyncio.sleep(1)

    @orchestra(signal=Bell, event=Knock)
    class Questions:
        source: Source = subsystem(sends=[ToB])
        b: Acts = subsystem(consumes=ToB)

    assert lasts(Questions(source=Source(), b=Acts(slow))) == 6
    assert got == [0, 1, 2]


def test_a_task_that_may_send_to_its_own_subsystem_is_waited_for() -> None:
    got: list[Any] = []

    class Spawns(Actor):
        def started(self, ctx: Any) -> None:
            ctx.spawn(self.work(ctx))

        async def work(self, ctx: Any) -> None:
            await asyncio.sleep(1)
            await ctx.recipient(ToA).send(ToA())
            ctx.send_after(1, ToA())

        def handle(self, ctx: Any, message: Any) -> None:
            got.append(message)

    @orchestra(signal=Bell, event=Knock)
    class Own:
        a: Spawns = subsystem(consumes=ToA, sends=[ToA])

    assert lasts(Own(a=Spawns())) == 2
    assert len(got) == 2
