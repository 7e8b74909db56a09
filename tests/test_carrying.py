"""Which fields may hold a reply, by their annotations; and the replies in a message."""

import collections
import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, Optional, TypeVar, Union

import attrs
import msgspec
import pytest
from typing_extensions import TypeAliasType

from orchestra import Box, Live, Reply
from orchestra.carrying import replies_in, replies_of, reply_fields

T = TypeVar("T")


class Asks(msgspec.Struct):
    reply: Reply[int]


class Page(msgspec.Struct, Generic[T]):
    items: list[T]


class Chain(msgspec.Struct):
    following: Optional["Chain"] = None
    reply: "Reply[int] | None" = None


class Bare(msgspec.Struct):
    following: Optional["Bare"] = None


Alias = TypeAliasType("Alias", Reply[int])
Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | int | None")
Answers = TypeAliasType("Answers", "dict[str, Answers[T]] | Reply[T]", type_params=(T,))


@pytest.mark.parametrize(
    ("annotation", "holds"),
    [
        (Reply, True),
        (Reply[int], True),
        ("Reply[int]", True),
        (Reply[int] | None, True),
        (Union[None, int, Reply[Any]], True),
        (list[Reply[int]], True),
        (dict[str, tuple[int, ...] | Reply[int]], True),
        (Live[Reply[int]], True),
        (Annotated[Reply[int], "told"], True),
        (Alias, True),
        (Json, False),
        (list[Json], False),
        (Answers[int], True),
        (Asks, True),
        (list[Asks], True),
        (Page[Reply[int]], True),
        (Page[Asks], True),
        (Page[int], False),
        (Chain, True),
        (Bare, False),
        ("Nowhere.Reply[int]", True),
        ("Nowhere", False),
        (int, False),
        (Any, False),
        (object, False),
        (None, False),
        (Literal["Reply"], False),
        (Annotated[int, Reply], False),
        (collections.deque[int], False),
    ],
    ids=str,
)
@pytest.mark.parametrize("style", ["dataclass", "attrs", "plain"])
def test_a_field_may_hold_a_reply_by_its_annotation(annotation: Any, holds: bool, style: str) -> None:
    kind: Any = type("Kind", (), {"__annotations__": {"other": int, "field": annotation}})
    if style != "plain":
        kind = dataclasses.dataclass(kind) if style == "dataclass" else attrs.define(kind)
    kind.__module__ = __name__
    assert reply_fields(kind) == (("field",) if holds else ())


def test_structs_and_named_tuples_too() -> None:
    class Row(NamedTuple):
        number: int
        reply: Reply[int]

    assert reply_fields(Asks) == ("reply",)
    assert reply_fields(Chain) == ("following", "reply")
    assert reply_fields(Row) == ("reply",)
    assert reply_fields(int) == ()


def test_a_plain_class_may_say_it_where_it_is_made() -> None:
    class Made:
        shared: ClassVar[int] = 0

        def __init__(self, key: str, reply: Reply[int]) -> None:
            self.key, self.reply = key, reply

    assert reply_fields(Made) == ("reply",)


def test_a_base_says_it_for_its_children() -> None:
    class Child(Asks):
        more: int = 0

    assert reply_fields(Child) == ("reply",)


class Nobody:
    """What a reply stands for."""

    kind = "nothing"
    claimed = True

    def answer(self, value: Any) -> bool:
        return False

    def refuse(self, error: Exception) -> bool:
        return False

    def forgotten(self) -> None: ...


@pytest.fixture
def reply() -> Reply[Any]:
    return Reply(Nobody())


@attrs.define
class Slotted:
    one: Any
    other: Any = None


@dataclasses.dataclass
class Data:
    one: Any


class Plain:
    def __init__(self, one: Any) -> None:
        self._hidden = one


class Own:
    __slots__ = "one", "unset"

    def __init__(self, one: Any) -> None:
        self.one = one


class Odd:
    __slots__ = ("__weakref__", "one")

    def __init__(self, one: Any) -> None:
        self.one = one


class Tuple(NamedTuple):
    one: Any


class Lists(list[Any]):
    pass


@pytest.mark.parametrize("kind", [Asks, Slotted, Data, Plain, Own, Odd, Tuple, lambda one: Lists([one])])
def test_a_reply_is_found_in_any_kind_of_message(kind: Any, reply: Reply[Any]) -> None:
    assert list(replies_in(kind(reply))) == [reply]
    assert list(replies_in(kind([{"x": (Data({"y": reply}))}]), 6)) == [reply]
    assert list(replies_in(kind(5))) == []


def test_it_does_not_look_deeper_than_a_few_levels_nor_run_in_circles(reply: Reply[Any]) -> None:
    assert list(replies_in([[[[reply]]]])) == [reply]
    assert list(replies_in([[[[[reply]]]]])) == []
    knot: list[Any] = [reply]
    knot.append(knot)
    assert set(replies_in(knot)) == {reply}


def test_texts_classes_and_numbers_have_none() -> None:
    class Class:
        reply: Any = None

    for value in ("text", b"bytes", 5, None, Class, 2.5, True):
        assert list(replies_in(value)) == []


def test_only_the_fields_that_may_hold_one_are_looked_at(reply: Reply[Any]) -> None:
    both = Slotted(reply, [reply])
    assert list(replies_of(both, ("one",))) == [reply]
    assert list(replies_of(both, ("one", "other"))) == [reply, reply]
    assert list(replies_of(both, ("missing",))) == []


def test_beside_the_frame_of_a_box(reply: Reply[Any]) -> None:
    box = Box.seal(Asks(reply))
    assert list(replies_of(box, ())) == list(replies_in(box)) == [reply]
    assert list(replies_in(Box.seal(Bare()))) == []


def test_looking_is_lazy() -> None:
    assert isinstance(replies_in([]), Iterator)
