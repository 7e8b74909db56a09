"""Types of messages and of what is in them, each with values that keep to it."""

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import importlib.util
import string
import typing
import uuid
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, Self, TypedDict, TypeVar

import attrs
import msgspec
from hypothesis import strategies as st
from typing_extensions import TypeAliasType

from orchestra import Live

T = TypeVar("T")


class Tone(enum.Enum):
    HIGH = "high"
    LOW = "low"
    DEEP = "low"  # noqa: PIE796 - an alias


class Point(enum.Enum):
    ORIGIN = (0, 0)
    UNIT = (1, 1)


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    ALL = 3


class Bits(enum.IntFlag, boundary=enum.KEEP):
    LOW = 1
    TOP = 2**64


class Level(enum.IntEnum):
    ONE = 1
    TWO = 2


class Word(enum.StrEnum):
    YES = "yes"


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Form(TypedDict, total=False):
    name: str
    items: list[int]


# Look-alikes, and classes that contain themselves.


class Item(msgspec.Struct):
    n: int = 0
    name: str = ""


class Likewise(msgspec.Struct):
    n: int = 0
    name: str = ""


class Grown(Item):
    more: list[int] = []


@dataclasses.dataclass
class Data:
    n: int = 0
    name: str = ""


@attrs.define
class Defined:
    n: int = 0
    name: str = ""


class Named(NamedTuple):
    n: int = 0
    name: str = ""


class Frozen(msgspec.Struct, frozen=True):
    n: int = 0
    name: str = ""


class Bounded(msgspec.Struct):
    n: Annotated[int, msgspec.Meta(ge=5)]
    names: Annotated[list[str], msgspec.Meta(max_length=1)]


class Node(msgspec.Struct):
    n: int
    kids: "list[Node]" = []
    next: "Node | None" = None


@dataclasses.dataclass
class Link:
    value: "int | str | Link | None" = None
    links: "dict[str, Link]" = dataclasses.field(default_factory=dict)


@attrs.define
class Tree:
    branches: list[Self] | tuple[Self, ...] = ()


class Page(msgspec.Struct, Generic[T]):
    items: list[T]
    first: T | None = None


@dataclasses.dataclass
class Pair(Generic[T]):
    left: T
    right: T


@attrs.frozen
class Holder(Generic[T]):
    value: "T"


class Both(NamedTuple, Generic[T]):
    one: T
    two: int


Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | str | float | bool | None")


class Typed(NamedTuple):
    """A type, values of it, and whether the values can be keys."""

    kind: Any
    values: st.SearchStrategy[Any]
    key: bool = False

    def __repr__(self) -> str:
        return f"Typed({self.kind!r})"


ZONES = st.sampled_from(
    [
        None,
        dt.UTC,
        dt.timezone(dt.timedelta(hours=3), "X"),
        dt.timezone(dt.timedelta(0), "Z"),
        zoneinfo.ZoneInfo("UTC"),
    ]
)
FOLDS = st.sampled_from([0, 1])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INTS = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**64 - 1))
UUIDS = st.builds(uuid.UUID, int=st.integers(0, 2**128 - 1), is_safe=st.sampled_from(list(uuid.SafeUUID)))
FEW = st.lists(INTS, max_size=2)


def alike(kind: Callable[..., Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, st.integers(-3, 3), TEXT)


PLAIN: list[Typed] = [
    Typed(int, st.one_of(INTS, st.booleans()), True),
    Typed(float, st.one_of(st.floats(), INTS, st.booleans())),
    Typed(bool, st.booleans(), True),
    Typed(str, TEXT, True),
    Typed(bytes, st.binary(max_size=8) | st.integers(250, 260).map(bytes), True),
    Typed(bytearray, st.binary(max_size=8).map(bytearray)),
    Typed(type(None), st.none(), True),
]
MOMENTS: list[Typed] = [
    Typed(
        dt.datetime,
        st.builds(lambda when, fold: when.replace(fold=fold), st.datetimes(timezones=ZONES), FOLDS),
        True,
    ),
    Typed(dt.date, st.one_of(st.dates(), st.datetimes()), True),
    Typed(
        dt.time, st.builds(lambda when, fold: when.replace(fold=fold), st.times(timezones=ZONES), FOLDS), True
    ),
    Typed(dt.timedelta, st.timedeltas(), True),
    Typed(decimal.Decimal, st.decimals(allow_nan=False), True),
    Typed(decimal.Decimal, st.decimals()),
    Typed(uuid.UUID, UUIDS, True),
]
MEMBERS: list[Typed] = [
    Typed(Tone, st.sampled_from(Tone), True),
    Typed(Point, st.sampled_from(Point), True),
    Typed(Access, st.sampled_from([*Access, Access(0), ~Access.READ]), True),
    Typed(Bits, st.sampled_from([*Bits, Bits(0), Bits(2**70 + 1), Bits.LOW | Bits.TOP]), True),
    Typed(Level, st.sampled_from(Level), True),
    Typed(Word, st.sampled_from(Word), True),
    Typed(Literal["a", "b"], st.sampled_from(["a", "b"]), True),
    Typed(Literal[1, True, None, "x"], st.sampled_from([1, True, None, "x"]), True),
    Typed(Literal[1, 2], st.sampled_from([1, 2]), True),
    Typed(Literal[b"a", Tone.LOW], st.sampled_from([b"a", Tone.LOW]), True),
]
RIDERS: list[Typed] = [
    Typed(object, st.just([1])),
    Typed(Any, st.one_of(TEXT, st.datetimes(), st.sets(INTS), st.builds(Item))),
    Typed(complex, st.complex_numbers(), False),
    Typed(memoryview, st.binary(max_size=4).map(bytearray).map(memoryview)),
    Typed(collections.deque[int], FEW.map(collections.deque)),
    Typed(
        collections.defaultdict[str, int],
        st.dictionaries(TEXT, INTS, max_size=2).map(lambda one: collections.defaultdict(int, one)),
    ),
    Typed(
        collections.OrderedDict[str, int],
        st.dictionaries(TEXT, INTS, max_size=2).map(collections.OrderedDict),
    ),
    Typed(Text, TEXT.map(Text), True),
    Typed(Number, INTS.map(Number), True),
    Typed(Form, st.fixed_dictionaries({"name": TEXT}, optional={"items": FEW})),
    Typed(int | msgspec.UnsetType, st.one_of(INTS, st.just(msgspec.UNSET)), True),
    Typed(Live[list[int]], FEW),
    Typed(Callable[[], int], st.just(int)),
    Typed(type[int], st.just(int), True),
    Typed("NotThere", FEW),
    Typed(Exception, st.builds(KeyError, TEXT)),
    Typed(list, st.lists(st.builds(Item), max_size=2)),
    Typed(dict, st.dictionaries(TEXT, FEW, max_size=2)),
]
SPELLINGS: list[Typed] = [
    Typed(typing.NewType("Name", str), TEXT, True),
    Typed(Annotated[int, "note"], INTS, True),
    Typed(Annotated[int, msgspec.Meta(ge=5)], INTS, True),
    Typed("int", INTS, True),
    Typed("list[Item]", st.lists(st.builds(Item), max_size=2)),
    Typed(Sequence[int], st.one_of(FEW, FEW.map(tuple), st.just("text"), FEW.map(collections.deque))),
    Typed(Mapping[str, int], st.dictionaries(TEXT, INTS, max_size=2)),
    Typed(
        Json,
        st.recursive(
            st.one_of(st.none(), st.booleans(), INTS, st.floats(), TEXT),
            lambda one: st.one_of(st.lists(one, max_size=2), st.dictionaries(TEXT, one, max_size=2)),
            max_leaves=5,
        ),
    ),
    Typed(tuple[int, *tuple[str, ...]], st.tuples(INTS, TEXT, TEXT)),
    Typed(tuple[()], st.just(()), True),
]
CLASSES: list[Typed] = [
    *(Typed(kind, alike(kind)) for kind in (Item, Likewise, Grown, Data, Defined)),
    *(Typed(kind, alike(kind), True) for kind in (Named, Frozen)),
    Typed(Bounded, st.builds(Bounded, INTS, st.lists(TEXT, max_size=2))),
    Typed(
        Page[int] | Page[str],
        st.one_of(st.builds(Page, FEW), st.builds(Page, st.lists(TEXT, max_size=2), TEXT)),
    ),
    Typed(list[int] | list[str], st.one_of(FEW, st.lists(TEXT, max_size=2))),
    Typed(
        dict[str, int] | dict[int, str],
        st.one_of(st.dictionaries(TEXT, INTS, max_size=2), st.dictionaries(INTS, TEXT, max_size=2)),
    ),
    Typed(tuple[int, str] | tuple[str, ...], st.one_of(st.tuples(INTS, TEXT), st.tuples(TEXT, TEXT))),
    Typed(
        Node,
        st.recursive(
            st.builds(Node, INTS),
            lambda one: st.builds(Node, INTS, st.lists(one, max_size=2), st.one_of(st.none(), one)),
            max_leaves=5,
        ),
    ),
    Typed(
        Link,
        st.recursive(
            st.builds(Link, st.one_of(INTS, TEXT)),
            lambda one: st.builds(Link, one, st.dictionaries(TEXT, one, max_size=2)),
            max_leaves=5,
        ),
    ),
    Typed(
        Tree,
        st.recursive(
            st.builds(Tree),
            lambda one: st.builds(Tree, st.one_of(st.lists(one, max_size=2), st.tuples(one))),
            max_leaves=5,
        ),
    ),
]
FOREIGN: list[Any] = [
    object(),
    Text("x"),
    Number(1),
    Item(),
    Grown(),
    Likewise(),
    Tone.LOW,
    Level.ONE,
    Word.YES,
]
"""Values that are children of plain types, or of nothing that was declared."""

if importlib.util.find_spec("numpy") is not None:
    import numpy as np

    ARRAYS = FEW.map(lambda items: np.array(items, dtype=float))
    RIDERS += [
        Typed(np.ndarray, ARRAYS),
        Typed(np.ndarray[Any, np.dtype[np.float64]] | None, st.one_of(st.none(), ARRAYS)),
        Typed(np.float64, st.floats().map(np.float64)),
        Typed(np.int64, st.integers(-3, 3).map(np.int64), True),
    ]
    FOREIGN += [
        np.float64(1.5),
        np.int64(1),
        np.bool_(True),
        np.str_("x"),
        np.bytes_(b"x"),
        np.array([1, 2]),
        np.datetime64("2024-01-01"),
    ]

WRONG = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**64),
    st.floats(),
    st.text(string.ascii_letters + "ä\ud800\udfff", max_size=3),
    st.binary(max_size=3),
    st.binary(max_size=3).map(bytearray),
    st.lists(st.integers(), max_size=2),
    st.tuples(st.integers(), st.text(max_size=2)),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.sets(st.integers(), max_size=2),
    st.datetimes(),
    st.sampled_from([[[]], {"a": object()}, collections.OrderedDict(a=1), collections.deque([1])]),
    st.sampled_from(FOREIGN),
)
"""Values for any field: most do not keep to what is declared."""


GROUPS: dict[str, list[Typed]] = {
    "plain": PLAIN,
    "moments": [*MOMENTS, *PLAIN[3:5]],
    "members": [*MEMBERS, *PLAIN[3:5]],
    "classes": [*CLASSES, *PLAIN[:2]],
    "spellings": [*SPELLINGS, *PLAIN[:1]],
    "riders": [*RIDERS, *PLAIN[:2]],
    "all": [*PLAIN, *MOMENTS, *MEMBERS, *CLASSES, *SPELLINGS, *RIDERS],
}
"""Types by what is particular about them: those of a group meet each other often."""


def containers(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """Types of containers of the inner types, and classes with fields of those types."""
    unions = st.tuples(inner, inner).filter(_can_be_united)
    classes = st.builds(make_class, st.lists(inner, max_size=4), makers())
    return st.one_of(inner.flatmap(_many), unions.map(_united), classes)


def _many(one: Typed) -> st.SearchStrategy[Typed]:
    kind, values, key = one
    few = st.lists(values, max_size=3)
    options: list[Typed] = [
        Typed(list[kind], few),
        Typed(tuple[kind, ...], few.map(tuple), key),
        Typed(tuple[kind, int], st.tuples(values, INTS), key),
        Typed(Optional[kind] if not isinstance(kind, str) else kind, values, key),
        Typed(dict[str, kind], st.dictionaries(TEXT, values, max_size=3)),
        Typed(Page[kind], st.builds(Page, few, st.one_of(st.none(), values))),
        Typed(Pair[kind], st.builds(Pair, values, values)),
        Typed(Holder[kind], st.builds(Holder, values)),
        Typed(Both[kind], st.builds(Both, values, INTS), key),
    ]
    if key:
        options += [
            Typed(dict[kind, int], st.dictionaries(values, INTS, max_size=3)),
            Typed(set[kind], st.sets(values, max_size=3)),
            Typed(frozenset[kind], st.frozensets(values, max_size=3), True),
        ]
    return st.sampled_from(options)


def _can_be_united(pair: tuple[Typed, Typed]) -> bool:
    one, two = pair
    return one.kind != two.kind and not any(isinstance(each.kind, str) for each in pair)


def _united(pair: tuple[Typed, Typed]) -> Typed:
    one, two = pair
    return Typed(typing.Union[one.kind, two.kind], st.one_of(one.values, two.values), one.key and two.key)


Maker = tuple[str, dict[str, Any]]
NAMES = ["message", "box", "first_name", "encode"]


def make_class(fields: list[Typed], maker: Maker) -> Typed:
    """A class with these fields, and messages of it."""
    style, options = maker
    names = NAMES[: len(fields)]
    build = {"struct": _struct, "attrs": _attrs, "dataclass": _dataclass, "named tuple": _named_tuple}[style]
    kind = build(dict(zip(names, (one.kind for one in fields), strict=True)), **options)

    def message(row: tuple[Any, ...]) -> Any:
        given = dict(zip(names, row, strict=True))
        later = {name: given.pop(name) for name in getattr(kind, "set_later", ()) if name in given}
        made = kind(**given)
        for name, value in later.items():
            object.__setattr__(made, name, value)
        return made

    rows = st.tuples(*(one.values for one in fields))
    return Typed(kind, rows.map(message), style == "named tuple" and all(one.key for one in fields))


def _struct(fields: dict[str, Any], *, child: bool, defaults: bool, **options: Any) -> type:
    rows: list[Any] = list(fields.items())
    if defaults:
        rows = [(name, kind, _default_of(kind)) for name, kind in rows]
    namespace = {"__module__": __name__}
    if not child:
        return msgspec.defstruct("Made", rows, namespace=namespace, **options)
    half = len(rows) // 2
    base = msgspec.defstruct("Base", rows[:half], namespace=namespace, **options)
    return msgspec.defstruct("Made", rows[half:], bases=(base,), namespace=namespace, **options)


def _default_of(kind: Any) -> Any:
    origin = typing.get_origin(kind) or kind
    if origin in (list, dict, set):
        return msgspec.field(default_factory=origin)
    return {int: 1, float: 0.0, bool: True, str: "a", bytes: b""}.get(
        origin if isinstance(origin, type) else None
    )


def _attrs(fields: dict[str, Any], *, later: bool, busy: bool, **options: Any) -> type:
    def field(name: str, kind: Any) -> Any:
        if later and name == "box":
            return attrs.field(init=False, type=kind)
        if busy:
            return attrs.field(converter=lambda one: one, validator=lambda *_: None, type=kind)
        return attrs.field(type=kind)

    made: type = attrs.make_class(
        "Made", {name: field(name, kind) for name, kind in fields.items()}, **options
    )
    made.__module__ = __name__
    if later:
        made.set_later = ("box",)  # type: ignore[attr-defined]  # for `make_class`
    return made


def _dataclass(fields: dict[str, Any], *, later: bool, start: bool, **options: Any) -> type:
    rows: list[Any] = [
        (name, kind, dataclasses.field(init=False)) if later and name == "box" else (name, kind)
        for name, kind in fields.items()
    ]
    if start:
        rows.append(("start", dataclasses.InitVar[int], 3))
    made = dataclasses.make_dataclass("Made", rows, **options)
    made.__module__ = __name__
    if later:
        made.set_later = ("box",)  # type: ignore[attr-defined]  # for `make_class`
    return made


def _named_tuple(fields: dict[str, Any]) -> type:
    made: type = NamedTuple("Made", list(fields.items()))  # type: ignore[misc]  # made at run time
    made.__module__ = __name__
    return made


def _options(style: str, **choices: Sequence[Any]) -> st.SearchStrategy[Maker]:
    options = {name: st.sampled_from(list(values)) for name, values in choices.items()}
    return st.tuples(st.just(style), st.fixed_dictionaries(options))


YES_OR_NO = (False, True)
STRUCTS = _options(
    "struct",
    frozen=YES_OR_NO,
    array_like=YES_OR_NO,
    tag=(None, True, "made", 7),
    rename=(None, "camel", "kebab", "upper"),
    forbid_unknown_fields=YES_OR_NO,
    kw_only=YES_OR_NO,
    omit_defaults=YES_OR_NO,
    dict=YES_OR_NO,
    weakref=YES_OR_NO,
    child=YES_OR_NO,
    defaults=YES_OR_NO,
)
ATTRS = _options(
    "attrs", slots=YES_OR_NO, frozen=YES_OR_NO, kw_only=YES_OR_NO, later=YES_OR_NO, busy=YES_OR_NO
)
DATACLASSES = _options(
    "dataclass", slots=YES_OR_NO, frozen=YES_OR_NO, kw_only=YES_OR_NO, later=YES_OR_NO, start=YES_OR_NO
)
NAMED_TUPLE: Maker = ("named tuple", {})


@st.composite
def makers(draw: st.DrawFn) -> Maker:
    """A style of class and its options."""
    return draw(st.one_of(STRUCTS, ATTRS, DATACLASSES, st.just(NAMED_TUPLE)))


@st.composite
def messages(draw: st.DrawFn, group: str) -> Typed:
    """A message class with fields of the types of a group, and messages of it."""
    types = st.recursive(st.sampled_from(GROUPS[group]), containers, max_leaves=6)
    return make_class(draw(st.lists(types, min_size=1, max_size=4)), draw(makers()))
