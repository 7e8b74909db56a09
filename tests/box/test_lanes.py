"""Messages on boxed lanes: however they are sent, what arrives is what they were at the send."""

import asyncio
import copy
import pickle
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra import (
    Actor,
    Block,
    Box,
    BoxError,
    Context,
    Drop,
    DropOldest,
    Live,
    Priority,
    Recipient,
    Reply,
    UndeclaredMessage,
    UndeclaredOverflow,
    UndeclaredPriority,
    orchestra,
    start,
    subsystem,
)
from orchestra.box import RidingBox
from orchestra.overflow import Overflow
from tests.box.lanes import boxing, deliver, fan
from tests.box.strategies import GROUPS, messages
from tests.box.strictly import same
from tests.box.test_exactness import disturb, hold, spoil
from tests.runtime.players import Bell, Calls, Collects, Gated, Knock, Note, turns, until, within


class Draft(msgspec.Struct):
    lines: list[str]
    marks: bytearray = msgspec.field(default_factory=bytearray)


def draft(n: int = 0) -> Draft:
    return Draft([str(n)], bytearray(b"%d" % n))


def spoiled(message: Draft) -> Draft:
    """The same object, changed in every part."""
    message.lines.append("changed")
    message.marks[:] = b"changed"
    message.lines = []
    return message


@pytest.mark.parametrize("group", GROUPS)
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_arrives_is_what_was_sent_or_the_sender_is_told(group: str, data: st.DataObject) -> None:
    kind, values, _ = data.draw(messages(group))
    sent = data.draw(st.lists(values, min_size=1, max_size=3))
    if data.draw(st.booleans()):
        spoil(data, sent[0])
    expected, sink = [], Calls()

    async def main() -> None:
        async with start(boxing(kind, sink)) as running:
            for message in sent:
                try:
                    box = Box.seal(message)
                except BoxError as refusal:
                    with pytest.raises(BoxError) as caught:
                        await running.send(message)
                    assert caught.value.message is message
                    assert (caught.value.kind, caught.value.path) == (kind, refusal.path)
                    continue
                hold(message, box)
                expected.append(box.open())
                await running.send(message)
                if not isinstance(box, RidingBox):
                    disturb(message)
            await running.drain()

    within(20, main())
    assert same(sink.got, expected)


# What the sender does with its object after a send.


def test_what_is_sent_is_as_it_was_at_the_send() -> None:
    sink, message = Gated(), draft()

    async def main() -> None:
        async with start(boxing(Draft, sink, message_capacity=1)) as running:
            await running.send(message)
            spoiled(message)
            await until(lambda: sink.begun)
            running.try_send(second := draft(2))
            spoiled(second)
            waiting = asyncio.ensure_future(running.send(third := draft(3)))
            await turns()
            spoiled(third)  # it waits for room
            sink.gate.set()
            await waiting
            await running.drain()

    within(20, main())
    assert same(sink.got, [draft(), draft(2), draft(3)])


def test_what_a_subsystem_sends_and_lets_a_timer_send_is_as_it_was() -> None:
    class Writer(Actor[Note, Draft]):
        def handle(self, ctx: Context[Note, Draft, Any], message: Note) -> None:
            ctx.try_send(first := draft(1))
            spoiled(first)
            ctx.send_after(0.01, second := draft(2))
            spoiled(second)

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        writer: Writer = subsystem(consumes=Note, sends=[Draft])
        sink: Calls = subsystem(consumes=Draft)

    sink = Calls()

    async def main() -> None:
        async with start(App(writer=Writer(), sink=sink)) as running:
            await running.send(Note())
            await until(lambda: len(sink.got) == 2)

    within(20, main())
    assert same(sink.got, [draft(1), draft(2)])


def test_what_a_thread_sends_and_receives_is_as_it_was() -> None:
    class Writer(Actor[Draft, Note]):
        def handle(self, ctx: Any, message: Draft) -> None:
            self.got = copy.deepcopy(message)
            ctx.send(first := Note(1))
            assert first.n == 1
            message.lines.append("mine")

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        writer: Writer = subsystem(consumes=Draft, sends=[Note], blocking=True)
        sink: Calls = subsystem(consumes=Note)

    writer, sink, message = Writer(), Calls(), draft(5)

    async def main() -> None:
        async with start(App(writer=writer, sink=sink)) as running:
            await running.send(message)
            spoiled(message)
            with pytest.raises(BoxError):
                await running.send(Draft([1]))  # type: ignore[list-item]  # the mistake
            await running.drain()

    within(20, main())
    assert same(writer.got, draft(5)) and sink.got == [Note(1)]


class Question(msgspec.Struct):
    lines: list[str]
    reply: Reply[Draft]


class Order(msgspec.Struct):
    lines: list[str]
    answer_to: Live[Recipient[Note]]


def test_replies_and_recipients_ride_and_work() -> None:
    class Answers(Actor[Question, Any]):
        def handle(self, ctx: Context[Question, Any, Any], message: Question) -> None:
            message.reply.send(Draft(message.lines))

    class Orders(Calls):
        def handle(self, ctx: Any, message: Any) -> None:
            self.got.append(message)
            if message.n == 0:
                ctx.try_send(order := Order(["a", "b"], ctx.recipient(Note)))
                order.lines.clear()

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        answers: Answers = subsystem(consumes=Question)
        worker: Calls = subsystem(consumes=Order)
        orders: Orders = subsystem(consumes=Note, sends=[Order])

    worker, orders = Calls(lambda ctx, order: order.answer_to.try_send(Note(len(order.lines)))), Orders()

    async def main() -> None:
        async with start(App(answers=Answers(), worker=worker, orders=orders)) as running:
            lines = ["a"]
            answer = await running.ask(lambda reply: Question(lines, reply))
            assert answer == Draft(["a"]) and answer.lines is not lines
            await running.send(Note())
            await until(lambda: len(orders.got) == 2)

    within(20, main())
    assert orders.got == [Note(0), Note(2)] and worker.got[0].lines == ["a", "b"]


# A message of one value, which the sender packs by itself.


class Only(msgspec.Struct, frozen=True):
    value: int


class OnlyBytes(msgspec.Struct, frozen=True):
    value: bytes


class OwnInt(int):
    """An int that is more."""


@pytest.mark.parametrize("value", [7, -1, 2**64 - 1, True, False])
def test_an_only_value_comes_back_as_it_was(value: Any) -> None:
    message = Only(value)
    (got,) = deliver(Only, message)
    assert same(got, message) and got is not message


class OnlyChild(Only, frozen=True):
    more: list[int]


class OnlyLive(Only, frozen=True):
    beside: Live[object]


def test_children_of_the_only_boxed_class_come_as_what_they_are() -> None:
    messages = [Only(1), OnlyChild(2, [3]), OnlyLive(4, print), Only(5)]
    sink = Calls()

    async def main() -> None:
        async with start(boxing(Only, sink)) as running:
            for message in messages:
                await running.send(message)
                await running.send(Box.seal(message))
            await running.drain()

    within(20, main())
    assert [same(got, messages[place // 2]) for place, got in enumerate(sink.got)] == [True] * 8
    assert sink.got[2].more is not messages[1].more  # type: ignore[attr-defined]  # it is a child


@pytest.mark.parametrize(
    "message",
    [Only(2**64), Only("seven"), Only(OwnInt(7)), OnlyBytes(bytearray(b"b")), OnlyBytes("b")],  # type: ignore[arg-type]  # they break their declarations
    ids=repr,
)
def test_an_only_value_that_is_not_as_declared_is_refused_at_the_send(message: Any) -> None:
    sink = Calls()

    async def main() -> None:
        async with start(boxing(type(message), sink)) as running:
            with pytest.raises(BoxError) as sent:
                await running.send(message)
            with pytest.raises(BoxError) as tried:
                running.try_send(message)
            for caught in (sent, tried):
                assert caught.value.message is message and caught.value.path == "value"
                assert caught.value.__suppress_context__ or caught.value.__context__ is None
            await running.drain()

    within(20, main())
    assert sink.got == []


# Boxes made ahead.


def test_a_box_made_ahead_goes_to_boxed_and_unboxed_receivers() -> None:
    orchestra_, message = fan(Draft), draft(1)
    box = Box.seal(message)
    spoiled(message)

    async def main() -> None:
        async with start(orchestra_) as running:
            for _ in range(2):
                await running.send(box)
            running.try_send(box)
            await running.drain()

    within(20, main())
    got = [orchestra_.first.got, orchestra_.second.got, orchestra_.third.got]
    assert same(got, [[draft(1)] * 3] * 3)
    everything = [one for each in got for one in each]
    assert len({id(one) for one in everything}) == len({id(one.lines) for one in everything}) == 9


@pytest.mark.parametrize("boxed", [True, False])
def test_a_box_made_ahead_goes_by_priority(boxed: bool) -> None:
    sink = Gated()
    levels = {"priorities": [Priority.HIGH, Priority.NORMAL], "boxed": boxed}

    async def main() -> None:
        async with start(boxing(Draft, sink, **levels)) as running:
            await running.send(draft(0))
            await until(lambda: sink.begun)
            await running.send(Box.seal(draft(1)))
            await running.send(Box.seal(draft(2)), priority=Priority.HIGH)
            box = Box.seal(draft(3))
            with pytest.raises(UndeclaredPriority) as undeclared:
                await running.send(box, priority=Priority.BACKGROUND)
            assert undeclared.value.message is box
            with pytest.raises(UndeclaredOverflow) as overflow:
                await running.send(box, overflow=DropOldest())
            assert overflow.value.message is box
            sink.gate.set()
            await running.drain()

    within(20, main())
    assert same(sink.got, [draft(0), draft(2), draft(1)])


@pytest.mark.parametrize("policy", [Block(), Drop(0), DropOldest()])
def test_a_box_made_ahead_waits_or_is_dropped_for_the_receiver_without_room_alone(policy: Overflow) -> None:
    """Also when one has gone there before, and the way of the next is known."""
    slow, fast = Gated(), Calls()

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class Two:
        slow: Gated = subsystem(subscribes=[Draft], message_capacity=1, overflow=policy)
        fast: Calls = subsystem(subscribes=[Draft])

    boxes = [Box.seal(draft(n)) for n in range(4)]

    async def main() -> None:
        async with start(Two(slow=slow, fast=fast), dead_letters=lambda letter: None) as running:
            await running.send(boxes[0])
            await until(lambda: slow.begun)
            assert await running.send(boxes[1])
            sends = [asyncio.ensure_future(running.send(box)) for box in boxes[2:]]
            await until(lambda: len(fast.got) == 4)
            assert [send.done() for send in sends] == [policy != Block()] * 2
            slow.gate.set()
            assert await asyncio.gather(*sends) == [policy != Drop(0)] * 2
            await running.drain()
            meters = running.meters()["slow"]
            assert (meters.received + meters.dropped, meters.queued) == (4, 0)

    within(20, main())
    assert same(fast.got, [draft(n) for n in range(4)])
    kept = {Block(): [0, 1, 2, 3], Drop(0): [0, 1], DropOldest(): [0, 3]}[policy]
    assert same(slow.got, [draft(n) for n in kept])


def test_a_box_of_what_nobody_receives_is_undeclared() -> None:
    box = Box.seal(draft())

    async def main() -> None:
        async with start(boxing(Note, Calls())) as running:
            with pytest.raises(UndeclaredMessage, match="Draft cannot be sent") as caught:
                await running.send(box)
            assert caught.value.message is box
            await running.stop()

    within(20, main())


# What is left over.


@pytest.mark.parametrize("overflow", [DropOldest(), Drop(0)])
def test_what_a_policy_drops_and_what_nobody_takes_is_told_as_messages(overflow: Any) -> None:
    letters: list[Any] = []
    sink = Gated()

    async def main() -> None:
        app = boxing(Draft, sink, message_capacity=1, overflow=overflow)
        async with start(app, dead_letters=letters.append) as running:
            await running.send(draft(0))
            await until(lambda: sink.begun)
            for n in range(1, 4):
                await running.send(message := draft(n))
                spoiled(message)
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            sink.gate.set()
            await stopping

    within(20, main())
    left = draft(3) if isinstance(overflow, DropOldest) else draft(1)
    assert [letter.reason for letter in letters if same(letter.message, left)] == ["stopped"]
    assert all(type(letter.message) is Draft for letter in letters)


def test_the_message_that_failed_is_told_as_it_arrived() -> None:
    class Fails(Calls):
        def handle(self, ctx: Any, message: Any) -> None:
            raise ValueError(message.lines)

    letters: list[Any] = []

    async def main() -> None:
        async with start(boxing(Draft, Fails()), dead_letters=letters.append) as running:
            await running.send(draft(1))
            await running.send(draft(2))
            await running.wait()

    with pytest.raises(Exception, match="'1'"):
        within(20, main())
    assert [(same(one.message, draft(n + 1)), one.reason) for n, one in enumerate(letters)] == [
        (True, "failed"),
        (True, letters[1].reason),
    ]


def test_a_refused_broadcast_reaches_nobody() -> None:
    orchestra_ = fan(Draft)

    async def main() -> None:
        async with start(orchestra_) as running:
            with pytest.raises(BoxError):
                await running.send(Draft([None]))  # type: ignore[list-item]  # the mistake
            with pytest.raises(BoxError):
                running.try_send(Draft([None]))  # type: ignore[list-item]  # the mistake
            await running.drain()

    within(20, main())
    assert (orchestra_.first.got, orchestra_.second.got, orchestra_.third.got) == ([], [], [])


def test_a_subsystem_that_catches_the_refusal_goes_on() -> None:
    refusals: list[BoxError] = []

    def write(ctx: Any, message: Any) -> None:
        try:
            ctx.try_send(Draft([message.n]))  # type: ignore[list-item]  # the mistake
        except BoxError as error:
            refusals.append(error)
        ctx.try_send(draft(message.n))

    writer, sink = Calls(write), Collects()

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        writer: Calls = subsystem(consumes=Note, sends=[Draft])
        sink: Collects = subsystem(consumes=Draft)

    async def main() -> None:
        async with start(App(writer=writer, sink=sink)) as running:
            await running.send(Note(1))
            await running.send(Note(2))
            await running.drain()

    within(20, main())
    assert [(error.path, error.message.lines) for error in refusals] == [("lines[0]", [1]), ("lines[0]", [2])]
    assert same(sink.got, [draft(1), draft(2)])


# The box itself.


@pytest.mark.parametrize("riding", [False, True])
def test_a_box_cannot_be_changed(riding: bool) -> None:
    class Open(msgspec.Struct):
        value: Any

    box: Any = Box.seal(Open([1])) if riding else Box.seal(draft())
    before = (box.frame, box.codec, box.size, box.kind)
    for name in ("frame", "codec", "riders", "kind", "size", "extra"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(box, name, None)
        with pytest.raises((AttributeError, TypeError)):
            delattr(box, name)
    for name in ("kind", "source", "rides", "whole", "seal", "open"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(box.codec, name, None)
    with pytest.raises(TypeError):
        box.codec.rides["value"] = "x"
    assert (box.frame, box.codec, box.size, box.kind) == before
    assert not hasattr(box, "__dict__")


def test_boxes_are_keys_and_go_through_pickle() -> None:
    one, two, other = Box.seal(draft(1)), Box.seal(draft(1)), Box.seal(draft(2))
    assert {one: 1}[two] == 1 and len({one, two, other}) == 2
    again = pickle.loads(pickle.dumps([one, other]))
    assert again == [one, other] and same(again[0].open(), draft(1))
    assert pickle.loads(pickle.dumps(one)).codec is one.codec
    assert same(deliver(Draft, again[0]), [draft(1)])


def test_what_stands_for_a_message_is_refused() -> None:
    class Base(msgspec.Struct): ...

    class Counter(Base):
        n: int

    double = mock.Mock(spec=Counter)
    double.n = 3

    async def main() -> None:
        for consumed in (Counter, Base):
            sink = Calls()
            async with start(boxing(consumed, sink)) as running:
                for send in (running.send, running.try_send):
                    with pytest.raises(BoxError, match="it is a Mock that stands for one") as caught:
                        sent = send(double)
                        await sent if not isinstance(sent, bool) else None
                    assert caught.value.message is double
                await running.send(Counter(3))
                await running.drain()
            assert sink.got == [Counter(3)]

    within(20, main())
    assert Box.seal(double).open() is double
