"""Results as a table and as JSON."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.harness import CLOCK, GC_POLICY, Report, Result

RESULTS = Path(__file__).parent / "results"


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
        "versions": {name: _version(name) for name in ("attrs", "msgspec", "uvloop")},
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
        "results": [_result_record(result) for result in report.results],
    }


def _result_record(result: Result) -> Mapping[str, Any]:
    return {
        "name": result.name,
        "median": round(result.cost, 1),
        "quartiles": [round(result.low, 1), round(result.high, 1)],
        **_ratio_record(result),
        "bar": result.bar,
        "bar_is_least": result.at_least,
        "waits_a_run": result.waits,
        "within_bar": None if result.bar is None else result.within(),
    }


def _ratio_record(result: Result) -> Mapping[str, Any]:
    if result.against is None:
        return {"ratio_to_floor": None if result.ratio is None else round(result.ratio, 2)}
    assert result.ratio is not None
    return {"ratio_to": result.against, "ratio": float(f"{result.ratio:.4g}")}


def rows(report: Report) -> list[tuple[str, ...]]:
    """The table of a group, its heading first."""
    relative = report.group.relative
    heading = (
        "case",
        report.group.unit,
        "half of the rounds",
        *((report.group.ratio,) if relative else ()),
        "bar",
        "",
    )
    return [heading, *(_row(result) for result in report.results)]


def _row(result: Result) -> tuple[str, ...]:
    digits = 0 if result.ratio is not None and result.cost >= 100 else 1
    return (
        result.name,
        f"{result.cost:,.{digits}f}",
        f"{result.low:,.{digits}f} to {result.high:,.{digits}f}",
        *(() if result.ratio is None else (_ratio(result),)),
        "" if result.bar is None else f"{'≥ ' if result.at_least else ''}{result.bar:.3g}",
        _mark(result),
    )


def _mark(result: Result) -> str:
    if result.bar is None:
        return ""
    if result.within():
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
        table.add_row(*row, style="red" if row[-1] in {"over", "under"} else None)
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 120)
    console.print(table)


def plain(report: Report) -> str:
    """The table of a group as text."""
    table = rows(report)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join([title(report), *lines])
