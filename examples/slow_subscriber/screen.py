"""How the figures look: a live table on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.live import Live
from rich.table import Table

from examples.slow_subscriber.app import Figures


class Lines:
    """A line on stderr for each orchestra at each show."""

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *error: object) -> None: ...

    def show(self, passed: float, figures: Sequence[Figures]) -> None:
        """Print the figures."""
        for each in figures:
            print(
                f"{passed:.1f} s, {each.policy}: published {each.published:,}, fast got {each.fast_got:,}, "
                f"slow got {each.slow_got:,}, dropped {each.dropped:,}",
                file=sys.stderr,
                flush=True,
            )


class Terminal:
    """A table that is drawn anew at each show; it vanishes at the end."""

    def __init__(self, console: Console) -> None:
        self.live = Live(console=console, transient=True, auto_refresh=False)

    def __enter__(self) -> "Terminal":
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()

    def show(self, passed: float, figures: Sequence[Figures]) -> None:
        """Draw the figures."""
        self.live.update(table_of(passed, figures), refresh=True)


def screen_for(console: Console) -> Lines | Terminal:
    """The screen that suits where `console` leads to."""
    return Terminal(console) if console.is_terminal else Lines()


def table_of(passed: float, figures: Sequence[Figures]) -> Table:
    """The orchestras side by side, a column for each."""
    table = Table(title=f"After {passed:.1f} s", title_justify="left")
    table.add_column("samples")
    for each in figures:
        table.add_column(each.policy, justify="right")
    rows = [
        ("published", [f"{each.published:,}" for each in figures]),
        ("the fast one got", [f"{each.fast_got:,}" for each in figures]),
        ("  a second", [f"{each.fast_got / passed:,.0f}" if passed else "" for each in figures]),
        ("  waiting in its lane", [f"{each.fast_queued:,}" for each in figures]),
        ("the slow one got", [f"{each.slow_got:,}" for each in figures]),
        ("  waiting in its lane", [f"{each.slow_queued:,}" for each in figures]),
        ("  dropped", [f"{each.dropped:,}" for each in figures]),
        ("  told to the publisher", [f"{each.refused:,}" for each in figures]),
        ("  age at its turn", [f"{each.age * 1000:,.0f} ms" for each in figures]),
        ("the publisher waited", [f"{each.blocked_seconds:.1f} s" for each in figures]),
    ]
    for name, cells in rows:
        table.add_row(name, *cells)
    return table
