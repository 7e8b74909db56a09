"""The type checkers find each mistake that is marked in the programs here, and no other."""

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
PROGRAMS = ("wrong.py", "declaring.py", "wrapping.py", "asking.py", "blocking.py", "testing.py")


def marked(program: pathlib.Path) -> set[int]:
    lines = program.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.rstrip().endswith("# wrong")}


def mypy(program: pathlib.Path, folder: pathlib.Path) -> dict[int, str]:
    words = ["--strict", "--config-file=", "--no-error-summary", f"--cache-dir={folder}", str(program)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [re.match(r"(.*?):(\d+): error: (.*)", line) for line in done.stdout.splitlines()]
    return {
        int(match[2]): match[3] for match in found if match and pathlib.Path(match[1]).name == program.name
    }


def pyright(mode: str) -> Callable[[pathlib.Path, pathlib.Path], dict[int, str]]:
    def check(program: pathlib.Path, folder: pathlib.Path) -> dict[int, str]:
        config = {"include": [str(program)], "extraPaths": [str(ROOT)], "typeCheckingMode": mode}
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
        assert told["summary"]["filesAnalyzed"] == 1
        return {
            each["range"]["start"]["line"] + 1: each["message"]
            for each in told["generalDiagnostics"]
            if each["severity"] == "error"
        }

    return check


CHECKERS = {
    "mypy": mypy,
    "basedpyright standard": pyright("standard"),
    "basedpyright strict": pyright("strict"),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("checker", CHECKERS)
def test_exactly_the_marked_lines_are_errors(checker: str, program: str, tmp_path: pathlib.Path) -> None:
    errors = CHECKERS[checker](HERE / program, tmp_path)
    expected = marked(HERE / program)
    assert expected
    assert {line: text for line, text in errors.items() if line not in expected} == {}
    assert expected - set(errors) == set()
