"""Who waits for whom: for one other, or, in a send to several, for room with each of them.

Pure: it knows names, and asks whether one that waits can be reached all the same.
"""

from collections import deque
from collections.abc import Callable, Sequence
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
        if len(self.edges) == 1 and self.edges[0].lane is not None:
            (name, _), (edge,) = self.chain, self.edges
            return f"{name!r} sends to itself, and waits for {edge.what}, from which nobody else takes"
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
        self.sending: dict[str, list[Edge]] = {}

    def send(self, who: str, edge: Edge) -> None:
        """`who` waits for room, perhaps in other lanes at the same time."""
        self.sending[who] = [*self._sending(who), edge]

    def circle(self, who: str, edge: Edge) -> Circle | None:
        """The shortest circle that `edge`, from `who`, would close."""
        first = edge.target
        if first not in self.asking and first not in self.sending and first != who:
            return None
        came: dict[str, tuple[str, Edge]] = {}
        ahead = deque([(who, edge)])
        while ahead:
            before, edge = ahead.popleft()
            name = edge.target
            if name is None or name in came or self._free(before):
                continue
            came[name] = before, edge
            if name == who:
                return _circle(who, came)
            ahead.extend((name, each) for each in self._edges_of(name))
        return None

    def forget(self, who: str) -> None:
        """It has ended."""
        self.asking.pop(who, None)
        self.sending.pop(who, None)

    def _edges_of(self, who: str) -> Sequence[Edge]:
        sending = self._sending(who)
        if sending or who not in self.asking:
            return sending
        return (self.asking[who],)

    def _sending(self, who: str) -> list[Edge]:
        edges = self.sending.get(who)
        if edges is None:
            return []
        holding = self.sending[who] = [edge for edge in edges if edge.holds]
        if not holding:
            del self.sending[who]
        return holding


def _circle(who: str, came: dict[str, tuple[str, Edge]]) -> Circle:
    """The circle at whose end one has come to `who` again; `came` has for each where one came from."""
    before, edge = came[who]
    chain, edges = [before, who], [edge]
    while chain[0] != who:
        before, edge = came[before]
        chain.insert(0, before)
        edges.insert(0, edge)
    return Circle(tuple(chain), tuple(edges))
