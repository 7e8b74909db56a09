"""Methods that look like hooks whose names were misspelt, or that stand in the wrong class."""

import difflib
import inspect
from collections.abc import Iterator

from orchestra.inspection import HOOKS, overrides
from orchestra.messages import shown
from orchestra.plan import Plan, Style
from orchestra.subsystems import HANDLES

_SPELLINGS = {
    "start": "started",
    "started": "started",
    "stop": "stopped",
    "stopped": "stopped",
    "signal": "on_signal",
    "deadline": "deadline_passed",
    "deadline_passed": "deadline_passed",
    "priority": "priority",
}
"""What comes to mind for each hook, without the `on_` that some put before all of them."""


def misspelt_hooks(plan: Plan) -> Iterator[str]:
    """A line for each method that is never called by itself, and has nearly the name of a hook."""
    yield from _misspelt_on_event(plan)
    told: set[tuple[type, str]] = set()
    for subsystem in plan.subsystems.values():
        kind = subsystem.kind
        if subsystem.style is Style.RUN:
            continue
        for name in _own_methods(kind):
            if name == "on_event" and (kind, name) not in told and _takes(kind, name, 2):
                told.add((kind, name))
                yield f"{shown(kind)}.on_event is never called by itself: events go to {shown(plan.cls)}.on_event"
            hook = _meant(name)
            if hook is None or overrides(kind, hook) or not _fits(kind, name, hook):
                continue
            if (kind, name) not in told:
                told.add((kind, name))
                yield f"{shown(kind)}.{name} is never called by itself: is the hook {hook} meant?"


def _misspelt_on_event(plan: Plan) -> Iterator[str]:
    """The methods of the orchestra class itself that have nearly the name of its one hook."""
    if plan.has_on_event:
        return
    for name in dict.fromkeys(name for base in plan.cls.__mro__[:-1] for name in vars(base)):
        alike = name[:1] in "oe" and difflib.get_close_matches(
            name.lower(), ("on_event", "event"), cutoff=0.8
        )
        if alike and inspect.isroutine(getattr(plan.cls, name)) and _takes(plan.cls, name, 2):
            yield f"{shown(plan.cls)}.{name} is never called by itself: is the hook on_event meant?"


def _own_methods(kind: type) -> list[str]:
    """The public methods that the user's classes give an Actor, save handlers and what the library has."""
    own = [
        base for base in kind.__mro__ if base is not object and not base.__module__.startswith("orchestra.")
    ]
    names = dict.fromkeys(name for base in reversed(own) for name in vars(base))
    known = {"handle", "priority", *HOOKS}
    return [
        name
        for name in names
        if not name.startswith("_")
        and name not in known
        and inspect.isroutine(getattr(kind, name))
        and not hasattr(getattr(kind, name), HANDLES)
    ]


def _meant(name: str) -> str | None:
    """The hook whose name is like this one. A slip in the first letter is rare, and `restart` no slip."""
    bare = name.lower().removeprefix("on_")
    alike = [each for each in difflib.get_close_matches(bare, _SPELLINGS, cutoff=0.8) if each[0] == bare[0]]
    return _SPELLINGS[alike[0]] if alike else None


def _fits(kind: type, name: str, hook: str) -> bool:
    """Whether the method takes what the hook is called with."""
    return _takes(kind, name, 0 if hook == "priority" else HOOKS[hook][0])


def _takes(kind: type, name: str, count: int) -> bool:
    """Whether a method can be called with so many arguments, besides `self`."""
    given = count + 1 - isinstance(inspect.getattr_static(kind, name), classmethod)
    try:
        inspect.signature(getattr(kind, name)).bind(*[None] * given)
    except (TypeError, ValueError):
        return False
    return True
