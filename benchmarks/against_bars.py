"""The table of all bars: what each figure must reach, and what it is on each Python."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Record: TypeAlias = Mapping[str, Any]


def table(files: Mapping[str, Sequence[Record]]) -> Iterator[str]:
    """The table of what was measured on asyncio's loop, and of the lead on others.

    What misses its bar is in bold. `files` has the figures of each name, those of the oldest Python first.
    """
    pythons = sorted({_python(record) for records in files.values() for record in records}, key=_version)
    yield f"| | | bar |{''.join(f' {python} |' for python in pythons)}"
    yield f"|---|---|--:|{'--:|' * len(pythons)}"
    for name, records in files.items():
        rows: dict[str, dict[str, Record]] = {}
        for record in records:
            for result in _barred(record):
                rows.setdefault(result["name"], {})[_python(record)] = result
        for case, by_python in rows.items():
            cells = "".join(_cell(by_python.get(python)) for python in pythons)
            yield f"| {name} | {case} | {_bar(next(iter(by_python.values())))} |{cells}"


def _barred(record: Record) -> Iterator[Record]:
    for group in record["groups"].values():
        leads = [each for lead in group.get("leads", ()) for each in _on_each_loop(lead)]
        for result in (*group["results"], *leads):
            if result.get("bar") is not None:
                yield {"unit": group["unit"], **result}


def _on_each_loop(lead: Record) -> Iterator[Record]:
    """How far ahead of the fastest library orchestra is: on each loop the bar is the same."""
    if lead.get("bar") is None:
        return
    elsewhere = {f", on {loop}": told for loop, told in lead.items() if isinstance(told, Mapping)}
    for where, told in {"": lead, **elsewhere}.items():
        figure = told["times_as_fast"]
        name = lead["name"] + where
        yield {**lead, "name": name, "times_as_fast": figure, "within_bar": figure >= lead["bar"]}


def _python(record: Record) -> str:
    return str(record["python"]).rpartition(".")[0]


def _version(python: str) -> list[int]:
    return [int(number) for number in python.split(".")]


def _bar(result: Record) -> str:
    return f"{'≥' if result['bar_is_least'] else '≤'} {_with_unit(result, result['bar'])}"


def _cell(result: Record | None) -> str:
    if result is None:
        return " |"
    told = _with_unit(result, _figure(result))
    return f" {told} |" if result["within_bar"] else f" **{told}** |"


def _figure(result: Record) -> float:
    """What was compared with the bar: a ratio where there is one."""
    found: float = next(
        result[key]
        for key in ("times_as_fast", "ratio_to_floor", "ratio", "median")
        if result.get(key) is not None
    )
    return found


def _with_unit(result: Record, figure: float) -> str:
    if any(result.get(key) is not None for key in ("times_as_fast", "ratio_to_floor", "ratio")):
        return f"{figure:.2f} ×"
    return f"{figure:,.{0 if figure >= 100 else 1}f} {result['unit']}"
