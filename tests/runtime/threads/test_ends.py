"""Stop, drain and failure while threads wait in every way there is; and everything at random."""

import asyncio
import contextlib
import random
import sys
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

from orchestra import Actor, Closed, Deadlock, Full, NoReply, OrchestraError, Restart, Subsystem, start
from orchestra.overflow import Drop, DropOldest
from tests.runtime.players import Bell, told, until, within
from tests.runtime.threads.cast import Acts, JustA, JustB, JustC, Lives, ToA, ToB, ToC, trio


def no_threads() -> bool:
    """Whether every thread of a subsystem, or of a pool, has ended."""
    names = [thread.name for thread in threading.enumerate() if thread.name.startswith("orchestra:")]
    return not [name for name in names if name != "orchestra:watcher"]


def flood(verb: Any) -> None:
    for n in range(10):
        verb(ToB(n))


WAITS = {
    "recv": lambda ctx: ctx.recv(),
    "recv_signal": lambda ctx: ctx.recv_signal(),
    "send": lambda ctx: [ctx.send(JustB(n)) for n in range(10)],
    "send by the loop": lambda ctx: flood(ctx.send),
    "ask": lambda ctx: ctx.ask(lambda reply: ToB(0, reply)),
    "ask with a limit": lambda ctx: ctx.ask(lambda reply: ToB(0, reply), timeout=60),
    "ask for room": lambda ctx: [ctx.ask(lambda reply, n=n: ToB(n, reply)) for n in range(3)],
    "recipient send": lambda ctx: flood(ctx.recipient(ToB).send),
    "recipient ask": lambda ctx: ctx.recipient(ToB).ask(lambda reply: ToB(0, reply)),
}


@pytest.mark.parametrize("end", ["stop", "stop at the limit", "leave", "fail"])
@pytest.mark.parametrize("what", WAITS)
def test_a_thread_that_waits_is_freed_by_every_end(what: str, end: str) -> None:
    """Whoever it waits for holds on to what it was asked; only the end lets it go."""
    errors: list[BaseException] = []
    letters: list[Any] = []
    held, ready = threading.Event(), threading.Event()
    kept: list[Any] = []

    def run(ctx: Any) -> None:
        ctx.send_after(60, ToA(7))
        ctx.send_every(60, lambda: ToC(7))
        ready.set()
        try:
            WAITS[what](ctx)
        except BaseException as error:
            errors.append(error)
            raise

    def hold(ctx: Any, message: Any) -> None:
        kept.append(message)
        if "send" in what:
            held.wait(10)

    def fail(ctx: Any, message: Any) -> None:
        if message.n == 1:
            raise ValueError("elsewhere")

    async def main() -> None:
        app = trio(Lives(run), Acts(hold), Acts(fail), message_capacity=1)
        async with start(app, dead_letters=letters.append) as running:
            await until(ready.is_set)
            if what in ("recv", "recv_signal"):
                await asyncio.sleep(0.02)
            elif "send" in what:
                await until(lambda: running.meters()["b"].waiting)
            else:
                await until(lambda: kept)
            began = time.monotonic()
            asyncio.get_running_loop().call_later(0.1, held.set)
            if end == "fail":
                running.try_send(ToC(1))
                await running.wait()
            elif end != "leave":
                await running.stop(0.3 if end == "stop" else 0.0)
        assert time.monotonic() - began < 5

    if end == "fail":
        with pytest.raises(OrchestraError, match="ValueError: elsewhere"):
            within(15, main())
    else:
        within(15, main())
    assert len(errors) == 1
    assert isinstance(errors[0], Closed | NoReply)
    assert (ToA(7), "a", "timer") in told(letters)
    assert no_threads()
    kept.clear()


def test_a_drain_waits_for_everything_that_threads_have_under_way() -> None:
    """An ask in a thread, a spawned task, a send that waits for room, one of a recipient, a function."""
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0.05)
        done.append("spawned")

    def run(ctx: Any) -> None:
        ctx.spawn(work())
        for n in range(3):
            ctx.send(ToB(n))
        done.append(ctx.ask(lambda reply: ToB(4, reply)))
        done.append(str(ctx.recipient(ToC).blocking.ask(lambda reply: ToC(1, reply))))

    def slowly(ctx: Any, message: Any) -> None:
        time.sleep(0.02)
        if message.reply is not None:
            message.reply.send(f"{ctx.name} {message.n}")

    b = Acts(slowly)

    async def main() -> None:
        async with start(trio(Lives(run), b, Acts(slowly), message_capacity=1)) as running:
            await running.drain()
        assert no_threads()

    within(15, main())
    assert sorted(done) == ["b 4", "c 1", "spawned"]
    assert b.got == [0, 1, 2, 4]


def test_a_drain_with_a_limit_ends_what_a_thread_waits_for() -> None:
    kept: list[Any] = []

    async def main() -> None:
        b = Acts(lambda ctx, message: kept.append(message))
        async with start(trio(Lives(WAITS["ask"]), b)) as running:
            await running.drain(timeout=0.1)
        assert no_threads()

    within(15, main())
    kept.clear()


# at random


@pytest.fixture
def switching() -> Generator[None, None, None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("seed", range(6))
def test_a_send_that_was_freed_has_put_its_message_nowhere(seed: int) -> None:
    """Failures from elsewhere come at any moment of a send, whichever way it goes."""
    chance = random.Random(seed)
    put: list[int] = []
    freed: list[int] = []
    numbers = iter(range(10**6))

    async def fails(seconds: float) -> None:
        await asyncio.sleep(seconds)
        raise ZeroDivisionError

    def run(ctx: Any) -> None:
        ctx.spawn(fails(chance.random() * 0.005))
        recipient = ctx.recipient(ToB)
        while True:
            n = next(numbers)
            try:
                match n % 3:
                    case 0:
                        ctx.send(ToB(n))
                    case 1:
                        ctx.send(JustB(n))
                    case _:
                        recipient.send(ToB(n))
            except Closed as closed:
                assert closed.message.n == n
                freed.append(n)
                return
            put.append(n)

    b = Acts(lambda ctx, message: time.sleep(0.0002))

    async def main() -> None:
        restart = Restart(limit=10**6, within=10.0, backoff=0.0)
        app = trio(Lives(run), b, message_capacity=2, restart=restart)
        async with start(app, dead_letters=lambda _: None) as running:
            await until(lambda: running.meters()["a"].restarts >= 40, 20)
            app.a.do = lambda ctx: None
            await until(lambda: running.meters()["a"].queued == 0)
            await asyncio.sleep(0.02)
            await running.drain(5)

    within(40, main())
    assert len(freed) >= 10
    assert b.got == put
    assert not set(freed) & set(b.got)


class Chance:
    """What a subsystem of the play does with a message, at random."""

    def __init__(self, seed: int, counts: dict[str, int]) -> None:
        self.chance = random.Random(seed)
        self.counts = counts
        self.handled = 0
        self.given: list[Any] = []

    def kind(self) -> Any:
        return self.chance.choice((ToA, ToB, ToC))

    def choose(self) -> str:
        return self.chance.choices(
            (
                "nothing",
                "send",
                "try",
                "ask",
                "recipient",
                "timer",
                "spawn",
                "fail",
                "task fails",
                "handle on",
            ),
            (6, 3, 2, 2, 2, 1, 1, 0.4, 0.2, 1),
        )[0]

    def made(self, n: int, reply: Any = None) -> Any:
        if reply is None and self.chance.random() < 0.7:
            return self.chance.choice((JustA, JustB, JustC))(n)
        return self.kind()(n, reply)


class InThread(Chance):
    def act(self, ctx: Any, message: Any) -> None:
        self.handled += 1
        if message.reply is not None and self.chance.random() < 0.8:
            message.reply.send(message.n)
        if message.n <= 0:
            return
        n = message.n - 1
        try:
            match self.choose():
                case "send":
                    ctx.send(self.made(n))
                case "try":
                    ctx.try_send(self.made(n))
                case "ask":
                    kind = self.kind()
                    ctx.ask(lambda reply: kind(n, reply), timeout=self.chance.choice((0.001, 0.01, 0.2)))
                case "recipient":
                    kind = self.kind()
                    to = ctx.recipient(kind)
                    if n % 2:
                        to.try_send(kind(n))
                    else:
                        to.ask(lambda reply: kind(n, reply), timeout=0.01)
                case "timer":
                    ctx.send_after(self.chance.random() * 0.01, self.made(n))
                    ctx.send_every(0.003, lambda: ToA(0))
                case "spawn":
                    ctx.spawn(nap(0.002, fails=False))
                case "task fails":
                    ctx.spawn(nap(0.001, fails=True))
                case "fail":
                    raise ZeroDivisionError
                case "handle on" if message.reply is not None:
                    ctx.try_send(self.made(n, message.reply))
                case _:
                    pass
        except (Full, NoReply, Deadlock, TimeoutError) as error:
            self.counts[type(error).__name__] = self.counts.get(type(error).__name__, 0) + 1


async def nap(seconds: float, *, fails: bool) -> None:
    await asyncio.sleep(seconds)
    if fails:
        raise ZeroDivisionError


class ThreadActor(Actor, InThread):
    def __init__(self, seed: int, counts: dict[str, int]) -> None:
        InThread.__init__(self, seed, counts)

    def handle(self, ctx: Any, message: Any) -> None:
        self.act(ctx, message)

    def on_signal(self, ctx: Any, signal: Any) -> None: ...


class ThreadRun(Subsystem, InThread):
    def __init__(self, seed: int, counts: dict[str, int]) -> None:
        InThread.__init__(self, seed, counts)

    def run(self, ctx: Any) -> None:
        for item in ctx:
            if not isinstance(item, Bell):
                self.act(ctx, item)


class LoopActor(Actor, Chance):
    def __init__(self, seed: int, counts: dict[str, int]) -> None:
        Chance.__init__(self, seed, counts)

    async def handle(self, ctx: Any, message: Any) -> None:
        self.handled += 1
        if message.reply is not None and self.chance.random() < 0.8:
            message.reply.send(message.n)
        if message.n <= 0:
            return
        n = message.n - 1
        try:
            match self.choose():
                case "send":
                    await ctx.send(self.made(n))
                case "ask":
                    kind = self.kind()
                    await ctx.ask(lambda reply: kind(n, reply), timeout=0.01)
                case "fail":
                    raise ZeroDivisionError
                case _:
                    pass
        except (Full, NoReply, Deadlock, TimeoutError) as error:
            self.counts[type(error).__name__] = self.counts.get(type(error).__name__, 0) + 1


KINDS = (ThreadActor, ThreadRun, LoopActor)
POLICIES = (None, Drop(0.001), DropOldest())


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("seed", range(24))
def test_everything_at_random_adds_up_and_ends(seed: int) -> None:
    """Each message that was accepted was received or evicted; none is buried twice; no thread stays."""
    chance = random.Random(seed)
    kinds = [chance.choice(KINDS[:2]), chance.choice(KINDS), chance.choice(KINDS)]
    names = "abc"
    blocking = "".join(name for name, kind in zip(names, kinds, strict=True) if kind is not LoopActor)
    counts: dict[str, int] = {}
    players = [kind(seed * 3 + place, counts) for place, kind in enumerate(kinds)]
    letters: list[Any] = []
    policy = chance.choice(POLICIES)
    options = {} if policy is None else {"overflow": policy}
    end = chance.choice(("drain", "stop"))

    async def main() -> None:
        app = trio(
            *players,
            blocking=blocking,
            boxed=chance.random() < 0.5,
            message_capacity=chance.choice((1, 3, 20)),
            restart=Restart(limit=10**6, within=10.0, backoff=0.0005),
            **options,
        )
        async with start(app, dead_letters=letters.append, slow_handler=None) as running:
            asking = []
            for n in range(150):
                kind = chance.choice((ToA, ToB, ToC))
                if n % 3 == 0:
                    asking.append(
                        asyncio.ensure_future(running.ask(lambda reply, k=kind: k(4, reply), timeout=0.2))
                    )
                else:
                    with contextlib.suppress(Full):
                        running.try_send(kind(chance.randrange(6)))
                if n % 7 == 0:
                    await asyncio.sleep(0.001)
                if n % 40 == 0:
                    await running.broadcast(Bell())
            with contextlib.suppress(OrchestraError):  # who fails in a stop does not start again
                if end == "drain":
                    await running.drain(timeout=1)
                else:
                    await running.stop(3)
            await asyncio.gather(*asking, return_exceptions=True)
        for name in names:
            meters = running.meters()[name]
            assert meters.sent == meters.received + meters.queued + meters.evicted, (name, meters)
            assert meters.queued == meters.waiting == 0
        for name, player in zip(names, players, strict=True):
            assert running.meters()[name].received == player.handled
        left = running._ensemble.asks
        await until(lambda: not left._open)
        assert not left.waits.asking

    within(30, main())
    ids = [id(letter.message) for letter in letters]
    assert len(ids) == len(set(ids)), "no message is buried twice"
    assert no_threads()
