"""The commands: what each takes, prints and returns as exit status."""

import importlib.metadata
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter, validators

from orchestra.cli import cluster
from orchestra.cli.boxes import codec_sources
from orchestra.cli.errors import CommandError
from orchestra.cli.findings import Level, findings_of
from orchestra.cli.graphviz import svg_of
from orchestra.cli.show import emit, show_source
from orchestra.cli.target import find, find_plan
from orchestra.cli.telling import show_log
from orchestra.cli.tracebacks import status_of
from orchestra.graph import Graph, to_dot, to_mermaid
from orchestra.runtime.ensemble import PATIENCE

DISTRIBUTION = "orchestra-wiring"

_DRAWINGS: dict[str, Callable[[Graph], str]] = {
    "dot": to_dot,
    "mermaid": to_mermaid,
    "svg": lambda graph: svg_of(to_dot(graph)),
}


def _version() -> str:
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "unknown: not installed as a distribution"


app = App(name="orchestra", help="Look at an orchestra class, check it, run it.", version=_version)
for each in (cluster.serve, cluster.router, cluster.peers):
    app.command(each)


@app.command
def expand(target: str, /) -> int:
    """Print the source that was generated for an orchestra class.

    The sources of the boxes that it uses follow. Highlighted on a terminal, plain text elsewhere.

    Parameters
    ----------
    target
        The class, as MODULE:CLASS. Modules of the current directory can be imported.
    """
    plan = find_plan(target)
    show_source("\n\n".join(source.rstrip("\n") for source in (plan.source, *codec_sources(plan))), "python")
    return 0


@app.command
def graph(
    target: str,
    /,
    *,
    format: Literal["dot", "mermaid", "svg"] = "dot",  # noqa: A002 - the name of the option
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> int:
    """Draw who sends what to whom.

    A solid arrow may make its sender wait, a dashed one never does. Red arrows lie on a cycle that
    can lock up, orange ones on a cycle that is broken somewhere.

    Parameters
    ----------
    target
        The class, as MODULE:CLASS. Modules of the current directory can be imported.
    format
        The language of the drawing; svg needs Graphviz.
    output
        The file to write, instead of stdout.
    """
    drawing = _DRAWINGS[format](find_plan(target).graph)
    if output is None:
        emit(drawing)
        return 0
    try:
        output.write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{str(output)!r} cannot be written: {error.strerror}") from None
    return 0


@app.command
def check(target: str, /, *, strict: bool = False) -> int:
    """Tell what may be wrong with an orchestra class, or is worth knowing.

    Errors: cycles that can lock up. Warnings: unbounded lanes. Infos: cycles that are broken
    somewhere, messages that only come from outside, what boxed='auto' decides, what does not go into
    a box or counts no bytes, boxes that cost more than they give, methods that look like misspelt hooks.
    The status is 1 when there are errors.

    Parameters
    ----------
    target
        The class, as MODULE:CLASS. Modules of the current directory can be imported.
    strict
        Let warnings count as errors do.
    """
    findings = findings_of(find_plan(target))
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    summary = ", ".join(f"{count} {level.value}{'s' * (count != 1)}" for level, count in counts.items())
    emit("\n".join((*map(str, findings), summary)))
    return 1 if counts[Level.ERROR] or (strict and counts[Level.WARNING]) else 0


@app.command
def run(
    target: str,
    /,
    *,
    timeout: Annotated[float, Parameter(validator=validators.Number(gte=0))] = PATIENCE,
    verbose: bool = False,
) -> int:
    """Run an orchestra until it ends by itself or is interrupted.

    Parameters
    ----------
    target
        As MODULE:CALLABLE, what gives the instance to run: a function without arguments, or an
        orchestra class whose constructor needs none.
    timeout
        How many seconds subsystems have to end after an interrupt.
    verbose
        Show the frames of orchestra and asyncio in the traceback of an error, too.
    """
    import orchestra

    show_log()
    return status_of(lambda: orchestra.run(_instance(target, find(target)), timeout=timeout), verbose=verbose)


def _instance(target: str, found: Any) -> Any:
    if isinstance(found, type):
        find_plan(target)
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise CommandError(
            f"{target!r} cannot be called without arguments ({error}): name a function that makes it"
        ) from None
    made = found()
    if not hasattr(type(made), "__orchestra__"):
        raise CommandError(f"{target!r} returned a {type(made).__qualname__}, not an orchestra")
    return made


def command(words: Sequence[str]) -> int:
    """Run the command with `words` and return its exit status.

    A mistake of the user is one line on stderr and status 2.
    """
    try:
        status = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except (CommandError, CycloptsError) as error:
        print(f"orchestra: {' '.join(str(error).split())}", file=sys.stderr)
        return error.status if isinstance(error, CommandError) else 2
    return status if isinstance(status, int) else 0
