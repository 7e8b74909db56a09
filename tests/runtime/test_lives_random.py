"""Random lives of whole orchestras: failures, restarts, asks, timers, tasks, threads, wrappers and boxes.

Whatever comes together, each message is settled once, each ask has an outcome, old and new lives never
overlap, and the meters add up.
"""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra import (
    Actor,
    Closed,
    DeadLetter,
    Deadlock,
    Full,
    Missed,
    NoReply,
    OrchestraError,
    Reply,
    Restart,
    Subsystem,
    SubsystemStalled,
    deferred,
    orchestra,
    start,
    subsystem,
)
from orchestra.wrappers import Timed
from tests.effort import examples
from tests.runtime.clockwork import run as virtually
from tests.runtime.players import Bell, Knock, turns, within


@attrs.frozen
class Parcel:
    """A message: its number is unique, and its fate is what its receiver does with it."""

    number: int
    fate: str
    reply: Reply[int] | None = None


class Work(Parcel):
    """Goes to `first`."""


class Task(Parcel):
    """Goes to `second`."""


class News(Parcel):
    """Goes to `third` and `fourth`."""


EXPECTED = ValueError, LookupError, ConnectionError, ArithmeticError
"""What is raised on purpose."""

QUIET = ["passes"] * 6 + ["forwards", "forwards", "naps"]
LOUD = ["fails", "dooms", "asks", "asks aside", "later", "ticks", "aside"]
REPLIES = ["answers", "answers", "refuses", "drops", "keeps", "hands on", "answers aside"]


@attrs.define
class Books:
    """What happened to each parcel: by its number, and for what is received, with its receiver."""

    seed: int
    accepted: set[int] = attrs.Factory(set)
    nowhere: set[int] = attrs.Factory(set)
    begun: Counter[Any] = attrs.Factory(Counter)
    done: Counter[Any] = attrs.Factory(Counter)
    living: Counter[str] = attrs.Factory(Counter)
    lives: Counter[str] = attrs.Factory(Counter)
    signals: dict[str, list[int]] = attrs.Factory(dict)
    asks: Counter[str] = attrs.Factory(Counter)
    kept: list[Any] = attrs.Factory(list)
    wrong: list[str] = attrs.Factory(list)
    count: int = 0
    lock: Any = attrs.Factory(threading.RLock)
    naps: random.Random = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.naps = random.Random(self.seed)

    def make(self, kind: type, reply: Any = None) -> Any:
        with self.lock:
            self.count += 1
            if reply is not None:
                return kind(self.count, self.naps.choice(REPLIES), reply)
            return kind(self.count, self.naps.choice(QUIET * 2 + LOUD))

    @contextmanager
    def putting(self, parcel: Parcel) -> Iterator[None]:
        """It was accepted when nothing is raised, and else it is nowhere.

        What several receive may have reached those that had room, also when the sender has an error.
        """
        try:
            yield
        except BaseException as error:
            if not isinstance(parcel, News):
                self.nowhere.add(parcel.number)
            if isinstance(error, Full | Closed) and error.message is not parcel:
                self.wrong.append(f"{error!r} does not have {parcel}")
            raise
        if not isinstance(parcel, News):
            self.accepted.add(parcel.number)

    def put_now(self, parcel: Parcel, send: Any) -> None:
        with suppress(Full, Closed), self.putting(parcel):
            send(parcel)

    async def put(self, parcel: Parcel, send: Any) -> None:
        with suppress(Full, Closed), self.putting(parcel):
            await send(parcel)

    async def ask(self, kind: type, ask: Any) -> None:
        self.asks["begun"] += 1
        with suppress(NoReply, TimeoutError, Deadlock, Closed, ArithmeticError):
            try:
                await ask(lambda reply: self.make(kind, reply), timeout=5.0)
            finally:
                self.asks["ended"] += 1

    def ask_in_thread(self, kind: type, ask: Any) -> None:
        self.asks["begun"] += 1
        with suppress(NoReply, TimeoutError, Deadlock, Closed, ArithmeticError):
            try:
                ask(lambda reply: self.make(kind, reply), timeout=5.0)
            finally:
                self.asks["ended"] += 1


async def doomed(seconds: float) -> None:
    await asyncio.sleep(seconds)
    raise LookupError


AHEAD: dict[str, type] = {"first": Task, "second": News, "third": Work, "fourth": Work}
ASKED: dict[str, type] = {"first": Task, "second": Work, "third": Work, "fourth": Task}


class Plays:
    """What all players have in common."""

    def __init__(self, books: Books, pace: float) -> None:
        self.books = books
        self.pace = pace

    def nap(self) -> float:
        return self.books.naps.choice([0.0, 0.0, 0.01, 0.1]) * self.pace

    def enter(self, ctx: Any) -> None:
        books = self.books
        if books.living[ctx.name]:
            books.wrong.append(f"{ctx.name}: old and new overlap")
        books.living[ctx.name] += 1
        books.lives[ctx.name] += 1
        if books.naps.random() < 0.1:
            books.living[ctx.name] -= 1
            raise ConnectionError

    def leave(self, ctx: Any) -> None:
        self.books.living[ctx.name] -= 1

    def hear(self, ctx: Any, signal: Any) -> None:
        self.books.signals.setdefault(ctx.name, []).append(signal.n)
        if self.books.naps.random() < 0.1:
            raise LookupError

    def take(self, ctx: Any, parcel: Parcel) -> None:
        """All that needs no waiting."""
        books = self.books
        books.begun[parcel.number, ctx.name] += 1
        self.see_to_reply(ctx, parcel)
        match parcel.fate:
            case "fails":
                raise ValueError(parcel.number)
            case "dooms":
                ctx.spawn(doomed(self.nap()))
            case "forwards":
                books.put_now(books.make(AHEAD[ctx.name]), ctx.try_send)
            case "later":
                timed = books.make(AHEAD[ctx.name])
                with books.putting(timed):
                    ctx.send_after(self.nap(), timed)
            case "ticks":
                missed = books.naps.choice(list(Missed))
                ctx.send_every(0.05 * self.pace, lambda: books.make(AHEAD[ctx.name]), missed=missed)

    def see_to_reply(self, ctx: Any, parcel: Parcel) -> None:
        books, reply = self.books, parcel.reply
        if reply is None:
            return
        match parcel.fate:
            case "answers":
                reply.send(parcel.number)
            case "refuses":
                reply.fail(ArithmeticError())
            case "keeps":
                books.kept.append(reply)
            case "hands on":
                books.put_now(books.make(AHEAD[ctx.name], reply), ctx.try_send)
            case "answers aside":
                ctx.spawn(self.answer_late(parcel.number, reply))

    async def answer_late(self, number: int, reply: Any) -> None:
        await asyncio.sleep(self.nap())
        reply.send(number)

    async def linger(self, ctx: Any, parcel: Parcel) -> None:
        """What takes time, where the player may wait."""
        books = self.books
        match parcel.fate:
            case "naps":
                await asyncio.sleep(self.nap())
            case "asks":
                await books.ask(ASKED[ctx.name], ctx.ask)
            case "asks aside":
                ctx.spawn(books.ask(ASKED[ctx.name], ctx.ask))
            case "aside":
                ctx.spawn(books.put(books.make(AHEAD[ctx.name]), ctx.send))

    def finish(self, ctx: Any, parcel: Parcel) -> None:
        self.books.done[parcel.number, ctx.name] += 1


class Plain(Plays, Actor):
    def started(self, ctx: Any) -> None:
        self.enter(ctx)

    def stopped(self, ctx: Any) -> None:
        self.leave(ctx)

    def on_signal(self, ctx: Any, signal: Any) -> None:
        self.hear(ctx, signal)

    def handle(self, ctx: Any, message: Any) -> None:
        self.take(ctx, message)
        self.finish(ctx, message)


class Async(Plain):
    async def started(self, ctx: Any) -> None:
        await asyncio.sleep(self.nap())
        self.enter(ctx)

    async def stopped(self, ctx: Any) -> None:
        try:
            await asyncio.sleep(self.nap() / 10)
        finally:
            self.leave(ctx)

    async def on_signal(self, ctx: Any, signal: Any) -> None:
        self.hear(ctx, signal)

    async def handle(self, ctx: Any, message: Any) -> None:
        self.take(ctx, message)
        await self.linger(ctx, message)
        self.finish(ctx, message)


class Loop(Plays, Subsystem):
    async def run(self, ctx: Any) -> None:
        self.enter(ctx)
        try:
            async for item in ctx:
                if isinstance(item, Bell):
                    self.hear(ctx, item)
                    continue
                self.take(ctx, item)
                await self.linger(ctx, item)
                self.finish(ctx, item)
        finally:
            self.leave(ctx)


class Threaded(Plain):
    def handle(self, ctx: Any, message: Any) -> None:
        handle_in_thread(self, ctx, message)


class ThreadedLoop(Plays, Subsystem):
    def run(self, ctx: Any) -> None:  # type: ignore[override]  # it is for blocking=True
        self.enter(ctx)
        try:
            for item in ctx:
                if isinstance(item, Bell):
                    self.hear(ctx, item)
                else:
                    handle_in_thread(self, ctx, item)
        finally:
            self.leave(ctx)


def handle_in_thread(player: Plays, ctx: Any, message: Any) -> None:
    player.take(ctx, message)
    if message.fate == "asks":
        player.books.ask_in_thread(ASKED[ctx.name], ctx.ask)
    if message.fate == "aside":
        player.books.put_now(player.books.make(AHEAD[ctx.name]), ctx.send)
    player.finish(ctx, message)


NAMES = ["first", "second", "third", "fourth"]
IN_LOOP: dict[str, Any] = {"plain": Plain, "async": Async, "loop": Loop}
IN_THREADS: dict[str, Any] = {"thread": Threaded, "thread loop": ThreadedLoop}


@attrs.frozen
class Role:
    """How one of the subsystems is made."""

    way: str
    fresh: bool
    wrapped: bool
    capacity: int
    policy: Restart | None

    @property
    def blocking(self) -> bool:
        return self.way in IN_THREADS

    @property
    def kind(self) -> Any:
        return {**IN_LOOP, **IN_THREADS}[self.way]

    @property
    def wraps(self) -> bool:
        return self.wrapped and issubclass(self.kind, Actor)

    def make(self, books: Books, pace: float) -> Any:
        def made() -> Any:
            player = self.kind(books, pace)
            return Timed(player) if self.wraps else player

        return deferred(made) if self.fresh else made()


@attrs.frozen
class Shape:
    roles: tuple[Role, Role, Role, Role]
    boxed: bool
    senders: int
    messages: int
    end: str
    after: float
    seed: int


@st.composite
def shapes(draw: st.DrawFn, *, threads: bool = False) -> Shape:
    policies = st.builds(
        Restart,
        limit=st.sampled_from([1, 3, 1000, 1000]),
        within=st.sampled_from([0.5, 10.0]),
        backoff=st.sampled_from([0.0, 0.05] if threads else [0.0, 0.05, 1.0]),
    )
    role = st.builds(
        Role,
        way=st.sampled_from([*IN_LOOP, *(IN_THREADS if threads else ())]),
        fresh=st.booleans(),
        wrapped=st.booleans(),
        capacity=st.sampled_from([1, 2, 100]),
        policy=st.none() | policies if draw(st.booleans()) else policies,
    )
    return Shape(
        roles=draw(st.tuples(role, role, role, role)),
        boxed=draw(st.booleans()),
        senders=draw(st.integers(1, 3)),
        messages=draw(st.integers(0, 15)),
        end=draw(st.sampled_from(["drain", "drain with a limit", "stop", "stop now", "leave"])),
        after=draw(st.sampled_from([0.0, 0.02, 0.1] if threads else [0.0, 0.02, 0.5, 3.0])),
        seed=draw(st.integers(0, 10_000)),
    )


def build(shape: Shape, books: Books, pace: float) -> Any:
    def options(place: int) -> dict[str, Any]:
        role = shape.roles[place]
        return {
            "message_capacity": role.capacity,
            "restart": role.policy,
            "blocking": role.blocking,
        }

    kinds = [Timed if role.wraps else role.kind for role in shape.roles]

    @orchestra(signal=Bell, event=Knock, boxed_messages=shape.boxed)
    class App:
        first: kinds[0] = subsystem(consumes=Work, sends=[Task], **options(0))
        second: kinds[1] = subsystem(consumes=Task, sends=[News, Work], **options(1))
        third: kinds[2] = subsystem(subscribes=[News], sends=[Work], **options(2))
        fourth: kinds[3] = subsystem(subscribes=[News], sends=[Work, Task], **options(3))

    players = [role.make(books, pace) for role in shape.roles]
    return App(**dict(zip(NAMES, players, strict=True)))


async def play(shape: Shape, books: Books, letters: list[DeadLetter], pace: float) -> Any:
    async def send() -> None:
        for _ in range(shape.messages):
            await books.put(books.make(Work), running.send)
            await asyncio.sleep(books.naps.choice([0, 0, 0.01]) * pace)

    async def ask() -> None:
        for _ in range(3):
            await books.ask(Work, running.ask)

    async def ring() -> None:
        for n in range(3):
            with suppress(Closed, SubsystemStalled):
                await running.broadcast(Bell(n), timeout=0.5)
            await asyncio.sleep(0.01 * pace)

    failed = False
    try:
        async with start(build(shape, books, pace), dead_letters=letters.append) as running:
            others = [asyncio.ensure_future(each()) for each in (*[send] * shape.senders, ask, ring)]
            await asyncio.sleep(shape.after)
            if shape.end == "drain":
                async with asyncio.timeout(100):
                    await running.drain()
            elif shape.end == "drain with a limit":
                await running.drain(0.1)
            elif shape.end != "leave":
                await running.stop(0.0 if shape.end == "stop now" else 5.0)
    except OrchestraError as error:
        failed = True
        if not isinstance(error.__cause__, EXPECTED):
            raise
    await asyncio.gather(*others)
    await turns()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return failed, running.meters()


def check(shape: Shape, books: Books, letters: list[DeadLetter], failed: bool, meters: Any) -> None:
    assert not books.wrong
    assert books.asks["begun"] == books.asks["ended"]
    assert not books.accepted & books.nowhere
    buried = Counter((letter.message.number, letter.subsystem) for letter in letters)
    settled = books.done + buried
    assert set(settled.values()) <= {1}, "settled twice"
    assert set(books.begun.values()) <= {1}, "taken twice"
    failures = Counter(
        (letter.message.number, letter.subsystem)
        for letter in letters
        if letter.reason in {"failed", "cancelled"}
    )
    assert books.done + failures == books.begun
    numbers = {number for number, _ in settled}
    assert not books.nowhere & numbers
    for letter in letters:
        assert letter.reason in {"failed", "stopped", "cancelled", "finished", "timer"}
        assert (letter.error is not None) == (letter.reason == "failed")
    single = {letter.message.number for letter in letters if not isinstance(letter.message, News)}
    assert len(single) == sum(not isinstance(letter.message, News) for letter in letters)
    for name, each in meters.items():
        assert each.sent == each.received + each.evicted
        assert each.received == sum(count for (_, taker), count in books.begun.items() if taker == name)
        assert not each.queued
        assert not each.waiting
        assert books.living[name] == 0
        assert each.restarts in {books.lives[name] - 1, books.lives[name]}
        heard = books.signals.get(name, [])
        assert heard == sorted(set(heard))
    assert books.accepted <= numbers, "lost"


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shape=shapes())
def test_whatever_comes_together_each_message_is_settled_once(shape: Shape) -> None:
    books, letters = Books(shape.seed), []
    check(shape, books, letters, *virtually(play(shape, books, letters, 1.0)))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shape=shapes(threads=True))
def test_so_it_is_with_threads(shape: Shape) -> None:
    books, letters = Books(shape.seed), []
    check(shape, books, letters, *within(30, play(shape, books, letters, 0.1)))
