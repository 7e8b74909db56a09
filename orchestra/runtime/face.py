"""What generated code calls of an Actor that is wrapped: each method straight from where it is."""

from typing import Any

from orchestra.plan import SubsystemPlan, Way
from orchestra.wrapping import lenient


def faced(actor: Any, subsystem: SubsystemPlan) -> Any:
    """What stands for an Actor towards its wiring: itself, or the methods along its wrappers."""
    return actor if subsystem.ways is None else Face(actor, subsystem)


class Face:
    """The methods that are called, and no more: what a wrapper does not override is the inner one's own."""

    def __init__(self, actor: Any, subsystem: SubsystemPlan) -> None:
        self._actor = actor
        for name, way in (subsystem.ways or {}).items():
            setattr(self, name, _method(actor, way))

    def __repr__(self) -> str:
        return f"<face of {self._actor!r}>"


def _method(actor: Any, way: Way) -> Any:
    for _ in range(way.depth):
        actor = actor.inner
    method = getattr(actor, way.method)
    return lenient(method) if way.lenient else method
