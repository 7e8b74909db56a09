"""Output: highlighted on a terminal, plain text into a file or a pipe."""

import os
import sys

from rich.console import Console
from rich.syntax import Syntax


def show_source(source: str, language: str) -> None:
    """Print source text; with colours where stdout can show them."""
    console = Console()
    if console.is_terminal:
        console.print(Syntax(source, language, word_wrap=True, background_color="default"))
    else:
        emit(source)


def emit(text: str) -> None:
    """Write `text` and a line end to stdout. Whoever reads it may stop early: then nothing happens."""
    try:
        sys.stdout.write(f"{text.rstrip()}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
