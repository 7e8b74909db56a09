"""All kinds of subsystems, lanes and messages over the link."""

import asyncio
import datetime as dt
import zoneinfo
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Generic, Never, TypeVar

import attrs
import msgspec
import pytest

from orchestra import (
    Actor,
    BlockingContext,
    Box,
    BoxError,
    Closed,
    Conductor,
    Context,
    LinkError,
    Live,
    Priority,
    Recipient,
    Remote,
    RemoteError,
    Reply,
    Subsystem,
    boxed,
    orchestra,
    start,
    subsystem,
)
from tests.link.fabric import Network, until

T = TypeVar("T")


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def plain() -> None:
        asyncio.run(asyncio.wait_for(test(), 10))

    del plain.__wrapped__
    return plain


class Flag(msgspec.Struct, frozen=True):
    k: int


class Poke(msgspec.Struct, frozen=True):
    k: int


class Word(msgspec.Struct, frozen=True):
    text: str


class Loud(Word, frozen=True):
    """A subclass that nobody declares."""

    volume: int = 11


class Nothing(msgspec.Struct, frozen=True):
    pass


class Moment(msgspec.Struct, frozen=True):
    when: dt.datetime
    what: list[int]


@boxed(False)
class News(msgspec.Struct, frozen=True):
    n: int


class Where(msgspec.Struct, frozen=True):
    answer_to: Recipient[Word]


class Price(msgspec.Struct, frozen=True):
    name: str
    when: dt.datetime


class Quote(msgspec.Struct, frozen=True):
    name: str
    reply: Reply[list[Price]]


class Odd(Exception):
    """An error of the program's own, with something in it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"odd: {code}")
        self.code = code


class Source(Subsystem):
    async def run(self, ctx: Context[Never, Any, Flag]) -> None:
        async for _ in ctx:
            pass


class Thread(Subsystem):
    """It sends from a thread of its own."""

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def run(self, ctx: BlockingContext[Any, Any, Flag]) -> None:
        for n in range(self.count):
            ctx.send(News(n))
        for _ in ctx:
            pass


class Reader(Subsystem):
    """It receives in a `run`."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.prices = 0

    async def run(self, ctx: Context[Any, Any, Flag]) -> None:
        async for item in ctx:
            self.seen.append(item)
            if isinstance(item, Where):
                await item.answer_to.send(Word("from afar"))
            if isinstance(item, Quote):
                self.answer(item)

    def answer(self, quote: Quote) -> None:
        match quote.name:
            case "odd":
                quote.reply.fail(Odd(7))
            case "local":

                class Local(Exception): ...

                Local.__qualname__ = "Unknown"
                quote.reply.fail(Local("what is it"))
                Local.__qualname__ = "Local"
            case "wrong":
                quote.reply.send(["no price"])  # type: ignore[list-item]
            case name:
                when = dt.datetime(2024, 10, 27, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1)
                quote.reply.send([Price(name, when)])


class Diary(Actor):
    """It sends nothing, and is told of news as others are."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @staticmethod
    def priority(message: Any) -> Priority:
        return Priority.HIGH if message.n % 2 else Priority.NORMAL

    def handle(self, ctx: Context[News, Never, Flag], message: News) -> None:
        self.seen.append(message.n)


class Sleeper(Actor):
    """It handles in a thread."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def handle(self, ctx: BlockingContext[Any, Never, Flag], message: News) -> None:
        self.seen.append(message.n)


@orchestra(signal=Flag, event=Poke)
class Mixed:
    source: Source = subsystem(sends=[Word, Nothing, Moment, News, Where, Quote])
    thread: Thread = subsystem(sends=[News], blocking=True)
    reader: Reader = subsystem(
        consumes=Nothing | Moment | Where | Quote | Poke, sends=[Word], message_capacity=8
    )
    words: Source = subsystem(consumes=Word)
    diary: Diary = subsystem(subscribes=[News], message_capacity={Priority.HIGH: 4, Priority.NORMAL: 4})
    sleeper: Sleeper = subsystem(subscribes=[News], blocking=True, message_capacity=4, boxed=True)

    async def on_event(self, conductor: Conductor[Flag], event: Poke) -> None:
        await conductor.broadcast(Flag(event.k))


def parts(network: Network, name: str, **here: Any) -> Any:
    fields = {each: Remote() for each in ("source", "thread", "reader", "words", "diary", "sleeper")}
    return start(Mixed(**(fields | here)), link=network.link(name))


def sender(network: Network, **more: Any) -> Any:
    return parts(network, "sender", source=Source(), thread=more.pop("thread", Thread()), **more)


class Words(Source):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def run(self, ctx: Context[Any, Never, Flag]) -> None:
        async for item in ctx:
            self.seen.append(item)


def receiver(network: Network, **more: Any) -> Any:
    here = {"reader": Reader(), "words": Words(), "diary": Diary(), "sleeper": Sleeper()}
    return parts(network, "receiver", **(here | more))


@run
async def test_a_run_gets_messages_of_all_sorts_as_they_were() -> None:
    network, reader, words = Network(), Reader(), Words()
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    moments = [
        Moment(dt.datetime(2024, 1, 1), [1, 2]),
        Moment(dt.datetime(2024, 10, 27, 2, 30, tzinfo=zone, fold=1), []),
    ]
    async with receiver(network, reader=reader, words=words), sender(network) as running:
        for message in (Nothing(), *moments, Nothing()):
            await running.send(message)
        await running.send(Word("plain"))
        await running.send(Loud("a subclass"))
        await until(lambda: len(reader.seen) == 4 and len(words.seen) == 2)
        assert reader.seen == [Nothing(), *moments, Nothing()]
        assert reader.seen[2].when.fold == 1 and reader.seen[2].when.tzinfo is zone
        assert words.seen == [Word("plain"), Loud("a subclass")]
        assert type(words.seen[1]) is Loud


@run
async def test_a_thread_sends_to_subscribers_elsewhere_one_of_which_is_a_thread() -> None:
    network, diary, sleeper = Network(), Diary(), Sleeper()
    async with receiver(network, diary=diary, sleeper=sleeper), sender(network, thread=Thread(200)):
        await until(lambda: len(diary.seen) == len(sleeper.seen) == 200)
        assert sleeper.seen == list(range(200))
        assert [n for n in diary.seen if n % 2] == list(range(1, 200, 2))
        assert [n for n in diary.seen if not n % 2] == list(range(0, 200, 2))


@run
async def test_subscribers_here_and_elsewhere_get_the_same() -> None:
    network, here, there = Network(), Diary(), Sleeper()
    async with parts(network, "b", sleeper=there, words=Words(), reader=Reader()):
        async with sender(network, diary=here) as running:
            for n in range(50):
                assert await running.send(News(n))
            await until(lambda: len(here.seen) == len(there.seen) == 50)
            assert there.seen == list(range(50))


@run
async def test_a_recipient_crosses_and_leads_to_whoever_receives_the_type() -> None:
    network, words = Network(), Words()

    class Asks(Source):
        async def run(self, ctx: Context[Never, Any, Flag]) -> None:
            await ctx.send(Where(ctx.recipient(Word)))
            await super().run(ctx)

    async with parts(network, "far", reader=Reader(), diary=Diary(), sleeper=Sleeper()):
        async with parts(network, "near", source=Asks(), thread=Thread(), words=words):
            await until(lambda: words.seen == [Word("from afar")])


@run
async def test_answers_come_back_as_their_type_says_and_failures_as_what_they_are() -> None:
    network = Network()
    async with receiver(network), sender(network) as running:
        (price,) = await running.ask(lambda reply: Quote("gold", reply))
        assert price.name == "gold" and price.when.fold == 1 and price.when.tzinfo.key == "Europe/Berlin"
        with pytest.raises(Odd, match="odd: 7") as odd:
            await running.ask(lambda reply: Quote("odd", reply))
        assert odd.value.code == 7
        with pytest.raises(RemoteError, match="what is it") as remote:
            await running.ask(lambda reply: Quote("local", reply))
        assert remote.value.kind == "Unknown"
        with pytest.raises(Exception, match="Price"):
            await running.ask(lambda reply: Quote("wrong", reply))


@run
async def test_events_of_one_process_signal_to_all() -> None:
    network, reader, words = Network(), Reader(), Words()
    async with receiver(network, reader=reader, words=words), sender(network) as running:
        await until(lambda: running.peers())
        await running.event(Poke(3))
        await until(lambda: words.seen == [Flag(3)] == reader.seen)


@run
async def test_one_who_comes_late_begins_with_the_signals_of_then() -> None:
    network, reader = Network(), Reader()
    async with sender(network) as running:
        await running.broadcast(Flag(1))
        async with receiver(network, reader=reader):
            await running.send(Nothing())
            await until(lambda: reader.seen == [Nothing()])
            await running.broadcast(Flag(2))
            await running.send(Nothing())
            await until(lambda: reader.seen == [Nothing(), Flag(2), Nothing()])


@run
async def test_a_big_message_goes_through_and_keeps_its_place() -> None:
    network, words = Network(), Words()
    async with receiver(network, words=words), sender(network) as running:
        texts = ["a", "b" * 1_000_000, "c", "d" * 200_000, "e"]
        for text in texts:
            await running.send(Word(text))
        await until(lambda: len(words.seen) == 5)
        assert [word.text for word in words.seen] == texts


@run
async def test_after_a_stop_nothing_more_is_taken_and_who_waits_is_let_go() -> None:
    network = Network()
    async with sender(network) as running:
        waiting = asyncio.ensure_future(running.send(Nothing()))
        await asyncio.sleep(0.01)
        await running.stop()
        with pytest.raises(Closed):
            await waiting
        with pytest.raises(Closed):
            await running.send(Nothing())


class Held(msgspec.Struct, frozen=True):
    thing: Live[list[int]]
    any: Any


class Plain:
    """A class without fields."""


@orchestra(signal=Flag, event=Flag)
class Bound:
    source: Source = subsystem(sends=[Held, Plain])
    reader: Source = subsystem(consumes=Held | Plain)


@run
async def test_what_cannot_cross_is_one_error_at_the_start() -> None:
    network = Network()
    with pytest.raises(LinkError) as error:
        async with start(Bound(source=Source(), reader=Remote()), link=network.link("near")):
            pass
    text = str(error.value)
    assert "reader receives Held" in text and "'thing' (Live)" in text and "'any' (untyped)" in text
    assert "reader receives Plain" in text and "declares no fields" in text
    assert network.sessions == []
    async with start(Bound(source=Remote(), reader=Source()), link=network.link("far")) as running:
        assert running.peers() == {}, "it sends none of it away"


@run
async def test_a_remote_field_wants_a_link() -> None:
    with pytest.raises(LinkError, match=r"Bound\.reader is Remote"):
        async with start(Bound(source=Source(), reader=Remote())):
            pass


class Loose(msgspec.Struct, frozen=True):
    items: tuple[int, ...]
    when: dt.datetime


@orchestra(signal=Flag, event=Flag)
class Checked:
    source: Source = subsystem(sends=[Loose])
    reader: Words = subsystem(consumes=Loose)


@run
async def test_a_value_that_cannot_cross_is_refused_at_the_send() -> None:
    class Zone(dt.tzinfo):
        def utcoffset(self, when: Any) -> dt.timedelta:
            return dt.timedelta(0)

        def dst(self, when: Any) -> None:
            return None

    network = Network()
    async with start(Checked(source=Source(), reader=Remote()), link=network.link("near")) as running:
        with pytest.raises(BoxError, match="time zone is a"):
            await running.send(Loose((1,), dt.datetime(2024, 1, 1, tzinfo=Zone())))


class Blob(msgspec.Struct, frozen=True):
    n: int
    data: bytes


class Packet(msgspec.Struct, frozen=True):
    data: bytes


class Tree(msgspec.Struct, frozen=True):
    branches: "list[Tree]"
    data: bytes


class Shot(msgspec.Struct, frozen=True):
    when: dt.datetime
    data: bytes


class Weigh(msgspec.Struct, frozen=True):
    data: bytes
    reply: Reply[int]


class Scales(Actor):
    def __init__(self) -> None:
        self.got: list[Any] = []

    def handle(self, ctx: Any, message: Any) -> None:
        if isinstance(message, Weigh):
            message.reply.send(len(message.data))
        else:
            self.got.append(message)


@orchestra(signal=Flag, event=Flag, boxed_messages=True)
class Weighing:
    source: Source = subsystem(sends=[Blob, Packet, Tree, Shot, Weigh])
    here: Scales = subsystem(consumes=Never, subscribes=[Blob])
    far: Scales = subsystem(consumes=Packet | Tree | Shot | Weigh, subscribes=[Blob])


@run
async def test_large_bytes_cross_in_the_frame() -> None:
    network = Network()
    here, far = Scales(), Scales()
    when = dt.datetime(2024, 5, 17, tzinfo=zoneinfo.ZoneInfo("Europe/Athens"))
    messages: list[Any] = [
        kind(*more, bytes(size))
        for size in (3, 256, 5_000, 300_000)
        for kind, more in ((Blob, (size,)), (Packet, ()), (Tree, ([Tree([], b"x")],)), (Shot, (when,)))
    ]
    remote = Weighing(source=Remote(replicas="any"), here=Remote(), far=far)
    near = Weighing(source=Source(), here=here, far=Remote())
    async with (
        start(remote, link=network.link("far")),
        start(near, link=network.link("near")) as running,
    ):
        for message in messages:
            await running.send(message)
            await running.send(Box.seal(message))
        for size in (3, 300, 200_000):
            assert await running.ask(lambda reply, size=size: Weigh(bytes(size), reply)) == size
        await until(lambda: len(far.got) == 2 * len(messages))
        twice = [message for message in messages for _ in range(2)]
        assert far.got == twice
        assert here.got == [message for message in twice if isinstance(message, Blob)]


@attrs.frozen
class Sheet(Generic[T]):
    content: T


@orchestra(signal=Flag, event=Flag, boxed_messages=True)
class Press:
    source: Source = subsystem(sends=[Sheet[bytes]])
    far: Scales = subsystem(consumes=Sheet[bytes])


@run
async def test_a_box_of_a_generic_class_that_was_made_ahead_crosses() -> None:
    network, far = Network(), Scales()
    remote = Press(source=Remote(replicas="any"), far=far)
    near = Press(source=Source(), far=Remote())
    async with (
        start(remote, link=network.link("far")),
        start(near, link=network.link("near")) as running,
    ):
        for size in (3, 300):
            await running.send(Box.seal(Sheet(bytes(size))))
        await until(lambda: far.got == [Sheet(bytes(3)), Sheet(bytes(300))])


def test_remote_says_what_makes_no_sense() -> None:
    for wrong in ({"replicas": "all"}, {"by": 3}, {"replicas": "any", "by": len}):
        with pytest.raises(TypeError, match="Remote: "):
            Remote(**wrong)  # type: ignore[arg-type]
