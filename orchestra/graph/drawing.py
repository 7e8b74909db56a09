"""A graph as text for Mermaid and for Graphviz.

A solid arrow may make its sender wait without a limit; a dashed one does not, since its lanes have no
bound, fail or drop. An arrow on a cycle that can lock
up is red, one on a cycle that is broken somewhere is orange.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from orchestra.graph.model import CycleKind, Edge, Graph, Node, NodeKind
from orchestra.overflow import shown_policy
from orchestra.priority import Priority

if TYPE_CHECKING:
    from orchestra.plan import LanePlan

_COLOURS = {CycleKind.LOCKS: "#d62728", CycleKind.BROKEN: "#ff9f1c"}
_NOTES = {CycleKind.LOCKS: "cycle: can lock up", CycleKind.BROKEN: "cycle: broken"}
_MERMAID_SHAPES = {
    NodeKind.SUBSYSTEM: ("[", "]"),
    NodeKind.WIP: ("[", "]"),
    NodeKind.OUTSIDE: ("([", "])"),
    NodeKind.OUTGOING: ("([", "])"),
}
_DOT_SHAPES = {
    NodeKind.SUBSYSTEM: "shape=box",
    NodeKind.WIP: "shape=box, style=dashed",
    NodeKind.OUTSIDE: "shape=ellipse",
    NodeKind.OUTGOING: "shape=ellipse",
}
_MERMAID_ENTITIES = str.maketrans(
    {"#": "#35;", '"': "#quot;", "&": "#amp;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\\": "#92;"}
)


def to_mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart."""
    return "\n".join(_mermaid_lines(graph)) + "\n"


def to_dot(graph: Graph) -> str:
    """The graph in the language of Graphviz."""
    return "\n".join(_dot_lines(graph)) + "\n"


def _mermaid_lines(graph: Graph) -> Iterator[str]:
    yield "flowchart LR"
    ids = _mermaid_ids(graph)
    for node in graph.nodes:
        opening, closing = _MERMAID_SHAPES[node.kind]
        yield f'    {ids[node.name]}{opening}"{_mermaid_text(_node_label(node))}"{closing}'
        if node.kind is NodeKind.WIP:
            yield f"    style {ids[node.name]} stroke-dasharray: 4 4"
    for edge in graph.edges:
        arrow = "-->" if edge.can_block else "-.->"
        label = _mermaid_text(_edge_label(graph, edge))
        yield f'    {ids[edge.sender]} {arrow}|"{label}"| {ids[edge.receiver]}'
    for number, edge in enumerate(graph.edges):
        kind = graph.cycle_kind(edge)
        if kind is not None:
            yield f"    linkStyle {number} stroke:{_COLOURS[kind]},stroke-width:2px"


def _mermaid_ids(graph: Graph) -> dict[str, str]:
    """Ids that are no words of the language and plain ASCII."""
    return {
        node.name: f"s_{node.name}" if node.name.isascii() and node.name.isidentifier() else f"n{number}"
        for number, node in enumerate(graph.nodes)
    }


def _mermaid_text(lines: list[str]) -> str:
    return "<br/>".join(line.translate(_MERMAID_ENTITIES) for line in lines)


def _dot_lines(graph: Graph) -> Iterator[str]:
    yield f"digraph {_dot_text([graph.name])} {{"
    yield "    rankdir=LR;"
    for node in graph.nodes:
        label = _dot_text(_node_label(node))
        yield f"    {_dot_text([node.name])} [label={label}, {_DOT_SHAPES[node.kind]}];"
    for edge in graph.edges:
        ends = f"{_dot_text([edge.sender])} -> {_dot_text([edge.receiver])}"
        yield f"    {ends} [label={_dot_text(_edge_label(graph, edge))}{_dot_style(graph, edge)}];"
    yield "}"


def _dot_style(graph: Graph, edge: Edge) -> str:
    kind = graph.cycle_kind(edge)
    dashes = "" if edge.can_block else ", style=dashed"
    return dashes if kind is None else f'{dashes}, color="{_COLOURS[kind]}", penwidth=2'


def _dot_text(lines: list[str]) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _node_label(node: Node) -> list[str]:
    name = node.name.strip("()") if node.kind in (NodeKind.OUTSIDE, NodeKind.OUTGOING) else node.name
    notes = ["wip: messages are dropped"] if node.kind is NodeKind.WIP else []
    return [name, *notes, *(_lane_label(lane) for lane in node.lanes if node.kind is NodeKind.SUBSYSTEM)]


def _lane_label(lane: LanePlan) -> str:
    limits = [] if math.isinf(lane.capacity) else [f"{lane.capacity:g}"]
    if lane.capacity_bytes is not None:
        limits.append(f"{lane.capacity_bytes} bytes")
    capacity = ", ".join(limits) or "unbounded"
    return f"{lane.priority.name} {capacity} {shown_policy(lane.overflow)}"


def _edge_label(graph: Graph, edge: Edge) -> list[str]:
    messages = [
        graph.titles[carried.message] + (" (boxed)" if carried.boxed else "") for carried in edge.messages
    ]
    kind = graph.cycle_kind(edge)
    notes = [] if kind is None else [_NOTES[kind]]
    levels = [lane.priority for lane in edge.lanes]
    if levels not in ([], [Priority.NORMAL]):
        notes.insert(0, "at " + ", ".join(level.name for level in levels))
    return [*messages, *notes]
