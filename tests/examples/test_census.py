"""The census agrees with a plain count, survives any file, and ends as it should."""

import contextlib
import fcntl
import io
import json
import keyword
import os
import pty
import re
import signal
import subprocess
import sys
import sysconfig
import termios
import time
import tokenize
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from examples.census.counting import count_text
from examples.census.messages import Report

ROOT = Path(__file__).parents[2]
STDLIB = Path(sysconfig.get_paths()["stdlib"])


def census(*words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "examples.census", *words],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=options.pop("timeout", 50),
        check=False,
        **options,
    )


def figures(*words: str) -> Report:
    done = census("--json", *words)
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=Report)


def plain_count(paths: list[Path]) -> dict[str, Any]:
    """The same figures by a single loop: what is on a line is found by marking its characters."""
    totals: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    names: Counter[str] = Counter()
    unreadable = []
    for path in paths:
        try:
            with tokenize.open(path) as file:
                text = file.read()
            found = list(tokenize.generate_tokens(io.StringIO(text).readline))
        except (OSError, SyntaxError, ValueError, tokenize.TokenError):
            unreadable.append(str(path))
            continue
        lines = io.StringIO(text).readlines()
        marks = ["" for _ in lines]
        for token in found:
            tokens[tokenize.tok_name[token.type]] += 1
            if token.type == tokenize.NAME and token.string not in keyword.kwlist:
                names[token.string] += 1
            if token.string.strip() or token.start[0] != token.end[0]:
                for row in range(token.start[0], min(token.end[0], len(lines)) + 1):
                    marks[row - 1] += "#" if token.type == tokenize.COMMENT else "x"
        for line, mark in zip(lines, marks, strict=True):
            if "x" in mark or (not mark and line.strip()):
                totals["code"] += 1
            elif "#" in mark:
                totals["comment"] += 1
            else:
                totals["blank"] += 1
        totals["files"] += 1
        totals["lines"] += len(lines)
    top = sorted(names.items(), key=lambda name: (-name[1], name[0]))[:10]
    return {**totals, "tokens": dict(tokens), "names": top, "unreadable": sorted(unreadable)}


def assert_agrees(report: Report, paths: list[Path]) -> None:
    plain = plain_count(paths)
    assert report.found == len(paths)
    assert report.final
    assert (report.files, report.lines) == (plain["files"], plain["lines"])
    assert (report.code, report.comment, report.blank) == (plain["code"], plain["comment"], plain["blank"])
    assert report.tokens == plain["tokens"]
    assert report.names == plain["names"]
    assert [file.path for file in report.unreadable] == plain["unreadable"]


SOURCES = {
    "plain.py": "import os\n\n# a comment\nprint(os.name)  # beside code\n",
    "strings.py": 'TEXT = """one\n\n# no comment\n"""\n\n\n',
    "joined.py": "total = 1 + \\\n    2\n",
    "lonely.py": "\\\n\npass\n",
    "folded.py": "call(\n    1,\n\n    # within\n    2,\n)\n",
    "empty.py": "",
    "no_end.py": "last = 1",
    "crlf.py": "a = 1\r\n\r\n# b\r\n",
    "deep/inner/names.py": "self.self = self\nmatch = type\n",
    "deep/grüße.py": "größe = 'ß'\n",
    "form_feed.py": "a = 1\n\x0c\nb = 2\n",
    "unclosed.py": "call(1,\n",
    "indented.py": "if 1:\n        a\n    b\n",
    "ignored.txt": "not Python",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (tmp_path / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nname = '\xe9'\n")
    (tmp_path / "undecodable.py").write_bytes(b"name = '\xe9'\n")
    (tmp_path / "cookie.py").write_bytes(b"# coding: no-such-thing\n")
    (tmp_path / "zero.py").write_bytes(b"a = 1\n\x00\n")
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "folder.py").mkdir()
    return tmp_path


def sources(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.py") if path.is_symlink() or path.is_file())


def test_the_totals_of_a_small_tree_agree_with_a_plain_count(tree: Path) -> None:
    assert_agrees(figures(str(tree)), sources(tree))


def test_the_totals_of_a_part_of_the_standard_library_agree_with_a_plain_count() -> None:
    root = STDLIB / "asyncio"
    assert_agrees(figures(str(root)), sources(root))


def test_a_file_that_cannot_be_counted_is_named_at_the_end(tree: Path) -> None:
    done = census(str(tree))
    assert done.returncode == 0, done.stderr
    for name in ("undecodable.py", "cookie.py", "dangling.py", "unclosed.py"):
        assert any(
            line.startswith("not counted: ") and f"{name}: " in line for line in done.stdout.splitlines()
        )


def test_a_file_name_that_is_no_text_is_counted_and_named(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    for name, text in ((b"\xff.py", b"a = 1\n"), (b"\xfe.py", b"(")):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(text)
    report = figures(str(tmp_path))
    assert report.files == 1
    assert report.unreadable[0].path.endswith("�.py")


def test_an_empty_tree_is_counted(tmp_path: Path) -> None:
    report = figures(str(tmp_path))
    assert (report.found, report.files, report.final) == (0, 0, True)


def test_limit_counts_that_many_files(tree: Path) -> None:
    for limit in (0, 3):
        report = figures(str(tree), "--limit", str(limit))
        assert report.files + len(report.unreadable) == report.found == limit
        assert report.final


def test_the_table_and_plain_lines_are_shown_when_there_is_no_terminal(tree: Path) -> None:
    done = census(str(tree))
    assert "Census" in done.stdout
    assert "census: " in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_json_is_all_that_goes_to_stdout(tree: Path) -> None:
    assert json.loads(census("--json", str(tree)).stdout)["final"] is True


def test_a_path_that_is_no_folder_is_refused(tree: Path) -> None:
    assert census(str(tree / "nowhere")).returncode != 0
    assert census(str(tree / "plain.py")).returncode != 0


def test_a_line_is_code_comment_or_blank() -> None:
    counted = count_text(SOURCES["strings.py"] + SOURCES["folded.py"])
    assert (counted.code, counted.comment, counted.blank) == (8, 1, 3)


@contextlib.contextmanager
def counting_the_standard_library() -> Generator["subprocess.Popen[str]"]:
    """A census that has shown some files on a line of its stderr."""
    with subprocess.Popen(
        [sys.executable, "-m", "examples.census", "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("census: ") and not line.startswith("census: 0 "):
                    break
            yield process
        finally:
            process.kill()


def test_an_interrupt_ends_it_with_the_figures_so_far_and_status_0() -> None:
    with counting_the_standard_library() as process:
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0, err
        assert "Traceback" not in err
    assert time.monotonic() - began < 10
    report = msgspec.json.decode(out, type=Report)
    assert not report.final
    assert 0 < report.files < report.found


def test_sigusr1_asks_for_a_report_at_once() -> None:
    with counting_the_standard_library() as process:
        assert process.stderr is not None
        began = time.monotonic()
        for _ in range(6):  # six seconds, if each waited for the clock
            process.send_signal(signal.SIGUSR1)
            assert process.stderr.readline().startswith("census: ")
        assert time.monotonic() - began < 4
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def test_on_a_terminal_a_bar_is_drawn_and_the_key_q_stops_the_walker() -> None:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.census"],
        cwd=ROOT,
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
    )
    os.close(child)
    shown = b""
    try:
        while b"1,7" not in shown and b"/1" not in shown:
            shown += os.read(parent, 4096)
        os.write(parent, b"q")
        with contextlib.suppress(OSError):  # how Linux tells that the other end is closed
            while more := os.read(parent, 4096):
                shown += more
        assert process.wait(timeout=30) == 0, shown
    finally:
        process.kill()
        process.wait()
        os.close(parent)
    text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).decode()
    assert "q: stop" in text
    assert "Traceback" not in text
    table = text[text.rindex(" Census ") :]
    counted = int(re.search(r"files\s*│\s*([\d,]+)", table)[1].replace(",", ""))  # type: ignore[index]
    assert 0 < counted < 1000


@pytest.mark.slow
def test_the_standard_library_is_counted_in_reasonable_time() -> None:
    began = time.monotonic()
    report = figures()
    assert report.final
    assert report.files + len(report.unreadable) == report.found > 500
    assert time.monotonic() - began < 50
