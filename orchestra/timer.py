"""What a subsystem gets of a timer that it has set, and what becomes of ticks that were missed."""

import enum

__all__ = ["Missed", "Timer"]


class Missed(enum.Enum):
    """What becomes of the ticks of `ctx.send_every` that could not be sent in time.

    A tick is missed when it is late by a whole interval or more, because something held up the event loop;
    when the tick before it is still queued (not under `BURST`); and when its lane drops what finds no room.
    A tick that is late by less than an interval is not missed: it is sent, late.

    The example in each policy: an interval of 1 s, and a loop that is held up from 2.5 s to 5.2 s. The
    ticks of 3, 4 and 5 s are found due at 5.2 s; those of 3 and 4 s are missed.
    """

    SKIP = "skip"
    """Missed ticks are not sent, and the following ones keep to the multiples of the interval.

    Of the example one tick is sent at 5.2 s, that of 5 s; the next at 6 s. To a handler that takes 2.4 s
    ticks are sent at 1, 2, 4 and 6 s; those of 3 and 5 s are missed, for then the one before is still queued.
    """

    COALESCE = "coalesce"
    """All ticks that were missed become a single one, with the one that is due, as soon as it can be sent.

    Of the example one tick is sent at 5.2 s, the next at 6 s. Where `SKIP` waits for the next multiple, the
    single one is sent as soon as the one before has been taken, or there is room: to a handler that takes
    2.4 s at 1, 2, 3.4 and 5.8 s.
    """

    BURST = "burst"
    """Every tick is sent, in order, as soon as the lane takes it, also while the one before is still queued.

    Of the example three ticks are sent at 5.2 s, the next at 6 s. No more are queued than the lane holds; the
    others are sent as room comes. A handler that is slower than its interval never catches up: its lane
    fills.
    """


class Timer:
    """A message that is to be sent later, or one that is sent again and again.

    `ctx.send_after` and `ctx.send_every` give one. It belongs to the event loop of its orchestra. Nothing
    depends on whether it is kept; one that is over keeps nothing alive.
    """

    __slots__ = ("__weakref__",)

    def cancel(self) -> bool:
        """Send nothing more: True when there was something to cancel, False when the timer was over.

        A message that still waits, for its time or for room in its lane, is then nowhere. What is queued is a
        message like any other, and stays.
        """
        raise NotImplementedError

    @property
    def active(self) -> bool:
        """Whether something is still to be sent; a delayed message that waits for room counts."""
        raise NotImplementedError

    @property
    def when(self) -> float | None:
        """When it comes due next, in the seconds of `time.monotonic()`; None when it never does."""
        raise NotImplementedError

    @property
    def missed(self) -> int:
        """How many ticks came due so far and were not sent; those that are sent later no longer count."""
        raise NotImplementedError


class Deadline:
    """A deadline of an Actor. Once it has `passed` it stands in front of the signals, to call the hook.

    It is `off` when it was moved or taken away.
    """

    __slots__ = ("off", "passed", "when")

    def __init__(self, when: float) -> None:
        self.when = when
        self.off = False
        self.passed = False
