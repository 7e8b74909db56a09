"""`Wrapper`: an Actor around another one, which forwards what it does not change.

The idea is that of tonari-actor's wrapping actors. There each wrapper forwards by hand, and one that was
written before a hook existed swallows it; here the forwarding is made from the list of hooks.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from orchestra.context import Context
from orchestra.inspection import HOOKS, marked_handlers
from orchestra.messages import shown
from orchestra.plan import HandlerPlan
from orchestra.scopes import scope_of
from orchestra.subsystems import Actor, In, SOut, Subsystem

__all__ = ["Wrapper"]

Bound = Callable[[Any, Any], Any]

MAY_WAIT: Final = "__orchestra_may_wait__"


class _Done:
    """Awaiting it gives None at once. A tuple's iterator does that with no frame of its own."""

    __slots__ = ()
    __await__ = ().__iter__

    def __repr__(self) -> str:
        return "<done>"


DONE: Final[Any] = _Done()
"""What a forwarded call gives where there is nothing to wait for."""


def awaitable(result: Any) -> Any:
    """The result of a method as something that may be awaited, or thrown away, whatever the method is."""
    if result is None or not inspect.isawaitable(result):
        return DONE
    return result


def lenient(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method as one that is always awaited: it may give something to wait for, or nothing."""

    def call(*args: Any) -> Any:
        return awaitable(method(*args))

    return call


def may_wait(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a plain method of a Wrapper that gives something to await in an event loop, but not in a thread.

    It is awaited whatever it wraps, except in a subsystem with `blocking=True`.
    """
    setattr(method, MAY_WAIT, True)
    return method


def is_marked_may_wait(kind: type, name: str) -> bool:
    """Whether a method is marked so."""
    return bool(getattr(inspect.getattr_static(kind, name), MAY_WAIT, False))


class Wrapper(Actor[In, SOut]):
    """An Actor that forwards each message, each hook and `priority` to the Actor in it, `inner`.

    A subclass overrides what it changes, and calls `super()` to go on:

        class Counted(Wrapper[In, SOut]):
            def __init__(self, inner: Actor[In, SOut]) -> None:
                super().__init__(inner)
                self.count = 0

            def handle(self, ctx: Context[In, SOut, Any], message: In) -> Any:
                self.count += 1
                return super().handle(ctx, message)

    What `super().handle(ctx, message)` and `super().started(ctx)` give can be awaited and can be returned,
    whether the inner method is `def` or `async def`, or is not there. An `async def` override awaits it, a
    plain one returns it, and runs without a task switch when the inner method is plain as well. One that
    does neither drops the coroutine of an asynchronous inner method: Python warns that it was never awaited.

    `handle` takes all messages but those for which the subclass marks a method with `@handles(Type)`.
    `super().handle` calls the method that the inner one has for the class of the message. Only what a
    subclass overrides is called on the way to the inner one, so what it leaves alone costs nothing.
    A wrapper may wrap a wrapper. What is called is decided when the orchestra starts, so `inner` is not to
    be replaced after that.

    Raises TypeError for what is no instance of an Actor.
    """

    def __init__(self, inner: Actor[In, SOut]) -> None:
        reason = why_not_wrapped(type(self), inner)
        if reason:
            raise TypeError(reason)
        self.inner = inner

    def handle(self, ctx: Context[In, SOut, Any], message: In, /) -> Any:
        """Forward a message to the method that the inner Actor has for its class.

        Gives something that may be awaited. Raises TypeError when the inner one has no such method.
        """
        kind = type(message)
        method = self._handlers.get(kind)
        if method is None:
            method = self._handlers[kind] = _handler_in(self.inner, kind)
        return awaitable(method(ctx, message))

    @functools.cached_property
    def _handlers(self) -> dict[type, Bound]:
        """The methods of what is inside, by the class of the messages that were forwarded."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, 'inner', '?')!r})"


def _forwarding(hook: str) -> Callable[..., Any]:
    @functools.wraps(getattr(Actor, hook))
    def forward(self: Wrapper[Any, Any], /, *args: Any) -> Any:
        return awaitable(getattr(self.inner, hook)(*args))

    forward.__qualname__ = f"Wrapper.{hook}"
    return forward


class _ForwardedPriority(staticmethod):  # type: ignore[type-arg]  # Python 3.11 has it without
    """A static method that, asked of an instance, is that of the inner one."""

    def __get__(self, instance: Any, owner: type | None = None, /) -> Callable[[Any], Any]:
        if instance is None:
            return super().__get__(instance, owner)
        forwarded: Callable[[Any], Any] = instance.inner.priority
        return forwarded


for _hook in HOOKS:
    setattr(Wrapper, _hook, _forwarding(_hook))
setattr(Wrapper, "priority", _ForwardedPriority(Actor.priority))  # noqa: B010 - type checkers know it from Actor


def overridden(kind: type, name: str) -> bool:
    """Whether an Actor class has a method of its own in place of what Actor, or Wrapper, has."""
    base = Wrapper if issubclass(kind, Wrapper) else Actor
    return inspect.getattr_static(kind, name, None) not in (None, vars(base)[name])


def known_at_start(kind: type) -> bool:
    """Whether the instance alone tells what is called: it is a Wrapper, or any Actor may be given."""
    return kind is Actor or issubclass(kind, Wrapper)


def why_not_wrapped(wrapper: type, inner: Any) -> str | None:
    """Why a wrapper cannot go around this, with what would be right; None when it can."""
    name = shown(wrapper)
    if isinstance(inner, Actor):
        return None
    if isinstance(inner, type):
        return f"{name} wraps an instance: give {shown(inner)}(...), not the class"
    if isinstance(inner, Subsystem):
        return (
            f"{name} wraps an Actor, and {type(inner).__qualname__} is a Subsystem, which receives by itself "
            "in its run: write it as an Actor, or derive from it and override run"
        )
    return f"{name} wraps an Actor, and {inner!r} is none: give an instance of a class with handlers"


def handler_name(kind: type, message: type, marks: Mapping[type, HandlerPlan]) -> str | None:
    """The method with which an Actor class itself, not what it wraps, handles a class of messages."""
    for base in message.__mro__:
        if base in marks:
            return marks[base].method
    return "handle" if overridden(kind, "handle") else None


def _handler_in(actor: Any, message: type) -> Bound:
    """The method of the outermost Actor from here on that handles a class of messages."""
    kinds: list[str] = []
    while True:
        kind = type(actor)
        kinds.append(shown(kind))
        name = handler_name(kind, message, marked_handlers(kind, None, scope_of(kind)))
        if name is not None:
            found: Bound = getattr(actor, name)
            return found
        if not isinstance(actor, Wrapper):
            raise TypeError(f"{' around '.join(kinds)} has no handler for {shown(message)}")
        actor = actor.inner
