"""The census over three processes agrees with that in one, and leaves no process behind."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from examples.census.messages import Report

ROOT = Path(__file__).parents[2]
ASYNCIO = Path(os.__file__).parent / "asyncio"


def run(module: str, *words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", f"examples.{module}", *words],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=50,
        check=False,
        **options,
    )


def parts_of(folder: str) -> list[str]:
    """The command lines of the parts that run, of this test's own programs."""
    lines = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (each / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            if "examples.cluster:part" in words and folder in (each / "environ").read_text(errors="replace"):
                lines.append(words)
    return lines


def is_under_way(line: str) -> bool:
    """Whether a line tells of some files, and not of all."""
    found = re.match(r"census: ([\d,]+) of ([\d,]+) files", line)
    return found is not None and found[1] not in ("0", found[2])


def test_three_processes_count_as_one_does() -> None:
    one, three = run("census", str(ASYNCIO), "--json"), run("cluster", str(ASYNCIO), "--json")
    assert three.returncode == 0, three.stderr
    assert "Traceback" not in three.stderr
    report = msgspec.json.decode(three.stdout, type=Report)
    assert report == msgspec.json.decode(one.stdout, type=Report)
    assert report.final
    assert report.files > 10


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")
def test_an_interrupt_ends_all_three(tmp_path: Path) -> None:
    mark = {"MARK_OF_THIS_TEST": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.cluster", "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, **mark},
    )
    try:
        assert process.stderr is not None
        told = []
        for line in process.stderr:
            told.append(line)
            if is_under_way(line):
                break
        assert len(parts_of(str(tmp_path))) == 2, "".join(told)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
        assert time.monotonic() - began < 20
        assert msgspec.json.decode(out, type=Report).files > 0
        assert parts_of(str(tmp_path)) == []
    finally:
        process.kill()
        process.wait()


def test_on_a_terminal_the_processes_are_shown() -> None:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.cluster", "--limit", "500"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=child,
        stderr=child,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "50"},
    )
    os.close(child)
    shown = b""
    try:
        with contextlib.suppress(OSError):  # how Linux tells that the other end is closed
            while more := os.read(parent, 65536):
                shown += more
        assert process.wait(30) == 0, shown
    finally:
        process.kill()
        process.wait()
        os.close(parent)
    text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).decode()
    assert "Traceback" not in text
    assert re.search(r"reader\s*│ reader\s*│ (here|gone)", text)
    assert re.search(r"tally\s*│ tally\s*│ (here|gone)", text)
