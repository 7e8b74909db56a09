"""Types that contain themselves, and how deep their values may be."""

from collections.abc import Sequence
from typing import Any

import attrs

from orchestra.packing.shapes.containers import Many, Table
from orchestra.packing.shapes.refusals import TooDeep
from orchestra.packing.shapes.shape import Riders, Shape, remembered

DEEPEST = 100
"""How many levels a message may have of a type that contains itself, where a level is not too deep."""

MOST_CALLS = 500
"""How many calls deep the opening of a message may go: Python has 1000, and the receiver needs some."""


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

    def describe(self) -> str:
        return self.name

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

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        return self.shape.open(tree, riders)


def _calls_down(shape: Shape, known: dict[int, int]) -> int:
    """How many calls it takes to open a value down to a type that is within itself; 0 when there is none."""
    if isinstance(shape, Again):
        return 1
    if id(shape) not in known:
        below = max((_calls_down(part, known) for _, part in shape.parts()), default=0)
        own = 2 if isinstance(shape, (Many, Table)) else 1
        known[id(shape)] = below and below + own
    return known[id(shape)]
