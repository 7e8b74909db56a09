"""Recipients used in threads: of blocking subsystems, of the pool, and of others."""

import asyncio
import threading
import time
from typing import Any

import msgspec
import pytest

from orchestra import (
    Box,
    Closed,
    Deadlock,
    Full,
    Live,
    NoReply,
    Recipient,
    Reply,
    UndeclaredMessage,
    orchestra,
    start,
    subsystem,
)
from tests.runtime.players import Bell, Calls, Job, Knock, Note, Runs, until, within
from tests.runtime.threads.cast import Acts, Awaits, Done, Lives, ToA, ToB, ToC, doer, in_thread, trio


def given_by_c(use: Any, style: str, done: Done, **options: Any) -> Any:
    """An orchestra in which `c` gives `a`, in a thread, a recipient of `ToB`; `a` uses it."""
    taken: list[Any] = []
    there = threading.Event()

    def give(ctx: Any) -> None:
        taken.append(ctx.recipient(ToB))
        there.set()

    def do(ctx: Any) -> Any:
        there.wait(5)
        return use(taken[0])

    return trio(doer(style, do, done), c=Acts(started=give), blocking="ac", **options)


def used(use: Any, style: str = "run", **options: Any) -> Any:
    done = Done()

    async def main() -> None:
        app = given_by_c(use, style, done, **options)
        async with start(app, dead_letters=lambda _: None) as running:
            running.try_send(ToA())
            await until(lambda: done.over)
            await running.stop()

    within(15, main())
    return done.result


@pytest.mark.parametrize("style", ["actor", "run", "started"])
@pytest.mark.parametrize("boxed", [False, True])
def test_in_the_thread_of_a_subsystem_it_waits_and_gives_the_outcome(style: str, boxed: bool) -> None:
    def use(to_b: Any) -> Any:
        assert to_b.send(ToB(1)) is True
        assert to_b.try_send(ToB(2)) is True
        assert to_b.send(Box.seal(ToB(3))) is True
        assert to_b.blocking.send(ToB(4)) is True
        with pytest.raises(UndeclaredMessage):
            to_b.send(ToC())
        with pytest.raises(UndeclaredMessage):
            to_b.try_send(Job())
        with pytest.raises(NoReply):
            to_b.ask(lambda reply: ToB(5))
        return to_b.ask(lambda reply: ToB(6, reply), timeout=5)

    assert used(use, style, boxed=boxed) == "b"


def test_it_sleeps_for_room_and_is_full_where_it_may_not() -> None:
    go = threading.Event()
    took: list[float] = []

    def use(to_b: Any) -> Any:
        for n in range(2):
            to_b.send(ToB(n))
        with pytest.raises(Full) as full:
            to_b.try_send(ToB(9))
        threading.Timer(0.1, go.set).start()
        began = time.monotonic()
        assert to_b.send(ToB(2)) is True
        took.append(time.monotonic() - began)
        return full.value.message

    assert used(use, b=Awaits(lambda ctx, message: _opened(go)), message_capacity=1) == ToB(9)
    assert took[0] > 0.05


async def _opened(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0.001)


def test_in_a_thread_of_the_pool_and_one_of_ones_own() -> None:
    results: list[Any] = []

    async def main() -> None:
        async def work(ctx: Any, message: Any) -> None:
            to_b = ctx.recipient(ToB)
            with pytest.raises(RuntimeError, match="which would wait for itself: await its verbs here"):
                _ = to_b.blocking
            results.append(await ctx.run_blocking(to_b.send, ToB(1)))
            results.append(await ctx.run_blocking(to_b.try_send, ToB(2)))
            results.append(await ctx.run_blocking(to_b.ask, lambda reply: ToB(3, reply)))
            results.append(await asyncio.to_thread(to_b.ask, lambda reply: ToB(4, reply), timeout=5))
            results.append(await to_b.ask(lambda reply: ToB(5, reply)))

        async with start(trio(Awaits(work), blocking="")) as running:
            await running.send(ToA())
            await running.drain()

    within(10, main())
    assert results == [True, True, "b", "b", "b"]


def test_a_thread_with_a_loop_of_its_own_is_told_what_to_do() -> None:
    async def main() -> None:
        async def work(ctx: Any, message: Any) -> None:
            to_b = ctx.recipient(ToB)

            async def elsewhere() -> Any:
                for call in (lambda: to_b.send(ToB()), lambda: to_b.try_send(ToB()), lambda: to_b.ask(ToB)):
                    with pytest.raises(
                        RuntimeError, match=r"await asyncio.to_thread\(recipient.send, message\)"
                    ):
                        call()
                return await asyncio.to_thread(to_b.ask, lambda reply: ToB(4, reply))

            assert await ctx.run_blocking(lambda: asyncio.run(elsewhere())) == "b"

        async with start(trio(Awaits(work), blocking="")) as running:
            await running.send(ToA())
            await running.drain()

    within(10, main())


@pytest.mark.parametrize("where", ["subsystem", "other"])
def test_who_waits_for_a_reply_is_freed_by_the_stop(where: str) -> None:
    """The question is kept, so nothing but the end of the orchestra tells that nobody will answer."""
    errors: list[BaseException] = []

    def wait(to_b: Any) -> None:
        try:
            to_b.ask(lambda reply: ToB(7, reply))
        except BaseException as error:
            errors.append(error)

    async def main() -> None:
        asked: list[Any] = []
        given: list[Any] = []
        app = given_by_c(
            wait if where == "subsystem" else given.append,
            "run",
            Done(),
            b=Acts(lambda ctx, m: asked.append(m)),
        )
        async with start(app) as running:
            if where == "other":
                await until(lambda: given)
                threading.Thread(target=wait, args=(given[0],)).start()
            await until(lambda: asked)
            assert errors == []
            await running.stop()
        await until(lambda: errors)

    within(10, main())
    assert [type(error) for error in errors] == [NoReply]


def test_a_send_that_waits_is_freed_with_its_message() -> None:
    done = Done()

    async def main() -> None:
        gate = asyncio.Event()

        async def hold(ctx: Any, message: Any) -> None:
            await gate.wait()

        def use(to_b: Any) -> Any:
            with pytest.raises(Closed) as closed:
                for n in range(10):
                    to_b.send(ToB(n))
            return closed.value.message

        app = given_by_c(use, "run", done, b=Awaits(hold), message_capacity=1)
        async with start(app, dead_letters=lambda _: None) as running:
            await until(lambda: running.meters()["b"].waiting)
            asyncio.get_running_loop().call_later(0.05, gate.set)
            await running.stop()

    within(10, main())
    assert done.result == ToB(2)


def test_after_the_end_it_is_closed_with_the_message_and_without_a_loop_too() -> None:
    """H14."""
    kept: list[Any] = []
    errors: list[Any] = []

    def late() -> None:
        for call in (
            lambda: kept[0].send(ToB(1)),
            lambda: kept[0].try_send(ToB(1)),
            lambda: kept[0].ask(ToB),
        ):
            with pytest.raises(Closed) as closed:
                call()
            errors.append(closed.value.message)

    async def main() -> None:
        async with start(trio(Acts(started=lambda ctx: kept.append(ctx.recipient(ToB))))) as running:
            await until(lambda: kept)
            await running.stop()
        await asyncio.to_thread(late)

    within(10, main())
    thread = threading.Thread(target=late)
    thread.start()
    thread.join(5)
    assert errors == [ToB(1), ToB(1), None] * 2


def test_two_threads_wait_in_one_line_with_the_loop() -> None:
    b = Acts()
    go = threading.Event()

    def give(ctx: Any, message: Any) -> None:
        go.wait(5)

    b.do = give

    async def main() -> None:
        taken: list[Any] = []
        async with start(
            trio(Acts(started=lambda ctx: taken.append(ctx.recipient(ToB))), b, message_capacity=1)
        ) as running:
            await until(lambda: taken)
            to_b = taken[0]
            for n in range(2):
                await to_b.send(ToB(n))
            others = []
            for n in range(2, 8):
                if n % 2:
                    others.append(asyncio.ensure_future(to_b.send(ToB(n))))
                else:
                    others.append(asyncio.ensure_future(asyncio.to_thread(to_b.send, ToB(n))))
                await until(lambda n=n: running.meters()["b"].waiting == n - 1)
            go.set()
            assert await asyncio.gather(*others) == [True] * 6
            await until(lambda: len(b.got) == 8)

    within(10, main())
    assert b.got == list(range(8))


@pytest.mark.parametrize("who_ends", ["here", "there"])
def test_a_thread_that_waits_in_another_orchestra_is_freed_by_the_end_of_either(who_ends: str) -> None:
    ended: list[Any] = []

    async def main() -> None:
        gate = asyncio.Event()
        kept: list[Any] = []
        taken: list[Any] = []

        async def hold(ctx: Any, message: Any) -> None:
            kept.append(message)
            await gate.wait()

        def wait(ctx: Any) -> None:
            with pytest.raises(Closed if who_ends == "here" else NoReply):
                taken[0].ask(lambda reply: ToB(1, reply))
            ended.append(ctx.name)

        other = trio(Acts(started=lambda ctx: taken.append(ctx.recipient(ToB))), Awaits(hold), blocking="ac")
        async with start(other, dead_letters=lambda _: None) as there:
            await until(lambda: taken)
            async with start(trio(Lives(wait)), dead_letters=lambda _: None) as here:
                await until(lambda: kept)
                await (here if who_ends == "here" else there).stop(0.05)
                await until(lambda: ended)
                gate.set()

    within(15, main())
    assert ended == ["a"]


def test_it_may_ride_in_a_message_to_a_thread() -> None:
    class Subscribe(msgspec.Struct):
        to: Live[Recipient[Note]]
        reply: Reply[bool] | None = None

    def serve(ctx: Any) -> None:
        for item in ctx:
            if isinstance(item, Subscribe):
                item.reply.send(item.to.blocking.send(Note(5)))

    async def asks(ctx: Any) -> None:
        assert await ctx.ask(lambda reply: Subscribe(ctx.recipient(Note), reply)) is True
        assert await ctx.recv() == Note(5)

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        server: Lives = subsystem(consumes=Subscribe, blocking=True)
        client: Runs = subsystem(consumes=Note, sends=[Subscribe])
        other: Calls = subsystem(consumes=Job)

    async def main() -> None:
        async with start(App(server=Lives(serve), client=Runs(asks), other=Calls())) as running:
            await running.drain()

    within(10, main())


def test_in_its_own_thread_a_full_lane_is_refused_and_a_question_is_a_deadlock() -> None:
    """Asking itself by a recipient would hang; the graph knows whose thread it is."""

    def run(ctx: Any) -> None:
        to_a = ctx.recipient(ToA)
        ctx.recv()
        with pytest.raises(Deadlock):
            to_a.ask(lambda reply: ToA(1, reply), timeout=5)
        assert to_a.send(ToA(1)) is True
        with pytest.raises(Full):
            to_a.send(ToA(2))

    in_thread("run", run, message_capacity=1)
