"""A Wrapper with what is in it: which method of which of them is called, found when the orchestra starts."""

import enum
import types
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import attrs

from orchestra.inspection import (
    HOOKS,
    check_arguments,
    has_priority,
    hooks_of,
    is_coroutine,
    marked_handlers,
    style_of,
)
from orchestra.lanes import check_normal
from orchestra.messages import class_of, derives, joined, shown, shown_all
from orchestra.mistakes import Wrong, located
from orchestra.plan import HandlerPlan, SubsystemPlan, Way
from orchestra.scopes import scope_of
from orchestra.wrapping import Wrapper, handler_name, is_marked_may_wait, overridden, why_not_wrapped

Chain = tuple[type, ...]
"""The classes of a Wrapper and of what is in it, from the outermost to the innermost."""


def chain_of(where: str, actor: Any) -> Chain:
    """The classes along a Wrapper. Raises TypeError where one has no Actor in it, or has itself."""
    kinds: list[type] = [type(actor)]
    seen = {id(actor)}
    while isinstance(actor, Wrapper):
        inner = getattr(actor, "inner", None)
        reason = _why_not_inside(type(actor), inner, seen)
        if reason:
            raise TypeError(f"{where}: {reason}")
        seen.add(id(inner))
        kinds.append(type(inner))
        actor = inner
    return tuple(kinds)


def _why_not_inside(wrapper: type, inner: Any, seen: Collection[int]) -> str | None:
    if inner is None:
        return f"{shown(wrapper)} has no inner: call super().__init__(inner) in its __init__"
    if id(inner) in seen:
        return f"{shown(wrapper)} wraps itself: give it another Actor"
    return why_not_wrapped(wrapper, inner)


def as_wrapped(cls: type, subsystem: SubsystemPlan, chain: Chain) -> SubsystemPlan:
    """The part of a plan for a field of `cls` that holds a Wrapper. Raises `DeclarationError`."""
    try:
        planned = _Links(subsystem, chain).planned()
    except Wrong as wrong:
        text = f"{shown(cls)}.{subsystem.name}: {wrong.text}"
        raise located(cls, None, Wrong(text, subsystem.name)) from wrong.__cause__
    check_lanes(cls, planned)
    return planned


def check_lanes(cls: type, subsystem: SubsystemPlan) -> None:
    """Refuse lanes without a NORMAL one when what was given has no `priority`; raises `DeclarationError`."""
    try:
        levels = [lane.priority for lane in subsystem.lanes]
        check_normal(levels, has_priority=subsystem.has_priority)
    except Wrong as wrong:
        text = f"{shown(cls)}.{subsystem.name}: {wrong.text}"
        raise located(cls, None, Wrong(text, subsystem.name)) from wrong.__cause__


class _Waiting(enum.Enum):
    """What a method gives."""

    NEVER = "nothing to await"
    MAYBE = "something to await, or nothing"
    ALWAYS = "a coroutine"

    @property
    def is_async(self) -> bool:
        return self is not _Waiting.NEVER


@attrs.frozen
class _Place:
    """A method of the chain: so many wrappers in, under this name."""

    depth: int
    name: str


class _Links:
    """The classes of a chain, each with the handlers that it has by itself."""

    def __init__(self, subsystem: SubsystemPlan, chain: Chain) -> None:
        self._subsystem = subsystem
        self._chain = chain
        self._receives = (*subsystem.consumes, *subsystem.subscribes)
        for kind in chain:
            _check(kind)
        self._marks = [marked_handlers(kind, self._receives, scope_of(kind)) for kind in chain]

    def planned(self) -> SubsystemPlan:
        """The subsystem with the handlers, hooks and `priority` of the whole chain."""
        handlers = self._handlers()
        hooks = {hook: place for hook in HOOKS if (place := self._first(hook)) is not None}
        priority = self._first("priority")
        names = _names(handlers.values(), taken={*HOOKS, "priority"})
        waiting = {place: self._waiting_for(place, handlers) for place in names}
        called = {hook: self._hook_waiting(place) for hook, place in hooks.items()}
        ways = {names[place]: _way(place, waiting[place]) for place in names}
        ways |= {hook: _way(place, called[hook]) for hook, place in hooks.items()}
        if priority is not None:
            ways["priority"] = _way(priority, _Waiting.NEVER)
        return attrs.evolve(
            self._subsystem,
            handlers=tuple(
                HandlerPlan(message, names[place], waiting[place].is_async)
                for message, place in handlers.items()
            ),
            hooks=types.MappingProxyType({hook: each.is_async for hook, each in called.items()}),
            has_priority=priority is not None and has_priority(self._chain[priority.depth]),
            ways=types.MappingProxyType(ways),
        )

    def _first(self, name: str, start: int = 0) -> _Place | None:
        """The outermost hook, or `priority`, that a class of the chain has of its own."""
        depths = range(start, len(self._chain))
        return next((_Place(depth, name) for depth in depths if overridden(self._chain[depth], name)), None)

    def _handler(self, message: type, start: int = 0) -> _Place | None:
        """The outermost method that handles messages of this class."""
        for depth in range(start, len(self._chain)):
            name = handler_name(self._chain[depth], message, self._marks[depth])
            if name is not None:
                return _Place(depth, name)
        return None

    def _handlers(self) -> dict[Any, _Place]:
        """The method for each type that is received, and for each subclass of one that is marked."""
        self._check_handled()
        kinds = [class_of(message) for message in self._receives]
        marked = [handler.message for marks in self._marks for handler in marks.values()]
        finer = [message for message in marked if any(derives(class_of(message), kind) for kind in kinds)]
        found = {message: self._handler(class_of(message)) for message in (*self._receives, *finer)}
        return {message: place for message, place in found.items() if place is not None}

    def _check_handled(self) -> None:
        """Refuse a type that nobody handles, or that a `handle` would forward to nobody."""
        lost = [message for message in self._receives if not self._is_handled(class_of(message))]
        if lost:
            *outer, inner = (shown(kind) for kind in self._chain)
            raise Wrong(
                f"{' around '.join((*outer, inner))} has no handler for {shown_all(lost)}: give {inner} "
                "handle(self, ctx, message) or a method marked @handles(Type), or mark one of "
                f"{joined(outer)} that keeps it"
            )

    def _is_handled(self, message: type) -> bool:
        place = self._handler(message)
        while place is not None and self._forwards(place, message):
            place = self._handler(message, place.depth + 1)
        return place is not None

    def _forwards(self, place: _Place, message: type) -> bool:
        """Whether it is the `handle` of a wrapper, which takes what is to go on to the inner one."""
        is_wrapper = issubclass(self._chain[place.depth], Wrapper)
        return is_wrapper and not any(base in self._marks[place.depth] for base in message.__mro__)

    def _waiting_for(self, place: _Place, handlers: Mapping[Any, _Place]) -> _Waiting:
        theirs = [class_of(message) for message, each in handlers.items() if each == place]
        return self._handler_waiting(place, theirs)

    def _handler_waiting(self, place: _Place, messages: Iterable[type]) -> _Waiting:
        below = [(message, self._handler(message, place.depth + 1)) for message in messages]
        return self._waiting(
            place, [self._handler_waiting(inner, [message]) for message, inner in below if inner is not None]
        )

    def _hook_waiting(self, place: _Place) -> _Waiting:
        below = self._first(place.name, place.depth + 1)
        return self._waiting(place, [] if below is None else [self._hook_waiting(below)])

    def _waiting(self, place: _Place, below: Iterable[_Waiting]) -> _Waiting:
        """What the method gives, from how it is written and from what those that it forwards to give."""
        kind = self._chain[place.depth]
        blocking = self._subsystem.blocking
        if is_coroutine(kind, place.name):
            if blocking:
                raise Wrong(
                    f"{shown(kind)}.{place.name} is asynchronous, and blocking=True calls it in a thread: "
                    f"write def {place.name}, or leave blocking=True out"
                )
            return _Waiting.ALWAYS
        if is_marked_may_wait(kind, place.name) and not blocking:
            return _Waiting.MAYBE
        return _Waiting.MAYBE if any(each.is_async for each in below) else _Waiting.NEVER


def _check(kind: type) -> None:
    """Refuse a class that cannot live, or whose methods cannot be called."""
    style_of(kind)
    hooks_of(kind)
    if overridden(kind, "handle"):
        check_arguments(kind, "handle", 2, "(self, ctx, message)")


def _names(places: Iterable[_Place], taken: set[str]) -> dict[_Place, str]:
    """A name for each method: its own, where no other one has it."""
    found: dict[_Place, str] = {}
    for place in dict.fromkeys(places):
        name = place.name
        while name in taken:
            name = f"{name}_{place.depth}"
        taken.add(name)
        found[place] = name
    return found


def _way(place: _Place, waiting: _Waiting) -> Way:
    return Way(place.depth, place.name, lenient=waiting is _Waiting.MAYBE)
