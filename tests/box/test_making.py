"""Codecs are made for every class, in little time, whatever its types and names are, and once."""

import abc
import dataclasses
import enum
import sys
import time
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Optional, Self, TypeVar

import attrs
import msgspec
import pytest
from typing_extensions import TypeAliasType, TypeVarTuple, Unpack

from orchestra import Actor, Context, orchestra, start, subsystem
from orchestra.box import Box, boxed, codec_of
from orchestra.errors import BoxError
from orchestra.packing.codec import Codec
from tests.box.strictly import same
from tests.runtime.players import within

T = TypeVar("T")
U = TypeVar("U")
Ts = TypeVarTuple("Ts")


def kept(message: Any) -> Box[Any]:
    box: Box[Any] = Box.seal(message)
    assert same(box.open(), message), (box.open(), message)
    return box


def message(annotation: Any, value: Any) -> Any:
    return msgspec.defstruct("Message", [("value", annotation)])(value)


def chain(length: int, make: Callable[[str, Any], type], inner: Any = int) -> Any:
    for number in range(length):
        inner = make(f"Level{number}", inner)
    return inner


def in_time(kind: type) -> Codec:
    began = time.perf_counter()
    codec = codec_of(kind)
    assert time.perf_counter() - began < 5
    return codec


STRUCT = lambda name, inner: msgspec.defstruct(name, [("a", inner)])  # noqa: E731 - it is one of a table
STRUCTS = lambda name, inner: msgspec.defstruct(name, [("a", list[inner]), ("b", inner | None)])  # noqa: E731 - see above
DATA = lambda name, inner: dataclasses.make_dataclass(name, [("a", inner)])  # noqa: E731 - see above
DATAS = lambda name, inner: dataclasses.make_dataclass(name, [("a", inner), ("b", list[inner])])  # noqa: E731 - see above
LISTS = lambda name, inner: list[Optional[inner]]  # noqa: E731 - see above


@pytest.mark.parametrize("make", [STRUCT, STRUCTS, DATA, DATAS])
@pytest.mark.parametrize("length", [12, 25, 49])
def test_types_deep_within_each_other_are_made_in_little_time(make: Any, length: int) -> None:
    assert not in_time(chain(length, make)).rides


def test_a_type_with_more_levels_than_python_has_loops() -> None:
    value: Any = None
    for _ in range(30):
        value = [value, None]
    kept(message(chain(30, LISTS), value))
    assert in_time(chain(60, STRUCT)).rides  # what is deeper than that travels by reference


def test_the_parts_that_ride_are_told_of_but_not_without_end() -> None:
    assert len(in_time(chain(20, DATAS, object)).rides) == 1000


class Poly(msgspec.Struct, Generic[T]):
    one: T
    left: "Poly[list[T]] | None" = None
    right: "Poly[tuple[T]] | None" = None


Growing = TypeAliasType("Growing", "T | dict[str, Growing[list[T]]]", type_params=(T,))


def test_a_type_that_grows_within_itself() -> None:
    in_time(Poly)
    kept(Poly(1, Poly([1], Poly([[1]])), Poly((1,))))
    kept(message(Growing[int], {"a": {"b": [[1]]}}))


class Alike(msgspec.Struct, Generic[T]):
    inner: "Alike[int] | Alike[str] | None"
    items: list[T]


def alike(depth: int, item: Any) -> Any:
    inner = None
    for _ in range(depth):
        inner = Alike(inner, [item])
    return inner


def test_members_of_unions_that_are_alike_within_each_other_take_little_time() -> None:
    kept(message(Alike[str], alike(90, "x")))
    with pytest.raises(BoxError, match="items"):
        Box.seal(message(Alike[str], alike(90, 1.5)))


class Nested(msgspec.Struct):
    n: int
    kids: Sequence["Nested"] | list["Nested"] = ()


def test_what_no_member_of_a_union_takes_is_refused_with_the_path_of_the_first() -> None:
    kept(Nested(1, [Nested(2, (Nested(3),))]))
    with pytest.raises(BoxError) as caught:
        Box.seal(Nested(1, [Nested(2, [Nested("three")])]))  # type: ignore[arg-type]  # the mistake
    assert caught.value.path == "kids[0].kids[0].n"


# What annotations mean.


class Page(msgspec.Struct, Generic[T]):
    items: list[T]


class Shelf(msgspec.Struct, Generic[T]):
    page: Page[list[T]]
    named: "Page[dict[str, T]] | None" = None


class Two(msgspec.Struct):
    ints: Shelf[int]
    texts: Shelf[str]


def test_the_arguments_of_a_generic_class_are_those_of_the_place() -> None:
    kept(Two(Shelf(Page([[1]]), Page([{"a": 1}])), Shelf(Page([["x"]]))))
    with pytest.raises(BoxError) as caught:
        Box.seal(Two(Shelf(Page([[1]])), Shelf(Page([["x"]]), Page([{"a": 1}]))))
    assert caught.value.path == "texts.named.items[0]['a']"


Swapped = TypeAliasType("Swapped", "tuple[T, Swapped[U, T]] | None", type_params=(T, U))


def test_the_arguments_of_a_type_alias_are_those_of_the_place() -> None:
    kept(message(Swapped[int, str], (1, ("a", (2, ("b", None))))))
    with pytest.raises(BoxError):
        Box.seal(message(Swapped[int, str], (1, ("a", ("b", None)))))


def test_a_type_alias_is_read_in_its_own_module() -> None:
    elsewhere = types.ModuleType("tests.box.elsewhere")
    elsewhere.__dict__.update(Page=int, TypeAliasType=TypeAliasType)
    exec("Pages = TypeAliasType('Pages', 'list[Page]')", elsewhere.__dict__)
    sys.modules[elsewhere.__name__] = elsewhere
    try:
        kept(message(elsewhere.Pages, [1]))
    finally:
        del sys.modules[elsewhere.__name__]


class Base(msgspec.Struct):
    n: int
    next: Self | None = None


class Child(Base):
    more: str = ""


class Typed(msgspec.Struct, Generic[T]):
    item: T
    next: Self | None = None


def test_self_is_the_class_whose_field_it_is() -> None:
    kept(Base(1, Base(2)))
    kept(Child(1, Child(2, None, "x")))
    kept(message(Typed[int], Typed(1, Typed(2))))
    for wrong in (Base(1, Child(2)), Child(1, Base(2)), message(Typed[int], Typed(1, Typed("x")))):  # type: ignore[arg-type]  # the mistake
        with pytest.raises(BoxError):
            Box.seal(wrong)


class Starred(msgspec.Struct, Generic[*Ts]):
    row: tuple[*Ts]


@pytest.mark.parametrize(
    "value",
    [
        Starred((1, "a", 2.5)),
        message(Starred[int, str], Starred((1, "a"))),
        message(tuple[int, Unpack[tuple[str, ...]]], (1, "a", "b")),  # noqa: UP044 - there are two ways
        message(tuple[int, *tuple[str, ...]], (1,)),
    ],
)
def test_tuples_of_any_number_of_types(value: Any) -> None:
    kept(value)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax came with Python 3.12")
def test_type_parameters_are_found_in_strings() -> None:
    space: dict[str, Any] = {"__name__": __name__, "Struct": msgspec.Struct}
    exec("class Box[T](Struct):\n    items: 'list[T]'\nclass Ints(Box[int]):\n    n: int\n", space)
    codec = codec_of(space["Ints"])
    assert not codec.rides
    with pytest.raises(BoxError):
        codec.seal(space["Ints"](["x"], 1))
    assert same(codec.open(codec.seal(space["Ints"]([1], 1))), space["Ints"]([1], 1))


# What a class may be.


class Row(NamedTuple):
    left: int
    right: int


def test_a_named_tuple_with_more_items_than_fields_is_refused() -> None:
    kept(Row(1, 2))
    for wrong in (tuple.__new__(Row, (1, 2, 3)), message(list[Row], [tuple.__new__(Row, (1, 2, 3))])):
        with pytest.raises(BoxError, match="3 items and 2 fields"):
            Box.seal(wrong)


class Like(tuple[int]):  # noqa: SLOT001 - the point
    """It looks like a named tuple, but has a dict."""

    _fields = ("left",)
    left = property(lambda self: self[0])


class Counting(type(msgspec.Struct)):  # type: ignore[misc]  # it is known at run time alone
    made = 0

    def __call__(cls, *args: Any, **named: Any) -> Any:
        cls.made += 1
        return super().__call__(*args, **named)


class Counted(msgspec.Struct, metaclass=Counting):
    n: int


class Mortal(NamedTuple):
    n: int

    def __del__(self) -> None: ...


@pytest.mark.parametrize(
    ("value", "word"), [(Like((1,)), "no fields"), (Counted(1), "metaclass"), (Mortal(1), "__del__")]
)
def test_what_would_not_be_made_as_it_was_travels_whole(value: Any, word: str) -> None:
    codec = codec_of(type(value))
    assert codec.whole is not None and word in codec.whole
    assert codec.open(codec.seal(value)) is value


@dataclasses.dataclass
class Defaulting:
    n: int = 3
    items: list[int] = dataclasses.field(default_factory=list)


def test_an_attribute_that_came_for_one_that_went_comes_along() -> None:
    value = Defaulting()
    del value.n
    value.extra = 1  # type: ignore[attr-defined]  # the point
    assert vars(Box.seal(value).open()) == {"n": 3, "items": [], "extra": 1}


class Inner(msgspec.Struct, frozen=True):
    items: list[int]


class Default(msgspec.Struct, omit_defaults=True):
    inner: Inner = Inner([1])
    row: tuple[list[int], ...] = ([1],)
    number: float = 0.0
    items: list[int] = []


def test_a_default_that_is_left_out_of_the_frame_is_not_shared() -> None:
    before = Default()
    after = kept(message(list[Default], [before])).open().value[0]
    assert after.inner.items is not before.inner.items
    assert after.row[0] is not before.row[0]
    assert same(kept(message(list[Default], [Default(number=-0.0)])).open().value[0].number, -0.0)


@pytest.mark.parametrize("name", ['a"""b\\', "a\n1/0", "a b", "1", "", "größe", "None", "list"])
def test_a_class_of_any_name(name: str) -> None:
    for kind in (msgspec.defstruct("Made", [("n", int)]), dataclasses.make_dataclass("Made", [("n", int)])):
        kind.__name__ = kind.__qualname__ = name
        kept(kind(1))
        kept(message(list[kind], [kind(1)]))  # type: ignore[valid-type]  # made at run time


# Once.


def test_encoders_and_decoders_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Counter:
        def __init__(self, name: str, original: Any) -> None:
            self.name, self.original = name, original

        def __call__(self, *args: Any, **named: Any) -> Any:
            made.append(self.name)
            return self.original(*args, **named)

    for name in ("Encoder", "Decoder"):
        monkeypatch.setattr(msgspec.msgpack, name, Counter(name, getattr(msgspec.msgpack, name)))

    class Bare(msgspec.Struct):
        items: list[int]

    class Typing(msgspec.Struct):
        bare: "Bare"
        unknown: "typing.Unknown" = None  # type: ignore[name-defined]
        more: Any = None

    class Halt: ...

    class Sink(Actor[Any, Any]):
        def handle(self, ctx: Context[Any, Any, Any], message: Any) -> None: ...

    @orchestra(signal=Halt, event=Halt, boxed_messages=True)
    class App:
        sink: Sink = subsystem(consumes=Bare | Typing)

    async def main() -> None:
        async with start(App(sink=Sink())) as running:
            for number in range(20):
                await running.send(Bare([number]))
                await running.send(Typing(Bare([number])))
                await running.send(Box.seal(Bare([number])))
            await running.drain()

    within(10, main())
    within(10, main())
    assert made.count("Decoder") >= 2
    first = len(made)
    for _ in range(10):
        within(10, main())
    assert len(made) == first


def test_a_codec_that_trusts_is_made_once_too() -> None:
    @boxed(check=False)
    @attrs.define
    class Trusted:
        items: list[int]

    codec = codec_of(Trusted)
    assert Box.seal(Trusted([1])).codec is codec


# What is within a type.


class Wrap(msgspec.Struct):
    named: "dict[str, list[Wide]]"


class Wide(msgspec.Struct):
    wraps: list[Wrap] = []


def test_the_deepest_message_that_can_be_sealed_can_be_opened() -> None:
    def deep(levels: int) -> Wide:
        value = Wide()
        for _ in range(levels):
            value = Wide([Wrap({"a": [value]})])
        return value

    with pytest.raises(BoxError, match=r"more than (\d+) levels") as caught:
        Box.seal(deep(400))
    most = int(caught.value.reason.partition("more than ")[2].split()[0])
    assert most >= 50
    box = Box.seal(deep(most))

    def down(levels: int) -> Any:
        return down(levels - 1) if levels else box.open()

    assert same(down(200), deep(most))
    with pytest.raises(BoxError):
        Box.seal(deep(most + 1))


@dataclasses.dataclass(unsafe_hash=True)
class Key:
    n: int
    parts: Any = ()


@pytest.mark.parametrize(
    "annotation", [set[Key], frozenset[Key], dict[Key, int], list[set[Key]], "set[Key | int]", dict[Any, int]]
)
def test_items_of_a_set_that_were_changed_in_it(annotation: Any) -> None:
    def filled(*keys: Key) -> Any:
        origin = typing.get_origin(annotation) or set
        if origin is list:
            return [set(keys)]
        return dict.fromkeys(keys, 1) if origin is dict else origin(keys)

    one, two = Key(1), Key(2)
    value = message(annotation, filled(one, two))
    box = kept(value) if annotation != dict[Any, int] else Box.seal(value)
    assert len(list(box.open().value if annotation != list[set[Key]] else box.open().value[0])) == 2
    two.n = 1
    with pytest.raises(BoxError, match="have become equal"):
        Box.seal(value)
    two.n, two.parts = 2, []
    with pytest.raises(BoxError, match="cannot be put together again"):
        Box.seal(value)


class Shade(enum.Enum):
    DARK = 1


class Figure(abc.ABC):
    @abc.abstractmethod
    def area(self) -> float: ...


@dataclasses.dataclass
class Sized(Figure):
    size: float

    @abc.abstractmethod
    def name(self) -> str: ...


@dataclasses.dataclass
class Square(Sized):
    def area(self) -> float:
        return self.size**2

    def name(self) -> str:
        return "square"


@pytest.mark.parametrize(
    ("annotation", "value", "word"),
    [
        (enum.Enum, Shade.DARK, "no members"),
        (msgspec.Struct, Base(1), "the base of all Structs"),
        (Figure, Square(1.0), "no fields"),
        (Sized, Square(1.0), "abstract"),
    ],
)
def test_a_field_of_a_class_that_only_children_have_rides(annotation: Any, value: Any, word: str) -> None:
    box = kept(message(annotation, value))
    assert box.open().value is value
    assert word in box.codec.rides["value"]


@pytest.mark.parametrize("value", [None, 3, iter([]), print, ..., Shade.DARK, Shade, [1], kept])
def test_a_box_of_what_is_no_message_holds_the_very_object(value: Any) -> None:
    box: Box[Any] = Box.seal(value)
    assert box.open() is value and Box.seal(value).codec is box.codec


def test_fields_and_classes_may_be_named_as_what_the_loops_of_the_checks_use() -> None:
    item = msgspec.defstruct("str_", [("int_", int)])
    named = msgspec.defstruct(
        "dict_", [("str_", dict[str, int]), ("int_", list[item]), ("key", str), ("bool_", dict[int, str])]
    )
    held = named({"a": 1, "b": True}, [item(1), item(2)], "c", {3: "d"})
    assert type(kept(held)) is Box
    for wrong in ({"a": "1"}, {1: 1}):
        with pytest.raises(BoxError):
            Box.seal(named(wrong, [], "", {}))
