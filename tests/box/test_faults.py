"""The faults that users of serialisers have met, each tried on a boxed lane with a receiver at its end.

Each test bears the number of the fault in its name.
"""

import asyncio
import copy
import dataclasses
import datetime as dt
import decimal
import enum
import math
import pickle
import uuid
import zoneinfo
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import msgspec
import pytest

from orchestra import (
    Box,
    BoxError,
    Closed,
    DeclarationError,
    Fail,
    Full,
    Priority,
    UndeclaredPriority,
    boxed,
    start,
)
from orchestra.box import codec_of
from orchestra.cli.boxes import what_rides
from orchestra.decorator import plan_of
from tests.box.lanes import boxing, deliver, fan
from tests.box.strictly import same
from tests.runtime.players import Calls, Gated, turns, until, within

if TYPE_CHECKING:
    from fractions import Fraction


class Base(msgspec.Struct):
    n: int = 0


class Child(Base):
    more: str = ""


class Likewise(msgspec.Struct):
    n: int = 0


def one_field(annotation: Any) -> Any:
    return msgspec.defstruct("Message", [("value", annotation)])


def comes(annotation: Any, value: Any) -> Any:
    """What arrives of a message with one field; it is the same as what was sent."""
    kind = one_field(annotation)
    message = kind(value)
    (got,) = deliver(kind, message)
    assert same(got, message) and got is not message
    assert same(Box.seal(message).open(), message)
    return got.value


def refused(annotation: Any, value: Any, *words: str, path: str = "value") -> None:
    """The sender gets the error, with all that there is to tell; the receiver gets nothing and lives on."""
    kind = one_field(annotation)
    message, sink = kind(value), Calls()

    async def main() -> None:
        async with start(boxing(kind, sink)) as running:
            for send in (running.send, running.try_send):
                with pytest.raises(BoxError) as caught:
                    await awaited(send(message))
                error = caught.value
                assert (error.kind, error.path, error.message) == (kind, path, message)
                assert error.message is message
                assert all(word in error.reason for word in (*words, "")), error.reason
                assert str(error).startswith(f"Message.{path} cannot be boxed: ")
            await running.drain()

    within(20, main())
    assert sink.got == []
    with pytest.raises(BoxError):
        Box.seal(message)


async def awaited(sent: Any) -> Any:
    """What comes of a send that may have to be awaited."""
    return sent if isinstance(sent, bool) else await sent


def test_x01_a_child_in_a_field_of_its_base_is_refused_and_as_a_message_comes_back() -> None:
    for annotation, value, path in (
        (Base, Child(1, "x"), "value"),
        (Base | None, Child(1), "value"),
        (list[Base], [Base(), Child()], "value[1]"),
        (dict[str, Base], {"a": Child()}, "value['a']"),
        (tuple[Base, ...], (Child(),), "value[0]"),
    ):
        refused(annotation, value, "Child", path=path)
    comes(Base | Child, Child(1, "x"))
    comes(list[Base | Child], [Child(1, "x"), Base(2)])
    got = deliver(Base, Child(1, "x"), Base(2))
    assert same(got, [Child(1, "x"), Base(2)])


def test_x02_types_of_the_same_shape_do_not_become_each_other() -> None:
    @dataclasses.dataclass
    class Data:
        n: int = 0

    @attrs.define
    class Defined:
        n: int = 0

    for value in (Base(1), Likewise(1), Data(1), Defined(1), {"n": 1}, [1], (1,)):
        comes(Base | Likewise | Data | Defined | dict[str, int] | list[int] | tuple[int, ...], value)
    comes(list[Base | Likewise], [Likewise(1), Base(1), Likewise(2)])
    refused(Base, Likewise(1), "Likewise")


@pytest.mark.parametrize("annotation", [Any, object, list[Any], dict[str, object], "Any | None"])
def test_x03_an_untyped_payload_keeps_its_type(annotation: Any) -> None:
    for payload in (Base(1), (1, 2), {1, 2}, {"a": (1,)}, uuid.uuid4(), dt.datetime(2024, 1, 1), b"x", 2**70):
        value = {list[Any]: [payload], dict[str, object]: {"a": payload}}.get(annotation, payload)
        got = comes(annotation, value)
        inner = next(iter(got.values() if isinstance(got, dict) else got)) if got is not payload else got
        assert inner is payload


def test_x04_large_integers_come_back_or_are_refused() -> None:
    for number in (2**63 - 1, 2**63, 2**64 - 1, -(2**63)):
        comes(int, number)
        comes(list[int], [number])
        comes(float, number)
        comes(dict[int, int], {number: number})
    for number in (2**64, -(2**63) - 1, 10**30):
        refused(int, number, "64 bits")
        refused(float, number, "64 bits")
        refused(list[list[int]], [[1], [number]], "64 bits", path="value[1][0]")
        refused(dict[int, str], {number: ""}, "64 bits", path=f"value[key {number}]")
        comes(Any, number)
    refused(int, True + 0.0, "float")
    refused(bool, 1, "int")


def test_x05_numbers_that_are_none_and_the_sign_of_zero_come_back() -> None:
    for number in (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308):
        comes(float, number)
        comes(list[float], [number, 1])
        comes(float | str | None, number)
    for text in ("NaN", "-NaN123", "sNaN", "Infinity", "-0", "0E+5", "1.00", "1E-1000"):
        comes(decimal.Decimal, decimal.Decimal(text))
        comes(list[decimal.Decimal | None], [decimal.Decimal(text), None])


def test_x06_moments_keep_zone_and_fold() -> None:
    noon = dt.datetime(2024, 10, 27, 2, 30, 0, 1)
    zones = [None, dt.UTC, dt.timezone(dt.timedelta(hours=2)), zoneinfo.ZoneInfo("UTC")]
    zones += [zoneinfo.ZoneInfo(name) for name in sorted(zoneinfo.available_timezones())[:3]]
    for zone in zones:
        for fold in (0, 1):
            when = noon.replace(tzinfo=zone, fold=fold)
            for annotation in (dt.datetime, Any, dt.datetime | str, dt.date, dt.datetime | None):
                assert comes(annotation, when).tzinfo is zone
            comes(dict[dt.datetime, int], {when: 1})
            comes(dt.time, when.timetz())
            comes(dt.time | str, when.timetz())
    comes(dt.timedelta, dt.timedelta(days=-1, microseconds=1))


class Tone(enum.StrEnum):
    LOW = "2024-01-01"


def test_x07_the_right_member_of_a_union_of_types_that_are_text_in_the_frame() -> None:
    either = (
        str
        | dt.datetime
        | dt.date
        | dt.time
        | dt.timedelta
        | uuid.UUID
        | decimal.Decimal
        | Tone
        | bytes
        | bytearray
    )
    moments = [dt.datetime(2024, 1, 1), dt.date(2024, 1, 1), dt.time(1), dt.timedelta(1), uuid.uuid4()]
    values = [*moments, decimal.Decimal("1.0"), Tone.LOW, b"2024-01-01", bytearray(b"2024-01-01")]
    for value in [*values, *map(str, values), dt.datetime(2024, 1, 1).isoformat(), "1.0"]:
        comes(either, value)
        comes(list[either], [value, ""])  # type: ignore[valid-type]  # made at run time
    comes(Literal["2024-01-01"] | dt.date | uuid.UUID, "2024-01-01")
    comes(Literal["2024-01-01"] | dt.date | uuid.UUID, dt.date(2024, 1, 1))
    refused(Literal["2024-01-01"] | dt.date, Tone.LOW, "Tone")


class Text(str):
    __slots__ = ()


def test_x08_children_of_text_and_numbers_are_refused_by_name_or_ride_where_declared() -> None:
    refused(str, Text("x"), "Text")
    refused(dict[str, int], {Text("k"): 1}, "Text", path="value[key 'k']")
    refused(list[str], ["a", Text("x")], "Text", path="value[1]")
    text = Text("x")
    assert comes(Text, text) is text
    assert next(iter(comes(dict[Text, int], {text: 1}))) is text


def test_x08_numpy_values_are_refused_by_name_or_ride_where_declared() -> None:
    np = pytest.importorskip("numpy")
    for annotation, value, name, path in (
        (float, np.float64(1.5), "float64", "value"),
        (int, np.int64(1), "int64", "value"),
        (bool, np.bool_(True), "numpy.bool", "value"),
        (str, np.str_("x"), "str_", "value"),
        (bytes, np.bytes_(b"x"), "bytes_", "value"),
        (list[float], [1.0, np.float64(2)], "float64", "value[1]"),
        (list[int], np.arange(3), "ndarray", "value"),
        (dict[str, int], {np.str_("k"): 1}, "str_", f"value[key {np.str_('k')!r}]"),
        (dt.datetime, np.datetime64("2024-01-01"), "datetime64", "value"),
        (Literal[1, 2], np.int64(1), "declared values", "value"),
    ):
        refused(annotation, value, name, path=path)
    array = np.arange(3)
    for annotation in (np.ndarray, np.ndarray | None, Any, np.ndarray[Any, np.dtype[np.int64]]):
        assert comes(annotation, array) is array
    for value in (np.float64(1.5), np.int64(3), np.bool_(False)):
        assert comes(type(value) | None, value) is value


class Node(msgspec.Struct):
    kids: "list[Node]" = []
    next: "Node | None" = None


@dataclasses.dataclass
class Link:
    next: "Link | None" = None
    named: "dict[str, Link]" = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize("kind", [Node, Link])
def test_x09_cycles_and_deep_nesting_are_refused_and_the_orchestra_lives_on(kind: Any) -> None:
    around = kind()
    around.next = around
    through = kind()
    if kind is Node:
        through.kids.append(through)
    else:
        through.named["x"] = through
    deep = None
    for _ in range(20_000 if kind is Link else 2_000):
        deep = kind(next=deep)
    good, sink = kind(next=kind()), Calls()

    async def main() -> None:
        async with start(boxing(kind, sink)) as running:
            for wrong in (around, through, deep):
                with pytest.raises(BoxError, match="contains itself, or is nested more than 100 levels"):
                    await running.send(wrong)
                await running.send(good)
            await running.drain()

    within(20, main())
    assert same(sink.got, [good] * 3)
    while deep is not None:
        deep = deep.next
    items: list[Any] = []
    items.append(items)
    refused(list[list[int]], items, path="value[0][0]")
    assert comes(list[Any], [items])[0] is items


def test_x09_a_message_of_the_greatest_depth_sent_from_deep_in_the_stack() -> None:
    deep: Any = None
    for _ in range(100):
        deep = Node([], deep)

    def down(levels: int) -> Any:
        return down(levels - 1) if levels else Box.seal(deep)

    assert same(down(300).open(), deep)
    try:
        down(850)
    except BoxError:
        pass  # there is not enough of the stack left
    except RecursionError:
        pass  # for `down` itself


class Buffer(msgspec.Struct):
    data: bytearray
    items: list[list[int]]


def test_x10_receivers_share_nothing_with_the_sender_nor_with_each_other() -> None:
    orchestra = fan(Buffer)
    buffer = Buffer(bytearray(b"abc"), [[1]])
    before = copy.deepcopy(buffer)

    async def main() -> None:
        async with start(orchestra) as running:
            await running.send(buffer)
            buffer.data[:] = b"xyz"
            buffer.items[0].append(2)
            buffer.items.append([])
            await running.drain()

    within(20, main())
    (first,), (second,), (third,) = orchestra.first.got, orchestra.second.got, orchestra.third.got
    assert same(first, before) and same(second, before)
    assert third is buffer  # it takes its messages as they are
    first.items[0].append(3)
    first.data[:] = b""
    assert same(second, before)


def test_x10_one_buffer_that_is_filled_again_for_each_send() -> None:
    sink, buffer = Gated(), Buffer(bytearray(b"0"), [[0]])

    async def main() -> None:
        async with start(boxing(Buffer, sink, message_capacity=2)) as running:

            async def refill() -> None:
                for n in range(10):
                    buffer.data[:] = b"%d" % n
                    buffer.items[0][0] = n
                    await running.send(buffer)

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(refill())
                await turns()
                sink.gate.set()
            await running.drain()

    within(20, main())
    assert same(sink.got, [Buffer(bytearray(b"%d" % n), [[n]]) for n in range(10)])


def test_x11_the_box_shows_up_nowhere() -> None:
    class Judges(Gated):
        @staticmethod
        def priority(message: Any) -> Priority:
            seen.append(message)
            return Priority.NORMAL

    seen: list[Any] = []
    letters: list[Any] = []
    sink, messages = Judges(), [Buffer(bytearray(b"%d" % n), []) for n in range(5)]

    async def main() -> None:
        levels = {Priority.NORMAL: 2}
        app = boxing(Buffer, sink, message_capacity=levels, overflow=Fail())
        async with start(app, dead_letters=letters.append) as running:
            await running.send(messages[0])
            await until(lambda: sink.begun)
            await running.send(messages[1])
            await running.send(messages[2])
            for send in (running.send, running.try_send):
                with pytest.raises(Full) as full:
                    await awaited(send(messages[3]))
                assert full.value.message is messages[3]
            with pytest.raises(UndeclaredPriority) as undeclared:
                await running.send(messages[3], priority=Priority.HIGH)
            assert undeclared.value.message is messages[3]
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            with pytest.raises(Closed) as closed:
                await running.send(messages[4])
            assert closed.value.message is messages[4]
            sink.gate.set()
            await stopping

    within(20, main())
    assert seen[0] is messages[0] and all(type(one) is Buffer for one in seen)
    assert same(sink.got, messages[:1])
    assert same([letter.message for letter in letters], messages[1:3])


class Corner(enum.Enum):
    ORIGIN = (0, 0)
    UNIT = (1, 1)
    ONE = UNIT


def test_x12_enumerations_with_tuples_as_values_come_back() -> None:
    for member in Corner:
        assert comes(Corner, member) is member
        assert comes(Corner | str | None, member) is member
        comes(list[Corner], [member])
        comes(dict[Corner, Corner], {member: Corner.ONE})
        comes(set[Corner], {member})


class Picky(Exception):
    def __init__(self, one: int, *, two: str) -> None:
        super().__init__(f"{one} {two}")
        self.one, self.two = one, two


class Fault(msgspec.Struct):
    error: Exception
    where: list[str]


def test_x13_exceptions_that_need_arguments_arrive() -> None:
    error = Picky(1, two="x")
    (got,) = deliver(Picky, error)
    assert got is error
    (fault,) = deliver(Fault, Fault(error, ["a"]))
    assert fault.error is error and fault.where == ["a"]


def test_x13_the_error_of_a_box_can_be_pickled() -> None:
    with pytest.raises(BoxError) as caught:
        Box.seal(Base("x"))  # type: ignore[arg-type]  # the mistake
    error = pickle.loads(pickle.dumps(caught.value))
    assert (type(error), str(error)) == (BoxError, str(caught.value))
    assert (error.kind, error.path, error.message) == (Base, "n", Base("x"))  # type: ignore[arg-type]  # see above


class Hiding(Base):
    n: ClassVar[int] = 3  # type: ignore[misc]  # the mistake


class Overriding(Base):
    n = 3  # type: ignore[misc]  # the mistake


@dataclasses.dataclass
class DataBase:
    n: int = 0


@dataclasses.dataclass
class DataHiding(DataBase):
    n: ClassVar[int] = 3  # type: ignore[misc]  # the mistake


@attrs.define(slots=False)
class AttrsBase:
    n: int = 0


@attrs.define(slots=False)
class AttrsHiding(AttrsBase):
    n: ClassVar[int] = 3  # type: ignore[misc]  # the mistake


def test_x14_a_field_that_a_child_overrides_by_a_class_variable_reads_the_same() -> None:
    class Marked(Hiding): ...

    with pytest.raises(DeclarationError, match="its field n is hidden by an attribute of the class"):
        boxing(boxed(Marked), Calls())
    for message in (Hiding(5), Overriding(5), DataHiding(), AttrsHiding(5)):
        (got,) = deliver(type(message), message)
        assert got.n == message.n and type(got) is type(message)
        kind = one_field(list[type(message)])  # type: ignore[misc]  # made at run time
        (held,) = deliver(kind, kind([message]))
        assert held.value[0].n == message.n and type(held.value[0]) is type(message)


def test_x15_a_lone_surrogate_is_refused_in_the_sender_and_named() -> None:
    for text, place in (("\ud800", 0), ("ab\udfff", 2), ("ä\ud83d", 1)):
        refused(str, text, f"surrogate at {place}")
        refused(str | int | None, text, "surrogate")
        refused(list[str], ["a", text], "surrogate", path="value[1]")
        refused(dict[str, int], {text: 1}, "surrogate", path=f"value[key {text!r}]")
        refused(list[Child], [Child(1, text)], "surrogate", path="value[0].more")
        refused(tuple[str, int], (text, 1), "surrogate", path="value[0]")
        assert comes(Any, text) is text
    comes(str, "\U0001f600 \x00 ä")


class Half(msgspec.Struct):
    ratio: "Fraction"
    ratios: "list[Fraction] | None"
    items: list[int]


def test_d03_a_type_for_the_type_checker_alone_rides_and_the_other_fields_are_packed() -> None:
    ratio: Any = [1]
    message = Half(ratio, [ratio], [1])
    (got,) = deliver(Half, message)
    assert got.ratio is ratio and got.ratios[0] is ratio
    assert got.items == [1] and got.items is not message.items
    reason = "its annotation 'Fraction' cannot be resolved (NameError: name 'Fraction' is not defined)"
    assert codec_of(Half).rides["ratio"] == reason
    (told,) = what_rides(plan_of(type(boxing(Half, Calls()))))
    assert "ratio" in told and "'Fraction' cannot be resolved" in told
