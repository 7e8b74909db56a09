"""One inbox with three lanes and signals, and several receivers, under every order of events.

Senders and receivers are the generated functions; the strand and plain Tasks receive, in each way there is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Never

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from orchestra import Closed, Context, Full, Priority, Subsystem, orchestra, plan_of, subsystem
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.post import Post
from orchestra.runtime.pressure import Pressure
from orchestra.runtime.scheduler import Scheduler
from orchestra.runtime.strand import Strand
from tests.effort import examples
from tests.runtime.clockwork import Clockwork, check, dawdling

LEVELS = [Priority.HIGH, Priority.NORMAL, Priority.BACKGROUND]


@attrs.frozen
class Item:
    number: int


@attrs.frozen
class Sign:
    number: int


class Sink(Subsystem[Item, Never]):
    async def run(self, ctx: Context[Item, Never, Sign]) -> None: ...


def make_app(capacity: int) -> Any:
    @orchestra(signal=Sign, event=Sign)
    class App:
        sink: Sink = subsystem(priorities=LEVELS, message_capacity=capacity)

    return App


APPS = {capacity: make_app(capacity) for capacity in (1, 2, 3)}
WAYS = [
    *["recv", "recv", "recv_signal", "wait_for recv", "timeout recv", "dawdling recv"],
    *["recv", "recv", "recv_signal", "wait_for recv_signal"],
]


def spend(recv: Any, budget: int) -> None:
    """Let a generated `recv` breathe after `budget` messages already the first time."""
    cells = dict(zip(recv.__code__.co_freevars, recv.__closure__, strict=True))
    if "allowed" in cells:
        cells["allowed"].cell_contents += budget - cells["left"].cell_contents
    cells["left"].cell_contents = budget


HAPPENINGS = [
    *["turn"] * 4,
    *["settle"] * 2,
    *["receive_in_the_strand"] * 3,
    *["receive_in_a_task"] * 2,
    *["receive_without_waiting", "send_without_waiting", "send_and_wait", "signal"],
    *["cancel_the_strand", "cancel_a_receive", "cancel_a_send"],
    *["send_and_cancel", "signal_and_cancel"],
]


@attrs.define(eq=False)
class Receive:
    """One receive: what it waits for, and how it ended."""

    way: str
    begun: bool = False
    outcome: str = "pending"
    task: "asyncio.Task[Any] | None" = None

    @property
    def signals_only(self) -> bool:
        return "signal" in self.way


@attrs.define(eq=False)
class Send:
    """One send that may wait; its number is given when the send is called."""

    level: Priority
    number: int = 0
    task: "asyncio.Task[Any] | None" = None


class InboxMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = Clockwork()
        self.numbers = 0
        self.received: list[tuple[Priority | None, int]] = []
        self.accepted: dict[int, Priority] = {}
        self.signalled: list[int] = []
        self.buried: list[int] = []
        self.sends: list[Send] = []
        self.receives: list[Receive] = []
        self.at_strand: Receive | None = None
        self.ended = ""
        self.silent = False
        self.closed_was_raised = False

    @initialize(capacity=st.sampled_from(sorted(APPS)), budget=st.sampled_from([1, 2, 64]))
    def make(self, capacity: int, budget: int) -> None:
        app, loop = APPS[capacity], self.loop
        plan, wiring = plan_of(app), app.__orchestra_wiring__
        self.capacity = capacity
        self.scheduler = Scheduler(loop)
        self.scheduler.budget = budget
        lanes = plan.subsystems["sink"].lanes
        self.inbox = Inbox("sink", lanes, 2, loop, self.scheduler, self.bury, Pressure(None), opens=False)
        recv, self.try_recv, recv_signal, _, self.inbox.taken = wiring.receivers["sink"](self.inbox)
        spend(recv, budget)
        self.verbs: dict[str, Callable[[], Awaitable[Any]]] = {"recv": recv, "recv_signal": recv_signal}
        post = Post("outside", None, plan, {"sink": self.inbox}, {})
        self.send, self.try_send = wiring.outboxes["outside"](post, {"sink": self.inbox}, self.scheduler)
        self.commands: asyncio.Queue[Receive | None] = asyncio.Queue()
        self.strand = Strand(self.live(), loop, "sink", self.scheduler)
        self.inbox.strand = self.strand
        self.inbox.work = self.strand.step
        self.scheduler.add(self.strand.step)
        loop.settle()

    def bury(self, entry: Item, subsystem: str, reason: str) -> None:
        assert subsystem == "sink"
        self.buried.append(entry.number)

    # receiving

    async def live(self) -> None:
        """The strand receives when it is told to."""
        while (receive := await self.commands.get()) is not None:
            try:
                await self.receiving(receive)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                assert task is not None
                assert task is self.strand.task
                while task.cancelling():
                    task.uncancel()
            self.at_strand = None

    async def receiving(self, receive: Receive) -> None:
        receive.begun = True
        name = "recv_signal" if receive.signals_only else "recv"
        try:
            if receive.way.startswith("wait_for"):
                await asyncio.wait_for(self.noting(name), 1000)
            elif receive.way.startswith("timeout"):
                async with asyncio.timeout(1000):
                    await self.noting(name)
            elif receive.way.startswith("dawdling"):
                await dawdling(self.noting(name), 2)
            else:
                await self.noting(name)
            receive.outcome = "received"
        except Closed as closed:
            receive.outcome = "closed"
            assert closed.message is None
            assert self.silent if receive.signals_only else self.ended
            self.closed_was_raised |= not receive.signals_only
        except asyncio.CancelledError:
            receive.outcome = "cancelled"
            raise

    async def noting(self, name: str) -> None:
        self.note(await self.verbs[name]())

    def note(self, item: Item | Sign) -> None:
        """Something was taken just now: it must have been the most urgent thing."""
        waiting = [level for level in LEVELS if self.inbox.by_priority[level].queue]
        if isinstance(item, Sign):
            self.received.append((None, item.number))
            return
        level = self.accepted.get(item.number)
        if level is None:  # its sender waited, and has not been told yet
            level = next(send.level for send in self.sends if send.number == item.number)
        assert not self.inbox.signals, "a message came before a signal"
        assert all(level <= other for other in waiting), "a message came before a more urgent one"
        assert self.ended not in ("stopped", "closed")
        self.received.append((level, item.number))

    def receive_in_the_strand(self, which: int) -> None:
        if self.at_strand is not None:
            return
        receive = self.at_strand = Receive(WAYS[which % len(WAYS)])
        self.receives.append(receive)
        self.commands.put_nowait(receive)

    def receive_in_a_task(self, which: int) -> None:
        receive = Receive(WAYS[which % len(WAYS)])
        receive.task = self.loop.create_task(self.receiving(receive))
        self.receives.append(receive)

    def receive_without_waiting(self, _: int) -> None:
        try:
            item = self.try_recv()
        except Closed:
            assert self.ended
            self.closed_was_raised = True
        else:
            if item is not None:
                self.note(item)
            else:
                assert not self.ended
                assert not self.anything_to_take

    def cancel_a_receive(self, which: int) -> None:
        if cancellable := self.cancellable:
            receive = cancellable[which % len(cancellable)]
            (receive.task or self.strand.task).cancel()

    def cancel_the_strand(self, _: int) -> None:
        if self.at_strand is not None and self.at_strand.begun:
            self.strand.task.cancel()

    def send_and_cancel(self, which: int) -> None:
        """Cancel a receiver that may just have been woken."""
        self.send_without_waiting(which)
        self.cancel(which)

    def signal_and_cancel(self, which: int) -> None:
        self.signal(which)
        self.cancel(which)

    def cancel(self, which: int) -> None:
        if which % 2:
            self.cancel_the_strand(which)
        else:
            self.cancel_a_receive(which // 2)

    @property
    def cancellable(self) -> list[Receive]:
        return [
            receive
            for receive in self.receives
            if (receive.task is not None and not receive.task.done())
            or (receive is self.at_strand and receive.begun and receive.outcome == "pending")
        ]

    # sending

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def send_and_wait(self, which: int) -> None:
        level = LEVELS[which % len(LEVELS)]
        send = Send(level)

        async def sending() -> None:
            send.number = self.number()
            try:
                assert await self.send(Item(send.number), level) is True
                self.accepted[send.number] = level
            except Closed as closed:
                assert self.ended in ("stopped", "closed")
                assert closed.message == Item(send.number)

        send.task = self.loop.create_task(sending())
        self.sends.append(send)

    def send_without_waiting(self, which: int) -> None:
        level = LEVELS[which % len(LEVELS)]
        item = Item(self.number())
        try:
            assert self.try_send(item, level) is True
            self.accepted[item.number] = level
        except Full as full:
            assert full.message is item
            assert full.priority is level
        except Closed as closed:
            assert closed.message is item
            assert self.ended in ("stopped", "closed")

    def cancel_a_send(self, which: int) -> None:
        if living := self.living:
            task = living[which % len(living)].task
            assert task is not None
            task.cancel()

    @property
    def living(self) -> list[Send]:
        return [send for send in self.sends if send.task is not None and not send.task.done()]

    def signal(self, _: int) -> None:
        if self.silent:
            return
        number = self.number()
        self.signalled.append(number)
        self.inbox.signal(Sign(number))

    # the end

    @precondition(lambda self: self.numbers > 20)
    @rule(how=st.sampled_from(["end", "silence", "stop", "close"]))
    def finish(self, how: str) -> None:
        if how == "end" and not self.ended:
            self.end()
        elif how == "silence" and not self.silent:
            self.silent = True
            self.inbox.fall_silent()
        elif how == "stop" and self.ended in ("", "ended"):
            self.ended, self.silent = "stopped", True
            self.inbox.stop(None)
        elif how == "close" and self.ended != "closed":
            self.close()

    def end(self) -> None:
        """No more can come: the ensemble calls this when every sender has finished."""
        if not self.living:
            self.ended = "ended"
            self.inbox.end()

    def close(self) -> None:
        self.ended, self.silent = "closed", True
        self.signalled = [number for level, number in self.received if level is None]
        self.inbox.close("finished")

    # time

    def turn(self, _: int) -> None:
        self.loop.turn()

    @rule(numbers=st.binary(min_size=30, max_size=100))
    def happen(self, numbers: bytes) -> None:
        """Some things happen, one right after the other; each number tells one."""
        for number in numbers:
            which, index = divmod(number, len(HAPPENINGS))
            getattr(self, HAPPENINGS[index])(which)

    def settle(self, _: int) -> None:
        self.loop.settle()
        self.check_at_rest()

    @property
    def anything_to_take(self) -> bool:
        return bool(self.inbox.signals) or any(lane.queue for lane in self.inbox.lanes)

    def check_at_rest(self) -> None:
        inbox = self.inbox
        pending = [receive for receive in self.receives if receive.begun and receive.outcome == "pending"]
        takers = [receive for receive in pending if not receive.signals_only]
        listeners = [receive for receive in pending if receive.signals_only]
        assert not (takers and self.anything_to_take), "a receiver sleeps while something is queued"
        assert not (listeners and inbox.signals), "a receiver sleeps while a signal is queued"
        assert not (takers and self.ended), "a receiver sleeps and nothing can come"
        assert not (listeners and self.silent), "a receiver sleeps and no signal can come"
        for lane in inbox.lanes:
            waiting = [send for send in self.living if send.level is lane.priority]
            assert not waiting or len(lane.queue) == self.capacity, "a sender sleeps while there is room"
        signals = [number for level, number in self.received if level is None]
        assert self.signalled == [*signals, *(signal.number for signal in inbox.signals)]
        there = [number for level, number in self.received if level is not None]
        there += [entry.number for lane in inbox.lanes for entry in lane.queue]
        assert sorted([*there, *self.buried]) == sorted(self.accepted)
        taken = [sum(level is lane.priority for level, _ in self.received) for lane in inbox.lanes]
        assert list(inbox.taken()) == taken
        if self.closed_was_raised and not self.anything_to_take:
            self.must_stay_closed()

    def must_stay_closed(self) -> None:
        try:
            self.try_recv()
        except Closed:
            return
        raise AssertionError("Closed was raised, and then no more")

    @invariant()
    def nothing_failed(self) -> None:
        check([*(each.task for each in self.sends), *(each.task for each in self.receives)])
        if hasattr(self, "strand"):
            check([self.strand.task])

    @invariant()
    def each_lane_is_first_in_first_out(self) -> None:
        for wanted in LEVELS:
            order = [number for level, number in self.received if level is wanted]
            assert order == sorted(set(order))

    def teardown(self) -> None:
        try:
            if hasattr(self, "strand"):
                self.settle(0)
                self.finish("close")
                self.settle(0)
        finally:
            if hasattr(self, "strand"):
                self.inbox.close("finished")
                self.commands.put_nowait(None)
                self.loop.settle()
            self.loop.close()
        assert self.strand.task.done()
        assert self.loop.errors == []


InboxMachine.TestCase.settings = settings(max_examples=examples(500), stateful_step_count=10)
test_an_inbox_loses_nothing_and_lets_nobody_sleep = InboxMachine.TestCase
