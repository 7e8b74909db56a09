"""Large bytes go beside the frame: they are the same object afterwards, and count as the rest does."""

import asyncio
import datetime as dt
import gc
import pickle
import zoneinfo
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra import (
    Actor,
    Box,
    BoxError,
    Context,
    DeadLetter,
    Live,
    Reply,
    TooLarge,
    boxed,
    handles,
    orchestra,
    start,
    subsystem,
)
from orchestra.box import LargeBox, beside, codec_of
from orchestra.link.crossing import fit_to_cross
from orchestra.packing.beside import LARGE
from tests.box.lanes import boxing, deliver, fan
from tests.box.strictly import same
from tests.runtime.players import Bell, Calls, Gated, Knock, within

SMALL, BIG = bytes(LARGE - 1), bytes(LARGE)


class Packet(msgspec.Struct):
    data: bytes


class Image(msgspec.Struct, frozen=True):
    size: tuple[int, int]
    data: bytes
    tags: list[str] = []
    mask: bytes | None = None


@attrs.frozen
class Scan:
    at: float
    points: bytes


class Request(msgspec.Struct):
    extra: Live[object]
    data: bytes
    number: int


class Rows(msgspec.Struct):
    items: list[Any]
    data: bytes


class Shot(msgspec.Struct):
    when: dt.datetime
    data: bytes
    more: bytes | None = None


class Job(msgspec.Struct):
    data: bytes
    reply: Reply[int]


class Album(msgspec.Struct):
    images: list[Image]


@boxed(check=False)
class Trusted(msgspec.Struct):
    data: bytes


MESSAGES = [
    Packet(BIG),
    Image((3, 4), BIG, ["x"]),
    Image((3, 4), b"", ["x"], BIG),
    Image((3, 4), BIG, ["x"], BIG + b"2"),
    Scan(1.5, BIG),
    Request(print, BIG, 1),
    Rows([1, "x"], BIG),
    Rows([], BIG),
    Shot(dt.datetime(2024, 5, 17, tzinfo=zoneinfo.ZoneInfo("Europe/Athens")), BIG),
]
"""Of every kind of box: packed, with riders, with a part that is packed loosely, loose as a whole."""


@pytest.mark.parametrize("message", MESSAGES)
def test_large_bytes_are_not_copied(message: Any) -> None:
    box = Box.seal(message)
    opened = box.open()
    assert same(opened, message)
    assert BIG not in box.frame
    assert len(box.frame) + LARGE <= box.size <= len(box.frame) + 2 * LARGE + 1
    for name in codec_of(type(message)).large:
        assert getattr(opened, name) is getattr(message, name)


@pytest.mark.parametrize("message", MESSAGES)
def test_they_can_be_joined_to_the_frame(message: Any) -> None:
    box, join = Box.seal(message), codec_of(type(message)).join
    assert join is not None
    joined = join(box)
    assert same(joined.open(), message)
    assert BIG in joined.frame
    assert joined.size == len(joined.frame) > box.size
    assert joined != box


@pytest.mark.parametrize(
    "message",
    [
        Packet(SMALL),
        Image((1, 2), SMALL, [], SMALL),
        Scan(1.0, SMALL),
        Request(print, SMALL, 1),
        Rows([1], SMALL),
        Shot(dt.datetime(2024, 5, 17, fold=1), SMALL),
    ],
)
def test_small_bytes_are_in_the_frame(message: Any) -> None:
    box = Box.seal(message)
    assert SMALL in box.frame
    assert box.size == len(box.frame)
    assert same(box.open(), message)


def test_what_can_be_changed_is_copied_beside_large_bytes() -> None:
    message = Image((1, 2), BIG, ["x"])
    box = Box.seal(message)
    message.tags.append("changed")
    assert box.open() == Image((1, 2), BIG, ["x"])
    assert box.open().tags is not box.open().tags


def test_bytes_within_other_values_are_in_the_frame() -> None:
    message = Album([Image((1, 2), BIG)])
    box = Box.seal(message)
    assert type(box) is Box
    assert BIG in box.frame
    assert box.open() == message
    assert codec_of(Album).large == ()


@pytest.mark.parametrize("kind", [Packet, Request, Image, Scan])
def test_what_only_resembles_bytes_is_refused_all_the_same(kind: Any) -> None:
    class More(bytes): ...

    for value in (bytearray(BIG), memoryview(BIG), More(BIG), "x" * LARGE):
        fields = {Packet: (value,), Request: (1, value, 2), Image: ((1, 2), value), Scan: (1.0, value)}
        with pytest.raises(BoxError, match=r"data|points"):
            Box.seal(kind(*fields[kind]))


@pytest.mark.parametrize("data", [BIG, bytearray(BIG)])
def test_what_is_trusted_to_be_bytes_is_copied(data: Any) -> None:
    message = Trusted(data)
    box = Box.seal(message)
    assert box.size == len(box.frame) > LARGE
    assert box.open().data == BIG
    assert box.open().data is not data


def test_of_bytes_that_are_too_many_for_msgpack_only_a_box_that_leaves_knows() -> None:
    try:
        huge = bytes(2**32)
    except MemoryError:
        pytest.skip("there is not so much memory")
    message = Packet(huge)
    box = Box.seal(message)
    assert box.open().data is huge
    with pytest.raises(BoxError, match="Packet cannot be boxed: msgpack cannot carry it"):
        fit_to_cross(box, message)


@given(st.integers(0, 2 * LARGE), st.none() | st.integers(0, 2 * LARGE), st.lists(st.text(max_size=3)))
def test_a_box_is_the_message_whatever_the_sizes(data: int, mask: int | None, tags: list[str]) -> None:
    message = Image((data, 2), bytes(data), tags, None if mask is None else bytes(mask))
    box = Box.seal(message)
    assert same(box.open(), message)
    assert box.size >= data + (mask or 0)
    codec = codec_of(Image)
    if type(box) is LargeBox:
        assert codec.join is not None
        joined = codec.join(box)
        assert type(joined) is Box
        assert same(joined.open(), message)


def test_boxes_with_bytes_beside_them_are_values() -> None:
    first, second, other = Box.seal(Packet(BIG)), Box.seal(Packet(bytes(LARGE))), Box.seal(Packet(BIG + b"1"))
    assert first == second
    assert hash(first) == hash(second)
    assert first != other
    assert hash(first) != hash(other)
    assert first != Box.seal(Packet(SMALL))
    assert (first.size, other.size) == (LARGE, LARGE + 1)
    assert repr(first) == f"<Box of Packet, {LARGE} bytes>"
    assert pickle.loads(pickle.dumps(first)) == first
    with pytest.raises(AttributeError):
        first.riders = ()  # type: ignore[attr-defined]


def test_boxes_with_riders_and_bytes_have_hashes_of_their_own() -> None:
    boxes = {Box.seal(Request(None, BIG + b"%d" % n, 1)) for n in range(100)}
    assert len({hash(box) for box in boxes}) == len(boxes) == 100


def test_the_collector_does_not_keep_an_eye_on_them() -> None:
    box = Box.seal(Packet(BIG))
    gc.collect()
    assert not gc.is_tracked(box)
    assert not gc.is_tracked(beside(box))


def test_bytes_that_ride_for_another_reason_have_no_size() -> None:
    assert Box.seal(Request(bytes(1000), b"", 1)).size < 10
    assert Box.seal(Rows([bytes(1000)], b"")).size < 10
    assert Box.seal(bytes(1000)).size == 0


@pytest.mark.parametrize("size", [0, LARGE - 1, LARGE, 1029])
@pytest.mark.parametrize("kind", [Packet, Image | Packet])
def test_they_are_delivered(size: int, kind: Any) -> None:
    message = Packet(bytes(size))
    (got,) = deliver(kind, message)
    assert same(got, message)
    assert got is not message


@pytest.mark.parametrize("message", [Packet(BIG), Packet(SMALL), Image((1, 2), BIG, ["x"])])
def test_a_broadcast_shares_them(message: Any) -> None:
    async def main() -> None:
        app = fan(type(message))
        async with start(app) as running:
            await running.send(message)
            await running.drain()
        for player in (app.first, app.second, app.third):
            assert player.got == [message]

    within(10, main())


@pytest.mark.parametrize("value", [bytearray(BIG), bytearray(SMALL), "x" * LARGE, None, 5])
def test_a_send_refuses_what_is_no_bytes(value: Any) -> None:
    with pytest.raises(BoxError, match="data"):
        deliver(Packet, Packet(value))


class Sends(Actor):
    """Sends on what it gets, from the generated code of a subsystem."""

    @handles(Knock)
    async def on_knock(self, ctx: Any, message: Knock) -> None:
        for size in (0, LARGE - 1, LARGE, 1029):
            await ctx.send(Packet(bytes(size)))
        for value in (bytearray(BIG), "x", None):
            with pytest.raises(BoxError, match="data"):
                await ctx.send(Packet(value))


def test_the_generated_sends_put_them_beside_the_frame_too() -> None:
    @orchestra(signal=Bell, event=Bell, boxed_messages=True)
    class App:
        sends: Sends = subsystem(consumes=Knock, sends=[Packet])
        sink: Gated = subsystem(consumes=Packet)

    async def main() -> None:
        sink = Gated()
        async with start(App(sends=Sends(), sink=sink)) as running:
            await running.send(Knock())
            while running.meters()["sink"].queued < 3:
                await asyncio.sleep(0)
            assert running.meters()["sink"].bytes == (LARGE - 1 + 2) + LARGE + 1029
            sink.gate.set()
            await running.drain()
        assert [len(message.data) for message in sink.got] == [0, LARGE - 1, LARGE, 1029]

    within(10, main())


def test_they_count_in_the_capacity_in_bytes() -> None:
    async def main() -> None:
        sink = Gated()
        async with start(boxing(Packet | Request, sink, capacity_bytes=3 * LARGE)) as running:
            await running.send(Packet(b""))
            while running.meters()["sink"].queued:
                await asyncio.sleep(0)
            assert running.try_send(Packet(BIG))
            assert running.try_send(Request(print, BIG, 1))
            assert running.try_send(Request(bytes(10_000), b"", 1))
            assert running.meters()["sink"].bytes == 2 * LARGE + 1 + 4
            with pytest.raises(TooLarge, match=f"a box of {3 * LARGE + 1} bytes"):
                running.try_send(Packet(bytes(3 * LARGE + 1)))
            sink.gate.set()
            await running.drain()

    within(10, main())


def test_a_dead_letter_has_the_message() -> None:
    letters: list[DeadLetter] = []

    async def main() -> None:
        sink = Gated()
        async with start(boxing(Packet, sink), dead_letters=letters.append) as running:
            for _ in range(2):
                await running.send(Packet(BIG))
            await asyncio.sleep(0.01)
            asyncio.get_running_loop().call_later(0.01, sink.gate.set)
            await running.stop()

    within(10, main())
    assert [letter.message for letter in letters] == [Packet(BIG)]


def test_an_ask_carries_them() -> None:
    class Counts(Actor):
        @handles(Job)
        def count(self, ctx: Context[Any], message: Job) -> None:
            message.reply.send(len(message.data))

    async def main() -> None:
        async with start(boxing(Job, Counts())) as running:
            for size in (3, LARGE):
                assert await running.ask(lambda reply, size=size: Job(bytes(size), reply)) == size

    within(10, main())


def test_calls_get_a_message_of_their_own() -> None:
    sink = Calls()
    message = Image((1, 2), BIG, ["x"])
    (got,) = deliver(Image, message, sink=sink)
    assert got.data is message.data
    assert got.tags is not message.tags
