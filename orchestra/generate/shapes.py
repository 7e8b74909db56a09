"""Shapes: what a declared type says about a value, and how to carry such a value exactly.

A shape turns a value into a tree of what msgpack carries by itself (None, bool, int, float, str,
bytes, lists) and the tree into an equal value. What cannot be carried exactly, and need not be
copied, is put beside the tree, into a list of *riders*, and the tree has its place in that list.
A value that does not fit its declared type raises `Refusal`.

Shapes are the meaning of boxing. The functions that `orchestra.generate.boxes` generates do the
same faster for values that are as their types say, and come here for all others.
"""

import datetime as dt
import decimal
import functools
import itertools
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

T = TypeVar("T")

DEEPEST = 100
"""How many levels a message may have of a type that contains itself, where a level is not too deep."""

MOST_CALLS = 500
"""How many calls deep the opening of a message may go: Python has 1000, and the receiver needs some."""

MOST_RIDES = 1000
"""How many parts of a class that travel by reference are told of."""

_BITS_64 = range(-(2**63), 2**64)
_new_object = object.__new__
_set = object.__setattr__


class LiveMarker:
    """In the metadata of `Annotated`: the value travels by reference."""

    def __repr__(self) -> str:
        return "Live"


LIVE = LiveMarker()


class Refusal(Exception):
    """A value cannot come back as it is. `path` grows as the exception passes through the levels."""

    def __init__(self, reason: str, path: Iterable[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = list(path)

    def where(self) -> str:
        """The path from the message, shortened in its middle when it is long."""
        steps = self.path[::-1]
        if len(steps) > 12:
            steps = [*steps[:6], "...", *steps[-3:]]
        return "".join(steps).removeprefix(".")


class TooDeep(Refusal):
    """A value that no other member of a union would take either."""


class Riders(list[Any]):
    """What travels beside the tree of one message.

    `refused` keeps what members of unions have refused: without it the time for members that are
    alike, within each other, would double with every level.
    """

    __slots__ = ("refused",)

    def __init__(self, riders: Iterable[Any] = ()) -> None:
        super().__init__(riders)
        self.refused: dict[tuple[int, int], tuple[Any, str, tuple[str, ...]]] = {}


def of(origin: Any, arguments: Any) -> Any:
    """`origin[arguments]`, for a container class."""
    return types.GenericAlias(origin, arguments)


def remembered(method: Callable[[Any], T]) -> Callable[[Any], T]:
    """Ask a shape once: it asks its parts, and the same part may stand in many places."""
    name = f"_{method.__name__}"

    @functools.wraps(method)
    def ask(self: Any) -> T:
        known: dict[str, Any] = self.__dict__
        if name not in known:
            known[name] = method(self)
        return known[name]  # type: ignore[no-any-return]  # what `method` gave

    return ask


def _named(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type) else str(kind)


class Shape:
    """Base of the shapes.

    `pack` and `open` carry any value. The generated functions carry those that are exactly as
    declared, in a way of their own, where the shape has a `wire`. A shape is `constrained` when
    its annotation has constraints, which msgspec would check when it decodes: the sender's object
    is what counts.
    """

    def wire(self) -> Any:
        """The type of the tree, for msgspec."""
        return None

    def is_straight(self) -> bool:
        """Whether the generated functions encode and decode the value itself."""
        return False

    def is_native(self) -> bool:
        """Whether msgspec decodes exactly from the annotation as written."""
        return False

    def fits(self, kind: type) -> bool:
        """Whether a value of exactly this type may have this shape."""
        raise NotImplementedError

    def exactly(self) -> frozenset[type] | None:
        """The types that a value may have in the generated functions; None when any may come."""
        return None

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        """Return the tree of `value`; raise Refusal where it is not as declared."""
        raise NotImplementedError

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        """Return the value that `pack` was given."""
        raise NotImplementedError

    def open_all(self, trees: list[Any], riders: typing.Sequence[Any]) -> list[Any]:
        """The values of many trees."""
        open_, values = self.open, []
        for tree in trees:  # a comprehension would take another level of the stack on Python 3.11
            values.append(open_(tree, riders))  # noqa: PERF401 - see above
        return values

    def rides(self) -> Iterator[tuple[str, str]]:
        """Path and reason of each part that always travels by reference."""
        return iter(())


def _misfit(declared: str, held: str, advice: str) -> Refusal:
    return Refusal(f"it is declared {declared} and holds {_article(held)}; {advice}")


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _misfit_of(kind: type, value: Any) -> Refusal:
    """Refuse a value that is not exactly of `kind`, with advice for the way in which it is not."""
    name, held = kind.__qualname__, type(value).__qualname__
    if name == held:
        name, held = f"{kind.__module__}.{name}", f"{type(value).__module__}.{held}"
    if isinstance(value, kind):
        return _misfit(
            name,
            held,
            f"what is packed would come back as {name}: declare the field {held}, a union that"
            f" has {held}, or Live[{name}] to send it by reference",
        )
    return _misfit(name, held, f"send {_article(name)}, or declare the field {held}")


@attrs.frozen
class Ride(Shape):
    """Any value, by reference; in a union, none of the types `but`, of which other members are."""

    reason: str
    but: frozenset[type] = frozenset()

    def fits(self, kind: type) -> bool:
        return kind not in self.but

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        riders.append(value)
        return len(riders) - 1

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        return riders[tree]

    def rides(self) -> Iterator[tuple[str, str]]:
        yield "", self.reason


@attrs.frozen
class Scalar(Shape):
    """What msgpack carries by itself: `kinds` are the exact types that come back as they were."""

    kind: type
    kinds: frozenset[type]
    wire_type: Any
    constrained: bool = False

    def wire(self) -> Any:
        return self.wire_type

    def is_straight(self) -> bool:
        return True

    def is_native(self) -> bool:
        return not self.constrained

    def exactly(self) -> frozenset[type] | None:
        return self.kinds

    def fits(self, kind: type) -> bool:
        return kind in self.kinds

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        kind = type(value)
        if kind not in self.kinds:
            raise _misfit_of(self.kind, value)
        if kind is int and value not in _BITS_64:
            raise Refusal(
                "it is an int beyond 64 bits, which msgpack does not have; declare the field Live[int] or str"
            )
        if kind is str and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise Refusal(
                    f"its text has a lone surrogate at {error.start}; send bytes, or declare it Live[str]"
                ) from None
        return bytes(value) if kind is bytearray else value

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        return bytearray(tree) if self.kind is bytearray else tree

    def open_all(self, trees: list[Any], riders: typing.Sequence[Any]) -> list[Any]:
        return list(map(bytearray, trees)) if self.kind is bytearray else trees


NONE = Scalar(type(None), frozenset({type(None)}), type(None))
SCALARS: Mapping[type, Scalar] = {
    type(None): NONE,
    bool: Scalar(bool, frozenset({bool}), bool),
    int: Scalar(int, frozenset({int, bool}), int | bool),
    float: Scalar(float, frozenset({float, int, bool}), float | int | bool),
    str: Scalar(str, frozenset({str}), str),
    bytes: Scalar(bytes, frozenset({bytes}), bytes),
    bytearray: Scalar(bytearray, frozenset({bytearray}), bytearray),
}


@attrs.frozen
class Moment(Shape):
    """An immutable value that msgspec writes as text: a date, a decimal, a UUID.

    The generated functions carry those that come back exactly; the others ride.
    """

    kind: type
    constrained: bool = False

    def is_straight(self) -> bool:
        return True

    def is_native(self) -> bool:
        return not self.constrained

    def wire(self) -> Any:
        return self.kind

    def exactly(self) -> frozenset[type] | None:
        return frozenset({self.kind})

    def fits(self, kind: type) -> bool:
        return issubclass(kind, self.kind)

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if not isinstance(value, self.kind):
            raise _misfit_of(self.kind, value)
        riders.append(value)
        return len(riders) - 1

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        return riders[tree]


MOMENTS: frozenset[type] = frozenset(
    {dt.datetime, dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID}
)


@attrs.frozen
class Member(Shape):
    """A member of an enumeration, by its value if msgspec gives that very member back, else by name.

    Members that have no name of their own (combined flags) travel by value; one that nothing
    finds again rides.
    """

    kind: Any
    by_msgspec: bool
    by_value: bool
    constrained: bool = False

    def is_straight(self) -> bool:
        return self.by_msgspec

    def is_native(self) -> bool:
        return self.by_msgspec and not self.constrained

    def wire(self) -> Any:
        if self.is_straight():
            return self.kind
        return int if self.by_value else str

    @property
    def attribute(self) -> str:
        """The attribute of a member by which it is found again."""
        return "_value_" if self.by_value else "_name_"

    @property
    def table(self) -> Mapping[Any, Any]:
        """From that attribute to the member."""
        found: Mapping[Any, Any] = self.kind._value2member_map_ if self.by_value else self.kind._member_map_
        return found

    def exactly(self) -> frozenset[type] | None:
        return frozenset({self.kind})

    def fits(self, kind: type) -> bool:
        return kind is self.kind

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if type(value) is not self.kind:
            raise _misfit_of(self.kind, value)
        label = getattr(value, self.attribute)
        plain = type(label) is str or (type(label) is int and label in _BITS_64)
        if plain and self.table.get(label) is value:
            return label
        riders.append(value)
        return [len(riders) - 1]

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        return riders[tree[0]] if type(tree) is list else self.table[tree]


@attrs.frozen
class Choice(Shape):
    """One of the values of a Literal."""

    values: tuple[Any, ...]
    constrained: bool = False

    def is_native(self) -> bool:
        return self.is_straight() and not self.constrained

    @property
    def kinds(self) -> frozenset[type]:
        """The types of the values."""
        return frozenset(map(type, self.values))

    def wire(self) -> Any:
        return next(iter(self.kinds)) if self.is_straight() else None

    def is_straight(self) -> bool:
        return self.kinds == frozenset[type]({str}) or self.kinds == frozenset[type]({int})

    def exactly(self) -> frozenset[type] | None:
        return self.kinds

    def fits(self, kind: type) -> bool:
        return kind in self.kinds

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        for place, one in enumerate(self.values):
            if type(one) is type(value) and one == value:
                return place
        raise Refusal(f"{value!r} is none of the declared values {', '.join(map(repr, self.values))}")

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        return self.values[tree]


def _check_apart(value: Any) -> None:
    """Refuse a set or dict that cannot be filled again as it is, for its items or keys were changed in it."""
    try:
        count = len(frozenset(list(value)))
    except Exception as error:
        raise Refusal(f"its items cannot be put together again ({error})") from None
    if count != len(value):
        raise Refusal("two of its items or keys have become equal since they were put in")


def may_become_equal(shape: Shape) -> bool:
    """Whether items of a set or keys of a dict may be changed in place."""
    return isinstance(shape, (Record, Again, Ride)) or any(map(may_become_equal, parts_of(shape)))


@attrs.frozen
class Many(Shape):
    """A list, set, frozenset or tuple of any length, of items of one shape."""

    kind: Any
    item: Shape
    constrained: bool = False

    @remembered
    def is_native(self) -> bool:
        return not self.constrained and self.item.is_native()

    @remembered
    def is_straight(self) -> bool:
        return self.item.is_straight()

    @remembered
    def wire(self) -> Any:
        if self.item.wire() is None:
            return None
        if not self.is_straight():
            return of(list, self.item.wire())
        return of(self.kind, (self.item.wire(), ...) if self.kind is tuple else self.item.wire())

    def exactly(self) -> frozenset[type] | None:
        return frozenset({self.kind})

    def fits(self, kind: type) -> bool:
        return kind is self.kind

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if type(value) is not self.kind:
            raise _misfit_of(self.kind, value)
        pack, tree = self.item.pack, []
        try:
            for one in value:
                tree.append(pack(one, riders, depth))  # noqa: PERF401 - its length tells the place of a refusal
        except Refusal as refusal:
            refusal.path.append(f"[{len(tree)}]" if self.kind in {list, tuple} else "[...]")
            raise
        if self.kind in {set, frozenset} and not isinstance(self.item, Scalar):
            _check_apart(value)
        return tree

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        return self.kind(self.item.open_all(tree, riders))

    def rides(self) -> Iterator[tuple[str, str]]:
        for path, reason in self.item.rides():
            yield f"[*]{path}", reason


@attrs.frozen
class Row(Shape):
    """A tuple with a shape for each place."""

    items: tuple[Shape, ...]
    constrained: bool = False

    @remembered
    def is_native(self) -> bool:
        return not self.constrained and all(item.is_native() for item in self.items)

    @remembered
    def is_straight(self) -> bool:
        return all(item.is_straight() for item in self.items)

    @remembered
    def wire(self) -> Any:
        wires = tuple(item.wire() for item in self.items)
        return None if None in wires else of(tuple, wires)

    def exactly(self) -> frozenset[type] | None:
        return frozenset({tuple})

    def fits(self, kind: type) -> bool:
        return kind is tuple

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if type(value) is not tuple:
            raise _misfit_of(tuple, value)
        if len(value) != len(self.items):
            raise Refusal(f"it is declared a tuple of {len(self.items)} and has {len(value)}")
        return _pack_row(self.items, value, riders, depth)

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        values = []
        for item, one in zip(self.items, tree, strict=True):  # no comprehension: see `open_all`
            values.append(item.open(one, riders))
        return tuple(values)

    def rides(self) -> Iterator[tuple[str, str]]:
        for place, item in enumerate(self.items):
            for path, reason in item.rides():
                yield f"[{place}]{path}", reason


def _pack_row(items: tuple[Shape, ...], value: Any, riders: Riders, depth: int) -> list[Any]:
    tree: list[Any] = []
    try:
        for item, one in zip(items, value, strict=True):
            tree.append(item.pack(one, riders, depth))
    except Refusal as refusal:
        refusal.path.append(f"[{len(tree)}]")
        raise
    return tree


@attrs.frozen
class Table(Shape):
    """A dict, in its order."""

    key: Shape
    value: Shape
    constrained: bool = False

    @remembered
    def is_native(self) -> bool:
        return not self.constrained and self.key.is_native() and self.value.is_native()

    @remembered
    def is_straight(self) -> bool:
        return self.key.is_straight() and self.value.is_straight()

    @remembered
    def wire(self) -> Any:
        if (
            self.key.wire() is None
            or self.value.wire() is None
            or not isinstance(self.key, (Scalar, Member, Choice))
        ):
            return None
        return of(dict, (self.key.wire(), self.value.wire()))

    def exactly(self) -> frozenset[type] | None:
        return frozenset({dict})

    def fits(self, kind: type) -> bool:
        return kind is dict

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if type(value) is not dict:
            raise _misfit_of(dict, value)
        keys: list[Any] = []
        values: list[Any] = []
        pack_key, pack_value = self.key.pack, self.value.pack
        key: Any = None
        try:
            for key, part in value.items():
                keys.append(pack_key(key, riders, depth))
                values.append(pack_value(part, riders, depth))
        except Refusal as refusal:
            of_key = "key " if len(keys) == len(values) else ""
            refusal.path.append(f"[{of_key}{shorten(key)}]")
            raise
        if not isinstance(self.key, Scalar):
            _check_apart(value)
        return [keys, values]

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        keys, values = tree
        return dict(zip(self.key.open_all(keys, riders), self.value.open_all(values, riders), strict=True))

    def rides(self) -> Iterator[tuple[str, str]]:
        for path, reason in self.key.rides():
            yield f"[key]{path}", reason
        for path, reason in self.value.rides():
            yield f"[*]{path}", reason


def shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


@attrs.frozen
class Either(Shape):
    """A union: a value has the first of the member shapes that takes it; those that ride stand last."""

    members: tuple[Shape, ...]

    @remembered
    def is_native(self) -> bool:
        return self.wire() is not None and all(one.is_native() for one in self.members)

    @remembered
    def exactly(self) -> frozenset[type] | None:
        parts = [one.exactly() for one in self.members]
        return None if None in parts else frozenset[type]().union(*(one for one in parts if one))

    @property
    def slots(self) -> tuple[Shape, ...] | None:
        """The members that are no scalars, when the exact type of a value tells its member.

        Then the tree is a row with a place for each of them and one for all scalars; all but one
        place are None.
        """
        own = tuple(one for one in self.members if not _is_carried(one))
        types = self.exactly()
        if types is None or any(one.wire() is None for one in own):
            return None
        carried = frozenset[type]().union(*(one.exactly() or () for one in self.members if _is_carried(one)))
        apart = sum(len(one.exactly() or ()) for one in own) + len(carried) == len(types)
        return own if apart else None

    @property
    def optional(self) -> Shape | None:
        """The other member, when this is a union of None and one more."""
        if len(self.members) == 2 and NONE in self.members:
            return self.members[1 - self.members.index(NONE)]
        return None

    @property
    def scalars(self) -> frozenset[type] | None:
        """All the exact types, when msgpack itself tells the members apart."""
        return self.exactly() if all(map(_is_carried, self.members)) else None

    @remembered
    def is_straight(self) -> bool:
        direct = self.optional is not None or self.scalars is not None
        return direct and all(one.is_straight() for one in self.members)

    @remembered
    def wire(self) -> Any:
        if self.optional is not None or self.scalars is not None:
            return _any_of(self.members)
        own = self.slots
        if own is None:
            return None
        carried = [one for one in self.members if _is_carried(one)]
        return of(tuple, (*(_any_of((one, NONE)) for one in own), _any_of((*carried, NONE))))

    def fits(self, kind: type) -> bool:
        return any(one.fits(kind) for one in self.members)

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        kind, taken = type(value), len(riders)
        first: Refusal | None = None
        for place, one in enumerate(self.members):
            if not one.fits(kind):
                continue
            if riders.refused and (before := riders.refused.get((id(one), id(value)))):
                first = first or Refusal(*before[1:])
                continue
            try:
                return [place, one.pack(value, riders, depth)]
            except TooDeep:
                raise
            except Refusal as refusal:
                first = first or refusal
                riders.refused[id(one), id(value)] = value, refusal.reason, tuple(refusal.path)
                del riders[taken:]
        if first is not None:
            raise first
        raise _misfit(
            " | ".join(map(describe, self.members)),
            type(value).__qualname__,
            "no member of the union has exactly this type",
        )

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        place, inner = tree
        return self.members[place].open(inner, riders)

    def rides(self) -> Iterator[tuple[str, str]]:
        for one in self.members:
            yield from one.rides()


def _is_carried(shape: Shape) -> bool:
    """Whether msgpack itself tells the type of the value."""
    return isinstance(shape, Scalar) and shape.kind is not bytearray


def _any_of(shapes: Iterable[Shape]) -> Any:
    wires = [one.wire() for one in shapes]
    return None if None in wires else functools.reduce(lambda a, b: a | b, wires)


def _packers_of(fields: Mapping[str, Shape]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, shape.pack) for name, shape in fields.items())


@attrs.frozen(eq=False)
class Record(Shape):
    """An object with declared fields: a msgspec.Struct, an attrs class, a dataclass or a named tuple.

    A class, with its arguments, has one shape within one message. `positional` is how many of the
    fields a Struct takes by position. With `has_dict` an object may have attributes that are not
    declared: those ride.
    """

    kind: type
    style: str
    fields: Mapping[str, Shape]
    positional: int
    has_dict: bool
    in_dict: int | None
    by_msgspec: bool
    plain_set: bool
    _packers: tuple[tuple[str, Any], ...] = attrs.field(
        init=False,
        eq=False,
        repr=False,
        default=attrs.Factory(lambda self: _packers_of(self.fields), takes_self=True),
    )
    _openers: tuple[Any, ...] = attrs.field(
        init=False,
        eq=False,
        repr=False,
        default=attrs.Factory(lambda self: tuple(one.open for one in self.fields.values()), takes_self=True),
    )

    def is_straight(self) -> bool:
        return self.by_msgspec

    def is_native(self) -> bool:
        return self.by_msgspec

    @remembered
    def wire(self) -> Any:
        if self.by_msgspec:
            return self.kind
        wires = tuple(one.wire() for one in self.fields.values())
        return None if None in wires else of(tuple, wires)

    def exactly(self) -> frozenset[type] | None:
        return frozenset({self.kind})

    def fits(self, kind: type) -> bool:
        return kind is self.kind

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if type(value) is not self.kind:
            raise _misfit_of(self.kind, value)
        if isinstance(value, tuple) and len(value) != len(self.fields):
            raise Refusal(f"it has {len(value)} items and {len(self.fields)} fields")
        tree: list[Any] = []
        name = ""
        try:
            for name, pack in self._packers:
                tree.append(pack(getattr(value, name), riders, depth))
        except Refusal as refusal:
            refusal.path.append(f".{name}")
            raise
        except AttributeError:
            unset = Refusal("it has no value; set it before sending")
            unset.path.append(f".{name}")
            raise unset from None
        if self.has_dict:
            more = {name: one for name, one in vars(value).items() if name not in self.fields}
            if more:
                riders.append(more)
                tree.append(len(riders) - 1)
        return tree

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        values = []
        for open_, one in zip(self._openers, tree):  # noqa: B905 - riders may follow
            values.append(open_(one, riders))
        made = self.build(values)
        if len(tree) > len(values):
            made.__dict__.update(riders[tree[-1]])
        return made

    def build(self, values: list[Any]) -> Any:
        """Make the object; neither its `__init__` nor a validator or a default has a part in it."""
        if self.style == "struct":
            if self.positional == len(values):
                return self.kind(*values)
            return self.kind(*values[: self.positional], **dict(self.named(values)))
        if self.style == "named tuple":
            return tuple.__new__(self.kind, values)
        made: Any = _new_object(self.kind)
        for name, one in zip(self.fields, values, strict=True):
            _set(made, name, one)
        return made

    def named(self, values: list[T]) -> Iterator[tuple[str, T]]:
        """The fields that go by keyword, with their values."""
        return zip(list(self.fields)[self.positional :], values[self.positional :], strict=True)

    def rides(self) -> Iterator[tuple[str, str]]:
        return iter(self._rides())

    @remembered
    def _rides(self) -> list[tuple[str, str]]:
        each = (
            (f".{name}", path, reason) for name, one in self.fields.items() for path, reason in one.rides()
        )
        return [(name + path, reason) for name, path, reason in itertools.islice(each, MOST_RIDES)]


@attrs.define(eq=False)
class Again(Shape):
    """A type within itself: stands for the shape that is being made."""

    name: str
    target: Shape | None = None

    @property
    def shape(self) -> Shape:
        """What this stands for."""
        assert self.target is not None
        return self.target

    @remembered
    def calls(self) -> int:
        """How many calls one level is deep, at most."""
        return max(_calls_down(self.shape, {}), MOST_CALLS // DEEPEST)

    def fits(self, kind: type) -> bool:
        return self.shape.fits(kind)

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        deeper = depth + self.calls()
        if deeper > MOST_CALLS:
            raise TooDeep(
                f"it contains itself, or is nested more than {MOST_CALLS // self.calls()} levels deep;"
                " send references by name or declare the field Live"
            )
        return self.shape.pack(value, riders, deeper)

    def open(self, tree: Any, riders: typing.Sequence[Any]) -> Any:
        return self.shape.open(tree, riders)


def _calls_down(shape: Shape, known: dict[int, int]) -> int:
    """How many calls it takes to open a value down to a type that is within itself; 0 when there is none."""
    if isinstance(shape, Again):
        return 1
    if id(shape) not in known:
        below = max((_calls_down(part, known) for part in parts_of(shape)), default=0)
        own = 2 if isinstance(shape, (Many, Table)) else 1
        known[id(shape)] = below and below + own
    return known[id(shape)]


def describe(shape: Shape) -> str:
    """A short name of the type that `shape` stands for."""
    match shape:
        case Scalar(kind=kind) | Moment(kind=kind) | Record(kind=kind) | Member(kind=kind):
            return "None" if kind is type(None) else _named(kind)
        case Many(kind=kind, item=item):
            return f"{kind.__name__}[{describe(item)}{', ...' if kind is tuple else ''}]"
        case Row(items=items):
            return f"tuple[{', '.join(map(describe, items))}]"
        case Table(key=key, value=value):
            return f"dict[{describe(key)}, {describe(value)}]"
        case Either(members=members):
            return " | ".join(map(describe, members))
        case Choice(values=values):
            return f"Literal[{', '.join(map(repr, values))}]"
        case Again(name=name):
            return name
        case _:
            return "object"


def constrained(shape: Shape) -> Shape:
    """The same shape, where msgspec would check constraints as well if it read the annotation itself."""
    match shape:
        case Either(members=members):
            return Either(tuple(map(constrained, members)))
        case Scalar() | Moment() | Member() | Choice() | Many() | Row() | Table():
            return attrs.evolve(shape, constrained=True)
        case Record():
            return attrs.evolve(shape, by_msgspec=False)
        case _:
            return shape


def extent(shape: Shape) -> tuple[int, int]:
    """How many levels a type has, and how many parts the type of its tree has, all written out."""
    known: dict[int, tuple[int, int]] = {}

    def measure(one: Shape) -> tuple[int, int]:
        if id(one) not in known:
            inner = [measure(part) for part in parts_of(one)]
            levels, sizes = [level for level, _ in inner], [size for _, size in inner]
            known[id(one)] = 1 + max(levels, default=0), 1 + (0 if one.is_straight() else sum(sizes))
        return known[id(one)]

    return measure(shape)


def parts_of(shape: Shape) -> tuple[Shape, ...]:
    """The shapes of the values within a value of this shape."""
    match shape:
        case Many(item=item):
            return (item,)
        case Row(items=items) | Either(members=items):
            return items
        case Table(key=key, value=value):
            return key, value
        case Record(fields=fields):
            return tuple(fields.values())
        case _:
            return ()
