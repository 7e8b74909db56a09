"""Who waits for whom: each waits for one other at most, so a circle is found by walking along.

Pure: it knows names, and asks whether one that waits can be reached all the same.
"""

from collections.abc import Callable

import attrs

from orchestra.priority import Priority


def _always() -> bool:
    return True


@attrs.frozen(eq=False)
class Edge:
    """That somebody waits for `target`, and what for.

    `lane` is the level of the lane that has no room, where that is what is waited for. An edge counts as
    long as it `holds`: a sender that was granted a place waits no longer, though it has not run yet.
    """

    target: str
    what: str
    lane: Priority | None = None
    holds: Callable[[], bool] = _always


@attrs.frozen(eq=False)
class Circle:
    """Some that wait for each other: `chain` has their names, and the first again at the end."""

    chain: tuple[str, ...]
    edges: tuple[Edge, ...]

    @property
    def key(self) -> frozenset[tuple[str, str, Priority | None]]:
        """What two reports of the same circle have in common, wherever they begin."""
        waiting = zip(self.chain, self.edges, strict=False)
        return frozenset((name, edge.target, edge.lane) for name, edge in waiting)

    @property
    def lanes(self) -> tuple[tuple[str, Priority], ...]:
        """The full lanes in it, each with its receiver."""
        return tuple((edge.target, edge.lane) for edge in self.edges if edge.lane is not None)

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
        chain, edges, last = [who], [edge], edge.target
        while last != who:
            following = self._edge_of(last)
            if following is None or len(edges) > len(self.asking) + len(self.sending):
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
            if sending.holds():
                return sending
            del self.sending[who]
        return self.asking.get(who)
