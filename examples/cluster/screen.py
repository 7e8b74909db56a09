"""The table of the census, and one of the processes, live on a terminal; plain lines elsewhere."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.table import Table

from examples.census.messages import Report
from examples.census.screen import Lines, Terminal, table_of
from orchestra import Peer


class Screen:
    """Shows reports, and who is there."""

    def __init__(self, console: Console) -> None:
        self.peers: Callable[[], Mapping[str, Peer]] = dict
        self._seen: dict[str, Peer] = {}
        self._inner = Terminal(console) if console.is_terminal else Lines()

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inner.__exit__(kind, error, trace)

    def note(self, peer: Peer) -> None:
        """A process has come or gone."""
        self._seen[peer.process] = peer

    def show(self, report: Report) -> None:
        """Draw the report and the processes as they are now."""
        self._inner.show(report)
        if isinstance(self._inner, Terminal):
            self._seen.update(self.peers())
            table = processes(self._seen)
            self._inner.live.update(Group(self._inner.bar, table, table_of(report)), refresh=True)


def processes(peers: Mapping[str, Peer]) -> Table:
    """A row for each of the other processes."""
    table = Table(title="Processes")
    for title in ("process", "hosts", "state"):
        table.add_column(title)
    for title in ("sent", "received", "lost"):
        table.add_column(title, justify="right")
    for name, peer in sorted(peers.items()):
        figures = (f"{figure:,}" for figure in (peer.sent, peer.received, peer.lost))
        table.add_row(name, ", ".join(peer.hosts), peer.state, *figures)
    return table
