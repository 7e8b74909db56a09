"""Recipients: handles that travel, outlive who gave them, and keep nothing open."""

import asyncio
import copy
import pickle
from typing import Any

import msgspec
import pytest

from orchestra import (
    Actor,
    Box,
    Closed,
    Full,
    Live,
    NoReply,
    Priority,
    Recipient,
    UndeclaredMessage,
    UndeclaredPriority,
    orchestra,
    start,
    subsystem,
)
from tests.runtime.asking import Acts, Lives, Plain, ToA, ToAll, ToB, ToC, trio
from tests.runtime.clockwork import run
from tests.runtime.players import Bell, Collects, Job, Knock, Note, Runs, pair, turns


class Keeps(Acts):
    """Hands its context to the test."""

    ctx: Any = None

    async def started(self, ctx: Any) -> None:
        self.ctx = ctx


@pytest.mark.parametrize("boxed", [False, True], ids=["", "boxed"])
def test_it_sends_tries_and_asks(boxed: bool) -> None:
    got: list[Any] = []

    async def note(ctx: Any, message: Any) -> None:
        got.append(message)
        if message.reply is not None:
            message.reply.send("asked")

    async def main() -> None:
        giver = Keeps()
        async with start(trio(giver, Acts(note), boxed_messages=boxed)):
            await turns()
            to_b = giver.ctx.recipient(ToB)
            assert (to_b.kind, repr(to_b)) == (ToB, "<recipient of ToB>")
            assert await to_b.send(ToB()) is True
            assert to_b.try_send(ToB(), priority=Priority.NORMAL) is True
            assert await to_b.send(Box.seal(ToB())) is True
            assert await to_b.ask(ToB, timeout=5) == "asked"
            assert len(got) == 4

    run(main())


def test_it_travels_in_messages() -> None:
    class Subscribe(msgspec.Struct):
        answer_to: Live[Recipient["Note"]]
        other: Recipient[Note]

    class Giver(Actor):
        def __init__(self) -> None:
            self.got: list[Note] = []

        async def started(self, ctx: Any) -> None:
            to_me = ctx.recipient(Note)
            await ctx.send(Subscribe(to_me, to_me))

        async def handle(self, ctx: Any, message: Note) -> None:
            self.got.append(message)

    class Answers(Actor):
        async def handle(self, ctx: Any, message: Subscribe) -> None:
            await message.answer_to.send(Note(1))
            message.other.try_send(Note(2))

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        giver: Giver = subsystem(consumes=Note, sends=[Subscribe])
        answers: Answers = subsystem(consumes=Subscribe)

    async def main() -> None:
        giver = Giver()
        async with start(App(giver=giver, answers=Answers())):
            await turns()
            assert giver.got == [Note(1), Note(2)]

    run(main())


def test_it_is_of_what_the_subsystem_consumes_subscribes_to_or_sends() -> None:
    class OneOfA(ToA):
        pass

    async def main() -> None:
        giver = Keeps()
        async with start(trio(Acts(), giver)):
            await turns()
            for kind in (ToA, ToB, ToC, ToAll, OneOfA):
                assert giver.ctx.recipient(kind).kind is kind
            for wrong in (Job, Bell, Knock, int, "ToA", ToA(), None):
                with pytest.raises(UndeclaredMessage, match="ToA, ToB, ToC"):
                    giver.ctx.recipient(wrong)

    run(main())


def test_it_names_what_may_be_used() -> None:
    async def main() -> None:
        giver = Runs(lambda ctx: check(ctx))
        app = pair(giver, Collects())
        async with start(app):
            await turns()
        assert done

    done: list[Any] = []

    async def check(ctx: Any) -> None:
        with pytest.raises(UndeclaredMessage) as caught:
            ctx.recipient(Bell)
        assert str(caught.value) == (
            "'first' cannot have a recipient of Bell: it may use what it declares, Note and Job"
        )
        assert (caught.value.message, caught.value.subsystem) == (None, "first")
        done.append(True)

    run(main())


def test_it_refuses_what_is_not_of_its_type() -> None:
    class OneOfB(ToB):
        pass

    got: list[Any] = []

    async def main() -> None:
        giver = Keeps()
        async with start(trio(giver, Plain(lambda ctx, message: got.append(message)))):
            await turns()
            to_b, to_one = giver.ctx.recipient(ToB), giver.ctx.recipient(OneOfB)
            await to_b.send(OneOfB())
            await to_one.send(OneOfB())
            for recipient, wrong in ((to_b, ToA()), (to_one, ToB()), (to_b, 5), (to_b, Box.seal(ToA()))):
                with pytest.raises(UndeclaredMessage, match="this is <recipient of ") as caught:
                    await recipient.send(wrong)
                assert caught.value.message is wrong
                with pytest.raises(UndeclaredMessage):
                    recipient.try_send(wrong)
                with pytest.raises(UndeclaredMessage):
                    await recipient.ask(lambda reply, wrong=wrong: wrong)
            with pytest.raises(UndeclaredPriority):
                to_b.try_send(ToB(), priority=Priority.HIGH)
            await turns()
            assert [type(each) for each in got] == [OneOfB, OneOfB]

    run(main())


def test_two_are_equal_when_they_lead_to_the_same() -> None:
    async def main() -> None:
        first, second, elsewhere = Keeps(), Keeps(), Keeps()
        async with start(trio(first, second)), start(trio(elsewhere)):
            await turns()
            to_c = first.ctx.recipient(ToC)
            assert to_c == second.ctx.recipient(ToC)
            assert hash(to_c) == hash(second.ctx.recipient(ToC))
            assert to_c != first.ctx.recipient(ToB)
            assert to_c != elsewhere.ctx.recipient(ToC)
            assert to_c != "to_c"

    run(main())


def test_it_is_neither_pickled_nor_copied() -> None:
    async def main() -> None:
        giver = Keeps()
        async with start(trio(giver)):
            await turns()
            for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match="a Recipient cannot be pickled or copied"):
                    attempt(giver.ctx.recipient(ToB))

    run(main())


def test_it_outlives_its_giver_and_is_closed_when_the_receiver_has_ended() -> None:
    got: list[Any] = []

    async def finish(ctx: Any, message: Any) -> None:
        ctx.finish()

    async def finish_at_the_second(ctx: Any, message: Any) -> None:
        got.append(message)
        if len(got) == 2:
            ctx.finish()

    async def main() -> None:
        giver = Keeps(finish)
        async with start(trio(giver, Acts(finish_at_the_second))) as running:
            await turns()
            to_b = giver.ctx.recipient(ToB)
            await running.send(ToA())
            await turns()
            assert await to_b.send(ToB()) is True
            await to_b.send(ToB())
            await turns()
            message = ToB()
            with pytest.raises(Closed) as caught:
                await to_b.send(message)
            assert caught.value.message is message
            with pytest.raises(Closed):
                to_b.try_send(ToB())
            with pytest.raises(Closed):
                await to_b.ask(ToB)
            to_c = giver.ctx.recipient(ToC)
        with pytest.raises(Closed):
            await to_c.send(ToC())
        with pytest.raises(Closed):
            await to_c.ask(ToC)

    run(main())


def test_it_keeps_no_inbox_open_and_a_drain_lets_it_send() -> None:
    """`first` may send to `second` by declaration; a recipient of `Note` in anybody's hand is no sender."""
    told: list[Any] = []

    async def give(ctx: Any) -> None:
        told.append(ctx.recipient(Note))
        await asyncio.sleep(1)

    async def main() -> None:
        second = Collects()
        async with start(pair(Runs(give), second)) as running:
            await turns()
            draining = asyncio.ensure_future(running.drain())
            await turns()
            assert await told[0].send(Note(7)) is True
            with pytest.raises(Closed):
                await running.send(Note(8))
            await draining
        assert second.got == [Note(7)]
        assert second.ended
        with pytest.raises(Closed):
            told[0].try_send(Note(9))

    run(main())


def test_a_full_lane_is_full_for_it_too() -> None:
    async def hold(ctx: Any, message: Any) -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        giver = Keeps()
        app = trio(giver, Acts(hold), message_capacity=1)
        async with start(app, dead_letters=lambda letter: None) as running:
            await turns()
            to_b = giver.ctx.recipient(ToB)
            to_b.try_send(ToB())
            await turns()
            to_b.try_send(ToB())
            with pytest.raises(Full):
                to_b.try_send(ToB())
            with pytest.raises(TimeoutError):
                await to_b.ask(ToB, timeout=0.1)
            asking = asyncio.ensure_future(to_b.ask(ToB))
            await turns()
            await running.stop(0)
            with pytest.raises((Closed, NoReply)):
                await asking

    run(main())


def test_a_reply_is_handed_on_by_it_as_by_any_send() -> None:
    async def hand_on(ctx: Any, message: Any) -> None:
        await ctx.recipient(ToB).send(ToB(message.reply))
        ctx.finish()

    async def later(ctx: Any, message: Any) -> None:
        await asyncio.sleep(0.1)
        message.reply.send("later")

    async def main() -> None:
        async with start(trio(Acts(hand_on), Acts(later))) as running:
            assert await running.ask(ToA) == "later"

    run(main())


def test_a_run_has_recipients_too() -> None:
    async def live(ctx: Any) -> None:
        got.append(await ctx.recipient(ToB).ask(ToB))

    got: list[Any] = []

    async def main() -> None:
        async with start(trio(Lives(live))):
            await turns()
        assert got == ["b"]

    run(main())
