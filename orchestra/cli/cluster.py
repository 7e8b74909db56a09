"""The commands for an orchestra in several processes: serve a part, pass on, see who is there."""

import asyncio
import json as jsons
import sys
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.live import Live

import orchestra
from orchestra.cli.attending import attended, session
from orchestra.cli.errors import CommandError
from orchestra.cli.hosting import part_of
from orchestra.cli.linking import Door, Way
from orchestra.cli.presence import Presence, presence_of, table_of
from orchestra.cli.show import emit
from orchestra.cli.telling import Told, show_log
from orchestra.cli.tracebacks import status_of
from orchestra.errors import LinkError
from orchestra.link.session import Session


def serve(
    target: str,
    /,
    *,
    host: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")],
    name: str | None = None,
    verbose: bool = False,
    way: Door | None = None,
) -> int:
    """Run the part of an orchestra that hosts some of its subsystems, until the orchestra stops.

    Ctrl-C stops this part alone; the others go on, and wait for one that hosts the same. On stderr it says
    who comes and goes, and what the library warns of.

    Parameters
    ----------
    target
        The orchestra, as MODULE:NAME: its class, whose hosted subsystems are then made without arguments; an
        instance; or a function that gives an instance, called with the set of the names that are hosted, or
        without arguments. Other fields than the hosted ones become Remote().
    host
        The subsystems to host, one or more.
    name
        The name of this process; by default it is made of what it hosts.
    verbose
        Show the frames of orchestra and asyncio in the traceback of an error, too.
    """
    way = way or Door()
    if not way.connect and not way.listen:
        raise CommandError(
            "serve needs --connect tcp/HOST:PORT, or --listen for the part the others connect to"
        )
    link = way.link(name=name)
    show_log()
    told = Told(host, link)

    async def main(running: orchestra.Running) -> None:
        told.begin()
        await running.wait()

    def serving() -> None:
        try:
            orchestra.run(part_of(target, host), main, link=link, on_peer=told.peer)
        except LinkError as error:
            raise CommandError(str(error), status=1) from None

    return status_of(serving, verbose=verbose)


def router(*, way: Door | None = None) -> int:
    """Listen, and pass on what the processes of orchestras send each other, until interrupted.

    It hosts nothing. It is for when none of the processes should be the one that the others connect to.
    """
    way = way or Door()
    if not way.listen:
        raise CommandError("router needs --listen tcp/HOST:PORT")
    link = way.link()

    async def body(asked: asyncio.Event) -> int:
        async with session(link, asked):
            emit(f"passing on at {', '.join(link.listen)}")
            await asked.wait()
        return 0

    return attended(body)


def peers(
    *,
    way: Way | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    watch: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Show the processes that are there. The status is 1 when there are none.

    Parameters
    ----------
    json
        Print JSON: a list; with --watch a line for each that comes or goes.
    watch
        Go on and show who comes and goes, until interrupted.
    """
    way = way or Way()
    if not way.connect:
        raise CommandError("peers needs --connect tcp/HOST:PORT, to where one of them listens")
    link = way.link()
    keys = f"orchestra/{link.app or '*'}"

    async def body(asked: asyncio.Event) -> int:
        async with session(link, asked) as found:
            if watch:
                await _watch(found, keys, asked, as_json=json)
                return 0
            present = await asyncio.to_thread(_present, found, keys)
        if json:
            emit(jsons.dumps([each.as_json() for each in sorted(present)]))
        elif present:
            Console().print(table_of(present))
        else:
            hint = "" if link.app else "; who is let in by allow= sees one orchestra alone: name it by --app"
            print(f"orchestra: nobody is there{hint}", file=sys.stderr)
        return 0 if present else 1

    return attended(body)


def _present(found: Session, keys: str) -> list[Presence]:
    abouts = found.ask(f"{keys}/about/*")
    each = (presence_of(key, abouts) for key in found.announced(f"{keys}/alive/*/*"))
    return [presence for presence in each if presence is not None]


async def _watch(found: Session, keys: str, asked: asyncio.Event, *, as_json: bool) -> None:
    """Show all changes until asked to end: a live table on a terminal, else a line for each."""
    loop = asyncio.get_running_loop()
    changes: asyncio.Queue[tuple[str, bool] | None] = asyncio.Queue()
    found.watch(f"{keys}/alive/*/*", lambda *change: loop.call_soon_threadsafe(changes.put_nowait, change))
    ending = asyncio.ensure_future(_end(asked, changes))
    console = Console()
    live = Live(console=console, auto_refresh=False) if console.is_terminal and not as_json else None
    present: dict[str, Presence] = {}
    try:
        if live is not None:
            live.start()
            live.update(table_of(()), refresh=True)
        while (change := await changes.get()) is not None:
            key, here = change
            presence = await asyncio.to_thread(_about, found, key) if here else present.pop(key, None)
            if presence is None:
                continue
            if here:
                present[key] = presence
            if live is not None:
                live.update(table_of(present.values()), refresh=True)
            else:
                emit(_line(presence, here=here, as_json=as_json))
    finally:
        ending.cancel()
        if live is not None:
            live.stop()


async def _end(asked: asyncio.Event, changes: "asyncio.Queue[tuple[str, bool] | None]") -> None:
    await asked.wait()
    changes.put_nowait(None)


def _about(found: Session, key: str) -> Presence | None:
    presence = presence_of(key)
    if presence is None:
        return None
    return presence_of(key, found.ask(f"orchestra/{presence.app}/about/{presence.epoch}"))


def _line(presence: Presence, *, here: bool, as_json: bool) -> str:
    if as_json:
        return jsons.dumps({"here": here, **presence.as_json()})
    hosts = "" if presence.hosts is None else f" hosting {', '.join(presence.hosts) or 'nothing'}"
    return f"{'here' if here else 'gone'}: {presence.app} {presence.process}{hosts} ({presence.epoch})"
