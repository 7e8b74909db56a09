"""The instances that play in an orchestra: those that its fields hold, and those made by `deferred(...)`."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestra.messages import shown
from orchestra.plan import Plan
from orchestra.runtime.telling import note
from orchestra.supervision import Deferred
from orchestra.wrapping import Wrapper

if TYPE_CHECKING:
    from orchestra.runtime.running import Running


def instances_of(app: Any, plan: Plan, running: "Running") -> dict[str, Any]:
    """The instance for each subsystem that is written; what is deferred is made now, in field order."""
    return {name: instance_of(app, name, running) for name, each in plan.subsystems.items() if not each.wip}


def remakers_of(
    app: Any, running: "Running", instances: Mapping[str, Any]
) -> Mapping[str, Callable[[], Any]]:
    """For each field that is deferred, what makes a fresh instance of the class that it gave at the start."""
    return {
        name: partial(_made_again, app, name, running, _classes(instance))
        for name, instance in instances.items()
        if isinstance(getattr(app, name), Deferred)
    }


def instance_of(app: Any, name: str, running: "Running") -> Any:
    """The instance for one subsystem: what the field holds, or what that makes when it is deferred."""
    held = getattr(app, name)
    return _made(held, f"{type(app).__qualname__}.{name}", running) if isinstance(held, Deferred) else held


def _made(deferred: Deferred, field: str, running: "Running") -> Any:
    try:
        made = deferred(running)
    except BaseException as error:
        note(error, f"raised while {field} was made")
        raise
    if inspect.iscoroutine(made):
        made.close()
        raise TypeError(f"{field} is deferred to a coroutine: give a plain function, or a class")
    return made


def _made_again(app: Any, name: str, running: "Running", kinds: tuple[type, ...]) -> Any:
    field = f"{type(app).__qualname__}.{name}"
    made = _made(getattr(app, name), field, running)
    if _classes(made) != kinds:
        raise TypeError(
            f"{field} is deferred and gave a {_told(_classes(made))} for a restart, but a {_told(kinds)} "
            "at the start: the wiring is made for one class"
        )
    return made


def _classes(instance: Any) -> tuple[type, ...]:
    """The class of an instance, and those of what it wraps."""
    inner = _classes(instance.inner) if isinstance(instance, Wrapper) else ()
    return type(instance), *inner


def _told(kinds: tuple[type, ...]) -> str:
    return " around ".join(map(shown, kinds))
