"""`Retrying`: an Actor whose handler is called again when it fails."""

import asyncio
import datetime
from collections.abc import Callable
from typing import Any, Final

import attrs

from orchestra.errors import (
    BoxError,
    Closed,
    DeclarationError,
    TooLarge,
    UndeclaredMessage,
    UndeclaredOverflow,
    UndeclaredPriority,
)
from orchestra.messages import shown
from orchestra.runtime.log import logger
from orchestra.subsystems import Actor, In, SOut
from orchestra.wrapping import Wrapper, may_wait

_HINT = "orchestra.wrappers.Retrying needs stamina: pip install 'orchestra-wiring[retry]'"

Decision = bool | float | datetime.timedelta
On = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], Decision]

FINAL: Final = (
    BoxError,
    Closed,
    DeclarationError,
    TooLarge,
    UndeclaredMessage,
    UndeclaredOverflow,
    UndeclaredPriority,
)
"""Errors of this library that would be the same at the next attempt."""


@attrs.frozen
class Schedule:
    """How often, and after which waits: the arguments of `stamina.retry` of the same names."""

    attempts: int | None
    timeout: float | None
    wait_initial: float
    wait_max: float
    wait_jitter: float
    wait_exp_base: float

    def __attrs_post_init__(self) -> None:
        attempts = self.attempts
        whole = isinstance(attempts, int) and not isinstance(attempts, bool) and attempts >= 1
        if attempts is not None and not whole:
            raise ValueError(f"attempts is {attempts!r}: give a whole number of 1 or more, or None")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout is {self.timeout!r}: give a number of seconds above 0, or None")
        for name in ("wait_initial", "wait_max", "wait_jitter"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}: give a number of seconds, 0 or more")
        if not self.wait_exp_base >= 1:
            raise ValueError(f"wait_exp_base is {self.wait_exp_base!r}: give a number of 1 or more")


class Retrying(Wrapper[In, SOut]):
    """Calls the handler of the Actor in it again when it fails, with a growing wait between the attempts.

        mailer = Retrying(Mailer(), on=(OSError, TimeoutError), attempts=5)

    `on` says which errors are worth another attempt: a class, several, or a function of the error that gives
    True, False, or the seconds to wait (that needs stamina 25.1). Whatever `on` says, some are not: what is
    no `Exception`, such as a cancellation, and what would be the same next time: `Closed`, `BoxError`,
    `DeclarationError`, `TooLarge`, and a send that was not declared. `Full` is worth another one, for room
    may come.

    There are at most `attempts` in all, and none begins when `timeout` seconds have passed since the first
    one failed; a running one is not cut short. After attempt n the wait is
    `wait_initial * wait_exp_base**(n - 1)` and a random part of up to `wait_jitter`, `wait_max` at most; all
    in seconds. stamina does the counting and the waiting, so its `set_active` and `set_testing` hold here,
    and its hooks are told of each retry.

    The error of the last attempt leaves the handler as it is: then the message is dead-lettered, and a
    `restart=` or the orchestra's failure sees it. What an attempt has sent before it failed stays sent.
    Only handlers are called again, hooks are not.

    While it waits, the loop is free, the message stays at its turn, and the next one of this subsystem
    waits, as for any handler that awaits. At a stop the wait goes on within the time limit; then it is
    cancelled, and the message dead-lettered. In a subsystem with `blocking=True` the thread sleeps.

    Raises TypeError for what is no instance of an Actor, TypeError and ValueError for arguments out of range,
    and ModuleNotFoundError without the extra `retry`.
    """

    def __init__(
        self,
        inner: Actor[In, SOut],
        *,
        on: On = Exception,
        attempts: int | None = 3,
        timeout: float | None = 45.0,
        wait_initial: float = 0.1,
        wait_max: float = 5.0,
        wait_jitter: float = 1.0,
        wait_exp_base: float = 2.0,
    ) -> None:
        super().__init__(inner)
        _check_on(on)
        _stamina()
        self._on = on
        self._schedule = Schedule(attempts, timeout, wait_initial, wait_max, wait_jitter, wait_exp_base)

    @may_wait
    def handle(self, ctx: Any, message: Any, /) -> Any:
        """Forward a message, again and again while that fails, as often as was said."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._retry_in_thread(ctx, message)
        return self._retry(ctx, message)

    async def _retry(self, ctx: Any, message: Any) -> None:
        try:
            await super().handle(ctx, message)
            return
        except Exception as error:
            failure: Exception | None = error
        attempt = None
        try:
            async for attempt in self._attempts():
                with attempt:
                    if failure is not None:
                        raise failure
                    self._tell(ctx, message, attempt.num)
                    await super().handle(ctx, message)
                failure = None
        finally:
            del attempt, failure  # the traceback of an error holds this frame, and so the message

    def _retry_in_thread(self, ctx: Any, message: Any) -> None:
        try:
            super().handle(ctx, message)
            return
        except Exception as error:
            failure: Exception | None = error
        attempt = None
        try:
            for attempt in self._attempts():
                with attempt:
                    if failure is not None:
                        raise failure
                    self._tell(ctx, message, attempt.num)
                    super().handle(ctx, message)
                failure = None
        finally:
            del attempt, failure

    def _attempts(self) -> Any:
        """The attempts, the first of which has failed already: its error is only raised again there.

        So a message that is handled at once costs next to nothing.
        """
        return _stamina().retry_context(on=self._is_worth_it, **attrs.asdict(self._schedule))

    def _tell(self, ctx: Any, message: Any, number: int) -> None:
        most = self._schedule.attempts
        of = "" if most is None else f" of {most}"
        logger.info("%s: attempt %d%s for a %s", ctx.name, number, of, shown(type(message)))

    def _is_worth_it(self, error: BaseException) -> Decision:
        if not isinstance(error, Exception) or isinstance(error, FINAL):
            return False
        if isinstance(self._on, type | tuple):
            return isinstance(error, self._on)
        return self._on(error)


def _check_on(on: Any) -> None:
    kinds = on if isinstance(on, tuple) else (on,)
    fits = all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds) and kinds
    if not fits and (isinstance(on, type | tuple) or not callable(on)):
        raise TypeError(f"on is {on!r}: give an Exception class, a tuple of them, or a function of the error")


def _stamina() -> Any:
    try:
        import stamina
    except ModuleNotFoundError as error:
        if error.name != "stamina":
            raise
        raise ModuleNotFoundError(_HINT, name=error.name) from error
    return stamina
