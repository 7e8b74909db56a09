"""What msgspec gives back exactly by itself, from a class as it is written."""

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from orchestra.packing.shapes.scalars import MOMENTS, SCALARS

_UNCHANGING: frozenset[type] = frozenset(SCALARS) - {bytearray} | MOMENTS


def fields_as_seen(kind: Any) -> Mapping[str, Any] | None:
    """The types of the fields of a Struct as msgspec sees them; None where it has no use for them.

    A default that is left out of the frame would be shared by sender and receiver.
    """
    try:
        fields = msgspec.structs.fields(kind)
        msgspec.msgpack.Decoder(kind)
    except Exception:
        return None
    if kind.__struct_config__.omit_defaults and not all(_is_plain(one.default) for one in fields):
        return None
    return {one.name: one.type for one in fields}


def gives_members(kind: Any) -> bool:
    """Whether the members of an enumeration come back as the very same."""
    if issubclass(kind, enum.Flag) or {type(one._value_) for one in kind} not in ({int}, {str}):
        return False
    try:
        encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(kind).decode
        return all(decode(encode(one)) is one for one in kind)
    except Exception:
        return False


def _is_plain(default: Any) -> bool:
    """Whether there is nothing in it that could change."""
    return default is msgspec.NODEFAULT or type(default) in _UNCHANGING or isinstance(default, enum.Enum)
