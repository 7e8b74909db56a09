"""One of the values that a type has by name: a member of an enumeration, a value of a Literal."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from orchestra.packing.shapes.refusals import Refusal, misfit_of
from orchestra.packing.shapes.scalars import BITS_64
from orchestra.packing.shapes.shape import Riders, Shape


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

    def describe(self) -> str:
        return str(self.kind.__qualname__)

    def wire(self) -> Any:
        if self.is_straight():
            return self.kind
        return int if self.by_value else str

    def is_straight(self) -> bool:
        return self.by_msgspec

    def is_native(self) -> bool:
        return self.by_msgspec and not self.constrained

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
            raise misfit_of(self.kind, value)
        label = getattr(value, self.attribute)
        plain = type(label) is str or (type(label) is int and label in BITS_64)
        if plain and self.table.get(label) is value:
            return label
        riders.append(value)
        return [len(riders) - 1]

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        return riders[tree[0]] if type(tree) is list else self.table[tree]


@attrs.frozen
class Choice(Shape):
    """One of the values of a Literal."""

    values: tuple[Any, ...]
    constrained: bool = False

    def describe(self) -> str:
        return f"Literal[{', '.join(map(repr, self.values))}]"

    @property
    def kinds(self) -> frozenset[type]:
        """The types of the values."""
        return frozenset(map(type, self.values))

    def wire(self) -> Any:
        return next(iter(self.kinds)) if self.is_straight() else None

    def is_straight(self) -> bool:
        return self.kinds == frozenset[type]({str}) or self.kinds == frozenset[type]({int})

    def is_native(self) -> bool:
        return self.is_straight() and not self.constrained

    def exactly(self) -> frozenset[type] | None:
        return self.kinds

    def fits(self, kind: type) -> bool:
        return kind in self.kinds

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        for place, one in enumerate(self.values):
            if type(one) is type(value) and one == value:
                return place
        raise Refusal(f"{value!r} is none of the declared values {', '.join(map(repr, self.values))}")

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        return self.values[tree]
