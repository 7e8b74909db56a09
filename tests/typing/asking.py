"""Each line marked `# wrong` must be an error for mypy --strict and for basedpyright, no other may."""

from functools import partial
from typing import Any, assert_type

import msgspec

from orchestra import (
    Actor,
    Context,
    Deadlock,
    Gridlock,
    Live,
    NoReply,
    Priority,
    Recipient,
    Reply,
    Running,
    orchestra,
    run,
    start,
    subsystem,
)


class Balance(msgspec.Struct):
    account: str
    reply: Reply[int]


class Check(msgspec.Struct):
    reply: Reply[bool]


class News(msgspec.Struct):
    text: str


class BadNews(News): ...


class Subscribe(msgspec.Struct):
    answer_to: Live[Recipient["News"]]
    other: Recipient[News]


class Sig(msgspec.Struct): ...


class Store(Actor[Balance | Check | Subscribe, News]):
    async def handle(
        self, ctx: Context[Balance | Check | Subscribe, News, Sig], message: Balance | Check | Subscribe
    ) -> None:
        match message:
            case Balance():
                assert_type(message.reply.send(7), bool)
                assert_type(message.reply.fail(KeyError("no")), bool)
                message.reply.fail(KeyError)
                assert_type(message.reply.done, bool)
                message.reply.send("7")  # wrong
                message.reply.fail("no")  # wrong
                message.reply.fail(KeyboardInterrupt())  # wrong
                message.reply.done = True  # wrong
            case Check():
                message.reply.send(True)
                message.reply.send(None)  # wrong
            case Subscribe():
                assert_type(await message.answer_to.send(News("x")), bool)
                assert_type(message.other.try_send(BadNews("y"), priority=Priority.HIGH), bool)
                await message.other.send(Sig())  # wrong
                message.answer_to.try_send("news")  # wrong


def narrowed(narrow: Recipient[BadNews]) -> None:
    wide: Recipient[News] = narrow  # wrong
    print(wide, narrow.kind)


class Guard(Actor[News, Balance | Check | Subscribe]):
    async def handle(self, ctx: Context[News, Balance | Check | Subscribe, Sig], message: News) -> None:
        assert_type(await ctx.ask(Check), bool)
        assert_type(await ctx.ask(Check, timeout=1, priority=Priority.HIGH), bool)
        assert_type(await ctx.ask(Check, timeout=None), bool)
        await ctx.ask(lambda reply: Balance("a", reply), timeout=0.5)

        def balance(reply: Reply[int]) -> Balance:
            return Balance("a", reply)

        assert_type(await ctx.ask(balance), int)
        await ctx.ask(partial(Balance, "a"))
        await ctx.ask(News)  # wrong
        await ctx.ask(lambda reply: News("x"))  # wrong
        await ctx.ask(Check, timeout="1")  # wrong
        await ctx.ask(Check, 1.0)  # wrong
        await ctx.ask(Check, overflow=None)  # wrong

        to_me = ctx.recipient(News)
        assert_type(to_me, Recipient[News])
        await ctx.send(Subscribe(to_me, to_me))
        narrowed(to_me)
        to_store = ctx.recipient(Check)
        narrowed(to_store)  # wrong
        await ctx.send(Subscribe(to_store, to_me))  # wrong
        assert_type(await to_store.ask(Check), bool)
        await to_store.ask(balance)  # wrong
        Reply[int](None)  # wrong


@orchestra(signal=Sig, event=Sig)
class App:
    store: Store = subsystem()
    guard: Guard = subsystem()


def hook(gridlock: Gridlock) -> None:
    assert_type(gridlock.subsystems, tuple[str, ...])
    assert_type(gridlock.lanes, tuple[tuple[str, Priority], ...])
    gridlock.subsystems = ()  # wrong


async def main(running: Running) -> None:
    assert_type(await running.ask(Check), bool)
    assert_type(await running.ask(Check, timeout=2), bool)
    await running.ask(lambda reply: Balance("a", reply))
    await running.ask("Check")  # wrong
    assert_type(running.meters()["store"].late_replies, int)
    try:
        await running.ask(Check)
    except NoReply as error:
        assert_type(error.subsystem, str | None)
        assert_type(error.message, Any)
    except Deadlock as error:
        assert_type(error.chain, tuple[str, ...])


app = App(store=Store(), guard=Guard())
start(app, on_gridlock=hook)
start(app, on_gridlock=print)
start(app, on_gridlock=5)  # wrong
run(app, main, on_gridlock=hook)
