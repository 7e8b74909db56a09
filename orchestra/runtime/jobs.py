"""What the timers of one subsystem have in common: what they work with, and the handle that users hold."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from orchestra.runtime.alarms import Alarms
from orchestra.runtime.clock import Clock
from orchestra.runtime.post import Post
from orchestra.timer import Timer


class Job:
    """What a timer has still to do. It holds everything; its handle lets go of it when it is over."""

    __slots__ = ("timer", "tools")

    def __init__(self, tools: "Tools") -> None:
        self.tools = tools
        self.timer = LiveTimer(self)
        tools.jobs.add(self)

    @property
    def when(self) -> float | None:
        """When it comes due next."""
        raise NotImplementedError

    def cancel(self) -> None:
        """The user does not want it any more: what it has not sent is nowhere."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Its subsystem has ended, or the orchestra ends: what it was given is not lost silently."""
        self.cancel()

    def over(self) -> None:
        """There is nothing left to do."""
        self.tools.jobs.discard(self)
        self.timer.job = None
        self.tools.rested()


class LiveTimer(Timer):
    """The handle of a job. `due` and `sent` count ticks."""

    __slots__ = ("due", "job", "sent")

    def __init__(self, job: Job) -> None:
        self.job: Job | None = job
        self.due = 0
        self.sent = 0

    def cancel(self) -> bool:
        if self.job is None:
            return False
        self.job.cancel()
        return True

    @property
    def active(self) -> bool:
        return self.job is not None

    @property
    def when(self) -> float | None:
        return None if self.job is None else self.job.when

    @property
    def missed(self) -> int:
        return self.due - self.sent

    def __repr__(self) -> str:
        state = (
            "over" if self.job is None else "waits for room" if self.when is None else f"due at {self.when:g}"
        )
        return f"<timer: {state}>"


class Jobs:
    """A set of jobs in the order in which they came. Unlike a dict it gives its memory back as they go."""

    __slots__ = ("_jobs", "_most")

    def __init__(self) -> None:
        self._jobs: dict[Job, None] = {}
        self._most = 0

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs)

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def add(self, job: Job) -> None:
        self._jobs[job] = None
        self._most = max(self._most, len(self._jobs))

    def discard(self, job: Job) -> None:
        self._jobs.pop(job, None)
        if 4 * len(self._jobs) < self._most:
            self._jobs = dict(self._jobs)
            self._most = len(self._jobs)


@attrs.frozen(eq=False)
class Tools:
    """What the jobs of one subsystem work with.

    `bury` takes a message, its receiver and the reason; `fail` ends the subsystem with an error; `call` calls
    a function in the subsystem's context variables; `stopping` asks whether nobody takes messages any more;
    `rested` is called when a job is over. `jobs` are those that may still be abandoned.
    """

    alarms: Alarms
    clock: Clock
    loop: asyncio.AbstractEventLoop
    post: Post
    bury: Callable[[Any, str, str], None]
    fail: Callable[[BaseException], None]
    call: Callable[[Callable[[], Any]], Any]
    stopping: Callable[[], bool]
    rested: Callable[[], None]
    jobs: Jobs = attrs.field(factory=Jobs, init=False)
