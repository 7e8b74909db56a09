"""Random asks, hand-ons, failures, restarts, time limits and ends: each asker gets one outcome, promptly."""

import asyncio
import contextlib
import gc
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import attrs
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra import (
    Actor,
    Block,
    BlockFirst,
    Closed,
    Deadlock,
    Drop,
    DropOldest,
    Fail,
    Full,
    NoReply,
    OrchestraError,
    Reply,
    Restart,
    StopTimeout,
    Subsystem,
    orchestra,
    start,
    subsystem,
)
from tests.effort import examples
from tests.runtime.clockwork import clockwork
from tests.runtime.players import Bell, Knock, turns

NAMES = ("a", "b", "c")


@attrs.frozen
class Step:
    """What a handler does, to whom, and how; `then` is what the receiver does in its turn."""

    do: str
    to: str = "a"
    how: str = ""
    seconds: float = 0.0
    timeout: float | None = None
    then: tuple["Step", ...] = ()


class Request(msgspec.Struct):
    steps: Any
    reply: Reply[int] | None = None
    number: int = 0


class ToA(Request): ...


class ToB(Request): ...


class ToC(Request): ...


class ToAll(Request): ...


KINDS: dict[str, type[Request]] = {"a": ToA, "b": ToB, "c": ToC, "all": ToAll}
EXPECTED = (NoReply, Deadlock, TimeoutError, Closed, Full, ZeroDivisionError, LookupError)


@attrs.define(eq=False)
class Asked:
    """One ask: `answers` counts the answers that were said to be in time.

    `last` is the message that has the reply, by number; -1 when that was handed on in several.
    """

    outcome: Any = None
    answers: int = 0
    last: int | None = None


class Game:
    """All that happens in one orchestra, and what is kept alive although it is of no use any more."""

    def __init__(self) -> None:
        self.asks: list[Asked] = []
        self.letters: list[Any] = []
        self.stale: list[Any] = []
        self.by_reply: dict[int, Asked] = {}
        self.made = 0

    async def ask(self, verb: Any, step: Step) -> Any:
        asked = Asked()
        self.asks.append(asked)

        def make(reply: Reply[int]) -> Request:
            self.by_reply[id(reply._pending)] = asked
            return self.gave(self.message(step, reply))

        try:
            asked.outcome = await verb(make, timeout=step.timeout)
        except BaseException as error:
            asked.outcome = type(error)
            raise
        return asked.outcome

    def message(self, step: Step, reply: Reply[int] | None) -> Request:
        self.made += 1
        return KINDS[step.to](step.then, reply, self.made)

    def gave(self, message: Request, before: int | None = None) -> Request:
        """The reply is in this message now, if it is in no other one than that of the number `before`."""
        if message.reply is not None:
            asked = self.by_reply[id(message.reply._pending)]
            alone = asked.last == before and message.__class__ is not ToAll
            asked.last = message.number if alone else -1
        return message

    def bury(self, letter: Any) -> None:
        """Keep the letter, and so a reply in it, if that is the only place where it is."""
        if letter.message.reply is None or self.has(letter.message):
            self.letters.append(letter)

    def has(self, message: Request) -> bool:
        """Whether this message has its reply, and no other one."""
        return self.by_reply[id(message.reply._pending)].last == message.number

    def answered(self, reply: Reply[int], in_time: bool) -> None:
        self.by_reply[id(reply._pending)].answers += in_time


class Plays:
    """What the three have in common: they do what their messages say."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.kept: list[Reply[int]] = []

    def begin(self) -> None:
        self.game.stale.extend(self.kept)
        self.kept.clear()

    async def play(self, ctx: Any, message: Request) -> None:
        for step in message.steps:
            await getattr(self, step.do)(ctx, message, step)

    async def sleep(self, ctx: Any, message: Request, step: Step) -> None:
        await asyncio.sleep(step.seconds)

    async def answer(self, ctx: Any, message: Request, step: Step) -> None:
        for reply in [message.reply, *self.kept]:
            if reply is not None:
                self.game.answered(reply, reply.send(1) if step.how != "error" else reply.fail(LookupError))
        self.kept.clear()

    async def keep(self, ctx: Any, message: Request, step: Step) -> None:
        if message.reply is not None and self.game.has(message):
            self.kept.append(message.reply)

    async def fail(self, ctx: Any, message: Request, step: Step) -> None:
        raise ZeroDivisionError

    async def finish(self, ctx: Any, message: Request, step: Step) -> None:
        ctx.finish()

    async def ask(self, ctx: Any, message: Request, step: Step) -> None:
        def asking() -> Coroutine[Any, Any, Any]:
            verb = ctx.recipient(KINDS[step.to]).ask if step.how == "recipient" else ctx.ask
            return self.game.ask(verb, step)

        if step.how == "spawned":
            ctx.spawn(self.catching(asking))
        elif step.how == "together":
            await asyncio.gather(*(self.catching(asking) for _ in range(2)))
        elif step.how == "limited":
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(step.seconds):
                    await self.catching(asking)
        elif step.how == "open":
            await asking()
        else:
            await self.catching(asking)

    async def catching(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        with contextlib.suppress(*EXPECTED):
            await work()

    async def hand(self, ctx: Any, message: Request, step: Step) -> None:
        kind = KINDS[step.to]
        handed = self.game.message(step, message.reply)
        if step.to == "all":  # some may take it though the send raises
            self.game.gave(handed)
        with contextlib.suppress(*EXPECTED):
            taken: Any = True
            if step.how == "tried":
                taken = ctx.try_send(handed)
            elif step.how == "delayed":
                ctx.send_after(step.seconds, handed)
            elif step.how == "ticking":
                left = [handed]
                timer = ctx.send_every(
                    step.seconds + 0.1, lambda: left.pop() if left else (timer.cancel(), kind(()))[1]
                )
            elif step.how == "spawned":
                ctx.spawn(self.catching(partial(ctx.send, handed)))
            elif step.how == "limited":
                async with asyncio.timeout(step.seconds):
                    taken = await ctx.send(handed)
            else:
                taken = await (ctx.recipient(kind) if step.how == "recipient" else ctx).send(handed)
            if taken:
                self.game.gave(handed, message.number)
                self.kept = [reply for reply in self.kept if reply is not message.reply]


class Acts(Plays, Actor):
    def started(self, ctx: Any) -> None:
        self.begin()

    async def handle(self, ctx: Any, message: Request) -> None:
        await self.play(ctx, message)


class Runs(Plays, Subsystem):
    async def run(self, ctx: Any) -> None:
        self.begin()
        async for message in ctx:
            await self.play(ctx, message)
            del message


def orchestra_of(game: Game, styles: Any, restart: Any, options: dict[str, Any]) -> Any:
    kinds = dict(zip(NAMES, styles, strict=True))
    every = list(KINDS.values())
    boxed = options.pop("boxed")

    @orchestra(signal=Bell, event=Knock, boxed_messages=boxed)
    class Trio:
        a: kinds["a"] = subsystem(consumes=ToA, sends=every, restart=restart, **options)
        b: kinds["b"] = subsystem(consumes=ToB, subscribes=[ToAll], sends=every, restart=restart, **options)
        c: kinds["c"] = subsystem(consumes=ToC, subscribes=[ToAll], sends=every, restart=restart, **options)

    return Trio(**{name: kind(game) for name, kind in kinds.items()})


SECONDS = (0.0, 0.3, 1.0, 2.5)
TARGETS = (*NAMES, *NAMES, "all")
ASKING = ("", "", "spawned", "together", "limited", "open", "recipient")
HANDING = ("", "", "tried", "delayed", "ticking", "spawned", "limited", "recipient")
SIMPLE = ("sleep",) * 4 + ("answer",) * 3 + ("keep",) * 3 + ("fail",) * 2 + ("finish",)


@attrs.frozen
class Move:
    """What comes from outside, after some seconds."""

    do: str
    after: float
    step: Step
    to: str


class Dice(random.Random):
    """Makes up what happens."""

    def steps(self, depth: int) -> tuple[Step, ...]:
        """What a handler does, and those whom it asks or hands on to do in their turn."""
        return tuple(self.step(depth) for _ in range(self.choice((1, 1, 2, 2, 3))))

    def step(self, depth: int) -> Step:
        do = self.choice(("ask", "hand", "simple", "simple")) if depth else "simple"
        if do == "simple":
            return Step(self.choice(SIMPLE), how=self.choice(("", "", "error")), seconds=self.choice(SECONDS))
        how = self.choice(ASKING if do == "ask" else HANDING)
        timeout = self.choice((None, None, 0.5, 3.0)) if do == "ask" else None
        return Step(do, self.choice(TARGETS), how, self.choice(SECONDS), timeout, self.steps(depth - 1))

    def move(self) -> Move:
        do = self.choice(("ask",) * 16 + ("send", "fail", "finish", "cancel") * 2 + ("drain", "stop"))
        limit = self.choice((None, None, 0.5, 3.0))
        step = Step("ask", self.choice(TARGETS), timeout=limit, then=self.steps(3))
        return Move(do, self.choice(SECONDS[:3]), step, self.choice(NAMES))

    def restart(self) -> Restart | None:
        return self.choice((None, Restart(limit=50), Restart(limit=50, backoff=0.7)))

    def options(self) -> dict[str, Any]:
        rare = (BlockFirst(), Fail(), Drop(0), Drop(0.5), DropOldest())
        return {
            "message_capacity": self.randint(1, 3),
            "overflow": self.choice((Block(),) * 3 + rare),
            "boxed": self.random() < 0.3,
        }


class Match:
    """One orchestra, and the outside that plays with it."""

    def __init__(self, game: Game, running: Any) -> None:
        self.game = game
        self.running = running
        self.tasks: list[asyncio.Task[Any]] = []

    async def make(self, move: Move) -> None:
        await asyncio.sleep(move.after)
        running = self.running
        if move.do == "ask":
            self.tasks.append(asyncio.ensure_future(self.game.ask(running.ask, move.step)))
        elif move.do == "send":
            self.tasks.append(asyncio.ensure_future(running.send(KINDS[move.step.to](move.step.then))))
        elif move.do == "cancel":
            for task in self.tasks:
                task.cancel()
        elif move.do in ("drain", "stop"):
            end = running.drain() if move.do == "drain" else running.stop(2)
            self.tasks.append(asyncio.ensure_future(end))
        elif not running._ensemble.parts[move.to].done:
            part = running._ensemble.parts[move.to]
            if move.do == "fail":
                part.fail(ZeroDivisionError())
            else:
                part.ctx.finish()
        await self.look()

    async def look(self) -> None:
        """Who has been told nothing yet must not wait for something that is dead already."""
        await turns(30)
        for name, part in self.running._ensemble.parts.items():
            if part.done:
                self.running.instances[name].begin()
        before = [asked.outcome for asked in self.game.asks]
        self.game.letters.clear()
        self.game.stale.clear()
        gc.collect(0)
        await turns(30)
        assert [asked.outcome for asked in self.game.asks] == before

    async def end(self) -> None:
        for seconds in (1, 5, 20):
            await asyncio.sleep(seconds)
            await self.look()
        with contextlib.suppress(OrchestraError, StopTimeout):
            await self.running.stop(1)
        await turns(30)
        for task in self.tasks:
            assert task.done()
            assert task.cancelled() or isinstance(task.exception(), (*EXPECTED, OrchestraError, type(None)))


async def play(dice: Dice) -> None:
    game = Game()
    styles = [dice.choice((Acts, Runs)) for _ in NAMES]
    app = orchestra_of(game, styles, dice.restart(), dice.options())
    with contextlib.suppress(OrchestraError, StopTimeout):
        async with start(app, dead_letters=game.bury) as running:
            match = Match(game, running)
            for _ in range(dice.randint(1, 8)):
                await match.make(dice.move())
            await match.end()
    for asked in game.asks:
        assert asked.outcome is not None
        if asked.outcome == 1:
            assert asked.answers == 1
        else:
            assert asked.answers <= (asked.outcome in (asyncio.CancelledError, LookupError))
    asks = running._ensemble.asks
    assert not asks._open
    assert not asks.waits.asking
    assert all(inbox.asking == 0 for inbox in running._ensemble.inboxes.values())


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32))
def test_every_asker_gets_one_outcome_promptly(seed: int) -> None:
    with clockwork() as loop:
        loop.run_until_complete(play(Dice(seed)))
