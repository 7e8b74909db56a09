"""What of a message somebody who holds it could change, as far as its declared types say.

It counts what a box would copy: classes that are not frozen, lists, dicts, sets and bytearrays, at any depth.
What rides beside a box (untyped and `Live` fields, classes that cannot be packed) is shared with a box and
without one, so it does not count.
"""

from collections.abc import Iterator
from typing import Any

import attrs

from orchestra.packing.shapes.containers import Many, Row, Table
from orchestra.packing.shapes.records import Record
from orchestra.packing.shapes.recursion import Again
from orchestra.packing.shapes.scalars import Scalar
from orchestra.packing.shapes.shape import Shape
from orchestra.packing.shapes.unions import Either


def what_can_change(message: Shape) -> str | None:
    """The first thing that can be changed, in words, such as "items is a list"; None when nothing can."""
    for path, thing in _changeable(message, "", set()):
        return f"{path.removeprefix('.') or 'it'} is {thing}"
    return None


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
    """The path of each part that can be changed, and what it is; `seen` has what contains itself."""
    match shape:
        case Scalar(kind=kind) if kind is bytearray:
            yield path, "a bytearray"
        case Many(kind=kind, item=item):
            if kind is list or kind is set:
                yield path, f"a {kind.__name__}"
            yield from _changeable(item, f"{path}[*]", seen)
        case Table():
            yield path, "a dict"
        case Row(items=items):
            for place, item in enumerate(items):
                yield from _changeable(item, f"{path}[{place}]", seen)
        case Either(members=members):
            for member in members:
                yield from _changeable(member, path, seen)
        case Record():
            yield from _changeable_record(shape, path, seen)
        case Again() if id(shape.shape) not in seen:
            seen.add(id(shape.shape))
            yield from _changeable(shape.shape, path, seen)
        case _:
            pass


def _changeable_record(record: Record, path: str, seen: set[int]) -> Iterator[tuple[str, str]]:
    if id(record) in seen:
        return
    seen.add(id(record))
    if record.fields and not is_frozen(record.kind, record.style):
        name = record.kind.__qualname__.rpartition("<locals>.")[2]
        yield path, f"of {name}, which is not frozen" if path else "not frozen"
    for name, shape in record.fields.items():
        yield from _changeable(shape, f"{path}.{name}", seen)
