"""What comes out of a box is what went in, or the seal is refused and the field is named."""

import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import functools
import gc
import inspect
import linecache
import math
import pickle
import typing
import uuid
import weakref
import zoneinfo
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, Optional, TypeVar, Union

import attrs
import msgspec
import pytest
from typing_extensions import TypeAliasType

from orchestra.box import Box, Live, RidingBox, boxed, boxed_switch, codec_of, open_entry, why_not_boxed
from orchestra.errors import BoxError, DeclarationError
from tests.box.strictly import same

T = TypeVar("T")


class Tone(enum.Enum):
    HIGH = "high"
    LOW = "low"


class Point(enum.Enum):
    ORIGIN = (0, 0)
    UNIT = (1, 1)


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Level(enum.IntEnum):
    ONE = 1


class Word(enum.StrEnum):
    YES = "yes"


class Item(msgspec.Struct):
    name: str
    price: float
    count: int = 0


class Special(Item):
    extra: str = ""


@dataclasses.dataclass
class Data:
    x: int
    items: list[Item] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    x: int
    y: str | None = None


@attrs.define
class Attrs:
    x: int = attrs.field(validator=attrs.validators.ge(0))
    data: list[Data] = attrs.Factory(list)


@attrs.frozen
class Upper:
    name: str = attrs.field(converter=str.upper)


class Page(msgspec.Struct, Generic[T]):
    items: list[T]
    more: T


class Pair(NamedTuple):
    left: int
    right: str


def message_class(annotation: Any, **more: Any) -> Any:
    """A message class with one field, `value`."""
    return msgspec.defstruct("Message", [("value", annotation)], **more)


def round_trip(message: Any) -> Any:
    box = Box.seal(message)
    assert type(box.frame) is bytes
    return codec_of(type(message)).open(box)


def comes_back(annotation: Any, value: Any) -> Any:
    message = message_class(annotation)(value)
    opened = round_trip(message)
    assert same(opened, message), (opened, message)
    assert opened is not message
    return opened.value


def refused(annotation: Any, value: Any, *words: str, path: str = "value") -> None:
    with pytest.raises(BoxError) as caught:
        Box.seal(message_class(annotation)(value))
    assert caught.value.path == path
    assert caught.value.kind.__name__ == "Message"
    assert all(word in str(caught.value) for word in words), str(caught.value)


UTC = datetime.UTC
BERLIN = zoneinfo.ZoneInfo("UTC")
NOON = datetime.datetime(2024, 5, 6, 12, 0, 0, 123456)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 1),
        (int, True),
        (float, 1),
        (float, True),
        (float, -0.0),
        (float, math.nan),
        (float, math.inf),
        (int, 2**64 - 1),
        (int, -(2**63)),
        (bool, False),
        (str, "ä\x00😀"),
        (bytes, b"\xff" * 1029),
        (bytearray, bytearray(b"a")),
        (None, None),
        (Optional[int], None),
        (int | str | None, True),
        (bytes | str, b"text"),
        (bytes | str, "text"),
        (list[float], [1, 2.5, True]),
        (list[int], []),
        (list[list[int]], [[1], [], [True]]),
        (tuple[int, ...], (1, 2)),
        (tuple[int, str], (1, "a")),
        (tuple[()], ()),
        (set[int], {1, 2}),
        (frozenset[str], frozenset("ab")),
        (dict[str, int], {"b": 1, "a": 2}),
        (dict[int, list[str]], {2: ["x"], 1: []}),
        (dict[tuple[int, str], int], {(1, "a"): 2}),
        (dict[float, str], {1: "a", -0.0: "b"}),
        (dict[bytes, int], {b"k": 1}),
        (dict[Tone, Access], {Tone.LOW: Access.READ | Access.WRITE}),
        (dict[Point, int], {Point.UNIT: 2}),
        (Sequence[int], (1, 2)),
        (Sequence[int], [1, 2]),
        (Iterable[int], {1, 2}),
        (Mapping[str, float], {"a": 1}),
        (Tone, Tone.LOW),
        (Point, Point.UNIT),
        (Access, Access.READ | Access.WRITE),
        (Access, Access(0)),
        (Level, Level.ONE),
        (Word, Word.YES),
        (Literal["a", "b"], "b"),
        (Literal[1, True, "x", None, Tone.HIGH], True),
        (Literal[1, True, "x", None, Tone.HIGH], Tone.HIGH),
        (datetime.datetime, NOON),
        (datetime.datetime, NOON.replace(tzinfo=UTC)),
        (datetime.datetime, NOON.replace(fold=1)),
        (datetime.datetime, NOON.replace(tzinfo=BERLIN)),
        (datetime.datetime, NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))),
        (list[datetime.datetime], [NOON, NOON.replace(fold=1)]),
        (datetime.datetime | str, NOON),
        (datetime.datetime | str, NOON.isoformat()),
        (datetime.date, datetime.date.min),
        (datetime.time, datetime.time(1, 2, 3, 4)),
        (datetime.time, datetime.time(1, 2, fold=1)),
        (datetime.time, datetime.time(1, 2, tzinfo=UTC)),
        (datetime.timedelta, datetime.timedelta.min),
        (datetime.timedelta, datetime.timedelta(microseconds=-1)),
        (decimal.Decimal, decimal.Decimal("1.00")),
        (decimal.Decimal, decimal.Decimal("-sNaN12")),
        (uuid.UUID, uuid.UUID(int=5)),
        (complex, 1 - 2j),
        (Item, Item("a", 1.5)),
        (Item, Item("a", 1)),
        (list[Item], [Item("a", 1.5), Item("b", 2, True)]),
        (Item | None, None),
        (Item | Special, Special("a", 1.0, 2, "x")),
        (Data, Data(1, [Item("a", 1.5)])),
        (Slotted, Slotted(1, "a")),
        (Attrs, Attrs(1, [Data(2)])),
        (dict[str, Attrs | None], {"a": Attrs(1), "b": None}),
        (set[Slotted], {Slotted(1), Slotted(2)}),
        (Upper, Upper("name")),
        (Pair, Pair(1, "a")),
        (list[Pair], [Pair(1, "a"), Pair(True, "b")]),
        (list[int] | list[str], ["a"]),
        (set[int] | list[int] | tuple[int, ...], (1,)),
        (Annotated[int, msgspec.Meta(ge=5)], 1),
        (list[Annotated[int, msgspec.Meta(ge=5)]], [1]),
        (typing.NewType("Name", str), "a"),
        (Union[int, str], "1"),
    ],
)
def test_values_that_are_as_declared_come_back_strictly_equal(annotation: Any, value: Any) -> None:
    comes_back(annotation, value)


@pytest.mark.parametrize(
    ("annotation", "value", "words", "path"),
    [
        (int, "1", ["int", "str"], "value"),
        (bool, 1, ["bool"], "value"),
        (int, 1.0, ["float"], "value"),
        (int, 2**64, ["64 bits"], "value"),
        (int, Level.ONE, ["Level"], "value"),
        (str, Word.YES, ["Word"], "value"),
        (str, "a\ud800", ["surrogate", "Live[str]"], "value"),
        (dict[str, int], {"\udfff": 1}, ["surrogate"], "value[key '\\udfff']"),
        (bytes, bytearray(b"a"), ["bytearray"], "value"),
        (list[int], (1,), ["tuple", "list"], "value"),
        (list[int], [1, "x"], ["str"], "value[1]"),
        (tuple[int, str], (1, "a", 2), ["2", "3"], "value"),
        (tuple[int, str], (1, 2), ["str"], "value[1]"),
        (dict[str, int], collections.OrderedDict(a=1), ["OrderedDict"], "value"),
        (dict[str, int], {"a": "b"}, ["int"], "value['a']"),
        (Item, Special("a", 1.0), ["Special", "Live[Item]"], "value"),
        (list[Item], [Item("a", 1.0), Special("a", 1.0)], ["Special"], "value[1]"),
        (Item, Item("a", "x"), ["float"], "value.price"),  # type: ignore[arg-type]  # the mistake
        (list[Item] | None, [Item("a", 1.0, 2**70)], ["64 bits"], "value[0].count"),
        (Literal["a", "b"], "c", ["'a'", "'b'"], "value"),
        (Item | Data, 3, ["Item | Data"], "value"),
        (Attrs, Attrs(1, [Data(1, [Item("a", 1.0, "x")])]), ["int"], "value.data[0].items[0].count"),  # type: ignore[arg-type]  # the mistake
        (datetime.date, "2020-01-01", ["date"], "value"),
        (Tone, "high", ["Tone"], "value"),
    ],
)
def test_what_breaks_the_declaration_is_refused_with_its_path(
    annotation: Any, value: Any, words: list[str], path: str
) -> None:
    refused(annotation, value, *words, path=path)


def test_an_unset_field_is_refused() -> None:
    message = Item("a", 1.0)
    del message.price
    with pytest.raises(BoxError, match="no value") as caught:
        Box.seal(message)
    assert caught.value.path == "price"


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (float, 1),
        (int | None, True),
        (list[Item], [Item("a", 1.5)]),
        (list[list[int]], [[1]]),
        (tuple[Data, ...], (Data(1),)),
        (dict[str, Attrs], {"a": Attrs(1)}),
        (dict[Point, set[Tone]], {Point.UNIT: {Tone.LOW}}),
        (Slotted | None, None),
        (Slotted | Item | str | None, "a"),
        (Slotted | Item | str | None, None),
        (Slotted | Item | list[Data] | int, [Data(1)]),
        (Slotted | Item | list[Data] | int, Slotted(1)),
        (list[Item | Special], [Special("a", 1.0), Item("a", 1.0)]),
        (datetime.datetime | str | Tone, NOON),
        (bytearray | bytes, bytearray(b"a")),
        (Access, Access.READ | Access.WRITE),
        (Pair, Pair(1, "a")),
        (Page[int], None),
        (Annotated[int, msgspec.Meta(ge=5)], 1),
    ],
)
def test_the_generated_functions_carry_what_is_exactly_as_declared(annotation: Any, value: Any) -> None:
    value = Page([1], 2) if value is None and annotation == Page[int] else value
    message = message_class(annotation)(value)
    box = Box.seal(message)
    assert type(box) is Box
    assert same(box.open(), message)


# Fields that travel by reference.


@pytest.mark.parametrize(
    "annotation",
    [
        Any,
        object,
        Live[list[int]],
        Callable[[], None],
        collections.deque[int],
        "NotThere",
        memoryview,
        type[int],
    ],
)
def test_what_is_not_packed_is_the_very_object(annotation: Any) -> None:
    value = [1]
    kind = message_class(annotation)
    box = Box.seal(kind(value))
    assert codec_of(kind).open(box).value is value
    assert list(codec_of(kind).rides) == ["value"]


def test_an_untyped_container_is_copied_and_its_items_ride() -> None:
    item = [1]
    for annotation, value in ((list, [item]), (dict[str, Any], {"a": item}), (dict, {"a": item})):
        opened = comes_back(annotation, value)
        assert opened is not value
        assert next(iter(opened.values() if isinstance(opened, dict) else opened)) is item


def test_a_live_field_rides_beside_the_frame() -> None:
    class Ask(msgspec.Struct):
        n: int
        answer_to: Live["list[Nowhere]"]  # type: ignore[name-defined]  # noqa: F821 - a name that is not there
        late: "Live[Any]" = None

    target: list[Any] = []
    message = Ask(1, target)
    codec = codec_of(Ask)
    opened = codec.open(codec.seal(message))
    assert opened == message
    assert opened.answer_to is target
    assert dict(codec.rides) == {"answer_to": "Live", "late": "Live"}


def test_rides_names_parts_within() -> None:
    class Inner(msgspec.Struct):
        reply: Live[object]

    class Outer(msgspec.Struct):
        inner: list[Inner]
        data: dict[str, Any]
        plain: int

    assert dict(codec_of(Outer).rides) == {"inner[*].reply": "Live", "data[*]": "untyped"}
    reply = object()
    assert round_trip(Outer([Inner(reply)], {"a": reply}, 1)).inner[0].reply is reply


def test_an_enumeration_member_without_a_name_and_a_uuid_with_a_safety_are_kept() -> None:
    comes_back(Access, ~Access.READ)
    value = uuid.UUID(int=1, is_safe=uuid.SafeUUID.safe)
    assert comes_back(uuid.UUID, value).is_safe is uuid.SafeUUID.safe


# Whole classes.


class Plain:
    def __init__(self) -> None:
        self.items = [1]


class Private(msgspec.Struct):
    _secret: int


class PostInit(msgspec.Struct):
    x: int

    def __post_init__(self) -> None:
        self.x += 1


@dataclasses.dataclass
class Mixed(Plain):
    x: int = 0

    def __post_init__(self) -> None:
        super().__init__()


@attrs.define
class PostAttrs:
    x: int

    def __attrs_post_init__(self) -> None:
        self.x += 1


@dataclasses.dataclass
class Fault(Exception):
    code: int


class HiddenField(msgspec.Struct):
    x: int


class Hiding(HiddenField):
    x: ClassVar[int] = 3  # type: ignore[misc]  # the mistake


@dataclasses.dataclass
class Undecorated(Data):
    pass


class Bare(Data):
    pass


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (Plain(), "no fields"),
        (Private(1), "_secret"),
        (PostInit(1), "__post_init__"),
        (Mixed(), "__post_init__"),
        (PostAttrs(1), "__attrs_post_init__"),
        (Fault(3), "extends Exception"),
        (Hiding(1), "hidden"),
        (Bare(1), "no fields"),
        ({"a": 1}, "no fields"),
    ],
)
def test_a_class_that_cannot_be_packed_rides_whole(message: Any, word: str) -> None:
    codec = codec_of(type(message))
    assert codec.whole is not None and word in codec.whole
    assert why_not_boxed(type(message)) == codec.whole
    box = codec.seal(message)
    assert box.frame == b"" and codec.open(box) is message


def test_a_field_of_a_class_that_cannot_be_packed_rides() -> None:
    inner = Plain()
    kind = message_class(list[Plain])
    assert round_trip(kind([inner])).value[0] is inner
    assert "Plain is not packed" in codec_of(kind).rides["value[*]"]


# Kinds of classes.


class Tagged(
    msgspec.Struct, tag=True, array_like=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    first_name: str
    tags: list[str] = []
    number: float = 1.0


class KwOnly(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    b: int
    a: str = "a"


class KwChild(KwOnly):
    c: int


class WithDict(msgspec.Struct, dict=True):
    x: int


class Empty(msgspec.Struct, frozen=True):
    pass


class IntPage(Page[int]):
    total: int


@dataclasses.dataclass
class Init:
    x: int
    start: dataclasses.InitVar[int] = 3
    derived: int = dataclasses.field(init=False, default=7)


@dataclasses.dataclass(init=False)
class OwnInit:
    x: int

    def __init__(self) -> None:
        self.x = 3


@attrs.define(slots=False)
class Loose:
    x: int

    @functools.cached_property
    def double(self) -> int:
        return self.x * 2


@attrs.frozen(kw_only=True)
class Frozen:
    message: int
    box: list[int]
    riders: Any = None
    codec: int = attrs.field(default=1, alias="other")


@pytest.mark.parametrize(
    "message",
    [
        Tagged("x"),
        Tagged("x", ["a"], True),
        KwOnly(b=1),
        KwChild(3, b=1),
        Empty(),
        Page([1], "a"),
        IntPage([1], 2, 3),
        Init(1),
        OwnInit(),
        Slotted(1),
        Attrs(1, [Data(2)]),
        Upper("a"),
        Loose(1),
        Frozen(message=1, box=[2]),
        Pair(1, "a"),
        Undecorated(1),
    ],
)
def test_every_kind_of_class_comes_back(message: Any) -> None:
    opened = round_trip(message)
    assert same(opened, message) and opened is not message
    kind = type(message)
    assert same(comes_back(list[kind], [message, message])[1], message)  # type: ignore[valid-type]  # made at run time


def test_neither_validators_nor_converters_nor_post_defaults_run() -> None:
    bad = Attrs(1)
    with attrs.validators.disabled():
        bad.x = -1
    assert round_trip(bad).x == -1
    upper = Upper("a")
    object.__setattr__(upper, "name", "lower")
    assert round_trip(upper).name == "lower"


def test_attributes_that_are_not_declared_come_along() -> None:
    loose = Loose(2)
    assert loose.double == 4
    loose.extra = [1]  # type: ignore[attr-defined]  # the point
    opened = round_trip(loose)
    assert vars(opened) == {"x": 2, "double": 4, "extra": [1]}
    assert opened.extra is loose.extra  # type: ignore[attr-defined]  # the point
    message = WithDict(1)
    message.note = "n"  # type: ignore[attr-defined]  # the point
    assert round_trip(message).note == "n"
    assert vars(round_trip(WithDict(1))) == {}
    assert same(comes_back(list[Loose], [loose])[0], loose)


def test_the_arguments_of_a_generic_class_are_used_where_they_are_known() -> None:
    codec = codec_of(Page, Page[int])
    assert not codec.rides and codec is codec_of(Page, Page[int]) and codec is not codec_of(Page)
    message = Page([1, 2], 3)
    assert same(codec.open(codec.seal(message)), message)
    with pytest.raises(BoxError) as caught:
        codec.seal(Page([1], "x"))
    assert caught.value.path == "more"
    assert dict(codec_of(Page).rides) == {"items[*]": "untyped", "more": "untyped"}
    assert not codec_of(IntPage).rides
    assert comes_back(Page[str], Page(["a"], "b"))
    refused(Page[str], Page(["a"], 3), path="value.more")


def test_a_type_alias_that_contains_itself() -> None:
    Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | int | None")
    globals()["Json"] = Json
    try:
        comes_back(Json, {"a": [1, None, {}]})
        refused(Json, {"a": ["x"]}, path="value['a'][0]")
    finally:
        del globals()["Json"]


# Resolving annotations.


def test_classes_made_in_functions_find_each_other_through_the_given_scope() -> None:
    class Leaf(msgspec.Struct):
        n: int

    class Tree(msgspec.Struct):
        leaf: "Leaf"
        leaves: "list[Leaf]"
        more: list["Leaf"]
        up: "Tree | None" = None

    assert "cannot be resolved" in codec_of(Tree).rides["leaf"]
    codec = codec_of(Tree, None, locals())
    assert not codec.rides
    message = Tree(Leaf(1), [Leaf(2)], [Leaf(3)], Tree(Leaf(4), [], []))
    assert same(codec.open(codec.seal(message)), message)
    assert codec_of(Tree) is codec


def test_a_local_class_is_not_taken_for_a_global_one_of_the_same_name() -> None:
    class Item(msgspec.Struct):
        other: bytes

    class Order(msgspec.Struct):
        item: "Item"

    codec = codec_of(Order, None, locals())
    assert same(codec.open(codec.seal(Order(Item(b"x")))), Order(Item(b"x")))


class date(msgspec.Struct):
    date: "datetime.date"
    Item: "Item" = msgspec.field(default_factory=lambda: Item("", 0.0))


def test_a_field_named_like_its_type_means_the_type() -> None:
    message = date(datetime.date(2020, 1, 1), Item("a", 1.0))
    assert same(round_trip(message), message)
    assert not codec_of(date).rides


# Cycles and depth.


class Node(msgspec.Struct):
    v: int
    kids: "list[Node]" = []
    next: "Node | None" = None


@dataclasses.dataclass
class Link:
    next: "Link | None" = None


def test_a_recursive_type_comes_back() -> None:
    message = Node(1, [Node(2, [Node(3)]), Node(4)], Node(5))
    assert same(round_trip(message), message)


@pytest.mark.parametrize("kind", [Node, Link])
def test_cycles_and_deep_nesting_are_refused(kind: Any) -> None:
    first = kind(1) if kind is Node else kind()
    first.next = first
    with pytest.raises(BoxError, match="contains itself"):
        Box.seal(first)
    deep = None
    for _ in range(100_000 if kind is Link else 5000):
        deep = Link(deep) if kind is Link else Node(1, [], deep)  # type: ignore[arg-type]  # one at a time
    with pytest.raises(BoxError, match="levels deep") as caught:
        Box.seal(deep)
    assert len(caught.value.path) < 100
    while deep is not None:
        deep = deep.next
    wide = Node(1)
    wide.kids = [wide, wide]
    with pytest.raises(BoxError):
        Box.seal(wide)
    items: list[Any] = []
    items.append(items)
    refused(list[int], items, path="value[0]")


def test_a_message_of_the_greatest_depth_is_opened_far_down_the_stack() -> None:
    deep: Node | None = None
    for _ in range(100):
        deep = Node(1, [], deep)
    box = Box.seal(deep)

    def down(levels: int) -> Any:
        return down(levels - 1) if levels else codec_of(Node).open(box)

    assert same(down(400), deep)


# Isolation.


def test_a_box_is_a_private_copy() -> None:
    message = Data(1, [Item("a", 1.0)])
    box = Box.seal(message)
    message.x, message.items[0].name = 2, "b"
    message.items.append(Item("c", 2.0))
    codec = codec_of(Data)
    one, two = codec.open(box), codec.open(box)
    assert one == two == Data(1, [Item("a", 1.0)])
    assert one.items[0] is not two.items[0]
    buffer = bytearray(b"abc")
    kind = message_class(bytearray)
    sealed = Box.seal(kind(buffer))
    buffer[:] = b"xyz"
    assert codec_of(kind).open(sealed).value == b"abc"


# The box itself.


def test_a_box_shows_what_it_is() -> None:
    box = Box.seal(Item("a", 1.5, 2))
    assert repr(box) == f"<Box of Item, {box.size} bytes>"
    assert box.kind is Item and box.size == len(box.frame) == 13
    riding = Box.seal(message_class(Any)(1))
    assert repr(riding) == "<Box of Message, 0 bytes and 1 rider>"
    assert box.open() == open_entry(box) == Item("a", 1.5, 2) and open_entry(3) == 3


def test_boxes_with_what_cannot_be_compared_are_equal_to_themselves_alone() -> None:
    class Vague:
        def __eq__(self, other: object) -> Any:
            raise ValueError("which of them?")

        __hash__ = None  # type: ignore[assignment]  # as an array has none

    class Holds(msgspec.Struct):
        thing: Any

    one, other = Vague(), Vague()
    assert Box.seal(Holds(one)) == Box.seal(Holds(one))
    assert Box.seal(Holds(one)) != Box.seal(Holds(other))
    assert Box.seal(Holds([1])) == Box.seal(Holds([1]))


def test_boxes_are_equal_when_their_messages_are() -> None:
    one, two = Box.seal(Item("a", 1.5)), Box.seal(Item("a", 1.5))
    assert one == two and hash(one) == hash(two)
    assert one != Box.seal(Item("b", 1.5)) and one != 3
    kind = message_class(Any)
    assert Box.seal(kind(1)) == Box.seal(kind(1)) != Box.seal(kind(2))


def test_a_box_cannot_be_changed_but_copied_and_pickled() -> None:
    box = Box.seal(Item("a", 1.5))
    with pytest.raises(AttributeError):
        box.frame = b""  # type: ignore[misc]  # the mistake
    assert pickle.loads(pickle.dumps(box)) == copy.deepcopy(box) == copy.copy(box) == box


def test_the_garbage_collector_does_not_look_at_a_box_without_riders() -> None:
    assert not gc.is_tracked(Box.seal(Item("a", 1.5)))
    box = Box.seal(message_class(Any)([]))
    assert gc.is_tracked(box) and type(box) is RidingBox


def test_a_box_within_a_message_rides() -> None:
    inner = Box.seal(Item("a", 1.5))
    assert comes_back(Box[Item], inner) is inner
    assert comes_back(Box, inner) is inner


def test_a_cycle_through_a_rider_is_collected() -> None:
    class Knot(msgspec.Struct, weakref=True):
        own: Live[list[Any]]

    knot = Knot([])
    knot.own.append(Box.seal(knot))
    gone = weakref.ref(knot)
    del knot
    gc.collect()
    assert gone() is None


# Switches.


def test_the_switch_is_inherited_and_says_nothing_by_default() -> None:
    @boxed
    class On(msgspec.Struct):
        x: int

    @boxed(False)
    class Off(On):
        pass

    @boxed(True)
    @dataclasses.dataclass(slots=True)
    class Again:
        x: int

    class Child(On):
        pass

    assert [boxed_switch(kind) for kind in (On, Off, Again, Child, Item)] == [True, False, True, True, None]
    before = set(vars(Item))
    assert set(vars(boxed(type("Other", (Item,), {})))) - before <= {"__orchestra_boxed__", "__module__"}


@pytest.mark.parametrize("wrong", [3, "x", None, int])
def test_boxed_refuses_what_is_neither_class_nor_truth(wrong: Any) -> None:
    with pytest.raises(DeclarationError, match="boxed"):
        boxed(wrong)
    with pytest.raises(DeclarationError, match="boxed"):
        boxed(True)(wrong)


def test_check_false_trusts_the_declared_types() -> None:
    @boxed(check=False)
    class Trusted(msgspec.Struct):
        x: int
        items: list[Item]

    codec = codec_of(Trusted)
    assert "is not" not in codec.source.partition("def open_")[0]
    assert boxed_switch(Trusted) is True
    message = Trusted(1, [Item("a", 1.0)])
    assert same(codec.open(codec.seal(message)), message)
    assert codec.open(codec.seal(Trusted(1, [Special("a", 1.0, 2, "x")]))).items == [Item("a", 1.0, 2)]
    with pytest.raises(BoxError):
        codec.seal(Trusted(2**70, []))


# Generated source, caches and memory.


def test_the_source_can_be_read_and_is_shown_by_inspect() -> None:
    codec = codec_of(Item)
    linecache.checkcache()
    assert inspect.getsource(codec.seal) in codec.source
    assert codec.seal.__code__.co_filename.startswith(f"<orchestra generated box {__name__}.Item")
    assert codec.seal.__name__ == "seal_Item" and "def open_Item(box):" in codec.source
    compile(codec.source, "<again>", "exec")


def test_a_codec_is_made_once() -> None:
    assert codec_of(Item) is codec_of(Item) is Box.seal(Item("a", 1.0)).codec
    local = message_class(int)
    assert Box.seal(local(1)).codec is Box.seal(local(2)).codec
    other = message_class(int)
    codec = codec_of(other)
    assert codec is codec_of(other)
    assert "__orchestra_codec__" not in vars(other)


def test_a_class_made_in_a_function_goes_with_its_codec_and_text() -> None:
    def use() -> "list[weakref.ref[Any]]":
        class Leaf(msgspec.Struct):
            n: Tone

        class Tree(msgspec.Struct):
            leaf: Leaf
            up: "Tree | None" = None

        message = Tree(Leaf(Tone.LOW), Tree(Leaf(Tone.HIGH)))
        codec = codec_of(Tree, Tree, {"Tree": Tree})
        assert same(codec.open(codec.seal(message)), message)
        assert same(Box.seal(message).open(), message)
        return [weakref.ref(Leaf), weakref.ref(Tree), weakref.ref(codec)]

    before = set(linecache.cache)
    gone = use()
    gc.collect()
    assert [ref() for ref in gone] == [None, None, None]
    assert set(linecache.cache) <= before


def test_a_class_that_replaces_another_of_its_name_gets_a_codec_of_its_own() -> None:
    space = globals()
    space["Remade"] = type("Remade", (Item,), {"__module__": __name__})
    first = codec_of(space["Remade"])
    gone = weakref.ref(first)
    space["Remade"] = type("Remade", (Item,), {"__module__": __name__})
    second = codec_of(space["Remade"])
    assert second.kind is space["Remade"] and first is not second
    del first
    gc.collect()
    assert gone() is None
    del space["Remade"]


@pytest.mark.parametrize("message", [Item("a", 1.5), Empty(), Slotted(1), Pair(1, "a"), KwChild(3, b=1)])
def test_the_two_steps_of_opening_are_the_opening(message: Any) -> None:
    codec = codec_of(type(message))
    box = codec.seal(message)
    assert type(box) is Box and codec.decode is not None and codec.build is not None
    assert same(codec.build(codec.decode(box.frame)), message)


@pytest.mark.parametrize("kind", [Plain, message_class(Any), message_class(list[Any])])
def test_what_always_has_riders_is_opened_in_one(kind: Any) -> None:
    assert codec_of(kind).decode is None and codec_of(kind).build is None


@pytest.mark.parametrize("kinds", [dict[str, list[int]], list[dict[str, int]], dict[str, dict[str, Item]]])
def test_the_values_of_a_dict_are_checked_each(kinds: Any) -> None:
    bad: Any = Item("a", 1.0, "x")  # type: ignore[arg-type]  # the mistake
    values: dict[Any, tuple[Any, Any, str]] = {
        dict[str, list[int]]: ({"a": [1], "b": []}, {"a": [1], "b": [1, 2.0]}, "value['b'][1]"),
        list[dict[str, int]]: ([{"a": 1}, {}], [{"a": 1}, {"b": "x"}], "value[1]['b']"),
        dict[str, dict[str, Item]]: (
            {"a": {"b": Item("c", 1.5)}},
            {"a": {"b": Item("c", 1.5), "d": bad}},
            "value['a']['d'].count",
        ),
    }
    good, wrong, path = values[kinds]
    assert type(Box.seal(message_class(kinds)(good))) is Box
    comes_back(kinds, good)
    refused(kinds, wrong, path=path)


@pytest.mark.parametrize(
    ("kinds", "value"),
    [
        (list[dict[str, int]], [{"a": 1}, {Word.YES: 1}]),
        (dict[str, int], {"a": 1, Word.YES: 2}),
        (list[dict[str, int]], [{"a": 1}, {"b": Level.ONE}]),
        (list[dict[str, int]], [{"a": 1}, collections.OrderedDict(b=1)]),
    ],
)
def test_a_subclass_in_a_dict_among_others_is_refused(kinds: Any, value: Any) -> None:
    with pytest.raises(BoxError):
        Box.seal(message_class(kinds)(value))


class _Asked(str):
    """A key that counts how often it is asked for its hash."""

    __slots__ = ()

    asked: ClassVar = 0

    def __hash__(self) -> int:
        type(self).asked += 1
        return super().__hash__()


def test_a_key_that_is_refused_is_never_looked_up() -> None:
    value = {"a": 1, _Asked("b"): 2}
    asked = _Asked.asked
    refused(dict[str, int], value, path="value[key 'b']")
    assert _Asked.asked == asked


@pytest.mark.parametrize("annotation", [int, float | None, str | int | bytes, bool])
def test_a_value_in_a_dict_of_texts_is_checked_as_declared(annotation: Any) -> None:
    for value in (3, True, 0.5, None, "s", b"b", Level.ONE):
        kinds, several = dict[str, annotation], {"first": value, "": value}
        message = message_class(annotation)(value)
        try:
            Box.seal(message)
        except BoxError:
            refused(kinds, several, path="value['first']")
        else:
            comes_back(kinds, several)
