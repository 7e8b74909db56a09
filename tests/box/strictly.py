"""Strict equality: the same types, all the way down, and no two values that merely compare equal."""

import datetime
import decimal
import enum
import math
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec


def same(one: Any, two: Any) -> bool:
    """Whether two values cannot be told apart, but for being two objects."""
    if one is two:
        return True
    if type(one) is not type(two):
        return False
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(two)) or (
            one == two and math.copysign(1, one) == math.copysign(1, two)
        )
    if isinstance(one, datetime.datetime | datetime.time):
        return one == two and one.fold == two.fold and one.tzinfo is two.tzinfo
    if isinstance(one, dict):
        return same(list(one), list(two)) and same(list(one.values()), list(two.values()))
    if isinstance(one, set | frozenset):
        left = list(two)
        for item in one:
            found = next((place for place, other in enumerate(left) if same(item, other)), None)
            if found is None:
                return False
            del left[found]
        return not left
    if isinstance(one, decimal.Decimal):
        return one.as_tuple() == two.as_tuple()
    if isinstance(one, uuid.UUID):
        return one == two and one.is_safe is two.is_safe
    if isinstance(one, enum.Enum):
        return False  # two members, even where they compare equal
    if isinstance(one, list | tuple) and not (len(one) == len(two) and all(map(same, one, two))):
        return False
    names = fields_of(one)
    if names or isinstance(one, list | tuple):
        return all(same(getattr(one, name), getattr(two, name)) for name in names) and fields_of(two) == names
    return bool(one == two)


def fields_of(value: Any) -> list[str]:
    """The names of the attributes of an object: of its fields, and those that were not declared."""
    kind = type(value)
    found = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "__attrs_attrs__", ())
    declared = [name if isinstance(name, str) else name.name for name in found]
    if isinstance(value, msgspec.Struct):
        declared += value.__struct_fields__
    return [*declared, *sorted(name for name in getattr(value, "__dict__", ()) if name not in declared)]


def parts(value: Any) -> Iterator[Any]:
    """What is in a container or in the attributes of an object."""
    if isinstance(value, dict):
        yield from value
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    if not isinstance(value, enum.Enum | type):
        for name in fields_of(value):
            yield getattr(value, name)
