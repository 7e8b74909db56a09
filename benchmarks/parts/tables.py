"""The steps as tables, with their code and the figures of each Python side by side."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.parts import SECTIONS
from benchmarks.parts.steps import Step
from benchmarks.parts.tried import TRIED


def table(records: Sequence[Mapping[str, Any]], name: str) -> Iterator[str]:
    """The table of a group, from the files of some Pythons; **bold** is what no library could leave out."""
    groups = [record["groups"][name] for record in records]
    versions = [record["python"].rpartition(".")[0] for record in records]
    heading = "".join(f" ns, {version} | × floor |" for version in versions)
    yield f"| {groups[-1]['title']} | code |{heading}"
    yield f"|---|---|{'--:|--:|' * len(versions)}"
    steps = _steps(name)
    for rows in zip(*(group["results"] for group in groups), strict=True):
        what = rows[0]["name"]
        step = steps.get(what)
        told = f"**{what}**" if step is not None and step.needed else what
        code = "" if step is None else f"`{_in_one_line(step.code)}`"
        yield f"| {told} | {code} |{''.join(f' {_figures(row)} |' for row in rows)}"


def _steps(name: str) -> Mapping[str, Step]:
    every = {section.name: section.steps for section in SECTIONS} | {"tried": TRIED}
    return {step.name: step for step in every[name]}


def _in_one_line(code: str) -> str:
    """Code with its lines joined, as it is read and not as it would run."""
    joined = re.sub(r":\n +pass", ": ...", code)
    return "; ".join(line.strip() for line in re.sub(r":\n +", ": ", joined).splitlines())


def _figures(row: Mapping[str, Any]) -> str:
    return f"{row['median']:,.0f} | {row['ratio_to_floor']:.1f}"
