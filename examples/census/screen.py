"""How a report looks: a live table with a progress bar on a terminal, plain lines elsewhere."""

import sys
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from examples.census.messages import Report


class Screen(Protocol):
    """Where reports are shown, within a `with`."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, report: Report) -> None: ...


class Quiet:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, report: Report) -> None: ...


class Lines(Quiet):
    """A line on stderr for each report."""

    def show(self, report: Report) -> None:
        done = report.files + len(report.unreadable)
        print(
            f"census: {done:,} of {report.found:,} files, {report.lines:,} lines", file=sys.stderr, flush=True
        )


class Terminal(Quiet):
    """A progress bar over a table that grows, on stderr; it vanishes at the end."""

    def __init__(self, console: Console) -> None:
        self.bar = Progress(
            TextColumn("census (q: stop, r: report)"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self.task = self.bar.add_task("files", total=None)
        self.live = Live(self.bar, console=console, transient=True, auto_refresh=False)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.live.stop()

    def show(self, report: Report) -> None:
        done = report.files + len(report.unreadable)
        self.bar.update(self.task, total=report.found or None, completed=done)
        self.live.update(Group(self.bar, table_of(report)), refresh=True)


def screen_for(console: Console) -> Screen:
    """The screen that suits where `console` leads to."""
    return Terminal(console) if console.is_terminal else Lines()


def table_of(report: Report) -> Table:
    """The figures as a table of three pairs of columns."""
    table = Table(title="Census" if report.final else "Census so far")
    for title in ("what", "token", "name"):
        table.add_column(title)
        table.add_column("count", justify="right")
    totals = [
        ("files", report.files),
        ("lines", report.lines),
        ("code", report.code),
        ("comment", report.comment),
        ("blank", report.blank),
        ("unreadable", len(report.unreadable)),
        ("tokens", sum(report.tokens.values())),
    ]
    rows = max(len(totals), len(report.names))
    columns = [totals, list(report.tokens.items())[:rows], report.names]
    for row in range(rows):
        cells = [column[row] if row < len(column) else ("", "") for column in columns]
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else cell for pair in cells for cell in pair))
    return table
