"""A lane that counts bytes under every order of sends, takes, cancellations and closing, against a model.

The same machine drives one lane of the loop and one that threads might share. Entries are boxes of any size
and plain messages; every policy is the lane's own or that of single sends.
"""

import asyncio
from threading import RLock, get_ident
from typing import Any

import attrs
import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from orchestra import Box
from orchestra.errors import Closed, Full
from orchestra.overflow import Block, BlockFirst, Drop, DropOldest, Fail, Overflow, permits
from orchestra.plan import LanePlan
from orchestra.priority import Priority
from orchestra.runtime.bytelane import ByteLane, size_of
from orchestra.runtime.threads.bytelane import SharedByteLane
from tests.effort import examples
from tests.runtime.clockwork import Clockwork, check, dawdling
from tests.runtime.surroundings import Surroundings

POLICIES: list[Overflow] = [Block(), Fail(), Drop(0.01), Drop(0), DropOldest(), BlockFirst()]
ASKED: list[Overflow | None] = [None, None, Fail(), Drop(0.004), Drop(0), BlockFirst(), Block(), DropOldest()]
SIZES = [0, 1, 1, 2, 3, 5, 8]
LIMIT = 8


class Parcel(msgspec.Struct):
    data: bytes


def parcel(size: int) -> Any:
    """An entry that counts so many bytes, told by its identity."""
    if size == 0:
        return Parcel(b"")
    box = Box.seal(Parcel(b""))
    return msgspec.structs.replace(box, frame=bytes(size))


class Here:
    """The door of a test in which all is in the thread of the loop."""

    here = True

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ident = get_ident()
        self._loop = loop

    def post(self, function: Any) -> None:
        self._loop.call_soon(function)


@attrs.define(eq=False)
class Sender:
    """One send. `number` is its place among all sends, given when the send is called."""

    entry: Any
    overflow: Overflow | None
    task: "asyncio.Task[None] | None" = None
    number: int | None = None
    outcome: str = "pending"
    cancels: int = 0

    @property
    def size(self) -> int:
        return size_of(self.entry)


HAPPENINGS = [
    *["turn"] * 2,
    *["settle", "wait"],
    *["send"] * 4,
    *["take"] * 2,
    *["take_many", "cancel", "try_send", "try_send", "relieve"],
]


class ByteLaneMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = Clockwork()
        self.calls = 0
        self.senders: list[Sender] = []
        self.put: list[int] = []
        """The numbers of what was put, in order."""
        self.taken: list[int] = []
        self.buried: list[int] = []
        self.displaced: list[int] = []
        self.dropped = 0
        self.phase = "open"

    @initialize(
        capacity=st.integers(1, 5),
        shared=st.booleans(),
        policy=st.sampled_from(POLICIES),
        evicts=st.booleans(),
    )
    def make(self, capacity: int, shared: bool, policy: Overflow, evicts: bool) -> None:
        self.capacity = capacity
        self.by_entry: dict[int, Sender] = {}
        plan = LanePlan(Priority.NORMAL, capacity, policy, LIMIT)
        around = Surroundings(
            arrived=lambda: None,
            bury=lambda entry, _: self.buried.append(self.number_of(entry)),
            closed=lambda message: Closed("closed", message, "sink"),
            displaced=lambda entry: self.displaced.append(self.number_of(entry)),
            taken_from=lambda lane: len(self.taken),
        )
        after = 0.02 if evicts else None
        door: Any = Here(self.loop)
        self.lane: ByteLane = (
            SharedByteLane("sink", plan, self.loop, around, after, RLock(), door)
            if shared
            else ByteLane("sink", plan, self.loop, around, after)
        )

    def number_of(self, entry: Any) -> int:
        number = self.by_entry[id(entry)].number
        assert number is not None
        return number

    @property
    def queued(self) -> list[int]:
        return [self.number_of(entry) for entry in self.lane.queue]

    # what senders do

    def new(self, which: int) -> Sender:
        which, size = divmod(which, len(SIZES))
        overflow = ASKED[which % len(ASKED)]
        if overflow is not None and not permits(self.lane.policy, overflow):
            overflow = None
        sender = Sender(parcel(SIZES[size]), overflow)
        self.by_entry[id(sender.entry)] = sender
        self.senders.append(sender)
        return sender

    def begin(self, sender: Sender) -> bool:
        """Give a send its number; whether there must be room for it."""
        sender.number = self.calls
        self.calls += 1
        used = sum(size_of(entry) for entry in self.lane.queue)
        return (
            self.phase == "open"
            and not self.lane.senders_waiting
            and len(self.lane.queue) < self.capacity
            and used + sender.size <= LIMIT
        )

    async def sending(self, sender: Sender) -> None:
        lane, entry = self.lane, sender.entry
        has_room = self.begin(sender)
        try:
            if sender.overflow is None and lane.offer(entry):  # as generated code does
                assert has_room or self.phase != "open"
                taken = True
            else:
                taken = await lane.put(entry, entry, sender.overflow)
        except BaseException as error:
            sender.outcome = type(error).__name__
            if isinstance(error, Closed | Full):
                assert error.message is entry
                assert not has_room
                assert isinstance(error, Full) or self.phase != "open"
            else:
                assert isinstance(error, asyncio.CancelledError)
                assert sender.cancels
                raise
        else:
            assert taken or not has_room
            sender.outcome = "put" if taken else "dropped"

    def send(self, which: int) -> None:
        late, which = which % 3, which
        sender = self.new(which)

        async def slowly() -> None:
            await dawdling(self.sending(sender), late)

        sender.task = self.loop.create_task(slowly() if late else self.sending(sender))

    def try_send(self, which: int) -> None:
        sender = self.new(which)
        has_room = self.begin(sender)
        assert self.lane.fits(sender.entry) == has_room
        try:
            sender.outcome = (
                "put" if self.lane.put_now(sender.entry, sender.entry, sender.overflow) else "dropped"
            )
        except (Full, Closed) as error:
            sender.outcome = type(error).__name__
            assert error.message is sender.entry
            assert isinstance(error, Full) == (self.phase == "open")
        if has_room:
            assert sender.outcome == "put"

    def cancel(self, which: int) -> None:
        if living := self.living:
            sender = living[which % len(living)]
            assert sender.task is not None
            sender.cancels += 1
            sender.task.cancel()

    # what the receiver does

    def take(self, which: int) -> None:
        if self.lane.queue:
            self.taken.append(self.number_of(self.lane.queue.popleft()))
            if which % 4 and self.lane.pressed:  # in a batch the relief comes later
                self.lane.relieve()
                assert not self.lane.congested
                assert not self.lane.stalled

    def take_many(self, which: int) -> None:
        for _ in range(1 + which % 3):
            self.take(0)
        self.relieve(0)

    def relieve(self, _: int) -> None:
        if self.lane.pressed:
            self.lane.relieve()

    @precondition(lambda self: self.calls > 25)
    @rule(how=st.sampled_from(["stop", "keep", "close"]))
    def finish(self, how: str) -> None:
        if how == "close":
            self.lane.close("finished")
        else:
            getattr(self.lane, how)()
        if self.phase == "open" or how == "close":
            self.phase = {"stop": "stopping", "keep": "keeping", "close": "closed"}[how]

    # time

    def turn(self, _: int) -> None:
        self.loop.turn()

    def wait(self, which: int) -> None:
        self.loop.pass_time(which % 4 * 0.005)

    @rule(numbers=st.binary(min_size=60, max_size=200))
    def happen(self, numbers: bytes) -> None:
        """Some things happen, one right after the other; each two numbers tell one."""
        for which, index in zip(numbers[::2], numbers[1::2], strict=False):
            getattr(self, HAPPENINGS[index % len(HAPPENINGS)])(which)
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
        return [s for s in self.senders if s.number is not None and s.outcome == "pending"]

    def check_at_rest(self) -> None:
        lane, waiting = self.lane, self.unfinished
        self.relieve(0)
        self.loop.settle()
        waiting = self.unfinished
        used = sum(size_of(entry) for entry in lane.queue)
        if self.phase == "open":
            assert lane.senders_waiting == len(waiting)
            assert lane._let_go() == used
            if waiting:
                first = min(waiting, key=lambda sender: sender.number or 0)
                full = len(lane.queue) == self.capacity or used + first.size > LIMIT
                assert full, "the first sleeps while there is room for it"
                assert lane.room == 0
            else:
                assert lane.room == self.capacity
        else:
            assert not waiting, "a sender sleeps at a lane that is not open"
            assert lane.room == 0

    def check_always(self) -> None:
        lane = self.lane
        check(sender.task for sender in self.senders)
        queued = self.queued
        assert len(queued) <= self.capacity
        assert sum(size_of(entry) for entry in lane.queue) <= LIMIT
        assert lane.held >= 0
        assert lane.held <= LIMIT
        self.dropped = sum(s.outcome == "dropped" for s in self.senders)
        assert lane.dropped_in_all - lane.displaced >= self.dropped
        assert lane.displaced == len(self.displaced)
        assert lane.buried == len(self.buried)
        order = [*self.taken, *queued]
        assert order == sorted(set(order)), "not first in, first out"
        assert self.displaced == sorted(self.displaced)
        everywhere = [*order, *self.buried, *self.displaced]
        assert len(everywhere) == len(set(everywhere)), "doubled"
        put = {s.number for s in self.senders if s.outcome == "put"}
        assert put == set(everywhere), "lost"

    def teardown(self) -> None:
        try:
            if hasattr(self, "lane"):
                self.settle(0)
                while self.phase == "open" and self.lane.queue:
                    self.take_many(0)
                    self.settle(0)
                assert self.phase != "open" or not self.unfinished
                assert self.phase != "open" or self.lane._let_go() == 0
        finally:
            self.loop.close()
        assert self.loop.errors == []


ByteLaneMachine.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=8)
test_a_lane_that_counts_bytes_loses_nothing_and_keeps_the_order = ByteLaneMachine.TestCase
