"""`Timed`: how long an Actor takes for its messages."""

import logging
import math
from collections.abc import Awaitable, Mapping
from time import perf_counter
from types import MappingProxyType
from typing import Any

import attrs

from orchestra.messages import shown
from orchestra.runtime.letters import QUIET
from orchestra.runtime.log import logger
from orchestra.subsystems import Actor, In, SOut
from orchestra.wrapping import DONE, Wrapper


@attrs.frozen
class Timing:
    """How long messages of one class took: `count` of them, `total` and `longest` in seconds.

    `failures` are those of them whose handler raised or was cancelled.
    """

    count: int = 0
    total: float = 0.0
    longest: float = 0.0
    failures: int = 0

    @property
    def mean(self) -> float:
        """Seconds for one message; 0.0 before the first."""
        return self.total / self.count if self.count else 0.0

    def plus(self, seconds: float, *, failed: bool) -> "Timing":
        """These figures with one message more."""
        return Timing(
            self.count + 1, self.total + seconds, max(self.longest, seconds), self.failures + failed
        )


@attrs.define
class _Quiet:
    """Until when there is no other line, and how many there would have been."""

    until: float = -math.inf
    left_out: int = 0


class Timed(Wrapper[In, SOut]):
    """Measures how long the Actor in it takes for each message, and tells of those that take too long.

        worker = Timed(Worker(), warn_over=0.5)
        ...
        worker.meters()["Job"].longest

    The time runs from the call of the handler to its end, in seconds of a monotonic clock. For an
    asynchronous handler that includes all that it waits for: room in a lane, a reply, sleep. Waiting in the
    lane before that is not included. Hooks are not measured.

    Messages are logged at DEBUG, and at WARNING when they took more than `warn_over` seconds, by the logger
    `orchestra`: at most one line in ten seconds for each subsystem, class of messages and level, which tells
    how many were left out since the one before. The handler stays what it is: a plain one is called without
    a task switch.

    Figures are kept for each class of messages, not for each message or sender, and over all runs.
    Raises TypeError for what is no instance of an Actor, ValueError when `warn_over` is not above 0.
    """

    def __init__(self, inner: Actor[In, SOut], *, warn_over: float | None = None) -> None:
        super().__init__(inner)
        if warn_over is not None and not warn_over > 0:
            raise ValueError(f"warn_over is {warn_over!r}: give a number of seconds above 0, or leave it out")
        self.warn_over = warn_over
        self._timings: dict[type, Timing] = {}
        self._quiet: dict[tuple[str, type, int], _Quiet] = {}

    def meters(self) -> Mapping[str, Timing]:
        """The figures for each class of messages handled so far, by its name: a snapshot.

        Classes of one name are told apart by their modules.
        """
        timings = self._timings.copy()
        names = [shown(kind) for kind in timings]
        return MappingProxyType(
            {
                shown(kind, with_module=names.count(name) > 1): timing
                for (kind, timing), name in zip(timings.items(), names, strict=True)
            }
        )

    def handle(self, ctx: Any, message: Any, /) -> Any:
        """Forward a message, and note how long it took until it was handled."""
        begun = perf_counter()
        try:
            result = super().handle(ctx, message)
        except BaseException:
            self._note(ctx, message, begun, failed=True)
            raise
        if result is not DONE:
            return self._awaited(result, ctx, message, begun)
        self._note(ctx, message, begun, failed=False)
        return result

    async def _awaited(self, result: Awaitable[Any], ctx: Any, message: Any, begun: float) -> None:
        failed = True
        try:
            await result
            failed = False
        finally:
            self._note(ctx, message, begun, failed=failed)

    def _note(self, ctx: Any, message: Any, begun: float, *, failed: bool) -> None:
        seconds = perf_counter() - begun
        kind = type(message)
        self._timings[kind] = self._timings.get(kind, Timing()).plus(seconds, failed=failed)
        late = self.warn_over is not None and seconds > self.warn_over
        level = logging.WARNING if late else logging.DEBUG
        if logger.isEnabledFor(level) and (more := self._left_out(ctx.name, kind, level)) is not None:
            how = "failed after" if failed else "took"
            limit = f", over the limit of {self.warn_over:g} s" if late else ""
            logger.log(level, "%s: a %s %s %.6f s%s%s", ctx.name, shown(kind), how, seconds, limit, more)

    def _left_out(self, name: str, kind: type, level: int) -> str | None:
        """What a line says of those that were not logged since the one before; None: it is left out too."""
        now = perf_counter()
        quiet = self._quiet.setdefault((name, kind, level), _Quiet())
        if now < quiet.until:
            quiet.left_out += 1
            return None
        left_out, quiet.left_out, quiet.until = quiet.left_out, 0, now + QUIET
        return f" ({left_out} more since the last such line)" if left_out else ""
