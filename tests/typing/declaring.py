"""Each line marked `# wrong` must be an error for mypy --strict and for basedpyright, no other may."""

from typing import Any, Never, assert_type

import attrs
import msgspec

from orchestra import (
    Actor,
    Block,
    BlockFirst,
    Conductor,
    Context,
    Drop,
    DropOldest,
    Fail,
    Missed,
    Priority,
    Restart,
    Running,
    Subsystem,
    Timer,
    deferred,
    handles,
    orchestra,
    plan_of,
    subsystem,
)


class Ping(msgspec.Struct): ...


class Pong(msgspec.Struct): ...


class Sig(msgspec.Struct): ...


class Ev(msgspec.Struct):
    n: int


class Full(Actor[Ping, Pong]):
    def __init__(self, size: int) -> None:
        self.size = size

    async def started(self, ctx: Context[Ping, Pong, Sig]) -> None: ...

    def on_signal(self, ctx: Context[Ping, Pong, Sig], signal: Sig) -> None: ...

    def stopped(self, ctx: Context[Ping, Pong, Sig]) -> None: ...

    async def handle(self, ctx: Context[Ping, Pong, Sig], ping: Ping) -> None:
        assert_type(await ctx.send(Pong()), bool)
        assert_type(ctx.try_send(Pong(), priority=Priority.HIGH), bool)
        assert_type(await ctx.send(Pong(), overflow=Drop(wait_before_drop=0.5)), bool)
        assert_type(ctx.try_send(Pong(), priority=Priority.HIGH, overflow=DropOldest()), bool)
        ctx.try_send(Pong(), overflow=None)
        await ctx.send(Pong(), overflow=Drop)  # wrong
        await ctx.send(Pong(), overflow="drop")  # wrong
        await ctx.send(Pong(), Drop())  # wrong
        ctx.try_send(Pong(), overflow=BlockFirst)  # wrong
        ctx.try_send(Pong(), overflow=0.5)  # wrong

    @staticmethod
    def priority(message: Ping) -> Priority:
        return Priority.HIGH


class Ticking(Actor[Ping, Pong]):
    def handle(self, ctx: Context[Ping, Pong, Sig], message: Ping) -> None:
        assert_type(ctx.send_after(1, Pong()), Timer)
        assert_type(ctx.send_every(0.5, Ping), Timer)
        ctx.send_after(0.5, message)
        ctx.send_after(0.5, Sig())  # wrong
        ctx.send_after("1", Pong())  # wrong
        ctx.send_after(1, Pong)  # wrong
        timer = ctx.send_every(1, lambda: Pong(), missed=Missed.BURST)
        ctx.send_every(1, Sig)  # wrong
        ctx.send_every(1, Pong())  # wrong
        ctx.send_every(1, Pong, Missed.SKIP)  # wrong
        ctx.send_every(1, Pong, missed="skip")  # wrong
        assert_type(timer.cancel(), bool)
        assert_type(timer.active, bool)
        assert_type(timer.when, float | None)
        assert_type(timer.missed, int)
        timer.missed = 0  # wrong
        ctx.set_deadline(1.5)
        ctx.set_timeout(None)
        ctx.set_timeout("1")  # wrong

    async def deadline_passed(self, ctx: Context[Ping, Pong, Sig], deadline: float) -> None:
        ctx.set_deadline(deadline + 1)


class BadDeadline(Actor[Ping, Pong]):
    def deadline_passed(self, ctx: Context[Ping, Pong, Sig], deadline: str) -> None: ...  # wrong


class Marked(Actor):
    @handles(Ping)
    def on_ping(self, ctx: Context[Ping | Pong, Never, Sig], message: Ping) -> int:
        return 1

    @handles(Pong)
    async def on_pong(self, ctx: Context[Ping | Pong, Never, Sig], message: Pong) -> None:
        assert_type(self.on_ping(ctx, Ping()), int)
        self.on_ping(ctx, message)  # wrong


class Bare(Subsystem):
    async def run(self, ctx: Context[Any, Ping, Sig]) -> None:
        ctx.stop()
        ctx.finish()
        assert_type(ctx.name, str)
        assert_type(ctx.closed, bool)
        ctx.name = "x"  # wrong
        await ctx.send(Ping(), priority=1)  # wrong
        await ctx.send(None)  # wrong


class Typed(Subsystem[Ping, Never]):
    async def run(self, ctx: Context[Ping, Never, Sig]) -> None:
        assert_type(await ctx.recv(), Ping | Sig)
        assert_type(ctx.try_recv(), Ping | Sig | None)
        assert_type(await ctx.recv_signal(), Sig)
        async for item in ctx:
            assert_type(item, Ping | Sig)


class Quiet(Subsystem[Ping, Never]):
    async def run(self, ctx: Context[Ping, Never]) -> None:
        assert_type(await ctx.recv(), Ping)


class BadHandle(Actor[Ping, Pong]):
    def handle(self, ctx: Context[Ping, Pong, Sig], message: Pong) -> None: ...  # wrong


class BadPriority(Actor):
    @staticmethod
    def priority(message: Any) -> str: ...  # wrong


def helper(ctx: Context[Any, Ping, Any]) -> None:
    ctx.try_send(Ping())


def narrow(ctx: Context[Ping, Ping | Pong, Sig]) -> None:
    helper(ctx)
    wanted: Context[Ping, Sig, Sig] = ctx  # wrong
    print(wanted)


@orchestra(signal=Sig, event=Ev, outgoing=Pong, error=ValueError, boxed_messages=True, message_capacity=4)
class App:
    full: Full = subsystem(
        consumes=Ping,
        sends=[Pong],
        message_capacity={Priority.HIGH: 8, Priority.NORMAL: 1},
        overflow=Fail(),
        boxed=False,
    )
    marked: Marked = subsystem(
        subscribes=[Ping | Pong],
        priorities=[Priority.HIGH, Priority.NORMAL],
        overflow={Priority.HIGH: BlockFirst(), Priority.NORMAL: Drop(0.005)},
        evict_after=5,
        fairness=16,
    )
    later: Bare = subsystem(consumes=int, wip=True)
    _private: Bare = subsystem(consumes=str)
    tags: list[str] = attrs.field(factory=list)
    number: int = attrs.field(default=3)
    title: str = "t"

    async def on_event(self, conductor: Conductor[Sig], event: Ev) -> None:
        await conductor.broadcast(Sig(), timeout=1.0)
        assert_type(await conductor.send(Ping(), priority=Priority.HIGH), bool)
        conductor.try_send(event)
        assert_type(await conductor.send(Ping(), overflow=Block()), bool)
        assert_type(conductor.try_send(Ping(), overflow=BlockFirst()), bool)
        await conductor.send(Ping(), overflow=Fail)  # wrong
        conductor.try_send(Ping(), overflow=Priority.HIGH)  # wrong
        await conductor.broadcast(event)  # wrong


app = App(full=Full(1), marked=Marked(), _private=Bare())
App(full=Full(1), marked=Marked(), _private=Bare(), tags=["x"], number=1, title="u")
assert_type(app, App)
assert_type(app.full, Full)
assert_type(app.full.size, int)
assert_type(app.title, str)
assert_type(plan_of(App).subsystems["full"].lanes[0].capacity, float)
App(full=Full(1), marked=Marked(), private=Bare())  # wrong
App(full=Full(1), marked=Marked(), _private=Bare(), later=Bare())  # wrong
App(Full(1), Marked(), _private=Bare())  # wrong
App(full=Full(1), marked=Marked(), _private=Bare(), number="1")  # wrong
app.absent  # wrong

subsystem(consumes=Ping, sends=Pong)  # wrong
subsystem(consumes=Ping, colour=1)  # wrong
subsystem(consumes=Ping, overflow=Fail)  # wrong
subsystem(consumes=Ping, overflow={Priority.HIGH: Drop})  # wrong
subsystem(consumes=Ping, overflow={1: Drop()})  # wrong
subsystem(consumes=Ping, evict_after="5")  # wrong
subsystem(consumes=Ping, fairness=2.5)  # wrong
subsystem(consumes=Ping, wip=True, evict_after=0.5, fairness=4)
subsystem(consumes=Ping, wip=True, fairness="4")  # wrong
subsystem(consumes=Ping, boxed="yes")  # wrong
subsystem(consumes=Ping, boxed="auto", capacity_bytes=1_000)
subsystem(consumes=Ping, boxed=True, capacity_bytes={Priority.HIGH: 1_000})
subsystem(consumes=Ping, wip=True, boxed="auto", capacity_bytes=1_000)
subsystem(consumes=Ping, boxed=True, capacity_bytes=1.5)  # wrong
subsystem(consumes=Ping, boxed=True, capacity_bytes={1: 8})  # wrong
subsystem(consumes=Ping, restart=Restart(limit=1, within=60, backoff=lambda n: 2.0**n))
subsystem(consumes=Ping, wip=True, restart=Restart())
subsystem(consumes=Ping, restart=3)  # wrong
subsystem(consumes=Ping, restart=Restart)  # wrong
Restart(limit="3")  # wrong
Restart(backoff=lambda: 1.0)  # wrong
Restart(3, 10, 0.1).backof  # wrong
assert_type(Restart().within, float)
assert_type(plan_of(App).subsystems["marked"].restart, Restart | None)
Drop(wait_before_drop="1")  # wrong
Drop(wait=1)  # wrong
Fail().wait_before_drop  # wrong
assert_type(Drop(1).wait_before_drop, float)
assert_type(plan_of(App).subsystems["marked"].evict_after, float | None)
assert_type(plan_of(App).subsystems["marked"].fairness, int | None)


class MyDrop(Drop): ...  # wrong


orchestra(signal=Sig)  # wrong
orchestra(signal=Sig, event=Ev, boxed_messages="auto")
orchestra(signal=Sig, event=Ev, boxed_messages="always")  # wrong
orchestra(signal=Sig, event=Ev, error=int)  # wrong
orchestra(Ping)  # wrong


def make_full(running: Running) -> Full:
    assert_type(running.instances["marked"], Any)
    return Full(len(running.instances))


assert_type(deferred(Marked), Marked)
assert_type(deferred(make_full), Full)
assert_type(deferred(lambda: Full(1)), Full)
App(full=deferred(make_full), marked=deferred(Marked), _private=deferred(lambda: Bare()))
App(full=deferred(lambda running: Full(len(running.instances))), marked=Marked(), _private=Bare())
App(full=deferred(Marked), marked=Marked(), _private=Bare())  # wrong
App(full=Full, marked=Marked(), _private=Bare())  # wrong
deferred(Marked())  # wrong
deferred(lambda one, two: Bare())  # wrong


class Spawns(Actor[Ping, Never]):
    async def handle(self, ctx: Context[Ping, Never, Sig], message: Ping) -> None:
        task = ctx.spawn(self.work(message), name="work")
        assert_type(await task, int)
        ctx.spawn(self.work)  # wrong
        ctx.spawn(self.work(message), 7)  # wrong

    async def work(self, message: Ping) -> int:
        return 1


@orchestra(signal=Sig, event=Ev)
class Child(App):
    more: Typed = subsystem()


Child(full=Full(1), marked=Marked(), _private=Bare(), more=Typed())
Child(full=Full(1), marked=Marked(), _private=Bare())  # wrong


async def read(running: Running) -> None:
    async for message in running.outgoing:
        print(message)
    print(await running.outgoing.recv(), running.outgoing.try_recv())
