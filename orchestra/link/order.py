"""What was lost, what came twice, and what has to wait for a signal: pure.

Messages of one sender to one lane are numbered. A gap in the numbers is what was lost on the way; a number
that was seen before is refused. Each packet also says how many signals its sender's process had seen, of each
process that sends any; it is held back, with what comes after it from the same sender to the same lane, until
as many were seen here.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

import attrs

Range = tuple[int, int]
"""Numbers from the first to before the second."""


@attrs.define(eq=False)
class Stream:
    """The messages of one sender to one lane, as they arrive.

    `expected` is the number that comes next, `gaps` those that were lost and that the sender has not been
    told of for certain, `lost` how many were lost in all, `again` how many came twice.
    """

    expected: int = 0
    lost: int = 0
    again: int = 0
    gaps: list[Range] = attrs.Factory(list)
    held: deque[Any] = attrs.Factory(deque)
    """Packets that are ahead of a signal, in order."""

    def admit(self, first: int, count: int) -> int:
        """A packet of `count` messages from number `first` on: how many at its beginning came before."""
        if first > self.expected:
            self.gaps.append((self.expected, first))
            self.lost += first - self.expected
            self.expected = first
        known = min(max(self.expected - first, 0), count)
        self.again += known
        self.expected = max(self.expected, first + count)
        return known

    def heard(self, number: int) -> None:
        """The sender knows what became of all before this number."""
        if self.gaps and self.gaps[0][1] <= number:
            self.gaps = [gap for gap in self.gaps if gap[1] > number]


def ahead(seen: Mapping[int, int], needed: Mapping[int, int]) -> bool:
    """Whether a packet that needs so many signals of each origin is ahead of what was seen here."""
    return any(seen.get(origin, 0) < count for origin, count in needed.items())


def missing_from(gaps: list[Range], first: int, number: int) -> bool:
    """Whether a number, counted from `first`, is in one of the gaps."""
    return any(start <= first + number < stop for start, stop in gaps)
