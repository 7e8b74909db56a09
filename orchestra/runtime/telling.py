"""Telling of errors whose own methods may fail, and which of them are to end the program."""

import asyncio
import os
import sys
from threading import current_thread
from types import FrameType
from typing import NoReturn

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def told(error: BaseException) -> str:
    """The type and text of an error, or its type alone where the text cannot be had."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__} (its text cannot be shown)"


def note(error: BaseException, text: str) -> None:
    """Add a note to an error, past what its class makes of `add_note`."""
    BaseException.add_note(error, text)


def caller() -> str:
    """File and line of the user's code that runs now: the nearest frame outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return "an unknown place" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def wrong_thread(after: str = "") -> RuntimeError:
    """The error for another thread than that of the loop; `after` says what was done all the same."""
    return RuntimeError(
        f"the context belongs to the thread of its event loop, and this is {current_thread().name!r}: "
        f"give the field blocking=True, or use running.threadsafe(){after}"
    )


def interrupts(error: BaseException) -> bool:
    """Whether an error is to end the program: KeyboardInterrupt, SystemExit, or a group with one of them."""
    kinds = KeyboardInterrupt, SystemExit
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(kinds) is not None
    return isinstance(error, kinds)


def raise_soon(error: BaseException) -> None:
    """Let an error that is to end the program come out of the running loop; do nothing with any other.

    That is for what was raised where nothing may be left half done.
    """
    if interrupts(error):
        asyncio.get_running_loop().call_soon(_raise, error)


def _raise(error: BaseException) -> NoReturn:
    raise error
