"""Two subscribers under every order of sends, takes, cancellations, closings and time, against a model.

The sends are the generated ones, under any policy of the lanes and of single sends. The clock is the test's.
"""

import asyncio
from functools import cache
from typing import Any, Never

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from orchestra import (
    Block,
    BlockFirst,
    Closed,
    Context,
    Drop,
    DropOldest,
    Fail,
    Full,
    Subsystem,
    UndeclaredOverflow,
    orchestra,
    plan_of,
    subsystem,
)
from orchestra.overflow import Overflow, permits
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.lane import Lane
from orchestra.runtime.meters import read_meters
from orchestra.runtime.post import Post
from orchestra.runtime.pressure import Congestion, Pressure
from orchestra.runtime.scheduler import Scheduler
from tests.effort import examples
from tests.runtime.clockwork import Clockwork, check, dawdling

POLICIES: list[Overflow] = [Block(), Fail(), Drop(0.01), Drop(0), DropOldest(), BlockFirst()]
ASKED: list[Overflow] = [Block(), Fail(), Drop(0.004), Drop(0), Drop(0.02), BlockFirst(), DropOldest()]
NAMES = ["left", "right"]
EXACT = 1e-9


@attrs.frozen
class Item:
    number: int


@attrs.frozen
class Sign:
    pass


class Sink(Subsystem[Item, Never]):
    async def run(self, ctx: Context[Item, Never, Sign]) -> None: ...


@cache
def make_app(capacities: tuple[int, int], policies: tuple[Overflow, Overflow]) -> Any:
    @orchestra(signal=Sign, event=Sign)
    class App:
        left: Sink = subsystem(subscribes=[Item], message_capacity=capacities[0], overflow=policies[0])
        right: Sink = subsystem(subscribes=[Item], message_capacity=capacities[1], overflow=policies[1])

    return App


@attrs.define
class Side:
    """One subscriber: its lane, and what became of messages there, by number."""

    inbox: Inbox
    lane: Lane
    try_recv: Any
    taken: list[int] = attrs.Factory(list)
    buried: list[int] = attrs.Factory(list)
    puts: int = 0
    closed: bool = False

    @property
    def queue(self) -> list[int]:
        return [item.number for item in self.lane.queue]

    @property
    def there(self) -> set[int]:
        return {*self.taken, *self.queue, *self.buried}

    @property
    def has_room(self) -> bool:
        lane = self.lane
        return not self.closed and not lane.senders_waiting and len(lane.queue) < lane.capacity


@attrs.define(eq=False)
class Send:
    """One send; `fate` says for each side what came of it at once: put, dropped, closed, refused or waits."""

    overflow: Overflow | None
    number: int = -1
    began: float = 0.0
    ended: float = 0.0
    late: int = 0
    task: "asyncio.Task[None] | None" = None
    fate: dict[str, str] = attrs.Factory(dict)
    outcome: object = None
    cancels: int = 0

    @property
    def waits(self) -> list[str]:
        return [name for name, fate in self.fate.items() if fate == "waits"]


class Quiet(Pressure):
    """Tells the hook alone: a machine would write very much into the log."""

    def _log(self, lane: Lane, change: Congestion) -> None: ...


HAPPENINGS = [
    *["turn"] * 2,
    *["settle"] * 2,
    *["send"] * 3,
    *["send_asking"] * 3,
    *["take"] * 4,
    *["wait"] * 2,
    *["try_send", "try_send_asking", "cancel"],
]


class CongestionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = Clockwork()
        self.calls = 0
        self.sends: list[Send] = []
        self.reports: list[Congestion] = []
        self.marked = dict.fromkeys(NAMES, False)
        self.sides: dict[str, Side] = {}

    @initialize(
        capacities=st.tuples(st.sampled_from([1, 3]), st.sampled_from([1, 2])),
        policies=st.tuples(st.sampled_from(POLICIES), st.sampled_from(POLICIES)),
    )
    def make(self, capacities: tuple[int, int], policies: tuple[Overflow, Overflow]) -> None:
        app = make_app(capacities, policies)
        plan, wiring = plan_of(app), app.__orchestra_wiring__
        scheduler = Scheduler(self.loop)
        pressure = Quiet(self.reports.append)
        for name in NAMES:
            lanes = plan.subsystems[name].lanes
            inbox = Inbox(name, lanes, 2, self.loop, scheduler, self.bury, pressure, opens=False)
            _, try_recv, _, _, inbox.taken = wiring.receivers[name](inbox)
            self.sides[name] = Side(inbox, inbox.lanes[0], try_recv)
        inboxes = {name: side.inbox for name, side in self.sides.items()}
        post = Post("outside", None, plan, inboxes, {})
        self.generated, self.generated_now = wiring.outboxes["outside"](post, inboxes, scheduler)

    def bury(self, item: Item, subsystem: str, reason: str) -> None:
        assert reason == "finished"
        self.sides[subsystem].buried.append(item.number)

    # sending

    def policy(self, send: Send, name: str) -> Overflow:
        return send.overflow or self.sides[name].lane.policy

    def begin(self, send: Send, *, now: bool) -> dict[str, str]:
        """Give the send its number, and say what must come of it at each side at once."""
        send.number, send.began = self.calls, self.loop.now
        self.calls += 1
        closed = [name for name in NAMES if self.sides[name].closed]
        if len(closed) == len(NAMES):
            return dict.fromkeys(NAMES, "refused")
        return {name: "closed" if name in closed else self.expected(send, name, now=now) for name in NAMES}

    def expected(self, send: Send, name: str, *, now: bool) -> str:
        side, policy = self.sides[name], self.policy(send, name)
        if side.has_room:
            return "put"
        match policy:
            case DropOldest():
                return "put"
            case Drop(wait_before_drop=wait):
                return "dropped" if now or side.lane.congested or not wait else "waits"
            case BlockFirst() if side.lane._first_waits():
                return "dropped"
            case Fail():
                return "refused"
        return "refused" if now else "waits"

    def counts(self) -> dict[str, tuple[int, int]]:
        lanes = {name: side.lane for name, side in self.sides.items()}
        return {name: (lane.dropped_in_all - lane.displaced, len(lane.queue)) for name, lane in lanes.items()}

    def note(self, send: Send, expected: dict[str, str], before: dict[str, tuple[int, int]]) -> None:
        """A send has done what it does at once: that must be what was expected."""
        for name, (dropped, _) in self.counts().items():
            side = self.sides[name]
            put = send.number in side.queue
            assert not put or side.queue[-1] == send.number
            assert dropped - before[name][0] == (expected[name] in ("dropped", "closed"))
            assert put == (expected[name] == "put")
            side.puts += put
        send.fate = expected

    def refused(self, send: Send) -> bool:
        return send.overflow is not None and not all(
            permits(side.lane.policy, send.overflow) for side in self.sides.values()
        )

    async def sending(self, send: Send) -> None:
        item: Item | None = None
        try:
            if self.refused(send):
                await self.check_refusal(send)
                return
            expected = self.begin(send, now=False)
            item = Item(send.number)
            before = self.counts()
            sending = self.generated(item, None, send.overflow)
            send.outcome = await dawdling(self.noting(sending, send, expected, before), send.late)
            assert isinstance(send.outcome, bool)
        except (Full, Closed) as error:
            assert error.message is item
            send.outcome = type(error)
        except asyncio.CancelledError:
            assert send.cancels
            send.outcome = asyncio.CancelledError
            raise
        finally:
            send.ended = self.loop.now

    async def noting(self, sending: Any, send: Send, expected: Any, before: Any) -> Any:
        """Await a send, and look at the lanes when it has done its first step."""
        return await _Stepping(sending, lambda: self.note(send, expected, before))

    async def check_refusal(self, send: Send) -> None:
        before = self.counts()
        try:
            await self.generated(Item(-1), None, send.overflow)
        except UndeclaredOverflow as error:
            assert error.message == Item(-1)
        else:
            raise AssertionError("a policy that a lane does not permit was accepted")
        assert self.counts() == before

    def start(self, overflow: Overflow | None, late: int) -> None:
        send = Send(overflow, late=late)
        send.task = self.loop.create_task(self.sending(send))
        self.sends.append(send)

    def send(self, which: int) -> None:
        self.start(None, which % 3 if which > 9 else 0)

    def send_asking(self, which: int) -> None:
        self.start(ASKED[which % len(ASKED)], 0)

    def try_send(self, _: int) -> None:
        self.send_now(Send(None))

    def try_send_asking(self, which: int) -> None:
        self.send_now(Send(ASKED[which % len(ASKED)]))

    def send_now(self, send: Send) -> None:
        if self.refused(send):
            return
        marked = {name: side.lane.congested for name, side in self.sides.items()}
        expected, before = self.begin(send, now=True), self.counts()
        item = Item(send.number)
        try:
            send.outcome = self.generated_now(item, None, send.overflow)
        except (Full, Closed) as error:
            assert error.message is item
            send.outcome = type(error)
        self.note(send, expected, before)
        for name, side in self.sides.items():
            assert side.lane.congested == marked[name], "a send that does not wait changed the mark"
        self.sends.append(send)
        self.check_outcome(send)

    def cancel(self, which: int) -> None:
        if living := [send for send in self.sends if send.task is not None and not send.task.done()]:
            send = living[which % len(living)]
            send.cancels += 1
            assert send.task is not None
            send.task.cancel()

    # receiving

    def take(self, which: int) -> None:
        side = self.sides[NAMES[which % 2]]
        if side.lane.queue:
            side.taken.append(side.try_recv().number)
            assert not side.lane.congested, "the mark outlived a take"

    @precondition(lambda self: self.calls > 15)
    @rule(name=st.sampled_from(NAMES))
    def close(self, name: str) -> None:
        side = self.sides[name]
        side.inbox.close("finished")
        side.closed = True
        assert not side.lane.queue

    # time

    def turn(self, _: int) -> None:
        self.loop.turn()

    def wait(self, which: int) -> None:
        self.loop.pass_time([0.00051, 0.0043, 0.0107, 0.0319][which % 4])  # no sum of them is a wait
        self.check_at_rest()

    def settle(self, _: int) -> None:
        self.loop.settle()
        self.check_at_rest()

    @rule(numbers=st.binary(min_size=30, max_size=100))
    def happen(self, numbers: bytes) -> None:
        """Some things happen, one right after the other; each number tells one."""
        for number in numbers:
            which, index = divmod(number, len(HAPPENINGS))
            getattr(self, HAPPENINGS[index])(which)
            self.check_always()

    # the model

    def pending(self, name: str) -> list[Send]:
        there = self.sides[name].there
        return [
            send
            for send in self.sends
            if send.fate.get(name) == "waits" and send.outcome is None and send.number not in there
        ]

    def check_always(self) -> None:
        check(send.task for send in self.sends)
        for name, side in self.sides.items():
            lane = side.lane
            assert len(lane.queue) <= lane.capacity
            assert not (lane.congested and side.has_room), "a lane with room is marked"
            if lane.congested and not self.marked[name]:
                assert any(self.ran_out(send, name) for send in self.sends), "marked, and no wait ran out"
            self.marked[name] = lane.congested
            order = [*side.taken, *side.queue]
            assert order == sorted(set(order)), "not first in, first out"
            assert not {*order} & {*side.buried}
            meters = read_meters(side.inbox)
            assert meters.sent == meters.received + meters.queued + meters.evicted
            assert meters.received == len(side.taken)
            assert meters.dropped == sum(meters.dropped_by.values())
            assert meters.evicted == len(side.buried) + meters.dropped_by.get("oldest", 0)

    def ran_out(self, send: Send, name: str) -> bool:
        """Whether this is a `Drop` send that found no room and whose wait is over."""
        policy = self.policy(send, name)
        if not isinstance(policy, Drop) or send.fate.get(name) not in ("waits", "dropped"):
            return False
        return send.began + policy.wait_before_drop <= self.loop.now + EXACT

    def check_at_rest(self) -> None:
        for name, side in self.sides.items():
            lane, pending = side.lane, self.pending(name)
            if side.closed:
                assert not lane.senders_waiting, "a sender sleeps at a lane that is closed"
                continue
            # one that waits for two lanes may have been dropped by one of them already
            waiting = [send for send in pending if not self.ran_out(send, name)]
            assert lane.senders_waiting == len(waiting)
            assert lane.room == (0 if waiting else lane.capacity)
            assert not waiting or len(lane.queue) == lane.capacity, "a sender sleeps while there is room"
            assert sum(isinstance(self.policy(send, name), BlockFirst) for send in waiting) <= 1
        for send in self.sends:
            if send.outcome is None and send.waits:
                assert any(self.may_wait(send, name) for name in send.waits), "it waits too long"
            elif send.outcome is not None:
                self.check_outcome(send)
        self.check_counts()

    def may_wait(self, send: Send, name: str) -> bool:
        side = self.sides[name]
        return not side.closed and send.number not in side.there and not self.ran_out(send, name)

    def check_outcome(self, send: Send) -> None:
        """Each message is, for each side, in one of the ways that the outcome tells."""
        fates = dict(send.fate)
        for name in send.waits:
            side = self.sides[name]
            if send.number in side.there:
                fates[name] = "put"
            elif send.outcome is asyncio.CancelledError:
                fates[name] = "returned"
            else:
                fates[name] = "dropped" if self.ran_out(send, name) and not side.closed else "closed"
        if send.outcome is True:
            assert set(fates.values()) in ({"put"}, {"put", "closed"}), "it is not where it was accepted"
        elif send.outcome is False:
            assert "dropped" in fates.values() or any(self.sides[name].closed for name in send.waits)
        elif send.outcome is Full:
            assert "refused" in fates.values()
        elif send.outcome is Closed:
            assert "put" not in fates.values()
            assert set(fates.values()) <= {"closed", "refused"} or self.all_closed_late(send)
        elif send.outcome is asyncio.CancelledError and len(send.waits) == 1:
            assert fates[send.waits[0]] == "returned", "a send that was cancelled has happened"
        if send.outcome is False and len(send.waits) == 1 and not send.late:
            (name,) = send.waits
            policy = self.policy(send, name)
            if fates[name] == "dropped" and isinstance(policy, Drop):
                assert abs(send.ended - send.began - policy.wait_before_drop) < EXACT

    def all_closed_late(self, send: Send) -> bool:
        return all(self.sides[name].closed for name in NAMES)

    def check_counts(self) -> None:
        """What was dropped is what the model says; one that was cancelled may have been counted before."""
        for name, side in self.sides.items():
            fates = [send.fate.get(name) for send in self.sends]
            there = side.there
            missing = [
                send
                for send in self.sends
                if send.fate.get(name) == "waits" and send.number not in there and send.outcome is not None
            ]
            sure = [send for send in missing if isinstance(send.outcome, bool)]
            unfinished = [send for send in self.pending(name) if self.ran_out(send, name) or side.closed]
            at_once = fates.count("dropped") + fates.count("closed")
            dropped = side.lane.dropped_in_all - side.lane.displaced
            assert at_once + len(sure) <= dropped <= at_once + len(missing) + len(unfinished)
            waited = [send for send in self.sends if send.fate.get(name) == "waits" and send.number in there]
            assert side.puts + len(waited) == len(side.taken) + len(side.queue) + side.lane.evicted

    def teardown(self) -> None:
        try:
            if self.sides:
                self.settle(0)
                for side in self.sides.values():
                    while side.lane.queue:
                        self.take(NAMES.index(side.inbox.name))
                        self.settle(0)
                self.loop.pass_time(1)
                self.check_at_rest()
                assert all(send.outcome is not None or send.number < 0 for send in self.sends)
                assert not any(side.lane.congested for side in self.sides.values())
                changes = {name: [r.congested for r in self.reports if r.subsystem == name] for name in NAMES}
                for told in changes.values():
                    assert told == [n % 2 == 0 for n in range(len(told))], "not congested, recovered, ..."
        finally:
            self.loop.close()
        assert self.loop.errors == []


class _Stepping:
    """Awaits a coroutine, and calls a function once when its first step is done."""

    def __init__(self, coroutine: Any, then: Any) -> None:
        self.coroutine = coroutine
        self.then = then

    def __await__(self) -> Any:
        try:
            awaited = self.coroutine.send(None)
        except BaseException as end:
            self.then()
            if isinstance(end, StopIteration):
                return end.value
            raise
        self.then()
        while True:
            try:
                sent = yield awaited
            except BaseException as error:
                step, value = self.coroutine.throw, error
            else:
                step, value = self.coroutine.send, sent
            try:
                awaited = step(value)
            except StopIteration as end:
                return end.value


CongestionMachine.TestCase.settings = settings(max_examples=examples(150), stateful_step_count=8)
test_two_subscribers_get_each_message_or_the_sender_knows = CongestionMachine.TestCase
