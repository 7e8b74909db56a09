"""Asks between threads and the loop: who answers, who cannot, and who waits for whom."""

import asyncio
import gc
import logging
import threading
from typing import Any

import pytest

from orchestra import Closed, Deadlock, Gridlock, NoReply, OrchestraError, Priority, Restart, start
from tests.runtime.players import until, within
from tests.runtime.threads.cast import (
    Acts,
    Awaits,
    Done,
    JustA,
    JustB,
    Lives,
    ToA,
    ToB,
    ToC,
    answer,
    doer,
    in_thread,
    trio,
)

KINDS = {"a": ToA, "b": ToB, "c": ToC}
JUST: dict[str, Any] = {"a": JustA, "b": JustB}


def asks(name: str, got: list[Any], **options: Any) -> Any:
    """Ask the subsystem of that name, note what comes of it, and answer who asked with it."""

    def handle(ctx: Any, message: Any) -> None:
        try:
            result = ctx.ask(lambda reply: KINDS[name](0, reply), **options)
        except Deadlock as deadlock:
            result = deadlock.chain
        got.append((ctx.name, result))
        if message.reply is not None:
            message.reply.send(result)

    return handle


def asks_in_loop(name: str, got: list[Any]) -> Any:
    async def handle(ctx: Any, message: Any) -> None:
        try:
            result = await ctx.ask(lambda reply: KINDS[name](0, reply))
        except Deadlock as deadlock:
            result = deadlock.chain
        got.append((ctx.name, result))
        if message.reply is not None:
            message.reply.send(result)

    return handle


def actor(name: str, blocking: str, asked: str, got: list[Any]) -> Any:
    return Acts(asks(asked, got)) if name in blocking else Awaits(asks_in_loop(asked, got))


PLACES = ["a", "b", "ab", "bc", "abc"]


@pytest.mark.parametrize("blocking", PLACES)
@pytest.mark.parametrize("boxed", [False, True])
def test_one_asks_another_that_asks_a_third(blocking: str, boxed: bool) -> None:
    got: list[Any] = []

    async def main() -> None:
        app = trio(
            actor("a", blocking, "b", got),
            actor("b", blocking, "c", got),
            Acts(),
            blocking=blocking,
            boxed=boxed,
        )
        async with start(app) as running:
            for _ in range(20):
                assert await running.ask(lambda reply: ToA(0, reply), timeout=5) == "c"
            await running.drain()

    within(15, main())
    assert got == [("b", "c"), ("a", "c")] * 20


@pytest.mark.parametrize("blocking", PLACES)
def test_a_circle_of_two_is_a_deadlock(blocking: str) -> None:
    got: list[Any] = []

    async def main() -> None:
        app = trio(actor("a", blocking, "b", got), actor("b", blocking, "a", got), blocking=blocking)
        async with start(app) as running:
            assert await running.ask(lambda reply: ToA(0, reply), timeout=5) == ("b", "a", "b")
            await running.drain()

    within(15, main())
    assert got == [("b", ("b", "a", "b")), ("a", ("b", "a", "b"))]


@pytest.mark.parametrize("blocking", PLACES)
def test_a_circle_of_three_is_a_deadlock(blocking: str) -> None:
    got: list[Any] = []

    async def main() -> None:
        app = trio(
            actor("a", blocking, "b", got),
            actor("b", blocking, "c", got),
            actor("c", blocking, "a", got),
            blocking=blocking,
        )
        async with start(app) as running:
            chain = await running.ask(lambda reply: ToA(0, reply), timeout=5)
            assert chain == ("c", "a", "b", "c")
            assert await running.ask(lambda reply: ToB(0, reply), timeout=5) == ("a", "b", "c", "a")
            await running.drain()

    within(15, main())


@pytest.mark.parametrize("style", ["actor", "run"])
@pytest.mark.parametrize("how", ["ctx", "recipient"])
def test_an_ask_to_oneself_is_a_deadlock(style: str, how: str) -> None:
    def ask(ctx: Any) -> Any:
        verb = ctx.ask if how == "ctx" else ctx.recipient(ToA).ask
        with pytest.raises(Deadlock) as caught:
            verb(lambda reply: ToA(0, reply))
        return caught.value.chain

    assert in_thread(style, ask) == ("a", "a")


def test_a_recipient_of_a_thread_makes_the_edge_too() -> None:
    got: list[Any] = []

    def handle(ctx: Any, message: Any) -> None:
        try:
            ctx.recipient(ToB).ask(lambda reply: ToB(0, reply))
        except Deadlock as deadlock:
            got.append(deadlock.chain)
        message.reply.send(None)

    async def main() -> None:
        async with start(trio(Acts(handle), Acts(asks("a", [])))) as running:
            await running.ask(lambda reply: ToA(0, reply), timeout=5)
            await running.ask(lambda reply: ToB(0, reply), timeout=5)
            await running.drain()

    within(15, main())
    assert got == [("a", "b", "a")]


def test_two_that_ask_each_other_at_once_never_hang() -> None:
    """One of the two, or neither, sees the circle; both go on."""
    results: list[Any] = []
    barrier = threading.Barrier(2)

    def handle(name: str) -> Any:
        def do(ctx: Any, message: Any) -> None:
            if message.n == 0:
                answer(ctx, message)
                return
            barrier.wait(5)
            try:
                results.append(ctx.ask(lambda reply: KINDS[name](0, reply), timeout=10))
            except Deadlock as deadlock:
                results.append(deadlock.chain)

        return do

    async def main() -> None:
        async with start(trio(Acts(handle("b")), Acts(handle("a")))) as running:
            for n in range(1, 31):
                running.try_send(ToA(1))
                running.try_send(ToB(1))
                await until(lambda n=n: len(results) == 2 * n)
            await running.drain()

    within(15, main())
    assert len([each for each in results if isinstance(each, tuple)]) >= 30


@pytest.mark.parametrize("kind", ["send", "request", "recipient"])
@pytest.mark.parametrize("blocking", ["a", "ab"])
def test_a_circle_of_full_lanes_is_reported(
    kind: str, blocking: str, caplog: pytest.LogCaptureFixture
) -> None:
    """`a`, in a thread, and `b` wait for each other's room; what `a` sends is a request by turns."""
    told: list[Gridlock] = []
    full = threading.Barrier(2)

    def floods(name: str) -> Any:
        def handle(ctx: Any, message: Any) -> None:
            full.wait(5)
            to = ctx.recipient(JUST[name])
            for n in range(3):
                made = KINDS[name](n, message.reply) if kind == "request" else JUST[name](n)
                (to.send if kind == "recipient" else ctx.send)(made)

        return handle

    async def floods_in_loop(ctx: Any, message: Any) -> None:
        await asyncio.to_thread(full.wait, 5)
        for n in range(3):
            await ctx.send(JustA(n))

    b = Acts(floods("a")) if "b" in blocking else Awaits(floods_in_loop)

    async def main() -> None:
        app = trio(Acts(floods("b")), b, blocking=blocking, message_capacity=1)
        async with start(app, on_gridlock=told.append, dead_letters=lambda _: None) as running:
            asked = asyncio.ensure_future(running.ask(lambda reply: ToA(0, reply)))
            running.try_send(ToB(0))
            await until(lambda: told)
            assert not asked.done()
            await running.stop(1)
            await asyncio.gather(asked, return_exceptions=True)

    with caplog.at_level(logging.WARNING, "orchestra"):
        within(15, main())
    assert len(told) == 1
    assert set(told[0].subsystems) == {"a", "b"}
    assert set(told[0].lanes) == {("a", Priority.NORMAL), ("b", Priority.NORMAL)}


def test_an_ask_to_one_that_waits_for_my_room_is_a_deadlock() -> None:
    got: list[Any] = []
    blocked = threading.Event()

    def floods(ctx: Any, message: Any) -> None:
        for n in range(3):
            ctx.send(JustA(n))

    def handle(ctx: Any, message: Any) -> None:
        if message.n:
            return
        blocked.wait(5)
        try:
            ctx.ask(lambda reply: ToB(0, reply), timeout=5)
        except Deadlock as deadlock:
            got.append(deadlock.chain)

    async def main() -> None:
        async with start(trio(Acts(handle), Acts(floods), message_capacity=1)) as running:
            await running.send(ToA(0))
            await running.send(ToB(0))
            await until(lambda: running.meters()["a"].waiting)
            await asyncio.sleep(0.05)
            blocked.set()
            await until(lambda: got)
            await running.stop()

    within(15, main())
    assert got[0] == ("a", "b", "a")


# who cannot answer


def asked(do: Any, **options: Any) -> Any:
    """Ask a blocking `b` that does something with the question; the error with which the ask ends."""
    done = Done()

    def ask(ctx: Any) -> Any:
        try:
            return ctx.ask(lambda reply: ToB(1, reply), timeout=10)
        except NoReply as error:
            return error

    async def main() -> None:
        try:
            async with start(trio(doer("run", ask, done), do, **options), dead_letters=lambda _: None):
                await until(lambda: done.over)
        except OrchestraError:
            pass

    within(15, main())
    return done.result


kept: list[Any] = []


def fail(ctx: Any, message: Any) -> None:
    kept.append(message)
    raise ValueError("mine")


def finish(ctx: Any, message: Any) -> None:
    kept.append(message)
    ctx.finish()


def run_fails(ctx: Any) -> None:
    kept.append(ctx.recv())
    raise ValueError("mine")


def run_ends(ctx: Any) -> None:
    kept.append(ctx.recv())


NOT_ANSWERED = {
    "fails": (lambda: Acts(fail), "its handler raised ValueError: mine"),
    "finishes": (lambda: Acts(finish), "it has ended without an answer"),
    "run fails": (lambda: Lives(run_fails), "its handler raised ValueError: mine"),
    "run ends": (lambda: Lives(run_ends), "it has ended without an answer"),
    "stops": (lambda: Acts(lambda ctx, message: (kept.append(message), ctx.stop())), "ended"),
    "forgets": (lambda: Acts(lambda ctx, message: None), "dropped without an answer"),
}


@pytest.mark.parametrize("how", NOT_ANSWERED)
@pytest.mark.parametrize("restart", [None, Restart(limit=5, within=10, backoff=0.0)])
def test_no_reply_at_once_from_a_thread_that_will_not_answer(how: str, restart: Any) -> None:
    """Also while the question is kept alive."""
    make, why = NOT_ANSWERED[how]
    error = asked(make(), restart=restart)
    kept.clear()
    assert isinstance(error, NoReply)
    assert why in str(error)


def test_a_restart_leaves_the_questions_that_wait_to_the_next_life() -> None:
    def handle(ctx: Any, message: Any) -> None:
        if message.n == 0:
            raise ValueError("first")
        message.reply.send(message.n)

    async def main() -> None:
        app = trio(b=Acts(handle), restart=Restart(limit=3, within=10, backoff=0.01))
        async with start(app, dead_letters=lambda _: None) as running:
            asking = [
                asyncio.ensure_future(running.ask(lambda reply, n=n: ToB(n, reply), timeout=5))
                for n in range(4)
            ]
            results = await asyncio.gather(*asking, return_exceptions=True)
            assert isinstance(results[0], NoReply)
            assert results[1:] == [1, 2, 3]
            await running.drain()

    within(15, main())


# the reply in threads


def test_a_reply_is_sent_once_by_whichever_thread() -> None:
    """By the subsystem's thread, by one that it has begun, by the pool, by the loop: one of them wins."""
    results: list[bool] = []

    def race(ctx: Any, message: Any) -> None:
        ctx.spawn(in_loop(message.reply))
        threads = [threading.Thread(target=give, args=(message.reply,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        give(message.reply)
        for thread in threads:
            thread.join()

    def give(reply: Any) -> None:
        results.append(reply.send(threading.current_thread().name))

    async def in_loop(reply: Any) -> None:
        give(reply)

    async def main() -> None:
        async with start(trio(b=Acts(race))) as running:
            for _ in range(30):
                assert isinstance(await running.ask(lambda reply: ToB(0, reply), timeout=5), str)
            await running.drain()
            assert running.meters()["b"].late_replies == 30 * 5

    within(15, main())
    assert results.count(True) == 30
    assert len(results) == 30 * 6


def test_a_reply_is_failed_from_a_thread_with_the_very_error() -> None:
    wrong = LookupError("no")

    async def main() -> None:
        async with start(trio(b=Acts(lambda ctx, message: message.reply.fail(wrong)))) as running:
            with pytest.raises(LookupError) as caught:
                await running.ask(lambda reply: ToB(0, reply), timeout=5)
            assert caught.value is wrong
            await running.drain()

    within(15, main())


def test_a_question_is_handed_on_from_thread_to_thread() -> None:
    """Whoever has it last is waited for: when that one ends, there is no reply."""

    def hand_on(ctx: Any, message: Any) -> None:
        ctx.send(ToC(message.n, message.reply))

    def last(ctx: Any, message: Any) -> None:
        if message.n:
            kept.append(message)
            ctx.finish()
        else:
            message.reply.send(ctx.name)

    async def main() -> None:
        async with start(trio(b=Acts(hand_on), c=Acts(last))) as running:
            assert await running.ask(lambda reply: ToB(0, reply), timeout=5) == "c"
            with pytest.raises(NoReply, match="from 'c': it has ended"):
                await running.ask(lambda reply: ToB(1, reply), timeout=5)
            await running.drain()

    within(15, main())
    kept.clear()


def test_nothing_of_an_ask_from_a_thread_is_kept() -> None:
    async def main() -> None:
        async with start(trio(Acts(asks("b", [])))) as running:
            for _ in range(50):
                await running.ask(lambda reply: ToA(0, reply), timeout=5)
            asks_of = running._ensemble.asks
            await until(lambda: not asks_of._open)
            assert not asks_of.waits.asking
            assert not asks_of._askers
            gc.collect()
            await running.drain()

    within(15, main())


def test_threadsafe_asks() -> None:
    async def main() -> None:
        async with start(trio(b=Acts(), c=Acts(lambda ctx, message: kept.append(message)))) as running:
            handle = running.threadsafe()

            def work() -> None:
                assert handle.ask(lambda reply: ToB(0, reply)) == "b"
                assert handle.ask(lambda reply: ToB(0, reply), timeout=5, priority=Priority.NORMAL) == "b"
                with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
                    handle.ask(lambda reply: ToC(0, reply), timeout=0.05)
                with pytest.raises(TypeError):
                    handle.ask(ToB())  # type: ignore[call-overload]  # what is wrong is the point

            await asyncio.to_thread(work)
            with pytest.raises(RuntimeError, match="which would wait for itself"):
                handle.ask(lambda reply: ToB(0, reply))
            await running.drain()
            with pytest.raises(Closed):
                await asyncio.to_thread(handle.ask, lambda reply: ToB(0, reply))

    within(15, main())
    kept.clear()


def test_an_answer_races_with_the_time_limit_of_a_thread_and_nothing_hangs() -> None:
    async def main() -> None:
        ended = {"value": 0, "late": 0}

        def ask(ctx: Any) -> None:
            for n in range(60):
                try:
                    ctx.ask(lambda reply: ToB(0, reply), timeout=0.0001 * n)
                except TimeoutError:
                    ended["late"] += 1
                else:
                    ended["value"] += 1

        async with start(trio(Lives(ask), Acts())) as running:
            await running.drain()
        assert ended["value"] + ended["late"] == 60

    within(15, main())
