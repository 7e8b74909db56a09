"""The command `orchestra`, also as `python -m orchestra`."""

import sys
from collections.abc import Sequence

_HINT = "orchestra: the command needs the extra `cli`: pip install 'orchestra-wiring[cli]' ({} is missing)"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command with `words` (the command line by default) and return its exit status."""
    try:
        from orchestra.cli import command
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in {"cyclopts", "rich"}:
            raise
        print(_HINT.format(missing), file=sys.stderr)
        return 2
    return command(sys.argv[1:] if words is None else words)


if __name__ == "__main__":
    sys.exit(main())
