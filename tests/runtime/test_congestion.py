"""The congestion rule in whole orchestras, on a clock of the test's own: waits, marks, and who is told."""

import asyncio
import logging
import subprocess
import sys
import textwrap
import time
from typing import Any

import attrs
import pytest
import uvloop

from orchestra import (
    Block,
    BlockFirst,
    Closed,
    Drop,
    Fail,
    Full,
    OrchestraError,
    Priority,
    orchestra,
    start,
    subsystem,
)
from orchestra.runtime.pressure import Congestion
from tests.runtime.clockwork import run
from tests.runtime.players import Awaits, Bell, Calls, Gated, Job, Knock, Note, Runs, alone, turns, within

HIGH, NORMAL = Priority.HIGH, Priority.NORMAL


def now() -> float:
    return asyncio.get_running_loop().time()


async def sent_in(sending: Any) -> tuple[Any, float]:
    """What a send gives, and how long it took."""
    began = now()
    return await sending, now() - began


async def filled(running: Any, count: int, **how: Any) -> None:
    """Let the receiver begin with one message, and fill its lane."""
    assert await running.send(Job(-1), **how)
    await turns()
    for n in range(count):
        assert running.try_send(Job(n), **how)


def numbers(messages: list[Any]) -> list[int]:
    return [message.n for message in messages]


def test_the_first_drop_comes_after_the_wait_and_further_ones_at_once() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=2, overflow=Drop(0.01))) as running:
            await filled(running, 2)
            assert await sent_in(running.send(Job(7))) == (False, pytest.approx(0.01, abs=1e-6))
            for _ in range(5):
                assert await sent_in(running.send(Job(8))) == (False, 0)
            meters = running.meters()["worker"]
            assert dict(meters.dropped_by) == {"waited": 1, "congested": 5}
            assert (meters.dropped, meters.blocked) == (6, 1)
            assert meters.blocked_seconds == pytest.approx(0.01, abs=1e-6)
            assert meters.lanes[NORMAL].congested
            worker.gate.set()

    run(main())


def test_the_first_send_after_a_drain_is_accepted() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1, overflow=Drop(0.01))) as running:
            await filled(running, 1)
            assert not await running.send(Job(1))
            worker.gate.set()
            await turns()
            assert not running.meters()["worker"].lanes[NORMAL].congested
            assert await sent_in(running.send(Job(2))) == (True, 0)
            await running.drain()
        assert numbers(worker.got) == [-1, 0, 2]

    run(main())


def test_one_take_ends_the_mark_and_the_next_drop_waits_again() -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(1))
        async with start(alone(worker, message_capacity=1, overflow=Drop(0.01))) as running:
            await filled(running, 1)
            for _ in range(2):
                assert await sent_in(running.send(Job(1))) == (False, pytest.approx(0.01, abs=1e-6))
                assert await sent_in(running.send(Job(1))) == (False, 0)
                before = len(worker.begun)
                while len(worker.begun) == before:
                    await asyncio.sleep(0.05)
                assert await sent_in(running.send(Job(2))) == (True, 0)

    run(main())


def test_room_that_comes_within_the_wait_is_used_and_marks_nothing() -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(0.004))
        async with start(alone(worker, message_capacity=1, overflow=Drop(0.01))) as running:
            assert [await running.send(Job(n)) for n in range(50)] == [True] * 50
            await running.drain()
            meters = running.meters()["worker"]
        assert (meters.dropped, meters.received) == (0, 50)
        assert meters.blocked == 49

    run(main())


def test_a_burst_is_not_dropped_while_the_rate_fits() -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(0.001))
        outcomes = []
        async with start(alone(worker, message_capacity=16, overflow=Drop(0.005))) as running:
            for _ in range(20):
                outcomes += [await running.send(Job(n)) for n in range(20)]
                await asyncio.sleep(0.05)
            await running.drain()
        assert all(outcomes)

    run(main())


@pytest.mark.parametrize("verb", ["send", "try_send"])
def test_a_try_send_drops_at_once_and_does_not_mark(verb: str) -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1, overflow=Drop(0.01))) as running:
            await filled(running, 1)
            for _ in range(3):
                assert running.try_send(Job()) is False
            lane = running.meters()["worker"].lanes[NORMAL]
            assert (lane.congested, dict(lane.dropped_by)) == (False, {"full": 3})
            if verb == "send":
                assert await sent_in(running.send(Job())) == (False, pytest.approx(0.01, abs=1e-6))
                assert running.try_send(Job()) is False
                assert running.meters()["worker"].dropped_by["congested"] == 1
            worker.gate.set()

    run(main())


def test_a_wait_of_nothing_drops_and_marks_at_once() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1, overflow=Drop(0))) as running:
            await filled(running, 1)
            for _ in range(3):
                assert await sent_in(running.send(Job())) == (False, 0)
            assert dict(running.meters()["worker"].dropped_by) == {"waited": 1, "congested": 2}
            worker.gate.set()

    run(main())


def test_a_drop_send_is_not_stuck_behind_a_blocking_one() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1)) as running:
            await filled(running, 1)
            blocking = asyncio.ensure_future(running.send(Job(1)))
            await turns()
            dropping = sent_in(running.send(Job(2), overflow=Drop(0.02)))
            assert await dropping == (False, pytest.approx(0.02, abs=1e-6))
            assert not blocking.done()
            worker.gate.set()
            assert await blocking is True
            await running.drain()
        assert numbers(worker.got) == [-1, 0, 1]

    run(main())


def test_a_drop_send_that_is_let_in_in_time_comes_after_the_blocking_one_before_it() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1)) as running:
            await filled(running, 1)
            policies = [Block(), Drop(5), BlockFirst(), Drop(5)]
            waiting = [
                asyncio.ensure_future(running.send(Job(n), overflow=policy))
                for n, policy in enumerate(policies, 1)
            ]
            await turns()
            assert running.meters()["worker"].waiting == 4
            worker.gate.set()
            assert await asyncio.gather(*waiting) == [True] * 4
            await running.drain()
        assert numbers(worker.got) == [-1, 0, 1, 2, 3, 4]

    run(main())


def test_a_mark_made_by_one_send_does_not_touch_blocking_sends() -> None:
    """Also where other lanes of the same receiver have Drop, so that the generated send looks for marks."""

    async def main() -> None:
        worker = Gated()
        app = alone(worker, message_capacity={HIGH: 1, NORMAL: 1}, overflow={NORMAL: Drop(0.01)})
        async with start(app) as running:
            await filled(running, 1, priority=HIGH)
            assert not await running.send(Job(5), priority=HIGH, overflow=Drop(0.01))
            assert running.meters()["worker"].lanes[HIGH].congested
            with pytest.raises(Full):
                running.try_send(Job(6), priority=HIGH)
            blocking = asyncio.ensure_future(running.send(Job(7), priority=HIGH))
            await asyncio.sleep(0.1)
            assert not blocking.done()
            worker.gate.set()
            assert await blocking is True
            await running.drain()
        assert numbers(worker.got) == [-1, 0, 7]

    run(main())


def test_a_marked_bulk_lane_does_not_touch_the_urgent_lane_nor_signals() -> None:
    async def main() -> None:
        worker = Gated()
        app = alone(worker, message_capacity={HIGH: 2, NORMAL: 1}, overflow=Drop(0.01))
        async with start(app) as running:
            await filled(running, 1)
            assert not await running.send(Job(1))
            assert not await running.send(Job(2))
            lanes = running.meters()["worker"].lanes
            assert (lanes[NORMAL].congested, lanes[HIGH].congested) == (True, False)
            assert await sent_in(running.send(Job(10), priority=HIGH)) == (True, 0)
            await running.broadcast(Bell(1))
            assert running.try_send(Job(11), priority=HIGH)
            assert running.meters()["worker"].lanes[HIGH].dropped == 0
            worker.gate.set()
            await running.drain()
        assert numbers(worker.got) == [-1, 10, 11, 0]
        assert Bell(1) in worker.hooks

    run(main())


def test_a_mark_on_a_bulk_lane_stays_while_only_the_urgent_lane_is_served() -> None:
    async def main() -> None:
        permits = asyncio.Semaphore(1)

        async def live(ctx: Any) -> None:
            while True:
                await permits.acquire()
                await ctx.recv()

        app = alone(Runs(live), message_capacity={HIGH: 9, NORMAL: 1})
        async with start(app) as running:
            await filled(running, 1)
            assert not await running.send(Job(1), overflow=Drop(0.01))
            for n in range(5):
                running.try_send(Job(10 + n), priority=HIGH)
                permits.release()
                await turns()
                assert running.meters()["worker"].lanes[NORMAL].congested
            permits.release()
            await turns()
            lane = running.meters()["worker"].lanes[NORMAL]
            assert (lane.queued, lane.congested) == (0, False)

    run(main())


def test_a_synchronous_receiver_that_serves_the_urgent_lane_does_not_end_the_mark_of_the_bulk_lane() -> None:
    async def main() -> None:
        app = alone(Calls(), message_capacity={HIGH: 9, NORMAL: 1}, evict_after=1)
        async with start(app) as running:
            inbox = running._assembly.ensemble.inboxes["worker"]
            lane = inbox.by_priority[NORMAL]
            await running.send(Job(0))
            await turns()
            lane.queue.append(Job(1))  # as if a handler had been long: it is full and marked
            lane.congested = lane.stalled = lane.pressed = True
            lane.relieve()  # what a batch does at its end, if it took from the other lane alone
            assert (lane.congested, lane.stalled, lane.pressed) == (True, True, True)
            await running.send(Job(2), priority=HIGH)
            await turns()
            assert (lane.congested, lane.stalled, len(lane.queue)) == (False, False, 0)

    run(main())


def test_the_place_of_a_cancelled_sender_leaves_no_mark_on_a_lane_with_room() -> None:
    async def main() -> None:
        permits = asyncio.Semaphore(1)

        async def live(ctx: Any) -> None:
            while True:
                await permits.acquire()
                await ctx.recv()

        worker = Runs(live)
        async with start(alone(worker, message_capacity=1)) as running:
            await filled(running, 1)
            blocking = asyncio.ensure_future(running.send(Job(1)))
            await turns()
            lane = running._assembly.ensemble.inboxes["worker"].by_priority[NORMAL]
            lane.queue.popleft()
            lane.relieve()  # the blocking sender is granted the place, and has not woken
            assert await running.send(Job(2), overflow=Drop(0)) is False
            blocking.cancel()
            await turns()
            assert not running.meters()["worker"].lanes[NORMAL].congested
            assert running.try_send(Job(3))
            assert await sent_in(running.send(Job(4), overflow=Drop(0.01))) == (
                False,
                pytest.approx(0.01, abs=1e-6),
            )

    run(main())


def test_after_a_stop_a_marked_lane_says_closed_as_any_other() -> None:
    async def main() -> None:
        outcomes: list[Any] = []

        async def publish(ctx: Any) -> None:
            for n in range(4):
                outcomes.append(await ctx.send(Note(n)))
            await asyncio.sleep(1)
            try:
                await ctx.send(Note(9))
            except Closed as closed:
                outcomes.append(closed.message)
                raise

        @orchestra(signal=Bell, event=Knock)
        class App:
            source: Runs = subsystem(sends=[Note])
            sink: Gated = subsystem(consumes=Note, message_capacity=1, overflow=Drop(0.01))

        sink = Gated()
        async with start(App(source=Runs(publish), sink=sink), dead_letters=lambda _: None) as running:
            await asyncio.sleep(0.5)
            assert running.meters()["sink"].lanes[NORMAL].congested
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            assert not running.meters()["sink"].lanes[NORMAL].congested
            sink.gate.set()
            await stopping
        assert outcomes[-1] is True or outcomes[-1] == Note(9)
        assert False in outcomes

    run(main())


def test_a_finished_receiver_that_was_marked_says_closed() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def live(ctx: Any) -> None:
            await ctx.recv()
            await gate.wait()

        app = alone(Runs(live), message_capacity=1, overflow=Drop(0.01))
        async with start(app, dead_letters=lambda _: None) as running:
            await filled(running, 1)
            assert not await running.send(Job(1))
            assert not await running.send(Job(2))
            gate.set()
            await turns()
            with pytest.raises(Closed) as caught:
                await running.send(Job(3))
            assert caught.value.message == Job(3)
            with pytest.raises(Closed):
                running.try_send(Job(4))

    run(main())


POLICIES = [Block(), Fail(), Drop(5), Drop(0), BlockFirst()]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_stop_while_senders_wait_lets_each_go_with_its_message(policy: Any) -> None:
    async def main() -> None:
        worker = Gated()
        letters: list[Any] = []
        app = alone(worker, message_capacity=1, overflow=policy)
        async with start(app, dead_letters=letters.append) as running:
            await filled(running, 1)
            sends = [asyncio.ensure_future(running.send(Job(n))) for n in (1, 2)]
            await turns()
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            assert all(send.done() for send in sends)
            for n, send in enumerate(sends, 1):
                if isinstance(error := send.exception(), Closed | Full):
                    assert error.message == Job(n)
                else:
                    assert error is None and send.result() is False
            worker.gate.set()
            await stopping
            meters = running.meters()["worker"]
        assert (meters.waiting, meters.queued, meters.sent) == (0, 0, 2)
        assert meters.received + meters.evicted == 2
        assert numbers([letter.message for letter in letters]) == [0]

    run(main())


def test_a_receiver_that_drops_to_itself_is_not_kept_waiting() -> None:
    outcomes: list[Any] = []

    async def again(ctx: Any, message: Job) -> None:
        if message.n < 0:
            outcomes.extend([await ctx.send(Job(1)), await ctx.send(Job(2))])

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Awaits = subsystem(consumes=Job, sends=[Job], message_capacity=1, overflow=Drop(0.5))

    async def main() -> None:
        worker = Awaits(again)
        async with start(App(worker=worker)) as running:
            await running.send(Job(-1))
            await running.drain()
        assert outcomes == [True, False]

    run(main())


@pytest.mark.parametrize("policy", [Block(), BlockFirst(), Fail()], ids=repr)
def test_a_publisher_that_subscribes_to_itself_gets_full_instead_of_hanging(policy: Any) -> None:
    async def again(ctx: Any, message: Job) -> None:
        while True:
            await ctx.send(Job(1))

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Awaits = subsystem(subscribes=[Job], sends=[Job], message_capacity=2, overflow=policy)
        other: Calls = subsystem(subscribes=[Job])

    async def main() -> None:
        with pytest.raises(OrchestraError) as caught:
            async with start(App(worker=Awaits(again), other=Calls())) as running:
                await running.send(Job(-1))
                await running.wait()
        assert isinstance(caught.value, Full) or isinstance(caught.value.__cause__, Full)

    run(main())


# who is told


def congested(changes: list[Congestion]) -> list[tuple[str, Priority, bool]]:
    return [(change.subsystem, change.priority, change.congested) for change in changes]


async def congest_and_recover(running: Any, worker: Gated, times: int) -> None:
    for _ in range(times):
        worker.gate.clear()
        await filled(running, 4)
        assert not await running.send(Job(1))
        assert not await running.send(Job(1))
        worker.gate.set()
        await turns()


def test_the_hook_is_told_once_of_congestion_and_once_of_recovery(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        worker, changes = Gated(), []
        app = alone(worker, message_capacity=4, overflow=Drop(0.01))
        async with start(app, on_congestion=changes.append) as running:
            await congest_and_recover(running, worker, 3)
        assert congested(changes) == [("worker", NORMAL, True), ("worker", NORMAL, False)] * 3
        assert [change.capacity for change in changes] == [4] * 6
        assert [change.queued for change in changes] == [4, 2] * 3
        assert changes[-1].dropped == 6
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            changes[0].dropped = 1

    with caplog.at_level(logging.INFO, "orchestra"):
        run(main())
    lines = [record for record in caplog.records if hasattr(record, "congested")]
    assert len(lines) == 1, "not more than one line a second for one lane"
    assert "the DATA lane of 'worker' is congested" in lines[0].getMessage()
    assert (lines[0].subsystem, lines[0].priority, lines[0].capacity) == ("worker", NORMAL, 4)  # type: ignore[attr-defined]
    assert lines[0].levelno == logging.WARNING


def test_the_log_leaves_out_changes_within_a_second_and_then_says_the_last(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=4, overflow=Drop(0.01))) as running:
            await congest_and_recover(running, worker, 2)
            await asyncio.sleep(2.5)

    with caplog.at_level(logging.INFO, "orchestra"):
        run(main())
    texts = [record.getMessage() for record in caplog.records if hasattr(record, "congested")]
    assert [text.partition(",")[0].partition("'worker' ")[2] for text in texts] == [
        "is congested",
        "has recovered",
    ]
    assert [text.partition(" (")[2] for text in texts] == ["", "2 changes not logged)"]


def test_a_hook_that_raises_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(change: Congestion) -> None:
        raise ValueError("no")

    async def main() -> None:
        worker = Gated()
        app = alone(worker, message_capacity=4, overflow=Drop(0.01))
        async with start(app, on_congestion=fail) as running:
            await congest_and_recover(running, worker, 1)
            assert running.meters()["worker"].dropped == 2
            await running.drain()
        assert len(worker.got) == 5

    run(main())
    failed = [record for record in caplog.records if "on_congestion hook failed" in record.getMessage()]
    assert len(failed) == 2 and all(record.exc_info for record in failed)


def test_a_hook_may_send_and_may_end_the_receiver() -> None:
    async def main() -> None:
        done: list[Any] = []

        def hook(change: Congestion) -> None:
            if change.congested:
                done.append(running.try_send(Job(50)))
                running._assembly.ensemble.stop_unless_stopping()

        worker = Gated()
        app = alone(worker, message_capacity=1, overflow=Drop(0.01))
        async with start(app, on_congestion=hook, dead_letters=lambda _: None) as running:
            await filled(running, 1)
            sends = [asyncio.ensure_future(running.send(Job(n))) for n in range(3)]
            await asyncio.sleep(0.02)
            assert [type(send.exception()) for send in sends].count(Closed) == 2
            assert sends[0].result() is False
            worker.gate.set()
        assert done == [False]

    run(main())


def test_a_hook_that_must_be_awaited_is_refused() -> None:
    async def hook(change: Congestion) -> None: ...

    with pytest.raises(TypeError, match="on_congestion takes a plain function"):
        start(alone(Calls()), on_congestion=hook)


# receivers that take nothing


def test_blocking_senders_are_freed_from_a_receiver_that_takes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1, evict_after=2)) as running:
            await filled(running, 1)
            first = asyncio.ensure_future(sent_in(running.send(Job(1))))
            await asyncio.sleep(0.9)
            second = asyncio.ensure_future(sent_in(running.send(Job(2))))
            assert await first == (False, pytest.approx(2, abs=1e-3))
            assert await second == (False, pytest.approx(1.1, abs=1e-3))
            for _ in range(3):
                assert await sent_in(running.send(Job(3))) == (False, 0)
            with pytest.raises(Full):
                running.try_send(Job(4))
            assert dict(running.meters()["worker"].dropped_by) == {"stalled": 5}
            worker.gate.set()
            await turns()
            worker.gate.clear()
            await filled(running, 1)
            waiting = asyncio.ensure_future(running.send(Job(5)))
            await asyncio.sleep(1)
            assert not waiting.done(), "it has taken a message since"
            worker.gate.set()
            assert await waiting is True
            await running.drain()
        assert numbers(worker.got) == [-1, 0, -1, 0, 5]

    run(main())
    lines = [record for record in caplog.records if "taken nothing" in record.getMessage()]
    assert [line.getMessage() for line in lines] == [
        "'worker' has taken nothing from its DATA lane for 2 s: its senders wait no longer"
    ]
    assert (lines[0].subsystem, lines[0].priority) == ("worker", "DATA")  # type: ignore[attr-defined]


@pytest.mark.parametrize("limit", [None, 2])
def test_a_receiver_that_is_only_slow_keeps_its_senders(limit: float | None) -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(1.5))
        async with start(alone(worker, message_capacity=1, evict_after=limit)) as running:
            assert [await running.send(Job(n)) for n in range(10)] == [True] * 10
            await running.drain()

    run(main())


def test_without_a_limit_a_sender_waits_as_long_as_it_takes() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1)) as running:
            await filled(running, 1)
            waiting = asyncio.ensure_future(running.send(Job(1)))
            await asyncio.sleep(100_000)
            assert not waiting.done()
            worker.gate.set()
            assert await waiting
            meters = running.meters()["worker"]
        assert (meters.blocked, meters.blocked_seconds) == (1, pytest.approx(100_000))

    run(main())


# the meters


def test_the_peak_is_the_capacity_once_a_send_found_the_lane_full() -> None:
    async def main() -> None:
        worker = Calls()
        async with start(alone(worker, message_capacity=3, overflow=Drop())) as running:
            for n in range(4):
                running.try_send(Job(n))
            await running.drain()
            assert (running.meters()["worker"].peak, running.meters()["worker"].queued) == (3, 0)

    run(main())


def test_meters_add_up_over_lanes_and_reasons() -> None:
    async def main() -> None:
        worker = Gated()
        app = alone(
            worker, message_capacity={HIGH: 1, NORMAL: 2}, overflow={HIGH: Fail(), NORMAL: Drop(0.01)}
        )
        async with start(app) as running:
            await filled(running, 2)
            running.try_send(Job(), priority=HIGH)
            with pytest.raises(Full):
                running.try_send(Job(), priority=HIGH)
            await running.send(Job())
            await running.send(Job())
            meters = running.meters()["worker"]
            high, normal = meters.lanes[HIGH], meters.lanes[NORMAL]
            assert (high.sent, high.queued, high.peak, high.dropped, high.blocked) == (1, 1, 1, 0, 0)
            assert (normal.sent, normal.received, normal.queued, normal.peak) == (3, 1, 2, 2)
            for name in ("sent", "received", "queued", "evicted", "dropped", "blocked", "blocked_seconds"):
                assert getattr(meters, name) == getattr(high, name) + getattr(normal, name)
            assert meters.dropped == sum(meters.dropped_by.values()) == 2
            assert meters.peak == 2
            worker.gate.set()

    run(main())


# real time


def _timed(loop_factory: Any, wait: float) -> list[float]:
    took = []

    async def main() -> None:
        worker = Gated()
        async with start(alone(worker, message_capacity=1, overflow=Drop(wait))) as running:
            for _ in range(12):
                worker.gate.clear()
                await filled(running, 1)
                time.sleep(0.0007)  # noqa: ASYNC251 - the loop's idea of the time is old now
                began = time.perf_counter()
                assert await running.send(Job(1)) is False
                took.append(time.perf_counter() - began)
                worker.gate.set()
                await turns()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    return took


@pytest.mark.parametrize("loop_factory", [None, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("wait", [0.0004, 0.001, 0.005])
def test_a_drop_is_never_earlier_than_its_wait_and_not_much_later(loop_factory: Any, wait: float) -> None:
    took = _timed(loop_factory, wait)
    assert min(took) >= wait - 2e-6
    assert sorted(took)[len(took) // 2] < wait + 0.025


def test_a_slow_subscriber_does_not_slow_a_fast_one_on_uvloop() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        fast: Calls = subsystem(subscribes=[Job])
        slow: Gated = subsystem(subscribes=[Job], message_capacity=4, overflow=Drop(0.002))

    async def main() -> None:
        fast, slow = Calls(), Gated()
        async with start(App(fast=fast, slow=slow), dead_letters=lambda _: None) as running:
            for n in range(3_000):
                await running.send(Job(n))
            meters = running.meters()
            assert meters["fast"].dropped == 0
            assert meters["slow"].dropped > 2_900
            slow.gate.set()
            await running.drain()
        assert numbers(fast.got) == list(range(3_000))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(main(), 20))


# a program that sets nothing up


def test_an_unconfigured_program_prints_nothing() -> None:
    program = """
        import asyncio
        from orchestra import Actor, Drop, Priority, orchestra, start, subsystem

        class Job: pass
        class Bell: pass
        class Slow(Actor):
            async def handle(self, ctx, message): await asyncio.sleep(0.4)

        def hook(change): raise ValueError("the hook fails")

        @orchestra(signal=Bell, event=Bell)
        class App:
            slow: Slow = subsystem(subscribes=[Job], message_capacity=1, overflow=Drop(0.001))
            stuck: Slow = subsystem(subscribes=[Job], message_capacity=1, evict_after=0.05)

        async def main():
            async with start(App(slow=Slow(), stuck=Slow()), on_congestion=hook) as running:
                for _ in range(6):
                    await running.send(Job())
                assert running.meters()["slow"].dropped and running.meters()["stuck"].dropped
                await running.stop()

        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("levels", [[Priority.NORMAL], [Priority.HIGH, Priority.NORMAL]])
def test_what_is_sent_as_a_lane_recovers_wakes_its_receiver(levels: list[Priority]) -> None:
    """The hook is called while the receiver comes to rest."""

    @orchestra(signal=Bell, event=Knock)
    class Hooked:
        sink: Calls = subsystem(consumes=Job, message_capacity=1, priorities=levels)

    async def main() -> None:
        sink = Calls()

        def send_more(lane: Any) -> None:
            if not lane.congested:
                running.try_send(Job(100))

        async with start(Hooked(sink=sink), on_congestion=send_more) as running:
            await asyncio.sleep(0)
            running.try_send(Job(0))
            assert not await running.send(Job(1), overflow=Drop(wait_before_drop=0))
            await asyncio.sleep(0.05)
            inbox = running._ensemble.inboxes["sink"]
            assert inbox.idle
            assert not any(lane.queue for lane in inbox.lanes)
            assert sink.got == [Job(0), Job(100)]

    within(10, main())
