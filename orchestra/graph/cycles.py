"""Cycles of a directed graph, told so that each arrow on a cycle is seen in one."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence


def shortest_cycles(arrows: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """The shortest cycle through each arrow that lies on one, without repeats.

    All simple cycles can be exponentially many; these are at most as many as the arrows, and no
    arrow that lies on a cycle is left out. A cycle starts at its least node, and the shortest
    cycles come first.
    """
    targets: dict[str, list[str]] = {}
    pairs = list(dict.fromkeys(arrows))
    for tail, head in pairs:
        targets.setdefault(tail, []).append(head)
    found: dict[tuple[str, ...], None] = {}
    for tail, head in pairs:
        path = _shortest_path(targets, head, tail)
        if path is not None:
            found[_from_least(path)] = None
    return tuple(sorted(found, key=lambda cycle: (len(cycle), cycle)))


def _shortest_path(targets: Mapping[str, Sequence[str]], start: str, goal: str) -> tuple[str, ...] | None:
    came_from: dict[str, str | None] = {start: None}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        if node == goal:
            return _trace(came_from, goal)
        for target in targets.get(node, ()):
            if target not in came_from:
                came_from[target] = node
                waiting.append(target)
    return None


def _trace(came_from: Mapping[str, str | None], goal: str) -> tuple[str, ...]:
    path: list[str] = []
    node: str | None = goal
    while node is not None:
        path.append(node)
        node = came_from[node]
    return tuple(reversed(path))


def _from_least(cycle: tuple[str, ...]) -> tuple[str, ...]:
    least = cycle.index(min(cycle))
    return cycle[least:] + cycle[:least]
