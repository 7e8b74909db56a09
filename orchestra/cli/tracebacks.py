"""How a command that runs an orchestra shows an error: by the user's own lines."""

import asyncio
import os
import sys
import traceback
from collections.abc import Callable

import orchestra
from orchestra.cli.errors import CommandError

_LEFT_OUT = (orchestra.__path__[0] + os.sep, os.path.dirname(asyncio.__file__) + os.sep, "<orchestra ")
_HINT = "Frames of orchestra and asyncio are left out; --verbose shows them.\n"


def status_of(call: Callable[[], object], *, verbose: bool) -> int:
    """Run an orchestra: 0, or 1 after an error that was shown, with every frame if it is to be `verbose`."""
    try:
        call()
    except CommandError:
        raise
    except Exception as error:
        if verbose:
            raise
        print(traceback_of(error), end="", file=sys.stderr)
        return 1
    return 0


def traceback_of(error: BaseException) -> str:
    """The traceback of an error and of those that led to it, without the frames of this package."""
    shown = traceback.TracebackException.from_exception(error)
    left_out = _shorten(shown, set())
    return "".join(shown.format()) + _HINT * (left_out > 0)


def _shorten(shown: traceback.TracebackException, seen: set[int]) -> int:
    """Leave frames out, everywhere, and count them."""
    if id(shown) in seen:
        return 0
    seen.add(id(shown))
    kept = [frame for frame in shown.stack if not frame.filename.startswith(_LEFT_OUT)]
    left_out = len(shown.stack) - len(kept)
    shown.stack = traceback.StackSummary.from_list(kept)
    others = [shown.__cause__, shown.__context__, *(getattr(shown, "exceptions", None) or ())]
    return left_out + sum(_shorten(other, seen) for other in others if other is not None)
