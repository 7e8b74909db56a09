"""Circles of subsystems that wait for each other: refused when asking, reported when sending."""

import asyncio
import logging
import pickle
from typing import Any

import pytest

from orchestra import (
    Block,
    BlockFirst,
    Deadlock,
    Drop,
    Gridlock,
    Priority,
    start,
)
from orchestra import run as run_program
from tests.runtime.asking import Acts, Lives, ToA, ToAll, ToB, ToC, trio
from tests.runtime.clockwork import run
from tests.runtime.players import turns


async def when(condition: Any) -> None:
    """Wait, letting time pass."""
    while not condition():
        await asyncio.sleep(0.001)


# asks


def asks(kind: type, seen: list[Any] | None = None) -> Any:
    """A handler that asks for the answer of another one; a circle is its answer."""

    async def do(ctx: Any, message: Any) -> None:
        try:
            message.reply.send(await ctx.ask(kind))
        except Deadlock as error:
            if seen is not None:
                seen.append(error)
            message.reply.send(error)

    return do


def test_an_ask_to_oneself_is_a_deadlock() -> None:
    async def main() -> None:
        async with start(trio(Acts(asks(ToA)))) as running:
            error = await running.ask(ToA)
            assert error.chain == ("a", "a")
            assert str(error) == "a -> a: 'a' waits for the reply of 'a' to ToA"
            assert running.meters()["a"].sent == 1

    run(main())


@pytest.mark.parametrize("boxed", [False, True], ids=["", "boxed"])
def test_two_that_ask_each_other(boxed: bool) -> None:
    async def main() -> None:
        app = trio(Acts(asks(ToB)), Acts(asks(ToA)), boxed_messages=boxed)
        async with start(app) as running:
            error = await running.ask(ToA)
            assert error.chain == ("b", "a", "b")
            assert str(error) == (
                "b -> a -> b: 'b' waits for the reply of 'a' to ToA; 'a' waits for the reply of 'b' to ToB"
            )
            assert running.meters()["a"].sent == 1, "nothing was sent"
            assert (await running.ask(ToB)).chain == ("a", "b", "a"), "and it goes on"

    run(main())


def test_three_that_ask_each_other() -> None:
    async def main() -> None:
        async with start(trio(Acts(asks(ToB)), Acts(asks(ToC)), Acts(asks(ToA)))) as running:
            assert (await running.ask(ToA)).chain == ("c", "a", "b", "c")

    run(main())


def test_who_started_may_be_asked_again_afterwards() -> None:
    async def first(ctx: Any, message: Any) -> None:
        if message.reply is not None:
            message.reply.send([await ctx.ask(ToB), await ctx.ask(ToC)])

    async def main() -> None:
        async with start(trio(Acts(first))) as running:
            for _ in range(3):
                assert await running.ask(ToA) == ["b", "c"]
            assert running._ensemble.asks.waits.asking == {}

    run(main())


def test_hooks_that_ask_each_other_are_found_too() -> None:
    errors: list[Any] = []

    def hook(kind: type) -> Any:
        async def ask(ctx: Any) -> None:
            try:
                await ctx.ask(kind)
            except Deadlock as error:
                errors.append(error.chain)

        return ask

    async def main() -> None:
        async with start(trio(Acts(started=hook(ToB)), Acts(started=hook(ToA)))):
            await when(lambda: errors)
        assert errors == [("b", "a", "b")]

    run(main())


@pytest.mark.parametrize("how", ["recipient", "running"])
def test_whichever_verb_a_strand_asks_with(how: str) -> None:
    async def main() -> None:
        running: Any

        async def ask(ctx: Any, message: Any) -> None:
            asking = ctx.recipient(ToA).ask if how == "recipient" else running.ask
            with pytest.raises(Deadlock, match="a -> a"):
                await asking(ToA)
            message.reply.send("found")

        async with start(trio(Acts(ask))) as started:
            running = started
            assert await running.ask(ToA) == "found"

    run(main())


def test_an_ask_of_a_task_beside_the_handler_is_no_edge() -> None:
    tasks: list[Any] = []

    async def beside(ctx: Any, message: Any) -> None:
        if message.reply is None:
            return
        reply = message.reply

        async def ask() -> None:
            reply.send(await ctx.ask(ToB))

        tasks.append(asyncio.ensure_future(ask()))

    async def ask_back(ctx: Any, message: Any) -> None:
        await ctx.send(ToA())
        message.reply.send(await ctx.ask(ToC))

    async def main() -> None:
        async with start(trio(Acts(beside), Acts(ask_back))) as running:
            assert await running.ask(ToA) == "c"

    run(main())


def test_a_run_that_receives_in_another_task_holds_up_nobody() -> None:
    async def live(ctx: Any) -> None:
        async def serve() -> None:
            async for message in ctx:
                message.reply.send("served")

        serving = asyncio.ensure_future(serve())
        await asyncio.sleep(0.1)
        got.append(await ctx.ask(ToB))
        got.append(await ctx.ask(ToA))
        await serving

    got: list[Any] = []

    async def main() -> None:
        async with start(trio(Lives(live), Acts(asks(ToA)))):
            await when(lambda: len(got) == 2)
        assert got == ["served", "served"]

    run(main())


def test_a_question_to_several_is_no_edge() -> None:
    async def first(ctx: Any, message: Any) -> None:
        if message.__class__ is ToAll:
            message.reply.send("b")
        else:
            message.reply.send(await ctx.ask(ToAll))

    async def main() -> None:
        async with start(trio(Acts(), Acts(first))) as running:
            assert await running.ask(ToB, timeout=5) == "c"

    run(main())


def test_a_circle_that_is_closed_by_handing_a_reply_on_ends_the_ask() -> None:
    kept: list[Any] = []

    async def hand_back(ctx: Any, message: Any) -> None:
        assert await ctx.send(ToA(message.reply))
        kept.append("went on")

    async def ask(ctx: Any, message: Any) -> None:
        if message.reply is None or kept:
            kept.append(message.reply.send("late"))
            return
        await asks(ToB)(ctx, message)

    async def main() -> None:
        async with start(trio(Acts(ask), Acts(hand_back))) as running:
            error = await running.ask(ToA)
            assert error.chain == ("a", "a")
            await turns()
            assert kept == ["went on", False]
            assert running.meters()["a"].late_replies == 1

    run(main())


def test_a_reply_that_is_handed_on_is_waited_for_where_it_is() -> None:
    """`a` asks `b`, which hands on to `c`; then `b` may ask, and `c` may not ask `a`."""
    seen: list[Any] = []

    async def hand_on_and_ask(ctx: Any, message: Any) -> None:
        await ctx.send(ToC(message.reply))

    async def ask_back(ctx: Any, message: Any) -> None:
        await asks(ToA, seen)(ctx, message)

    async def main() -> None:
        async with start(trio(Acts(asks(ToB)), Acts(hand_on_and_ask), Acts(ask_back))) as running:
            assert isinstance(await running.ask(ToA), Deadlock)
        assert seen[0].chain == ("c", "a", "c")

    run(main())


def test_a_reply_handed_on_frees_who_had_it() -> None:
    async def hand_on_and_ask(ctx: Any, message: Any) -> None:
        await ctx.send(ToC(message.reply))

    async def keep(ctx: Any, message: Any) -> None:
        kept.append(message)
        if len(kept) == 1:
            assert await ctx.ask(ToB) == "free"
            kept[0].reply.send("done")

    async def either(ctx: Any, message: Any) -> None:
        if not kept:
            await hand_on_and_ask(ctx, message)
        else:
            message.reply.send("free")

    kept: list[Any] = []

    async def main() -> None:
        async with start(trio(Acts(asks(ToB)), Acts(either), Acts(keep))) as running:
            assert await running.ask(ToA, timeout=5) == "done"

    run(main())


def test_a_deadlock_that_nobody_expects_is_a_failure_with_the_chain() -> None:
    async def ask(ctx: Any, message: Any) -> None:
        await ctx.ask(ToA)

    async def main() -> None:
        with pytest.raises(Deadlock) as caught:
            async with start(trio(Acts(ask)), dead_letters=lambda letter: None) as running:
                await running.send(ToA())
                await running.wait()
        again = pickle.loads(pickle.dumps(caught.value))
        assert (again.chain, str(again)) == (("a", "a"), str(caught.value))

    run(main())


# asks and sends


def test_an_ask_to_one_that_waits_for_my_room_is_a_deadlock() -> None:
    errors: list[Any] = []

    async def ask_then_answer(ctx: Any, message: Any) -> None:
        if message.reply is None:
            return
        await when(lambda: running.meters()["a"].waiting == 1)
        with pytest.raises(Deadlock) as caught:
            await ctx.ask(ToB)
        errors.append(caught.value)
        message.reply.send(None)

    async def flood(ctx: Any, message: Any) -> None:
        for _ in range(2):
            await ctx.send(ToA())

    running: Any = None

    async def main() -> None:
        nonlocal running
        async with start(trio(Acts(ask_then_answer), Acts(flood), message_capacity=1)) as running:
            asking = asyncio.ensure_future(running.ask(ToA))
            await turns()
            await running.send(ToB())
            await asking
            assert str(errors[0]) == (
                "a -> b -> a: 'a' waits for the reply of 'b' to ToB; "
                "'b' waits for room in the DATA lane of 'a'"
            )
            await turns()
            assert running.meters()["a"].waiting == 0

    run(main())


def test_a_sender_that_was_granted_its_place_waits_no_more() -> None:
    """In the very turn in which the place is granted, before the sender has run."""
    outcomes: list[Any] = []

    async def take_then_ask(ctx: Any) -> None:
        await when(lambda: running.meters()["a"].waiting == 1)
        assert "b" in running._ensemble.asks.waits.sending
        await ctx.recv()
        lane = running._ensemble.inboxes["a"].lanes[0]
        assert lane._granted
        outcomes.append(await ctx.ask(ToB, timeout=5))

    async def flood(ctx: Any, message: Any) -> None:
        if message.reply is not None:
            message.reply.send("fine")
            return
        for _ in range(2):
            await ctx.send(ToA())

    running: Any = None

    async def main() -> None:
        nonlocal running
        app = trio(Lives(take_then_ask), Acts(flood), message_capacity=1)
        async with start(app, dead_letters=lambda letter: None) as running:
            await running.send(ToB())
            await when(lambda: outcomes or "open" not in repr(running))
        assert outcomes == ["fine"]

    run(main())


class Gridlocked:
    """Runs an orchestra in which `a` and `b`, or all three, fill each other's lanes; gives what was told."""

    def __init__(self, *, three: bool = False, **options: Any) -> None:
        self.told: list[Gridlock] = []
        self.three = three
        self.options = {"message_capacity": 1, **options}

    def flood(self, kind: type, **how: Any) -> Any:
        async def do(ctx: Any, message: Any) -> None:
            for _ in range(3):
                await ctx.send(kind(), **how)

        return do

    async def play(self, a: Any = None, b: Any = None, **how: Any) -> None:
        kinds = (ToB, ToC, ToA) if self.three else (ToB, ToA, ToA)
        players = [Acts(self.flood(kind, **how)) for kind in kinds]
        players[:2] = [a or players[0], b or players[1]]
        app = trio(*players, **self.options)
        async with start(app, on_gridlock=self.told.append, dead_letters=lambda letter: None) as running:
            for kind in (ToA, ToB, ToC)[: 2 + self.three]:
                running.try_send(kind())
            await asyncio.sleep(1)
            await running.stop(0)

    def run(self, *players: Any, **how: Any) -> list[Gridlock]:
        run(self.play(*players, **how))
        return self.told


def test_two_full_lanes_in_a_circle_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    (gridlock,) = Gridlocked().run()
    assert sorted(gridlock.subsystems) == ["a", "b"]
    assert sorted(gridlock.lanes) == [("a", Priority.NORMAL), ("b", Priority.NORMAL)]
    (record,) = [each for each in caplog.records if "nothing moves" in each.getMessage()]
    assert record.levelno == logging.WARNING
    first, second = gridlock.subsystems
    assert record.getMessage() == (
        f"nothing moves any more: {first} -> {second} -> {first}: "
        f"{first!r} waits for room in the DATA lane of {second!r}; "
        f"{second!r} waits for room in the DATA lane of {first!r}"
    )
    assert record.__dict__["subsystems"] == gridlock.subsystems


def test_three_full_lanes_in_a_circle_are_reported() -> None:
    (gridlock,) = Gridlocked(three=True).run()
    names = gridlock.subsystems * 2
    assert "a, b, c" in ", ".join(names)
    assert [receiver for receiver, _ in gridlock.lanes] == list(names[1:4])


def test_block_first_blocks_too() -> None:
    assert len(Gridlocked(overflow=BlockFirst()).run()) == 1
    assert len(Gridlocked(overflow=Drop(0.1)).run(overflow=Block())) == 1


def test_a_send_that_gives_up_is_no_gridlock() -> None:
    assert Gridlocked(overflow=Drop(0.2)).run() == []
    assert Gridlocked().run(overflow=Drop(0.2)) == []
    assert Gridlocked(evict_after=0.2).run() == []


def test_a_task_beside_the_handler_may_wait_without_harm() -> None:
    game = Gridlocked()

    async def beside(ctx: Any, message: Any) -> None:
        if tasks:
            return
        task = asyncio.ensure_future(game.flood(ToB)(ctx, message))
        tasks.append(task)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    tasks: list[Any] = []
    assert game.run(Acts(beside)) == []


def test_one_that_still_receives_is_not_stuck() -> None:
    game = Gridlocked()

    async def live(ctx: Any) -> None:
        async def take() -> None:
            async for _ in ctx:
                await asyncio.sleep(0.01)

        taking = asyncio.ensure_future(take())
        await asyncio.sleep(0.1)
        await game.flood(ToB)(ctx, None)
        await taking

    assert game.run(Lives(live)) == []


def test_a_circle_that_a_send_closes_with_an_ask_is_reported() -> None:
    """`a` waits in an ask for `b`, and `b`, before it answers, waits for room with `a`."""
    game = Gridlocked()

    async def ask(ctx: Any, message: Any) -> None:
        await ctx.ask(ToB)

    (gridlock,) = game.run(Acts(ask))
    assert sorted(gridlock.subsystems) == ["a", "b"]
    assert gridlock.lanes == (("a", Priority.NORMAL),)


@pytest.mark.parametrize("back", ["b", "c"])
def test_a_send_to_several_waits_for_each_of_them(back: str) -> None:
    """`a` fills the lanes of `b` and `c`; later one of them sends more to `a` than there is room for."""
    told: list[Gridlock] = []

    async def to_all(ctx: Any, message: Any) -> None:
        while True:
            await ctx.send(ToAll())

    async def send_back(ctx: Any, message: Any) -> None:
        await asyncio.sleep(1)
        while ctx.name == back:
            await ctx.send(ToA())
        await asyncio.sleep(1000)

    async def main() -> None:
        app = trio(Acts(to_all), Acts(send_back), Acts(send_back), message_capacity=1)
        async with start(app, on_gridlock=told.append, dead_letters=lambda letter: None) as running:
            await running.send(ToA())
            await asyncio.sleep(5)
            await running.stop(0)
        (gridlock,) = told
        assert gridlock.subsystems == (back, "a")

    run(main())


def test_a_hook_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(list[Any]):
        def append(self, item: Any) -> None:
            super().append(item)
            raise LookupError("the hook")

    game = Gridlocked()
    game.told = Broken()
    assert len(game.run()) == 1
    assert "on_gridlock hook failed on" in caplog.text


def test_the_hook_is_a_plain_function() -> None:
    async def hook(gridlock: Gridlock) -> None: ...

    with pytest.raises(TypeError, match="on_gridlock takes a plain function"):
        start(trio(), on_gridlock=hook)
    with pytest.raises(TypeError, match="on_gridlock takes a plain function"):
        run_program(trio(), on_gridlock=hook)


def test_run_takes_the_hook_too() -> None:
    game = Gridlocked()

    async def main(running: Any) -> None:
        running.try_send(ToA())
        running.try_send(ToB())
        await when(lambda: game.told)
        await running.stop(0)

    app = trio(Acts(game.flood(ToB)), Acts(game.flood(ToA)), message_capacity=1)
    run_program(app, main, on_gridlock=game.told.append, dead_letters=lambda letter: None)
    assert len(game.told) == 1
