"""Several things at one moment: the reply, the time limit, the cancelling, in every order."""

import asyncio
import contextlib
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra import NoReply, Running, start
from tests.effort import examples
from tests.runtime.asking import Acts, Lives, Plain, ToA, ToB, trio
from tests.runtime.clockwork import Clockwork, clockwork, run
from tests.runtime.players import Bell, turns

LIMIT = 1.0

REPLY, CANCEL, TIME, STRAY, DROP, BREATH = "reply", "cancel", "time", "stray", "drop", "breath"


class Stage:
    """One who asks with a time limit, and one whose reply is in the test's hand."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.replies: list[Any] = []
        self.outcomes: list[Any] = []
        self.after: list[str] = []
        self.task: Any = None
        self.cancelled = False
        asker = {"run": Lives(self.live), "hook": Acts(started=self.ask), "handler": Acts(self.handle)}.get(
            place, Acts()
        )
        self.app = trio(asker, Plain(lambda ctx, message: self.replies.append(message.reply)))

    async def ask(self, ctx: Any) -> None:
        try:
            self.outcomes.append(await ctx.ask(ToB, timeout=LIMIT))
        except (TimeoutError, NoReply) as error:
            self.outcomes.append(type(error))
        except asyncio.CancelledError:
            self.outcomes.append(asyncio.CancelledError)
            if self.place == "outside":
                raise
            self.task.uncancel()
        self.after.append("went on")

    async def handle(self, ctx: Any, message: Any) -> None:
        if not self.outcomes:
            await self.ask(ctx)
        else:
            self.after.append("handled")

    async def live(self, ctx: Any) -> None:
        await self.ask(ctx)
        async for item in ctx:
            if not isinstance(item, Bell):
                self.after.append("handled")

    async def begin(self, running: Running) -> None:
        if self.place == "outside":
            self.task = asyncio.ensure_future(self.ask(running))
        elif self.place == "handler":
            await running.send(ToA())
        await turns()
        if self.place != "outside":
            self.task = running._ensemble.parts["a"].inbox.strand.task
        assert len(self.replies) == 1

    def do(self, running: Running, what: str, loop: Clockwork) -> Any:
        if what == REPLY and self.replies:
            return self.replies[0].send("answer")
        if what == DROP:
            self.replies.clear()
        if what == CANCEL and not self.outcomes and not self.cancelled:
            self.cancelled = True
            self.task.cancel()
        if what == TIME:
            loop.now += LIMIT
        if what == STRAY and self.place != "outside":
            strand = running._ensemble.parts["a"].inbox.strand
            assert strand is not None
            running._ensemble.scheduler.add(strand.step)
        return None


async def play(place: str, moments: Any) -> Any:
    loop: Any = asyncio.get_running_loop()
    stage = Stage(place)
    told = []
    async with start(stage.app, dead_letters=lambda letter: None) as running:
        await stage.begin(running)
        for what in moments:
            if what == BREATH:
                await asyncio.sleep(0)
            else:
                told.append((what, stage.do(running, what, loop)))
        await turns()
        if not stage.outcomes:
            await asyncio.sleep(2 * LIMIT)
        await turns()
        assert len(stage.outcomes) == 1, stage.outcomes
        answered = (REPLY, True) in told
        if stage.outcomes == ["answer"]:
            assert answered
        elif answered:
            assert stage.outcomes == [asyncio.CancelledError]
        assert not running._ensemble.asks._open
        assert not running._ensemble.asks.waits.asking
        assert running._ensemble.parts["a"].inbox.asking == 0
        assert told.count((REPLY, False)) == running.meters()["b"].late_replies
        if place in ("handler", "run"):
            await running.send(ToA())
            await running.broadcast(Bell())
            await turns()
            assert stage.after == ["went on", "handled"]
    return stage.outcomes[0]


PLACES = ["handler", "run", "hook", "outside"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("length", [1, 2])
def test_whatever_comes_together_there_is_one_outcome_and_life_goes_on(place: str, length: int) -> None:
    for moments in itertools.product([REPLY, CANCEL, TIME, STRAY, DROP, BREATH], repeat=length):
        run(play(place, moments))


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(PLACES),
    st.lists(st.sampled_from([REPLY, CANCEL, TIME, STRAY, STRAY, DROP, BREATH, BREATH]), max_size=12),
)
def test_so_it_is_in_any_order(place: str, moments: list[str]) -> None:
    run(play(place, moments))


@pytest.mark.parametrize(
    ("moments", "outcome"),
    [
        ([REPLY], "answer"),
        ([REPLY, CANCEL], asyncio.CancelledError),
        ([CANCEL, REPLY], asyncio.CancelledError),
        ([REPLY, BREATH, BREATH, BREATH, CANCEL], "answer"),
        ([REPLY, TIME], "answer"),
        ([TIME, REPLY], "answer"),
        ([TIME, BREATH, BREATH, REPLY], TimeoutError),
        ([DROP], NoReply),
        ([DROP, TIME], NoReply),
        ([STRAY, STRAY, REPLY, STRAY], "answer"),
        ([STRAY], TimeoutError),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
@pytest.mark.parametrize("place", ["outside"])
def test_the_first_that_happened_is_the_outcome(place: str, moments: list[str], outcome: Any) -> None:
    assert run(play(place, moments)) == outcome


@pytest.mark.parametrize("place", ["handler", "run", "hook"])
@pytest.mark.parametrize("moments", [[REPLY], [REPLY, TIME], [TIME, REPLY], [STRAY, REPLY]])
def test_inside_too(place: str, moments: list[str]) -> None:
    assert run(play(place, moments)) == "answer"


def test_a_reply_within_the_same_turn_comes_before_the_wait() -> None:
    """The message is put, the sender goes on in the same turn, and then parks: the reply is there already."""

    async def ask(ctx: Any, message: Any) -> None:
        def make(reply: Any) -> Any:
            reply.send("at once")
            return ToB(reply)

        message.reply.send(await ctx.ask(make))

    async def main() -> None:
        async with start(trio(Acts(ask))) as running:
            assert await running.ask(ToA) == "at once"
            assert running.meters()["b"].late_replies == 1

    run(main())


@pytest.mark.parametrize("room", ["cancelled", "granted"])
def test_an_ask_that_is_cancelled_while_it_waits_for_room_is_nowhere(room: str) -> None:
    handled: list[Any] = []

    async def main() -> None:
        opened = asyncio.Event()

        async def hold(ctx: Any, message: Any) -> None:
            await opened.wait()
            handled.append(message)

        async with start(trio(Acts(), Acts(hold), message_capacity=1)) as running:
            running.try_send(ToB())
            await turns()
            running.try_send(ToB())
            asking = asyncio.ensure_future(running.ask(ToB, timeout=60))
            await turns()
            if room == "granted":
                opened.set()
                while not running._ensemble.inboxes["b"].lanes[0]._granted:
                    await asyncio.sleep(0)
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
            opened.set()
            await turns()
            assert handled == [ToB(), ToB()]
            assert not running._ensemble.asks._open

    run(main())


def test_a_park_of_others_is_no_reply() -> None:
    """Whatever steps the strand, it goes on waiting until its own reply is there."""
    steps: list[str] = []

    async def ask(ctx: Any, message: Any) -> None:
        steps.append("asks")
        steps.append(await ctx.ask(ToB))

    with clockwork() as loop:
        replies: list[Any] = []

        async def main() -> None:
            app = trio(Acts(ask), Plain(lambda ctx, message: replies.append(message.reply)))
            async with start(app) as running:
                await running.send(ToA())
                await turns()
                inbox = running._ensemble.inboxes["a"]
                assert inbox.idle is False
                assert inbox.resting is False
                assert inbox.strand is not None
                for _ in range(50):
                    running._ensemble.scheduler.add(inbox.strand.step)
                await turns()
                assert steps == ["asks"]
                replies[0].send("here")
                await turns()
                assert steps == ["asks", "here"]

        loop.run_until_complete(main())
