"""Objects with declared fields."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from orchestra.packing.shapes.refusals import Refusal, misfit_of
from orchestra.packing.shapes.shape import Riders, Shape, of, remembered

T = TypeVar("T")

MOST_RIDES = 1000
"""How many parts of a class that travel by reference are told of."""

_new_object = object.__new__
_set = object.__setattr__


def _packers_of(fields: Mapping[str, Shape]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, shape.pack) for name, shape in fields.items())


def _openers_of(fields: Mapping[str, Shape]) -> tuple[Any, ...]:
    return tuple(shape.open for shape in fields.values())


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
        repr=False,
        default=attrs.Factory(lambda self: _packers_of(self.fields), takes_self=True),
    )
    _openers: tuple[Any, ...] = attrs.field(
        init=False,
        repr=False,
        default=attrs.Factory(lambda self: _openers_of(self.fields), takes_self=True),
    )

    def describe(self) -> str:
        return self.kind.__qualname__

    def parts(self) -> Iterable[tuple[str, Shape]]:
        return ((f".{name}", one) for name, one in self.fields.items())

    @remembered
    def wire(self) -> Any:
        if self.by_msgspec:
            return self.kind
        wires = tuple(one.wire() for one in self.fields.values())
        return None if None in wires else of(tuple, wires)

    def is_straight(self) -> bool:
        return self.by_msgspec

    def is_native(self) -> bool:
        return self.by_msgspec

    def exactly(self) -> frozenset[type] | None:
        return frozenset({self.kind})

    def fits(self, kind: type) -> bool:
        return kind is self.kind

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if type(value) is not self.kind:
            raise misfit_of(self.kind, value)
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
            raise Refusal("it has no value; set it before sending", [f".{name}"]) from None
        if self.has_dict:
            more = {name: one for name, one in vars(value).items() if name not in self.fields}
            if more:
                riders.append(more)
                tree.append(len(riders) - 1)
        return tree

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
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
        return list(itertools.islice(Shape.rides(self), MOST_RIDES))
