"""Annotations that are strings, or lazy, made into types with the names their author could see."""

import ast
import builtins
import sys
import types
import typing
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, cast

import attrs
import typing_extensions

from orchestra.mistakes import Place, Wrong


@attrs.frozen
class Scope:
    """The names that an annotation in one class body can use, nearest first, and where it is decorated."""

    names: Mapping[str, Any]
    place: Place | None = None

    def resolve(self, annotation: Any) -> Any:
        """The type that an annotation means. Raises `Wrong` naming what is not found."""
        if isinstance(annotation, str):
            return self.resolve(self._evaluated(annotation))
        if isinstance(annotation, typing.ForwardRef):
            return self.resolve(self._forward(annotation))
        return annotation

    def inside(self, cls: type) -> "Scope":
        """The scope for what another class says of itself: its own names first, then these."""
        return Scope(ChainMap(*_maps(scope_of(cls)), *_maps(self)), self.place)

    def _forward(self, reference: typing.ForwardRef) -> Any:
        if not hasattr(reference, "evaluate"):
            return self._evaluated(reference.__forward_arg__)
        try:
            return cast(Any, reference).evaluate()
        except NameError:
            return self._evaluated(reference.__forward_arg__)

    def _evaluated(self, text: str) -> Any:
        try:
            return eval(text, {"__builtins__": builtins}, cast(Mapping[str, object], self.names))  # noqa: S307 - as typing.get_type_hints does
        except NameError as error:
            raise Wrong(
                f"in {text!r} the name {error.name!r} is not found: import or define it where the decorator "
                "runs, not for the type checker only"
            ) from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise Wrong(f"{text!r} cannot be evaluated: {reason}") from error


def scope_of(cls: type, frame: types.FrameType | None = None, place: Place | None = None) -> Scope:
    """The scope of a class body: the class itself, the functions around it, its module, the builtins.

    `frame` is the one that decorates the class; without it the functions around are not seen.
    """
    module = sys.modules.get(cls.__module__)
    maps: list[Mapping[str, Any]] = [_own_names(cls)]
    if frame is not None:
        maps += _around(cls, frame)
        if frame.f_globals.get("__name__") == cls.__module__:
            maps.append(frame.f_globals)
    if module is not None:
        maps.append(vars(module))
    maps.append(vars(builtins))
    return Scope(ChainMap(*cast(list[MutableMapping[str, Any]], maps)), place)


def _maps(scope: Scope) -> list[MutableMapping[str, Any]]:
    return [cast(MutableMapping[str, Any], scope.names)]


def _own_names(cls: type) -> Mapping[str, Any]:
    """The classes that are defined in the body itself; a field's default does not hide a type."""
    return {name: value for name, value in vars(cls).items() if isinstance(value, type)}


def _around(cls: type, frame: types.FrameType) -> Iterator[Mapping[str, Any]]:
    """The local names of the decorating function, and of those that enclose it in the source."""
    if frame.f_locals is not frame.f_globals:
        yield frame.f_locals
    outer = frame.f_back
    while outer is not None and "<locals>" in cls.__qualname__:
        encloses = cls.__qualname__.startswith(f"{outer.f_code.co_qualname}.<locals>.")
        if encloses and outer.f_globals is frame.f_globals:
            yield outer.f_locals
        outer = outer.f_back


def own_annotations(cls: type) -> dict[str, Any]:
    """The annotations in the body of `cls`, unevaluated where they are strings or lazy and unknown."""
    return dict(typing_extensions.get_annotations(cls, format=typing_extensions.Format.FORWARDREF))


def is_class_variable(annotation: Any) -> bool:
    """Whether attrs takes it for a class variable, which is no field; attrs goes by the text."""
    text = str(annotation).strip("'\"")
    return text.startswith(("ClassVar", "typing.ClassVar", "t.ClassVar", "typing_extensions.ClassVar"))


def names_itself(field: str, annotation: Any) -> bool:
    """Whether a field's own name stands as a name in its annotation (there it means the field)."""
    text = annotation.__forward_arg__ if isinstance(annotation, typing.ForwardRef) else annotation
    if not isinstance(text, str):
        return False
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Name) and node.id == field for node in ast.walk(tree))
