"""Senders that wait for room in their own strands, which go on without the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra import (
    Actor,
    Closed,
    DeadLetter,
    Drop,
    Full,
    OrchestraError,
    Subsystem,
    orchestra,
    start,
    subsystem,
)
from orchestra.runtime import scheduler
from orchestra.runtime.redeeming import redeem_all
from orchestra.runtime.ticket import StrandTicket
from tests.runtime.players import Awaits, Bell, Calls, Gated, Knock, turns, until, within


@attrs.frozen
class One:
    """To x."""

    sender: str
    n: int


@attrs.frozen
class All:
    """To x and y."""

    sender: str
    n: int


Step = tuple[str, int]


class Plays(Subsystem):
    """Does one step after the other, and notes what it was told of each message."""

    def __init__(self, name: str, steps: list[Step]) -> None:
        self.name = name
        self.steps = steps
        self.sent: list[Any] = []
        self.refused: list[Any] = []

    async def run(self, ctx: Any) -> None:
        for n, (what, count) in enumerate(self.steps):
            if what == "sleep":
                await turns(count)
                continue
            message = (All if "all" in what else One)(self.name, n)
            try:
                if "try" in what:
                    ctx.try_send(message)
                elif "timeout" in what:
                    async with asyncio.timeout(0):
                        await ctx.send(message)
                elif "task" in what:
                    await asyncio.create_task(ctx.send(message))
                else:
                    await ctx.send(message)
                self.sent.append(message)
            except (Full, Closed, TimeoutError):
                self.refused.append(message)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["send", "send", "send all", "timeout", "timeout all", "task", "task all", "try", "sleep"]
        ),
        st.integers(0, 3),
    ),
    max_size=25,
)


@pytest.mark.parametrize("receiver", [Calls, Awaits])
@given(scripts=st.lists(STEPS, min_size=1, max_size=3), capacity=st.integers(1, 4), slow=st.booleans())
def test_nothing_is_lost_or_doubled_and_each_sender_keeps_its_order(
    receiver: Callable[..., Any], scripts: list[list[Step]], capacity: int, slow: bool
) -> None:
    async def rest(ctx: Any, message: Any) -> None:
        if message.n % 3 == 0:
            await turns(2)

    players = [Plays(name, script) for name, script in zip("abc", scripts, strict=False)]
    x, y = (receiver(rest if slow and receiver is Awaits else None) for _ in range(2))
    body: dict[str, Any] = {"__annotations__": {}, "__module__": __name__}
    for player in players:
        body["__annotations__"][player.name] = Plays
        body[player.name] = subsystem(sends=[One, All])
    body["__annotations__"] |= {"x": receiver, "y": receiver}
    body["x"] = subsystem(consumes=One, subscribes=[All], message_capacity=capacity)
    body["y"] = subsystem(subscribes=[All], message_capacity=1)
    app = orchestra(signal=Bell, event=Knock)(type("App", (), body))

    async def main() -> None:
        async with start(app(**{player.name: player for player in players}, x=x, y=y)) as running:
            await running.drain()

    within(20, main())
    for player in players:
        for got in (x.got, y.got):
            mine = [message for message in got if message.sender == player.name]
            assert mine == sorted(mine, key=lambda message: message.n)
            assert len(set(mine)) == len(mine)
            # one that was refused by a lane, or withdrawn, may have reached the other receiver
            whole = [message for message in mine if message not in player.refused]
            assert whole == [m for m in player.sent if got is x.got or isinstance(m, All)]


def app_of(sender: Any, receiver: Any, **options: Any) -> Any:
    kind, to = type(sender), type(receiver)

    @orchestra(signal=Bell, event=Knock)
    class App:
        a: kind = subsystem(sends=[One])
        x: to = subsystem(consumes=One, **options)

    return App(a=sender, x=receiver)


class Runs(Subsystem):
    def __init__(self, do: Callable[[Any], Awaitable[None]]) -> None:
        self.do = do

    async def run(self, ctx: Any) -> None:
        await self.do(ctx)


def lane_of(running: Any, name: str = "x") -> Any:
    return running._ensemble.inboxes[name].lanes[0]


def test_a_strand_waits_with_a_ticket_of_its_own_and_another_task_with_a_future() -> None:
    async def fill(ctx: Any) -> None:
        for n in range(3):
            await ctx.send(One("a", n))
        await asyncio.create_task(ctx.send(One("a", 3)))

    async def main() -> None:
        receiver = Gated()
        async with start(app_of(Runs(fill), receiver, message_capacity=1)) as running:
            lane = lane_of(running)
            await until(lambda: lane.waiting)
            (ticket,) = lane.waiting
            assert isinstance(ticket, StrandTicket)
            receiver.gate.set()
            await running.drain()
        assert [message.n for message in receiver.got] == [0, 1, 2, 3]

    within(5, main())


@pytest.mark.parametrize("granted", [False, True])
def test_one_that_is_cancelled_as_it_waits_gives_its_place_back(granted: bool) -> None:
    caught: list[bool] = []

    async def fill(ctx: Any) -> None:
        try:
            for n in range(10):
                await ctx.send(One("a", n))
        except asyncio.CancelledError:
            caught.append(True)
            raise

    async def main() -> None:
        receiver = Gated()
        letters: list[DeadLetter] = []
        async with start(
            app_of(Runs(fill), receiver, message_capacity=1), dead_letters=letters.append
        ) as running:
            lane = lane_of(running)
            await until(lambda: lane.waiting)
            task = running._ensemble.parts["a"].life.task
            if granted:
                (ticket,) = lane.waiting
                lane.queue.clear()
                lane.settle()
                assert ticket.granted
            task.cancel()
            await until(lambda: caught)
            assert not lane.senders_waiting
            receiver.gate.set()
            await running.stop(1)

    with pytest.raises(OrchestraError, match=r"a.* of App failed: CancelledError"):
        within(5, main())


def test_a_timeout_ends_its_wait_and_the_next_send_goes_on() -> None:
    out: list[str] = []

    async def fill(ctx: Any) -> None:
        await ctx.send(One("a", 0))
        await ctx.send(One("a", 1))
        try:
            async with asyncio.timeout(0.01):
                await ctx.send(One("a", 2))
        except TimeoutError:
            out.append("timeout")
        await ctx.send(One("a", 3))
        out.append("sent")

    async def main() -> None:
        receiver = Gated()
        async with start(app_of(Runs(fill), receiver, message_capacity=1)) as running:
            await until(lambda: out)
            receiver.gate.set()
            await running.drain()
        assert [message.n for message in receiver.got] == [0, 1, 3]
        assert out == ["timeout", "sent"]

    within(5, main())


def test_a_drop_that_waits_its_time_in_a_strand_is_counted() -> None:
    told: list[bool] = []

    async def fill(ctx: Any) -> None:
        told.extend([await ctx.send(One("a", n)) for n in range(4)])

    async def main() -> None:
        receiver = Gated()
        app = app_of(Runs(fill), receiver, message_capacity=1, overflow=Drop(0.01))
        async with start(app) as running:
            await until(lambda: len(told) == 4)
            receiver.gate.set()
            await running.drain()
            assert running.meters()["x"].dropped_by == {"waited": 1, "congested": 1}
        assert told == [True, True, False, False]

    within(5, main())


def test_a_receiver_that_ends_lets_a_waiting_strand_go_with_closed() -> None:
    refused: list[Any] = []

    async def fill(ctx: Any) -> None:
        try:
            for n in range(10):
                await ctx.send(One("a", n))
        except Closed as closed:
            refused.append(closed.message)

    async def main() -> None:
        receiver = Gated()
        async with start(
            app_of(Runs(fill), receiver, message_capacity=1), dead_letters=lambda letter: None
        ) as running:
            await until(lambda: lane_of(running).waiting)
            running._ensemble.parts["x"].ctx.finish()
            await until(lambda: refused)
            receiver.gate.set()
            await running.drain()
        assert refused == [One("a", 2)]

    within(5, main())


def test_a_busy_receiver_is_not_left_for_each_place_that_becomes_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sender goes on when the receiver has nothing left: a lane full of messages for each change."""
    monkeypatch.setattr(scheduler, "SLICE", 60.0)
    changes = 0
    last = ""

    def note(who: str) -> None:
        nonlocal changes, last
        changes += who != last
        last = who

    async def fill(ctx: Any) -> None:
        for n in range(1000):
            note("sender")
            await ctx.send(One("a", n))

    async def take(ctx: Any) -> None:
        async for _ in ctx:  # each message that is taken lets the sender in
            note("receiver")

    async def main() -> None:
        async with start(app_of(Runs(fill), Runs(take), message_capacity=100)) as running:
            await running.drain()
            assert running.meters()["x"].received == 1000

    within(5, main())
    assert changes <= 30


@attrs.frozen
class Round:
    """To the ring itself."""


class Ring(Actor):
    """Is never without work."""

    def handle(self, ctx: Any, message: Round) -> None:
        ctx.try_send(message)


def test_a_sender_goes_on_though_somebody_is_always_ready() -> None:
    async def fill(ctx: Any) -> None:
        for n in range(20):
            await ctx.send(One("a", n))

    @orchestra(signal=Bell, event=Knock)
    class App:
        ring: Ring = subsystem(consumes=Round, sends=[Round])
        a: Runs = subsystem(sends=[One])
        x: Calls = subsystem(consumes=One, message_capacity=1)

    async def main() -> None:
        receiver = Calls()
        async with start(App(ring=Ring(), a=Runs(fill), x=receiver)) as running:
            await running.send(Round())
            await until(lambda: len(receiver.got) == 20)
            await running.stop()

    within(10, main())


def test_a_place_that_becomes_free_as_another_one_is_used_is_not_missed() -> None:
    results: list[Any] = []

    def empty(lane: Any) -> None:
        lane.queue.popleft()
        lane.settle()

    async def fill(ctx: Any) -> None:
        inboxes = ctx._ensemble.inboxes
        x, y = inboxes["x"].lanes[0], inboxes["y"].lanes[0]
        message = All("a", 2)
        waits = [(lane, lane.admit(message, message, directly=True), message) for lane in (x, y)]
        asyncio.get_running_loop().call_soon(empty, y)

        def note(lane: Any, taken: Any) -> None:
            if lane is y:
                empty(x)

        async with asyncio.timeout(2):
            results.extend(await redeem_all(waits, message, note))

    @orchestra(signal=Bell, event=Knock)
    class App:
        a: Runs = subsystem(sends=[All])
        x: Gated = subsystem(subscribes=[All], message_capacity=1)
        y: Gated = subsystem(subscribes=[All], message_capacity=1)

    async def main() -> None:
        async def later(ctx: Any) -> None:
            for n in range(2):
                await ctx.send(All("a", n))
            await fill(ctx)

        x, y = Gated(), Gated()
        async with start(App(a=Runs(later), x=x, y=y), dead_letters=lambda _: None) as running:
            await until(lambda: results)
            await running.stop(0.1)
        assert results == [True, True]

    within(5, main())
