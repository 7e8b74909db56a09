"""What of a message somebody who holds it could change, as far as its declared types say.

It counts what a box would copy: classes that are not frozen, lists, dicts, sets and bytearrays, at any depth.
What rides beside a box (untyped and `Live` fields, classes that cannot be packed) is shared with a box and
without one, so it does not count.
"""

from collections.abc import Iterator
from typing import Any

import attrs

from orchestra.packing.shapes.containers import Many, Table
from orchestra.packing.shapes.records import Record
from orchestra.packing.shapes.recursion import Again
from orchestra.packing.shapes.scalars import Scalar
from orchestra.packing.shapes.shape import Shape


def what_can_change(message: Shape) -> str | None:
    """The first thing that can be changed, in words, such as "items is a list"; None when nothing can."""
    path, thing = next(_changeable(message, "", set()), ("", None))
    return thing and f"{path.removeprefix('.') or 'it'} is {thing}"


def is_frozen(kind: Any, style: str) -> bool:
    """Whether the fields of an object cannot be set; `style` tells the sort of its class."""
    match style:
        case "struct":
            return bool(kind.__struct_config__.frozen)
        case "attrs":
            return kind.__setattr__ is _Frozen.__setattr__
        case "dataclass":
            return bool(kind.__dataclass_params__.frozen)
        case _:
            return True


@attrs.frozen
class _Frozen:
    """Its `__setattr__` is that of every frozen attrs class."""


def _changeable(shape: Shape, path: str, seen: set[int]) -> Iterator[tuple[str, str]]:
    """The path of each part that can be changed, and what it is, once; `seen` has what was looked at."""
    if isinstance(shape, Again):
        shape = shape.shape
    if id(shape) in seen:
        return
    seen.add(id(shape))
    thing = _thing(shape, path)
    if thing is not None:
        yield path, thing
    for step, part in shape.parts():
        yield from _changeable(part, path + step, seen)


def _thing(shape: Shape, path: str) -> str | None:
    """What a value is that can itself be changed."""
    match shape:
        case Scalar(kind=kind) if kind is bytearray:
            return "a bytearray"
        case Many(kind=kind) if kind is list or kind is set:
            return f"a {kind.__name__}"
        case Table():
            return "a dict"
        case Record(kind=kind, style=style) if shape.fields and not is_frozen(kind, style):
            name = kind.__qualname__.rpartition("<locals>.")[2]
            return f"of {name}, which is not frozen" if path else "not frozen"
        case _:
            return None
