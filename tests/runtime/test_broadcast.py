"""Messages with several receivers: fan-out, one packing, cancelling, and subscribers that end."""

import asyncio
from typing import Any

import msgspec
import pytest

from orchestra import (
    Block,
    Box,
    BoxError,
    Closed,
    Drop,
    DropOldest,
    Fail,
    Full,
    OrchestraError,
    Priority,
    UndeclaredPriority,
    orchestra,
    start,
    subsystem,
)
from orchestra.overflow import Overflow
from tests.runtime.clockwork import run
from tests.runtime.players import Bell, Calls, Collects, Gated, Knock, Runs, turns


class Sample(msgspec.Struct, frozen=True):
    n: int
    tags: list[str] = []


class Finer(Sample, frozen=True):
    """A subclass: it goes the general way."""


KINDS = pytest.mark.parametrize("kind", [Sample, Finer])


def numbers(messages: list[Any]) -> list[int]:
    return [message.n for message in messages]


def fan(first: Any, second: Any, one: dict[str, Any] | None = None, two: dict[str, Any] | None = None) -> Any:
    """An orchestra of two subscribers, each with its options."""
    first_kind, second_kind = type(first), type(second)

    @orchestra(signal=Bell, event=Knock)
    class Fan:
        first: first_kind = subsystem(subscribes=[Sample], **(one or {}))
        second: second_kind = subsystem(subscribes=[Sample], **(two or {}))

    return Fan(first=first, second=second)


async def fill(running: Any, worker: Gated, count: int, kind: type = Sample) -> None:
    """Let a gated worker begin, and fill its lane."""
    for n in range(count + 1):
        assert running.try_send(kind(n))
        await turns()
    assert len(worker.begun) == 1


def until_told(gate: asyncio.Event) -> Runs:
    """It takes one message, and ends when the gate is open."""

    async def live(ctx: Any) -> None:
        await ctx.recv()
        await gate.wait()

    return Runs(live)


@KINDS
def test_each_subscriber_gets_each_message_in_order(kind: type) -> None:
    async def main() -> None:
        first, second = Calls(), Collects()
        async with start(fan(first, second, None, {"message_capacity": 3})) as running:
            for n in range(50):
                assert await running.send(kind(n)) is True
            await running.drain()
        assert numbers(first.got) == numbers(second.got) == list(range(50))

    run(main())


@KINDS
@pytest.mark.parametrize("boxed", [(True, True), (True, False), (False, False)])
def test_all_boxed_receivers_share_one_packing(
    kind: type, boxed: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        first, second = Gated(), Gated()
        async with start(fan(first, second, {"boxed": boxed[0]}, {"boxed": boxed[1]})) as running:
            await running.send(kind(0))
            await turns()
            message = kind(1, ["a"])
            await running.send(message)
            entries = [
                running._assembly.ensemble.inboxes[name].lanes[0].queue[0] for name in ("first", "second")
            ]
            assert [isinstance(entry, Box) for entry in entries] == list(boxed)
            if all(boxed):
                assert entries[0] is entries[1]
            first.gate.set(), second.gate.set()
            await running.drain()
        for worker, packed in zip((first, second), boxed, strict=True):
            assert worker.got[1] == message
            assert (worker.got[1] is message) is not packed
        if all(boxed):
            assert first.got[1].tags is not second.got[1].tags, "each has a copy of its own"

    run(main())


def test_what_cannot_be_packed_or_has_no_lane_goes_to_nobody() -> None:
    async def main() -> None:
        first, second = Calls(), Calls()
        lanes = [Priority.HIGH, Priority.NORMAL]
        async with start(fan(first, second, {"priorities": lanes}, {"boxed": True})) as running:
            with pytest.raises(BoxError):
                await running.send(Sample("no number"))  # type: ignore[arg-type]  # that is the mistake
            with pytest.raises(UndeclaredPriority):
                await running.send(Sample(1), priority=Priority.HIGH)
            await running.drain()
        assert first.got == second.got == []

    run(main())


@KINDS
def test_the_message_is_with_the_quick_receiver_while_the_send_waits_for_the_slow_one(kind: type) -> None:
    async def main() -> None:
        first, second = Calls(), Gated()
        async with start(fan(first, second, None, {"message_capacity": 1})) as running:
            await fill(running, second, 1)
            sending = asyncio.ensure_future(running.send(kind(5)))
            await turns()
            assert numbers(first.got) == [0, 1, 5]
            assert not sending.done()
            second.gate.set()
            assert await sending is True
            await running.drain()
        assert numbers(second.got) == [0, 1, 5]

    run(main())


@KINDS
def test_the_waits_run_side_by_side(kind: type) -> None:
    async def main() -> None:
        first, second = Gated(), Gated()
        one, two = ({"message_capacity": 1, "overflow": Drop(wait)} for wait in (0.3, 0.2))
        async with start(fan(first, second, one, two)) as running:
            await fill(running, first, 1)
            loop = asyncio.get_running_loop()
            began = loop.time()
            assert await running.send(kind(5)) is False
            assert loop.time() - began == pytest.approx(0.3, abs=1e-6)
            assert [dict(running.meters()[name].dropped_by) for name in ("first", "second")] == [
                {"waited": 1}
            ] * 2
            first.gate.set(), second.gate.set()

    run(main())


@KINDS
@pytest.mark.parametrize("waiting", [1, 2])
def test_cancelling_withdraws_the_message_where_it_still_waits(kind: type, waiting: int) -> None:
    async def main() -> None:
        first, second = Gated(), Gated()
        capacity = {"message_capacity": 1 if waiting == 2 else 9}
        async with start(fan(first, second, capacity, {"message_capacity": 1})) as running:
            await fill(running, second, 1)
            sending = asyncio.ensure_future(running.send(kind(5)))
            await turns()
            assert [running.meters()[name].waiting for name in ("first", "second")] == [waiting - 1, 1]
            sending.cancel()
            await turns()
            assert sending.cancelled()
            first.gate.set(), second.gate.set()
            await running.drain()
            meters = running.meters()
        there = [5] if waiting == 1 else []
        assert numbers(first.got) == [0, 1, *there]
        assert numbers(second.got) == [0, 1]
        assert [meters[name].sent for name in ("first", "second")] == [2 + len(there), 2]
        assert [meters[name].dropped for name in ("first", "second")] == [0, 0]

    run(main())


@pytest.mark.parametrize("after", range(6))
def test_a_send_that_is_cancelled_at_any_turn_is_with_each_receiver_once_or_not_at_all(after: int) -> None:
    async def main() -> None:
        first, second = Gated(), Gated()
        one = {"message_capacity": 1}
        async with start(fan(first, second, one, one)) as running:
            await fill(running, first, 1)
            sending = asyncio.ensure_future(running.send(Sample(5)))
            await turns()
            first.gate.set()
            await turns(after)
            sending.cancel()
            await turns()
            second.gate.set()
            await running.drain()
            meters = running.meters()
        assert sending.cancelled()
        assert numbers(second.got) == [0, 1]
        assert numbers(first.got) in ([0, 1], [0, 1, 5])
        assert meters["first"].sent == meters["first"].received == len(first.got)

    run(main())


@KINDS
@pytest.mark.parametrize("overflow", [Block(), Drop(0.01), DropOldest(), Fail()], ids=repr)
def test_a_subscriber_that_has_ended_is_passed_over(kind: type, overflow: Overflow) -> None:
    async def main() -> None:
        gate, second = asyncio.Event(), Calls()
        gate.set()
        async with start(fan(until_told(gate), second, {"overflow": overflow})) as running:
            await running.send(kind(0))
            await turns()
            for n in range(1, 4):
                assert await running.send(kind(n)) is True
                assert running.try_send(kind(n)) is True
            await running.drain()
            meters = running.meters()["first"]
        assert (meters.dropped, dict(meters.dropped_by)) == (6, {"closed": 6})
        assert numbers(second.got) == [0, 1, 1, 2, 2, 3, 3]

    run(main())


@KINDS
@pytest.mark.parametrize("quick", [True, False])
def test_a_subscriber_that_ends_while_the_send_waits_for_it_is_passed_over(kind: type, quick: bool) -> None:
    async def main() -> None:
        gate, second = asyncio.Event(), Gated()
        capacity = {"message_capacity": 9 if quick else 1}
        app = fan(until_told(gate), second, {"message_capacity": 1}, capacity)
        async with start(app, dead_letters=lambda _: None) as running:
            await fill(running, second, 1)
            sending = asyncio.ensure_future(running.send(kind(5)))
            await turns()
            gate.set()
            await turns()
            assert sending.done() is quick
            second.gate.set()
            assert await sending is True
            await running.drain()
            assert dict(running.meters()["first"].dropped_by) == {"closed": 1}
        assert numbers(second.got) == [0, 1, 5]

    run(main())


@KINDS
def test_a_marked_subscriber_that_has_ended_counts_as_closed(kind: type) -> None:
    async def main() -> None:
        gate, second = asyncio.Event(), Calls()
        app = fan(until_told(gate), second, {"message_capacity": 1, "overflow": Drop(0.01)})
        async with start(app, dead_letters=lambda _: None) as running:
            for n in range(4):
                await running.send(Sample(n))
                await turns()
            assert dict(running.meters()["first"].dropped_by) == {"waited": 1, "congested": 1}
            gate.set()
            await turns()
            assert await running.send(kind(7)) is True
            assert running.meters()["first"].dropped_by["closed"] == 1

    run(main())


@KINDS
@pytest.mark.parametrize("waits", [False, True])
def test_when_all_subscribers_have_ended_the_send_says_closed(kind: type, waits: bool) -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        first: Runs = subsystem(subscribes=[Sample], message_capacity=1)
        second: Runs = subsystem(subscribes=[Sample], message_capacity=1)
        keeper: Calls = subsystem(consumes=Knock)

    async def main() -> None:
        gate, message = asyncio.Event(), kind(9)
        app = App(first=until_told(gate), second=until_told(gate), keeper=Calls())
        async with start(app, dead_letters=lambda _: None) as running:
            for n in range(2):
                await running.send(kind(n))
                await turns()
            sending = asyncio.ensure_future(running.send(message)) if waits else None
            await turns()
            gate.set()
            await turns()
            with pytest.raises(Closed) as caught:
                await (sending or running.send(message))
            assert caught.value.message is message
            with pytest.raises(Closed):
                running.try_send(message)
            assert running.meters()["first"].dropped == 0

    run(main())


@KINDS
def test_a_lane_that_fails_does_so_when_the_others_have_the_message(kind: type) -> None:
    async def main() -> None:
        first, second = Gated(), Gated()
        app = fan(first, second, {"message_capacity": 1, "overflow": Fail()}, {"message_capacity": 2})
        async with start(app) as running:
            await fill(running, second, 1)
            message = kind(5)
            with pytest.raises(Full) as caught:
                await running.send(message)
            assert (caught.value.message, caught.value.subsystem) == (message, "first")
            with pytest.raises(Full):
                running.try_send(kind(6))
            first.gate.set(), second.gate.set()
            await running.drain()
        assert numbers(first.got) == [0, 1]
        assert numbers(second.got) == [0, 1, 5]

    run(main())


@KINDS
def test_each_subscriber_drops_by_its_own_policy(kind: type) -> None:
    async def main() -> None:
        first, second = Gated(), Gated()
        one = {"message_capacity": 2, "overflow": Drop(0.01)}
        two = {"message_capacity": 2, "overflow": DropOldest()}
        async with start(fan(first, second, one, two)) as running:
            await fill(running, first, 2)
            assert [await running.send(kind(n)) for n in (3, 4, 5)] == [False] * 3
            assert running.try_send(kind(6)) is False
            meters = running.meters()
            assert dict(meters["first"].dropped_by) == {"waited": 1, "congested": 3}
            assert dict(meters["second"].dropped_by) == {"oldest": 4}
            assert (meters["second"].sent, meters["second"].evicted) == (7, 4)
            first.gate.set(), second.gate.set()
            await running.drain()
        assert numbers(first.got) == [0, 1, 2]
        assert numbers(second.got) == [0, 5, 6]

    run(main())


def test_a_subscriber_with_a_priority_method_picks_the_lane_for_itself() -> None:
    class Picky(Gated):
        @staticmethod
        def priority(message: Sample) -> Priority:
            return Priority.HIGH if message.n > 10 else Priority.NORMAL

    async def main() -> None:
        first, second = Picky(), Gated()
        async with start(fan(first, second, {"priorities": [Priority.HIGH, Priority.NORMAL]})) as running:
            for n in (0, 1, 2, 11, 12):
                await running.send(Sample(n))
                await turns()
            first.gate.set(), second.gate.set()
            await running.drain()
        assert numbers(first.got) == [0, 11, 12, 1, 2]
        assert numbers(second.got) == [0, 1, 2, 11, 12]

    run(main())


def test_nothing_is_collected_before_the_start() -> None:
    """A subscription is a declaration: it has no inbox until `start`."""

    async def main() -> None:
        first, second = Calls(), Calls()
        app = fan(first, second)
        await turns()
        async with start(app) as running:
            assert [meters.queued for meters in running.meters().values()] == [0, 0]
            await running.send(Sample(1))
            await running.drain()
        assert numbers(first.got) == [1]

    run(main())


def test_many_subscribers_that_take_nothing_hold_no_more_than_their_capacities() -> None:
    async def main() -> None:
        fields = {
            f"s{n}": subsystem(subscribes=[Sample], message_capacity=1, overflow=Drop(0)) for n in range(50)
        }
        space = {"__annotations__": dict.fromkeys(fields, Gated), "__module__": __name__, **fields}
        many = orchestra(signal=Bell, event=Knock)(type("Many", (), space))
        workers = {name: Gated() for name in fields}
        async with start(many(**workers), dead_letters=lambda _: None) as running:
            for n in range(20):
                await running.send(Sample(n))
                await turns(2)
            meters = running.meters().values()
            assert sum(each.queued for each in meters) == 50
            assert {each.dropped for each in meters} == {18}
            for worker in workers.values():
                worker.gate.set()

    run(main())


def test_a_failing_subscriber_fails_the_orchestra_and_frees_the_sender() -> None:
    def fail(ctx: Any, message: Sample) -> None:
        raise ValueError("no")

    async def main() -> None:
        with pytest.raises(OrchestraError):
            async with start(fan(Calls(fail), Calls()), dead_letters=lambda _: None) as running:
                await running.send(Sample(1))
                await running.wait()

    run(main())
