"""The table of all bars."""

from typing import Any

from benchmarks import against_bars


def record(python: str, results: list[dict[str, Any]], leads: list[dict[str, Any]]) -> dict[str, Any]:
    return {"python": python, "groups": {"send": {"unit": "ns", "results": results, "leads": leads}}}


def result(name: str, bar: float | None, within: bool, **figures: Any) -> dict[str, Any]:
    return {"name": name, "bar": bar, "bar_is_least": False, "within_bar": within, **figures}


def test_each_bar_has_a_row_with_a_figure_of_each_python_and_what_misses_it_is_bold() -> None:
    lead: dict[str, Any] = {
        "name": "the fastest",
        "bar": 2,
        "bar_is_least": True,
        "within_bar": True,
        "times_as_fast": 2.1,
    }
    lead["uvloop"] = {"times_as_fast": 1.9}
    older = record(
        "3.11.7",
        [
            result("u8", 4.0, False, median=400.0, ratio_to_floor=4.5),
            result("memory", 6144, True, median=5907.0, ratio=None),
            result("without a bar", None, True, median=1.0),
        ],
        [],
    )
    newer = record("3.13.0", [result("u8", 4.0, True, median=300.0, ratio_to_floor=3.9)], [lead])
    assert list(against_bars.table({"send": [older, newer]})) == [
        "| | | bar | 3.11 | 3.13 |",
        "|---|---|--:|--:|--:|",
        "| send | u8 | ≤ 4.00 × | **4.50 ×** | 3.90 × |",
        "| send | memory | ≤ 6,144 ns | 5,907 ns | |",
        "| send | the fastest | ≥ 2.00 × | | 2.10 × |",
        "| send | the fastest, on uvloop | ≥ 2.00 × | | **1.90 ×** |",
    ]
