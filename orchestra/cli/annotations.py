"""Annotations of methods that contradict what is declared, and so mislead a reader and a type checker.

What cannot be known for certain is left alone: Any, type variables, protocols, and strings whose names are not
to be found.
"""

from collections.abc import Awaitable, Coroutine, Iterable, Iterator
from types import NoneType
from typing import Any, get_args, get_origin

import typing_extensions

from orchestra.context import BlockingContext, Context
from orchestra.inspection import function_of
from orchestra.messages import (
    ANYTHING,
    NOTHING_AT_ALL,
    as_class,
    class_of,
    derives,
    members,
    shown,
    shown_all,
)
from orchestra.mistakes import Wrong
from orchestra.plan import Plan, Style, SubsystemPlan
from orchestra.scopes import scope_of

Types = tuple[Any, ...]

_COROUTINES = {Coroutine: 2, Awaitable: 0}
_PROMOTED = {int: (float, complex), float: (complex,)}
"""What type checkers take for a `float` or a `complex`, though it does not derive from it."""


def wrong_annotations(plan: Plan) -> Iterator[str]:
    """A line for each annotation of a handler or `run` that contradicts the declaration."""
    lines = (line for each in plan.subsystems.values() if not each.wip for line in _wrong_in(plan, each))
    yield from dict.fromkeys(lines)


def _wrong_in(plan: Plan, subsystem: SubsystemPlan) -> Iterator[str]:
    alike = [each for each in plan.subsystems.values() if each.kind is subsystem.kind and not each.wip]
    receives = tuple(message for each in alike for message in (*each.consumes, *each.subscribes))
    sends = tuple(message for each in alike for message in each.sends)
    for method, handled in _called(subsystem).items():
        where = f"{shown(subsystem.kind)}.{method}"
        parameters, returned = _annotations(subsystem.kind, method)
        yield from _wrong_ctx(where, parameters[:1], (*receives, *plan.signals), sends, receives)
        if subsystem.style is Style.ACTOR:
            yield from _wrong_message(where, parameters[1:2], handled)
            if not _gives_nothing(returned):
                yield (
                    f"{where} is annotated to return {shown(returned)}, and what a handler returns is dropped: "
                    "send it, or answer by a Reply"
                )


def _called(subsystem: SubsystemPlan) -> dict[str, list[Any]]:
    """The methods that get messages, each with the types that it is called with."""
    if subsystem.style is Style.RUN:
        return {"run": []}
    found: dict[str, list[Any]] = {}
    for handler in subsystem.handlers:
        found.setdefault(handler.method, []).append(handler.message)
    return found


def _wrong_ctx(
    where: str, annotated: list[Any], may_receive: Types, sends: Types, receives: Types
) -> Iterator[str]:
    for ctx in annotated:
        if get_origin(ctx) not in (Context, BlockingContext):
            continue
        stated_in, stated_out = (*map(_known, get_args(ctx)), None, None)[:2]
        told = []
        if stated_in and (strange := _unrelated(stated_in, may_receive)):
            told.append(f"receives {shown_all(receives)}, not {shown_all(strange)}")
        if stated_out and (strange := _unrelated(stated_out, sends)):
            told.append(f"sends {shown_all(sends)}, not {shown_all(strange)}")
        if told:
            yield f"{where} has a ctx annotated {shown(ctx)}, and by its declaration it {' and '.join(told)}"


def _wrong_message(where: str, annotated: list[Any], handled: list[Any]) -> Iterator[str]:
    for message in annotated:
        known = _known(message)
        if known and (strange := _unrelated(handled, known)):
            yield f"{where} has a message annotated {shown(message)}, and is called with {shown_all(strange)}"


def _unrelated(these: Iterable[Any], those: Iterable[Any]) -> list[Any]:
    """Those of the first types of which no message can be of one of the second."""
    return [each for each in these if not any(_related(class_of(each), class_of(other)) for other in those)]


def _related(one: type, other: type) -> bool:
    near = derives(one, other) or derives(other, one)
    return near or other in _PROMOTED.get(one, ()) or one in _PROMOTED.get(other, ())


def _known(declared: Any) -> Types | None:
    """The types in an annotation; None when it does not say which for certain."""
    try:
        return members(declared)
    except (Wrong, TypeError):
        return None


def _gives_nothing(returned: Any) -> bool:
    """Whether an annotation of what is returned leaves room for None, or for what is awaited and gives None."""
    if (
        returned is None
        or returned is NoneType
        or any(returned is each for each in (*ANYTHING, *NOTHING_AT_ALL))
    ):
        return True
    for coroutine, place in _COROUTINES.items():
        if get_origin(returned) is coroutine:
            return _gives_nothing(get_args(returned)[place])
    known = _known(returned)
    return not known or any(issubclass(as_class(each) or object, Awaitable) for each in known)


def _annotations(kind: type, name: str) -> tuple[list[Any], Any]:
    """What the parameters after `self` are annotated as, and what is returned; Any for what is not known."""
    owner = next(each for each in kind.__mro__ if name in vars(each))
    function = function_of(kind, name)
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or not isinstance(vars(owner)[name], type(function)):
        return [], Any
    found = typing_extensions.get_annotations(function, format=typing_extensions.Format.FORWARDREF)
    known = {each: _resolved(owner, annotation) for each, annotation in found.items()}
    positional = code.co_varnames[1 : code.co_argcount]
    return [known.get(each, Any) for each in positional], known.get("return", Any)


def _resolved(owner: type, annotation: Any) -> Any:
    """The type that an annotation means. In a function's own classes a name may mean what only it knows."""
    if not isinstance(annotation, str | typing_extensions.ForwardRef):
        return annotation
    if "<locals>" in owner.__qualname__:
        return Any
    try:
        return scope_of(owner).resolve(annotation)
    except Wrong:
        return Any
