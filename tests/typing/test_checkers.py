"""The type checkers find each mistake that is marked in the programs here, and no other."""

import functools
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

pytest.importorskip("mypy")
basedpyright = pytest.importorskip("basedpyright")

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
Errors = dict[str, dict[int, str]]
"""The errors in each program, by line."""

PROGRAMS = ("wrong.py", "declaring.py", "wrapping.py", "asking.py", "blocking.py", "testing.py")


def marked(program: pathlib.Path) -> set[int]:
    lines = program.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.rstrip().endswith("# wrong")}


def mypy(programs: list[pathlib.Path], folder: pathlib.Path) -> Errors:
    words = ["--strict", "--config-file=", "--no-error-summary", f"--cache-dir={folder}", *map(str, programs)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    errors: Errors = {program.name: {} for program in programs}
    for line in done.stdout.splitlines():
        match = re.match(r"(.*?):(\d+): error: (.*)", line)
        if match and pathlib.Path(match[1]).name in errors:
            errors[pathlib.Path(match[1]).name][int(match[2])] = match[3]
    return errors


def pyright(mode: str) -> Callable[[list[pathlib.Path], pathlib.Path], Errors]:
    def check(programs: list[pathlib.Path], folder: pathlib.Path) -> Errors:
        config = {
            "include": [str(program) for program in programs],
            "extraPaths": [str(ROOT)],
            "typeCheckingMode": mode,
        }
        (folder / "pyrightconfig.json").write_text(json.dumps(config))
        words = ["--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
        done = subprocess.run(
            [sys.executable, "-m", "basedpyright", *words],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        told = json.loads(done.stdout)
        assert told["summary"]["filesAnalyzed"] == len(programs)
        errors: Errors = {program.name: {} for program in programs}
        for each in told["generalDiagnostics"]:
            if each["severity"] == "error":
                errors[pathlib.Path(each["file"]).name][each["range"]["start"]["line"] + 1] = each["message"]
        return errors

    return check


CHECKERS = {
    "mypy": mypy,
    "basedpyright standard": pyright("standard"),
    "basedpyright strict": pyright("strict"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Errors]:
    """What a checker finds in all the programs; it is run once."""

    @functools.cache
    def check(checker: str) -> Errors:
        return CHECKERS[checker]([HERE / program for program in PROGRAMS], tmp_path_factory.mktemp("checker"))

    return check


@pytest.mark.timeout(180)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("checker", CHECKERS)
def test_exactly_the_marked_lines_are_errors(
    checker: str, program: str, found: Callable[[str], Errors]
) -> None:
    errors = found(checker)[program]
    expected = marked(HERE / program)
    assert expected
    assert {line: text for line, text in errors.items() if line not in expected} == {}
    assert expected - set(errors) == set()
