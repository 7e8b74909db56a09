"""What of a message can be changed, by the declared types alone."""

import collections.abc
import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar

import attrs
import msgspec
import pytest
from typing_extensions import TypeAliasType

from orchestra import Live
from orchestra.box import codec_of

T = TypeVar("T")


class Colour(enum.Enum):
    RED = 1


class Rights(enum.Flag):
    READ = 1


class Empty(msgspec.Struct): ...


class FrozenStruct(msgspec.Struct, frozen=True):
    number: int


class OpenStruct(msgspec.Struct):
    number: int


class OpenChild(OpenStruct):
    text: str


@attrs.frozen
class FrozenAttrs:
    number: int


@attrs.frozen(slots=False)
class FrozenAttrsChild(FrozenAttrs):
    text: str


@attrs.define
class OpenAttrs:
    number: int


@dataclasses.dataclass(frozen=True)
class FrozenData:
    number: int


@dataclasses.dataclass
class OpenData:
    number: int


class Pair(NamedTuple):
    number: int
    text: str


class ListPair(NamedTuple):
    number: int
    items: list[int]


class Scalars(msgspec.Struct, frozen=True):
    a: int
    b: float | None
    c: str | bytes
    d: Colour
    e: Rights
    f: dt.datetime
    g: decimal.Decimal | uuid.UUID
    h: Literal["x", 3]
    i: tuple[int, ...]
    j: tuple[int, str]
    k: frozenset[str]
    l: Pair  # noqa: E741 - one of many
    m: FrozenAttrs
    n: Optional[tuple[FrozenData, ...]]
    o: Annotated[int, msgspec.Meta(ge=0)]


class Loose(msgspec.Struct, frozen=True):
    """All that rides beside a box is shared in any case."""

    anything: Any
    thing: object
    live: Live[list[int]]
    unknown: collections.abc.Callable[[], int]


class Page(msgspec.Struct, Generic[T], frozen=True):
    item: T


class FrozenTree(msgspec.Struct, frozen=True):
    children: tuple["FrozenTree", ...]


class OpenTree(msgspec.Struct, frozen=True):
    children: list["OpenTree"]


class Left(msgspec.Struct, frozen=True):
    right: "Right | None"


class Right(msgspec.Struct):
    left: Left | None


Nest = TypeAliasType("Nest", "int | tuple[Nest, ...]")
OpenNest = TypeAliasType("OpenNest", "int | tuple[OpenNest, ...] | list[OpenNest]")


def holding(declared: Any) -> type:
    """A frozen class with one field of a type."""
    return msgspec.defstruct("Holding", [("part", declared)], frozen=True)


@pytest.mark.parametrize(
    "kind",
    [Empty, FrozenStruct, FrozenAttrs, FrozenAttrsChild, FrozenData, Pair, Scalars, Loose, FrozenTree, Page],
)
def test_nothing_can_be_changed(kind: type) -> None:
    assert codec_of(kind).whole is None
    assert codec_of(kind).mutable is None


@pytest.mark.parametrize("kind", [OpenStruct, OpenChild, OpenAttrs, OpenData])
def test_a_class_that_is_not_frozen_can_be_changed(kind: type) -> None:
    assert codec_of(kind).mutable == "it is not frozen"
    inside = codec_of(holding(tuple[kind | None, int]))
    assert inside.mutable == f"part[0] is of {kind.__name__}, which is not frozen"


@pytest.mark.parametrize(
    ("declared", "mutable"),
    [
        (list[int], "part is a list"),
        (list, "part is a list"),
        (set[int], "part is a set"),
        (dict[str, int], "part is a dict"),
        (bytearray, "part is a bytearray"),
        (tuple[int, ...], None),
        (tuple[list[int], ...], "part[*] is a list"),
        (tuple[int, bytearray], "part[1] is a bytearray"),
        (int | list[int] | None, "part is a list"),
        (frozenset[tuple[int, ...]], None),
        (Pair | FrozenStruct | None, None),
        (ListPair, "part.items is a list"),
        (Annotated[list[int], msgspec.Meta(min_length=1)], "part is a list"),
        (collections.abc.Sequence[int], "part is a list"),
        (collections.abc.Mapping[str, int], "part is a dict"),
        (Page[int], None),
        (Page[list[int]], "part.item is a list"),
        (Page[Page[bytearray]], "part.item.item is a bytearray"),
        (Page[Any], None),
        (Live[list[int]], None),
        (Nest, None),
        (OpenNest, "part[*] is a list"),
        (FrozenTree, None),
        (OpenTree, "part.children is a list"),
    ],
)
def test_a_part_that_can_be_changed_is_named(declared: Any, mutable: str | None) -> None:
    assert codec_of(holding(declared)).mutable == mutable


def test_types_within_each_other_are_looked_through() -> None:
    assert codec_of(Left).mutable == "right is of Right, which is not frozen"
    assert codec_of(Right).mutable == "it is not frozen"


def test_a_generic_class_is_told_by_what_is_declared() -> None:
    assert codec_of(Page, Page[int]).mutable is None
    assert codec_of(Page, Page[list[int]]).mutable == "item is a list"
    assert codec_of(Page).mutable is None


@pytest.mark.parametrize("kind", [int, list, dict, bytearray, object])
def test_what_travels_whole_is_never_copied(kind: type) -> None:
    assert codec_of(kind).mutable is None
