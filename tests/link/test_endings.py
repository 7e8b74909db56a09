"""However a process with a link ends, it ends."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.link.test_processes import free_address

pytest.importorskip("zenoh")

ENDINGS = {
    "failure": (1, "it broke"),
    "raise": (1, "the body raises"),
    "exit": (3, ""),
    "waiting send": (1, "TimeoutError"),
    "stop": (0, ""),
    "drain": (0, ""),
    "nobody": (1, "TimeoutError"),
    "main": (0, "done"),
}
LIMIT = 15.0
"""Seconds within which each has to end, though all run at once on a machine that may be busy."""


@contextlib.contextmanager
def process(way: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is to end in some way, once it is up."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.link.endings", way, free_address()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        for pipe in (started.stdout, started.stderr):
            assert pipe is not None
            pipe.close()


def is_up(started: subprocess.Popen[str]) -> None:
    assert started.stdout is not None
    assert started.stdout.readline() == "up\n"


def the_rest(started: subprocess.Popen[str]) -> str:
    """What it says until it has ended; what was read with its first line is in it, too."""
    try:
        started.wait(LIMIT)
    except subprocess.TimeoutExpired:
        started.kill()
        started.wait()
    assert started.stdout is not None
    assert started.stderr is not None
    return started.stdout.read() + started.stderr.read()


def test_a_process_ends_in_every_way() -> None:
    with contextlib.ExitStack() as stack:
        started = {way: stack.enter_context(process(way)) for way in ENDINGS}
        for each in started.values():
            is_up(each)
        for way, (status, said) in ENDINGS.items():
            text = the_rest(started[way])
            assert started[way].returncode == status, (way, text)
            assert said in text, way


def test_signals_end_what_serves_and_what_waits() -> None:
    ways = [("serve", signal.SIGINT), ("serve", signal.SIGTERM), ("forever", signal.SIGINT)]
    with contextlib.ExitStack() as stack:
        started = [(stack.enter_context(process(way)), way, number) for way, number in ways]
        for each, _, _ in started:
            is_up(each)
        time.sleep(0.6)
        for each, _, number in started:
            each.send_signal(number)
        for each, way, _ in started:
            text = the_rest(each)
            assert (each.returncode == 0) is (way == "serve"), text
