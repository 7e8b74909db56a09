"""The replies that a message carries: in which fields of its class, by the annotations, and in itself."""

import inspect
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from orchestra.box import Box, RidingBox
from orchestra.messages import is_alias
from orchestra.packing.classes import style_of
from orchestra.packing.hints import Hint, Scope, Unresolvable, field_hints, own_annotations
from orchestra.reply import Reply

DEPTH = 4
"""How deep in fields and containers a reply is looked for."""

_PLAIN = (str, bytes, bytearray, memoryview, int, float, complex, bool, type(None))


def reply_fields(kind: type, names: Mapping[str, Any] | None = None, declared: Any = None) -> tuple[str, ...]:
    """The fields of a message class that may hold a reply, by what is annotated.

    `names` are those of the function in which the class was declared, for annotations that are strings;
    `declared` is the subscripted form in which a generic class is consumed.
    """
    names = names or {}
    subscripted = Hint(declared, Scope(kind, names, {})) if get_args(declared) else None
    hints = _hints(kind, subscripted, names)
    return tuple(name for name, hint in hints.items() if _may_hold(hint, set()))


def _hints(kind: type, subscripted: Hint | None, names: Mapping[str, Any]) -> dict[str, Hint]:
    style = style_of(kind)
    fields = _annotated(kind) if style is None else style[1]
    return field_hints(kind, fields, subscripted, names)


def _annotated(kind: type) -> dict[str, Any]:
    """What a class without declared fields says of its attributes: in its body, and as it is made."""
    init = inspect.getattr_static(kind, "__init__")
    found = dict(getattr(init, "__annotations__", {}))
    found.pop("return", None)
    for base in reversed(kind.__mro__):
        if base.__module__ != "builtins":
            found.update(own_annotations(base))
    return found


def _may_hold(hint: Hint, seen: set[Any]) -> bool:
    hint = hint.resolve()
    found = hint.annotation
    if isinstance(found, Unresolvable):
        return "Reply" in found.text
    origin, args = get_origin(found), get_args(found)
    if origin is Literal:
        return False
    kind = origin if isinstance(origin, type) else found
    if isinstance(kind, type) and issubclass(kind, Reply):
        return True
    alias = found if is_alias(found) else origin
    if is_alias(alias) and alias not in seen:
        seen.add(alias)
        try:
            args = (*args, alias.__value__)
        except NameError:
            return False
    if origin is typing.Annotated:
        args = args[:1]
    if any(_may_hold(hint.inner(arg), seen) for arg in args if arg is not Ellipsis):
        return True
    if not isinstance(kind, type) or kind in seen or style_of(kind) is None:
        return False
    seen.add(kind)
    inner = _hints(kind, hint if args else None, hint.scope.outer)
    return any(_may_hold(each, seen) for each in inner.values())


def replies_of(message: Any, fields: tuple[str, ...]) -> Iterator[Reply[Any]]:
    """The replies in those fields of a message, or beside the frame of a box."""
    if isinstance(message, Box):
        yield from replies_in(message)
        return
    for name in fields:
        value: Any = getattr(message, name, None)
        if value.__class__ is Reply:
            yield value
        else:
            yield from replies_in(value)


def replies_in(value: Any, depth: int = DEPTH) -> Iterator[Reply[Any]]:
    """Every reply in a value: in its attributes and fields, in containers, and a few levels down."""
    if isinstance(value, Reply):
        yield value
    elif depth and not isinstance(value, (*_PLAIN, type)):
        for part in _parts(value):
            yield from replies_in(part, depth - 1)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Box):
        yield from value.riders if isinstance(value, RidingBox) else ()
        return
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    names: set[str] = set(getattr(value, "__struct_fields__", ()))
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        names.update((slots,) if isinstance(slots, str) else slots)
    for name in names:
        if not name.startswith("__"):
            yield getattr(value, name, None)
    yield from getattr(value, "__dict__", {}).values()
