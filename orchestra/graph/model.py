"""The graph as data, derived from a plan.

The plan is used by its shape alone: at run time this package imports no plan, so that a plan can
offer its graph.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs

from orchestra.graph.cycles import shortest_cycles
from orchestra.graph.naming import titles_of
from orchestra.messages import class_of
from orchestra.overflow import can_block

if TYPE_CHECKING:
    from orchestra.plan import LanePlan, Plan, Route, SubsystemPlan

OUTSIDE = "(outside)"
"""Name of the node that stands for all that is not a subsystem: no field can be called so."""

OUTGOING = "(outgoing)"
"""Name of the node that stands for `running.outgoing`."""


class NodeKind(enum.Enum):
    """What a node stands for."""

    SUBSYSTEM = "subsystem"
    WIP = "wip"
    OUTSIDE = "outside"
    OUTGOING = "outgoing"


class CycleKind(enum.Enum):
    """Whether a cycle can lock up.

    `LOCKS`: each sender on it may wait for room at the next, so all may wait for one another.
    `BROKEN`: on some edge no send waits for ever (its lanes are unbounded, or their policies fail or drop).
    """

    LOCKS = "locks"
    BROKEN = "broken"


@attrs.frozen
class Node:
    """A subsystem, the outside, or the way out. `lanes` are those of its inbox, most urgent first."""

    name: str
    kind: NodeKind
    lanes: tuple[LanePlan, ...] = ()


@attrs.frozen
class Carried:
    """A message type on an edge, as declared, and whether it travels there in a box."""

    message: Any
    boxed: bool


@attrs.frozen
class Edge:
    """All that one sender may send to one receiver.

    `lanes` are those the messages may take: every lane of the receiver, since a send may name its
    level. `can_block` is True when a send may wait for room on one of them without a limit of time: the
    lane is bounded and its policy is `Block` or `BlockFirst`. A policy that one send asks for is not seen.
    """

    sender: str
    receiver: str
    messages: tuple[Carried, ...]
    lanes: tuple[LanePlan, ...]
    can_block: bool


@attrs.frozen
class Cycle:
    """A circle of edges. `edges[0].sender` is the least name on it."""

    edges: tuple[Edge, ...]

    @property
    def path(self) -> tuple[str, ...]:
        """The names on it, each once."""
        return tuple(edge.sender for edge in self.edges)

    @property
    def kind(self) -> CycleKind:
        return CycleKind.BROKEN if self.breakers else CycleKind.LOCKS

    @property
    def breakers(self) -> tuple[Edge, ...]:
        """The edges on which no send waits without a limit."""
        return tuple(edge for edge in self.edges if not edge.can_block)

    def __str__(self) -> str:
        return " -> ".join((*self.path, self.path[0]))


@attrs.frozen
class Graph:
    """Who may send what to whom in one orchestra.

    There is one edge at most from one node to another. `unsent` are the consumed or subscribed
    types that no subsystem declares to send: they come from outside, and only for them the outside
    has edges. `cycles` holds a shortest cycle through each edge that lies on one, and besides it an
    all-blocking one through each edge that lies on such; what can lock up comes first.
    """

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    unsent: tuple[Any, ...]

    @cached_property
    def cycles(self) -> tuple[Cycle, ...]:
        edges = {(edge.sender, edge.receiver): edge for edge in self.edges}
        blocking = (pair for pair, edge in edges.items() if edge.can_block)
        paths = dict.fromkeys((*shortest_cycles(blocking), *shortest_cycles(edges)))
        cycles = [Cycle(tuple(edges[pair] for pair in _steps(path))) for path in paths]
        return tuple(sorted(cycles, key=lambda cycle: cycle.kind is CycleKind.BROKEN))

    @cached_property
    def titles(self) -> Mapping[Any, str]:
        """A short name for each message type on an edge; the module is in it where it must be."""
        return titles_of(carried.message for edge in self.edges for carried in edge.messages)

    def cycle_kind(self, edge: Edge) -> CycleKind | None:
        """The worst kind of cycle that `edge` lies on; None when it lies on none."""
        kinds = [cycle.kind for cycle in self.cycles if edge in cycle.edges]
        return CycleKind.LOCKS if CycleKind.LOCKS in kinds else next(iter(kinds), None)


def graph_of(plan: Plan) -> Graph:
    """The connection graph of `plan`."""
    inside = [edge for subsystem in plan.subsystems.values() for edge in _edges_from(plan, subsystem)]
    sent = {(edge.receiver, class_of(carried.message)) for edge in inside for carried in edge.messages}
    unsent = [route for route in plan.routes.values() if not route.outgoing and not _is_sent(route, sent)]
    edges = [*_edges_from_outside(plan, unsent), *inside]
    return Graph(
        name=plan.name,
        nodes=_nodes(plan, edges),
        edges=tuple(edges),
        unsent=tuple(route.message for route in unsent),
    )


def _steps(path: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    return zip(path, (*path[1:], path[0]), strict=True)


def _nodes(plan: Plan, edges: Iterable[Edge]) -> tuple[Node, ...]:
    ends = {end for edge in edges for end in (edge.sender, edge.receiver)}
    nodes = [Node(OUTSIDE, NodeKind.OUTSIDE)] if OUTSIDE in ends else []
    for subsystem in plan.subsystems.values():
        kind = NodeKind.WIP if subsystem.wip else NodeKind.SUBSYSTEM
        nodes.append(Node(subsystem.name, kind, subsystem.lanes if _receives(subsystem) else ()))
    if OUTGOING in ends:
        nodes.append(Node(OUTGOING, NodeKind.OUTGOING))
    return tuple(nodes)


def _receives(subsystem: SubsystemPlan) -> bool:
    return bool(subsystem.consumes or subsystem.subscribes)


def _edges_from_outside(plan: Plan, unsent: Iterable[Route]) -> list[Edge]:
    carried: dict[str, list[Carried]] = {}
    for route in unsent:
        for receiver in route.receivers:
            carried.setdefault(receiver, []).append(Carried(route.message, receiver in route.boxed))
    return [_edge(plan, OUTSIDE, receiver, messages) for receiver, messages in carried.items()]


def _edges_from(plan: Plan, subsystem: SubsystemPlan) -> list[Edge]:
    carried: dict[str, dict[Any, Carried]] = {}
    for sent in subsystem.sends:
        for message, route in _reached(plan, sent):
            boxed = plan.boxed_of(class_of(message))
            for receiver in route.receivers:
                one = Carried(message, receiver in boxed)
                carried.setdefault(receiver, {}).setdefault(message, one)
            if route.outgoing:
                carried.setdefault(OUTGOING, {}).setdefault(message, Carried(message, boxed=False))
    return [_edge(plan, subsystem.name, to, messages.values()) for to, messages in carried.items()]


def _reached(plan: Plan, sent: Any) -> Iterable[tuple[Any, Route]]:
    """Where a message declared as `sent` may go: to its own route, and to those of its subclasses."""
    cls = class_of(sent)
    own = plan.route_of(cls)
    for kind, route in plan.routes.items():
        if cls in kind.__mro__:
            yield route.message, route
        elif route is own:
            yield sent, route


def _edge(plan: Plan, sender: str, receiver: str, messages: Iterable[Carried]) -> Edge:
    if receiver == OUTGOING:
        return Edge(sender, receiver, tuple(messages), (), can_block=not math.isinf(plan.message_capacity))
    to = plan.subsystems[receiver]
    can_block = not to.wip and any(_can_block(lane) for lane in to.lanes)
    return Edge(sender, receiver, tuple(messages), to.lanes, can_block)


def _can_block(lane: LanePlan) -> bool:
    return can_block(lane.overflow) and lane.bounded


def _is_sent(route: Route, sent: set[tuple[str, type]]) -> bool:
    return any(route.kind in kind.__mro__ for receiver, kind in sent if receiver in route.receivers)
