"""Values beside a frame, as trees that msgpack carries: each comes back equal and of its very type.

A closed list of types and nothing else: no name in a tree is ever looked up as a class, so a tree from a
stranger makes no object but of these. What msgpack carries by itself stands for itself; all else is a list
that begins with a mark.
"""

import datetime as dt
import uuid
import zoneinfo
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

Tree: TypeAlias = Any

Out: TypeAlias = Callable[[Any], Tree]
"""Makes a tree of what only the running orchestra knows, a reply say; raises `Unfit` for what it does not."""

Back: TypeAlias = Callable[[str, Tree], Any]
"""Makes the value again, of its mark and what follows it."""

DEPTH = 64
"""How deep containers may be within each other."""

_PLAIN = frozenset({type(None), bool, str, bytes, float})
_SMALL = range(-(2**63), 2**64)
_LONG = frozenset({str, bytes})
_LONGEST = 2**32 - 1


class Unfit(Exception):
    """A value that cannot cross, or a tree of which no value can be made."""


def refuse(value: Any) -> Tree:
    """The `Out` of those who know nothing more."""
    raise Unfit(f"a {type(value).__qualname__} cannot leave its process")


def unknown(mark: str, rest: Tree) -> Any:
    """The `Back` of those who know nothing more."""
    raise Unfit(f"nothing is known of the mark {mark!r}")


def to_tree(value: Any, out: Out = refuse, depth: int = DEPTH) -> Tree:
    """The tree of a value. Raises `Unfit` for a type that has none."""
    kind = type(value)
    if kind in _PLAIN or (kind is int and value in _SMALL):
        if kind in _LONG and len(value) > _LONGEST:
            raise Unfit(f"a {kind.__name__} of 4 GiB or more cannot")
        return value
    if depth == 0:
        raise Unfit("it is nested too deep")
    many = _CONTAINERS.get(kind)
    if many is not None:
        return [many, *(to_tree(each, out, depth - 1) for each in value)]
    if kind is dict:
        pairs = (part for pair in value.items() for part in pair)
        return ["dict", *(to_tree(part, out, depth - 1) for part in pairs)]
    write = _WRITE.get(kind)
    return out(value) if write is None else write(value)


def from_tree(tree: Tree, back: Back = unknown, depth: int = DEPTH) -> Any:
    """The value of a tree. Raises `Unfit` for what `to_tree` has not made."""
    if type(tree) is not list:
        if type(tree) in _PLAIN or type(tree) is int:
            return tree
        raise Unfit(f"a {type(tree).__name__} is no tree")
    if not tree or type(tree[0]) is not str:
        raise Unfit("a tree without a mark")
    mark, *rest = tree
    if depth == 0:
        raise Unfit("it is nested too deep")
    try:
        if mark in _MAKERS:
            return _MAKERS[mark]([from_tree(each, back, depth - 1) for each in rest])
        if mark == "dict":
            parts = [from_tree(each, back, depth - 1) for each in rest]
            return dict(zip(parts[::2], parts[1::2], strict=True))
        read = _READ.get(mark)
        return back(mark, rest) if read is None else read(*rest)
    except Unfit:
        raise
    except Exception as error:
        raise Unfit(f"a tree of a {mark} that is none: {error}") from None


def _zone(zone: dt.tzinfo | None) -> Tree:
    if zone is None:
        return None
    if type(zone) is dt.timezone:
        name = zone.tzname(None)
        plain = dt.timezone(zone.utcoffset(None)).tzname(None)
        return [_delta(zone.utcoffset(None)), None if name == plain else name]
    if type(zone) is zoneinfo.ZoneInfo:
        return zone.key
    raise Unfit(f"its time zone is a {type(zone).__qualname__}")


def _zone_of(tree: Tree) -> dt.tzinfo | None:
    if tree is None:
        return None
    if isinstance(tree, str):
        return zoneinfo.ZoneInfo(tree)
    offset, name = tree
    delta = dt.timedelta(*offset)
    if name is None:
        return dt.UTC if not delta else dt.timezone(delta)
    return dt.timezone(delta, name)


def _delta(delta: dt.timedelta) -> list[int]:
    return [delta.days, delta.seconds, delta.microseconds]


def _datetime(value: dt.datetime) -> Tree:
    clock = [value.hour, value.minute, value.second, value.microsecond]
    return ["datetime", value.year, value.month, value.day, *clock, value.fold, _zone(value.tzinfo)]


def _time(value: dt.time) -> Tree:
    return [
        "time",
        value.hour,
        value.minute,
        value.second,
        value.microsecond,
        value.fold,
        _zone(value.tzinfo),
    ]


def _read_datetime(*parts: Any) -> dt.datetime:
    *moment, fold, zone = parts
    return dt.datetime(*moment).replace(tzinfo=_zone_of(zone), fold=fold)


def _read_time(*parts: Any) -> dt.time:
    *moment, fold, zone = parts
    return dt.time(*moment).replace(tzinfo=_zone_of(zone), fold=fold)


def _read_bytearray(raw: Any) -> bytearray:
    if type(raw) is not bytes:
        raise Unfit("a bytearray that is not of bytes")  # of a number it would be as long as that
    return bytearray(raw)


_CONTAINERS: Mapping[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_MAKERS: Mapping[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}

_WRITE: Mapping[type, Callable[[Any], Tree]] = {
    int: lambda value: ["int", f"{value:x}"],
    complex: lambda value: ["complex", value.real, value.imag],
    bytearray: lambda value: ["bytearray", bytes(value)],
    range: lambda value: ["range", value.start, value.stop, value.step],
    dt.datetime: _datetime,
    dt.time: _time,
    dt.date: lambda value: ["date", value.year, value.month, value.day],
    dt.timedelta: lambda value: ["timedelta", *_delta(value)],
    dt.timezone: lambda value: ["zone", _zone(value)],
    zoneinfo.ZoneInfo: lambda value: ["zone", _zone(value)],
    uuid.UUID: lambda value: ["uuid", value.bytes, value.is_safe.name],
    Decimal: lambda value: ["decimal", str(value)],
    Fraction: lambda value: ["fraction", f"{value.numerator:x}", f"{value.denominator:x}"],
}

_READ: Mapping[str, Callable[..., Any]] = {
    "int": lambda text: int(text, 16),
    "complex": complex,
    "bytearray": _read_bytearray,
    "range": range,
    "datetime": _read_datetime,
    "time": _read_time,
    "date": dt.date,
    "timedelta": dt.timedelta,
    "zone": _zone_of,
    "uuid": lambda raw, safe: uuid.UUID(bytes=raw, is_safe=uuid.SafeUUID[safe]),
    "decimal": Decimal,
    "fraction": lambda above, below: Fraction(int(above, 16), int(below, 16)),
}

KINDS: frozenset[type] = frozenset(_WRITE)
"""The types that have a tree although msgpack has nothing for them."""
