"""The steps of a message: that each runs, that the sums are right, and what the tables say."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import parts, report
from benchmarks.harness import Group, measure
from benchmarks.messages import U8
from benchmarks.parts import section, tables, ways, wired
from benchmarks.parts.standins import Inbox, Lane, Turns
from benchmarks.parts.steps import Step, step_ns
from benchmarks.parts.wired import Wired
from benchmarks.ring import HOPS, asynchronous, synchronous
from benchmarks.send import Handler, Stopwatch, ToHandler

COUNT = 40


@pytest.fixture(params=range(len(parts.SECTIONS)), ids=lambda place: parts.SECTIONS[place].name)
def each_section(request: pytest.FixtureRequest) -> section.Section:
    return parts.SECTIONS[request.param]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that does not run, and is the running one."""
    loop = asyncio.new_event_loop()
    asyncio.events._set_running_loop(loop)
    yield loop
    asyncio.events._set_running_loop(None)
    loop.close()


def test_the_sums_of_a_section_are_those_of_its_rows(each_section: section.Section) -> None:
    rows = {case.name: case.run() for case in each_section.group(COUNT).cases}
    steps = {step.name: rows[step.name] for step in each_section.steps}
    needed = sum(steps[step.name] for step in each_section.steps if step.needed)
    whole = rows[next(iter(each_section.whole))]
    assert len(steps) == len(each_section.steps), "each step has a name of its own"
    assert rows[section.SUM] == pytest.approx(sum(steps.values()))
    assert rows[section.NEEDED] == pytest.approx(needed)
    assert rows[section.ADDED] == pytest.approx(whole - needed)
    assert rows[section.LEFT] == pytest.approx(whole - rows[section.TOGETHER])
    assert whole > 0
    assert rows[section.TOGETHER] > 0


def test_other_ways_are_measured_too() -> None:
    *_, tried = parts.groups(COUNT)
    assert {result.name for result in measure(tried, 1).results} >= {"await a future that is done"}


def test_what_is_part_of_a_step_and_does_not_count_is_taken_off() -> None:
    code = "sum(batch)"
    assert step_ns(Step("twice", f"{code}\n{code}", less=code), 2_000) < step_ns(
        Step("thrice", f"{code}\n{code}\n{code}"), 2_000
    )


def test_a_step_for_many_messages_counts_for_each_of_them() -> None:
    assert step_ns(Step("for each", "sum(batch)", each=100), 20_000) < step_ns(Step("", "sum(batch)"), 200)


def test_a_step_that_waits_is_refused_and_leaves_no_loop_behind() -> None:
    with pytest.raises(AssertionError, match="has waited"):
        step_ns(Step("wait", "await loop.create_future()"), 1)
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def _run(coroutine: Any) -> Any:
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    return ended.value.value


def test_generated_functions_hand_messages_over_without_an_orchestra() -> None:
    made, handler = Wired(ToHandler), Handler(10, Stopwatch())
    made.serve("handler", handler)
    for _ in range(3):
        assert _run(made.contexts["sender"].send(U8(7))) is True
    (step,) = made.turns.ready
    step()
    assert handler.left == 7
    assert made.inboxes["handler"].idle


@pytest.mark.parametrize("station", [synchronous, asynchronous])
def test_a_token_goes_one_hop_a_step_without_an_orchestra(
    station: Any, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    laps: list[None] = []
    monkeypatch.setattr(wired.Endless, "another", lambda track: laps.append(None) or True)
    names = wired.in_ring(station, coroutines=station is asynchronous)(loop)
    for _ in range(100 * (HOPS + 1)):
        names["following"]()()
    assert len(laps) == 100


def test_each_way_to_send_takes_the_message(loop: asyncio.AbstractEventLoop) -> None:
    lane = Lane(queue=asyncio.Queue()._queue)  # type: ignore[attr-defined]
    made = ways.made(loop, lane, Inbox((lane,), Turns(lane.queue.copy())))
    for name in ("closures", "defaults", "method"):
        assert made[name](U8(7)) is True
    assert list(lane.queue) == [U8(7)] * 3
    assert made["future"](U8(7)).result() is True
    assert list(made["exhausted"](U8(7)).__await__()) == []


def _record(version: str, group: Group, figure: float) -> dict[str, Any]:
    rows = [{"name": case.name, "median": figure, "ratio_to_floor": figure / 80} for case in group.cases]
    return {
        **report.machine(1, "asyncio"),
        "python": f"{version}.1",
        "groups": {group.name: {"title": group.title, "results": rows}},
    }


def test_a_table_has_the_code_and_the_figures_of_each_python() -> None:
    group = next(each for each in parts.groups(1) if each.name == "hop")
    rows = list(tables.table([_record("3.11", group, 40.0), _record("3.13", group, 80.0)], "hop"))
    assert rows[0].endswith("| code | ns, 3.11 | × floor | ns, 3.13 | × floor |")
    assert "| **make the next message** | `make(number - 1)` | 40 | 0.5 | 80 | 1.0 |" in rows
    assert any(
        "`inbox.idle = True; if inbox.idle and lane.room: inbox.idle = False; ready.append(inbox.work); "
        in row
        for row in rows
    )
    assert f"| {section.SUM} |  | 40 | 0.5 | 80 | 1.0 |" in rows
