"""Unions: which member a value is of, and how the tree tells."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from orchestra.packing.shapes.refusals import Refusal, TooDeep, misfit
from orchestra.packing.shapes.scalars import NONE, Scalar
from orchestra.packing.shapes.shape import Riders, Shape, of, remembered


@attrs.frozen
class Either(Shape):
    """A union: a value has the first of the member shapes that takes it; those that ride stand last."""

    members: tuple[Shape, ...]

    def describe(self) -> str:
        return " | ".join(one.describe() for one in self.members)

    def parts(self) -> Iterable[tuple[str, Shape]]:
        return (("", one) for one in self.members)

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
    def wire(self) -> Any:
        if self.optional is not None or self.scalars is not None:
            return _any_of(self.members)
        own = self.slots
        if own is None:
            return None
        carried = [one for one in self.members if _is_carried(one)]
        return of(tuple, (*(_any_of((one, NONE)) for one in own), _any_of((*carried, NONE))))

    @remembered
    def is_straight(self) -> bool:
        direct = self.optional is not None or self.scalars is not None
        return direct and all(one.is_straight() for one in self.members)

    @remembered
    def is_native(self) -> bool:
        return self.wire() is not None and all(one.is_native() for one in self.members)

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
        raise misfit(
            self.describe(), type(value).__qualname__, "no member of the union has exactly this type"
        )

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        place, inner = tree
        return self.members[place].open(inner, riders)


def carried_types(union: Either) -> frozenset[type]:
    """The types of a union that have no place of their own."""
    own = union.slots or ()
    return (union.exactly() or frozenset()).difference(*(one.exactly() or () for one in own))


def _is_carried(shape: Shape) -> bool:
    """Whether msgpack itself tells the type of the value."""
    return isinstance(shape, Scalar) and shape.kind is not bytearray


def _any_of(shapes: Iterable[Shape]) -> Any:
    wires = [one.wire() for one in shapes]
    return None if None in wires else functools.reduce(lambda a, b: a | b, wires)
