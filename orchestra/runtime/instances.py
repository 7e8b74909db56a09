"""The instances that play in an orchestra: those that its fields hold, and those made by `deferred(...)`."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestra.messages import shown
from orchestra.plan import Plan
from orchestra.runtime.telling import note
from orchestra.supervision import Deferred

if TYPE_CHECKING:
    from orchestra.runtime.running import Running


def instances_of(app: Any, plan: Plan, running: "Running") -> dict[str, Any]:
    """The instance for each subsystem that is written; what is deferred is made now, in field order."""
    return {name: _instance(app, name, running) for name, each in plan.subsystems.items() if not each.wip}


def remakers_of(
    app: Any, running: "Running", instances: Mapping[str, Any]
) -> Mapping[str, Callable[[], Any]]:
    """For each field that is deferred, what makes a fresh instance of the class that it gave at the start."""
    return {
        name: partial(_made_again, app, name, running, type(instance))
        for name, instance in instances.items()
        if isinstance(getattr(app, name), Deferred)
    }


def _instance(app: Any, name: str, running: "Running") -> Any:
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


def _made_again(app: Any, name: str, running: "Running", kind: type) -> Any:
    field = f"{type(app).__qualname__}.{name}"
    made = _made(getattr(app, name), field, running)
    if type(made) is not kind:
        raise TypeError(
            f"{field} is deferred and gave a {shown(type(made))} for a restart, but a {shown(kind)} "
            "at the start: the wiring is made for one class"
        )
    return made
