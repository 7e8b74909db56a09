"""However a process with a link ends, it ends."""

import signal
import subprocess
import sys
import time

import pytest

from tests.link.test_processes import free_address

pytest.importorskip("zenoh")


def end(way: str, *, interrupt: int | None = None) -> tuple[int, float, str]:
    """Run it, and say with which status it has ended, after how many seconds, and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.link.endings", way, free_address()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        began = time.monotonic()
        if interrupt is not None:
            time.sleep(0.4)
            process.send_signal(interrupt)
        out, err = process.communicate(timeout=8)
    finally:
        process.kill()
        process.wait()
    return process.returncode, time.monotonic() - began, out + err


@pytest.mark.parametrize(
    ("way", "status", "said"),
    [
        ("failure", 1, "it broke"),
        ("raise", 1, "the body raises"),
        ("exit", 3, ""),
        ("waiting send", 1, "TimeoutError"),
        ("stop", 0, ""),
        ("drain", 0, ""),
        ("nobody", 1, "TimeoutError"),
        ("main", 0, "done"),
    ],
)
def test_a_process_ends(way: str, status: int, said: str) -> None:
    code, seconds, text = end(way)
    assert (code, seconds < 4.0) == (status, True), text
    assert said in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_one_that_serves(number: int) -> None:
    code, seconds, text = end("serve", interrupt=number)
    assert (code, seconds < 4.0) == (0, True), text


def test_ctrl_c_in_a_plain_asyncio_run_ends_it_too() -> None:
    code, seconds, text = end("forever", interrupt=signal.SIGINT)
    assert code != 0 and seconds < 4.0, text
