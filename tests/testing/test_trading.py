"""A trading house, whose trader runs alone: all that a subsystem can do, under a test's hand."""

import asyncio
from typing import Any, Never

import msgspec
import pytest

from orchestra import (
    Actor,
    Box,
    Context,
    Deadlock,
    Drop,
    Live,
    NoReply,
    OrchestraError,
    Priority,
    Recipient,
    Reply,
    Restart,
    Subsystem,
    UndeclaredMessage,
    Wrapper,
    deferred,
    orchestra,
    subsystem,
)
from orchestra.testing import alone, recorded
from tests.runtime.players import told, within


class Quote(msgspec.Struct, frozen=True):
    symbol: str
    price: float


class Cancel(msgspec.Struct, frozen=True):
    symbol: str


class Tick(msgspec.Struct, frozen=True):
    pass


class Subscribe(msgspec.Struct, frozen=True):
    quotes: Live[Recipient[Quote]]


class CheckRisk(msgspec.Struct):
    quote: Quote
    reply: Reply[bool]


class Position(msgspec.Struct):
    reply: Reply[int]


class Trade(msgspec.Struct, frozen=True):
    symbol: str
    price: float


class Report(msgspec.Struct, frozen=True):
    text: str


class Audit(msgspec.Struct, frozen=True):
    text: str


class Close(msgspec.Struct, frozen=True):
    """The signal: the market closes."""


In = Quote | Cancel | Tick | Position
Out = Subscribe | CheckRisk | Trade | Report | Audit


class Trader(Actor[In, Out]):
    """Buys what is cheap, after asking for leave; and tells when the feed goes quiet."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.orders: list[str] = []
        self.seconds = 0

    @staticmethod
    def priority(message: In) -> Priority:
        return Priority.HIGH if isinstance(message, Cancel) else Priority.NORMAL

    async def started(self, ctx: Context[In, Out, Close]) -> None:
        await ctx.send(Subscribe(ctx.recipient(Quote)))
        ctx.send_every(1, Tick)
        ctx.set_timeout(30)

    async def handle(self, ctx: Context[In, Out, Close], message: In) -> None:
        match message:
            case Tick():
                self.seconds += 1
            case Cancel(symbol=symbol):
                self.orders.append(f"cancel {symbol}")
            case Position(reply=reply):
                reply.send(len(self.orders))
            case Quote(price=price) if price < 0:
                raise ValueError("a negative price")
            case Quote():
                ctx.set_timeout(30)
                await self._consider(ctx, message)

    async def _consider(self, ctx: Context[In, Out, Close], quote: Quote) -> None:
        try:
            allowed = await ctx.ask(lambda reply: CheckRisk(quote, reply), timeout=2)
        except (NoReply, TimeoutError) as error:
            await ctx.send(Report(f"no leave: {error}"))
            return
        if allowed:
            self.orders.append(f"buy {quote.symbol}")
            await ctx.send(Trade(quote.symbol, quote.price))
            await ctx.send(Audit(quote.symbol))
            await ctx.send(Report(f"bought {quote.symbol}"))

    def deadline_passed(self, ctx: Context[In, Out, Close], deadline: float) -> None:
        ctx.try_send(Report("the feed is quiet"))

    async def on_signal(self, ctx: Context[In, Out, Close], signal: Close) -> None:
        await ctx.send(Report("closed"))


class Feed(Subsystem[Subscribe, Quote]):
    async def run(self, ctx: Any) -> None:
        raise AssertionError("it is not to run")


class Risk(Actor[CheckRisk, Never]):
    def handle(self, ctx: Any, message: CheckRisk) -> None:
        raise AssertionError("it is not to run")


class Tape(Actor):
    def __init__(self) -> None:
        self.got: list[Any] = []

    @staticmethod
    def priority(message: Trade) -> Priority:
        return Priority.BACKGROUND

    async def handle(self, ctx: Any, message: Trade) -> None:
        self.got.append(message)


class Ledger(Actor):
    def handle(self, ctx: Any, message: Trade) -> None: ...


@orchestra(signal=Close, event=Close, outgoing=Report, boxed_messages=True)
class House:
    feed: Feed = subsystem()
    trader: Trader = subsystem(
        message_capacity={Priority.HIGH: 4, Priority.NORMAL: 2},
        overflow={Priority.NORMAL: Drop(wait_before_drop=0.5)},
        restart=Restart(limit=2, within=60, backoff=5),
    )
    risk: Risk = subsystem()
    tape: Tape = subsystem(subscribes=[Trade], message_capacity={Priority.BACKGROUND: 1})
    ledger: Ledger = subsystem(subscribes=[Trade], boxed=False)
    audit: Ledger = subsystem(consumes=Audit, wip=True)
    limit: int = 100

    async def on_event(self, conductor: Any, event: Close) -> None:
        raise AssertionError("no event comes to a subsystem that is alone")


CHEAP = Quote("A", 1.0)


def test_what_it_sends_when_it_starts_is_there_at_the_beginning() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            (subscribe,) = probe.sent
            assert subscribe is await probe.expect(Subscribe)
            assert await subscribe.quotes.send(CHEAP)
            assert (await probe.expect(CheckRisk)).quote == CHEAP

    within(10, main())


def test_a_message_to_several_is_sent_once_and_logged_for_each() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            for symbol in "AB":
                await probe.send(Quote(symbol, 1.0))
                (await probe.expect(CheckRisk)).reply.send(True)
            assert await probe.expect(Report) == Report("bought A")
            assert await probe.expect(Report) == Report("bought B")
            trades = [Trade("A", 1.0), Trade("B", 1.0)]
            assert [each for each in probe.sent if isinstance(each, Trade)] == trades
            assert [(each.receiver, each.priority) for each in probe.log if each.message == trades[1]] == [
                ("tape", Priority.BACKGROUND),
                ("ledger", Priority.NORMAL),
            ]
            assert await probe.expect(Trade) == trades[0]
            assert await probe.expect(Trade) == trades[1]
            with pytest.raises(
                AssertionError, match=r"'trader' has sent no Trade within 0.01 s; what it sent"
            ):
                await probe.expect(Trade, timeout=0.01)
            probe.sent.clear()
            probe.signal(Close())
            await probe.settle()
            assert probe.sent == [Report("closed")]
            assert [each.receiver for each in probe.log][-1] == "outgoing"

    within(10, main())


def test_a_message_that_nobody_would_get_cannot_be_expected() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            for kind, why in (
                (
                    Audit,
                    "no Audit can come out of 'trader': 'audit' is only planned .wip=True., so it is dropped",
                ),
                (Tick, "no Tick can come out of 'trader': only 'trader' itself receives it"),
                (Close, "no Close can come out of 'trader': nobody in House receives it"),
                ("Trade", "expect takes types of messages, and 'Trade' is a string, not a message type"),
                (CHEAP, "is an instance, not a message type: give the class, Quote"),
            ):
                with pytest.raises(TypeError, match=why):
                    await probe.expect(kind)  # type: ignore[call-overload]  # that is the mistake
            with pytest.raises(TypeError, match="expect takes the type of a message"):
                await probe.expect()

    within(10, main())


def test_one_of_several_types_can_be_expected() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            probe.signal(Close())
            assert isinstance(await probe.expect(Report, Subscribe), Subscribe)
            assert await probe.expect(Trade | Report) == Report("closed")
            with pytest.raises(AssertionError) as failed:
                await probe.expect(Trade, CheckRisk, timeout=0.01)
        assert str(failed.value) == (
            "'trader' has sent no Trade or CheckRisk within 0.01 s; what it sent and nobody expected: nothing"
            "; it waits for a message; time stands still, and await probe.advance(1) brings what is due"
        )

    within(10, main())


def test_a_request_that_is_buried_has_no_reply() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            await probe.send(CHEAP)
            probe.bury(await probe.expect(CheckRisk))
            assert await probe.expect(Report) == Report(
                "no leave: no reply to CheckRisk from 'risk': its receiver had finished"
            )
            await probe.send(CHEAP)
            probe.bury(await probe.expect(CheckRisk), KeyError("limits"))
            assert "its handler raised KeyError: 'limits'" in (await probe.expect(Report)).text
            with pytest.raises(
                ValueError, match="'trader' has not sent this very Trade: give one that came out"
            ):
                probe.bury(Trade("A", 1.0))

    within(10, main())


def test_the_time_limit_of_an_ask_comes_when_the_clock_is_advanced() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            await probe.send(CHEAP)
            risk = await probe.expect(CheckRisk)
            await probe.advance(2)
            assert await probe.expect(Report) == Report(
                "no leave: 'risk' did not reply to CheckRisk within 2 s"
            )
            assert not risk.reply.send(True)
            assert probe.instance.seconds == 2

    within(10, main())


def test_an_unanswered_ask_does_not_hold_up_the_end() -> None:
    async def main() -> None:
        began = asyncio.get_running_loop().time()
        async with alone(House, "trader", Trader()) as probe:
            await probe.send(CHEAP)
            risk = await probe.expect(CheckRisk)
            assert not risk.reply.done
        assert asyncio.get_running_loop().time() - began < 0.5
        assert "no leave: no reply to CheckRisk" in probe.sent[-1].text

    within(10, main())


def test_urgent_messages_overtake_and_a_full_lane_drops_when_its_time_has_come() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            await probe.send(CHEAP)
            first = await probe.expect(CheckRisk)
            assert await probe.send(Quote("B", 1.0))
            assert probe.try_send(Quote("C", 1.0))
            late = asyncio.create_task(probe.send(Quote("D", 1.0)))
            await probe.send(Cancel("A"))
            await probe.advance(0.4)
            assert not late.done()
            await probe.advance(0.1)
            assert await late is False
            assert probe.meters.dropped_by == {"waited": 1}
            assert probe.meters.blocked_seconds == pytest.approx(0.5)
            assert not await probe.send(Quote("E", 1.0)), "the lane is marked, so nothing waits any more"
            first.reply.send(True)
            (await probe.expect(CheckRisk)).reply.send(True)
            (await probe.expect(CheckRisk)).reply.send(False)
            await probe.settle()
            assert probe.instance.orders == ["buy A", "cancel A", "buy B"]

    within(10, main())


def test_a_send_that_finds_no_room_is_told_of_and_withdrawn() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            await probe.send(CHEAP)
            for _ in range(2):
                await probe.send(CHEAP)
            with pytest.raises(AssertionError) as failed:
                await probe.send(Quote("B", 1.0), timeout=0.05)
            assert str(failed.value).startswith("'trader' had no room for Quote within 0.05 s; it is at ")
            assert str(failed.value).endswith(
                "time stands still, and await probe.advance(1) brings what is due"
            )
            assert "test_trading.py:" in str(failed.value)
            assert probe.meters.waiting == 0

    within(10, main())


def test_it_starts_again_on_a_fresh_instance_with_one_timer() -> None:
    async def main() -> None:
        Trader.made = 0
        async with alone(House, "trader", deferred(Trader)) as probe:
            before = probe.instance
            await probe.advance(3)
            assert before.seconds == 3
            await probe.send(Quote("A", -1.0))
            await probe.settle()
            assert told(probe.letters) == [(Quote("A", -1.0), "trader", "failed")]
            with pytest.raises(
                AssertionError, match="it has failed and is to start again; time stands still"
            ):
                await probe.expect(Trade, timeout=0.01)
            await probe.advance(4.9)
            assert Trader.made == 1
            await probe.advance(0.1)
            assert (Trader.made, probe.meters.restarts) == (2, 1)
            assert probe.instance is not before
            assert len([each for each in probe.sent if isinstance(each, Subscribe)]) == 2
            await probe.advance(10)
            assert (before.seconds, probe.instance.seconds) == (3, 10)
            await probe.advance(20)
            assert probe.sent[-1] == Report("the feed is quiet")
            assert probe.log[-1].time == pytest.approx(38)

    within(10, main())


def test_too_many_failures_are_for_good() -> None:
    async def main() -> None:
        with pytest.raises(OrchestraError, match="'trader' of House failed: ValueError: a negative price"):
            async with alone(House, "trader", Trader()) as probe:
                for _ in range(3):
                    await probe.send(Quote("A", -1.0))
                    await probe.advance(5)
                assert probe.ended
                with pytest.raises(OrchestraError):
                    await probe.wait()
                raise OrchestraError("'trader' of House failed: ValueError: a negative price; told once")

    within(10, main())


def test_the_failure_comes_out_with_the_error_of_the_block_as_its_context() -> None:
    async def main() -> None:
        with pytest.raises(OrchestraError, match="a negative price") as caught:
            async with alone(House, "trader", Trader()) as probe:
                for _ in range(3):
                    await probe.send(Quote("A", -1.0))
                    await probe.advance(5)
                assert probe.sent == []
        assert isinstance(caught.value.__context__, AssertionError)

    within(10, main())


def test_the_test_asks_it() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            assert await probe.ask(Position) == 0
            await probe.send(CHEAP)
            risk = await probe.expect(CheckRisk)
            with pytest.raises(
                AssertionError, match=r"'trader' did not reply to Position within 0.05 s; it is at"
            ):
                await probe.ask(Position, timeout=0.05)
            with pytest.raises(
                UndeclaredMessage, match="CheckRisk goes to 'risk', and only 'trader' is here"
            ):
                await probe.ask(lambda reply: CheckRisk(CHEAP, reply))
            with pytest.raises(TypeError, match="ask takes a function that makes the message"):
                await probe.ask(Quote("A", 1.0))  # type: ignore[call-overload]  # that is the mistake
            risk.reply.send(True)
            await probe.settle()
            assert await probe.ask(Position) == 1
            assert probe.meters.late_replies == 1

    within(10, main())


def test_a_test_that_waits_for_what_only_it_could_do_is_told_where_the_subsystem_stands() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            await probe.send(CHEAP)
            with pytest.raises(
                AssertionError, match=r"'trader' has not ended within 0.05 s; it is at .*_consider"
            ):
                await probe.drain(timeout=0.05)
            (await probe.expect(CheckRisk)).reply.send(False)
            await probe.drain()
            assert probe.ended
        async with alone(House, "trader", Trader()) as probe:
            with pytest.raises(
                AssertionError, match=r"'trader' has not ended within 0.05 s; it waits for a message"
            ):
                await probe.wait(timeout=0.05)

    within(10, main())


def test_a_message_to_several_subscribers_goes_to_it_alone() -> None:
    async def main() -> None:
        async with alone(House, "tape", Tape()) as probe:
            assert await probe.send(Trade("A", 1.0))
            assert await probe.send(Box.seal(Trade("B", 1.0)))
            await probe.settle()
            assert probe.instance.got == [Trade("A", 1.0), Trade("B", 1.0)]
            assert probe.sent == []
            with pytest.raises(
                AssertionError, match="it declares that it sends nothing; it waits for a message"
            ):
                await probe.expect(Position, timeout=0.01)

    within(10, main())


class Doubled(Wrapper[In, Out]):
    async def handle(self, ctx: Context[In, Out, Any], message: In) -> None:
        await super().handle(ctx, message)
        await super().handle(ctx, message)


def test_it_may_be_wrapped() -> None:
    async def main() -> None:
        async with alone(House, "trader", recorded(Doubled(Trader()))) as probe:
            await probe.send(Cancel("A"))
            await probe.settle()
            assert probe.instance.received == [Cancel("A")]
            assert probe.instance.hooks == ["started"]
            trader = probe.instance.inner.inner
            assert isinstance(trader, Trader)
            assert trader.orders == ["cancel A"] * 2

    within(10, main())


def test_each_life_may_be_recorded() -> None:
    async def main() -> None:
        lives: list[Any] = []

        def made() -> Any:
            lives.append(recorded(Trader()))
            return lives[-1]

        async with alone(House, "trader", deferred(made)) as probe:
            await probe.send(Quote("A", -1.0))
            await probe.advance(5)
            await probe.send(Cancel("A"))
            await probe.settle()
        assert [life.hooks for life in lives] == [["started", "stopped"], ["started", "stopped"]]
        assert [life.received for life in lives] == [[Quote("A", -1.0)], [Cancel("A")]]

    within(10, main())


def test_nothing_is_taken_after_the_end() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            await probe.stop()
            assert probe.ended
            for verb in (probe.send, probe.try_send):
                with pytest.raises(
                    OrchestraError, match="House takes nothing more from outside: it has ended"
                ):
                    outcome = verb(CHEAP)
                    assert not isinstance(outcome, bool)
                    await outcome
            with pytest.raises(OrchestraError, match="it has ended"):
                probe.signal(Close())
            with pytest.raises(OrchestraError, match="it has ended"):
                await probe.ask(Position)
            with pytest.raises(AssertionError, match="has sent no Trade and has ended; what it sent"):
                await probe.expect(Trade)

    within(10, main())


class Guard(Actor[CheckRisk, CheckRisk]):
    """Hands each request on to where the test says."""

    def __init__(self) -> None:
        self.to: Recipient[CheckRisk] | None = None

    async def handle(self, ctx: Any, message: CheckRisk) -> None:
        assert self.to is not None
        await self.to.ask(lambda reply: CheckRisk(message.quote, reply))


@orchestra(signal=Close, event=Close)
class Selfish:
    guard: Guard = subsystem()


def test_a_recipient_of_the_test_leads_to_where_the_type_goes() -> None:
    async def main() -> None:
        async with alone(House, "trader", Trader()) as probe:
            assert await probe.recipient(Quote).send(CHEAP)
            assert (await probe.expect(CheckRisk)).quote == CHEAP
            await probe.recipient(Trade).send(Trade("X", 2.0))
            assert await probe.expect(Trade) == Trade("X", 2.0)
            with pytest.raises(UndeclaredMessage, match="'the test' cannot have a recipient of Close"):
                probe.recipient(Close)
        guard = Guard()
        with pytest.raises(Deadlock):
            async with alone(Selfish, "guard", guard) as other:
                guard.to = other.recipient(CheckRisk)
                with pytest.raises(NoReply):
                    await other.ask(lambda reply: CheckRisk(CHEAP, reply))

    within(10, main())
