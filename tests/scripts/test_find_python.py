"""The script that chooses the Pythons of the Makefile."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "find-python"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a shell script")


def _command(folder: Path, name: str, *, prints: str = "", status: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n[ -z '{prints}' ] || echo '{prints}'\nexit {status}\n")
    file.chmod(0o755)


def _find(which: str, home: Path) -> subprocess.CompletedProcess[str]:
    tools = home / "tools"
    tools.mkdir(exist_ok=True)
    for tool in ("sh", "sort", "head"):
        if not (tools / tool).exists():
            (tools / tool).symlink_to(
                Path("/bin") / tool if Path("/bin", tool).exists() else f"/usr/bin/{tool}"
            )
    environment = {"PATH": f"{home / 'bin'}:{tools}", "HOME": str(home)}
    return subprocess.run([SCRIPT, which], env=environment, capture_output=True, text=True, check=False)


def test_a_name_that_does_not_start_is_passed_over(tmp_path: Path) -> None:
    _command(tmp_path / "bin", "python3.11", status=127)
    _command(tmp_path / "bin", "python3.12", prints="003012001 /opt/python3.12")
    assert _find("first", tmp_path).stdout == "/opt/python3.12\n"


def test_the_newest_may_be_one_that_is_not_on_path(tmp_path: Path) -> None:
    _command(tmp_path / "bin", "python3.11", prints="003011009 /opt/python3.11")
    _command(tmp_path / ".pyenv/versions/3.9.1/bin", "python3", status=1)
    _command(tmp_path / ".pyenv/versions/3.14.0/bin", "python3", prints="003014000 /opt/python 3.14")
    assert _find("newest", tmp_path).stdout == "/opt/python 3.14\n"
    assert _find("first", tmp_path).stdout == "/opt/python3.11\n"


def test_without_a_python_it_says_so(tmp_path: Path) -> None:
    found = _find("first", tmp_path)
    assert found.returncode == 1
    assert "3.11 or later" in found.stderr


def test_a_real_python_is_asked_for_its_version(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    found = _find("first", tmp_path).stdout.strip()
    assert Path(found).name.startswith("python3")
