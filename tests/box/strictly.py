"""Strict equality: the same types, all the way down, and no two values that merely compare equal."""

import datetime
import decimal
import math
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
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two)) and same_state(one, two)
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
    if isinstance(one, msgspec.Struct):
        names = one.__struct_fields__
        return all(same(getattr(one, name), getattr(two, name)) for name in names) and same_state(one, two)
    fields = getattr(type(one), "__dataclass_fields__", None) or getattr(type(one), "__attrs_attrs__", None)
    if fields is not None:
        names = [name if isinstance(name, str) else name.name for name in fields]
        names += [name for name in getattr(one, "__dict__", ()) if name not in names]
        return all(same(getattr(one, name), getattr(two, name)) for name in names)
    if isinstance(one, decimal.Decimal):
        return one.as_tuple() == two.as_tuple()
    return bool(one == two)


def same_state(one: Any, two: Any) -> bool:
    """Whether two objects have the same attributes outside of slots."""
    return same(getattr(one, "__dict__", None), getattr(two, "__dict__", None))
