"""The clock, and the unit of the other figures: one `append` in a function and one `popleft` in another."""

import time
from collections import deque

clock = time.process_time_ns
"""Time that this process had the core. On a machine that does other work too, a clock on the wall
would count that work in the long runs of the cases and hardly ever in the short ones of the floor.
No case waits for anything but itself."""

_REPEATS = 5
_OPERATIONS = 20_000


def floor_ns() -> float:
    """Nanoseconds to hand one object over through a deque: the median of five short runs."""
    return sorted(_hand_over(_OPERATIONS) for _ in range(_REPEATS))[_REPEATS // 2]


def _hand_over(count: int) -> float:
    queue: deque[int] = deque()

    def put(item: int) -> None:
        queue.append(item)

    def get() -> int:
        return queue.popleft()

    began = clock()
    for number in range(count):
        put(number)
        get()
    return (clock() - began) / count
