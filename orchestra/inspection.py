"""What a subsystem class has: its style, handlers, hooks, `priority`, and what its bases say of messages."""

import functools
import inspect
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args, get_origin

import attrs
import typing_extensions

from orchestra.messages import ANYTHING, class_of, derives, members, shown, shown_all, substituted
from orchestra.mistakes import Wrong
from orchestra.plan import HandlerPlan, Style
from orchestra.scopes import Scope
from orchestra.subsystems import HANDLES, Actor, Subsystem

HOOKS = {
    "started": (1, "(self, ctx)"),
    "stopped": (1, "(self, ctx)"),
    "on_signal": (2, "(self, ctx, signal)"),
    "deadline_passed": (2, "(self, ctx, deadline)"),
}
"""The methods of an Actor that are called only when a class overrides them, and what they are called with."""


@attrs.frozen
class Stated:
    """What the bases of a subsystem class say it receives and sends; None where they say nothing."""

    receives: tuple[Any, ...] | None
    sends: tuple[Any, ...] | None


def style_of(kind: type, *, blocking: bool = False) -> Style:
    """How `kind` is written, after checking that it can live at all, in a thread where it is `blocking`."""
    if issubclass(kind, Subsystem) and issubclass(kind, Actor):
        raise Wrong(f"{shown(kind)} derives from both Subsystem and Actor: choose one")
    if issubclass(kind, Subsystem):
        _check_run(kind, blocking=blocking)
        return Style.RUN
    if not marked(kind) and not any(overrides(kind, name) for name in ("handle", *HOOKS)):
        advice = "; a class with a run of its own derives from Subsystem" if hasattr(kind, "run") else ""
        raise Wrong(
            f"{shown(kind)} has no handler: give it handle(self, ctx, message) or methods marked "
            f"@handles(Type){advice}"
        )
    return Style.ACTOR


def _check_run(kind: type, *, blocking: bool) -> None:
    if not overrides(kind, "run"):
        handles = hasattr(kind, "handle") or bool(marked(kind))
        advice = "; a class with handlers derives from Actor" if handles else ""
        written = "def" if blocking else "async def"
        raise Wrong(f"{shown(kind)} has no run: give it {written} run(self, ctx){advice}")
    if blocking:
        _check_plain(kind, "run", is_async=is_coroutine(kind, "run"))
    elif not is_coroutine(kind, "run"):
        raise Wrong(
            f"{shown(kind)}.run is not a coroutine: write async def run(self, ctx), or give its field "
            "blocking=True, which runs it in a thread of its own"
        )
    check_arguments(kind, "run", 1, "(self, ctx)")


def check_plain(kind: type, handlers: Iterable[HandlerPlan], hooks: Mapping[str, bool]) -> None:
    """Refuse handlers and hooks that would have to be awaited, for an Actor that lives in a thread."""
    for handler in handlers:
        _check_plain(kind, handler.method, is_async=handler.is_async)
    for hook, is_async in hooks.items():
        _check_plain(kind, hook, is_async=is_async)


def _check_plain(kind: type, name: str, *, is_async: bool) -> None:
    if is_async:
        raise Wrong(
            f"{shown(kind)}.{name} is asynchronous, and blocking=True calls it in a thread: "
            f"write def {name}, or leave blocking=True out"
        )


def overrides(kind: type, name: str) -> bool:
    """Whether `kind` has a method of its own in place of the one that Subsystem or Actor has."""
    base = Subsystem if issubclass(kind, Subsystem) else Actor
    own = inspect.getattr_static(kind, name, None)
    return own is not None and own is not vars(base).get(name)


def function_of(kind: type, name: str) -> Any:
    """The function behind a method, out of staticmethod, classmethod and partial."""
    return _function(inspect.getattr_static(kind, name))


def _function(value: Any) -> Any:
    while True:
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        elif isinstance(value, functools.partial | functools.partialmethod):
            value = value.func
        else:
            return value


def is_coroutine(kind: type, name: str) -> bool:
    """Whether calling the method gives a coroutine; a wrapper counts as what it wraps (`__wrapped__`)."""
    function = function_of(kind, name)
    wrapped = _function(inspect.unwrap(function))
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(wrapped)


def check_arguments(kind: type, name: str, count: int, shape: str) -> None:
    """Refuse a method that is no function, yields, or cannot be called with `count` arguments."""
    function = function_of(kind, name)
    if not callable(function):
        raise Wrong(f"{shown(kind)}.{name} is {function!r}, not a method: write {name}{shape}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Wrong(f"{shown(kind)}.{name} yields, so calling it does nothing: write it without yield")
    static = inspect.getattr_static(kind, name)
    if isinstance(static, functools.partialmethod):
        return
    bound = 0 if isinstance(static, staticmethod) else 1
    if not _takes(function, count + bound):
        arguments = "1 argument" if count == 1 else f"{count} arguments"
        raise Wrong(f"{shown(kind)}.{name} cannot be called with {arguments}: write {name}{shape}")


def _takes(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*(None,) * count)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def hooks_of(kind: type) -> Mapping[str, bool]:
    """The hooks that an Actor class overrides, with whether each is asynchronous."""
    found: dict[str, bool] = {}
    for hook, (count, shape) in HOOKS.items():
        if overrides(kind, hook):
            check_arguments(kind, hook, count, shape)
            found[hook] = is_coroutine(kind, hook)
    return types.MappingProxyType(found)


def has_priority(kind: type) -> bool:
    """Whether the class says the level of its messages, after checking that it does so as it must."""
    static = inspect.getattr_static(kind, "priority", None)
    if static is None or static is vars(Actor)["priority"]:
        return False
    if not isinstance(static, staticmethod):
        raise Wrong(
            f"{shown(kind)}.priority is not a static method: write @staticmethod def priority(message), "
            "for it is called in the sender"
        )
    if is_coroutine(kind, "priority"):
        raise Wrong(f"{shown(kind)}.priority is asynchronous: write @staticmethod def priority(message)")
    check_arguments(kind, "priority", 1, "(message), static")
    return True


def marked(kind: type) -> dict[str, tuple[Any, ...]]:
    """The methods marked with `handles`, base classes first; an override keeps the mark it does not renew."""
    found: dict[str, tuple[Any, ...]] = {}
    for owner in reversed(kind.__mro__[:-1]):
        for name, value in vars(owner).items():
            declared = getattr(value, HANDLES, None) if callable(_function(value)) else None
            if isinstance(declared, tuple):
                found[name] = declared
            elif value is None:
                found.pop(name, None)
    return found


def marked_handlers(kind: type, receives: tuple[Any, ...] | None, scope: Scope) -> dict[type, HandlerPlan]:
    """The marked methods of an Actor class by the class of the messages; None for any receives."""
    found: dict[type, HandlerPlan] = {}
    for method, declared in marked(kind).items():
        check_arguments(kind, method, 2, "(self, ctx, message)")
        for message in _handled(kind, method, declared, scope):
            _add(kind, found, HandlerPlan(message, method, is_coroutine(kind, method)), receives)
    return found


def handlers_of(kind: type, receives: tuple[Any, ...], scope: Scope) -> tuple[HandlerPlan, ...]:
    """A handler for everything an Actor receives: marked methods, then `handle` for the rest."""
    found = marked_handlers(kind, receives, scope)
    missing = [each for each in receives if not any(base in found for base in class_of(each).__mro__)]
    if not overrides(kind, "handle"):
        if missing:
            raise Wrong(
                f"{shown(kind)} has no handler for {shown_all(missing)}: give it handle(self, ctx, message) "
                "or a method marked @handles(Type)"
            )
        return tuple(found.values())
    check_arguments(kind, "handle", 2, "(self, ctx, message)")
    asynchronous = is_coroutine(kind, "handle")
    for message in missing:
        found.setdefault(class_of(message), HandlerPlan(message, "handle", asynchronous))
    return tuple(found.values())


def _handled(kind: type, method: str, declared: tuple[Any, ...], scope: Scope) -> Iterator[Any]:
    for given in declared:
        try:
            yield from members(given, scope.resolve)
        except Wrong as wrong:
            raise Wrong(f"@handles of {shown(kind)}.{method}: {wrong.text}") from wrong.__cause__


def _add(
    kind: type, found: dict[type, HandlerPlan], handler: HandlerPlan, receives: tuple[Any, ...] | None
) -> None:
    message = class_of(handler.message)
    other = found.get(message)
    if other is not None and other.method != handler.method:
        raise Wrong(
            f"{shown(kind)}.{other.method} and {shown(kind)}.{handler.method} both handle "
            f"{shown(handler.message)}: a type has one handler"
        )
    if receives is None:
        found[message] = handler
        return
    kinds = [class_of(received) for received in receives]
    if not any(derives(message, received) or derives(received, message) for received in kinds):
        raise Wrong(
            f"{shown(kind)}.{handler.method} handles {shown(handler.message)}, which it does not consume: "
            f"it consumes {shown_all(receives)}"
        )
    found[message] = handler


def stated_by(kind: type, arguments: tuple[Any, ...], scope: Scope) -> Stated:
    """What `Subsystem[In, SOut]` or `Actor[In, SOut]` in the bases of `kind[arguments]` says.

    Any, `object` and a type variable that nothing was given for say nothing.
    """
    root = Subsystem if issubclass(kind, Subsystem) else Actor
    given = _base_arguments(kind, arguments, root) or ()
    receives, sends = (*given, Any, Any)[:2]
    return Stated(_stated(receives, scope, kind), _stated(sends, scope, kind))


def _stated(declared: Any, scope: Scope, kind: type) -> tuple[Any, ...] | None:
    if isinstance(declared, typing_extensions.TypeVar) or any(declared is anything for anything in ANYTHING):
        return None
    if getattr(declared, "__parameters__", ()) and not isinstance(declared, type):
        return None
    try:
        return members(declared, scope.resolve)
    except Wrong as wrong:
        raise Wrong(f"the base of {shown(kind)}: {wrong.text}") from wrong.__cause__


def _base_arguments(cls: type, arguments: tuple[Any, ...], root: type) -> tuple[Any, ...] | None:
    """The arguments that `root` is subscripted with, seen from `cls[arguments]`; None when it is bare."""
    if cls is root:
        return arguments or None
    parameters = getattr(cls, "__parameters__", ())
    given = {each: each.__default__ for each in parameters if _has_default(each)}
    given.update(zip(parameters, arguments, strict=False))
    for base in vars(cls).get("__orig_bases__", cls.__bases__):
        origin = get_origin(base) or base
        if not isinstance(origin, type) or not issubclass(origin, root):
            continue
        found = _base_arguments(origin, tuple(substituted(arg, given) for arg in get_args(base)), root)
        if found is not None:
            return found
    return None


def _has_default(parameter: Any) -> bool:
    return bool(getattr(parameter, "has_default", bool)())
