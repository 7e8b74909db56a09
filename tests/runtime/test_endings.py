"""Which inboxes end, as a pure question, and how pipelines and circles end by themselves."""

import asyncio
import time
from typing import Any

import pytest

from orchestra import Closed, DeadLetter, Fail, Full, Priority, Subsystem, orchestra, run, start, subsystem
from orchestra.runtime.endings import Group, ending, groups_of
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
    until,
    within,
)


def ends(senders: dict[str, list[str]], resting: str = "", awaited: str = "") -> set[str]:
    return set(ending(groups_of(senders), resting.__contains__, awaited.__contains__))


def test_a_pipeline_is_split_into_single_groups() -> None:
    assert groups_of({"a": [], "b": ["a"], "c": ["b", "a"]}) == (
        Group(("a",), frozenset(), False),
        Group(("b",), frozenset("a"), False),
        Group(("c",), frozenset("ab"), False),
    )


def test_a_circle_is_one_group_with_the_senders_from_elsewhere() -> None:
    (circle, lone) = sorted(
        groups_of({"a": ["b"], "b": ["a", "x"], "x": []}), key=lambda group: len(group.members)
    )[::-1]
    assert set(circle.members) == {"a", "b"}
    assert (circle.senders, circle.circular) == (frozenset("x"), True)
    assert lone == Group(("x",), frozenset(), False)


def test_a_subsystem_that_sends_to_itself_is_circular() -> None:
    assert groups_of({"a": ["a"]}) == (Group(("a",), frozenset(), True),)


def test_a_long_chain_needs_no_recursion() -> None:
    names = [str(n) for n in range(5000)]
    assert len(groups_of({name: names[:n][-1:] for n, name in enumerate(names)})) == 5000
    ring = {name: [names[n - 1]] for n, name in enumerate(names)}
    assert len(groups_of(ring)) == 1


def test_only_what_nobody_sends_to_ends() -> None:
    assert ends({"a": [], "b": ["a"]}) == {"a"}
    assert ends({"a": [], "b": ["a"]}, awaited="a") == set()


def test_a_circle_ends_when_all_of_it_rests() -> None:
    circle = {"a": ["b"], "b": ["a"]}
    assert ends(circle, resting="a") == set()
    assert ends(circle, resting="ab") == {"a", "b"}
    assert ends({**circle, "x": [], "b": ["a", "x"]}, resting="ab") == {"x"}


def test_a_pipeline_ends_by_itself() -> None:
    async def read(ctx: Any) -> None:
        for n in range(3000):
            await ctx.send(Note(n))

    first, second = Runs(read), Calls()
    run(pair(first, second, message_capacity=16))
    assert second.got == [Note(n) for n in range(3000)]
    assert second.hooks == ["started", "stopped"]


def test_while_the_outside_is_open_nothing_ends() -> None:
    async def finish(ctx: Any) -> None:
        pass

    async def main() -> None:
        second = Collects()
        async with start(pair(Runs(finish), second)) as running:
            await turns(50)
            assert not second.ended
            await running.send(Note(1))
            await running.drain()
        assert second.got == [Note(1)]
        assert second.ended

    within(10, main())


def test_all_that_is_queued_in_all_lanes_comes_before_the_end() -> None:
    async def main() -> None:
        worker = Gated()
        app = alone(worker, message_capacity={Priority.HIGH: 8, Priority.NORMAL: 8, Priority.BACKGROUND: 8})
        async with start(app) as running:
            levels = [Priority.NORMAL, Priority.BACKGROUND, Priority.NORMAL]
            for n, level in enumerate(levels):
                await running.send(Job(n), priority=level)
            draining = asyncio.ensure_future(running.drain())
            await turns()
            worker.gate.set()
            await draining
        assert worker.got == [Job(0), Job(2), Job(1)]

    within(10, main())


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("end", ["drain", "stop"])
def test_after_the_end_try_recv_raises_closed_each_time(end: str, blocking: bool) -> None:
    tries: list[Any] = []

    def poll(ctx: Any) -> None:
        for _ in range(3):
            try:
                tries.append(ctx.try_recv())
            except Closed:
                tries.append("closed")

    async def in_loop(ctx: Any) -> None:
        while not ctx.closed:
            await asyncio.sleep(0.001)
        poll(ctx)

    def in_thread(ctx: Any) -> None:
        while not ctx.closed:
            time.sleep(0.001)
        poll(ctx)

    class InThread(Subsystem):
        def run(self, ctx: Any) -> None:
            in_thread(ctx)

    async def main() -> None:
        worker = InThread() if blocking else Runs(in_loop)
        async with start(alone(worker, blocking=blocking)) as running:
            await turns()
            await (running.drain() if end == "drain" else running.stop())

    within(10, main())
    assert tries == ["closed"] * 3


def test_closed_from_its_own_inbox_that_leaves_run_is_no_failure() -> None:
    async def receive(ctx: Any) -> None:
        while True:
            await ctx.recv()

    async def poll(ctx: Any) -> None:
        while True:
            ctx.try_recv()
            await asyncio.sleep(0)

    async def listen(ctx: Any) -> None:
        while True:
            await ctx.recv_signal()

    async def main() -> None:
        for do in (receive, poll, listen):
            async with start(alone(Runs(do))) as running:
                await turns()
                await running.drain()
            async with start(alone(Runs(do))) as running:
                await turns()
                await running.stop()

    within(10, main())


def test_closed_from_a_send_to_a_finished_subsystem_is_a_failure() -> None:
    async def leave(ctx: Any) -> None:
        pass

    async def send(ctx: Any, message: Job) -> None:
        await ctx.send(Note(1))

    async def main() -> None:
        async with start(pair(Awaits(send), Runs(leave))) as running:
            await turns()
            await running.send(Job())
            with pytest.raises(Closed, match="'second' takes no more") as failure:
                await running.wait()
        assert failure.value.message == Note(1)
        assert failure.value.__notes__ == ["raised in subsystem 'first' of Pair"]

    within(10, main())


class Halves(Awaits):
    """Sends half of each number round, until it is 0."""

    def __init__(self, kind: type) -> None:
        async def send(ctx: Any, message: Any) -> None:
            if message.n:
                await asyncio.sleep(0.001 * (message.n % 2))
                await ctx.send(kind(message.n // 2))

        super().__init__(send)


def test_a_drained_circle_ends_by_itself() -> None:
    async def main() -> None:
        first, second = Halves(Note), Halves(Job)
        async with start(pair(first, second, circle=True)) as running:
            for n in range(64):
                await running.send(Job(n))
            await running.drain()
        assert len(first.got) + len(second.got) == sum(n.bit_length() + 1 for n in range(64))
        assert first.hooks[-1] == second.hooks[-1] == "stopped"

    within(10, main())


def test_a_circle_of_a_run_and_a_synchronous_actor_ends() -> None:
    async def bounce(ctx: Any) -> None:
        async for item in ctx:
            if item.n:
                await ctx.send(Note(item.n - 1))

    async def main() -> None:
        second = Calls(lambda ctx, message: ctx.try_send(Job(message.n)))
        async with start(pair(Runs(bounce), second, circle=True)) as running:
            await running.send(Job(500))
            await running.drain()
        assert len(second.got) == 500

    within(10, main())


def test_what_remains_of_a_circle_ends_though_it_never_rests() -> None:
    async def poll(ctx: Any) -> None:
        for item in iter(ctx.try_recv, None):
            assert item == Job(1)
        try:
            while True:
                ctx.try_recv()
                await asyncio.sleep(0.001)
        except Closed:
            pass

    async def leave(ctx: Any) -> None:
        pass

    async def main() -> None:
        async with start(pair(Runs(poll), Runs(leave), circle=True)) as running:
            await turns()
            await running.drain()

    within(5, main())


def test_a_subsystem_that_feeds_itself_ends_when_it_has_nothing_more() -> None:
    def again(ctx: Any, message: Job) -> None:
        if message.n:
            ctx.try_send(Job(message.n - 1))

    @orchestra(signal=Bell, event=Knock)
    class Loop:
        worker: Calls = subsystem(consumes=Job, sends=[Job])

    async def main() -> None:
        worker = Calls(again)
        async with start(Loop(worker=worker)) as running:
            await running.send(Job(200))
            await running.drain()
        assert len(worker.got) == 201

    within(10, main())


def test_two_tasks_of_one_subsystem_receive_and_both_see_the_end() -> None:
    got: list[Any] = []

    async def work(ctx: Any) -> None:
        async for item in ctx:
            await asyncio.sleep(0)
            got.append(item)

    async def two(ctx: Any) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(work(ctx))
            group.create_task(work(ctx))

    async def main() -> None:
        for circle in (False, True):
            got.clear()
            async with start(pair(Runs(two), Collects(), circle=circle)) as running:
                for n in range(20):
                    await running.send(Job(n))
                await running.drain()
            assert sorted(item.n for item in got) == list(range(20))

    within(10, main())


def test_closed_in_each_task_of_a_group_is_no_failure() -> None:
    async def work(ctx: Any) -> None:
        while True:
            await ctx.recv()

    async def two(ctx: Any) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(work(ctx))
            group.create_task(work(ctx))

    async def main() -> None:
        async with start(alone(Runs(two))) as running:
            await running.send(Job())
            await running.drain()

    within(10, main())


def test_a_circle_ends_when_one_of_its_receiving_tasks_has_left() -> None:
    async def work(ctx: Any, most: int) -> None:
        for _ in range(most):
            await ctx.recv()
            await asyncio.sleep(0.02)

    async def two(ctx: Any) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(work(ctx, 1))
            group.create_task(work(ctx, 9))

    async def main() -> None:
        async with start(pair(Runs(two), Collects(), circle=True)) as running:
            await turns()
            await running.send(Job())
            await turns()
            await running.drain()

    within(5, main())


def test_a_receive_under_a_time_limit_sees_the_end_of_a_circle() -> None:
    async def patient(ctx: Any) -> None:
        while True:
            try:
                await asyncio.wait_for(ctx.recv(), 0.005)
            except TimeoutError:
                await asyncio.sleep(0)

    async def main() -> None:
        async with start(pair(Runs(patient), Collects(), circle=True)) as running:
            await running.send(Job())
            await asyncio.sleep(0.02)
            await running.drain()

    within(5, main())


def test_finish_closes_the_inbox_at_once_and_buries_what_is_queued() -> None:
    outcomes: list[Any] = []

    async def finish(ctx: Any, message: Job) -> None:
        ctx.finish()
        await asyncio.sleep(0.01)
        outcomes.append("handler goes on")

    async def main() -> None:
        worker = Awaits(finish)
        letters: list[DeadLetter] = []
        async with start(pair(worker, Collects()), dead_letters=letters.append) as running:
            for n in range(3):
                await running.send(Job(n))
            await until(lambda: worker.begun)
            with pytest.raises(Closed) as closed:
                running.try_send(Job(9))
            assert closed.value.message == Job(9)
            assert told(letters) == [(Job(1), "first", "finished"), (Job(2), "first", "finished")]
            await until(lambda: worker.hooks[-1] == "stopped")
            await running.send(Note(1))
        assert worker.got == [Job(0)]
        assert outcomes == ["handler goes on"]

    within(10, main())


@pytest.mark.parametrize("order", [("stop", "finish"), ("finish", "stop")])
@pytest.mark.parametrize("kind", [Calls, Awaits, Runs])
def test_stop_and_finish_together_do_both(kind: type, order: tuple[str, str]) -> None:
    def both(ctx: Any) -> None:
        for verb in order:
            getattr(ctx, verb)()

    async def main() -> None:
        if kind is Calls:
            first: Any = Calls(lambda ctx, _: both(ctx))
        elif kind is Awaits:

            async def handle(ctx: Any, message: Any) -> None:
                both(ctx)

            first = Awaits(handle)
        else:

            async def live(ctx: Any) -> None:
                await ctx.recv()
                both(ctx)
                with pytest.raises(Closed):
                    await ctx.recv()

            first = Runs(live)
        async with start(pair(first, Collects())) as running:
            await running.send(Job())
            await running.wait()

    within(5, main())


def test_stop_in_a_hook_stops_the_orchestra() -> None:
    class Starts(Calls):
        def started(self, ctx: Any) -> None:
            ctx.stop()

    class Stops(Calls):
        def stopped(self, ctx: Any) -> None:
            ctx.stop()

    class Hears(Calls):
        def on_signal(self, ctx: Any, signal: Any) -> None:
            ctx.stop()

    async def main() -> None:
        async with start(pair(Starts(), Collects())) as running:
            await running.wait()
        async with start(pair(Stops(lambda ctx, _: ctx.finish()), Collects())) as running:
            await running.send(Job())
            await running.wait()
        async with start(pair(Hears(), Collects())) as running:
            await running.broadcast(Bell())
            await running.wait()

    within(5, main())


def test_stop_takes_effect_after_the_running_handler() -> None:
    def stop(ctx: Any, message: Job) -> None:
        if message.n == 2:
            ctx.stop()
            ctx.stop()
            assert not ctx.closed

    async def main() -> None:
        for worker in (Calls(stop), Calls(stop)):
            letters: list[DeadLetter] = []
            async with start(alone(worker), dead_letters=letters.append) as running:
                for n in range(5):
                    await running.send(Job(n))
                await running.wait()
            assert worker.got == [Job(0), Job(1), Job(2)]
            assert told(letters) == [(Job(3), "worker", "stopped"), (Job(4), "worker", "stopped")]

    within(5, main())


def test_stop_in_an_asynchronous_handler_waits_for_its_return() -> None:
    async def stop(ctx: Any, message: Job) -> None:
        ctx.stop()
        await asyncio.sleep(0.01)
        await ctx.send(Note(message.n))

    async def main() -> None:
        worker, letters = Awaits(stop), []
        async with start(pair(worker, Collects()), dead_letters=letters.append) as running:
            await running.send(Job(1))
            await running.send(Job(2))
            await running.wait()
        assert worker.got == [Job(1)]
        assert told(letters) == [(Job(2), "first", "stopped"), (Note(1), "second", "stopped")]

    within(5, main())


def test_stop_in_run_takes_no_further_message() -> None:
    async def live(ctx: Any) -> None:
        got = [item async for item in stopping_at(ctx, 1)]
        assert got == [Job(0), Job(1)]

    async def stopping_at(ctx: Any, n: int) -> Any:
        async for item in ctx:
            if item.n == n:
                ctx.stop()
            yield item

    async def main() -> None:
        letters: list[DeadLetter] = []
        async with start(alone(Runs(live)), dead_letters=letters.append) as running:
            for n in range(4):
                await running.send(Job(n))
            await running.wait()
        assert [letter.message.n for letter in letters] == [2, 3]

    within(5, main())


def test_a_send_to_its_own_full_lane_is_an_error_and_no_hang() -> None:
    async def fill(ctx: Any, message: Job) -> None:
        await ctx.send(Job(1))
        with pytest.raises(Full) as full:
            await ctx.send(Job(2))
        assert full.value.message == Job(2)
        ctx.finish()

    @orchestra(signal=Bell, event=Knock)
    class Loop:
        worker: Awaits = subsystem(consumes=Job, sends=[Job], message_capacity=1)

    async def main() -> None:
        async with start(Loop(worker=Awaits(fill)), dead_letters=lambda _: None) as running:
            await running.send(Job(0))
            await running.wait()

    within(5, main())


def test_a_naive_loop_that_ignores_the_end_does_not_block_the_event_loop() -> None:
    async def naive(ctx: Any) -> None:
        while True:
            try:
                await ctx.recv()
            except Closed:
                continue

    async def main() -> None:
        async with start(alone(Runs(naive))) as running:
            await running.stop(0.05)

    within(5, main())


def test_a_full_circle_with_a_failing_lane_drains() -> None:
    async def main() -> None:
        refused: list[Any] = []

        def spread(ctx: Any, message: Any) -> None:
            for _ in range(2):
                if message.n:
                    try:
                        ctx.try_send(Note(message.n - 1) if isinstance(message, Job) else Job(message.n - 1))
                    except Full as full:
                        refused.append(full.message)

        first, second = Calls(spread), Calls(spread)
        async with start(pair(first, second, circle=True, message_capacity=4, overflow=Fail())) as running:
            await running.send(Job(8))
            await running.drain()
            meters = running.meters()
        assert meters["first"].received == len(first.got)
        assert 1 + 2 * sum(bool(m.n) for m in first.got + second.got) == len(first.got + second.got) + len(
            refused
        )

    within(5, main())


def test_on_event_that_fills_its_own_queue_gets_an_error() -> None:
    outcomes: list[Any] = []

    @orchestra(signal=Bell, event=Knock, event_capacity=1)
    class App:
        worker: Collects = subsystem(consumes=Job)

        async def on_event(self, conductor: Any, event: Knock) -> None:
            if event.n == 0:
                await self.running.event(Knock(1))
                with pytest.raises(Full):
                    await self.running.event(Knock(2))
            outcomes.append(event.n)

    async def main() -> None:
        app = App(worker=Collects())
        async with start(app) as running:
            app.running = running
            await running.event(Knock(0))
            await until(lambda: len(outcomes) == 2)
        assert outcomes == [0, 1]

    within(5, main())


def test_a_subsystem_that_receives_in_another_task_may_wait_for_itself() -> None:
    got: list[Any] = []

    async def work(ctx: Any) -> None:
        for _ in range(20):
            got.append(await ctx.recv())

    async def live(ctx: Any) -> None:
        worker = asyncio.create_task(work(ctx))
        for n in range(20):
            await ctx.send(Job(n))
        await worker

    @orchestra(signal=Bell, event=Knock)
    class Loop:
        worker: Runs = subsystem(consumes=Job, sends=[Job], message_capacity=1)

    run(Loop(worker=Runs(live)))
    assert got == [Job(n) for n in range(20)]


class Hollow:
    """A message, signal or event that is false, empty, and equal to everything."""

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


class HollowJob(Hollow): ...


class HollowNote(Hollow): ...


class HollowBell(Hollow): ...


class HollowKnock(Hollow): ...


@pytest.mark.parametrize("kind", [Calls, Awaits])
def test_what_is_false_is_a_message_like_any_other(kind: type[Calls]) -> None:
    def is_hollow(items: list[Any], *kinds: type) -> bool:
        return [type(item) for item in items] == list(kinds)

    @orchestra(signal=HollowBell, event=HollowKnock, outgoing=HollowNote)
    class App:
        one: kind = subsystem(consumes=HollowJob, sends=[HollowNote], message_capacity=1)
        two: Collects = subsystem(subscribes=[HollowKnock], message_capacity=1)

        async def on_event(self, conductor: Any, event: Any) -> None:
            await conductor.send(HollowJob())
            await conductor.broadcast(HollowBell())

    def answer(ctx: Any, message: Any) -> Any:
        sent = ctx.try_send(HollowNote())
        return asyncio.sleep(0, sent) if kind is Awaits else sent

    async def main() -> None:
        app = App(one=kind(answer), two=Collects())
        letters: list[DeadLetter] = []
        async with start(app, dead_letters=letters.append) as running:
            for _ in range(2):
                await running.event(HollowKnock())
                await running.send(HollowKnock())
                await running.send(HollowJob())
            await running.drain()
        assert is_hollow(app.one.got, *[HollowJob] * 4)
        assert sorted(type(item).__name__ for item in app.two.got) == ["HollowBell"] * 2 + ["HollowKnock"] * 2
        assert is_hollow([note async for note in running.outgoing], *[HollowNote] * 4)
        assert not letters

    within(10, main())


def test_a_send_whose_message_was_taken_succeeds_though_the_receiver_then_leaves() -> None:
    async def take_two(ctx: Any) -> None:
        await asyncio.sleep(0.01)
        assert [await ctx.recv(), await ctx.recv()] == [Job(0), Job(1)]

    async def main() -> None:
        letters: list[DeadLetter] = []
        async with start(
            pair(Runs(take_two), Collects(), message_capacity=1), dead_letters=letters.append
        ) as running:
            sends = [asyncio.ensure_future(running.send(Job(n))) for n in range(4)]
            results = await asyncio.gather(*sends, return_exceptions=True)
        assert results[:2] == [True, True]
        refused = [result.message for result in results if isinstance(result, Closed)]
        buried = [letter.message for letter in letters]
        assert sorted([*refused, *buried], key=lambda job: job.n) == [Job(2), Job(3)]

    within(10, main())
