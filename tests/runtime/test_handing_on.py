"""Replies that are handed on: by timers, to several, to another orchestra, and by sends that go wrong."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from orchestra import (
    Block,
    Closed,
    Deadlock,
    Drop,
    Full,
    NoReply,
    Reply,
    Restart,
    orchestra,
    start,
    subsystem,
)
from tests.runtime.asking import Acts, ToA, ToAll, ToB, ToC, trio
from tests.runtime.clockwork import run
from tests.runtime.players import Bell, Knock, turns


def now() -> float:
    return asyncio.get_running_loop().time()


async def sleep(ctx: Any, message: Any) -> None:
    await asyncio.sleep(1000)


async def fail(ctx: Any, message: Any) -> None:
    raise ValueError("cannot")


def later(delay: float) -> Callable[[Any, Any], Any]:
    """Hand the reply on to `c` by a timer."""

    async def do(ctx: Any, message: Any) -> None:
        ctx.send_after(delay, ToC(message.reply))

    return do


async def fill(running: Any, *kinds: type) -> None:
    """Let the receivers of these types be at work, and their lanes of one message be full."""
    for kind in kinds:
        running.try_send(kind())
    await turns()
    for kind in kinds:
        running.try_send(kind())


# by timers


def test_a_timer_hands_a_reply_on_and_who_has_set_it_may_end() -> None:
    async def c(ctx: Any, message: Any) -> None:
        await asyncio.sleep(5)
        message.reply.send("c")

    async def main() -> None:
        async with start(trio(Acts(), Acts(later(1)), Acts(c))) as running:
            asked = asyncio.ensure_future(running.ask(ToB))
            await asyncio.sleep(2)
            running._ensemble.parts["b"].ctx.finish()
            assert await asked == "c"
            assert now() == 6

    run(main())


def test_a_receiver_that_fails_on_it_gives_no_reply_though_the_letter_is_kept() -> None:
    letters: list[Any] = []

    async def main() -> None:
        app = trio(Acts(), Acts(later(1)), Acts(fail), restart=Restart())
        async with start(app, dead_letters=letters.append) as running:
            with pytest.raises(NoReply, match="from 'c': its handler raised ValueError: cannot"):
                await running.ask(ToB)
            assert now() == 1
            assert len(letters) == 1

    run(main())


@pytest.mark.parametrize("how", ["drain", "restart", "finish"])
def test_a_timer_that_is_cancelled_by_an_end_gives_no_reply_at_once(how: str) -> None:
    letters: list[Any] = []

    async def main() -> None:
        app = trio(Acts(), Acts(later(10)), restart=Restart(backoff=1))
        async with start(app, dead_letters=letters.append) as running:
            asked = asyncio.ensure_future(running.ask(ToB))
            await asyncio.sleep(2)
            part = running._ensemble.parts["b"]
            if how == "drain":
                await running.drain()
            elif how == "restart":
                part.fail(ValueError())
            else:
                part.ctx.finish()
            with pytest.raises(NoReply, match="from 'c': the timer that was to send it ended before"):
                await asked
            assert now() == 2
        assert [letter.reason for letter in letters] == ["timer"]

    run(main())


def test_an_asker_inside_does_not_keep_a_drain_waiting_for_a_timer_that_it_has_cancelled() -> None:
    letters: list[Any] = []
    told: list[str] = []

    async def a(ctx: Any, message: Any) -> None:
        with pytest.raises(NoReply) as caught:
            await ctx.ask(ToB)
        told.append(str(caught.value))

    async def main() -> None:
        async with start(trio(Acts(a), Acts(later(10))), dead_letters=letters.append) as running:
            await running.send(ToA())
            await asyncio.sleep(1)
            await running.drain()
            assert now() == 1
        assert len(told) == 1

    run(main())


def test_one_that_waits_for_room_outlives_who_has_set_it() -> None:
    async def b(ctx: Any, message: Any) -> None:
        ctx.send_after(0, ToC(message.reply))
        await asyncio.sleep(1)
        ctx.finish()

    async def c(ctx: Any, message: Any) -> None:
        await asyncio.sleep(5)
        if message.reply:
            message.reply.send("c")

    async def main() -> None:
        async with start(trio(Acts(), Acts(b), Acts(c), message_capacity=1)) as running:
            await fill(running, ToC)
            assert await running.ask(ToB) == "c"
            assert now() == 15

    run(main())


@pytest.mark.parametrize("ends", [False, True])
def test_one_that_a_policy_drops_is_with_who_has_set_it_as_before(ends: bool) -> None:
    kept: list[Any] = []

    async def b(ctx: Any, message: Any) -> None:
        kept.append(message.reply)
        ctx.send_after(1, ToC(message.reply))

    async def main() -> None:
        async with start(trio(Acts(), Acts(b), Acts(sleep), message_capacity=1, overflow=Drop(0))) as running:
            await fill(running, ToC)
            asked = asyncio.ensure_future(running.ask(ToB))
            await asyncio.sleep(2)
            assert running.meters()["c"].dropped == 1
            if ends:
                running._ensemble.parts["b"].ctx.finish()
                with pytest.raises(NoReply, match="'b': it has ended without an answer"):
                    await asked
            else:
                kept[0].send("b")
                assert await asked == "b"
            await running.stop(0)

    run(main())


def test_cancelled_it_is_with_who_has_set_it() -> None:
    kept: list[Any] = []

    async def b(ctx: Any, message: Any) -> None:
        timer = ctx.send_after(1, ToC(message.reply))
        timer.cancel()
        kept.append(message.reply)

    async def main() -> None:
        async with start(trio(Acts(), Acts(b))) as running:
            asked = asyncio.ensure_future(running.ask(ToB))
            await turns()
            running._ensemble.parts["c"].ctx.finish()
            await turns()
            kept[0].send("b")
            assert await asked == "b"

    run(main())


def test_a_circle_that_a_timer_closes_is_a_deadlock() -> None:
    async def a(ctx: Any, message: Any) -> None:
        with pytest.raises(Deadlock) as caught:
            await ctx.ask(ToB)
        assert caught.value.chain == ("a", "c", "a")
        message.reply.send("found")

    async def b(ctx: Any, message: Any) -> None:
        await asyncio.sleep(1)
        ctx.send_after(10, ToC(message.reply))

    async def c(ctx: Any, message: Any) -> None:
        await ctx.ask(ToA)

    async def main() -> None:
        async with start(trio(Acts(a), Acts(b), Acts(c))) as running:
            asked = asyncio.ensure_future(running.ask(ToA))
            await turns()
            running.try_send(ToC())
            assert await asked == "found"
            assert now() == 1
            await running.stop(0)

    run(main())


@pytest.mark.parametrize("full", [False, True], ids=["", "waits for room"])
def test_a_tick_hands_a_reply_on(full: bool) -> None:
    letters: list[Any] = []

    async def b(ctx: Any, message: Any) -> None:
        left = [ToC(message.reply)]
        del message
        timer = ctx.send_every(1, lambda: left.pop() if left else timer.cancel() or ToC())

    async def c(ctx: Any, message: Any) -> None:
        await asyncio.sleep(5)
        if message.reply:
            raise ValueError("cannot")

    async def main() -> None:
        app = trio(Acts(), Acts(b), Acts(c), message_capacity=1, restart=Restart())
        async with start(app, dead_letters=letters.append) as running:
            if full:
                await fill(running, ToC)
            with pytest.raises(NoReply, match="from 'c': its handler raised ValueError"):
                await running.ask(ToB)
            assert now() == (15 if full else 6)

    run(main())


# to several


def listeners(b: Any, c: Any, *, full: Any = None, **options: Any) -> Any:
    """An orchestra of `a`, which sends to `b`, whose lane holds one message, and to `c`."""

    def make(a: Any) -> Any:
        @orchestra(signal=Bell, event=Knock)
        class Listeners:
            a: Acts = subsystem(consumes=ToA, sends=[ToAll])
            b: Acts = subsystem(
                consumes=ToB, subscribes=[ToAll], message_capacity=1, overflow=full or Block()
            )
            c: Acts = subsystem(consumes=ToC, subscribes=[ToAll], **options)

        return Listeners(a=Acts(a), b=Acts(b), c=Acts(c))

    return make


def test_who_dropped_a_request_is_not_waited_for() -> None:
    letters: list[Any] = []

    async def main() -> None:
        app = listeners(sleep, fail, full=Drop(0), restart=Restart())(sleep)
        async with start(app, dead_letters=letters.append) as running:
            await fill(running, ToB)
            with pytest.raises(NoReply, match="from 'c': its handler raised"):
                await running.ask(ToAll)
            assert len(letters) == 1
            await running.stop(0)

    run(main())


def test_a_request_that_all_have_dropped_has_no_reply_though_it_is_kept() -> None:
    kept: list[Any] = []

    def make(reply: Reply[Any]) -> ToAll:
        kept.append(ToAll(reply))
        return kept[0]

    async def main() -> None:
        app = listeners(sleep, sleep, full=Drop(0), overflow=Drop(0), message_capacity=1)(sleep)
        async with start(app) as running:
            await fill(running, ToB, ToC)
            with pytest.raises(NoReply, match="'b' and 'c': the request was dropped, for there was no room"):
                await running.ask(make)
            await running.stop(0)

    run(main())


def test_a_request_to_several_that_are_planned_has_no_reply_though_it_is_kept() -> None:
    @orchestra(signal=Bell, event=Knock)
    class Planned:
        a: Acts = subsystem(consumes=ToA, sends=[ToAll])
        b: Acts = subsystem(subscribes=[ToAll], wip=True)
        c: Acts = subsystem(subscribes=[ToAll], wip=True)

    kept: list[Any] = []

    def make(reply: Reply[Any]) -> ToAll:
        kept.append(ToAll(reply))
        return kept[0]

    async def main() -> None:
        async with start(Planned(a=Acts())) as running:
            with pytest.raises(NoReply, match="was dropped, for its receiver is only planned"):
                await running.ask(make)

    run(main())


def test_who_took_it_has_the_reply_though_another_had_no_room() -> None:
    kept: list[Any] = []

    async def a(ctx: Any, message: Any) -> None:
        kept.append(message.reply)
        with pytest.raises(Full):
            ctx.try_send(ToAll(message.reply))
        ctx.finish()

    async def c(ctx: Any, message: Any) -> None:
        await asyncio.sleep(1)
        message.reply.send("c")

    async def main() -> None:
        async with start(listeners(sleep, c)(a)) as running:
            await fill(running, ToB)
            assert await running.ask(ToA) == "c"
            await running.stop(0)

    run(main())


def test_who_took_it_before_the_send_was_cancelled_has_the_reply() -> None:
    kept: list[Any] = []

    async def a(ctx: Any, message: Any) -> None:
        kept.append(message.reply)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await ctx.send(ToAll(message.reply))
        ctx.finish()

    async def c(ctx: Any, message: Any) -> None:
        await asyncio.sleep(5)
        message.reply.send("c")

    async def main() -> None:
        async with start(listeners(sleep, c)(a)) as running:
            await fill(running, ToB)
            assert await running.ask(ToA) == "c"
            await running.stop(0)

    run(main())


@pytest.mark.parametrize("timeout", [None, 1, 5])
def test_an_answer_is_the_outcome_though_another_receiver_has_no_room(timeout: float | None) -> None:
    async def c(ctx: Any, message: Any) -> None:
        await asyncio.sleep(1)
        message.reply.send("c")

    async def main() -> None:
        async with start(listeners(sleep, c)(sleep)) as running:
            await fill(running, ToB)
            try:
                assert await running.ask(ToAll, timeout=timeout) == "c"
            except TimeoutError:
                assert timeout == 1
            assert now() == 1
            assert running.meters()["b"].waiting == 0
            await running.stop(0)

    run(main())


def test_an_answer_is_the_outcome_though_the_other_receivers_end() -> None:
    async def c(ctx: Any, message: Any) -> None:
        message.reply.send("c")
        ctx.finish()
        running._ensemble.parts["b"].ctx.finish()

    running: Any = None

    async def main() -> None:
        nonlocal running
        async with start(listeners(sleep, c)(sleep)) as running:
            await fill(running, ToB)
            assert await running.ask(ToAll) == "c"
            await running.stop(0)

    run(main())


def test_a_send_that_was_only_tried_closes_no_circle() -> None:
    async def a(ctx: Any, message: Any) -> None:
        message.reply.send(await ctx.ask(ToB))

    async def b(ctx: Any, message: Any) -> None:
        await asyncio.sleep(1)
        with pytest.raises(Full):
            ctx.try_send(ToC(message.reply))
        message.reply.send("b")

    async def c(ctx: Any, message: Any) -> None:
        await ctx.ask(ToA)

    async def main() -> None:
        async with start(trio(Acts(a), Acts(b), Acts(c), message_capacity=1)) as running:
            asked = asyncio.ensure_future(running.ask(ToA))
            await turns()
            await fill(running, ToC)
            assert await asked == "b"
            await running.stop(0)

    run(main())


# by a task that outlives the one who had it


def test_a_send_by_somebody_else_that_the_end_closes_leaves_nobody_waiting() -> None:
    kept: list[Any] = []

    async def a(ctx: Any, message: Any) -> None:
        kept.append(message.reply)
        kept.append(asyncio.create_task(ctx.recipient(ToB).send(ToB(message.reply))))

    async def main() -> None:
        app = trio(Acts(a), Acts(sleep), message_capacity=1)
        async with start(app, dead_letters=lambda letter: None) as running:
            await fill(running, ToB)
            asked = asyncio.ensure_future(running.ask(ToA))
            await asyncio.sleep(1)
            await running.stop(0)
            with pytest.raises(NoReply):
                await asked
            with pytest.raises(Closed):
                await kept[1]

    run(main())


# to another orchestra


@pytest.mark.parametrize("how", ["fails", "is stopped", "is queued", "finishes"])
def test_an_orchestra_that_was_given_a_reply_tells_when_it_cannot_answer(how: str) -> None:
    letters: list[Any] = []
    kept: list[Any] = []

    async def other(ctx: Any, message: Any) -> None:
        kept.append(message)
        if how == "fails":
            raise ValueError("cannot")
        if how == "is queued":
            await asyncio.sleep(5)

    async def main() -> None:
        async with start(trio(Acts(other), restart=Restart()), dead_letters=letters.append) as two:
            if how == "is queued":
                two.try_send(ToA())

            async def a(ctx: Any, message: Any) -> None:
                await two.send(ToA(message.reply))

            async with start(trio(Acts(a))) as one:
                asked = asyncio.ensure_future(one.ask(ToA))
                await asyncio.sleep(1)
                if how == "finishes":
                    two._ensemble.parts["a"].ctx.finish()
                elif how != "fails":
                    await two.stop(0)
                with pytest.raises(NoReply):
                    await asked
                assert now() < 2
                assert not one._ensemble.asks._open
            assert not two._ensemble.asks._guests

    run(main())


def test_a_reply_may_come_back_from_another_orchestra() -> None:
    async def main() -> None:
        ones: list[Any] = []

        async def back(ctx: Any, message: Any) -> None:
            await ones[0].send(ToB(message.reply))
            ctx.finish()

        async with start(trio(Acts(back))) as two:

            async def forth(ctx: Any, message: Any) -> None:
                await two.send(ToA(message.reply))

            async with start(trio(Acts(forth))) as one:
                ones.append(one)
                assert await one.ask(ToA) == "b"
            assert not two._ensemble.asks._guests

    run(main())


def test_an_answer_that_comes_too_late_counts_where_it_was_given() -> None:
    kept: list[Any] = []

    async def keep(ctx: Any, message: Any) -> None:
        kept.append(message.reply)

    async def main() -> None:
        async with start(trio(Acts(keep))) as two:

            async def forth(ctx: Any, message: Any) -> None:
                await two.send(ToA(message.reply))

            async with start(trio(Acts(forth))) as one:
                with pytest.raises(TimeoutError):
                    await one.ask(ToA, timeout=1)
                assert kept[0].send("late") is False
                assert two.meters()["a"].late_replies == 1
                assert one.meters()["a"].late_replies == 0

    run(main())
