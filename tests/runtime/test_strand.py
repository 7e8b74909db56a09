"""The strand: each place where a cancellation can land, what asyncio offers, errors, and where it stands."""

import asyncio
import contextvars
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from orchestra.runtime.scheduler import BUDGET, Scheduler
from orchestra.runtime.strand import Strand, breathe, park
from tests.runtime.clockwork import run

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class Poked(Scheduler):
    """Counts how often something came to rest outside a turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.pokes = 0

    def poke(self) -> None:
        self.pokes += 1
        super().poke()


class Stand:
    """A strand with a ready-queue, and what it said."""

    def __init__(self, main: "Callable[[Stand], Coroutine[Any, Any, None]]") -> None:
        loop = asyncio.get_running_loop()
        self.scheduler = Poked(loop)
        self.said: list[Any] = []
        self.strand = Strand(main(self), loop, "the strand", self.scheduler)
        self.task = self.strand.task
        self.step()

    def step(self) -> None:
        self.scheduler.add(self.strand.step)

    def say(self, what: Any) -> None:
        assert asyncio.current_task() is self.task
        self.said.append(what)

    async def park(self) -> None:
        """Park, and say whether it went on or was cancelled."""
        self.say("parks")
        try:
            await park
        except asyncio.CancelledError as error:
            self.say(("cancelled", *error.args))
            raise
        self.say("goes on")


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def finish(stand: Stand) -> None:
    """Let it come to its end; a cancellation is one."""
    await asyncio.wait([stand.task])


# where a cancellation lands


async def parks_twice(stand: Stand) -> None:
    try:
        await stand.park()
    except asyncio.CancelledError:
        stand.task.uncancel()
    await stand.park()


def test_cancelled_while_parked() -> None:
    async def main() -> None:
        stand = Stand(parks_twice)
        await turns()
        stand.task.cancel("why")
        await turns()
        assert stand.said == ["parks", ("cancelled", "why"), "parks"]
        assert stand.task.cancelling() == 0
        stand.step()
        await finish(stand)
        assert stand.said[-1] == "goes on"
        assert not stand.task.cancelled()

    run(main())


def test_cancelled_while_in_the_ready_queue() -> None:
    async def main() -> None:
        stand = Stand(parks_twice)
        await turns()
        stand.step()
        stand.task.cancel("why")
        await turns()
        # The step that was queued came while the Task was throwing, or woke the second park for nothing.
        assert stand.said[:3] == ["parks", ("cancelled", "why"), "parks"]
        assert not stand.scheduler.ready
        if not stand.task.done():
            stand.step()
        await finish(stand)
        assert stand.said[3:] == ["goes on"]

    run(main())


@pytest.mark.parametrize("before", range(6))
@pytest.mark.parametrize("waits", ["sleep", "yield", "event", "done event"])
def test_cancelled_between_the_yield_and_the_waking_of_the_task(waits: str, before: int) -> None:
    async def main() -> None:
        event = asyncio.Event()

        async def body(stand: Stand) -> None:
            await stand.park()
            try:
                if waits == "sleep":
                    await asyncio.sleep(10)
                elif waits == "yield":
                    for _ in range(20):
                        await asyncio.sleep(0)
                else:
                    await event.wait()
                stand.say("came through")
            except asyncio.CancelledError as error:
                stand.say(("cancelled", *error.args))
                raise

        stand = Stand(body)
        await turns()
        stand.step()
        if waits == "done event":
            asyncio.get_running_loop().call_soon(event.set)
        await turns(before)
        if not stand.task.done():
            stand.task.cancel("why")
        await finish(stand)
        if waits == "done event" and before > 3:
            assert stand.said == ["parks", "goes on", "came through"]
        elif before == 0:  # it had not gone on
            assert stand.said == ["parks", ("cancelled", "why")]
        elif stand.said[-1] != "came through":
            assert stand.said == ["parks", "goes on", ("cancelled", "why")]
            assert stand.task.cancelled()

    run(main())


def test_the_future_it_awaits_is_cancelled_with_it() -> None:
    async def main() -> None:
        future = asyncio.get_running_loop().create_future()

        async def body(stand: Stand) -> None:
            await future

        stand = Stand(body)
        await asyncio.sleep(0)  # its first step, which yields the future
        stand.task.cancel()
        await finish(stand)
        assert future.cancelled()

    run(main())


def test_cancelled_by_itself_in_a_step() -> None:
    async def main() -> None:
        async def body(stand: Stand) -> None:
            await stand.park()
            stand.task.cancel("by itself")
            stand.say("still runs")
            await stand.park()

        stand = Stand(body)
        await turns()
        stand.step()
        await finish(stand)
        assert stand.said == ["parks", "goes on", "still runs", "parks", ("cancelled", "by itself")]
        assert stand.task.cancelled()

    run(main())


def test_cancelled_before_it_began() -> None:
    async def main() -> None:
        async def body(stand: Stand) -> None:
            raise AssertionError("it begins")

        stand = Stand(body)
        stand.task.cancel()
        await finish(stand)
        await turns()
        assert stand.task.cancelled()
        assert not stand.scheduler.ready

    run(main())


def test_a_late_step_of_an_ended_strand_does_nothing() -> None:
    async def main() -> None:
        async def body(stand: Stand) -> None:
            stand.say("runs")

        stand = Stand(body)
        stand.step()
        stand.step()
        await finish(stand)
        stand.step()
        await turns()
        assert stand.said == ["runs"]
        assert stand.task.result() is None

    run(main())


# what asyncio offers


async def offers(stand: Stand) -> None:
    """Each way to wait, between parkings."""
    loop = asyncio.get_running_loop()
    await park
    await asyncio.sleep(0)
    await asyncio.sleep(0.001)
    await park
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await park
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await asyncio.sleep(10)
    stand.say(stand.task.cancelling())
    assert await asyncio.wait_for(asyncio.sleep(0, "waited"), 1) == "waited"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.sleep(10), 0.001)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(asyncio.sleep(0.001, number)) for number in range(3)]
        await park
    assert [task.result() for task in tasks] == [0, 1, 2]
    with pytest.raises(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            while True:  # until it is cancelled by the group, however often it is stepped before
                await park
    stand.say(stand.task.cancelling())
    assert list(await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0.001, 2))) == [1, 2]
    assert await asyncio.shield(asyncio.sleep(0, 3)) == 3
    assert await asyncio.create_task(asyncio.sleep(0, 4)) == 4
    lock, queue, event = asyncio.Lock(), asyncio.Queue[int](1), asyncio.Event()
    async with lock:
        loop.call_later(0.001, queue.put_nowait, 5)
        assert await queue.get() == 5
    loop.call_soon(event.set)
    assert await event.wait() is True
    assert await asyncio.to_thread(variable.get) == "set by the strand"
    assert await loop.run_in_executor(None, int, "6") == 6
    await park
    stand.say(stand.task.get_name())


async def fail() -> None:
    raise ValueError("failed")


async def offer(eager: bool = False) -> None:
    if eager:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]  # new in 3.12

    async def body(stand: Stand) -> None:
        variable.set("set by the strand")
        await offers(stand)
        stand.say(variable.get())

    async with asyncio.timeout(20):
        stand = Stand(body)
        assert stand.task in asyncio.all_tasks()
        while not stand.task.done():
            await asyncio.sleep(0.002)
            if not stand.task.done():
                stand.step()
    assert stand.task.result() is None
    assert stand.said == [0, 0, "the strand", "set by the strand"]
    assert variable.get() == "unset"


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
@pytest.mark.parametrize(
    "factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
def test_every_way_to_wait_works(factory: Callable[[], asyncio.AbstractEventLoop], debug: bool) -> None:
    with asyncio.Runner(debug=debug, loop_factory=factory) as runner:
        runner.run(offer())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in 3.12")
@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
def test_every_way_to_wait_works_with_eager_tasks(debug: bool) -> None:
    with asyncio.Runner(debug=debug, loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(offer(eager=True))


@pytest.mark.parametrize(
    "factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
def test_a_future_of_another_loop_is_refused(factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    other = asyncio.new_event_loop()

    async def body(stand: Stand) -> None:
        with pytest.raises(RuntimeError, match="attached to a different loop"):
            await other.create_future()
        with pytest.raises(RuntimeError, match="cannot await on itself"):
            await stand.task
        stand.say("both refused")

    async def main() -> None:
        stand = Stand(body)
        await finish(stand)
        assert stand.said == ["both refused"]

    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(main())
    finally:
        other.close()


# context variables


def test_context_variables_stay_within_a_strand() -> None:
    async def main() -> None:
        variable.set("outside")

        async def body(stand: Stand) -> None:
            stand.say(variable.get())
            for value in ("first", "second", "third"):
                variable.set(value)
                await park
                await asyncio.sleep(0)
                stand.say(variable.get())

        one, two = Stand(body), Stand(body)
        for _ in range(4):
            await turns(8)
            one.step()
            two.step()
        await finish(one)
        await finish(two)
        assert one.said == two.said == ["outside", "first", "second", "third"]
        assert variable.get() == "outside"

    run(main())


# errors


def test_an_error_in_a_step_is_that_of_the_task() -> None:
    async def main() -> None:
        async def body(stand: Stand) -> None:
            await park
            raise ValueError("in a step")

        stand = Stand(body)
        await turns()
        stand.step()
        await finish(stand)
        error = stand.task.exception()
        assert isinstance(error, ValueError)
        assert error.__traceback__ is not None

    run(main())


@pytest.mark.parametrize("suspends", [False, True], ids=["in a step", "in the Task"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_exit_leaves_the_loop_as_from_a_task(kind: type[BaseException], suspends: bool) -> None:
    async def main() -> None:
        async def body(stand: Stand) -> None:
            if suspends:
                await asyncio.sleep(0)
            raise kind("out")

        made.append(Stand(body))
        await asyncio.sleep(1)
        raise AssertionError("the loop goes on")

    made: list[Stand] = []
    with pytest.raises(kind, match="out"):
        asyncio.run(main())
    assert isinstance(made[0].task.exception(), kind)


def test_the_current_task_is_left_after_an_error() -> None:
    async def main() -> None:
        async def body(stand: Stand) -> None:
            raise ValueError

        stand = Stand(body)
        await finish(stand)
        assert asyncio.current_task() is not stand.task
        stand.task.exception()

    run(main())


# parking and breathing


def test_it_tells_when_its_task_has_come_to_park() -> None:
    async def main() -> None:
        async def body(stand: Stand) -> None:
            await park
            await asyncio.sleep(0.001)
            await park

        stand = Stand(body)
        await turns()
        assert stand.scheduler.pokes == 0
        stand.step()
        await asyncio.sleep(0.01)
        assert stand.scheduler.pokes == 1
        stand.step()
        await finish(stand)

    run(main())


def test_a_breath_spends_the_whole_budget_and_a_parking_one_message() -> None:
    async def main() -> None:
        async def body(stand: Stand) -> None:
            await park
            await breathe
            await park

        stand = Stand(body)
        await turns()
        spent: list[int] = []
        for _ in range(2):
            asyncio.get_running_loop().call_soon(lambda: spent.append(stand.strand.step()))
            await turns()
        assert spent == [BUDGET, 0]
        stand.task.cancel()
        await finish(stand)

    run(main())


# where it stands


async def deep(awaitable: Callable[[], Awaitable[Any]], depth: int) -> None:
    if depth:
        await deep(awaitable, depth - 1)
    else:
        await awaitable()


async def generating() -> AsyncIterator[int]:
    await asyncio.sleep(10)
    yield 1


async def stands(main: Callable[[Stand], Coroutine[Any, Any, None]]) -> str:
    stand = Stand(main)
    await turns()
    where = stand.strand.where()
    stand.task.cancel()
    await finish(stand)
    assert stand.strand.where() == "its end"
    return where


@pytest.mark.parametrize("depth", [0, 1, 40])
def test_it_stands_in_the_users_innermost_function(depth: int) -> None:
    async def body(stand: Stand) -> None:
        await deep(lambda: asyncio.sleep(10), depth)

    assert run(stands(body)) == f"{__file__}:{deep.__code__.co_firstlineno + 4} in deep"


def test_it_stands_where_it_parks() -> None:
    async def body(stand: Stand) -> None:
        await park

    assert run(stands(body)).endswith(f"{body.__code__.co_firstlineno + 1} in {body.__qualname__}")


def test_it_stands_where_it_awaits_a_task() -> None:
    async def body(stand: Stand) -> None:
        await asyncio.gather(asyncio.sleep(10), asyncio.sleep(10))

    assert run(stands(body)).endswith(f"{body.__code__.co_firstlineno + 1} in {body.__qualname__}")


def test_it_stands_in_an_asynchronous_generator() -> None:
    async def body(stand: Stand) -> None:
        async for _ in generating():
            pass

    assert " in " in run(stands(body))
    assert __file__ in run(stands(body))
