"""Who waits for whom: each waits for one other at most, so a circle is found by walking along.

Pure: it knows names, and asks whether one that waits can be reached all the same.
"""

from collections.abc import Callable
from typing import Protocol

import attrs

from orchestra.priority import Priority


class Edge(Protocol):
    """What somebody waits for."""

    @property
    def target(self) -> str | None:
        """Who could end the wait; None when that is not a single one."""
        ...

    @property
    def what(self) -> str:
        """What is waited for, in words."""
        ...

    @property
    def lane(self) -> Priority | None:
        """The level of the lane that has no room, where that is what is waited for."""
        ...

    @property
    def holds(self) -> bool:
        """Whether it waits still: a sender that was granted a place does not, though it has not run yet."""
        ...


@attrs.frozen(eq=False)
class Circle:
    """Some that wait for each other: `chain` has their names, and the first again at the end."""

    chain: tuple[str, ...]
    edges: tuple[Edge, ...]

    @property
    def key(self) -> frozenset[tuple[str, str, Priority | None]]:
        """What two reports of the same circle have in common, wherever they begin."""
        waiting = zip(self.chain, self.chain[1:], self.edges, strict=False)
        return frozenset((name, other, edge.lane) for name, other, edge in waiting)

    @property
    def lanes(self) -> tuple[tuple[str, Priority], ...]:
        """The full lanes in it, each with its receiver."""
        waited = zip(self.chain[1:], self.edges, strict=True)
        return tuple((name, edge.lane) for name, edge in waited if edge.lane is not None)

    def __str__(self) -> str:
        waiting = zip(self.chain, self.edges, strict=False)
        told = "; ".join(f"{name!r} waits for {edge.what}" for name, edge in waiting)
        return f"{' -> '.join(self.chain)}: {told}"


class Waits:
    """The edges of those that wait: in an ask, or, for a while within it or without one, in a send.

    `free` tells whether one that waits still receives, in another task, so that it holds up nobody.
    """

    def __init__(self, free: Callable[[str], bool]) -> None:
        self._free = free
        self.asking: dict[str, Edge] = {}
        self.sending: dict[str, Edge] = {}

    def circle(self, who: str, edge: Edge) -> Circle | None:
        """The circle that `edge`, from `who`, would close, in as many steps as it is long."""
        last = edge.target
        if last not in self.asking and last not in self.sending and last != who:
            return None
        chain, edges = [who], [edge]
        while last != who:
            following = None if last is None else self._edge_of(last)
            if last is None or following is None or len(edges) > len(self.asking) + len(self.sending):
                return None
            chain.append(last)
            edges.append(following)
            last = following.target
        if any(map(self._free, chain)):
            return None
        return Circle((*chain, who), tuple(edges))

    def forget(self, who: str) -> None:
        """It has ended."""
        self.asking.pop(who, None)
        self.sending.pop(who, None)

    def _edge_of(self, who: str) -> Edge | None:
        sending = self.sending.get(who)
        if sending is not None:
            if sending.holds:
                return sending
            del self.sending[who]
        return self.asking.get(who)
