"""The part of each process, and a function that starts all three."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Generator

from examples.census.app import Census
from examples.census.messages import Report
from examples.census.parts import Desk, Reader, Reporter, Tally, Walker
from examples.cluster.screen import Screen
from orchestra import Remote, Running, run
from orchestra.link import ZenohLink

GRACE = 1.0
"""Seconds for the others to end by themselves, as they do when all is counted."""

PATIENCE = 10.0
"""Seconds for them to end when they are told to."""


def part(hosts: frozenset[str]) -> Census:
    """What `orchestra serve` starts: the reader or the tally, or both."""
    return Census(
        walker=Remote(),
        reader=Reader() if "reader" in hosts else Remote(),
        tally=Tally() if "tally" in hosts else Remote(),
        reporter=Remote(),
        desk=Remote(),
    )


def cluster(walker: Walker, screen: Screen, *, interval: float = 1.0) -> Report:
    """Count what `walker` finds and return the last report; it is not `final` when interrupted."""
    at = f"tcp/127.0.0.1:{_free_port()}"
    reporter = Reporter(screen)
    app = Census(walker=walker, reader=Remote(), tally=Remote(), reporter=reporter, desk=Desk(interval))

    async def main(running: Running) -> None:
        screen.peers = running.peers

    with _served("reader", at), _served("tally", at):
        link = ZenohLink(listen=[at], name="front")
        run(app, main, link=link, on_peer=screen.note, dead_letters=lambda letter: None)
    return reporter.last


@contextlib.contextmanager
def _served(name: str, at: str) -> Generator[None]:
    """A process that hosts one subsystem, in a group of its own: Ctrl-C is for this process."""
    words = ["serve", "examples.cluster:part", "--host", name, "--connect", at]
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestra", *words],
        stdin=subprocess.DEVNULL,
        start_new_session=os.name == "posix",
    )
    try:
        yield
    finally:
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    for seconds, insist in (GRACE, process.terminate), (PATIENCE, process.kill):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            insist()
        else:
            return
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
