"""Receiving, case by case: who is woken for what, and what happens to it when a receiver leaves."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Never

import attrs
import pytest

from orchestra import Actor, Closed, Context, Priority, Subsystem, orchestra, start, subsystem
from tests.runtime.players import until, within


@attrs.frozen
class Item:
    number: int = 0


@attrs.frozen
class Sign:
    number: int = 0


Body = Callable[[Context[Item, Item, Sign]], Awaitable[None]]


class Sink(Subsystem[Item, Item]):
    """It gives its context to the test, and then does what the test says."""

    def __init__(self, body: Body) -> None:
        self.body = body

    async def run(self, ctx: Context[Item, Item, Sign]) -> None:
        await self.body(ctx)


@orchestra(signal=Sign, event=Sign)
class App:
    sink: Sink = subsystem(priorities=[Priority.HIGH, Priority.NORMAL], message_capacity=200)


def play(body: Callable[[Any, Context[Item, Item, Sign]], Awaitable[None]]) -> None:
    """Run `body(running, ctx)` in the strand of the subsystem."""

    async def main() -> None:
        async def run(ctx: Context[Item, Item, Sign]) -> None:
            await body(running, ctx)
            ctx.stop()

        async with start(App(sink=Sink(run)), dead_letters=lambda _: None) as running:
            async with asyncio.timeout(10):
                await running.wait()

    within(20, main())


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_signal_that_comes_while_the_strand_breathes_goes_before_the_next_message() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        inbox: Any = running._ensemble.inboxes["sink"]
        for number in range(150):
            running.try_send(Item(number))
        await ctx.recv()

        def broadcast() -> int:
            inbox.signal(Sign())
            return 0

        running._ensemble.scheduler.add(broadcast)
        while isinstance(await ctx.recv(), Item):
            assert not inbox.signals, "a message came before a signal"

    play(body)


def test_a_signal_that_comes_while_another_task_breathes_goes_before_the_next_message() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        inbox: Any = running._ensemble.inboxes["sink"]
        for number in range(150):
            running.try_send(Item(number))

        async def receive() -> None:
            asyncio.get_running_loop().call_soon(inbox.signal, Sign())
            while isinstance(await ctx.recv(), Item):
                assert not inbox.signals, "a message came before a signal"

        for _ in range(3):
            await asyncio.create_task(receive())

    play(body)


def test_a_signal_that_comes_while_an_asynchronous_actor_breathes_goes_before_the_next_message() -> None:
    class Patient(Actor[Item, Never]):
        def __init__(self) -> None:
            self.order: list[Any] = []

        async def handle(self, ctx: Context[Item, Never, Sign], message: Item) -> None:
            self.order.append(message)

        def on_signal(self, ctx: Context[Item, Never, Sign], signal: Sign) -> None:
            self.order.append(signal)

    @orchestra(signal=Sign, event=Sign)
    class Ward:
        patient: Patient = subsystem()

    async def main() -> None:
        patient = Patient()
        put_after = 0

        def broadcast() -> int:
            nonlocal put_after
            put_after = len(patient.order)
            running._ensemble.inboxes["patient"].signal(Sign())
            return 0

        async with start(Ward(patient=patient)) as running:
            for number in range(150):
                running.try_send(Item(number))
            running._ensemble.scheduler.add(broadcast)
            await until(lambda: len(patient.order) == 151)
        assert patient.order.index(Sign()) == put_after

    within(10, main())


@pytest.mark.parametrize("pause", range(4))
def test_a_cancelled_receive_loses_nothing(pause: int) -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        task = asyncio.create_task(ctx.recv())
        await turns()
        running.try_send(Item(1))
        await turns(pause)
        task.cancel()
        await asyncio.wait([task])
        if task.cancelled():
            assert ctx.try_recv() == Item(1)
        else:
            assert task.result() == Item(1)
            assert ctx.try_recv() is None

    play(body)


def test_what_a_cancelled_receiver_was_woken_for_goes_to_the_next() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        first, second = asyncio.create_task(ctx.recv()), asyncio.create_task(ctx.recv())
        await turns()
        running.try_send(Item(1))
        first.cancel()
        assert await second == Item(1)
        assert first.cancelled()

    play(body)


def test_a_message_is_passed_on_though_a_signal_is_queued_for_listeners() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        inbox: Any = running._ensemble.inboxes["sink"]
        listeners = [asyncio.create_task(ctx.recv_signal()) for _ in range(2)]
        receivers = [asyncio.create_task(ctx.recv()) for _ in range(2)]
        await turns()
        running.try_send(Item(1))
        receivers[0].cancel()
        inbox.signal(Sign(1))
        await turns()
        done = [task.result() for task in (*listeners, receivers[1]) if task.done()]
        assert sorted(map(repr, done)) == ["Item(number=1)", "Sign(number=1)"]
        for task in (*listeners, *receivers):
            task.cancel()

    play(body)


def test_a_receiver_that_takes_a_signal_leaves_its_message_to_another() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        inbox: Any = running._ensemble.inboxes["sink"]
        receivers = [asyncio.create_task(ctx.recv()) for _ in range(2)]
        await turns()
        listener = asyncio.create_task(ctx.recv_signal())
        await turns()
        running.try_send(Item(1))
        inbox.signal(Sign(1))
        await turns()
        assert [task.result() for task in receivers] == [Sign(1), Item(1)]
        assert not listener.done()
        listener.cancel()

    play(body)


def test_a_receiver_cancelled_in_a_breath_passes_on_what_it_was_woken_for() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        receivers = [asyncio.create_task(ctx.recv()) for _ in range(100)]
        await turns()
        for number in range(64):
            running.try_send(Item(number))
            await turns(3)
        waiting = [task for task in receivers if not task.done()]
        assert len(waiting) == 36
        for victim in waiting[:8]:
            running.try_send(Item(100))
            await asyncio.sleep(0)  # it may be in its breath now
            victim.cancel()
            await turns()
            inbox: Any = running._ensemble.inboxes["sink"]
            assert not any(lane.queue for lane in inbox.lanes), "receivers sleep while a message is queued"
        for task in waiting:
            task.cancel()

    play(body)


def test_only_as_many_receivers_wake_as_there_are_messages() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        inbox: Any = running._ensemble.inboxes["sink"]
        receivers = [asyncio.create_task(ctx.recv()) for _ in range(500)]
        await turns()
        for number in range(10):
            running.try_send(Item(number))
        assert len(inbox._others) == 490
        await turns()
        assert sum(task.done() for task in receivers) == 10
        assert len(inbox._others) == 490
        for task in receivers:
            task.cancel()

    play(body)


def test_two_tasks_may_receive_and_each_message_goes_to_one_of_them() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        got: list[int] = []

        async def receive() -> None:
            while len(got) < 100:
                item = await ctx.recv()
                assert isinstance(item, Item)
                got.append(item.number)
                await asyncio.sleep(0)

        receivers = [asyncio.create_task(receive()) for _ in range(3)]
        for number in range(100):
            await running.send(Item(number))
            await turns(number % 3)
        await until(lambda: len(got) == 100)
        assert sorted(got) == list(range(100))
        for task in receivers:
            task.cancel()

    play(body)


@pytest.mark.parametrize("wait_for", [False, True])
def test_the_strand_and_another_task_may_receive(wait_for: bool) -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        other = asyncio.create_task(ctx.recv())
        await turns()
        asyncio.get_running_loop().call_later(0.001, running.try_send, Item(1))
        asyncio.get_running_loop().call_later(0.002, running.try_send, Item(2))
        mine = await (asyncio.wait_for(ctx.recv(), 5) if wait_for else ctx.recv())
        assert {mine, await other} == {Item(1), Item(2)}

    play(body)


def test_the_current_task_is_the_same_throughout() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert task.get_name() == "orchestra:sink"
        for number in range(100):
            asyncio.get_running_loop().call_soon(running.try_send, Item(number))
            assert await ctx.recv() == Item(number)
            assert asyncio.current_task() is task
            if number % 10 == 0:
                await asyncio.sleep(0)
                assert asyncio.current_task() is task

    play(body)


def test_lanes_come_strictly_by_level() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        for number in range(6):
            running.try_send(Item(number), priority=[Priority.NORMAL, Priority.HIGH][number % 2])
        assert [await ctx.recv() for _ in range(6)] == [Item(n) for n in (1, 3, 5, 0, 2, 4)]

    play(body)


def test_an_urgent_message_wakes_a_receiver_that_waits() -> None:
    async def body(running: Any, ctx: Context[Item, Item, Sign]) -> None:
        asyncio.get_running_loop().call_soon(lambda: running.try_send(Item(1), priority=Priority.HIGH))
        assert await ctx.recv() == Item(1)

    play(body)


def test_a_subsystem_cancelled_by_its_own_hand_ends_and_the_orchestra_says_so() -> None:
    async def body(ctx: Context[Item, Item, Sign]) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await ctx.recv()

    async def main() -> None:
        async with start(App(sink=Sink(body))) as running:
            await running.wait()

    with pytest.raises(Exception, match="'sink'"):
        within(10, main())


class Plain(Actor[Item, Never]):
    """Its Task is cancelled by user code while plain functions serve it."""

    def __init__(self) -> None:
        self.task: Any = None
        self.order: list[str] = []

    async def started(self, ctx: Context[Item, Never, Any]) -> None:
        self.task = asyncio.current_task()

    def handle(self, ctx: Context[Item, Never, Any], message: Item) -> None:
        self.order.append("handle")

    async def stopped(self, ctx: Context[Item, Never, Any]) -> None:
        self.order.append("stopped begins")
        await asyncio.sleep(0.01)
        self.order.append("stopped ends")


@orchestra(signal=Sign, event=Sign)
class PlainApp:
    plain: Plain = subsystem()


def test_nothing_is_handled_any_more_once_stopped_was_called() -> None:
    plain = Plain()

    async def main() -> None:
        async with start(PlainApp(plain=plain), dead_letters=lambda _: None) as running:
            await until(lambda: plain.task is not None)
            await turns()
            plain.task.cancel()
            await turns()
            for _ in range(3):
                try:
                    running.try_send(Item())
                except Closed:
                    break
                await turns()
            await running.wait()

    with pytest.raises(Exception, match="plain"):
        within(10, main())
    assert plain.order == ["stopped begins", "stopped ends"]
