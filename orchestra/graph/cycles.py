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


def on_cycles(ahead: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """The nodes from which a walk may come back; `ahead` has where the arrows of each node lead.

    The time grows with nodes and arrows alone: Tarjan's strongly connected components, without recursion.
    """
    found: set[str] = set()
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in ahead:
        walk = [(root, iter(ahead[root]))] if root not in number else []
        while walk:
            node, targets = walk[-1]
            if node not in number:
                number[node] = lowest[node] = len(number)
                stack.append(node)
                on_stack.add(node)
            for target in targets:
                if target == node:
                    found.add(node)
                if target not in number and target in ahead:
                    walk.append((target, iter(ahead[target])))
                    break
                if target in on_stack:
                    lowest[node] = min(lowest[node], number[target])
            else:
                walk.pop()
                if walk:
                    before = walk[-1][0]
                    lowest[before] = min(lowest[before], lowest[node])
                if lowest[node] == number[node]:
                    component = [stack.pop()]
                    while component[-1] != node:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    if len(component) > 1:
                        found.update(component)
    return frozenset(found)


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
