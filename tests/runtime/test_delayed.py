"""Messages that are sent later."""

import asyncio
import gc
import math
import tracemalloc
import weakref
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from orchestra import (
    BlockFirst,
    BoxError,
    Closed,
    DropOldest,
    Fail,
    Missed,
    OrchestraError,
    Priority,
    Timer,
    UndeclaredMessage,
    UndeclaredPriority,
    orchestra,
    start,
    subsystem,
)
from orchestra import Drop as DropPolicy
from tests.runtime.clockwork import run
from tests.runtime.players import (
    Awaits,
    Bell,
    Calls,
    Collects,
    Gated,
    Job,
    Knock,
    Note,
    Runs,
    alone,
    pair,
    told,
    turns,
)


class Sets(Calls):
    """Hands out its context, and notes when each message was handled."""

    ctx: Any = None

    def started(self, ctx: Any) -> None:
        self.ctx = ctx
        self.times: list[tuple[float, Any]] = []

    def handle(self, ctx: Any, message: Any) -> None:
        self.times.append((asyncio.get_running_loop().time(), message))
        super().handle(ctx, message)


class Keeps(Gated):
    """Hands out its context; each handler waits for the gate."""

    ctx: Any = None

    def started(self, ctx: Any) -> None:
        self.ctx = ctx


def test_it_comes_when_its_time_has_come_and_not_before() -> None:
    async def main() -> None:
        worker = Sets()
        async with start(alone(worker)) as running:
            await turns()
            timers = [worker.ctx.send_after(delay, Job(n)) for n, delay in enumerate((2, 1.5, 0, 1))]
            assert [timer.when for timer in timers] == [2, 1.5, 0, 1]
            assert all(timer.active for timer in timers)
            assert worker.got == []
            await asyncio.sleep(10)
            assert worker.times == [(0.0, Job(2)), (1.0, Job(3)), (1.5, Job(1)), (2.0, Job(0))]
            assert not any(timer.active for timer in timers)
            assert [timer.when for timer in timers] == [None] * 4
            assert [timer.cancel() for timer in timers] == [False] * 4
            assert [timer.missed for timer in timers] == [0] * 4
            assert running.meters()["worker"].sent == 4

    run(main())


def test_equal_times_are_first_in_first_out() -> None:
    async def main() -> None:
        worker = Sets()
        async with start(alone(worker)):
            await turns()
            for n in range(500):
                worker.ctx.send_after(3.0, Job(n))
            await asyncio.sleep(3)
            await turns()
            assert worker.got == [Job(n) for n in range(500)]

    run(main())


def test_a_message_may_be_sent_or_received_by_the_subsystem_that_sets_it() -> None:
    async def main() -> None:
        first, second = Sets(), Collects()
        async with start(pair(first, second)):
            await turns()
            first.ctx.send_after(1, Job(1))
            first.ctx.send_after(1, Note(2))
            await asyncio.sleep(2)
            assert (first.got, second.got) == ([Job(1)], [Note(2)])

    run(main())


def test_a_subscriber_may_send_itself_what_it_subscribes_to() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        one: Sets = subsystem(subscribes=[Job])
        two: Collects = subsystem(subscribes=[Job])

    async def main() -> None:
        app = App(one=Sets(), two=Collects())
        async with start(app):
            await turns()
            app.one.ctx.send_after(1, Job(1))
            await asyncio.sleep(2)
            assert app.one.got == app.two.got == [Job(1)]

    run(main())


def test_a_busy_actor_gets_it() -> None:
    """T01."""

    async def main() -> None:
        class Busy(Awaits):
            def started(self, ctx: Any) -> None:
                ctx.send_after(0.35, Job(1000))

        worker = Busy(lambda ctx, message: asyncio.sleep(0.1))
        async with start(alone(worker, message_capacity=3)) as running:
            for n in range(30):
                await running.send(Job(n))
            assert 3 < worker.got.index(Job(1000)) < 10

    run(main())


def test_cancelled_it_never_comes_and_is_no_dead_letter() -> None:
    async def main() -> None:
        worker, letters = Sets(), list[Any]()
        async with start(alone(worker), dead_letters=letters.append):
            await turns()
            timer = worker.ctx.send_after(1, Job())
            assert isinstance(timer, Timer)
            assert "due at 1" in repr(timer)
            assert timer.cancel() is True
            assert timer.cancel() is False
            assert not timer.active
            assert "over" in repr(timer)
            await asyncio.sleep(3)
        assert (worker.got, letters) == ([], [])

    run(main())


@pytest.mark.parametrize(
    ("delay", "kind", "text"),
    [
        (-1, ValueError, "the delay is -1 s; it is 0 or more"),
        (math.nan, ValueError, "the delay is nan s; it is a finite number of seconds"),
        (math.inf, ValueError, "the delay is inf s; it is a finite number of seconds"),
        (10**400, ValueError, "the delay is inf s; it is a finite number of seconds"),
        (True, TypeError, "the delay is True; it is a number of seconds"),
        ("1", TypeError, "the delay is '1'; it is a number of seconds"),
        (None, TypeError, "the delay is None; it is a number of seconds"),
        (timedelta(1), TypeError, "the delay is datetime.timedelta(days=1); it is a number of seconds"),
    ],
)
def test_a_wrong_delay_is_refused(delay: Any, kind: type[Exception], text: str) -> None:
    async def main() -> None:
        worker = Sets()
        async with start(alone(worker)):
            await turns()
            with pytest.raises(kind) as refused:
                worker.ctx.send_after(delay, Job())
            assert str(refused.value) == text

    run(main())


class Odd(msgspec.Struct):
    """A message that says its level itself."""

    level: Any
    items: list[int] = []


class Picky(Sets):
    @staticmethod
    def priority(message: Any) -> Priority:
        return getattr(message, "level", Priority.NORMAL)


def test_the_message_is_checked_at_once() -> None:
    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        worker: Picky = subsystem(consumes=Odd, sends=[Note])
        other: Collects = subsystem(consumes=Note | Job)

    async def main() -> None:
        app = App(worker=Picky(), other=Collects())
        async with start(app) as running:
            await turns()
            ctx = app.worker.ctx
            job = Job(3)
            with pytest.raises(
                UndeclaredMessage, match=r"Job cannot be sent: .*, only Note and Odd; add Job"
            ) as wrong:
                ctx.send_after(1, job)
            assert wrong.value.message is job
            with pytest.raises(UndeclaredMessage, match="Bell cannot be sent: it is a signal"):
                ctx.send_after(1, Bell())
            with pytest.raises(UndeclaredMessage, match="send an instance"):
                ctx.send_after(1, Note)
            with pytest.raises(UndeclaredPriority, match="'worker' has no REAL_TIME lane"):
                ctx.send_after(1, Odd(Priority.REAL_TIME))
            with pytest.raises(BoxError, match="items"):
                ctx.send_after(1, Odd(Priority.NORMAL, ["no number"]))  # type: ignore[list-item]
            await asyncio.sleep(5)
            assert all(meters.sent == 0 for meters in running.meters().values())

    run(main())


def test_a_boxed_message_is_packed_when_it_is_set() -> None:
    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        worker: Picky = subsystem(consumes=Odd)

    async def main() -> None:
        app = App(worker=Picky())
        letters: list[Any] = []
        async with start(app, dead_letters=letters.append):
            await turns()
            message = Odd(Priority.NORMAL, [1])
            app.worker.ctx.send_after(1, message)
            app.worker.ctx.send_after(9, message)
            message.items.append(2)
            await asyncio.sleep(2)
            assert [each.items for each in app.worker.got] == [[1]]
        assert [(each.message.items, each.reason) for each in letters] == [([1], "timer")]

    run(main())


def test_the_receiver_says_the_lane() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Picky = subsystem(consumes=Odd, priorities=[Priority.HIGH, Priority.NORMAL])

    async def main() -> None:
        app = App(worker=Picky())
        async with start(app) as running:
            await turns()
            for level in (Priority.NORMAL, Priority.HIGH, Priority.NORMAL):
                app.worker.ctx.send_after(1, Odd(level))
            await asyncio.sleep(2)
            lanes = running.meters()["worker"].lanes
            assert (lanes[Priority.HIGH].sent, lanes[Priority.NORMAL].sent) == (1, 2)
            assert app.worker.got[0].level is Priority.HIGH

    run(main())


# no room


def test_under_block_it_waits_in_line_and_a_drain_waits_for_it() -> None:
    async def main() -> None:
        worker, letters = Keeps(), list[Any]()
        async with start(alone(worker, message_capacity=1), dead_letters=letters.append) as running:
            for n in range(2):
                await running.send(Job(n))
            await turns()
            timers = [worker.ctx.send_after(1, Job(n)) for n in (2, 3)]
            await asyncio.sleep(2)
            assert running.meters()["worker"].waiting == 2
            assert [(timer.active, timer.when) for timer in timers] == [(True, None)] * 2
            assert "waits for room" in repr(timers[0])
            sending = asyncio.ensure_future(running.send(Job(4)))
            await turns()
            draining = asyncio.ensure_future(running.drain())
            await asyncio.sleep(1)
            assert not draining.done()
            worker.gate.set()
            await draining
            assert await sending
            assert worker.got == [Job(n) for n in range(5)]
            assert not any(timer.active for timer in timers)
        assert letters == []

    run(main())


def test_one_that_waits_for_room_can_be_cancelled() -> None:
    async def main() -> None:
        worker, letters = Keeps(), list[Any]()
        async with start(alone(worker, message_capacity=1), dead_letters=letters.append) as running:
            for n in range(2):
                await running.send(Job(n))
            timers = [worker.ctx.send_after(1, Job(n)) for n in (2, 3, 4)]
            await asyncio.sleep(1)
            assert running.meters()["worker"].waiting == 3
            assert timers[0].cancel() is True
            await turns()
            assert timers[1].cancel() is True
            assert timers[1].cancel() is False
            assert running.meters()["worker"].waiting == 1
            worker.gate.set()
            await running.drain()
        assert worker.got == [Job(0), Job(1), Job(4)]
        assert letters == []

    run(main())


def test_at_a_stop_one_that_waits_for_room_is_a_dead_letter() -> None:
    async def main() -> None:
        worker, letters = Keeps(), list[Any]()
        async with start(alone(worker, message_capacity=1), dead_letters=letters.append) as running:
            for n in range(2):
                await running.send(Job(n))
            worker.ctx.send_after(1, Job(2))
            worker.ctx.send_after(9, Job(3))
            await asyncio.sleep(2)
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            worker.gate.set()
            await stopping
        assert sorted(told(letters), key=lambda each: each[0].n) == [
            (Job(1), "worker", "stopped"),
            (Job(2), "worker", "stopped"),
            (Job(3), "worker", "timer"),
        ]

    run(main())


def test_one_that_waits_for_a_receiver_that_finishes_is_a_dead_letter() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def finish(ctx: Any) -> None:
            await gate.wait()

        first, letters = Sets(), list[Any]()
        app = pair(first, Runs(finish), message_capacity=1)
        async with start(app, dead_letters=letters.append) as running:
            await turns()
            first.ctx.try_send(Note(0))
            timer = first.ctx.send_after(1, Note(1))
            first.ctx.send_after(3, Note(2))
            await asyncio.sleep(2)
            assert timer.active
            gate.set()
            await asyncio.sleep(2)
            assert not timer.active
            assert told(letters) == [(Note(n), "second", "finished") for n in range(3)]
            assert running.meters()["second"].waiting == 0

    run(main())


@pytest.mark.parametrize(
    ("policy", "reason", "handled"),
    [
        (DropPolicy(0.5), "waited", [0, 1]),
        (DropPolicy(5.0), None, [0, 1, 2]),
        (DropPolicy(0), "waited", [0, 1]),
        (Fail(), "full", [0, 1]),
        (DropOldest(), "oldest", [0, 2]),
        (BlockFirst(), None, [0, 1, 2]),
    ],
)
def test_the_policy_of_the_lane_holds(policy: Any, reason: str | None, handled: list[int]) -> None:
    async def main() -> None:
        worker, letters = Keeps(), list[Any]()
        app = alone(worker, message_capacity=1, overflow=policy)
        async with start(app, dead_letters=letters.append) as running:
            await running.send(Job(0))
            await turns()
            await running.send(Job(1))
            timer = worker.ctx.send_after(1, Job(2))
            await asyncio.sleep(3)
            worker.gate.set()
            await turns()
            assert worker.got == [Job(n) for n in handled]
            assert running.meters()["worker"].dropped_by == ({} if reason is None else {reason: 1})
            assert not timer.active
        assert letters == []

    run(main())


def test_to_several_it_goes_to_those_that_have_not_ended() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        sender: Sets = subsystem(consumes=Knock, sends=[Job])
        brief: Runs = subsystem(subscribes=[Job])
        slow: Keeps = subsystem(subscribes=[Job], message_capacity=1)
        quick: Collects = subsystem(subscribes=[Job])

    async def main() -> None:
        async def brief(ctx: Any) -> None:
            await ctx.recv()

        app = App(sender=Sets(), brief=Runs(brief), slow=Keeps(), quick=Collects())
        letters: list[Any] = []
        async with start(app, dead_letters=letters.append) as running:
            await turns()
            timers = [app.sender.ctx.send_after(1, Job(n)) for n in range(4)]
            await asyncio.sleep(1.5)
            assert app.quick.got == [Job(n) for n in range(4)]
            assert app.slow.begun == [Job(0)]
            assert [timer.active for timer in timers] == [False, False, True, True]
            app.slow.gate.set()
            await turns(50)
            assert app.slow.got == app.quick.got
            assert not any(timer.active for timer in timers)
            late = app.sender.ctx.send_after(1, Job(9))
            await asyncio.sleep(2)
            assert running.meters()["brief"].dropped_by == {"closed": 1}
            assert app.quick.got[-1] == Job(9)
            assert not late.active
        assert told(letters) == [(Job(n), "brief", "finished") for n in (1, 2, 3)]

    run(main())


def test_what_is_sent_to_a_planned_subsystem_counts_as_dropped_when_it_comes_due() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        sender: Sets = subsystem(consumes=Knock, sends=[Job])
        planned: Collects = subsystem(consumes=Job, wip=True)

    async def main() -> None:
        app = App(sender=Sets())
        async with start(app) as running:
            await turns()
            timer = app.sender.ctx.send_after(1, Job())
            assert running.meters()["planned"].dropped == 0
            await asyncio.sleep(2)
            assert not timer.active
            assert running.meters()["planned"].dropped_by == {"wip": 1}

    run(main())


def test_what_leaves_the_orchestra_may_be_delayed() -> None:
    @orchestra(signal=Bell, event=Knock, outgoing=Note)
    class App:
        sender: Sets = subsystem(consumes=Job, sends=[Note])

    async def main() -> None:
        app = App(sender=Sets())
        letters: list[Any] = []
        async with start(app, dead_letters=letters.append) as running:
            await turns()
            app.sender.ctx.send_after(1, Note(1))
            app.sender.ctx.send_after(5, Note(2))
            assert await running.outgoing.recv() == Note(1)
        assert told(letters) == [(Note(2), "outgoing", "timer")]

    run(main())


# ends


async def settled(running: Any, how: str) -> None:
    if how == "drain":
        await running.drain()
    elif how == "stop":
        await running.stop()


@pytest.mark.parametrize("how", ["drain", "stop", "leave"])
def test_an_end_makes_dead_letters_of_what_is_not_due(how: str) -> None:
    async def main() -> None:
        first, second, letters = Sets(), Collects(), list[Any]()
        async with start(pair(first, second), dead_letters=letters.append) as running:
            await turns()
            timers = [first.ctx.send_after(9, Note(1)), first.ctx.send_after(5, Job(2))]
            gone = first.ctx.send_after(1, Job(3))
            gone.cancel()
            await settled(running, how)
        assert told(letters) == [(Note(1), "second", "timer"), (Job(2), "first", "timer")]
        assert not any(timer.active or timer.when for timer in timers)
        assert [timer.cancel() for timer in timers] == [False, False]
        with pytest.raises(Closed, match="'first' has ended: it sets no timer any more") as closed:
            first.ctx.send_after(1, Job(4))
        assert closed.value.message == Job(4)
        with pytest.raises(Closed):
            first.ctx.send_every(1, Job)
        await asyncio.sleep(20)
        assert len(letters) == 2

    run(main())


def test_a_subsystem_that_finishes_takes_its_timers_along_and_leaves_those_of_others() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def sets(ctx: Any) -> None:
            ctx.send_after(5, Note(1))
            await gate.wait()

        class Later(Awaits):
            def started(self, ctx: Any) -> None:
                ctx.send_after(6, Note(2))

        second, letters = Later(), list[Any]()
        async with start(pair(Runs(sets), second), dead_letters=letters.append):
            await asyncio.sleep(1)
            assert letters == []
            gate.set()
            await turns()
            assert told(letters) == [(Note(1), "second", "timer")]
            await asyncio.sleep(9)
            assert second.got == [Note(2)]
        assert len(letters) == 1

    run(main())


def test_a_failure_ends_all_timers() -> None:
    async def main() -> None:
        def fail(ctx: Any, message: Any) -> None:
            raise ValueError("no")

        first, second, letters = Sets(fail), Awaits(), list[Any]()
        with pytest.raises(OrchestraError):
            async with start(pair(first, second), dead_letters=letters.append):
                await turns()
                first.ctx.send_after(9, Note(1))
                first.ctx.send_after(1, Job(0))
                await asyncio.sleep(5)
                with pytest.raises(Closed) as closed:
                    first.ctx.send_after(1, Job(2))
                assert "no" in str(closed.value.__cause__)
        assert sorted(told(letters), key=str) == [(Job(0), "first", "failed"), (Note(1), "second", "timer")]

    run(main())


@pytest.mark.parametrize("how", ["drain", "stop"])
def test_set_while_it_ends_it_is_over_at_once(how: str) -> None:
    async def main() -> None:
        set_late: list[Timer] = []

        async def late(ctx: Any, message: Any) -> None:
            await asyncio.sleep(2)
            set_late.append(ctx.send_after(0, Note(1)))
            set_late.append(ctx.send_every(1, lambda: 1 / 0))

        first, second, letters = Awaits(late), Collects(), list[Any]()
        async with start(pair(first, second), dead_letters=letters.append) as running:
            await running.send(Job(0))
            await asyncio.sleep(1)
            await settled(running, how)
        assert told(letters) == [(Note(1), "second", "timer")]
        assert [timer.active for timer in set_late] == [False, False]
        assert second.got == []

    run(main())


def test_a_timer_that_was_set_in_stopped_is_a_dead_letter() -> None:
    async def main() -> None:
        class Ends(Calls):
            def handle(self, ctx: Any, message: Any) -> None:
                ctx.finish()

            def stopped(self, ctx: Any) -> None:
                ctx.send_after(1, Note(5))

        second, letters = Collects(), list[Any]()
        async with start(pair(Ends(), second), dead_letters=letters.append) as running:
            await running.send(Job(0))
            await asyncio.sleep(5)
            assert told(letters) == [(Note(5), "second", "timer")]

    run(main())


def test_cancel_all_is_one_call_for_a_restart() -> None:
    """T04: what a new life of a subsystem begins with."""

    async def main() -> None:
        worker, letters = Sets(), list[Any]()
        async with start(alone(worker), dead_letters=letters.append) as running:
            await turns()
            ctx = worker.ctx
            ctx.send_after(5, Job(1))
            ticking = ctx.send_every(1, Job)
            running._ensemble.timers.cancel_all("worker")
            running._ensemble.timers.cancel_all("nobody")
            assert told(letters) == [(Job(1), "worker", "timer")]
            assert not ticking.active
            ctx.send_after(2, Job(2))
            again = ctx.send_every(2, lambda: Job(3))
            await asyncio.sleep(4.5)
            assert worker.got == [Job(2), Job(3), Job(3)]
            assert again.active

    run(main())


# what it holds


def test_an_ended_orchestra_is_released_though_its_timers_are_kept() -> None:
    """T08."""

    async def main() -> list[Timer]:
        worker = Sets()
        app = alone(worker)
        async with start(app, dead_letters=lambda letter: None) as running:
            await turns()
            timers = [
                worker.ctx.send_after(1e6, Job(1)),
                worker.ctx.send_every(1e6, Job),
                worker.ctx.send_every(1.0, Job, missed=Missed.BURST),
                worker.ctx.send_after(1.0, Job(2)),
            ]
            seen = [weakref.ref(held) for held in (worker, app, running._ensemble)]
            await asyncio.sleep(3)
        del worker, app, running
        await turns()
        gc.collect()
        assert [each() for each in seen] == [None, None, None]
        return timers

    assert not any(timer.active for timer in run(main()))


def test_timers_that_were_cancelled_give_their_memory_back() -> None:
    async def main() -> None:
        worker = Sets()
        async with start(alone(worker)):
            await turns()
            worker.ctx.send_after(1e6, Job())
            gc.collect()
            tracemalloc.start()
            try:
                before = tracemalloc.get_traced_memory()[0]
                timers = [worker.ctx.send_after(1e5 + n, Job(n)) for n in range(20_000)]
                full = tracemalloc.get_traced_memory()[0] - before
                assert sum(timer.cancel() for timer in timers) == 20_000
                timers.clear()
                left = tracemalloc.get_traced_memory()[0] - before
            finally:
                tracemalloc.stop()
            assert full > 4_000_000
            assert left < full / 20

    run(main())


def test_without_timers_nothing_is_made() -> None:
    async def main() -> None:
        async with start(alone(Sets())) as running:
            await turns()
            ensemble = running._ensemble
            assert not ensemble.timers._parts
            assert ensemble.timers.alarms._handle is None

    run(main())


def test_an_actor_with_a_timer_ends_by_itself_no_later() -> None:
    async def main() -> float:
        class Once(Awaits):
            def started(self, ctx: Any) -> None:
                ctx.send_every(1, Job)
                ctx.send_after(100, Job(1))

        async with start(alone(Once()), dead_letters=lambda letter: None) as running:
            await asyncio.sleep(2.5)
            await running.drain()
        return asyncio.get_running_loop().time()

    assert run(main()) == 2.5
