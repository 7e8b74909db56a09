"""The connection graph: edges, cycles told by kind, unsent messages, drawings. Plans are made by hand."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.errors import OrchestraError
from orchestra.graph import OUTGOING, OUTSIDE, CycleKind, Graph, NodeKind, graph_of, to_dot, to_mermaid
from orchestra.graph.cycles import on_cycles, shortest_cycles
from orchestra.overflow import Block, BlockFirst, Drop, DropOldest, Fail, Overflow
from orchestra.plan import LanePlan, Plan, Route, Style, SubsystemPlan
from orchestra.priority import Priority

T = TypeVar("T")


class A: ...


class B: ...


class C: ...


class Child(A): ...


class GrandChild(Child): ...


class Page(Generic[T]): ...


def lane(
    capacity: float = 8, overflow: Overflow | None = None, priority: Priority = Priority.NORMAL
) -> LanePlan:
    return LanePlan(priority, capacity, overflow or Block())


def part(
    name: str,
    consumes: Sequence[Any] = (),
    sends: Sequence[Any] = (),
    *,
    subscribes: Sequence[Any] = (),
    lanes: Sequence[LanePlan] | None = None,
    boxed: bool = False,
    wip: bool = False,
) -> SubsystemPlan:
    return SubsystemPlan(
        name=name,
        kind=object,
        style=Style.ACTOR,
        consumes=tuple(consumes),
        subscribes=tuple(subscribes),
        sends=tuple(sends),
        boxed=boxed,
        wip=wip,
        lanes=tuple(lanes) if lanes is not None else (lane(),),
        signal_capacity=64,
        handlers=(),
        hooks={},
        has_priority=False,
        senders=(),
    )


def plan(*parts: SubsystemPlan, outgoing: Sequence[type] = ()) -> Plan:
    receivers: dict[Any, list[SubsystemPlan]] = {message: [] for message in outgoing}
    for one in parts:
        for message in (*one.consumes, *one.subscribes):
            receivers.setdefault(message, []).append(one)
    routes = {
        getattr(message, "__origin__", message): Route(
            message=message,
            kind=getattr(message, "__origin__", message),
            receivers=tuple(one.name for one in those),
            outgoing=message in outgoing,
            boxed=frozenset(one.name for one in those if one.boxed),
        )
        for message, those in receivers.items()
    }
    values: dict[str, Any] = {
        "cls": object,
        "name": "App",
        "module": __name__,
        "subsystems": {one.name: one for one in parts},
        "messages": tuple(receivers),
        "signals": (),
        "events": (),
        "outgoing": tuple(outgoing),
        "routes": routes,
        "error": OrchestraError,
        "gen": "AllMessages",
        "message_capacity": 64,
        "event_capacity": 64,
        "has_on_event": False,
    }
    names = {field.name for field in attrs.fields(Plan)}
    return Plan(**{name: value for name, value in values.items() if name in names})


def edges(graph: Graph) -> Mapping[tuple[str, str], list[Any]]:
    return {(edge.sender, edge.receiver): [one.message for one in edge.messages] for edge in graph.edges}


def test_an_edge_runs_from_each_sender_to_the_receiver_and_carries_all_its_types() -> None:
    graph = graph_of(plan(part("one", sends=[A, B]), part("two", [A, B], [C]), part("three", [C])))
    assert edges(graph) == {("one", "two"): [A, B], ("two", "three"): [C]}
    assert [node.name for node in graph.nodes] == ["one", "two", "three"]
    assert graph.unsent == () and graph.cycles == ()


def test_a_broadcast_type_has_an_edge_to_every_subscriber() -> None:
    graph = graph_of(plan(part("one", sends=[A]), part("two", subscribes=[A]), part("three", subscribes=[A])))
    assert edges(graph) == {("one", "two"): [A], ("one", "three"): [A]}


def test_a_subsystem_without_edges_is_a_node_without_lanes() -> None:
    (node,) = graph_of(plan(part("alone"))).nodes
    assert (node.name, node.kind, node.lanes) == ("alone", NodeKind.SUBSYSTEM, ())


def test_a_sent_base_reaches_the_consumers_of_its_subclasses_and_a_sent_child_its_nearest_base() -> None:
    base = graph_of(plan(part("one", sends=[A]), part("two", [A]), part("three", [Child])))
    assert edges(base) == {("one", "two"): [A], ("one", "three"): [Child]}
    child = graph_of(plan(part("one", sends=[GrandChild]), part("two", [A]), part("three", [Child])))
    assert edges(child) == {("one", "three"): [GrandChild], (OUTSIDE, "two"): [A]}


def test_a_subscripted_generic_is_told_by_its_own_name() -> None:
    graph = graph_of(plan(part("one", sends=[Page[int]]), part("two", [Page[int]])))
    assert edges(graph) == {("one", "two"): [Page[int]]}
    assert graph.titles[Page[int]] == "Page[int]"


def test_types_that_nobody_inside_sends_come_from_the_outside_node() -> None:
    graph = graph_of(plan(part("one", [A], [B]), part("two", [B])))
    assert edges(graph) == {(OUTSIDE, "one"): [A], ("one", "two"): [B]}
    assert graph.unsent == (A,) and graph.nodes[0].kind is NodeKind.OUTSIDE


def test_a_consumed_base_of_which_only_a_subclass_is_sent_is_not_unsent() -> None:
    graph = graph_of(plan(part("one", sends=[Child]), part("two", [A])))
    assert graph.unsent == () and edges(graph) == {("one", "two"): [Child]}


def test_outgoing_types_lead_to_the_outgoing_node() -> None:
    graph = graph_of(plan(part("one", sends=[A]), outgoing=[A]))
    assert edges(graph) == {("one", OUTGOING): [A]} and graph.nodes[-1].kind is NodeKind.OUTGOING


@pytest.mark.parametrize(
    ("lanes", "blocks"),
    [
        ([lane()], True),
        ([lane(math.inf)], False),
        ([lane(8, Fail())], False),
        ([lane(8, Drop())], False),
        ([lane(8, DropOldest())], False),
        ([lane(8, BlockFirst())], True),
        ([lane(math.inf, BlockFirst())], False),
        ([lane(8, Drop(), Priority.HIGH), lane(8, BlockFirst())], True),
        ([lane(8, DropOldest(), Priority.HIGH), lane(8, Drop())], False),
        ([lane(8, Fail(), Priority.HIGH), lane()], True),
        ([lane(8, Fail(), Priority.HIGH), lane(math.inf)], False),
    ],
)
def test_an_edge_can_block_if_one_lane_of_the_receiver_is_bounded_and_blocks(
    lanes: list[LanePlan], blocks: bool
) -> None:
    (edge,) = graph_of(plan(part("one", sends=[A]), part("two", [A], lanes=lanes))).edges
    assert edge.can_block is blocks and edge.lanes == tuple(lanes)


def test_a_message_to_work_in_progress_never_blocks() -> None:
    graph = graph_of(plan(part("one", [B], [A]), part("two", [A], [B], wip=True)))
    assert [edge.can_block for edge in graph.edges] == [False, True]
    assert graph.cycles[0].kind is CycleKind.BROKEN


def test_boxed_is_told_for_each_receiver() -> None:
    graph = graph_of(
        plan(part("one", sends=[A]), part("two", subscribes=[A], boxed=True), part("three", subscribes=[A]))
    )
    assert [(edge.receiver, edge.messages[0].boxed) for edge in graph.edges] == [
        ("two", True),
        ("three", False),
    ]


def test_a_cycle_of_blocking_edges_can_lock_up() -> None:
    graph = graph_of(plan(part("ping", [A], [B]), part("pong", [B], [A])))
    (cycle,) = graph.cycles
    assert cycle.kind is CycleKind.LOCKS and cycle.path == ("ping", "pong")
    assert str(cycle) == "ping -> pong -> ping" and cycle.breakers == ()


def test_a_subsystem_that_sends_to_itself_is_a_cycle_of_one() -> None:
    (cycle,) = graph_of(plan(part("one", [A], [A]))).cycles
    assert cycle.path == ("one",) and cycle.kind is CycleKind.LOCKS


def test_an_unbounded_lane_or_one_that_fails_or_drops_breaks_a_cycle() -> None:
    for breaking in (lane(math.inf), lane(8, Fail()), lane(8, Drop(60)), lane(8, DropOldest())):
        graph = graph_of(plan(part("ping", [A], [B]), part("pong", [B], [A], lanes=[breaking])))
        (cycle,) = graph.cycles
        assert cycle.kind is CycleKind.BROKEN
        assert [edge.receiver for edge in cycle.breakers] == ["pong"]


def test_a_lane_on_which_the_first_sender_waits_breaks_no_cycle() -> None:
    waits = lane(8, BlockFirst())
    (cycle,) = graph_of(plan(part("ping", [A], [B]), part("pong", [B], [A], lanes=[waits]))).cycles
    assert cycle.kind is CycleKind.LOCKS and cycle.breakers == ()


def test_an_all_blocking_cycle_is_found_behind_a_shorter_broken_one() -> None:
    never = lane(math.inf)
    graph = graph_of(
        plan(
            part("a", [A], [B]),
            part("b", [B], [C, A]),
            part("c", [C], [A, B], lanes=[never]),
            part("d", sends=[A]),
        )
    )
    assert [(cycle.path, cycle.kind) for cycle in graph.cycles] == [
        (("a", "b"), CycleKind.LOCKS),
        (("b", "c"), CycleKind.BROKEN),
        (("a", "b", "c"), CycleKind.BROKEN),
    ]


def test_the_outside_is_on_no_cycle() -> None:
    graph = graph_of(plan(part("one", [A], [B]), outgoing=[B]))
    assert graph.cycles == ()


def test_thirty_subsystems_that_all_send_to_all_are_told_in_bounded_time() -> None:
    kinds = [type(f"M{number}", (), {}) for number in range(30)]
    graph = graph_of(plan(*(part(f"p{number}", [kind], kinds) for number, kind in enumerate(kinds))))
    assert len(graph.cycles) == 30 + 30 * 29 // 2


arrows = st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=14)


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh"))))
def test_what_is_on_a_cycle_is_what_the_shortest_cycles_go_through(arrows: list[tuple[str, str]]) -> None:
    ahead: dict[str, list[str]] = {}
    for tail, head in arrows:
        ahead.setdefault(tail, []).append(head)
    assert on_cycles(ahead) == {node for cycle in shortest_cycles(arrows) for node in cycle}


def test_a_long_chain_and_a_long_ring_need_no_recursion() -> None:
    chain = {str(place): [str(place + 1)] for place in range(20_000)}
    assert on_cycles(chain) == frozenset()
    assert on_cycles({**chain, "20000": ["0"]}) == {str(place) for place in range(20_001)}


@given(arrows)
def test_each_arrow_on_a_cycle_is_in_a_told_cycle_and_told_cycles_are_cycles(
    some: set[tuple[str, str]],
) -> None:
    cycles = shortest_cycles(sorted(some))
    told = {pair for path in cycles for pair in zip(path, (*path[1:], path[0]), strict=True)}
    assert told <= some and all(len(set(path)) == len(path) and min(path) == path[0] for path in cycles)
    reach = set(some)
    for middle in "abcdef":
        reach |= {(a, d) for a, b in reach if b == middle for c, d in reach if c == middle}
    assert told == {(tail, head) for tail, head in some if tail == head or (head, tail) in reach}


def drawn() -> Graph:
    wide = [lane(4, Fail(), Priority.HIGH), lane(math.inf)]
    return graph_of(
        plan(
            part("end", [A], [B], boxed=True),
            part("pong", [B], [A, C]),
            part("zähler", [C], [C], lanes=wide),
            part("later", [Page[int]], wip=True),
        )
    )


def test_mermaid_shows_nodes_types_boxes_levels_and_cycles() -> None:
    text = to_mermaid(drawn())
    assert text.startswith("flowchart LR\n")
    assert 's_end["end<br/>DATA 8 Block"]' in text
    assert 's_pong -->|"A (boxed)<br/>cycle: can lock up"| s_end' in text
    assert '-.->|"C<br/>at DATA_HIGH, DATA<br/>cycle: broken"|' in text
    assert "DATA_HIGH 4 Fail<br/>DATA unbounded Fail" not in text and "DATA unbounded Block" in text
    assert "wip: messages are dropped" in text and '(["outside"])' in text
    assert len(re.findall(r"linkStyle \d+ stroke:#d62728", text)) == 2
    assert len(re.findall(r"linkStyle \d+ stroke:#ff9f1c", text)) == 1


def test_dot_shows_nodes_types_boxes_levels_and_cycles() -> None:
    text = to_dot(drawn())
    assert text.startswith('digraph "App" {\n') and text.endswith("}\n")
    assert '"pong" -> "end" [label="A (boxed)\\ncycle: can lock up", color="#d62728", penwidth=2];' in text
    assert '"zähler" -> "zähler" [label="C\\nat DATA_HIGH, DATA\\ncycle: broken", style=dashed' in text
    assert '"(outside)" -> "later" [label="Page[int]", style=dashed];' in text


def test_drawings_show_each_policy_and_the_wait_of_one_that_drops() -> None:
    levels = [
        lane(1, DropOldest(), Priority.REAL_TIME),
        lane(2, BlockFirst(), Priority.HIGH),
        lane(4, Drop(0.0025)),
        lane(8, Drop(0), Priority.BACKGROUND),
    ]
    graph = graph_of(plan(part("one", [A], lanes=levels), part("two", [B], [A], lanes=[lane(8, Drop(1))])))
    shown = ("REAL_TIME 1 DropOldest", "DATA_HIGH 2 BlockFirst", "DATA 4 Drop after 2.5 ms")
    last = "BACKGROUND 8 Drop at once"
    assert "<br/>".join(("one", *shown, last)) in to_mermaid(graph)
    assert "\\n".join(("one", *shown, last)) in to_dot(graph)
    assert "DATA 8 Drop after 1000 ms" in to_dot(graph)


def test_an_arrow_to_lanes_that_drop_is_dashed() -> None:
    lossy = [lane(8, Drop(), Priority.HIGH), lane(8, DropOldest())]
    graph = graph_of(plan(part("one", sends=[A]), part("two", [A], lanes=lossy)))
    assert "s_one -.->|" in to_mermaid(graph) and "style=dashed" in to_dot(graph)


def test_quotes_and_backslashes_in_names_are_escaped() -> None:
    odd = type('Odd"\\<x>', (), {})
    graph = graph_of(plan(part("one", [odd])))
    assert 'Odd\\"\\\\<x>' in to_dot(graph)
    assert "Odd#quot;#92;#lt;x#gt;" in to_mermaid(graph)


def test_types_of_one_name_are_told_apart_by_their_modules() -> None:
    twin = type("A", (), {"__module__": "elsewhere"})
    graph = graph_of(plan(part("one", [A, twin])))
    assert set(graph.titles.values()) == {f"{__name__}.A", "elsewhere.A"}


def test_a_plan_offers_its_graph_and_makes_it_once() -> None:
    made = plan(part("one", sends=[A]), part("two", [A]))
    assert made.graph == graph_of(made)
    assert made.graph is made.graph
