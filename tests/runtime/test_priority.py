"""Levels through whole orchestras: where they come from, each lane's own room, and random declarations."""

import asyncio
from collections import Counter
from typing import Any, Union

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra import Actor, Block, Closed, Fail, Full, Priority, Subsystem, orchestra, start, subsystem
from orchestra.overflow import Overflow
from tests.effort import examples
from tests.runtime.clockwork import run
from tests.runtime.players import turns, until, within


class Alpha(msgspec.Struct, frozen=True):
    number: int


class Beta(msgspec.Struct, frozen=True):
    number: int


class BetaChild(Beta, frozen=True):
    more: str = ""


@attrs.frozen
class Gamma:
    number: int


class GammaChild(Gamma): ...


@attrs.frozen
class Halt: ...


class Worker(Actor):
    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.got: list[Any] = []

    async def handle(self, ctx: Any, message: Any) -> None:
        await self.gate.wait()
        self.got.append(message)

    @property
    def numbers(self) -> list[int]:
        return [message.number for message in self.got]


class Judge(Worker):
    """It says the level itself: even numbers are urgent."""

    @staticmethod
    def priority(message: Any) -> Priority:
        return Priority.HIGH if message.number % 2 == 0 else Priority.NORMAL


TWO = {Priority.HIGH: 2, Priority.NORMAL: 1}


def test_the_level_is_that_of_the_send_else_of_the_receiver_else_normal() -> None:
    @orchestra(signal=Halt, event=Halt)
    class App:
        judge: Judge = subsystem(consumes=Alpha, message_capacity=TWO)
        plain: Worker = subsystem(consumes=Beta, message_capacity=TWO)

    async def main() -> None:
        judge, plain = Judge(), Worker()
        async with start(App(judge=judge, plain=plain)) as running:
            for kind in (Alpha, Beta):
                await running.send(kind(100))
                await turns()
                running.try_send(kind(1))
                running.try_send(kind(2), priority=Priority.HIGH)
                running.try_send(kind(3), priority=Priority.HIGH)
            judge.gate.set()
            plain.gate.set()
            await running.drain()
        assert judge.numbers == plain.numbers == [100, 2, 3, 1]

    within(10, main())


def test_a_full_bulk_lane_does_not_hold_up_an_urgent_message() -> None:
    @orchestra(signal=Halt, event=Halt)
    class App:
        judge: Judge = subsystem(consumes=Alpha, message_capacity=TWO)

    async def main() -> None:
        judge = Judge()
        async with start(App(judge=judge)) as running:
            await running.send(Alpha(1))
            await turns()
            await running.send(Alpha(3))
            bulk = asyncio.create_task(running.send(Alpha(5)))
            await turns()
            assert await running.send(Alpha(2)) is True
            assert not bulk.done()
            judge.gate.set()
            await bulk
            await running.drain()
        assert judge.numbers == [1, 2, 3, 5]

    within(10, main())


def test_equal_levels_are_first_in_first_out_and_never_compared() -> None:
    class Incomparable:
        def __init__(self, number: int) -> None:
            self.number = number

        def __lt__(self, other: Any) -> bool:
            raise AssertionError("compared")

        __eq__ = __gt__ = __lt__

    @orchestra(signal=Halt, event=Halt)
    class App:
        worker: Worker = subsystem(
            consumes=Incomparable, message_capacity={Priority.HIGH: 9, Priority.NORMAL: 9}
        )

    async def main() -> None:
        worker = Worker()
        worker.gate.set()
        async with start(App(worker=worker)) as running:
            for number in range(9):
                running.try_send(Incomparable(number), priority=Priority.HIGH)
            await running.drain()
        assert worker.numbers == list(range(9))

    within(10, main())


def test_an_actor_that_sends_to_itself_gets_full_where_it_would_wait_for_itself() -> None:
    class Echo(Actor):
        outcome: Any = None

        async def handle(self, ctx: Any, message: Alpha) -> None:
            if message.number == 0:
                await ctx.send(Alpha(1))
                try:
                    await ctx.send(Alpha(2))
                except Full as full:
                    self.outcome = full.message

    @orchestra(signal=Halt, event=Halt)
    class App:
        echo: Echo = subsystem(consumes=Alpha, sends=[Alpha], message_capacity=1)

    async def main() -> None:
        echo = Echo()
        async with start(App(echo=echo)) as running:
            await running.send(Alpha(0))
            await until(lambda: echo.outcome is not None)
        assert echo.outcome == Alpha(2)

    within(10, main())


def test_a_lane_is_bounded_for_all_senders_together() -> None:
    @orchestra(signal=Halt, event=Halt)
    class App:
        worker: Worker = subsystem(consumes=Alpha, message_capacity=4)

    async def main() -> None:
        worker = Worker()
        async with start(App(worker=worker), dead_letters=lambda _: None) as running:
            senders = [asyncio.create_task(running.send(Alpha(number))) for number in range(50)]
            await turns()
            meters = running.meters()["worker"]
            assert (meters.queued, meters.waiting, meters.received) == (4, 45, 1)
            worker.gate.set()
            await asyncio.gather(*senders)
            await running.drain()
        assert worker.numbers == list(range(50))

    within(10, main())


# random declarations


class Recorder:
    def __init__(self) -> None:
        self.got: list[Any] = []


class Handles(Recorder, Actor):
    def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(message)


class Awaits(Recorder, Actor):
    async def handle(self, ctx: Any, message: Any) -> None:
        if message.number % 3 == 0:
            await asyncio.sleep(0.001)
        self.got.append(message)


class Receives(Recorder, Subsystem):
    async def run(self, ctx: Any) -> None:
        async for message in ctx:
            self.got.append(message)
            if message.number % 4 == 0:
                await asyncio.sleep(0)


class Sends(Subsystem):
    """Sends what it is told to, in several Tasks at once, and tells what came of it."""

    def __init__(self, sends: list["Send"]) -> None:
        self.sends = sends
        self.told: list[tuple[Send, str]] = []

    async def run(self, ctx: Any) -> None:
        async with asyncio.TaskGroup() as group:
            for send in self.sends:
                group.create_task(self.send(ctx, send))
                if send.pause:
                    await asyncio.sleep(0)

    async def send(self, ctx: Any, send: "Send") -> None:
        try:
            if send.waits:
                accepted = await ctx.send(send.message, priority=send.priority)
            else:
                accepted = ctx.try_send(send.message, priority=send.priority)
            assert accepted is True
            self.told.append((send, "accepted"))
        except Full as full:
            assert full.message is send.message
            self.told.append((send, "full"))


def judged(kind: Any) -> Any:
    """The same, with a `priority` of its own."""
    return type(f"Judged{kind.__name__}", (kind,), {"priority": staticmethod(Judge.priority)})


JUDGED = {kind: judged(kind) for kind in (Handles, Awaits, Receives)}


@attrs.frozen
class Send:
    message: Any
    priority: Priority | None
    waits: bool
    pause: bool


@attrs.frozen
class Receiver:
    kind: Any
    consumes: tuple[Any, ...]
    capacities: dict[Priority, int]
    policy: Overflow
    boxed: bool
    has_priority: bool

    def level(self, send: Send) -> Priority:
        if send.priority is not None:
            return send.priority
        return Judge.priority(send.message) if self.has_priority else Priority.NORMAL


@st.composite
def receivers(draw: st.DrawFn) -> list[Receiver]:
    split: list[tuple[type, ...]] = draw(
        st.sampled_from(
            [
                [(Alpha,), (Beta,), (Gamma,)],
                [(Alpha, Beta), (Gamma,)],
                [(Alpha, Beta, Gamma)],
                [(Alpha,), (Beta,), (BetaChild,), (Gamma,)],
                [(Alpha, BetaChild), (Beta, Gamma)],
            ]
        )
    )
    found = []
    for consumes in split:
        has_priority = draw(st.booleans())
        levels = [Priority.HIGH, Priority.NORMAL]
        if not has_priority:
            levels = draw(
                st.sampled_from([[Priority.NORMAL], levels, [Priority.NORMAL, Priority.BACKGROUND]])
            )
        found.append(
            Receiver(
                draw(st.sampled_from([Handles, Awaits, Receives])),
                consumes,
                {level: draw(st.integers(1, 4)) for level in levels},
                draw(st.sampled_from([Block(), Fail()])),
                draw(st.booleans()),
                has_priority,
            )
        )
    return found


def receiver_of(kind: type, found: list[Receiver]) -> int:
    for base in kind.__mro__:
        for index, receiver in enumerate(found):
            if base in receiver.consumes:
                return index
    raise AssertionError(kind)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Receiver], list[list[Send]]]:
    found = draw(receivers())
    kinds = [Alpha, Beta, BetaChild, Gamma, GammaChild]
    number = 0
    senders = []
    for _ in range(draw(st.integers(1, 2))):
        sends = []
        for _ in range(draw(st.integers(1, 25))):
            kind: Any = draw(st.sampled_from(kinds))
            levels = list(found[receiver_of(kind, found)].capacities)
            priority = draw(st.sampled_from([None, None, *levels]))
            number += 1
            sends.append(Send(kind(number), priority, draw(st.booleans()), draw(st.booleans())))
        senders.append(sends)
    return found, senders


def app_of(found: list[Receiver], senders: list[list[Send]]) -> Any:
    fields: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for index, sends in enumerate(senders):
        fields[f"sender{index}"] = subsystem(sends=[Alpha, Beta, Gamma])
        parts[f"sender{index}"] = Sends(sends)
    for index, receiver in enumerate(found):
        fields[f"receiver{index}"] = subsystem(
            consumes=Union[receiver.consumes],
            message_capacity=receiver.capacities,
            overflow=receiver.policy,
            boxed=receiver.boxed,
        )
        parts[f"receiver{index}"] = (JUDGED if receiver.has_priority else {receiver.kind: receiver.kind})[
            receiver.kind
        ]()
    kinds = {name: type(part) for name, part in parts.items()}
    app: Any = orchestra(signal=Halt, event=Halt)(type("World", (), {**fields, "__annotations__": kinds}))
    return app(**parts), parts


@settings(max_examples=examples(80))
@given(worlds())
def test_whole_orchestras_lose_and_double_nothing_and_keep_the_order(
    world: tuple[list[Receiver], list[list[Send]]],
) -> None:
    found, senders = world
    app, parts = app_of(found, senders)

    async def main() -> Any:
        async with start(app) as running:
            await running.drain()
            return running.meters()

    meters = run(main())
    told = [each for index in range(len(senders)) for each in parts[f"sender{index}"].told]
    assert sorted(send.message.number for send, _ in told) == sorted(
        s.message.number for sends in senders for s in sends
    )
    for index, receiver in enumerate(found):
        got = parts[f"receiver{index}"].got
        mine = [(s, outcome) for s, outcome in told if receiver_of(type(s.message), found) == index]
        accepted = [send for send, outcome in mine if outcome == "accepted"]
        assert Counter(got) == Counter(send.message for send in accepted)
        assert all(type(message) in (Alpha, Beta, BetaChild, Gamma, GammaChild) for message in got)
        assert isinstance(receiver.policy, Fail) or all(o == "accepted" or not s.waits for s, o in mine)
        level_of = {send.message.number: receiver.level(send) for send in accepted}
        for sender in range(len(senders)):  # a sender's Tasks begin in order, so its sends do too
            for level in receiver.capacities:
                for sends in (senders[sender],):
                    order = [
                        m.number
                        for m in got
                        if level_of[m.number] is level and m in [s.message for s in sends]
                    ]
                    assert order == sorted(order)
        one = meters[f"receiver{index}"]
        assert one.sent == one.received == len(got)
        assert one.queued == one.waiting == one.evicted == 0


@pytest.mark.parametrize("stops", [False, True])
def test_nothing_comes_twice_or_is_lost_without_a_letter_when_it_stops(stops: bool) -> None:
    async def main() -> None:
        letters: list[Any] = []
        worker = Worker()

        @orchestra(signal=Halt, event=Halt)
        class App:
            worker: Worker = subsystem(consumes=Alpha, message_capacity=3)

        outcomes: list[tuple[int, str]] = []

        async def send(running: Any, number: int) -> None:
            try:
                await running.send(Alpha(number))
                outcomes.append((number, "accepted"))
            except Closed:
                outcomes.append((number, "closed"))

        async with start(App(worker=worker), dead_letters=letters.append) as running:
            senders = [asyncio.create_task(send(running, number)) for number in range(8)]
            await turns()
            worker.gate.set()
            if stops:
                await running.stop()
            else:
                await running.drain()
            await asyncio.gather(*senders)
        accepted = sorted(number for number, outcome in outcomes if outcome == "accepted")
        assert sorted([*worker.numbers, *(letter.message.number for letter in letters)]) == accepted
        assert len(outcomes) == 8
        assert stops or worker.numbers == list(range(8))

    within(10, main())
