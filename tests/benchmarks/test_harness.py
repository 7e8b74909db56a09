"""Rounds, ratios, bars and what is written of them."""

import json
import os
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from benchmarks import loops, report
from benchmarks.bars import BARS, FASTEST_SEND, PACED, TO_THREAD, U8_PLAIN, beside
from benchmarks.floor import floor_ns
from benchmarks.harness import Case, Group, Lead, Report, Result, measure, pinned


def _group(*cases: Case, relative: bool = True) -> Group:
    return Group(name="some", title="some work", unit="ns", cases=cases, relative=relative)


def _values(*values: float) -> Callable[[], float]:
    return cycle(values).__next__


def test_the_cases_take_turns() -> None:
    turns: list[str] = []

    def turn(name: str) -> Callable[[], float]:
        return lambda: turns.append(name) or 1.0

    measure(_group(Case("a", turn("a")), Case("b", turn("b"))), 2, floor=lambda: 1.0)
    assert turns == ["a", "b"] * 3


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    found = measure(_group(Case("a", _values(300, 100, 200))), 3, floor=_values(50, 100, 100))
    assert found.results[0].cost == 200
    assert found.results[0].ratio == 2.0
    assert found.floor == 100


def test_the_first_run_only_warms_up() -> None:
    found = measure(_group(Case("a", iter([1000.0, 1.0, 1.0, 1.0]).__next__)), 3, floor=lambda: 1.0)
    assert (found.results[0].cost, found.results[0].high) == (1.0, 1.0)


def test_a_group_that_is_not_relative_is_held_to_its_cost() -> None:
    found = measure(_group(Case("a", lambda: 7.0), relative=False), 1, floor=lambda: 2.0)
    assert found.results[0].ratio is None
    assert found.results[0].figure == 7.0


def test_a_ratio_may_be_to_another_case_of_the_same_round() -> None:
    first = Case("first", _values(0, 50, 150, 400), "alone")
    alone = Case("alone", _values(0, 100, 200, 400), "alone")
    found = measure(_group(first, alone), 3, floor=lambda: 7.0)
    assert [result.ratio for result in found.results] == [0.75, 1.0]
    assert [result.against for result in found.results] == ["alone", "alone"]


def test_a_group_may_ask_for_fewer_rounds() -> None:
    group = Group("some", "some work", "ns", [Case("a", lambda: 1.0)], rounds=2)
    assert measure(group, 5, floor=lambda: 1.0).rounds == 2
    assert measure(group, 1, floor=lambda: 1.0).rounds == 1


def test_a_case_is_measured_on_each_loop_and_has_its_ratio_there() -> None:
    def cost() -> float:
        return {"asyncio": 10.0, "uvloop": 30.0}[loops.chosen()]

    cases = [Case("a", cost), Case("beside", lambda: 100.0, on_loop=False)]
    lead = Lead("the fastest", "a", ["beside"])
    group = Group("some", "some work", "ns", cases, leads=[lead])
    found = measure(group, 2, floor=lambda: 10.0, beside=["uvloop"])
    assert {name: each.figure for name, each in found.figures().items()} == {
        "a": 1.0,
        "a (uvloop)": 3.0,
        "beside": 10.0,
        "the fastest": 10.0,
        "the fastest (uvloop)": 100 / 30,
    }
    heading, first, second = report.rows(found)
    assert "on uvloop" in heading
    assert first[4:6] == ("30.0", "3.0")
    assert second[4:6] == ("", "")
    assert report.leads(found)[0] == "the fastest: takes 10.0 times as long as a"


def test_one_loop_may_be_enough() -> None:
    group = Group("some", "some work", "ns", [Case("a", lambda: 1.0)], one_loop=True)
    assert not measure(group, 1, floor=lambda: 1.0, beside=["uvloop"]).results[0].elsewhere


def test_a_lead_is_to_the_fastest_of_each_round() -> None:
    cases = [Case("ours", lambda: 10.0), Case("b", _values(0, 20, 90)), Case("c", _values(0, 80, 40))]
    group = Group("some", "some work", "ns", cases, leads=[Lead("fastest", "ours", ["b", "c", "absent"])])
    assert measure(group, 2, floor=lambda: 1.0).leads[0].ratio == 3.0
    without = Group("some", "some work", "ns", cases[:1], leads=[Lead("fastest", "ours", ["absent"])])
    assert measure(without, 2, floor=lambda: 1.0).leads == []


def test_a_cold_group_runs_once_a_round() -> None:
    runs: list[None] = []
    case = Case("a", lambda: runs.append(None) or 1.0)
    measure(Group("some", "some work", "ns", [case], cold=True), 2, floor=lambda: 1.0)
    assert len(runs) == 2


def test_marks_are_on_a_logarithmic_scale() -> None:
    assert [len(report.marks(figure, 1000.0)) for figure in (1000, 100, 10, 0.1, 0)] == [20, 13, 7, 1, 0]


@pytest.mark.parametrize(
    ("ratio", "factor", "expected"), [(0.95, 1, True), (0.94, 1, False), (0.48, 2, True), (0.47, 2, False)]
)
def test_a_rate_must_reach_a_part_of_its_bar(ratio: float, factor: float, expected: bool) -> None:
    result = Result("a", ratio * 100, 0, 0, ratio=ratio, bar=0.95, against="alone", at_least=True)
    assert result.within(factor) is expected


def test_a_ratio_to_another_case_is_shown_and_written_with_its_case(tmp_path: Path) -> None:
    name = beside("Drop", PACED)
    cases = [Case("alone", lambda: 1000.0, "alone"), Case(name, lambda: 900.0, "alone")]
    cases.append(Case("blocked", lambda: 0.5, "alone"))
    found = measure(Group("some", "some work", "a second", cases, ratio="of alone"), 1, floor=lambda: 1.0)
    lines = report.plain(found).splitlines()
    assert "of alone" in lines[1]
    assert lines[3].split()[-5:-1] == ["0.90", "≥", "0.95", "under"]
    assert lines[4].split()[-2] == "0.00050"
    report.write_json(tmp_path / "some.json", [found], report.machine(1, "asyncio"))
    written = json.loads((tmp_path / "some.json").read_text())["groups"]["some"]["results"][1]
    assert (written["ratio_to"], written["ratio"], written["within_bar"]) == ("alone", 0.9, False)
    assert written["bar_is_least"] is True


def test_a_case_that_is_compared_with_itself_is_not_held_to_its_bar() -> None:
    found = measure(_group(Case(TO_THREAD, lambda: 1.0, against=TO_THREAD)), 1, floor=lambda: 1.0)
    assert (found.results[0].ratio, found.results[0].bar) == (1.0, None)


def test_a_case_or_a_lead_that_is_not_judged_is_not_held_to_its_bar() -> None:
    cases = [Case(U8_PLAIN, lambda: 1e9, judged=False), Case("other", lambda: 1.0)]
    leads = [Lead(FASTEST_SEND, U8_PLAIN, ["other"], judged=False)]
    found = measure(Group("some", "some work", "ns", cases, leads=leads), 1, floor=lambda: 1.0)
    assert [each.bar for each in found.figures().values()] == [None, None, None]
    assert "over" not in report.plain(found) and "under" not in report.plain(found)


def test_a_known_case_has_its_bar() -> None:
    found = measure(_group(Case(U8_PLAIN, lambda: 1.0), Case("other", lambda: 1.0)), 1, floor=lambda: 1.0)
    assert [result.bar for result in found.results] == [BARS[U8_PLAIN], None]


@pytest.mark.parametrize(
    ("ratio", "factor", "expected"), [(5, 1, True), (5.1, 1, False), (9.9, 2, True), (11, 2, False)]
)
def test_a_figure_is_within_a_multiple_of_its_bar(ratio: float, factor: float, expected: bool) -> None:
    result = Result(name="a", cost=ratio * 100, low=0, high=0, ratio=ratio, bar=5)
    assert result.within(factor) is expected


def test_without_a_bar_every_figure_is_within() -> None:
    assert Result(name="a", cost=1e9, low=0, high=0, ratio=1e9, bar=None).within()


def test_the_floor_is_a_short_time() -> None:
    assert 5 < floor_ns() < 50_000


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no affinity")
def test_the_process_is_on_one_core_meanwhile() -> None:
    before = os.sched_getaffinity(0)
    with pinned() as core:
        assert os.sched_getaffinity(0) == {core}
    assert os.sched_getaffinity(0) == before


@pytest.fixture
def measured() -> Report:
    return measure(
        _group(Case(U8_PLAIN, lambda: 600.0), Case("beside", lambda: 1234.5)), 3, floor=lambda: 100.0
    )


def test_the_table_shows_ratio_bar_and_mark(measured: Report) -> None:
    text = report.plain(measured)
    assert "floor 100 ns" in text
    first, second = text.splitlines()[-2:]
    assert first.split()[-4:-1] == ["6.0", f"{BARS[U8_PLAIN]:g}", "over"]
    assert second.split()[-2] == "12.3"


def test_the_json_tells_machine_versions_and_figures(measured: Report, tmp_path: Path) -> None:
    path = tmp_path / "new" / "some.json"
    report.write_json(path, [measured], report.machine(1, "asyncio"))
    record = json.loads(path.read_text())
    assert record["pinned_to_core"] == 1
    assert record["versions"]["msgspec"]
    assert record["gc"]
    first, second = record["groups"]["some"]["results"]
    assert (first["ratio_to_floor"], first["bar"], first["within_bar"]) == (6.0, BARS[U8_PLAIN], False)
    assert (second["bar"], second["within_bar"]) == (None, None)


def test_the_default_file_names_group_and_python(tmp_path: Path) -> None:
    name = report.default_path("some", tmp_path).name
    assert name.startswith("some-3.")
    assert name.endswith(".json")
