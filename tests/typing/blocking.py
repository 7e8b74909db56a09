"""Each line marked `# wrong` must be an error for mypy --strict and for basedpyright, no other may."""

from collections.abc import Coroutine
from typing import Any, Never, assert_type

import msgspec

from orchestra import (
    Actor,
    BlockingContext,
    BlockingRecipient,
    Box,
    Context,
    Missed,
    Priority,
    Recipient,
    Reply,
    Running,
    Subsystem,
    Threadsafe,
    Timer,
    orchestra,
    subsystem,
)


class Load(msgspec.Struct):
    path: str
    reply: Reply[int]


class Loaded(msgspec.Struct):
    size: int
    to: Recipient["Load"]


class Sig(msgspec.Struct): ...


class Disk(Subsystem[Load, Loaded]):
    def run(self, ctx: BlockingContext[Load, Loaded, Sig]) -> None:
        for item in ctx:
            assert_type(item, Load | Sig)
        assert_type(ctx.recv(), Load | Sig)
        assert_type(ctx.try_recv(), Load | Sig | None)
        assert_type(ctx.recv_signal(), Sig)
        ctx.stop()
        ctx.finish()
        ctx.name = "x"  # wrong


class Indexer(Actor[Loaded, Load]):
    def handle(self, ctx: BlockingContext[Loaded, Load, Sig], message: Loaded) -> None:
        assert_type(ctx.send(Load("a", self.reply())), bool)
        assert_type(ctx.try_send(Box.seal(Load("a", self.reply())), priority=Priority.HIGH), bool)
        ctx.send(message)  # wrong

        def load(reply: Reply[int]) -> Load:
            return Load("a", reply)

        assert_type(ctx.ask(load), int)
        assert_type(ctx.ask(load, timeout=1, priority=Priority.HIGH), int)
        ctx.ask(lambda reply: Load("a", reply), timeout=None)
        ctx.ask(lambda reply: message)  # wrong
        ctx.ask(load, 1.0)  # wrong
        ctx.ask(load, timeout="1")  # wrong

        ctx.spawn(self.work(), name="work")
        ctx.spawn(self.work)  # wrong
        ctx.spawn(self.work(), 7)  # wrong

        assert_type(ctx.run_blocking(len, "abc"), int)
        ctx.run_blocking(len)  # wrong

        assert_type(ctx.send_after(1, message), Timer)
        assert_type(ctx.send_every(0.5, lambda: message, missed=Missed.BURST), Timer)
        ctx.send_after(1, Sig())  # wrong
        ctx.send_every(1, message)  # wrong
        ctx.set_deadline(1.5)
        ctx.set_timeout(None)
        ctx.set_timeout("1")  # wrong

        to_me = ctx.recipient(Loaded)
        assert_type(to_me, Recipient[Loaded])
        assert_type(to_me.blocking.send(message), bool)
        to_load: BlockingRecipient[Load] = message.to.blocking
        assert_type(to_load.ask(load, timeout=1), int)
        assert_type(to_load.try_send(Load("a", self.reply())), bool)
        to_load.send(message)  # wrong
        to_load.ask(lambda reply: message)  # wrong
        wider: BlockingRecipient[Load | Loaded] = to_load  # wrong
        print(wider, to_load.kind)

    def reply(self) -> Reply[int]:
        raise NotImplementedError

    def deadline_passed(self, ctx: BlockingContext[Loaded, Load, Sig], deadline: float) -> None: ...

    async def work(self) -> int:
        return 1


class InTheLoop(Actor[Never, Load]):
    async def started(self, ctx: Context[Never, Load, Sig]) -> None:
        to_load = ctx.recipient(Load)

        def load(reply: Reply[int]) -> Load:
            return Load("a", reply)

        assert_type(await to_load.ask(load), int)
        asking: Coroutine[Any, Any, int] = to_load.ask(load)
        assert_type(await asking, int)
        assert_type(await ctx.run_blocking(to_load.blocking.ask, load), int)
        await to_load.blocking.ask(load)  # wrong


@orchestra(signal=Sig, event=Sig)
class App:
    disk: Disk = subsystem(blocking=True)
    indexer: Indexer = subsystem(blocking=True)
    loop: InTheLoop = subsystem()


def from_elsewhere(running: Running) -> None:
    handle = running.threadsafe()
    assert_type(handle, Threadsafe)

    def load(reply: Reply[int]) -> Load:
        return Load("a", reply)

    assert_type(handle.ask(load), int)
    assert_type(handle.ask(load, timeout=1, priority=Priority.HIGH), int)
    handle.ask(lambda reply: Load("a", reply))
    handle.ask("Load")  # wrong
    handle.ask(load, 1.0)  # wrong
