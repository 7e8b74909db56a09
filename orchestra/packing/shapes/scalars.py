"""Single values: what msgpack carries by itself, and what msgspec writes as text."""

import datetime as dt
import decimal
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from orchestra.packing.shapes.refusals import Refusal, misfit_of
from orchestra.packing.shapes.shape import Riders, Shape

BITS_64 = range(-(2**63), 2**64)
"""The ints that msgpack has."""


@attrs.frozen
class Scalar(Shape):
    """What msgpack carries by itself: `kinds` are the exact types that come back as they were."""

    kind: type
    kinds: frozenset[type]
    wire_type: Any
    constrained: bool = False

    def describe(self) -> str:
        return "None" if self.kind is type(None) else self.kind.__qualname__

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
            raise misfit_of(self.kind, value)
        if kind is int and value not in BITS_64:
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

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        return bytearray(tree) if self.kind is bytearray else tree

    def open_all(self, trees: list[Any], riders: Sequence[Any]) -> list[Any]:
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

    def describe(self) -> str:
        return self.kind.__qualname__

    def wire(self) -> Any:
        return self.kind

    def is_straight(self) -> bool:
        return True

    def is_native(self) -> bool:
        return not self.constrained

    def exactly(self) -> frozenset[type] | None:
        return frozenset({self.kind})

    def fits(self, kind: type) -> bool:
        return issubclass(kind, self.kind)

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        if not isinstance(value, self.kind):
            raise misfit_of(self.kind, value)
        riders.append(value)
        return len(riders) - 1

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        return riders[tree]


MOMENTS: frozenset[type] = frozenset(
    {dt.datetime, dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID}
)
