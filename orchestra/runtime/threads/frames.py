"""Where a thread stands in its source."""

import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

_INSIDE = frozenset({"asyncio", "orchestra", "threading", "queue", "concurrent", "selectors"})
"""Packages in which nobody looks for the cause."""


def place_of(thread: threading.Thread, function: Callable[..., Any] | None = None) -> str:
    """Thread, file, line and function of the innermost frame that is the user's own.

    A function written in C has no frame: where there is none of the user's, it is told by its name.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return f"thread {thread.name} at its end"
    own = innermost(frame)
    if function is not None and _is_inside(own):
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
        return f"thread {thread.name} in {f'{module}.{name}' if module and name else repr(function)}"
    return f"thread {thread.name} at {told(own)}"


def innermost(frame: types.FrameType) -> types.FrameType:
    """The innermost frame that belongs neither to this library nor to what it stands on."""
    return next((each for each in outwards(frame) if not _is_inside(each)), frame)


def outwards(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    """A frame, and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def told(frame: types.FrameType) -> str:
    """File, line and function of a frame."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"


def _is_inside(frame: types.FrameType) -> bool:
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package in _INSIDE or frame.f_code.co_filename.startswith("<orchestra generated ")
