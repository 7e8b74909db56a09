"""What the annotations of a message class mean, resolved from where they were written."""

import builtins
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, ForwardRef, get_args, get_origin

import attrs


@attrs.frozen
class Unresolvable:
    """An annotation that names something which cannot be found; `text` is the annotation."""

    text: str
    error: str


@attrs.frozen(eq=False)
class Scope:
    """Where an annotation stands: the class that wrote it, and what its type variables are.

    `itself` is the class whose field it is, which may be a child of the `owner`; `module` is given
    when the annotation was written in another module than the owner.
    """

    owner: type
    outer: Mapping[str, Any]
    variables: Mapping[Any, "Hint"]
    itself: "Hint | None" = None
    module: str | None = None

    def resolve(self, annotation: Any) -> Any:
        """Return `annotation` with a string or forward reference at its top evaluated."""
        if isinstance(annotation, ForwardRef):
            annotation = annotation.__forward_arg__
        if not isinstance(annotation, str):
            return annotation
        try:
            code = compile(annotation.strip(), "<annotation>", "eval", dont_inherit=True)
            found = eval(code, {"__builtins__": builtins}, _Lookup(self))  # noqa: S307 - the class's own annotation
        except Exception as error:
            return Unresolvable(annotation, f"{type(error).__name__}: {error}")
        return self.resolve(found) if isinstance(found, (str, ForwardRef)) else found


@attrs.frozen(eq=False)
class Hint:
    """An annotation and the scope in which it is to be read."""

    annotation: Any
    scope: Scope

    def resolve(self) -> "Hint":
        """Evaluate what is a string, and replace a type variable by what it stands for."""
        found = self.scope.resolve(self.annotation)
        if isinstance(found, typing.TypeVar) and found in self.scope.variables:
            return self.scope.variables[found].resolve()
        return Hint(found, self.scope)

    def inner(self, annotation: Any) -> "Hint":
        """A part of this annotation."""
        return Hint(annotation, self.scope)

    def key(self) -> Any:
        """What tells it from others: its parts are resolved, for a string or a type variable means
        something else in another place."""
        hint = self.resolve()
        found, origin = hint.annotation, get_origin(hint.annotation)
        if origin in (typing.Union, types.UnionType):
            origin = typing.Union
        if isinstance(origin, type) or origin is typing.Union:
            return (origin, *(hint.inner(arg).key() for arg in get_args(found)))
        try:
            hash(found)
        except TypeError:
            return repr(found)
        return found


class _Lookup(Mapping[str, Any]):
    """The names that an annotation may use, nearest first.

    A field, whose value in the class body is a default, does not hide a type of the same name.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> Any:
        scope = self._scope
        own = vars(scope.owner)
        if isinstance(own.get(name), type) and name not in own_annotations(scope.owner):
            return own[name]
        parameters = {one.__name__: one for one in getattr(scope.owner, "__type_params__", ())}
        if name in parameters:
            return parameters[name]
        module = getattr(sys.modules.get(scope.module or scope.owner.__module__), "__dict__", {})
        own_name = {scope.owner.__name__: scope.owner} if "<locals>" in scope.owner.__qualname__ else {}
        for names in (scope.outer, own_name, module):
            if name in names:
                return names[name]
        return {scope.owner.__name__: scope.owner}[name]

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def own_annotations(kind: type) -> Mapping[str, Any]:
    """The annotations written in the body of `kind` itself, unevaluated where they can be."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(kind, format=annotationlib.Format.FORWARDREF)
    found: Mapping[str, Any] = vars(kind).get("__annotations__", {})
    return found


def scopes_of(kind: type, arguments: Hint | None, outer: Mapping[str, Any]) -> dict[type, Scope]:
    """The scope of each class that `kind` derives from.

    `arguments` is the subscripted form of a generic class (`Page[int]`), where it is known.
    """
    scopes: dict[type, Scope] = {}
    itself = arguments or Hint(kind, Scope(kind, outer, {}))

    def visit(cls: type, subscripted: Hint | None) -> None:
        if cls in scopes:
            return
        variables: dict[Any, Hint] = {}
        if subscripted is not None:
            parameters = getattr(cls, "__parameters__", ())
            given = get_args(subscripted.annotation)
            if len(parameters) == len(given):
                variables = {one: subscripted.inner(arg) for one, arg in zip(parameters, given, strict=True)}
        scope = scopes[cls] = Scope(cls, outer, variables, itself)
        for base in vars(cls).get("__orig_bases__", ()):
            origin = get_origin(base)
            if isinstance(origin, type) and origin in cls.__mro__ and origin is not typing.Generic:
                visit(origin, Hint(base, scope))
        for plain in cls.__bases__:
            visit(plain, None)

    visit(kind, arguments)
    return scopes


def field_hints(
    kind: type, names: Mapping[str, Any], arguments: Hint | None, outer: Mapping[str, Any]
) -> dict[str, Hint]:
    """The hint of each of the fields `names`; its value is used where no class body has an annotation."""
    scopes = scopes_of(kind, arguments, outer)
    found: dict[str, Hint] = {}
    for cls in reversed(kind.__mro__):
        for name, annotation in own_annotations(cls).items():
            if name in names:
                found[name] = Hint(annotation, scopes[cls])
    return {name: found.get(name) or Hint(fallback, scopes[kind]) for name, fallback in names.items()}
