"""From annotations to shapes."""

import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import attrs
import msgspec
import typing_extensions

from orchestra.generate.hints import Hint, Unresolvable, field_hints
from orchestra.generate.records import has_slot, style_of, why_whole
from orchestra.generate.shapes import (
    MOMENTS,
    NONE,
    SCALARS,
    Again,
    Choice,
    Either,
    LiveMarker,
    Many,
    Member,
    Moment,
    Record,
    Ride,
    Row,
    Shape,
    Table,
    constrained,
    shorten,
)

_MANY: tuple[Any, ...] = (list, set, frozenset, tuple)
_ABSTRACT: Mapping[Any, tuple[Any, ...]] = {
    collections.abc.Sequence: (list, tuple),
    collections.abc.MutableSequence: (list,),
    collections.abc.Collection: (list, tuple, set, frozenset),
    collections.abc.Iterable: (list, tuple, set, frozenset),
    collections.abc.Set: (set, frozenset),
    collections.abc.MutableSet: (set,),
    collections.abc.Mapping: (dict,),
    collections.abc.MutableMapping: (dict,),
}
_WRAPPERS: tuple[Any, ...] = (
    typing.Final,
    typing.Required,
    typing.NotRequired,
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
)
_ALIASES: tuple[type, ...] = tuple(
    {typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType)}
)


@attrs.define(eq=False)
class Builder:
    """Makes shapes; `making` holds what is being made, so that a type may contain itself."""

    outer: Mapping[str, Any]
    making: dict[Any, list[Again]] = attrs.Factory(dict)
    made: dict[Any, Shape] = attrs.Factory(dict)

    def shape(self, hint: Hint) -> Shape:
        """The shape of an annotation. What is not understood rides."""
        hint = hint.resolve()
        found = hint.annotation
        if isinstance(found, Unresolvable):
            return Ride(f"its annotation {found.text!r} cannot be resolved ({found.error})")
        if found is None:
            return NONE
        if found is Any or found is object:
            return Ride("untyped")
        if isinstance(found, type) and get_origin(found) is None:
            return self._class(found, hint)
        return self._special(found, hint)

    def _class(self, kind: type, hint: Hint) -> Shape:
        if kind in SCALARS:
            return SCALARS[kind]
        if kind in MOMENTS:
            return Moment(kind)
        if kind in _MANY or kind is dict or kind in _ABSTRACT:
            return self._container(kind, (), hint)
        if issubclass(kind, enum.Enum):
            return member_shape(kind)
        if typing_extensions.is_typeddict(kind):
            return Ride("a TypedDict")
        return self.record(kind, None)

    def _special(self, found: Any, hint: Hint) -> Shape:
        origin, args = get_origin(found), get_args(found)
        if origin is typing.Annotated:
            return self._annotated(found, hint)
        if origin in _WRAPPERS:
            return self.shape(hint.inner(args[0]))
        if origin in (typing.Union, types.UnionType):
            return self._union(args, hint)
        if origin in (typing.Literal, typing_extensions.Literal):
            return self._literal(args)
        if isinstance(found, _ALIASES) or isinstance(origin, _ALIASES):
            return self._alias(found, origin, args, hint)
        if isinstance(found, typing.NewType):
            return self.shape(hint.inner(found.__supertype__))
        if isinstance(found, typing.TypeVar):
            return self._variable(found, hint)
        if found in (typing.LiteralString, typing_extensions.LiteralString):
            return SCALARS[str]
        if found in (typing.Self, typing_extensions.Self):
            return self.shape(hint.inner(hint.scope.owner))
        if origin in _MANY or origin is dict or origin in _ABSTRACT:
            return self._container(origin, args, hint)
        if isinstance(origin, type) and args:
            return self.record(origin, hint)
        return Ride(f"msgpack has nothing for {shorten(found)}")

    def _annotated(self, found: Any, hint: Hint) -> Shape:
        metadata = found.__metadata__
        if any(isinstance(one, LiveMarker) for one in metadata):
            return Ride("Live")
        shape = self.shape(hint.inner(found.__origin__))
        return constrained(shape) if any(isinstance(one, msgspec.Meta) for one in metadata) else shape

    def _variable(self, found: Any, hint: Hint) -> Shape:
        if found.__bound__ is not None:
            return Ride("a type variable that is not given")
        return Ride("untyped")

    def _alias(self, found: Any, origin: Any, args: tuple[Any, ...], hint: Hint) -> Shape:
        alias: Any = origin if isinstance(origin, _ALIASES) else found
        key = (alias, args)
        if key in self.making:
            return self._again(key, alias.__name__)
        try:
            value = alias.__value__
        except NameError as error:
            return Ride(f"the type alias {alias.__name__} cannot be resolved ({error})")
        variables = {**hint.scope.variables}
        for one, arg in zip(alias.__type_params__, args, strict=False):
            variables[one] = hint.inner(arg)
        inner = Hint(value, attrs.evolve(hint.scope, variables=variables))
        return self._within(key, lambda: self.shape(inner))

    def _again(self, key: Any, name: str) -> Again:
        again = Again(name)
        self.making[key].append(again)
        return again

    def _within(self, key: Any, make: Callable[[], Shape]) -> Shape:
        waiting: list[Again] = []
        self.making[key] = waiting
        try:
            shape = make()
        finally:
            del self.making[key]
        for again in waiting:
            again.target = shape
        return shape

    def _union(self, args: tuple[Any, ...], hint: Hint) -> Shape:
        members: list[Shape] = []
        for arg in args:
            shape = self.shape(hint.inner(arg))
            parts = shape.members if isinstance(shape, Either) else (shape,)
            members += [one for one in parts if one not in members]
        members.sort(key=lambda one: (isinstance(one, Ride), isinstance(one, Moment)))
        if len(members) == 1:
            return members[0]
        if isinstance(members[0], Ride):
            return members[0]
        return Either(tuple(members))

    def _literal(self, args: tuple[Any, ...]) -> Shape:
        return Choice(tuple(args))

    def _container(self, kind: Any, args: tuple[Any, ...], hint: Hint) -> Shape:
        if kind in _ABSTRACT:
            parts = tuple(self._container(one, args, hint) for one in _ABSTRACT[kind])
            return Either((*parts, Ride(f"some other {kind.__name__}")))
        shapes = tuple(self.shape(hint.inner(arg)) for arg in args if arg is not Ellipsis)
        untyped = Ride("untyped")
        if kind is dict:
            key, value = shapes if len(shapes) == 2 else (untyped, untyped)
            return Table(key, value)
        if kind is tuple and args and Ellipsis not in args:
            return Row(shapes)
        if kind is tuple and not args and hint.annotation == tuple[()]:
            return Row(())
        return Many(kind, shapes[0] if shapes else untyped)

    def record(self, kind: type, subscripted: Hint | None) -> Shape:
        """The shape of a class with fields; a class that cannot be packed rides."""
        args = (
            tuple(
                _key_of(subscripted.inner(arg).resolve().annotation)
                for arg in get_args(subscripted.annotation)
            )
            if subscripted
            else ()
        )
        key = (kind, args)
        if key in self.making:
            return self._again(key, kind.__qualname__)
        if key in self.made:
            return self.made[key]
        if len(self.making) >= 50:
            return Ride("its type is nested too deep")
        reason = why_whole(kind)
        if reason is not None:
            return Ride(f"{kind.__qualname__} is not packed: {reason}")
        made = self.made[key] = self._within(key, lambda: self._record(kind, subscripted))
        return made

    def _record(self, kind: Any, subscripted: Hint | None) -> Record:
        style, names = style_of(kind) or ("", {})
        hints = field_hints(kind, names, subscripted, self.outer)
        fields = {name: self.shape(hint) for name, hint in hints.items()}
        generic = bool(getattr(kind, "__parameters__", ()))
        return Record(
            kind,
            style,
            fields,
            positional=_positional(kind, tuple(fields)) if style == "struct" else len(fields),
            has_dict=style != "named tuple" and kind.__dictoffset__ != 0,
            in_dict=_in_dict(kind, style, tuple(fields)),
            by_msgspec=style == "struct"
            and not generic
            and kind.__dictoffset__ == 0
            and _is_native(kind, fields),
            plain_set=kind.__setattr__ is object.__setattr__,
        )


def _positional(kind: Any, fields: tuple[str, ...]) -> int:
    """How many fields the constructor of a Struct takes by position; it takes all of them by keyword."""
    count = len(kind.__match_args__)
    if kind.__match_args__ != fields[:count]:
        return 0
    try:
        kind(*fields[:count], **dict.fromkeys(fields[count:]))
    except TypeError:
        return 0
    return count


def _in_dict(kind: Any, style: str, fields: tuple[str, ...]) -> int | None:
    """How many of the fields are in an object's `__dict__`; None when objects differ in this."""
    if style == "dataclass" and any(not one.init for one in dataclasses.fields(kind)):
        return None
    return 0 if style == "struct" else sum(not has_slot(kind, name) for name in fields)


def _key_of(annotation: Any) -> Any:
    try:
        hash(annotation)
    except TypeError:
        return repr(annotation)
    return annotation


def _is_native(kind: Any, fields: Mapping[str, Shape]) -> bool:
    """Whether msgspec's own view of a Struct is the one resolved here, and decodes exactly."""
    if not all(
        shape.is_native() and shape.is_straight() and shape.wire() is not None for shape in fields.values()
    ):
        return False
    try:
        seen = {one.name: one.type for one in msgspec.structs.fields(kind)}
        msgspec.msgpack.Decoder(kind)
    except Exception:
        return False
    builder = Builder({})
    scope = field_hints(kind, dict.fromkeys(fields), None, {})
    return all(builder.shape(scope[name].inner(seen[name])) == shape for name, shape in fields.items())


def member_shape(kind: Any) -> Shape:
    """The shape of an enumeration."""
    by_msgspec = False
    if not issubclass(kind, enum.Flag):
        kinds = {type(one._value_) for one in kind}
        try:
            encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(kind).decode
            by_msgspec = kinds in ({int}, {str}) and all(decode(encode(one)) is one for one in kind)
        except Exception:
            by_msgspec = False
    return Member(kind, by_msgspec=by_msgspec, by_value=issubclass(kind, enum.Flag))
