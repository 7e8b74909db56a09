"""For messages and classes that nobody thought of, what is opened equals what was sealed, or is refused."""

import dataclasses
import datetime as dt
import decimal
import enum
import gc
import linecache
import math
import uuid
from typing import Any, Literal, Optional

import attrs
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra.box import Box, codec_of
from orchestra.errors import BoxError
from tests.box.strictly import same


class Tone(enum.Enum):
    HIGH = "high"
    LOW = "low"


class Point(enum.Enum):
    ORIGIN = (0, 0)
    UNIT = (1, 1)


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    ALL = 3


class Level(enum.IntEnum):
    ONE = 1
    TWO = 2


ZONES = st.sampled_from(
    [None, dt.UTC, dt.timezone(dt.timedelta(hours=3), "X"), dt.timezone(dt.timedelta(0), "Z")]
)
FOLDS = st.sampled_from([0, 1])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INTS = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**64 - 1))
UUIDS = st.builds(uuid.UUID, int=st.integers(0, 2**128 - 1), is_safe=st.sampled_from(list(uuid.SafeUUID)))

LEAVES: list[tuple[Any, st.SearchStrategy[Any], bool]] = [
    (int, st.one_of(INTS, st.booleans()), True),
    (float, st.one_of(st.floats(), INTS, st.booleans()), False),
    (bool, st.booleans(), True),
    (str, TEXT, True),
    (bytes, st.binary(max_size=8), True),
    (bytearray, st.binary(max_size=8).map(bytearray), False),
    (type(None), st.none(), True),
    (
        dt.datetime,
        st.builds(lambda when, fold: when.replace(fold=fold), st.datetimes(timezones=ZONES), FOLDS),
        True,
    ),
    (dt.date, st.dates(), True),
    (dt.time, st.builds(lambda when, fold: when.replace(fold=fold), st.times(timezones=ZONES), FOLDS), True),
    (dt.timedelta, st.timedeltas(), True),
    (decimal.Decimal, st.decimals(allow_nan=False), True),
    (uuid.UUID, UUIDS, True),
    (complex, st.complex_numbers(allow_nan=False), True),
    (Tone, st.sampled_from(Tone), True),
    (Point, st.sampled_from(Point), True),
    (Access, st.sampled_from([*Access, Access(0), ~Access.READ]), True),
    (Level, st.sampled_from(Level), True),
    (Literal["a", "b"], st.sampled_from(["a", "b"]), True),
    (Literal[1, True, None, "x"], st.sampled_from([1, True, None, "x"]), True),
    (Literal[1, 2], st.sampled_from([1, 2]), True),
    (object, st.just([1]), False),
]
"""Type, values, and whether the values can be keys."""

Typed = tuple[Any, st.SearchStrategy[Any], bool]


def containers(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """Types of containers of the inner types, and classes with fields of those types."""

    def many(one: Typed) -> st.SearchStrategy[Typed]:
        kind, values, key = one
        few = st.lists(values, max_size=3)
        options: list[Typed] = [
            (list[kind], few, False),
            (tuple[kind, ...], few.map(tuple), key),
            (tuple[kind, int], st.tuples(values, INTS), key),
            (Optional[kind], st.one_of(st.none(), values), key),
            (dict[str, kind], st.dictionaries(TEXT, values, max_size=3), False),
        ]
        if key:
            options += [
                (dict[kind, int], st.dictionaries(values, INTS, max_size=3), False),
                (set[kind], st.sets(values, max_size=3), False),
                (frozenset[kind], st.frozensets(values, max_size=3), True),
            ]
        return st.sampled_from(options)

    def either(pair: tuple[Typed, Typed]) -> Typed:
        one, two = pair
        return one[0] | two[0], st.one_of(one[1], two[1]), one[2] and two[2]

    unions = st.tuples(inner, inner).filter(
        lambda pair: pair[0][0] != pair[1][0] and object not in (pair[0][0], pair[1][0])
    )
    classes = st.builds(make_class, st.lists(inner, max_size=4), st.sampled_from(list(MAKERS)))
    return st.one_of(inner.flatmap(many), unions.map(either), classes)


def _struct(names: list[str], kinds: list[Any], **options: Any) -> type:
    return msgspec.defstruct("Made", list(zip(names, kinds, strict=True)), **options)


def _attrs(names: list[str], kinds: list[Any], **options: Any) -> type:
    return attrs.make_class(
        "Made", {name: attrs.field(type=kind) for name, kind in zip(names, kinds, strict=True)}, **options
    )


def _dataclass(names: list[str], kinds: list[Any], **options: Any) -> type:
    return dataclasses.make_dataclass("Made", list(zip(names, kinds, strict=True)), **options)


MAKERS: dict[str, Any] = {
    "struct": _struct,
    "frozen struct": lambda *a: _struct(*a, frozen=True, gc=False),
    "array": lambda *a: _struct(*a, array_like=True, tag="made", omit_defaults=True),
    "keyword": lambda *a: _struct(*a, kw_only=True, rename="camel", forbid_unknown_fields=True),
    "dict": lambda *a: _struct(*a, dict=True),
    "attrs": lambda *a: _attrs(*a, slots=True),
    "frozen attrs": lambda *a: _attrs(*a, slots=False, frozen=True),
    "dataclass": _dataclass,
    "slots": lambda *a: _dataclass(*a, slots=True, frozen=True),
}
NAMES = ["message", "box", "first_name", "encode"]


def make_class(fields: list[Typed], maker: str) -> Typed:
    """A class with these fields, and messages of it."""
    names = NAMES[: len(fields)]
    kind = MAKERS[maker](names, [one[0] for one in fields])
    values = st.tuples(*(one[1] for one in fields))
    return kind, values.map(lambda row: kind(**dict(zip(names, row, strict=True)))), False


TYPES: st.SearchStrategy[Typed] = st.recursive(st.sampled_from(LEAVES), containers, max_leaves=6)
CLASSES = st.builds(make_class, st.lists(TYPES, min_size=1, max_size=4), st.sampled_from(list(MAKERS)))
SLOW = settings(max_examples=3000, suppress_health_check=list(HealthCheck))


@SLOW
@given(st.data())
def test_a_message_of_any_class_comes_back_strictly_equal(data: st.DataObject) -> None:
    kind, values, _ = data.draw(CLASSES)
    codec = codec_of(kind)
    assert codec.whole is None
    for message in data.draw(st.lists(values, min_size=1, max_size=3)):
        box = codec.seal(message)
        opened = codec.open(box)
        assert same(opened, message), codec.source
        assert opened is not message
        assert box == codec.seal(message)


WRONG = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.tuples(st.integers(), st.text(max_size=2)),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.sampled_from([Tone.LOW, Level.ONE, Access.READ, object(), math.nan, [[]], {"a": object()}]),
    st.sets(st.integers(), max_size=2),
    st.datetimes(),
)


@SLOW
@given(st.data())
def test_a_message_that_breaks_its_declaration_comes_back_strictly_equal_or_is_refused(
    data: st.DataObject,
) -> None:
    kind, values, _ = data.draw(CLASSES)
    codec = codec_of(kind)
    message = data.draw(values)
    name = data.draw(st.sampled_from(NAMES[: len(kind.__annotations__)]))
    wrong = data.draw(WRONG)
    try:
        setattr(message, name, wrong)
    except (AttributeError, TypeError):
        object.__setattr__(message, name, wrong) if not isinstance(message, msgspec.Struct) else None
    try:
        box = codec.seal(message)
    except BoxError as error:
        assert error.kind is kind and error.path.startswith(name)
    else:
        assert same(codec.open(box), message), codec.source


MUTABLE = st.recursive(
    st.sampled_from([one for one in LEAVES if one[0] in (int, str, bytearray)]), containers, max_leaves=6
)


def disturb(value: Any) -> None:
    """Change all that can be changed within a value."""
    if isinstance(value, dict):
        for one in list(value.values()):
            disturb(one)
        value.clear()
    elif isinstance(value, list | bytearray):
        for one in value:
            disturb(one)
        value.append(7)
    elif isinstance(value, tuple):
        for one in value:
            disturb(one)
    elif isinstance(value, set):
        value.add("more")
    elif hasattr(type(value), "__annotations__") and not isinstance(value, enum.Enum):
        for name in type(value).__annotations__:
            disturb(getattr(value, name))
            try:
                setattr(value, name, None)
            except (AttributeError, TypeError):
                continue


@SLOW
@given(st.data())
def test_what_the_sender_changes_after_the_seal_never_shows(data: st.DataObject) -> None:
    fields = data.draw(st.lists(MUTABLE, min_size=1, max_size=3))
    kind, values, _ = make_class(fields, data.draw(st.sampled_from(list(MAKERS))))
    codec = codec_of(kind)
    message = data.draw(values)
    box = codec.seal(message)
    before = codec.open(box)
    assert same(before, message)
    disturb(message)
    assert same(codec.open(box), before)


def test_making_classes_and_codecs_leaves_nothing_behind() -> None:
    def once(number: int) -> None:
        kind, _, _ = make_class(
            [(list[int], st.none(), False), (Tone, st.none(), False)], list(MAKERS)[number % 9]
        )
        message = kind(message=[1], box=Tone.LOW)
        assert same(codec_of(kind).open(Box.seal(message)), message)

    def living() -> int:
        gc.collect()
        return len(gc.get_objects())

    for number in range(20):
        once(number)
    text, before = set(linecache.cache), living()
    for number in range(60):
        once(number)
    assert living() - before < 200
    assert {name for name in linecache.cache if "orchestra" in name} <= text
