"""Which inboxes end, because nothing more can come to them.

Pure: it knows names and who may send to whom, and asks whether a part rests.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

import attrs


@attrs.frozen
class Group:
    """Parts that can all reach each other by messages; mostly a single one.

    `senders` are those outside the group that may send to a member. `circular` is True when a member
    may send to itself or to another member.
    """

    members: tuple[str, ...]
    senders: frozenset[str]
    circular: bool


def groups_of(senders: Mapping[str, Collection[str]]) -> tuple[Group, ...]:
    """Split the parts into groups; `senders` maps each part to those that may send to it."""
    return tuple(_group(members, senders) for members in _components(senders))


def ending(
    groups: Collection[Group],
    rests: Callable[[str], bool],
    awaited: Callable[[str], bool],
) -> Iterator[str]:
    """The parts whose inboxes end, when nothing comes from outside any more.

    The groups are of those parts that have not finished. A group's inboxes end when nobody else may send to
    it, and, if its members may send to each other, all of them rest. An inbox for which a sender still waits
    does not end.
    """
    for group in groups:
        if group.senders:
            continue
        if all(map(rests, group.members)) if group.circular else not awaited(group.members[0]):
            yield from group.members


def _group(members: tuple[str, ...], senders: Mapping[str, Collection[str]]) -> Group:
    inside = set(members)
    every = {sender for name in members for sender in senders[name]}
    return Group(members, frozenset(every - inside), bool(every & inside))


def _components(senders: Mapping[str, Collection[str]]) -> Iterator[tuple[str, ...]]:
    """The strongly connected components, by Tarjan's algorithm, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in senders:
        if root in index:
            continue
        work = [(root, iter(senders[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            name, following = work[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(senders[other])))
                    break
                if other in on_stack:
                    low[name] = min(low[name], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    yield _pop_component(name, stack, on_stack)


def _pop_component(root: str, stack: list[str], on_stack: set[str]) -> tuple[str, ...]:
    members = []
    while True:
        name = stack.pop()
        on_stack.discard(name)
        members.append(name)
        if name == root:
            return tuple(reversed(members))
