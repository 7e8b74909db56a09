"""The figures in the documentation are those of the committed files."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import ask, bars, box, charts, figures, report, scale, send, thread
from benchmarks.congestion import groups
from benchmarks.harness import Case, Group, measure
from benchmarks.priority import group

PAGE = "# Page\n\n<!-- figures: {} -->\nold\n<!-- end of figures -->\n\nText.\n"


def _constant(made: Group) -> Group:
    """The cases of a group, each with its place as the figure: 1, 2, 3..."""
    cases = [
        Case(case.name, lambda figure=float(place): figure, case.against)
        for place, case in enumerate(made.cases, 1)
    ]
    return Group(made.name, made.title, made.unit, cases, relative=made.relative, ratio=made.ratio)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figures as the command writes them, of two Pythons."""
    results = tmp_path_factory.mktemp("written") / "results"
    where = report.machine(1, "asyncio")
    for name, made in (
        ("congestion", groups(1.0, 1)),
        ("priority", [group(1)]),
        ("box", box.groups(1, 1_000)),
    ):
        measured = [measure(_constant(each), 1, floor=lambda: 1.0) for each in made]
        for version in ("3.9", "3.11"):
            report.write_json(
                results / f"{name}-{version}.json", measured, {**where, "python": f"{version}.0"}
            )
    return results


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy of them that a test may change."""
    return Path(shutil.copytree(written, tmp_path / "results"))


def test_the_pages_have_the_figures_of_the_committed_files() -> None:
    assert figures.main(["--check"]) == 0, "run python -m benchmarks.figures"


def test_the_newest_python_counts(folder: Path) -> None:
    record = figures.newest("congestion", folder)
    assert record is not None
    assert record["python"] == "3.11.0"


def test_the_chart_has_a_bar_for_each_case_beside_a_slow_one(folder: Path) -> None:
    text = figures.filled(PAGE.format("congestion"), folder)
    assert 'x-axis ["Block", "Drop", "DropOldest", "asyncio.Queue: await both", ' in text
    assert "bar [200.0, 300.0, 400.0, 120.0, 140.0" in text
    assert "| Drop | 3 | 300 % | 3 | 300 % |" in text
    assert "| a publish to two | 2.00 |" in text
    assert "old" not in text
    assert text.startswith("# Page\n")
    assert text.endswith("<!-- end of figures -->\n\nText.\n")


def test_the_figures_in_the_chart_are_those_of_the_file(folder: Path) -> None:
    path = folder / "congestion-3.11.json"
    record = json.loads(path.read_text())
    (drop,) = [each for each in record["groups"]["paced"]["results"] if ", Drop," in each["name"]]
    drop["ratio"] = 0.0123
    path.write_text(json.dumps(record))
    text = figures.filled(PAGE.format("congestion"), folder)
    assert "bar [200.0, 1.23, 400.0" in text
    assert "| Drop | 3 | 1.2 % |" in text


def test_the_table_of_urgent_messages_has_a_row_for_each_backlog(folder: Path) -> None:
    text = figures.filled(PAGE.format("priority"), folder)
    assert "| urgent, 10 wait | 1 µs | 1.00 |\n| urgent, 1,000 wait | 2 µs | 2.00 |\n" in text
    assert "| asyncio.PriorityQueue, 10 wait | 4 µs | 4.00 |" in text


def test_the_page_of_boxes_has_a_chart_of_the_backlog_and_a_column_for_each_way(folder: Path) -> None:
    text = figures.filled(PAGE.format("box"), folder)
    assert 'title "A backlog of 1,000 messages, in % of a slotted class"' in text
    assert 'x-axis ["msgspec.Struct: fill and drain", "msgspec.Struct: memory", ' in text
    assert "bar [200.0, 200.0, 300.0, 300.0, 400.0, 400.0]" in text
    assert "| slotted class | 1 | 1 | 1 ms |" in text
    assert f"| {bars.UNBOXED} | {bars.BOXED} |" in text
    assert "| u8 | 1 ns | 2 ns (2.0 ×) |" in text
    assert "| to 4 receivers | 4 ns | 5 ns (1.2 ×) | 6 ns (1.5 ×) |" in text
    assert f"| {bars.ONCE_SEALED} | 2 ns |" in text


def test_a_round_trip_stands_beside_that_of_two_tasks(tmp_path: Path) -> None:
    _written(tmp_path, ask.group(1))
    text = figures.filled(PAGE.format("ask"), tmp_path)
    assert "| one question and its answer | ns a round trip | × two tasks with futures |" in text
    assert "| an Actor asks a synchronous Actor | 1 | 0.17 |" in text
    assert "| two tasks with futures | 6 | 1.00 |" in text
    assert "| asyncio.Queue | 8 | 1.33 |" in text


def test_a_message_to_a_thread_stands_beside_the_same_through_another_queue(tmp_path: Path) -> None:
    _written(tmp_path, thread.group(1))
    text = figures.filled(PAGE.format("thread"), tmp_path)
    assert "| from the loop to a thread | 1 | 0.50 |" in text
    assert "| from the loop to a thread, culsans | 2 | 1.00 |" in text
    assert "| from a thread to the loop, janus | 7 | 1.17 |" in text


@pytest.fixture
def with_uvloop(tmp_path: Path) -> Path:
    """Figures of a group that was measured on two loops."""
    made = send.group(1)
    cases = [
        Case(case.name, lambda figure=float(place): figure, on_loop=case.on_loop)
        for place, case in enumerate(made.cases, 1)
    ]
    group = Group(made.name, made.title, made.unit, cases, leads=made.leads)
    measured = measure(group, 1, floor=lambda: 0.5, beside=["uvloop"])
    report.write_json(tmp_path / "send-3.11.json", [measured], report.machine(1, "asyncio"))
    return tmp_path


def test_the_table_beside_peers_has_a_column_for_each_loop(with_uvloop: Path) -> None:
    text = figures.filled(PAGE.format("send"), with_uvloop)
    assert f"| {bars.U8_PLAIN} | 1 | 2.0 | 1 | 2.0 |" in text
    assert f"| {bars.HAND_MADE_SEND} | 7.0 × | 7.0 × |" in text
    assert f"| {bars.sent('trio')} | 10 | 20.0 | | |" in text


def test_the_chart_beside_peers_is_a_drawing_of_the_same_figures(with_uvloop: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    assert figures.main([], docs=docs, folder=with_uvloop) == 0
    drawing = (docs / "charts" / "send.svg").read_text()
    root = ElementTree.fromstring(drawing)
    assert root.tag.endswith("svg")
    assert "2.0 / 2.0" in drawing
    assert bars.sent("trio") in drawing
    assert figures.main(["--check"], docs=docs, folder=with_uvloop) == 0
    (docs / "charts" / "send.svg").write_text("old")
    assert figures.main(["--check"], docs=docs, folder=with_uvloop) == 1


def test_the_chart_of_growth_has_a_line_for_each_kind() -> None:
    records = {}
    for made in scale.groups(1, 1):
        results = [{"name": case.name, "ratio": place} for place, case in enumerate(made.cases, 1)]
        records[made.name] = {"title": made.title, "unit": made.unit, "results": results}
    lines = dict(charts.growth({"groups": records}))
    assert [points[0][1] for points in lines.values()] == [1.0, 1.0, 1.0]
    assert [points[-1][0] for points in lines.values()] == [1_000, 100_000, bars.DECORATED[-1]]
    assert charts.curves("growth", lines).count("<polyline") == 3


def _written(folder: Path, made: Group) -> None:
    measured = measure(_constant(made), 1, floor=lambda: 1.0)
    report.write_json(folder / f"{made.name}-3.11.json", [measured], report.machine(1, "asyncio"))


def test_without_figures_the_page_says_so(tmp_path: Path) -> None:
    text = figures.filled(PAGE.format("congestion"), tmp_path)
    assert figures.NOT_MEASURED in text
    assert figures.filled(text, tmp_path) == text


def test_check_tells_of_a_stale_page_and_writes_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.format("priority"))
    assert figures.main(["--check"], docs=tmp_path, folder=folder) == 1
    assert "page.md is not up to date" in capsys.readouterr().out
    assert page.read_text() == PAGE.format("priority")
    assert figures.main([], docs=tmp_path, folder=folder) == 0
    assert figures.main(["--check"], docs=tmp_path, folder=folder) == 0
