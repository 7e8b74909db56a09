"""Containers: lists, sets, tuples and dicts."""

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from orchestra.packing.shapes.choices import Choice, Member
from orchestra.packing.shapes.refusals import Refusal, misfit_of, shorten
from orchestra.packing.shapes.scalars import Scalar
from orchestra.packing.shapes.shape import Riders, Shape, of, remembered


@attrs.frozen
class Many(Shape):
    """A list, set, frozenset or tuple of any length, of items of one shape."""

    kind: Any
    item: Shape
    constrained: bool = False

    def describe(self) -> str:
        return f"{self.kind.__name__}[{self.item.describe()}{', ...' if self.kind is tuple else ''}]"

    def parts(self) -> Iterable[tuple[str, Shape]]:
        return (("[*]", self.item),)

    @remembered
    def wire(self) -> Any:
        if self.item.wire() is None:
            return None
        if not self.is_straight():
            return of(list, self.item.wire())
        return of(self.kind, (self.item.wire(), ...) if self.kind is tuple else self.item.wire())

    @remembered
    def is_straight(self) -> bool:
        return self.item.is_straight()

    @remembered
    def is_native(self) -> bool:
        return not self.constrained and self.item.is_native()

    def exactly(self) -> frozenset[type] | None:
        return frozenset({self.kind})

    def fits(self, kind: type) -> bool:
        return kind is self.kind

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if type(value) is not self.kind:
            raise misfit_of(self.kind, value)
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

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        return self.kind(self.item.open_all(tree, riders))


@attrs.frozen
class Row(Shape):
    """A tuple with a shape for each place."""

    items: tuple[Shape, ...]
    constrained: bool = False

    def describe(self) -> str:
        return f"tuple[{', '.join(item.describe() for item in self.items)}]"

    def parts(self) -> Iterable[tuple[str, Shape]]:
        return ((f"[{place}]", item) for place, item in enumerate(self.items))

    @remembered
    def wire(self) -> Any:
        wires = tuple(item.wire() for item in self.items)
        return None if None in wires else of(tuple, wires)

    @remembered
    def is_straight(self) -> bool:
        return all(item.is_straight() for item in self.items)

    @remembered
    def is_native(self) -> bool:
        return not self.constrained and all(item.is_native() for item in self.items)

    def exactly(self) -> frozenset[type] | None:
        return frozenset({tuple})

    def fits(self, kind: type) -> bool:
        return kind is tuple

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if type(value) is not tuple:
            raise misfit_of(tuple, value)
        if len(value) != len(self.items):
            raise Refusal(f"it is declared a tuple of {len(self.items)} and has {len(value)}")
        tree: list[Any] = []
        try:
            for item, one in zip(self.items, value, strict=True):
                tree.append(item.pack(one, riders, depth))
        except Refusal as refusal:
            refusal.path.append(f"[{len(tree)}]")
            raise
        return tree

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        values = []
        for item, one in zip(self.items, tree, strict=True):  # no comprehension: see `open_all`
            values.append(item.open(one, riders))
        return tuple(values)


@attrs.frozen
class Table(Shape):
    """A dict, in its order."""

    key: Shape
    value: Shape
    constrained: bool = False

    def describe(self) -> str:
        return f"dict[{self.key.describe()}, {self.value.describe()}]"

    def parts(self) -> Iterable[tuple[str, Shape]]:
        return ("[key]", self.key), ("[*]", self.value)

    @remembered
    def wire(self) -> Any:
        if (
            self.key.wire() is None
            or self.value.wire() is None
            or not isinstance(self.key, (Scalar, Member, Choice))
        ):
            return None
        return of(dict, (self.key.wire(), self.value.wire()))

    @remembered
    def is_straight(self) -> bool:
        return self.key.is_straight() and self.value.is_straight()

    @remembered
    def is_native(self) -> bool:
        return not self.constrained and self.key.is_native() and self.value.is_native()

    def exactly(self) -> frozenset[type] | None:
        return frozenset({dict})

    def fits(self, kind: type) -> bool:
        return kind is dict

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if type(value) is not dict:
            raise misfit_of(dict, value)
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

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        keys, values = tree
        return dict(zip(self.key.open_all(keys, riders), self.value.open_all(values, riders), strict=True))


def _check_apart(value: Any) -> None:
    """Refuse a set or dict that cannot be filled again as it is, for its items or keys were changed in it."""
    try:
        count = len(frozenset(list(value)))
    except Exception as error:
        raise Refusal(f"its items cannot be put together again ({error})") from None
    if count != len(value):
        raise Refusal("two of its items or keys have become equal since they were put in")
