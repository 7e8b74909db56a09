"""From annotations to shapes."""

import collections.abc
import enum
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import attrs
import msgspec
import typing_extensions

from orchestra.packing.classes import in_dict, positional, style_of, why_never_exact, why_whole
from orchestra.packing.hints import Hint, Unresolvable, field_hints
from orchestra.packing.native import fields_as_seen, gives_members
from orchestra.packing.shapes.choices import Choice, Member
from orchestra.packing.shapes.containers import Many, Row, Table
from orchestra.packing.shapes.records import Record
from orchestra.packing.shapes.recursion import Again
from orchestra.packing.shapes.refusals import shorten
from orchestra.packing.shapes.riding import LiveMarker, Ride
from orchestra.packing.shapes.scalars import MOMENTS, NONE, SCALARS, Moment, Scalar
from orchestra.packing.shapes.shape import Shape
from orchestra.packing.shapes.unions import Either

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
_UNPACK: tuple[Any, ...] = (typing.Unpack, typing_extensions.Unpack)
_ALIASES: tuple[type, ...] = tuple(
    {typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType)}
)

DEEPEST_TYPE = 50
"""How many types may be within each other."""

MOST_TIMES = 5
"""How many times a type may be within itself with other arguments each time."""


@attrs.define(eq=False)
class Builder:
    """Makes shapes; `making` holds what is being made, so that a type may contain itself."""

    outer: Mapping[str, Any]
    making: dict[Any, Again] = attrs.Factory(dict)
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
            return self._enumeration(kind)
        if typing_extensions.is_typeddict(kind):
            return Ride("a TypedDict")
        return self.record(kind, None)

    def _enumeration(self, kind: Any) -> Shape:
        if not kind.__members__:
            return Ride(f"{kind.__qualname__} has no members")
        return Member(kind, by_msgspec=gives_members(kind), by_value=issubclass(kind, enum.Flag))

    def _special(self, found: Any, hint: Hint) -> Shape:
        origin, args = get_origin(found), get_args(found)
        if origin is typing.Annotated:
            return self._annotated(found, hint)
        if origin in _WRAPPERS:
            return self.shape(hint.inner(args[0]))
        if origin in (typing.Union, types.UnionType):
            return self._union(args, hint)
        if origin in (typing.Literal, typing_extensions.Literal):
            return Choice(args)
        if isinstance(found, _ALIASES) or isinstance(origin, _ALIASES):
            return self._alias(found, origin, args, hint)
        if isinstance(found, typing.NewType):
            return self.shape(hint.inner(found.__supertype__))
        if isinstance(found, typing.TypeVar):
            return Ride("untyped" if found.__bound__ is None else "a type variable that is not given")
        if found in (typing.LiteralString, typing_extensions.LiteralString):
            return SCALARS[str]
        if found in (typing.Self, typing_extensions.Self):
            return self.shape(hint.scope.itself or hint.inner(hint.scope.owner))
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
        return _constrained(shape) if any(isinstance(one, msgspec.Meta) for one in metadata) else shape

    def _alias(self, found: Any, origin: Any, args: tuple[Any, ...], hint: Hint) -> Shape:
        alias: Any = origin if isinstance(origin, _ALIASES) else found
        key = (alias, *(hint.inner(arg).key() for arg in args))
        if key in self.making:
            return self.making[key]
        if self._is_too_deep(alias):
            return Ride("its type is nested too deep")
        try:
            value = alias.__value__
        except NameError as error:
            return Ride(f"the type alias {alias.__name__} cannot be resolved ({error})")
        variables = {**hint.scope.variables}
        for one, arg in zip(alias.__type_params__, args, strict=False):
            variables[one] = hint.inner(arg)
        inner = Hint(value, attrs.evolve(hint.scope, variables=variables, module=alias.__module__))
        return self._within(key, alias.__name__, lambda: self.shape(inner))

    def _is_too_deep(self, kind: Any) -> bool:
        """Whether what is being made is nested too deep for one more, or has this one too often.

        A type that contains itself with other arguments has no end.
        """
        return len(self.making) >= DEEPEST_TYPE or sum(key[0] is kind for key in self.making) >= MOST_TIMES

    def _within(self, key: Any, name: str, make: Callable[[], Shape]) -> Shape:
        again = self.making[key] = Again(name)
        try:
            again.target = make()
        finally:
            del self.making[key]
        return again.target

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

    def _container(self, kind: Any, args: tuple[Any, ...], hint: Hint) -> Shape:
        if kind in _ABSTRACT:
            given = {tuple: (*args, ...)} if args else {}
            parts = tuple(self._container(one, given.get(one, args), hint) for one in _ABSTRACT[kind])
            return Either((*parts, Ride(f"some other {kind.__name__}", frozenset(_ABSTRACT[kind]))))
        untyped = Ride("untyped")
        if any(map(_is_unpacked, args)):
            return Many(kind, untyped)
        shapes = tuple(self.shape(hint.inner(arg)) for arg in args if arg is not Ellipsis)
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
        args = get_args(subscripted.annotation) if subscripted else ()
        key = (kind, *(subscripted.inner(arg).key() for arg in args if subscripted))
        if key in self.making:
            return self.making[key]
        if key in self.made:
            return self.made[key]
        if self._is_too_deep(kind):
            return Ride("its type is nested too deep")
        reason = why_whole(kind) or why_never_exact(kind)
        if reason is not None:
            return Ride(f"{kind.__qualname__} is not packed: {reason}")
        made = self.made[key] = self._within(key, kind.__qualname__, lambda: self._record(kind, subscripted))
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
            positional=positional(kind, tuple(fields)) if style == "struct" else len(fields),
            has_dict=style != "named tuple" and kind.__dictoffset__ != 0,
            in_dict=in_dict(kind, style, tuple(fields)),
            by_msgspec=style == "struct"
            and not generic
            and kind.__dictoffset__ == 0
            and self._is_native(kind, fields),
            plain_set=kind.__setattr__ is object.__setattr__,
        )

    def _is_native(self, kind: Any, fields: Mapping[str, Shape]) -> bool:
        """Whether msgspec's own view of a Struct is the one resolved here, and decodes exactly."""
        if not all(
            shape.is_native() and shape.is_straight() and shape.wire() is not None
            for shape in fields.values()
        ):
            return False
        seen = fields_as_seen(kind)
        scope = field_hints(kind, dict.fromkeys(fields), None, {})
        return seen is not None and all(
            self.shape(scope[name].inner(seen[name])) == shape for name, shape in fields.items()
        )


def _is_unpacked(argument: Any) -> bool:
    """Whether it stands for any number of places of a tuple, as `*Ts` and `*tuple[int, ...]` do."""
    return getattr(argument, "__unpacked__", False) or get_origin(argument) in _UNPACK


def _constrained(shape: Shape) -> Shape:
    """The same shape, where msgspec would check constraints as well if it read the annotation itself."""
    match shape:
        case Either(members=members):
            return Either(tuple(map(_constrained, members)))
        case Scalar() | Moment() | Member() | Choice() | Many() | Row() | Table():
            return attrs.evolve(shape, constrained=True)
        case Record():
            return attrs.evolve(shape, by_msgspec=False)
        case _:
            return shape
