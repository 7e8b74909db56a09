"""Classes with fields: which can be packed and put together again exactly, and what that takes."""

import dataclasses
import inspect
import keyword
import types
import unicodedata
from collections.abc import Mapping
from typing import Any

import attrs
import msgspec


def style_of(kind: Any) -> tuple[str, dict[str, Any]] | None:
    """What sort of class with fields `kind` is, and its fields with the types that the sort itself knows."""
    if issubclass(kind, msgspec.Struct):
        return "struct", dict.fromkeys(kind.__struct_fields__, Any)
    if "__attrs_attrs__" in vars(kind):
        return "attrs", {one.name: Any if one.type is None else one.type for one in attrs.fields(kind)}
    if "__dataclass_fields__" in vars(kind):
        return "dataclass", {one.name: one.type for one in dataclasses.fields(kind)}
    names = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and tuple in kind.__bases__ and names is not None and not kind.__dictoffset__:
        return "named tuple", dict.fromkeys(names, Any)
    return None


_HEAP_TYPE = 1 << 9
_BASES: Mapping[str, type] = {
    "struct": msgspec.Struct,
    "attrs": object,
    "dataclass": object,
    "named tuple": tuple,
}
_PARTS_OF_CONSTRUCTION = ("__post_init__", "__attrs_post_init__", "__attrs_pre_init__", "__del__")


def why_whole(kind: type) -> str | None:
    """Why a class cannot be packed and rebuilt exactly; None when it can."""
    marked: str | None = getattr(kind, "__orchestra_whole__", None)
    if marked is not None:
        return marked
    style = style_of(kind)
    if style is None:
        return "it declares no fields as a msgspec.Struct, attrs class, dataclass or named tuple does"
    for name in style[1]:
        if keyword.iskeyword(name) or not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
            return f"its field {name!r} is not named as Python would name it"
        if name.startswith("_"):
            return f"it has a private attribute, {name}"
    for base in kind.__mro__:
        if not base.__flags__ & _HEAP_TYPE and base not in _BASES[style[0]].__mro__:
            return f"it extends {base.__qualname__}"
    if kind.__getattribute__ is not _BASES[style[0]].__getattribute__:
        return "it has a __getattribute__ of its own"
    return _own_construction(kind, style[0]) or _hidden_state(kind, style[0], style[1])


def why_never_exact(kind: type) -> str | None:
    """Why no object is of exactly this class, but of children of it; None when some are."""
    if kind is msgspec.Struct:
        return "it is the base of all Structs"
    return "it is abstract" if inspect.isabstract(kind) else None


def _own_construction(kind: type, style: str) -> str | None:
    if style == "struct" and type(kind).__call__ is not type(msgspec.Struct).__call__:
        return "its metaclass makes its objects in a way of its own"
    for name in _PARTS_OF_CONSTRUCTION:
        if getattr(kind, name, None) is not None:
            return f"it has {name}"
    return None


def _hidden_state(kind: type, style: str, names: Mapping[str, Any]) -> str | None:
    if style == "named tuple":
        return None
    for base in kind.__mro__:
        if base in msgspec.Struct.__mro__:
            continue
        slots = vars(base).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else tuple(slots):
            if slot not in names and slot not in {"__dict__", "__weakref__"}:
                return f"it has an attribute that is no field, {slot}"
    for name in names:
        found = inspect.getattr_static(kind, name, None)
        is_member = has_slot(kind, name)
        if style == "struct" and not is_member:
            return f"its field {name} is hidden by an attribute of the class"
        if not is_member and hasattr(type(found), "__set__"):
            return f"its field {name} is a {type(found).__name__}"
    return None


def has_slot(kind: type, name: str) -> bool:
    """Whether the field has a slot of its own."""
    found = inspect.getattr_static(kind, name, None)
    return isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType))


def positional(kind: Any, fields: tuple[str, ...]) -> int:
    """How many fields the constructor of a Struct takes by position; it takes all of them by keyword."""
    count = len(kind.__match_args__)
    if kind.__match_args__ != fields[:count]:
        return 0
    try:
        kind(*fields[:count], **dict.fromkeys(fields[count:]))
    except TypeError:
        return 0
    return count


def in_dict(kind: Any, style: str, fields: tuple[str, ...]) -> int | None:
    """How many of the fields are in an object's `__dict__`; None when objects differ in this.

    A field for which the class has a value can be read when the object has none.
    """
    if style == "struct":
        return 0
    stored = [name for name in fields if not has_slot(kind, name)]
    return None if any(hasattr(kind, name) for name in stored) else len(stored)
