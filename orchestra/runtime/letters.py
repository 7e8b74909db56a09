"""Dead letters: what was accepted, or under way, and will never be handled."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs

from orchestra.runtime.log import logger
from orchestra.runtime.telling import raise_soon

QUIET = 10.0
"""Seconds after a line about a subsystem and reason in which no other one is logged."""


@attrs.frozen
class DeadLetter:
    """A message that will never be handled.

    `subsystem` names its receiver. `reason` is "failed" (its handler raised `error`), "cancelled" (its
    handler was cancelled), "finished" (the receiver had ended its loop), "stopped" (it was queued when the
    orchestra stopped), "timer" (it was to be sent later, and its timer ended before) or "lost" (it was on its
    way to another process, and it is not known whether it arrived).
    """

    message: Any
    subsystem: str
    reason: str
    error: BaseException | None = None


class Letters:
    """Gives each dead letter to the hook, once; an error of the hook is logged and the rest still come.

    Without a hook they are logged, by subsystem and reason: the first at once, and the number of those that
    followed every `QUIET` seconds, and when the orchestra has ended.
    """

    def __init__(self, hook: Callable[[DeadLetter], object] | None) -> None:
        self._hook = self._log if hook is None else hook
        self._loop = asyncio.get_running_loop()
        self._quiet: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._untold: Counter[tuple[str, str]] = Counter()
        self._closed = False
        self.buried: Callable[[DeadLetter], None] = lambda letter: None
        """Called with each letter after the hook, which may still answer what the message asks."""

    def bury(self, letter: DeadLetter) -> None:
        """Hand a letter over."""
        try:
            self._hook(letter)
        except BaseException as error:
            logger.exception("the dead_letters hook failed on a message to %r", letter.subsystem)
            raise_soon(error)
        self.buried(letter)

    def close(self) -> None:
        """Log how many letters were not logged one by one. Those that come later are."""
        self._closed = True
        for key, timer in self._quiet.items():
            timer.cancel()
            self._tell(key)
        self._quiet.clear()

    def _log(self, letter: DeadLetter) -> None:
        key = letter.subsystem, letter.reason
        if key in self._quiet:
            self._untold[key] += 1
            return
        kind = type(letter.message).__qualname__
        logger.warning("%s to %r was not handled: %s", kind, letter.subsystem, letter.reason)
        if not self._closed:
            self._be_quiet(key)

    def _be_quiet(self, key: tuple[str, str]) -> None:
        self._quiet[key] = self._loop.call_later(QUIET, self._tell_and_go_on, key)

    def _tell_and_go_on(self, key: tuple[str, str]) -> None:
        """Log what came meanwhile; when nothing did, the next letter is logged at once again."""
        if self._tell(key):
            self._be_quiet(key)
        else:
            del self._quiet[key]

    def _tell(self, key: tuple[str, str]) -> int:
        if count := self._untold.pop(key, 0):
            subsystem, reason = key
            logger.warning(
                "%d more %s not handled by %r: %s",
                count,
                "message was" if count == 1 else "messages were",
                subsystem,
                reason,
            )
        return count
