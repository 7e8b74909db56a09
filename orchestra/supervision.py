"""What happens after a failure: `Restart` lets a subsystem start again, `deferred` says how it is made anew.

The idea is that of Erlang's supervisors: a part that fails is put back into a known state instead of being
mended in the middle, and one that fails too often is given up.
"""

import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, final, overload

import attrs

if TYPE_CHECKING:
    from orchestra.runtime.running import Running

T = TypeVar("T")


def _check_limit(policy: Any, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"Restart: limit is {value!r}: give a whole number of restarts, 1 or more")
    if value < 1:
        raise ValueError(f"Restart: limit is {value!r}: give a whole number of restarts, 1 or more")


def _check_within(policy: Any, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"Restart: within is {value!r}: give a number of seconds above 0, or math.inf")
    if not value > 0:
        raise ValueError(f"Restart: within is {value!r}: give a number of seconds above 0, or math.inf")


def _check_backoff(policy: Any, attribute: Any, value: Any) -> None:
    if not callable(value):
        checked_backoff("Restart: backoff is", value)
    elif inspect.iscoroutinefunction(value):
        raise TypeError(f"Restart: backoff is {value!r}, which is asynchronous: give a plain function")
    elif not _can_take(value, 1):
        raise TypeError(
            f"Restart: backoff is {value!r}, which cannot be called with the number of the restart alone: "
            "give a function such as lambda n: 0.1 * 2**n"
        )


def _can_take(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a function can be called so, as far as its signature tells."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # written in C: it tells no signature
        return True
    return True


def checked_backoff(told: str, value: Any) -> float:
    """A wait in seconds, finite and 0 or more. `told` begins the text of the error."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{told} {value!r}: give a finite number of seconds, 0 or more, or a function")
    if not 0 <= value < math.inf:
        raise ValueError(f"{told} {value!r}: give a finite number of seconds, 0 or more, or a function")
    return value


@final
@attrs.frozen
class Restart:
    """Let a subsystem start again when it has failed: `subsystem(restart=Restart(limit=3, within=10))`.

    After an error in a handler, a hook, `run`, or a task of `ctx.spawn`, the tasks of the subsystem are
    cancelled, `stopped` is called (if `started` had succeeded), `backoff` seconds pass, and `started` and
    `run`, or the handlers, begin anew: on the same instance, or on a fresh one where the field was given
    `deferred(...)`. Old and new never overlap. What waits in its inbox, and who waits for room there, waits
    on; its timers are cancelled. The message that failed goes to the dead letters and is not tried again.

    `limit` is how many restarts there may be within `within` seconds (`math.inf`: ever). The next
    failure within that time is for good: the orchestra stops with that error, which notes the restarts.

    `backoff` is in seconds, finite and 0 or more, or a function of the number of the restart within the
    time (1, 2, ...) that gives them: `lambda n: 0.1 * 2**n` waits longer each time.

    A subsystem that was cancelled by a stop, whose inbox has ended, or that has called `ctx.stop()` or
    `ctx.finish()`, does not start again, nor does any once the orchestra stops. KeyboardInterrupt and
    SystemExit are no failures to recover from. Raises TypeError or ValueError for values that make no sense.
    """

    limit: int = attrs.field(default=3, validator=_check_limit)
    within: float = attrs.field(default=10.0, validator=_check_within)
    backoff: float | Callable[[int], float] = attrs.field(default=0.1, validator=_check_backoff)

    def delay(self, number: int) -> float:
        """Seconds before the restart of this number. Raises what the `backoff` function raises."""
        if callable(self.backoff):
            return checked_backoff(f"Restart: backoff({number}) gave", self.backoff(number))
        return self.backoff


@final
@attrs.frozen
class Deferred:
    """A subsystem that is made at the start, and again for each restart, by `make`."""

    make: Callable[..., Any]
    takes_running: bool

    def __call__(self, running: "Running") -> Any:
        return self.make(running) if self.takes_running else self.make()


@overload
def deferred(make: Callable[[], T]) -> T: ...
@overload
def deferred(make: "Callable[[Running], T]") -> T: ...
def deferred(make: Any) -> Any:
    """Let the orchestra make a subsystem: `App(counter=deferred(Counter))`.

    `make` is called once at each start and once more for each restart, so that a subsystem that failed starts
    with a clean state. One that can be called with nothing is. One that needs a single argument is given
    the handle that `start` gives, to keep and to use once the orchestra runs, if the argument is named
    `running` or annotated with `Running`: `deferred(lambda running: Gate(running))`. The present instance
    is in `running.instances`.

    To the type checker it is what `make` gives, so that it fits the constructor; the field itself goes on
    holding what was put there. All calls must give instances of one class. An error in `make` comes out
    of `start`; at a restart it counts as a failure of the subsystem. Raises TypeError for what cannot be
    called so.
    """
    if not callable(make):
        raise TypeError(
            f"deferred takes a function that makes a subsystem, or a class, and {make!r} is neither"
        )
    return Deferred(make, _takes_running(make))


def _takes_running(make: Callable[..., Any]) -> bool:
    if _can_take(make):
        return False
    signature = inspect.signature(make)
    if not _can_take(make, None):
        raise TypeError(
            f"deferred calls what it is given with nothing or with the running orchestra, and {make!r} takes "
            f"{signature}: write deferred(lambda: ...) or deferred(lambda running: ...)"
        )
    first = next(iter(signature.parameters.values()))
    if first.name != "running" and not _is_running(first.annotation):
        raise TypeError(
            f"deferred would give the running orchestra as {first.name!r} of {make!r}: if that is meant, "
            "name it 'running' or annotate it with Running; if not, write deferred(lambda: ...)"
        )
    return True


def _is_running(annotation: Any) -> bool:
    """Whether an annotation, perhaps in quotes, is the class `Running`, which this module cannot import."""
    return str(getattr(annotation, "__name__", annotation)).rpartition(".")[2] == "Running"
