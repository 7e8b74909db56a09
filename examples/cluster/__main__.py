"""The command line of the cluster."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec

from examples import needs

with needs("cli,zenoh"):
    from cyclopts import App, Parameter, validators
    from rich.console import Console

    from examples.census.app import standard_library
    from examples.census.parts import Walker
    from examples.census.screen import table_of
    from examples.cluster.app import cluster
    from examples.cluster.screen import Screen

app = App(name="python -m examples.cluster", help="Count Python source with three processes.")


@app.default
def main(
    path: Annotated[Path | None, Parameter(validator=validators.Path(exists=True, file_okay=False))] = None,
    /,
    *,
    limit: Annotated[int | None, Parameter(validator=validators.Number(gte=0))] = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Count files, lines, tokens and names in three processes. Stop early with the key `q`, or with Ctrl-C.

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
    console = Console(stderr=True)
    report = cluster(walker, Screen(console), interval=0.25 if console.is_terminal else 1.0)
    if json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    else:
        Console().print(table_of(report))


if __name__ == "__main__":
    app()
