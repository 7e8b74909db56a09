"""What the subsystems of the census send each other."""

import msgspec

from orchestra import boxed


@boxed(False)
class Plain(msgspec.Struct, frozen=True, gc=False):
    """Base of the messages with nothing in them that a box is good for."""


class Halt(Plain, frozen=True, gc=False):
    """The signal and the event of the census, for it must name some.

    Nobody sends it, as what is urgent here has one receiver, so no context speaks of it.
    """


class Found(Plain, frozen=True, gc=False):
    """How many files there are to count, as far as is known."""

    files: int


class SourceFile(Plain, frozen=True, gc=False):
    """A file to count."""

    path: str


class Unreadable(Plain, frozen=True, gc=False):
    """A file that cannot be read, decoded or tokenized."""

    path: str
    reason: str


class WalkDone(Plain, frozen=True, gc=False):
    """The walker has sent its last file."""


class StopWalking(Plain, frozen=True, gc=False):
    """Send no more files."""


class ReportNow(Plain, frozen=True, gc=False):
    """Send a report of what is counted by now."""


class Counted(msgspec.Struct, frozen=True, gc=False):
    """The figures of one file. A line is code, comment or blank; a line within a string is code."""

    code: int
    comment: int
    blank: int
    tokens: dict[str, int]
    names: dict[str, int]


class Report(msgspec.Struct, frozen=True):
    """The figures of all files counted so far. `names` are the most frequent, most frequent first."""

    found: int = 0
    files: int = 0
    lines: int = 0
    code: int = 0
    comment: int = 0
    blank: int = 0
    tokens: dict[str, int] = {}
    names: list[tuple[str, int]] = []
    unreadable: list[Unreadable] = []
    final: bool = False
