"""The command line of the census."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec

from examples import needs

with needs("cli"):
    from cyclopts import App, Parameter, validators
    from rich.console import Console

    from examples.census.app import census, standard_library
    from examples.census.messages import Report
    from examples.census.parts import Walker
    from examples.census.screen import screen_for, table_of

app = App(name="python -m examples.census", help="Count the Python source of a directory tree.")


@app.default
def main(
    path: Annotated[Path | None, Parameter(validator=validators.Path(exists=True, file_okay=False))] = None,
    /,
    *,
    limit: Annotated[int | None, Parameter(validator=validators.Number(gte=0))] = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Count files, lines, tokens and names. Stop early with the key `q`, or with Ctrl-C.

    Parameters
    ----------
    path
        The tree to count; by default the standard library of this Python.
    limit
        Count this many files at most.
    json
        Print the figures as JSON.
    """
    walker = standard_library() if path is None else Walker(path)
    walker.limit = limit
    progress = Console(stderr=True)
    report = census(walker, screen=screen_for(progress), interval=0.25 if progress.is_terminal else 1.0)
    if json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    else:
        _print(report)


def _print(report: Report) -> None:
    console = Console()
    console.print(table_of(report))
    for file in report.unreadable:
        console.print(
            f"not counted: {file.path}: {file.reason}", markup=False, highlight=False, soft_wrap=True
        )


if __name__ == "__main__":
    app()
