"""Who is there: the announcements of processes, as a table or as JSON."""

import json
import time
from collections.abc import Iterable, Mapping

import attrs
from rich.table import Table

from orchestra.link.keys import sign_of


@attrs.frozen(kw_only=True, order=True)
class Presence:
    """A process that is there. `hosts` is None where it does not say; `seen` is when it was first seen."""

    app: str
    process: str
    epoch: str
    hosts: tuple[str, ...] | None = attrs.field(default=None, order=False)
    seen: float = attrs.field(factory=time.time, order=False, eq=False)

    def as_json(self) -> dict[str, object]:
        return {"app": self.app, "process": self.process, "epoch": self.epoch, "hosts": self.hosts}


def presence_of(key: str, abouts: Mapping[str, bytes] = {}) -> Presence | None:
    """The process that announces itself by `key`; None for a key of something else."""
    sign = sign_of(key)
    if sign is None:
        return None
    app = key.split("/")[1]
    epoch = key.rsplit("/", 1)[1]
    about = abouts.get(f"orchestra/{app}/about/{epoch}")
    return Presence(app=app, process=sign.process, epoch=epoch, hosts=_hosts(about))


def _hosts(about: bytes | None) -> tuple[str, ...] | None:
    """What a process says that it hosts; it may be any bytes."""
    try:
        told = json.loads(about or b"null")
    except ValueError:
        return None
    hosts = told.get("hosts") if isinstance(told, dict) else None
    return tuple(map(str, hosts)) if isinstance(hosts, list) else None


def table_of(present: Iterable[Presence]) -> Table:
    """One row for each process."""
    table = Table()
    for title in ("app", "process", "hosts", "epoch"):
        table.add_column(title)
    for each in sorted(present):
        table.add_row(
            each.app, each.process, "?" if each.hosts is None else ", ".join(each.hosts), each.epoch
        )
    return table
