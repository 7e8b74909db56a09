"""What becomes of running orchestras in a forked child process: there they have ended.

Their loop, their tasks and their threads stay behind in the parent, so nothing that was put into a lane in
the child would ever be handled.
"""

import os
import weakref
from typing import Any, Protocol


class Forked(Protocol):
    """What is to be told that it finds itself in a child process."""

    def disown(self) -> None: ...


_watched: "weakref.WeakSet[Forked]" = weakref.WeakSet()


def watch(what: Forked) -> None:
    """Call its `disown` in every process that is forked from this one while it exists."""
    _watched.add(what)


def renew(lock: Any) -> None:
    """Open a lock that a thread of the parent may have held."""
    lock._at_fork_reinit()


def _tell() -> None:
    for what in list(_watched):
        what.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tell)
