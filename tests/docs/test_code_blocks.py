"""Every Python block of README.md and docs/ runs; every `orchestra` command there prints what is shown."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import Block, Command, Program, blocks_of, commands_of, matches, programs_of

ROOT = Path(__file__).parents[2]
PAGES = {
    page.relative_to(ROOT).as_posix(): blocks_of(page)
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if page.exists()
}


def _in_pages(find: Callable[[list[Block]], Sequence[Program | Command]]) -> list[Any]:
    return [
        pytest.param(found, id=f"{name}:{found.block.line}")
        for name, blocks in PAGES.items()
        for found in find(blocks)
    ]


def _run(words: list[str], folder: Path, page: list[Block]) -> subprocess.CompletedProcess[str]:
    for program in programs_of(page):
        if program.block.title:
            (folder / program.block.title).write_text(program.source, encoding="utf-8")
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "error", "NO_COLOR": "1", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def _page_of(block: Block) -> list[Block]:
    return PAGES[block.page.relative_to(ROOT).as_posix()]


@pytest.mark.parametrize("program", _in_pages(programs_of))
def test_a_python_block_runs_as_a_program(program: Program, tmp_path: Path) -> None:
    file = tmp_path / (program.block.title or "block.py")
    file.write_text(program.source, encoding="utf-8")
    done = _run([sys.executable, str(file)], tmp_path, _page_of(program.block))
    if program.fails is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0
        assert program.fails in done.stderr
    if program.prints is not None:
        assert matches(program.prints, done.stdout), done.stdout


@pytest.mark.parametrize("command", _in_pages(commands_of))
def test_a_command_prints_what_its_page_shows(command: Command, tmp_path: Path) -> None:
    words = shlex.split(command.words.removeprefix("python -m "), comments=True)
    done = _run([sys.executable, "-m", *words], tmp_path, _page_of(command.block))
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed, printed
    if command.prints.strip():
        assert matches(command.prints, printed), printed
    else:
        assert done.returncode == 0, printed


def test_there_are_pages() -> None:
    assert "README.md" in PAGES
    assert "docs/index.md" in PAGES
