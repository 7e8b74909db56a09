"""What a message is made of: the steps of the generated code alone, each in a loop less the cost of the loop.

The steps are those of the generated code, in about the order in which they run. What is left between their
sum and the whole are the waits for room, the turns of the loop, and caches that are less warm than here.
"""

from collections.abc import Sequence

from benchmarks.harness import Group
from benchmarks.parts import tried
from benchmarks.parts.fanout import FANOUT
from benchmarks.parts.hops import ASYNC_HOP, HOP
from benchmarks.parts.recv import RECV
from benchmarks.parts.send import SEND, TRY_SEND

SECTIONS = (SEND, TRY_SEND, RECV, HOP, ASYNC_HOP, FANOUT)


def groups(count: int) -> Sequence[Group]:
    """A group for each section, and one of other ways; with runs of about `count` messages."""
    return [*(section.group(count) for section in SECTIONS), tried.group(count)]
