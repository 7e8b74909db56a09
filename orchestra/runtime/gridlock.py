"""A circle of full lanes: what is told of subsystems that wait for each other's room for ever."""

from collections.abc import Callable

import attrs

from orchestra.priority import Priority
from orchestra.runtime.log import logger
from orchestra.runtime.telling import raise_soon
from orchestra.runtime.waits import Circle


@attrs.frozen
class Gridlock:
    """Subsystems that wait for each other and cannot go on, for the lanes between them are full.

    `subsystems` has each of them once, in the order in which they wait for the next; the last waits for the
    first. `lanes` has the full lanes, each as its receiver and its level; one of the subsystems may wait for
    a reply instead.
    """

    subsystems: tuple[str, ...]
    lanes: tuple[tuple[str, Priority], ...]


class Gridlocks:
    """Tells the log and the hook of each circle, once in the life of an orchestra."""

    def __init__(self, hook: Callable[[Gridlock], object] | None = None) -> None:
        self._hook = hook
        self._told: set[frozenset[tuple[str, str, Priority | None]]] = set()

    def report(self, circle: Circle) -> None:
        """A send has closed a circle."""
        if circle.key in self._told:
            return
        self._told.add(circle.key)
        gridlock = Gridlock(circle.chain[:-1], circle.lanes)
        logger.warning("nothing moves any more: %s", circle, extra=attrs.asdict(gridlock, recurse=False))
        if self._hook is None:
            return
        try:
            self._hook(gridlock)
        except BaseException as error:
            logger.exception("the on_gridlock hook failed on %s", " -> ".join(circle.chain))
            raise_soon(error)
