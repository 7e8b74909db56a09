"""Counting one file: plain functions, run in a pool of processes."""

import io
import keyword
import os
import signal
import tokenize
import warnings
from collections import Counter

from examples.census.messages import Counted, Unreadable

_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def count_file(path: str) -> Counted | Unreadable:
    """The figures of the file, or why there are none."""
    try:
        with tokenize.open(path) as file:
            return count_text(file.read())
    except (OSError, SyntaxError, ValueError, tokenize.TokenError) as error:
        return Unreadable(printable(path), printable(f"{type(error).__name__}: {error}"))


def count_text(text: str) -> Counted:
    """The figures of a source text. Raises what `tokenize` raises."""
    code: set[int] = set()
    comments: set[int] = set()
    kinds: Counter[int] = Counter()
    names: Counter[str] = Counter()
    with warnings.catch_warnings(action="ignore"):
        for kind, string, (first, _), (last, _), _ in tokenize.generate_tokens(io.StringIO(text).readline):
            kinds[kind] += 1
            if kind == tokenize.COMMENT:
                comments.add(first)
            elif kind not in _LAYOUT:
                code.update(range(first, last + 1))
                if kind == tokenize.NAME and not keyword.iskeyword(string):
                    names[string] += 1
    lines = text.removesuffix("\n").split("\n") if text else []
    blank = sum(not line.strip() and row not in code for row, line in enumerate(lines, 1))
    comment = len(comments - code)
    return Counted(
        code=len(lines) - comment - blank,
        comment=comment,
        blank=blank,
        tokens={tokenize.tok_name[kind]: count for kind, count in kinds.items()},
        names=dict(names),
    )


def printable(text: str) -> str:
    """Text that can be printed and packed: names of files may hold bytes that are no UTF-8."""
    return os.fsencode(text).decode("utf-8", "replace")


def leave_interrupts_to_the_parent() -> None:
    """Ctrl-C goes to every process of the terminal; only the parent shall act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
