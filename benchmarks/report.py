"""Results as a table, with a chart in marks beside it, and as JSON."""

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.harness import CLOCK, GC_POLICY, Report, Result

RESULTS = Path(__file__).parent / "results"

MARKS = 20
"""The longest bar of a chart in a table."""


_VERSIONS = ("attrs", "msgspec", "uvloop", *filter(None, peers.PEERS.values()))


def machine(core: int | None, loop: str) -> Mapping[str, Any]:
    """Where and with what the figures were measured."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "pinned_to_core": core,
        "loop": loop,
        "clock": CLOCK,
        "gc": GC_POLICY,
        "versions": {name: _version(name) for name in _VERSIONS},
        "not_installed": list(peers.missing()),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def default_path(name: str, folder: Path = RESULTS) -> Path:
    """The file of the figures that go by this name in the command, on this Python: `send-3.11.json`."""
    major, minor, _ = platform.python_version_tuple()
    return folder / f"{name}-{major}.{minor}.json"


def write_json(path: Path, reports: Sequence[Report], where: Mapping[str, Any]) -> None:
    """Write the figures of the groups, with the machine and the versions, to `path`."""
    record = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        **where,
        "groups": {report.group.name: _group_record(report) for report in reports},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _group_record(report: Report) -> Mapping[str, Any]:
    return {
        "title": report.group.title,
        "unit": report.group.unit,
        "rounds": report.rounds,
        "floor_ns": round(report.floor, 1),
        "results": [{"name": result.name, **_result_record(result)} for result in report.results],
        **({"leads": [_lead_record(lead) for lead in report.leads]} if report.leads else {}),
    }


def _result_record(result: Result) -> Mapping[str, Any]:
    return {
        "median": round(result.cost, 1),
        "quartiles": [round(result.low, 1), round(result.high, 1)],
        **_ratio_record(result),
        **_bar_record(result),
        "waits_a_run": result.waits,
        **{loop: _result_record(other) for loop, other in result.elsewhere.items()},
    }


def _lead_record(lead: Result) -> Mapping[str, Any]:
    return {
        "name": lead.name,
        "times_as_fast": round(lead.figure, 2),
        **_bar_record(lead),
        **{loop: {"times_as_fast": round(other.figure, 2)} for loop, other in lead.elsewhere.items()},
    }


def _bar_record(result: Result) -> Mapping[str, Any]:
    return {
        "bar": result.bar,
        "bar_is_least": result.at_least,
        "within_bar": None
        if result.bar is None
        else all(each.within() for each in result.everywhere().values()),
    }


def _ratio_record(result: Result) -> Mapping[str, Any]:
    if result.against is None:
        return {"ratio_to_floor": None if result.ratio is None else round(result.ratio, 2)}
    assert result.ratio is not None
    return {"ratio_to": result.against, "ratio": float(f"{result.ratio:.4g}")}


def rows(report: Report) -> list[tuple[str, ...]]:
    """The table of a group, its heading first. The last column is a chart, of the column that counts."""
    relative = report.group.relative
    loops = list(dict.fromkeys(loop for result in report.results for loop in result.elsewhere))
    heading = (
        "case",
        report.group.unit,
        "half of the rounds",
        *((report.group.ratio,) if relative else ()),
        *(cell for loop in loops for cell in (f"on {loop}", *((report.group.ratio,) if relative else ()))),
        "bar",
        "",
        "",
    )
    longest = max(result.figure for result in report.results)
    return [heading, *(_row(result, loops, longest) for result in report.results)]


def _row(result: Result, loops: Sequence[str], longest: float) -> tuple[str, ...]:
    others = [result.elsewhere.get(loop) for loop in loops]
    return (
        result.name,
        _cost(result, result.cost),
        f"{_cost(result, result.low)} to {_cost(result, result.high)}",
        *(() if result.ratio is None else (_ratio(result),)),
        *(cell for other in others for cell in _elsewhere(result, other)),
        "" if result.bar is None else f"{'≥ ' if result.at_least else ''}{_bar(result.bar)}",
        _mark(result),
        marks(result.figure, longest),
    )


def _bar(bar: float) -> str:
    return f"{bar:,.0f}" if bar >= 100 else f"{bar:.3g}"


def _cost(result: Result, cost: float) -> str:
    return f"{cost:,.{0 if result.cost >= 100 else 1}f}"


def _elsewhere(result: Result, other: Result | None) -> Sequence[str]:
    ratios = 0 if result.ratio is None else 1
    if other is None:
        return ("",) * (1 + ratios)
    return (_cost(other, other.cost), *((_ratio(other),) if ratios else ()))


def marks(figure: float, longest: float) -> str:
    """A bar as text, beside the longest one, on a logarithmic scale of three decades."""
    if figure <= 0 or longest <= 0:
        return ""
    return "▇" * max(1, round(MARKS * (1 + math.log10(figure / longest) / 3)))


def leads(report: Report) -> Sequence[str]:
    """What a group shows of how far it is ahead, a line each."""
    return [
        f"{name}: takes {lead.figure:.1f} times as long as {lead.against}"
        f"{'' if lead.bar is None else f' (bar ≥ {lead.bar:g}: {_mark(lead)})'}"
        for name, lead in report.figures().items()
        if any(lead is each for first in report.leads for each in first.everywhere().values())
    ]


def _mark(result: Result) -> str:
    if result.bar is None:
        return ""
    if all(each.within() for each in result.everywhere().values()):
        return "ok"
    return "under" if result.at_least else "over"


def _ratio(result: Result) -> str:
    """Ratios to other cases are near to 1 or far below it."""
    assert result.ratio is not None
    if result.against is None:
        return f"{result.ratio:.1f}"
    return f"{result.ratio:.2f}" if result.ratio >= 0.01 else f"{result.ratio:.5f}"


def title(report: Report) -> str:
    """One line about a group."""
    return f"{report.group.title}: medians of {report.rounds} rounds, floor {report.floor:.0f} ns"


def summary(where: Mapping[str, Any]) -> str:
    """One line about the machine."""
    core = where["pinned_to_core"]
    pinned = "not pinned" if core is None else "one core pinned"
    facts = (
        f"Python {where['python']}",
        where["processor"],
        pinned,
        where["loop"],
        where["clock"],
        where["gc"],
    )
    return "; ".join(facts)


def show(report: Report) -> None:
    """Print the table of a group; with colours where rich is installed and a terminal shows them."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(plain(report))
        return
    heading, *body = rows(report)
    table = Table(title=title(report), title_justify="left")
    for number, name in enumerate(heading):
        table.add_column(name, justify="left" if number in (0, len(heading) - 1) else "right")
    for row in body:
        table.add_row(*row, style="red" if row[-2] in {"over", "under"} else None)
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 160)
    console.print(table)
    for line in leads(report):
        console.print(line, highlight=False)


def plain(report: Report) -> str:
    """The table of a group as text."""
    table = rows(report)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    last = len(widths) - 1
    lines = [
        "  ".join(
            cell.ljust(width) if number in (0, last) else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join([title(report), *lines, *leads(report)])
