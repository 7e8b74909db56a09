"""`scripts/named` puts a name before each line, at once, and keeps the exit status."""

import os
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "named"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a shell script")


@pytest.mark.parametrize("status", [0, 3])
def test_each_line_has_the_name_and_the_status_is_that_of_the_command(status: int) -> None:
    program = f"echo one; echo two >&2; printf three; exit {status}"
    done = subprocess.run(
        [SCRIPT, "3.11", "sh", "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stderr) == (status, "")
    assert done.stdout.splitlines() == ["3.11: one", "3.11: two", "3.11: three"]


def test_a_line_is_shown_before_the_command_ends() -> None:
    command = [SCRIPT, "loops", "sh", "-c", "echo begins; sleep 2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        began = time.monotonic()
        assert process.stdout.readline() == "loops: begins\n"
        assert time.monotonic() - began < 1.5
