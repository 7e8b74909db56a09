"""Dead letters: what was accepted, or under way, and will never be handled."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs

from orchestra.runtime.log import logger


@attrs.frozen
class DeadLetter:
    """A message that will never be handled.

    `subsystem` names its receiver. `reason` is "failed" (its handler raised `error`), "cancelled" (its
    handler was cancelled), "finished" (the receiver had ended its loop) or "stopped" (it was queued when the
    orchestra stopped).
    """

    message: Any
    subsystem: str
    reason: str
    error: BaseException | None = None


class Letters:
    """Gives each dead letter to the hook, once; an error of the hook is logged and the rest still come.

    Without a hook the first letter of each subsystem and reason is logged at once, and the number of those
    that followed when the orchestra has ended.
    """

    def __init__(self, hook: Callable[[DeadLetter], object] | None) -> None:
        self._hook = hook or self._log
        self.buried: Callable[[DeadLetter], None] = lambda letter: None
        """Called with each letter after the hook, which may still answer what the message asks."""
        self._counts: Counter[tuple[str, str]] = Counter()

    def bury(self, letter: DeadLetter) -> None:
        """Hand a letter over."""
        try:
            self._hook(letter)
        except (Exception, asyncio.CancelledError):
            logger.exception("the dead_letters hook failed on a message to %r", letter.subsystem)
        self.buried(letter)

    def close(self) -> None:
        """Log how many letters were not logged one by one."""
        for (subsystem, reason), count in self._counts.items():
            if count > 1:
                logger.warning(
                    "%d more %s not handled by %r: %s",
                    count - 1,
                    "message was" if count == 2 else "messages were",
                    subsystem,
                    reason,
                )

    def _log(self, letter: DeadLetter) -> None:
        key = letter.subsystem, letter.reason
        self._counts[key] += 1
        if self._counts[key] == 1:
            kind = type(letter.message).__qualname__
            logger.warning("%s to %r was not handled: %s", kind, letter.subsystem, letter.reason)
