"""Where a thread stands in its source."""

import sys
import threading
import types
from collections.abc import Iterator

_INSIDE = frozenset({"asyncio", "orchestra", "threading", "queue", "concurrent", "selectors"})
"""Packages in which nobody looks for the cause."""


def place_of(thread: threading.Thread) -> str:
    """Thread, file, line and function of the innermost frame that is the user's own, where there is one."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return f"thread {thread.name} at its end"
    return f"thread {thread.name} at {told(innermost(frame))}"


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
