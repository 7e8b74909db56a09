"""Timers in real time, on every kind of loop that is supported."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from orchestra import Actor, Closed, Missed, orchestra, start, subsystem
from tests.runtime.players import Bell, Job, Knock, Note


class Player(Actor):
    """Ticks itself, has a deadline now and then, and is sent something later."""

    def __init__(self) -> None:
        self.loop: Any = None
        self.got: list[Any] = []

    async def started(self, ctx: Any) -> None:
        self.began = asyncio.get_running_loop().time()
        self.ticking = ctx.send_every(0.1, Note, missed=Missed.COALESCE)
        ctx.send_after(0.01, Job(1))
        ctx.send_after(0, Job(2))
        ctx.set_timeout(0.15)

    async def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(message)
        if self.got.count(Note()) == 5:
            self.ticking.cancel()
            ctx.stop()

    async def deadline_passed(self, ctx: Any, deadline: float) -> None:
        self.got.append(deadline)
        ctx.set_deadline(deadline + 0.15)


@orchestra(signal=Bell, event=Knock, boxed_messages=True)
class App:
    player: Player = subsystem(consumes=Job | Note, message_capacity=2)


async def play() -> None:
    app = App(player=Player())
    letters: list[Any] = []
    async with start(app, dead_letters=letters.append) as running:
        await asyncio.wait_for(running.wait(), 10)
    got = app.player.got
    assert got[:2] == [Job(2), Job(1)]
    assert got.count(Note()) == 5
    deadlines = [each for each in got if isinstance(each, float)]
    assert 2 <= len(deadlines) <= 4
    assert got.index(Note()) < got.index(deadlines[0])
    assert letters == []


async def wait_in_line() -> None:
    gate = asyncio.Event()

    class Slow(Player):
        async def started(self, ctx: Any) -> None:
            self.timers = [ctx.send_after(0.005 * n, Job(n)) for n in range(6)]

        async def handle(self, ctx: Any, message: Any) -> None:
            await gate.wait()
            self.got.append(message)

    app = App(player=Slow())
    async with start(app) as running:
        await asyncio.sleep(0.1)
        assert running.meters()["player"].waiting == 3
        assert app.player.timers[4].cancel()
        gate.set()
        await running.drain()
        assert app.player.got == [Job(n) for n in (0, 1, 2, 3, 5)]
    with pytest.raises(Closed):
        await running.send(Job())


def plain(main: Callable[[], Awaitable[None]], *, debug: bool = False) -> None:
    asyncio.run(main(), debug=debug)  # type: ignore[arg-type]


def in_debug_mode(main: Callable[[], Awaitable[None]]) -> None:
    plain(main, debug=True)


def on_uvloop(main: Callable[[], Awaitable[None]]) -> None:
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())  # type: ignore[arg-type]


def with_eager_tasks(main: Callable[[], Awaitable[None]]) -> None:
    if sys.version_info < (3, 12):
        pytest.skip("eager tasks came with 3.12")

    async def eager() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        await main()

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(eager())


@pytest.mark.parametrize("main", [play, wait_in_line])
@pytest.mark.parametrize("run", [plain, in_debug_mode, on_uvloop, with_eager_tasks])
def test_timers_work_on_every_loop(run: Callable[[Any], None], main: Callable[[], Awaitable[None]]) -> None:
    run(main)
