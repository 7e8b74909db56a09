"""The connection graph of a plan: who sends what to whom, which circles can lock up, drawings."""

from orchestra.graph.cycles import on_cycles
from orchestra.graph.drawing import to_dot, to_mermaid
from orchestra.graph.model import (
    OUTGOING,
    OUTSIDE,
    Carried,
    Cycle,
    CycleKind,
    Edge,
    Graph,
    Node,
    NodeKind,
    graph_of,
)

__all__ = [
    "OUTGOING",
    "OUTSIDE",
    "Carried",
    "Cycle",
    "CycleKind",
    "Edge",
    "Graph",
    "Node",
    "NodeKind",
    "graph_of",
    "on_cycles",
    "to_dot",
    "to_mermaid",
]
