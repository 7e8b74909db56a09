"""Asking: the answer, the failure, the time limit, and `NoReply` as soon as nobody can answer."""

import asyncio
import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import attrs
import msgspec
import pytest

from orchestra import (
    Actor,
    Box,
    Closed,
    Context,
    Drop,
    DropOldest,
    Full,
    NoReply,
    OrchestraError,
    Priority,
    Reply,
    StopTimeout,
    UndeclaredMessage,
    orchestra,
    start,
    subsystem,
)
from tests.runtime.asking import Acts, Lives, Plain, ToA, ToAll, ToB, ToC, trio
from tests.runtime.clockwork import run
from tests.runtime.players import Bell, Job, Knock, turns, until, within

# the answer


async def ask_b(ctx: Any, message: Any) -> None:
    message.reply.send(await ctx.ask(ToB))


async def ask_from_a_task(ctx: Any, message: Any) -> None:
    task = asyncio.ensure_future(ctx.ask(ToB))
    message.reply.send(await task)


async def ask_with_others(ctx: Any, message: Any) -> None:
    answers = await asyncio.gather(ctx.ask(ToB), ctx.ask(ToC))
    assert answers == ["b", "c"]
    message.reply.send(answers[0])


async def ask_within_a_timeout(ctx: Any, message: Any) -> None:
    async with asyncio.timeout(5):
        message.reply.send(await ctx.ask(ToB, timeout=3))


async def ask_by_recipient(ctx: Any, message: Any) -> None:
    message.reply.send(await ctx.recipient(ToB).ask(ToB))


ASKERS = [ask_b, ask_from_a_task, ask_with_others, ask_within_a_timeout, ask_by_recipient]


@pytest.mark.parametrize("boxed", [False, True], ids=["", "boxed"])
@pytest.mark.parametrize("do", ASKERS, ids=lambda do: do.__name__)
def test_an_actor_asks_and_is_asked(do: Any, boxed: bool) -> None:
    async def main() -> None:
        async with start(trio(Acts(do), boxed_messages=boxed)) as running:
            for _ in range(3):
                assert await running.ask(ToA) == "b"

    run(main())


@pytest.mark.parametrize("do", ASKERS, ids=lambda do: do.__name__)
def test_a_run_asks(do: Any) -> None:
    async def live(ctx: Any) -> None:
        async for message in ctx:
            await do(ctx, message)

    async def main() -> None:
        async with start(trio(Lives(live))) as running:
            for _ in range(3):
                assert await running.ask(ToA) == "b"

    run(main())


def test_a_synchronous_actor_answers() -> None:
    async def main() -> None:
        plain = Plain(lambda ctx, message: message.reply.send(5))
        async with start(trio(Acts(ask_b), plain)) as running:
            assert await running.ask(ToA) == 5

    run(main())


@pytest.mark.parametrize("hook", ["started", "stopped"])
def test_a_hook_asks(hook: str) -> None:
    got: list[Any] = []

    async def ask(ctx: Any) -> None:
        got.append(await ctx.ask(ToB))

    async def main() -> None:
        async with start(trio(Acts(**{hook: ask}))) as running:
            await turns()
            await running.drain()
        assert got == ["b"]

    run(main())


def test_a_reply_may_be_kept_and_answered_later() -> None:
    async def keep(ctx: Any, message: Any) -> None:
        kept.append(message.reply)

    kept: list[Reply[int]] = []

    async def main() -> None:
        async with start(trio(Acts(keep))) as running:
            asked = [asyncio.ensure_future(running.ask(ToA)) for _ in range(3)]
            await until(lambda: len(kept) == 3)
            for number in (2, 0, 1):
                assert kept[number].done is False
                assert kept[number].send(number) is True
                assert kept[number].done is True
            assert await asyncio.gather(*asked) == [0, 1, 2]

    run(main())


def test_it_raises_the_very_error_that_it_is_failed_with() -> None:
    error = KeyError("unknown")

    async def main() -> None:
        async with start(trio(Plain(lambda ctx, message: message.reply.fail(error)))) as running:
            with pytest.raises(KeyError) as caught:
                await running.ask(ToA)
            assert caught.value is error

    run(main())


def test_a_class_of_errors_is_called() -> None:
    async def main() -> None:
        async with start(trio(Plain(lambda ctx, message: message.reply.fail(LookupError)))) as running:
            with pytest.raises(LookupError):
                await running.ask(ToA)

    run(main())


@pytest.mark.parametrize("wrong", [5, "no", None, KeyboardInterrupt(), SystemExit, StopIteration])
def test_a_reply_is_failed_only_with_what_a_coroutine_can_raise(wrong: Any) -> None:
    def fail(ctx: Any, message: Any) -> None:
        with pytest.raises(TypeError, match=r"Reply\.fail takes"):
            message.reply.fail(wrong)
        message.reply.send("still open")

    async def main() -> None:
        async with start(trio(Plain(fail))) as running:
            assert await running.ask(ToA) == "still open"

    run(main())


def test_a_second_answer_is_ignored_and_counted() -> None:
    def twice(ctx: Any, message: Any) -> None:
        assert message.reply.send(1) is True
        assert message.reply.send(2) is False
        assert message.reply.fail(KeyError()) is False

    async def main() -> None:
        async with start(trio(Plain(twice))) as running:
            assert await running.ask(ToA) == 1
            assert running.meters()["a"].late_replies == 2
            assert running.meters()["b"].late_replies == 0

    run(main())


def test_a_reply_is_answered_from_a_thread() -> None:
    threads: list[threading.Thread] = []
    told: list[bool] = []

    def from_a_thread(ctx: Any, message: Any) -> None:
        reply = message.reply

        def work() -> None:
            told.append(reply.send("from afar"))

        threads.append(threading.Thread(target=work))
        threads[-1].start()

    async def main() -> None:
        async with start(trio(Acts(ask_b), Plain(from_a_thread))) as running:
            assert await running.ask(ToA, timeout=5) == "from afar"
            assert await running.ask(ToB, timeout=5) == "from afar"
        for thread in threads:
            thread.join()
        assert told == [True, True]

    within(10, main())


def test_of_many_threads_one_answers() -> None:
    threads: list[threading.Thread] = []
    told: list[bool] = []
    barrier = threading.Barrier(8)

    def race(ctx: Any, message: Any) -> None:
        reply = message.reply

        def work() -> None:
            barrier.wait()
            told.append(reply.send(1))

        for _ in range(8):
            threads.append(threading.Thread(target=work))
            threads[-1].start()

    async def main() -> None:
        async with start(trio(Plain(race))) as running:
            assert await running.ask(ToA, timeout=5) == 1
            await asyncio.to_thread(lambda: [thread.join() for thread in threads])
            assert sorted(told) == [False] * 7 + [True]
            await turns()
            assert running.meters()["a"].late_replies == 7

    within(10, main())


def test_a_reply_dropped_in_a_thread_is_noticed() -> None:
    def drop(ctx: Any, message: Any) -> None:
        kept = [message.reply]
        message.reply = None
        threading.Timer(0.05, kept.clear).start()

    async def main() -> None:
        async with start(trio(Plain(drop))) as running:
            with pytest.raises(NoReply, match="dropped without an answer"):
                await running.ask(ToA, timeout=5)

    within(10, main())


def test_an_answer_after_the_loop_has_closed_is_too_late() -> None:
    kept: list[Any] = []

    async def main() -> None:
        async with start(trio(Plain(lambda ctx, message: kept.append(message.reply)))) as running:
            task = asyncio.ensure_future(running.ask(ToA))
            await until(lambda: kept)
            task.cancel()

    within(5, main())
    assert kept.pop().send(1) is False


def test_the_level_of_the_request_may_be_given() -> None:
    order: list[str] = []

    class Slow(Actor):
        async def handle(self, ctx: Context[Any, Any, Any], message: ToA) -> None:
            await asyncio.sleep(0.1)
            assert message.reply is not None
            message.reply.send(None)

    @orchestra(signal=Bell, event=Knock)
    class App:
        slow: Slow = subsystem(consumes=ToA, priorities=[Priority.HIGH, Priority.NORMAL])

    async def main() -> None:
        async with start(App(slow=Slow())) as running:

            async def ask(name: str, priority: Priority | None) -> None:
                await running.ask(ToA, priority=priority)
                order.append(name)

            await asyncio.gather(ask("first", None), ask("normal", None), ask("high", Priority.HIGH))
        assert order == ["high", "first", "normal"]

    run(main())


def test_what_is_wrong_with_the_message_is_raised_at_once() -> None:
    async def main() -> None:
        async with start(trio()) as running:
            with pytest.raises(TypeError, match=r"takes a function .*write ask\(lambda reply: ToA\("):
                await running.ask(ToA())  # type: ignore[arg-type,call-overload]
            with pytest.raises(UndeclaredMessage):
                await running.ask(lambda reply: Job())
            with pytest.raises(ZeroDivisionError):
                await running.ask(lambda reply: ToA(1 // 0))  # type: ignore[arg-type]

    run(main())


def test_a_message_without_the_reply_gets_none() -> None:
    async def main() -> None:
        async with start(trio(Plain(lambda ctx, message: None))) as running:
            with pytest.raises(
                NoReply, match="the message does not hold the reply that it was made with: write ask"
            ):
                await running.ask(lambda reply: ToA())

    run(main())


# the reply itself


def test_a_reply_is_neither_pickled_nor_copied() -> None:
    def refuses(ctx: Any, message: Any) -> None:
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied"):
                attempt(message.reply)
        assert repr(message.reply) == "<reply to ToA>"
        reply = message.reply
        reply.send(None)
        assert repr(reply) == "<reply to ToA, done>"

    async def main() -> None:
        async with start(trio(Plain(refuses))) as running:
            await running.ask(ToA)

    run(main())


def test_a_box_made_ahead_may_carry_the_reply() -> None:
    async def forward(ctx: Any, message: Any) -> None:
        await ctx.send(Box.seal(ToB(message.reply)))

    async def main() -> None:
        async with start(trio(Acts(forward), boxed_messages=True)) as running:
            assert await running.ask(lambda reply: Box.seal(ToB(reply))) == "b"
            assert await running.ask(ToA) == "b"

    run(main())


class Plainly:
    """A message of a class that says nothing of its fields."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply


@attrs.frozen
class Nested:
    inner: dict[str, list[ToA]]


class Keyed(msgspec.Struct):
    key: str
    reply: Reply[str]


@pytest.mark.parametrize(
    ("make", "find"),
    [
        (Plainly, lambda message: message.reply),
        (lambda reply: Nested({"x": [ToA(reply)]}), lambda message: message.inner["x"][0].reply),
        (lambda reply: Keyed("k", reply), lambda message: message.reply),
    ],
    ids=["plain", "nested", "keyed"],
)
def test_the_reply_may_be_anywhere_in_any_message(make: Any, find: Any) -> None:
    class Takes(Actor):
        async def handle(self, ctx: Any, message: Any) -> None:
            find(message).send("found")

    class Fails(Actor):
        async def handle(self, ctx: Any, message: Any) -> None:
            kept.append(message)
            raise LookupError("fails")

    def app(kind: Any) -> Any:
        @orchestra(signal=Bell, event=Knock)
        class App:
            takes: kind = subsystem(consumes=[Plainly | Nested | Keyed][0])

        return App(takes=kind())

    kept: list[Any] = []

    async def main() -> None:
        async with start(app(Takes)) as running:
            assert await running.ask(make) == "found"
        with pytest.raises(OrchestraError, match="fails"):
            async with start(app(Fails), dead_letters=kept.append) as running:
                with pytest.raises(NoReply) as caught:
                    await running.ask(make, timeout=60)
                assert isinstance(caught.value.__cause__, LookupError)

    run(main())


# nobody can answer


def silent(letter: Any) -> None:
    """A hook that keeps nothing."""


async def forget(ctx: Any, message: Any) -> None:
    """Drops the message when it returns."""


async def gets_no_reply(asking: Any, why: str, *, holder: str | None = "a") -> NoReply:
    """It does so long before its time limit."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(NoReply, match=why) as caught:
        await asking
    assert loop.time() - began < 1
    assert caught.value.subsystem == holder
    return caught.value


@pytest.mark.parametrize("boxed", [False, True], ids=["", "boxed"])
@pytest.mark.parametrize("who", [Acts(forget), Plain(lambda ctx, message: None)], ids=["async", "sync"])
def test_a_handler_that_forgets_the_message_gives_no_reply(who: Any, boxed: bool) -> None:
    async def main() -> None:
        async with start(trio(who, boxed_messages=boxed)) as running:
            error = await gets_no_reply(running.ask(ToA, timeout=60), "dropped without an answer")
            assert error.message is None

    run(main())


def test_a_reply_in_a_circle_of_garbage_is_noticed_when_that_is_collected() -> None:
    def tangle(ctx: Any, message: Any) -> None:
        knot: list[Any] = [message]
        knot.append(knot)

    async def main() -> None:
        async with start(trio(Acts(ask_b), Plain(tangle))) as running:
            asking = asyncio.ensure_future(running.ask(ToB, timeout=60))
            await turns()
            gc.collect()
            await gets_no_reply(asking, "dropped without an answer", holder="b")

    run(main())


@pytest.mark.parametrize("keeps", [False, True], ids=["", "kept"])
@pytest.mark.parametrize("kind", ["async", "sync", "run"])
def test_a_receiver_that_fails_on_the_message_gives_no_reply(kind: str, keeps: bool) -> None:
    kept: list[Any] = []

    def fail(ctx: Any, message: Any) -> None:
        if keeps:
            kept.append(message)
        raise LookupError("broken")

    async def fail_later(ctx: Any, message: Any) -> None:
        await asyncio.sleep(0)
        fail(ctx, message)

    async def live(ctx: Any) -> None:
        fail(ctx, await ctx.recv())

    who = {"async": Acts(fail_later), "sync": Plain(fail), "run": Lives(live)}[kind]

    async def main() -> None:
        with pytest.raises(OrchestraError, match="broken"):
            async with start(trio(who), dead_letters=silent) as running:
                error = await gets_no_reply(
                    running.ask(ToA, timeout=60), "its handler raised LookupError: broken"
                )
                assert isinstance(error.message, ToA)
                assert isinstance(error.__cause__, LookupError)

    run(main())


def test_what_waits_behind_a_failure_gets_no_reply() -> None:
    async def fail(ctx: Any, message: Any) -> None:
        await asyncio.sleep(0.1)
        raise LookupError("broken")

    async def main() -> None:
        with pytest.raises(OrchestraError, match="broken"):
            async with start(trio(Acts(fail)), dead_letters=silent) as running:
                asked = [asyncio.ensure_future(running.ask(ToA, timeout=60)) for _ in range(2)]
                await asyncio.wait(asked)
                await gets_no_reply(asked[0], "its handler raised")
                await gets_no_reply(asked[1], "stopped before it was handled")

    run(main())


def test_a_message_that_is_dead_lettered_at_the_stop_gets_no_reply() -> None:
    async def sleep(ctx: Any, message: Any) -> None:
        await asyncio.sleep(60)

    letters: list[Any] = []

    async def main() -> None:
        async with start(trio(Acts(sleep)), dead_letters=letters.append) as running:
            asked = [asyncio.ensure_future(running.ask(ToA)) for _ in range(2)]
            await turns()
            stopping = asyncio.ensure_future(running.stop(0.2))
            error = await gets_no_reply(asked[1], "stopped before it was handled")
            assert error.message is letters[0].message
            error = await gets_no_reply(asked[0], "its handler was cancelled")
            assert error.message is letters[1].message
            await stopping

    run(main())


def test_the_hook_of_dead_letters_may_still_answer() -> None:
    async def sleep(ctx: Any, message: Any) -> None:
        await asyncio.sleep(0.1)

    def hook(letter: Any) -> None:
        letter.message.reply.send("from the hook")

    async def main() -> None:
        async with start(trio(Acts(sleep)), dead_letters=hook) as running:
            asked = [asyncio.ensure_future(running.ask(ToA)) for _ in range(2)]
            await turns()
            await running.stop()
            assert await asked[1] == "from the hook"
            with pytest.raises(NoReply):
                await asked[0]

    run(main())


def test_a_receiver_that_has_ended_gives_no_reply() -> None:
    kept: list[Any] = []

    async def keep_three(ctx: Any) -> None:
        for _ in range(3):
            kept.append(await ctx.recv())
        await asyncio.sleep(0.1)

    async def main() -> None:
        async with start(trio(Lives(keep_three)), dead_letters=silent) as running:
            asked = [asyncio.ensure_future(running.ask(ToA, timeout=60)) for _ in range(4)]
            await asyncio.wait(asked)
            for asking in asked[:3]:
                await gets_no_reply(asking, "it has ended without an answer")
            await gets_no_reply(asked[3], "its receiver had finished")
            with pytest.raises(Closed):
                await running.ask(ToA)
            assert kept[0].reply.send(1) is False

    run(main())


def test_the_end_of_the_orchestra_ends_every_ask() -> None:
    kept: list[Any] = []

    class Reads(Actor):
        async def handle(self, ctx: Any, message: ToA) -> None:
            await ctx.send(ToB(message.reply))

    @orchestra(signal=Bell, event=Knock, outgoing=ToB)
    class App:
        reads: Reads = subsystem(consumes=ToA, sends=[ToB])

    async def main() -> None:
        async with start(App(reads=Reads())) as running:
            first = asyncio.ensure_future(running.ask(ToA))
            message = await running.outgoing.recv()
            message.reply.send("from outside")
            assert await first == "from outside"
            second = asyncio.ensure_future(running.ask(ToA))
            kept.append(await running.outgoing.recv())
            await running.stop()
            await gets_no_reply(second, "the orchestra has ended", holder="outgoing")

    run(main())


def make_ahead(kept: list[Any]) -> Callable[[Any], Any]:
    def make(reply: Any) -> ToA:
        kept.append(ToA(reply))
        return kept[-1]  # type: ignore[no-any-return]

    return make


def test_a_request_that_a_policy_drops_gets_no_reply() -> None:
    async def sleep(ctx: Any, message: Any) -> None:
        await asyncio.sleep(60)

    kept: list[Any] = []

    async def main() -> None:
        async with start(
            trio(Acts(sleep), message_capacity=1, overflow=Drop(0.1)), dead_letters=silent
        ) as running:
            running.try_send(ToA())
            await turns()
            running.try_send(ToA())
            error = await gets_no_reply(running.ask(make_ahead(kept)), "there was no room")
            assert error.message is kept[0]
            await running.stop(0)

    run(main())


def test_a_request_that_a_newer_message_throws_out_gets_no_reply() -> None:
    async def sleep(ctx: Any, message: Any) -> None:
        await asyncio.sleep(60)

    kept: list[Any] = []

    async def main() -> None:
        app = trio(Acts(sleep), message_capacity=1, overflow=DropOldest())
        async with start(app, dead_letters=silent) as running:
            running.try_send(ToA())
            await turns()
            asking = asyncio.ensure_future(running.ask(make_ahead(kept)))
            await turns()
            running.try_send(ToA())
            error = await gets_no_reply(asking, "a newer message took its place")
            assert error.message is kept[0]
            await running.stop(0)

    run(main())


def test_a_broadcast_that_throws_out_a_request_tells_it() -> None:
    class Other(msgspec.Struct):
        pass

    class Sleeps(Actor):
        async def handle(self, ctx: Any, message: Any) -> None:
            await asyncio.sleep(60)

    @orchestra(signal=Bell, event=Knock, message_capacity=1)
    class App:
        a: Sleeps = subsystem(consumes=ToA, subscribes=[Other], overflow=DropOldest())
        b: Sleeps = subsystem(subscribes=[Other], overflow=DropOldest())

    kept: list[Any] = []

    async def main() -> None:
        async with start(App(a=Sleeps(), b=Sleeps()), dead_letters=silent) as running:
            running.try_send(Other())
            await turns()
            asking = asyncio.ensure_future(running.ask(make_ahead(kept)))
            await turns()
            running.try_send(Other())
            await gets_no_reply(asking, "a newer message took its place")
            await running.stop(0)

    run(main())


def test_what_is_only_planned_gives_no_reply() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        later: Acts = subsystem(consumes=ToA, wip=True)
        b: Acts = subsystem(consumes=ToB)

    kept: list[Any] = []

    async def main() -> None:
        async with start(App(b=Acts())) as running:
            await gets_no_reply(running.ask(make_ahead(kept)), "dropped", holder="later")
            assert running.meters()["later"].dropped == 1

    run(main())


def test_a_request_that_the_outside_forgets_gets_no_reply() -> None:
    @orchestra(signal=Bell, event=Knock, outgoing=ToB)
    class App:
        a: Acts = subsystem(consumes=ToA, sends=[ToB])

    told: list[str] = []

    async def ask_outside(ctx: Any, message: Any) -> None:
        with pytest.raises(NoReply) as caught:
            await ctx.ask(ToB)
        told.append(str(caught.value))

    async def main() -> None:
        async with start(App(a=Acts(ask_outside))) as running:
            for count, take in enumerate((running.outgoing.recv, running.outgoing.__anext__)):
                await running.send(ToA())
                message = await take()
                await turns()
                assert len(told) == count
                del message
                await turns()
                assert len(told) == count + 1
            assert told[0] == "no reply to ToB from 'outgoing': the reply was dropped without an answer"

    run(main())


# a reply that is handed on


async def hand_to_b(ctx: Any, message: Any) -> None:
    await ctx.send(ToB(message.reply))


async def answer_late(ctx: Any, message: Any) -> None:
    await asyncio.sleep(0.1)
    message.reply.send("in the end")


async def hand_and_fail(ctx: Any, message: Any) -> None:
    await hand_to_b(ctx, message)
    raise LookupError("afterwards")


async def hand_and_finish(ctx: Any, message: Any) -> None:
    await hand_to_b(ctx, message)
    ctx.finish()


@pytest.mark.parametrize("do", [hand_to_b, hand_and_fail, hand_and_finish], ids=lambda do: do.__name__)
def test_who_has_handed_the_reply_on_may_end(do: Any) -> None:
    async def main() -> None:
        try:
            async with start(trio(Acts(do), Acts(answer_late)), dead_letters=silent) as running:
                assert await running.ask(ToA) == "in the end"
        except OrchestraError:
            assert do is hand_and_fail

    run(main())


@pytest.mark.parametrize("how", ["fails", "finishes"])
def test_the_end_of_who_has_it_now_gives_no_reply(how: str) -> None:
    kept: list[Any] = []

    async def keep(ctx: Any, message: Any) -> None:
        kept.append(message)
        await asyncio.sleep(0.1)
        if how == "fails":
            raise LookupError("broken")
        ctx.finish()

    async def main() -> None:
        try:
            async with start(trio(Acts(hand_to_b), Acts(keep)), dead_letters=silent) as running:
                await gets_no_reply(running.ask(ToA, timeout=60), "b", holder="b")
        except OrchestraError:
            assert how == "fails"

    run(main())


def test_who_could_not_hand_it_on_has_it_still() -> None:
    async def sleep(ctx: Any, message: Any) -> None:
        await asyncio.sleep(60)

    async def try_to_hand(ctx: Any, message: Any) -> None:
        with pytest.raises(Full):
            ctx.try_send(ToB(message.reply))
        message.reply.send("busy")

    async def fail_after(ctx: Any, message: Any) -> None:
        with pytest.raises(Full):
            ctx.try_send(ToB(message.reply))
        kept.append(message)
        raise LookupError("no use")

    kept: list[Any] = []

    async def main() -> None:
        for do in (try_to_hand, fail_after):
            try:
                app = trio(Acts(do), Acts(sleep), message_capacity=1)
                async with start(app, dead_letters=silent) as running:
                    running.try_send(ToB())
                    await turns()
                    running.try_send(ToB())
                    if do is try_to_hand:
                        assert await running.ask(ToA) == "busy"
                    else:
                        await gets_no_reply(running.ask(ToA), "no use")
                    await running.stop(0)
            except OrchestraError:
                assert do is fail_after

    run(main())


def test_a_broadcast_request_has_a_reply_while_one_receiver_is_left() -> None:
    kept: list[Any] = []

    async def finish(ctx: Any, message: Any) -> None:
        kept.append(message)
        ctx.finish()

    async def finish_later(ctx: Any, message: Any) -> None:
        kept.append(message)
        await asyncio.sleep(0.5)
        ctx.finish()

    async def main() -> None:
        async with start(trio(Acts(), Acts(finish), Acts(answer_late))) as running:
            assert await running.ask(ToAll) == "in the end"
        async with start(trio(Acts(), Acts(finish), Acts(finish_later))) as running:
            await gets_no_reply(running.ask(ToAll), "ended without an answer", holder="c")

    run(main())


def test_a_reply_may_be_given_to_another_orchestra() -> None:
    async def main() -> None:
        async with start(trio(Acts(), Acts(answer_late))) as other:

            async def lend(ctx: Any, message: Any) -> None:
                await other.send(ToB(message.reply))
                ctx.finish()

            async with start(trio(Acts(lend), Acts())) as running:
                assert await running.ask(ToA) == "in the end"

    run(main())


# the time limit


async def doze(ctx: Any, message: Any) -> None:
    await asyncio.sleep(1)
    message.reply.send("too late")


@pytest.mark.parametrize("timeout", [0.25, 0, -1])
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_the_time_limit_is_kept_and_says_who_was_asked(inside: bool, timeout: float) -> None:
    async def ask(ctx: Any, message: Any) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(TimeoutError, match=rf"'b' did not reply to ToB within {timeout:g} s"):
            await ctx.ask(ToB, timeout=timeout)
        assert loop.time() - began == pytest.approx(max(timeout, 0))
        if message is not None:
            message.reply.send(None)

    async def main() -> None:
        async with start(trio(Acts(ask), Acts(doze))) as running:
            await (running.ask(ToA) if inside else ask(running, None))
            await asyncio.sleep(2)
            assert running.meters()["b"].late_replies == 1

    run(main())


@pytest.mark.parametrize(
    ("timeout", "kind"),
    [("1", TypeError), (True, TypeError), (float("nan"), ValueError), (-float("inf"), ValueError)],
)
def test_what_is_no_time_limit_is_refused(timeout: Any, kind: type[Exception]) -> None:
    async def main() -> None:
        async with start(trio()) as running:
            with pytest.raises(kind, match="the time limit of an ask is"):
                await running.ask(ToA, timeout=timeout)
            assert running.meters()["a"].sent == 0

    run(main())


@pytest.mark.parametrize("timeout", [float("inf"), 1e300])
def test_a_time_limit_may_be_as_long_as_one_likes(timeout: float) -> None:
    async def slow(ctx: Any, message: Any) -> None:
        await asyncio.sleep(0.01)
        message.reply.send("late")

    async def main() -> None:
        async with start(trio(Acts(slow))) as running:
            assert await running.ask(ToA, timeout=timeout) == "late"

    within(10, main())


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_the_time_limit_counts_the_wait_for_room(inside: bool) -> None:
    async def ask(ctx: Any, message: Any) -> None:
        with pytest.raises(TimeoutError, match=r"'b' had no room for ToB within 0\.25 s"):
            await ctx.ask(ToB, timeout=0.25)
        with pytest.raises(TimeoutError, match=r"'b' did not reply to ToB within 1\.5 s"):
            await ctx.ask(ToB, timeout=1.5)
        if message is not None:
            message.reply.send(None)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with start(trio(Acts(ask), Acts(doze), message_capacity=1), dead_letters=silent) as running:
            for _ in range(2):
                task = asyncio.ensure_future(running.ask(ToB))
                await turns()
                task.cancel()
            began = loop.time()
            await (running.ask(ToA) if inside else ask(running, None))
            assert loop.time() - began == pytest.approx(1.75)
            await running.stop(0)

    run(main())


def test_a_hung_receiver_does_not_delay_the_time_limit() -> None:
    async def hang(ctx: Any, message: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(100)

    async def main() -> None:
        async with start(trio(Acts(hang)), dead_letters=silent) as running:
            with pytest.raises(TimeoutError):
                await running.ask(ToA, timeout=0.5)
            with pytest.raises(StopTimeout):
                await running.stop(0)

    run(main())


# what is left behind


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_nothing_of_an_ask_is_kept(inside: bool) -> None:
    class Thing:
        pass

    seen: list[Any] = []

    class Request(msgspec.Struct, weakref=True):
        thing: Any
        reply: Reply[Any]

    class Answers(Actor):
        async def handle(self, ctx: Any, message: Any) -> None:
            seen.append(weakref.ref(message))
            message.reply.send(message.thing)

    class Asks(Actor):
        async def handle(self, ctx: Any, message: ToA) -> None:
            assert message.reply is not None
            message.reply.send(await ctx.ask(lambda reply: Request(Thing(), reply)))

    @orchestra(signal=Bell, event=Knock)
    class App:
        answers: Answers = subsystem(consumes=Request)
        asks: Asks = subsystem(consumes=ToA, sends=[Request])

    async def main() -> None:
        async with start(App(answers=Answers(), asks=Asks())) as running:
            gc.collect()
            gc.disable()
            try:
                asking = running.ask(ToA) if inside else running.ask(lambda reply: Request(Thing(), reply))
                answered = weakref.ref(await asking)
                await turns()
                assert answered() is None
                assert [each() for each in seen] == [None]
                assert not running._ensemble.asks._open
            finally:
                gc.enable()

    run(main())


def test_a_batch_of_asks_larger_than_the_lanes_completes() -> None:
    async def ask_many(ctx: Any, message: Any) -> None:
        message.reply.send(await asyncio.gather(*(ctx.ask(ToB) for _ in range(100))))

    async def main() -> None:
        async with start(trio(Acts(ask_many), message_capacity=2)) as running:
            assert await running.ask(ToA) == ["b"] * 100

    run(main())


# the end of the orchestra, and idleness


def test_an_ask_is_no_rest_in_a_drain() -> None:
    """`a` and `b` may send to each other, so they end together, when both rest; who asks does not."""
    done: list[Any] = []

    async def ask(ctx: Any, message: Any) -> None:
        done.append(await ctx.ask(ToB))

    async def answer_later(ctx: Any, message: Any) -> None:
        asyncio.get_running_loop().call_later(1, message.reply.send, "late")

    async def main() -> None:
        async with start(trio(Acts(ask), Acts(answer_later))) as running:
            await running.send(ToA())
            await running.drain()
            assert done == ["late"]

    run(main())


def test_an_ask_of_another_task_is_no_rest_either() -> None:
    done: list[Any] = []

    async def live(ctx: Any) -> None:
        async def ask() -> None:
            done.append(await ctx.ask(ToB))

        task = asyncio.ensure_future(ask())
        async for _ in ctx:
            pass
        await task

    async def answer_later(ctx: Any, message: Any) -> None:
        asyncio.get_running_loop().call_later(1, message.reply.send, "late")

    async def main() -> None:
        async with start(trio(Lives(live), Acts(answer_later))) as running:
            await turns()
            await running.drain()
            assert done == ["late"]

    run(main())


def test_messages_and_signals_that_come_meanwhile_do_not_disturb_an_ask() -> None:
    order: list[Any] = []

    class Asks(Acts):
        async def on_signal(self, ctx: Any, signal: Any) -> None:
            order.append(signal)

    async def ask(ctx: Any, message: Any) -> None:
        if message.reply is None:
            order.append("message")
            return
        order.append(await ctx.ask(ToB))
        message.reply.send(None)

    async def main() -> None:
        async with start(trio(Asks(ask), Acts(doze))) as running:
            asking = asyncio.ensure_future(running.ask(ToA))
            await turns()
            for n in range(3):
                await running.send(ToA())
                await running.broadcast(Bell(n))
                await turns()
            assert order == []
            await asking
            await turns()
            assert order == ["too late", Bell(0), Bell(1), Bell(2), "message", "message", "message"]

    run(main())


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_a_stop_cancels_who_waits_for_a_reply_beyond_the_limit(inside: bool) -> None:
    ended: list[str] = []

    async def ask(ctx: Any, message: Any) -> None:
        try:
            await ctx.ask(ToB)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        except NoReply:
            ended.append("no reply")

    async def hold(ctx: Any, message: Any) -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        async with start(trio(Acts(ask), Acts(hold)), dead_letters=silent) as running:
            if inside:
                await running.send(ToA())
            else:
                asking = asyncio.ensure_future(running.ask(ToB))
            await turns()
            await running.stop(0.5)
            if inside:
                assert ended == ["cancelled"]
            else:
                await gets_no_reply(asking, "its handler was cancelled", holder="b")

    run(main())


def test_no_reply_in_a_stop_is_no_failure() -> None:
    async def ask(ctx: Any, message: Any) -> None:
        await ctx.ask(ToB)

    async def hold(ctx: Any, message: Any) -> None:
        await asyncio.sleep(1)

    letters: list[Any] = []

    async def main() -> None:
        async with start(trio(Acts(ask), Acts(hold)), dead_letters=letters.append) as running:
            await running.send(ToB())
            await running.send(ToA())
            await turns()
            await running.stop()
        assert sorted(type(letter.message).__name__ for letter in letters) == ["ToA", "ToB"]

    run(main())


@pytest.mark.parametrize("given", [(), (5,)])
def test_a_reply_made_by_hand_is_refused_and_says_nothing_when_it_goes(given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError) as caught:
        Reply(*given)
    assert str(caught.value) == "a Reply is made by an ask: await ctx.ask(lambda reply: Request(..., reply))"
    del caught
    gc.collect()  # an error in __del__ would fail the test
