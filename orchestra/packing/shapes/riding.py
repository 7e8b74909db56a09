"""What travels by reference."""

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from orchestra.packing.shapes.shape import Riders, Shape


class LiveMarker:
    """In the metadata of `Annotated`: the value travels by reference."""

    def __repr__(self) -> str:
        return "Live"


LIVE = LiveMarker()


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

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        return riders[tree]

    def rides(self) -> Iterator[tuple[str, str]]:
        yield "", self.reason
