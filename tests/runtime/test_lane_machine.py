"""One lane under every order of sends, takes, cancellations and closing, against a simple model."""

import asyncio

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from orchestra.errors import Closed, Full
from orchestra.overflow import Block
from orchestra.plan import LanePlan
from orchestra.priority import Priority
from orchestra.runtime.lane import Lane
from tests.effort import examples
from tests.runtime.clockwork import Clockwork, check, dawdling
from tests.runtime.surroundings import Surroundings


@attrs.define(eq=False)
class Sender:
    """One send that may wait. `number` is its place among all sends, given when the send is called."""

    task: "asyncio.Task[None] | None" = None
    number: int | None = None
    outcome: str = "pending"
    cancels: int = 0


HAPPENINGS = ["turn"] * 3 + ["settle"] + ["send"] * 3 + ["take"] * 3 + ["cancel"] * 2 + ["try_send"]


class LaneMachine(RuleBasedStateMachine):
    """The entries are numbers in the order in which the sends were called."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = Clockwork()
        self.calls = 0
        self.senders: list[Sender] = []
        self.accepted: set[int] = set()
        self.taken: list[int] = []
        self.buried: list[int] = []
        self.arrivals = 0
        self.phase = "open"
        self.fits_late = 0

    @initialize(capacity=st.integers(1, 4))
    def make(self, capacity: int) -> None:
        self.capacity = capacity
        self.lane = Lane(
            "sink",
            LanePlan(Priority.NORMAL, capacity, Block()),
            self.loop,
            Surroundings(
                arrived=self.arrived,
                bury=lambda entry, _: self.buried.append(entry),
                closed=lambda message: Closed("closed", message, "sink"),
            ),
        )

    def arrived(self) -> None:
        self.arrivals += 1

    # what senders do

    async def sending(self, sender: Sender) -> None:
        number = sender.number = self.calls
        self.calls += 1
        lane = self.lane
        try:
            if len(lane.queue) < lane.room:  # as generated code does
                lane.queue.append(number)
            else:
                assert await lane.put(number, number) is True
        except BaseException as error:
            sender.outcome = type(error).__name__
            if isinstance(error, Closed):
                assert error.message == number
                assert self.phase != "open"
            else:
                assert isinstance(error, asyncio.CancelledError)
                assert sender.cancels
                raise
        else:
            sender.outcome = "put"
            self.accepted.add(number)

    def send(self, which: int) -> None:
        sender, late = Sender(), which % 4
        self.senders.append(sender)

        async def slowly() -> None:
            await dawdling(self.sending(sender), late)

        sender.task = self.loop.create_task(slowly() if late else self.sending(sender))

    def try_send(self, _: int) -> None:
        number, lane = self.calls, self.lane
        self.calls += 1
        must_fail = bool(self.unfinished) or len(lane.queue) == self.capacity
        try:
            if len(lane.queue) < lane.room:
                lane.queue.append(number)
            else:
                assert lane.put_now(number, number) is True
        except Full as full:
            assert (full.message, full.subsystem, full.priority) == (number, "sink", Priority.NORMAL)
            assert self.phase == "open"
            assert must_fail
        except Closed as closed:
            assert closed.message == number
            assert self.phase != "open"
        else:
            assert self.phase in ("stopping", "keeping") or not must_fail
            assert self.phase != "closed"
            self.accepted.add(number)

    def cancel(self, which: int) -> None:
        if living := self.living:
            sender = living[which % len(living)]
            assert sender.task is not None
            sender.cancels += 1
            sender.task.cancel()

    # what the receiver does

    def take(self, _: int) -> None:
        if self.lane.queue:
            self.taken.append(self.lane.queue.popleft())
            if self.lane.pressed:
                self.lane.relieve()

    @precondition(lambda self: self.calls > 25)
    @rule(how=st.sampled_from(["stop", "keep", "close"]))
    def finish(self, how: str) -> None:
        if how == "stop":
            self.lane.stop()
            assert self.phase == "keeping" or not self.lane.queue
        elif how == "keep":
            self.lane.keep()
        else:
            self.lane.close("finished")
            assert self.lane.shut
            assert not self.lane.queue
        if self.phase == "open" or how == "close":
            self.phase = {"stop": "stopping", "keep": "keeping", "close": "closed"}[how]

    # time

    def turn(self, _: int) -> None:
        self.loop.turn()

    @rule(numbers=st.binary(min_size=30, max_size=100))
    def happen(self, numbers: bytes) -> None:
        """Some things happen, one right after the other; each number tells one."""
        for number in numbers:
            which, index = divmod(number, len(HAPPENINGS))
            getattr(self, HAPPENINGS[index])(which)
            self.check_always()

    def settle(self, _: int) -> None:
        self.loop.settle()
        self.check_at_rest()

    # the model

    @property
    def living(self) -> list[Sender]:
        return [sender for sender in self.senders if sender.task is not None and not sender.task.done()]

    @property
    def unfinished(self) -> list[Sender]:
        """Those whose send was called and has not returned or raised."""
        return [s for s in self.senders if s.number is not None and s.outcome == "pending"]

    def check_at_rest(self) -> None:
        lane = self.lane
        pending = self.unfinished
        if self.phase == "open":
            assert lane.senders_waiting == len(pending)
            assert lane.room == (0 if pending else self.capacity)
            assert not pending or len(lane.queue) == self.capacity, "a sender sleeps while there is room"
        else:
            assert not pending, "a sender sleeps at a lane that is not open"
            assert lane.room == 0
        gone = [s.number for s in self.senders if s.outcome == "CancelledError"]
        there = {*self.taken, *lane.queue, *self.buried}
        assert there.isdisjoint(gone)
        assert there == self.accepted

    def check_always(self) -> None:
        lane = self.lane
        check(sender.task for sender in self.senders)
        assert len(lane.queue) <= self.capacity
        assert lane.room in (0, self.capacity)
        if self.unfinished or self.phase != "open":
            assert lane.room == 0
        order = [*self.taken, *lane.queue]
        assert order == sorted(set(order)), "not first in, first out"
        everywhere = [*order, *self.buried]
        assert len(everywhere) == len(set(everywhere))

    def teardown(self) -> None:
        try:
            if hasattr(self, "lane"):
                self.settle(0)
                while self.phase == "open" and self.lane.queue:
                    self.take(0)
                    self.settle(0)
                assert self.phase != "open" or not self.unfinished
        finally:
            self.loop.close()
        assert self.loop.errors == []


LaneMachine.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=10)
test_a_lane_loses_nothing_and_keeps_the_order = LaneMachine.TestCase
