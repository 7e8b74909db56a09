"""SVG through the command `dot` of Graphviz."""

import shutil
import subprocess

from orchestra.cli.errors import CommandError


def svg_of(dot_source: str) -> str:
    """The drawing as SVG text. CommandError when Graphviz is not installed or refuses."""
    program = shutil.which("dot")
    if program is None:
        raise CommandError(
            "svg is drawn by Graphviz, whose command `dot` is not found; install it "
            "(apt install graphviz, brew install graphviz, winget install graphviz), "
            "or use --format mermaid or --format dot"
        )
    done = subprocess.run(
        [program, "-Tsvg"], input=dot_source, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode != 0:
        raise CommandError(f"`dot` failed with status {done.returncode}: {done.stderr}", status=1)
    return done.stdout
