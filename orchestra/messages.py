"""Message types: every spelling of a union taken apart, what is no message refused, names shown."""

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions

from orchestra.mistakes import Wrong
from orchestra.subsystems import Actor, Subsystem

NOTHING_AT_ALL: tuple[Any, ...] = (
    typing.Never,
    typing.NoReturn,
    typing_extensions.Never,
    typing_extensions.NoReturn,
)
ANYTHING: tuple[Any, ...] = (Any, typing_extensions.Any, object)

Resolve = Callable[[Any], Any]
"""Makes the type of a string or a forward reference."""


def class_of(message: Any) -> type:
    """The class that messages of a declared type are routed as: of `Msg[int]` it is `Msg`."""
    origin = get_origin(message)
    return typing.cast(type, message if origin is None else origin)


def derives(kind: type, base: type) -> bool:
    """Whether messages of `kind` are also of `base`, by method resolution order as routing has it.

    A virtual subclass of an abstract class is none here.
    """
    return base in kind.__mro__


def as_class(declared: Any) -> type | None:
    """The class of a declared type; None for what is neither a class nor a subscripted one."""
    kind = get_origin(declared) or declared
    return kind if isinstance(kind, type) else None


def members(declared: Any, resolve: Resolve | None = None) -> tuple[Any, ...]:
    """The types in a class, a union (in any spelling, nested, aliased) or Never; each once, in order."""
    return tuple(dict.fromkeys(_members(declared, resolve)))


def _members(declared: Any, resolve: Resolve | None) -> Iterable[Any]:
    if any(declared is nothing for nothing in NOTHING_AT_ALL):
        return
    if isinstance(declared, str | typing.ForwardRef):
        if resolve is None:
            text = declared if isinstance(declared, str) else declared.__forward_arg__
            raise Wrong(f"{text!r} is a string, not a message type: give the class itself")
        yield from _members(resolve(declared), resolve)
    elif get_origin(declared) in (Union, types.UnionType):
        for member in get_args(declared):
            yield from _members(member, resolve)
    elif get_origin(declared) is Annotated:
        yield from _members(get_args(declared)[0], resolve)
    elif is_alias(declared) or is_alias(get_origin(declared)):
        yield from _members(_aliased(declared), resolve)
    else:
        reason = no_message(declared)
        if reason:
            raise Wrong(reason)
        yield declared


def is_alias(declared: Any) -> bool:
    """Whether it was made by a `type` statement or `TypeAliasType`."""
    made_by = type(declared)
    return made_by.__name__ == "TypeAliasType" and made_by.__module__ in ("typing", "typing_extensions")


def _aliased(declared: Any) -> Any:
    alias = declared if is_alias(declared) else get_origin(declared)
    try:
        value = alias.__value__
    except NameError as error:
        raise Wrong(f"the type alias {alias.__name__} names {error.name!r}, which is not found") from error
    if alias is declared:
        return value
    return substituted(value, dict(zip(alias.__type_params__, get_args(declared), strict=False)))


def substituted(declared: Any, given: dict[Any, Any]) -> Any:
    """A type with each type variable replaced by what was given for it."""
    if declared in given:
        return given[declared]
    parameters = getattr(declared, "__parameters__", ())
    if get_origin(declared) is None or not parameters:
        return declared
    return declared[tuple(given.get(parameter, parameter) for parameter in parameters)]


def no_message(declared: Any) -> str | None:
    """Why this is no message type, with what would be right; None when it is one."""
    if declared is None or declared is types.NoneType:
        return "None is no message: leave it out of the union, and give no Optional[...]"
    if any(declared is anything for anything in ANYTHING):
        return (
            f"{shown(declared)} is not a message type, for messages are routed by their class: "
            "name the classes, or a base class they share"
        )
    kind = as_class(declared)
    if kind is None:
        return _no_class(declared)
    if type(kind).__hash__ is None:
        return (
            f"{shown(kind)} cannot be hashed, and messages are routed by class: "
            f"give its metaclass {shown(type(kind))} a __hash__"
        )
    if getattr(declared, "__parameters__", ()) and get_origin(declared) is not None:
        name = shown(kind)
        return f"{shown(declared)} still has type variables: give {name}, or {name}[...] with types"
    if typing_extensions.is_protocol(kind):
        return f"{shown(kind)} is a Protocol, and messages are routed by class: name the classes"
    if typing_extensions.is_typeddict(kind):
        return (
            f"{shown(kind)} is a TypedDict, so its messages are plain dicts: use a class, as msgspec.Struct"
        )
    if kind.__module__ == collections.abc.__name__ or kind is type:
        return f"{shown(declared)} is no message type, for messages are routed by class: name the class"
    if issubclass(kind, Subsystem | Actor):
        return f"{shown(kind)} is a subsystem, not a message type"
    return None


def _no_class(declared: Any) -> str:
    if isinstance(declared, typing.NewType):
        base = shown(declared.__supertype__)
        return f"{declared.__name__} is a NewType, which is the class of nothing: use {base}, or a new class"
    if get_origin(declared) is Literal:
        return f"{shown(declared)} is a Literal, not a class: use the class of its values"
    if isinstance(declared, typing.TypeVar | typing.ParamSpec | typing_extensions.TypeVarTuple):
        return f"{shown(declared)} is a type variable, not a class: name the class that is meant"
    if isinstance(declared, list | tuple | set | frozenset | dict):
        return f"{declared!r} is a {type(declared).__name__}, not a message type: write a union, A | B"
    if _is_typing_form(declared) or callable(declared):
        return f"{shown(declared)} is not a class, so it is no message type"
    kind = shown(type(declared))
    return f"{declared!r} is an instance, not a message type: give the class, {kind}"


def _is_typing_form(declared: Any) -> bool:
    typing_made = type(declared).__module__ in ("typing", "typing_extensions", "types")
    return typing_made or get_origin(declared) is not None


def shown(declared: Any, *, with_module: bool = False) -> str:
    """A type as one would write it; local classes without the function they are made in."""
    if declared is types.NoneType:
        return "None"
    origin, args = get_origin(declared), get_args(declared)
    if origin in (Union, types.UnionType):
        return " | ".join(shown(arg, with_module=with_module) for arg in args)
    if origin is not None and isinstance(origin, type):
        inner = ", ".join(shown(arg, with_module=with_module) for arg in args)
        return f"{shown(origin, with_module=with_module)}[{inner}]"
    if origin is not None:
        return repr(declared)
    if isinstance(declared, type) or inspect.isfunction(declared):
        name = declared.__qualname__.rpartition("<locals>.")[2]
        return f"{declared.__module__}.{name}" if with_module and declared.__module__ != "builtins" else name
    if declared is Any:
        return "Any"
    if declared is ...:
        return "..."
    return str(getattr(declared, "__name__", None) or repr(declared))


def shown_all(declared: Iterable[Any]) -> str:
    """Several types, in words; with their modules when two have the same name."""
    kinds = list(declared)
    names = [shown(kind) for kind in kinds]
    if len(set(names)) < len(set(kinds)):
        names = [shown(kind, with_module=True) for kind in kinds]
    return joined(names)


def joined(words: Iterable[str]) -> str:
    """Words as a list in a sentence: `a, b and c`."""
    *front, last = list(words) or ["nothing"]
    return f"{', '.join(front)} and {last}" if front else last
