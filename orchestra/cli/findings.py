"""What `orchestra check` finds in a plan. Nothing here prints."""

import enum
import math
from collections.abc import Iterator

import attrs

from orchestra.cli.annotations import wrong_annotations
from orchestra.cli.boxes import uncounted, what_auto_decides, what_boxes_cost, what_counts_nothing, what_rides
from orchestra.cli.hooks import misspelt_hooks
from orchestra.cli.sharing import what_is_shared
from orchestra.graph import Cycle, CycleKind, Graph, NodeKind
from orchestra.overflow import can_block, can_drop, shown_policy
from orchestra.plan import Plan


class Level(enum.Enum):
    """How bad a finding is. Errors fail the check; warnings do so under `--strict`."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@attrs.frozen
class Finding:
    """One thing to know about an orchestra, in one line."""

    level: Level
    text: str

    def __str__(self) -> str:
        return f"{self.level.value}: {self.text}"


def findings_of(plan: Plan) -> tuple[Finding, ...]:
    """All findings, the worst first."""
    graph = plan.graph
    found = [
        *_cycles(graph),
        *_unbounded_lanes(plan),
        *_unsent(plan, graph),
        *_losses(plan, graph),
        *(Finding(Level.WARNING, text) for text in wrong_annotations(plan)),
        *(Finding(Level.INFO, text) for text in misspelt_hooks(plan)),
        *(Finding(Level.INFO, text) for text in what_is_shared(plan)),
        *(Finding(Level.INFO, text) for text in what_auto_decides(plan)),
        *(Finding(Level.INFO, text) for text in what_rides(plan)),
        *(Finding(Level.INFO, text) for text in what_counts_nothing(plan)),
        *(Finding(Level.INFO, text) for text in what_boxes_cost(plan)),
    ]
    levels = list(Level)
    return tuple(sorted(found, key=lambda finding: levels.index(finding.level)))


def _cycles(graph: Graph) -> Iterator[Finding]:
    for cycle in graph.cycles:
        if cycle.kind is CycleKind.LOCKS:
            yield Finding(
                Level.ERROR,
                f"cycle {_told(graph, cycle)} can lock up: every send on it may wait for room; "
                "give one of the lanes `overflow=Fail()`, or no bound",
            )
        else:
            never = ", ".join(f"{edge.sender} -> {edge.receiver}" for edge in cycle.breakers)
            yield Finding(
                Level.INFO,
                f"cycle {_told(graph, cycle)} cannot lock up: no send waits without a limit on {never}",
            )


def _told(graph: Graph, cycle: Cycle) -> str:
    """`a -[Ping]-> b -[Pong, Pang]-> a`."""
    steps = [
        f"{edge.sender} -[{', '.join(graph.titles[carried.message] for carried in edge.messages)}]->"
        for edge in cycle.edges
    ]
    return " ".join((*steps, cycle.path[0]))


def _unbounded_lanes(plan: Plan) -> Iterator[Finding]:
    sizeless = {name for _, receivers in uncounted(plan) for name in receivers}
    for subsystem in plan.subsystems.values():
        for lane in subsystem.lanes:
            if not lane.bounded or (math.isinf(lane.capacity) and subsystem.name in sizeless):
                yield Finding(
                    Level.WARNING,
                    f"the {lane.priority.name} lane of {subsystem.name!r} is unbounded: "
                    "a slow receiver lets it grow until memory ends",
                )


def _unsent(plan: Plan, graph: Graph) -> Iterator[Finding]:
    source = "outside or on_event" if plan.has_on_event else "outside"
    receivers: dict[str, list[str]] = {}
    for edge in graph.edges:
        for carried in edge.messages:
            if carried.message in graph.unsent:
                receivers.setdefault(graph.titles[carried.message], []).append(repr(edge.receiver))
    for title, names in receivers.items():
        yield Finding(
            Level.INFO,
            f"no subsystem declares to send {title} (to {', '.join(names)}): it comes from {source}, "
            "by a recipient, or by a timer of its receiver",
        )


def _losses(plan: Plan, graph: Graph) -> Iterator[Finding]:
    """The lanes that may lose messages because they are full, and by what."""
    for node in graph.nodes:
        if node.kind is not NodeKind.SUBSYSTEM:
            continue
        limit = plan.subsystems[node.name].evict_after
        for lane in node.lanes:
            if not lane.bounded:
                continue
            why = [shown_policy(lane.overflow)] if can_drop(lane.overflow) else []
            if limit is not None and can_block(lane.overflow):
                why.append(f"senders are freed after {limit:g} s")
            if why:
                yield Finding(
                    Level.INFO,
                    f"the {lane.priority.name} lane of {node.name!r} may lose messages when it is full: "
                    f"{', '.join(why)}",
                )
