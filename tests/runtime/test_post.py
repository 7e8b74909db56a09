"""The general way of a send: fan-out, subclasses, boxes made ahead, planned receivers, and mistakes."""

import asyncio
from typing import Any, Never

import attrs
import msgspec
import pytest

from orchestra import (
    Actor,
    Box,
    BoxError,
    Closed,
    Context,
    Fail,
    Full,
    Priority,
    Subsystem,
    UndeclaredMessage,
    UndeclaredPriority,
    boxed,
    orchestra,
    start,
    subsystem,
)
from orchestra.overflow import Overflow
from tests.runtime.players import turns, until, within


class News(msgspec.Struct, frozen=True):
    number: int = 0


@attrs.frozen
class Halt: ...


class Station(Subsystem[Never, News]):
    """It gives its context to the test."""

    async def run(self, ctx: Context[Never, News, Any]) -> None:
        self.ctx = ctx
        await ctx.recv()


class Reader(Actor):
    """It handles while its gate is open, and ends when it is told to."""

    def __init__(self, *, ready: bool = False) -> None:
        self.gate = asyncio.Event()
        self.got: list[News] = []
        if ready:
            self.gate.set()

    async def handle(self, ctx: Context[News, Never, Any], message: News) -> None:
        await self.gate.wait()
        self.got.append(message)
        if message.number < 0:
            ctx.finish()

    @property
    def numbers(self) -> list[int]:
        return [message.number for message in self.got]


def paper(*readers: Reader, overflows: dict[int, Overflow] | None = None, **options: Any) -> Any:
    """A station and readers with one place each, who all subscribe to its news."""
    fields: dict[str, Any] = {"station": subsystem()}
    kinds: dict[str, Any] = {"station": Station}
    for number, _ in enumerate(readers):
        policy = (overflows or {}).get(number)
        fields[f"reader{number}"] = subsystem(subscribes=[News], message_capacity=1, overflow=policy)
        kinds[f"reader{number}"] = Reader
    app: Any = orchestra(signal=Halt, event=Halt, **options)(
        type("Paper", (), {**fields, "__annotations__": kinds})
    )
    return app(station=Station(), **{f"reader{number}": reader for number, reader in enumerate(readers)})


def waiting(running: Any) -> list[int]:
    return [meters.waiting for name, meters in running.meters().items() if name != "station"]


async def busy(running: Any, app: Any, *readers: Reader) -> Any:
    """Let every reader hold a message, so that its lane has one place left; return the station's context."""
    await running.send(News(0))
    await turns()
    return app.station.ctx


def test_every_subscriber_gets_every_message_in_order() -> None:
    async def main() -> None:
        readers = [Reader(ready=True) for _ in range(3)]
        app = paper(*readers)
        async with start(app):
            await turns()
            for number in range(50):
                assert await app.station.ctx.send(News(number)) is True
            await until(lambda: all(len(reader.got) == 50 for reader in readers))
        assert all(reader.numbers == list(range(50)) for reader in readers)
        assert readers[0].got[0] is readers[1].got[0]

    within(10, main())


def test_a_message_is_offered_at_once_to_every_lane_with_room_and_waits_side_by_side_for_the_rest() -> None:
    async def main() -> None:
        slow, slower, quick = readers = [Reader(), Reader(), Reader(ready=True)]
        app = paper(*readers)
        async with start(app, dead_letters=lambda _: None) as running:
            ctx = await busy(running, app)
            await ctx.send(News(1))
            sending = asyncio.create_task(ctx.send(News(2)))
            await turns()
            assert quick.numbers == [0, 1, 2]
            assert waiting(running) == [1, 1, 0]
            slower.gate.set()
            await turns()
            assert slower.numbers == [0, 1, 2]
            assert waiting(running) == [1, 0, 0]
            assert not sending.done()
            slow.gate.set()
            assert await sending is True
            await until(lambda: slow.numbers == [0, 1, 2])

    within(10, main())


@pytest.mark.parametrize("pause", range(6))
def test_cancelling_withdraws_the_message_only_where_it_still_waits(pause: int) -> None:
    async def main() -> None:
        slow, slower, quick = readers = [Reader(), Reader(), Reader(ready=True)]
        app = paper(*readers)
        async with start(app, dead_letters=lambda _: None) as running:
            ctx = await busy(running, app)
            await ctx.send(News(1))
            await until(lambda: quick.numbers == [0, 1])
            sending = asyncio.create_task(ctx.send(News(2)))
            for _ in range(pause):
                await asyncio.sleep(0)
            sending.cancel()
            await asyncio.wait([sending])
            assert sending.cancelled()
            await turns()
            assert waiting(running) == [0, 0, 0]
            slow.gate.set()
            slower.gate.set()
            await ctx.send(News(3))
            await until(lambda: all(3 in reader.numbers for reader in readers))
            assert slow.numbers == slower.numbers == [0, 1, 3]
            begun = pause > 0 or asyncio.get_running_loop().get_task_factory() is not None  # an eager one
            assert quick.numbers == ([0, 1, 2, 3] if begun else [0, 1, 3])

    within(10, main())


def test_a_subscriber_that_has_ended_is_passed_over() -> None:
    async def main() -> None:
        ended, alive = readers = [Reader(ready=True), Reader(ready=True)]
        app = paper(*readers)
        async with start(app, dead_letters=lambda _: None) as running:
            await turns()
            ctx = app.station.ctx
            await running.send(News(7))
            await turns()
            running._ensemble.inboxes["reader0"].close("finished")
            await turns()
            assert await ctx.send(News(1)) is True
            await turns()
            assert ctx.try_send(News(2)) is True
            await until(lambda: alive.numbers == [7, 1, 2])
            assert ended.numbers == [7]
            running._ensemble.inboxes["reader1"].close("finished")
            with pytest.raises(Closed) as caught:
                await ctx.send(News(3))
            assert caught.value.message == News(3)

    within(10, main())


def test_a_subscriber_that_ends_while_a_sender_waits_for_it_is_passed_over() -> None:
    async def main() -> None:
        ending, alive = readers = [Reader(), Reader(ready=True)]
        app = paper(*readers)
        async with start(app, dead_letters=lambda _: None) as running:
            ctx = await busy(running, app)
            await ctx.send(News(1))
            sending = asyncio.create_task(ctx.send(News(2)))
            await turns()
            assert waiting(running) == [1, 0]
            running._ensemble.inboxes["reader0"].close("finished")
            assert await sending is True
            assert alive.numbers == [0, 1, 2]
            ending.gate.set()

    within(10, main())


def test_fail_and_block_may_be_mixed_and_the_failure_is_told_when_the_rest_is_done() -> None:
    async def main() -> None:
        failing, blocking, quick = readers = [Reader(), Reader(), Reader(ready=True)]
        app = paper(*readers, overflows={0: Fail()})
        async with start(app, dead_letters=lambda _: None) as running:
            ctx = await busy(running, app)
            await ctx.send(News(1))
            message = News(2)
            sending = asyncio.create_task(ctx.send(message))
            await turns()
            assert not sending.done()
            assert waiting(running) == [0, 1, 0]
            blocking.gate.set()
            with pytest.raises(Full) as caught:
                await sending
            assert caught.value.message is message
            assert caught.value.subsystem == "reader0"
            await turns()
            assert blocking.numbers == quick.numbers == [0, 1, 2]
            failing.gate.set()

    within(10, main())


def test_try_send_gives_to_all_with_room_and_then_says_who_is_full() -> None:
    async def main() -> None:
        slow, quick = readers = [Reader(), Reader(ready=True)]
        app = paper(*readers)
        async with start(app, dead_letters=lambda _: None) as running:
            ctx = await busy(running, app)
            await ctx.send(News(1))
            await turns()
            with pytest.raises(Full, match="'reader0'"):
                ctx.try_send(News(2))
            await turns()
            assert quick.numbers == [0, 1, 2]
            slow.gate.set()

    within(10, main())


def test_during_a_stop_a_broadcast_is_accepted_where_it_fits_and_waits_nowhere() -> None:
    outcomes: list[Any] = []

    class Late(Subsystem):
        async def run(self, ctx: Any) -> None:
            try:
                await ctx.recv()
            except Closed:
                for number in range(2):
                    try:
                        outcomes.append(await ctx.send(News(number)))
                    except Closed:
                        outcomes.append(Closed)

    class Holds(Reader):
        async def stopped(self, ctx: Any) -> None:
            await asyncio.sleep(0.05)

    @orchestra(signal=Halt, event=Halt)
    class App:
        late: Late = subsystem(sends=[News])
        one: Holds = subsystem(subscribes=[News], message_capacity=1)
        two: Holds = subsystem(subscribes=[News], message_capacity=1)

    async def main() -> None:
        async with start(App(late=Late(), one=Holds(), two=Holds()), dead_letters=lambda _: None) as running:
            await turns()
            stopping = asyncio.create_task(running.stop())
            await turns()
            assert outcomes == [True, Closed]
            await stopping

    within(10, main())


# boxes


def test_a_broadcast_is_packed_once_for_all() -> None:
    async def main() -> None:
        readers = [Reader(ready=True) for _ in range(3)]
        app = paper(*readers, boxed_messages=True)
        async with start(app) as running:
            await turns()
            ctx = app.station.ctx
            message = News(5)
            assert await ctx.send(message)
            await turns()
            entries = [reader.got[0] for reader in readers]
            assert entries == [message] * 3
            assert all(entry is not message for entry in entries)
            assert len({id(entry) for entry in entries}) == 3
            box = Box.seal(News(6))
            lanes = [running._ensemble.inboxes[f"reader{number}"].lanes[0] for number in range(3)]
            assert ctx.try_send(box)
            assert [lane.queue[0] for lane in lanes] == [box] * 3
            assert all(lane.queue[0] is box for lane in lanes)
            await turns()
            assert all(reader.numbers == [5, 6] for reader in readers)

    within(10, main())


def test_a_box_made_ahead_is_opened_for_receivers_that_take_none() -> None:
    async def main() -> None:
        readers = [Reader(ready=True) for _ in range(2)]
        app = paper(*readers)
        async with start(app):
            await turns()
            assert await app.station.ctx.send(Box.seal(News(6)))
            await turns()
            assert [reader.got for reader in readers] == [[News(6)], [News(6)]]

    within(10, main())


class Packed(msgspec.Struct, frozen=True):
    value: Any


class Number(msgspec.Struct, frozen=True):
    value: int


@boxed
class BoxedNumber(Number, frozen=True): ...


class Takes(Actor):
    def __init__(self) -> None:
        self.got: list[Any] = []

    def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(message)


def test_a_subclass_with_a_switch_of_its_own_is_packed_and_keeps_its_class() -> None:
    @orchestra(signal=Halt, event=Halt)
    class App:
        takes: Takes = subsystem(consumes=Number)

    async def main() -> None:
        takes = Takes()
        async with start(App(takes=takes)) as running:
            plain, packed = Number(1), BoxedNumber(2)
            await running.send(plain)
            await running.send(packed)
            await turns()
            assert takes.got[0] is plain
            assert takes.got[1] == packed
            assert takes.got[1] is not packed
            assert type(takes.got[1]) is BoxedNumber
            with pytest.raises(BoxError, match="value"):
                await running.send(BoxedNumber(2**70))

    within(10, main())


# subclasses


class Base:
    def __init__(self, number: int = 0) -> None:
        self.number = number


class Child(Base): ...


class GrandChild(Child): ...


class Mixin: ...


class Mixed(Mixin, GrandChild): ...


class Stranger: ...


@pytest.mark.parametrize(
    ("kind", "receiver"),
    [(Base, "bases"), (Child, "children"), (GrandChild, "children"), (Mixed, "children")],
)
def test_a_message_goes_to_the_nearest_of_its_bases_exactly_once(kind: type[Base], receiver: str) -> None:
    @orchestra(signal=Halt, event=Halt)
    class App:
        bases: Takes = subsystem(consumes=Base)
        children: Takes = subsystem(consumes=Child)

    async def main() -> None:
        app = App(bases=Takes(), children=Takes())
        async with start(app) as running:
            message, another = kind(), kind()
            await running.send(message)
            running.try_send(another)
            await turns()
            other = "bases" if receiver == "children" else "children"
            assert getattr(app, receiver).got == [message, another]
            assert getattr(app, other).got == []

    within(10, main())


# mistakes


class Speaker(Subsystem):
    async def run(self, ctx: Any) -> None:
        self.ctx = ctx
        await ctx.recv()


@orchestra(signal=Halt, event=Halt)
class Mistakes:
    speaker: Speaker = subsystem(sends=[Number, Child])
    mute: Speaker = subsystem(consumes=Never)
    takes: Takes = subsystem(
        consumes=Number | Base, message_capacity={Priority.REAL_TIME: 1, Priority.NORMAL: 1}, overflow=Fail()
    )


NOT_DECLARED = "'speaker' does not declare that it sends it, only Number and Child; add Base to its sends"
MUTE = "'mute' does not declare that it sends anything; add Number to its sends"
NOBODY = "nobody receives it; let a subsystem consume it, or name it in outgoing="


async def send(ctx: Any, message: Any, way: str, **options: Any) -> Any:
    return await ctx.send(message, **options) if way == "send" else ctx.try_send(message, **options)


@pytest.mark.parametrize("way", ["send", "try_send"])
def test_mistakes_are_told_exactly_and_put_nothing_anywhere(way: str) -> None:
    async def main() -> None:
        app = Mistakes(speaker=Speaker(), mute=Speaker(), takes=Takes())
        async with start(app) as running:
            await turns()
            wrong: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
                (
                    app.speaker.ctx,
                    Stranger(),
                    {},
                    UndeclaredMessage,
                    f"Stranger cannot be sent: {NOBODY}",
                ),
                (
                    app.speaker.ctx,
                    Base(),
                    {},
                    UndeclaredMessage,
                    f"Base cannot be sent: {NOT_DECLARED}",
                ),
                (
                    app.mute.ctx,
                    Number(1),
                    {},
                    UndeclaredMessage,
                    f"Number cannot be sent: {MUTE}",
                ),
                (running, Stranger(), {}, UndeclaredMessage, f"Stranger cannot be sent: {NOBODY}"),
                (running, None, {}, UndeclaredMessage, "None cannot be sent: it is no message"),
                (
                    app.speaker.ctx,
                    Number(1),
                    {"priority": Priority.BACKGROUND},
                    UndeclaredPriority,
                    "'takes' has no BACKGROUND lane; it has REAL_TIME, DATA",
                ),
                (
                    app.speaker.ctx,
                    Number(1),
                    {"priority": 3},
                    UndeclaredPriority,
                    "'takes' has no INTERACTIVE_LOW lane; it has REAL_TIME, DATA",
                ),
                (
                    running,
                    GrandChild(),
                    {"priority": "high"},
                    UndeclaredPriority,
                    "'takes' has no lane 'high', for that is no Priority: give Priority.HIGH",
                ),
            ]
            for ctx, message, options, kind, text in wrong:
                with pytest.raises(kind) as caught:
                    await send(ctx, message, way, **options)
                assert type(caught.value) is kind
                assert str(caught.value) == text
                assert caught.value.message is message  # type: ignore[attr-defined]  # each of them has it
            assert running.meters()["takes"].sent == 0
            assert await send(app.speaker.ctx, Child(), way) is True
            assert await send(app.speaker.ctx, GrandChild(), way, priority=Priority.REAL_TIME) is True

    within(10, main())


@pytest.mark.parametrize("way", ["send", "try_send"])
def test_a_priority_for_a_receiver_with_one_lane_is_checked(way: str) -> None:
    @orchestra(signal=Halt, event=Halt)
    class App:
        takes: Takes = subsystem(consumes=Number)

    async def main() -> None:
        takes = Takes()
        async with start(App(takes=takes)) as running:
            assert await send(running, Number(1), way, priority=Priority.NORMAL) is True
            with pytest.raises(UndeclaredPriority, match="'takes' has no DATA_HIGH lane; it has DATA"):
                await send(running, Number(2), way, priority=Priority.HIGH)
            await turns()
            assert takes.got == [Number(1)]

    within(10, main())


@pytest.mark.parametrize("way", ["send", "try_send"])
def test_messages_to_what_is_only_planned_are_dropped_and_counted(way: str) -> None:
    @orchestra(signal=Halt, event=Halt)
    class App:
        speaker: Speaker = subsystem(sends=[Number])
        planned: Takes = subsystem(consumes=Number, wip=True)

    async def main() -> None:
        app = App(speaker=Speaker())
        async with start(app) as running:
            await turns()
            assert await send(app.speaker.ctx, Number(1), way) is False
            assert await send(running, BoxedNumber(1), way) is False
            assert await send(running, Box.seal(Number(1)), way) is False
            meters = running.meters()["planned"]
            assert (meters.dropped, dict(meters.dropped_by)) == (3, {"wip": 3})

    within(10, main())


@pytest.mark.parametrize("way", ["send", "try_send"])
def test_a_broadcast_to_one_who_is_planned_reaches_the_others(way: str) -> None:
    @orchestra(signal=Halt, event=Halt)
    class App:
        takes: Takes = subsystem(subscribes=[Number])
        planned: Takes = subsystem(subscribes=[Number], wip=True)

    async def main() -> None:
        takes = Takes()
        async with start(App(takes=takes)) as running:
            assert await send(running, Number(1), way) is False
            await turns()
            assert takes.got == [Number(1)]
            assert running.meters()["planned"].dropped == 1

    within(10, main())
