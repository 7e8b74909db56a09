"""An example whose extra is not installed says in one line how to get it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("example", "missing", "extras"),
    [
        ("census", "rich", "cli"),
        ("census", "cyclopts", "cli"),
        ("slow_subscriber", "rich", "cli"),
        ("cluster", "cyclopts", "cli,zenoh"),
        ("cluster", "zenoh", "cli,zenoh"),
        ("retrying", "stamina", "retry"),
    ],
)
def test_an_example_without_its_extra_says_how_to_get_it(example: str, missing: str, extras: str) -> None:
    program = (
        f"import runpy, sys; sys.modules[{missing!r}] = None; "
        f"runpy.run_module('examples.{example}', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"this example needs the package {missing!r}: in the checkout, pip install '.[{extras}]'\n"
    )
