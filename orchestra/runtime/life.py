"""One life of a subsystem, from `started` to the end of its last task, and what goes wrong in it."""

import asyncio
import contextvars
import enum
import inspect
from functools import partial
from types import MethodType
from typing import Any, Protocol

from orchestra.errors import Closed
from orchestra.plan import SubsystemPlan
from orchestra.runtime.inbox import Inbox, Order
from orchestra.runtime.log import logger
from orchestra.runtime.owned import Owned
from orchestra.runtime.scheduler import Scheduler, Step
from orchestra.runtime.strand import Strand, park
from orchestra.runtime.telling import interrupts, note, told
from orchestra.runtime.threads.worker import Worker

REMINDER = 10.0
"""Seconds between two lines about a life that has failed and does not end."""


class Stage(enum.Enum):
    """How far a life has come."""

    STARTING = enum.auto()
    SERVING = enum.auto()
    LEAVING = enum.auto()
    """It has done what it had to do, and `stopped` is called: there is nothing to start again for."""

    OVER = enum.auto()


class Living(Protocol):
    """The part whose life it is, and what that decides."""

    name: str
    inbox: Inbox
    plan: SubsystemPlan | None
    actor: Any
    ctx: Any
    serve: Any
    work: Step | None
    worker: Worker | None
    given_up: bool

    def renew(self) -> None:
        """Make the instance for a life that is not the first."""

    def leave(self) -> None:
        """What else belongs to a life ends."""

    def is_failure(self, error: BaseException) -> bool:
        """Whether an error is more than the end that was given."""
        ...

    def bury_current(self, error: BaseException) -> None:
        """What was being handled when the life ended is dead-lettered."""

    def failed(self, error: BaseException, *, again: bool) -> float | None:
        """The life fails: the seconds until the next one, or None when there is to be none."""

    def life_over(self, life: "Life") -> None:
        """The life is over."""

    def collapsed(self, error: BaseException) -> None:
        """What stands around the subsystem's own code went wrong, and the life with it."""


class Life:
    """The strand of one life: it runs `started`, serves until the inbox is over, waits for the tasks of the
    subsystem, and runs `stopped`. The plain functions of a synchronous Actor run from the ready-queue
    meanwhile, in the same context.

    The first error is that with which it fails, `lost`; what goes wrong after that is a note. `delay` is how
    long to wait for the next life, None when none is to follow. `outside` says that the failure came from
    outside the strand, `waits` that only tasks are still waited for.
    """

    __slots__ = (
        "_broke",
        "_cancelled",
        "_loop",
        "_part",
        "_plain",
        "_reminder",
        "_scheduler",
        "delay",
        "lost",
        "outside",
        "owned",
        "stage",
        "strand",
        "waits",
    )

    def __init__(
        self, part: Living, loop: asyncio.AbstractEventLoop, scheduler: Scheduler, *, first: bool
    ) -> None:
        self.stage = Stage.STARTING
        self.lost: BaseException | None = None
        self.delay: float | None = None
        self.outside = False
        self.waits = False
        self.owned = Owned(part.inbox, self)
        self._part = part
        self._loop = loop
        self._scheduler = scheduler
        self._plain = False
        self._broke: BaseException | None = None
        self._cancelled = False
        self._reminder: asyncio.TimerHandle | None = None
        self.strand = Strand(self._live(first), loop, f"orchestra:{part.name}", scheduler)

    def begin(self) -> None:
        """Let it run at the next turn."""
        inbox = self._part.inbox
        inbox.strand = self.strand
        inbox.work = self.strand.step
        self.task.add_done_callback(self._done, context=self.strand.context)
        self._scheduler.add(self.strand.step)

    @property
    def task(self) -> "asyncio.Task[None]":
        """The Task in which everything asynchronous runs, save what was spawned."""
        return self.strand.task

    def cancel(self) -> None:
        """Cancel all that runs of it."""
        self.task.cancel()
        self.owned.cancel()

    def fail(self, error: BaseException) -> None:
        """End it with a failure that comes from outside its strand.

        The running handler is cancelled; when it swallows that, nothing more is taken all the same.
        """
        first = self.lost or self._broke
        if first is not None and not _outweighs(error, first):
            self.add(error)
            return
        self.outside = True
        if first is None:
            self._part.inbox.order(Order.FAIL)
            if self._plain:
                self._serve_no_more()
                self.go_on()
            else:
                self._cancelled = True
                self.task.cancel()
        self._lose(error)

    def task_failed(self, error: BaseException) -> None:
        """A task that it has spawned ended with an error."""
        if self._part.is_failure(error):
            self.fail(error)

    def add(self, error: BaseException) -> None:
        """Log a further failure, and note it at the first one."""
        first = self.lost or self._broke
        if first is not error and not _is_told_off(error):
            logger.error("%r failed too: %s", self._part.name, told(error))
            if first is not None:
                note(first, f"and {self._part.name!r} failed too: {told(error)}")

    def no_next(self) -> None:
        """Nothing waits for its end in order to begin."""
        if self._reminder is not None:
            self._reminder.cancel()
            self._reminder = None

    def where(self) -> str:
        """Where it and its tasks stand in their source."""
        own = [] if self.waits and self.owned else [self._where()]
        return ", ".join([*own, *self.owned.places()])

    # for the ready-queue

    def go_on(self) -> None:
        """Plain functions have served: the strand takes over again."""
        if self._plain:
            self._plain = False
            self._scheduler.add(self.strand.step)

    def broke(self, error: BaseException, message: Any) -> None:
        """A plain handler raised: the strand ends with it."""
        inbox = self._part.inbox
        inbox.current = None if self.lost is not None else message
        self._broke = error
        for lane in inbox.lanes:
            lane.relieve()
        self.go_on()

    # inside

    async def _live(self, first: bool) -> None:
        """All of it. It awaits `serve` itself: each coroutine between costs time at each step."""
        part = self._part
        try:
            if not first:
                part.renew()
            await self._call_hook("started")
            self.stage = Stage.SERVING
            if self.lost is not None:
                raise self.lost  # it came meanwhile, and the cancellation was swallowed
            if part.work is not None:
                self._begin_to_serve(part.work)
                try:
                    while self._plain:
                        await park
                finally:
                    self._plain = False
                    self._serve_no_more()
                if self._broke is not None:
                    raise self._broke
            elif part.serve is not None:
                strands = self._scheduler.strands
                strands[self.task] = self.strand
                try:
                    await part.serve()
                finally:
                    del strands[self.task]
        except BaseException as raised:
            self._take(raised)
        await self._let_go()
        if self.stage is Stage.SERVING:
            self.stage = Stage.LEAVING
            try:
                await self._call_hook("stopped")
            except BaseException as raised:
                self._take(raised, "stopped() of ")
            await self._let_go()
        self._end()

    def _begin_to_serve(self, work: Step) -> None:
        """Let the ready-queue call `work` in the context of the strand, until it has no more to do.

        A method is what calls `run(work)` with the least memory and in the shortest time.
        """
        self._part.inbox.work = step = MethodType(self.strand.context.run, work)
        self._plain = True
        self._scheduler.add(step)
        self.strand.let_go()

    def _serve_no_more(self) -> None:
        """The strand goes on, perhaps because it was cancelled: no plain function is called any more."""
        inbox = self._part.inbox
        assert inbox.work is not None
        self._scheduler.discard(inbox.work)
        inbox.work = self.strand.step
        inbox.idle = False

    async def _call_hook(self, name: str) -> None:
        part = self._part
        if part.plan is not None and name in part.plan.hooks:
            hook = partial(getattr(part.actor, name), part.ctx)
            result = hook() if part.worker is None else await part.worker.call(hook)
            if inspect.isawaitable(result):
                await result

    def _take(self, raised: BaseException, origin: str = "") -> None:
        """Take what was raised for its end; after its failure it is only noted there."""
        part, lost, self._broke = self._part, self.lost, None
        if isinstance(raised, GeneratorExit) and (part.given_up or self._loop.is_closed()):
            raise raised  # it is collected: there is nobody to tell
        self._take_back_cancellation()
        part.bury_current(lost or raised)
        if lost is None:
            if part.is_failure(raised):
                self._lose(raised)
        elif _outweighs(raised, lost):
            self.outside = False
            self._lose(raised)
        elif raised is not lost and not _is_told_off(raised):
            logger.error("%s%r then raised %s", origin, part.name, told(raised))
            note(lost, f"and {origin}{part.name!r} then raised {told(raised)}")

    def _take_back_cancellation(self) -> None:
        """What follows a failure from outside may wait as usual, unless the time to stop is over as well."""
        if self._cancelled:
            self._cancelled = False
            if not self.task.uncancel() and self._part.worker is not None:
                self._part.worker.calm()

    def _lose(self, error: BaseException) -> None:
        """It has failed; what it has yet to do is bounded by the stop that may follow."""
        if self.lost is not None:
            note(error, f"after {told(self.lost)}")
        self.lost = error
        self.no_next()
        self.delay = self._part.failed(error, again=self.stage is not Stage.LEAVING)
        if self.delay is not None:
            self._reminder = self._loop.call_later(REMINDER, self._remind)

    def _remind(self) -> None:
        """What swallows its cancellation keeps the next life from beginning: that is not to go unseen."""
        logger.warning("%r is to start again, but its last life goes on: %s", self._part.name, self.where())
        self._reminder = self._loop.call_later(REMINDER, self._remind)

    async def _let_go(self) -> None:
        """See to the end of all that belongs to this life beside its strand.

        Its timers are cancelled, those that its tasks set at their end as well, and its tasks are waited for;
        when it has failed they are cancelled before. The next life does not begin earlier.
        """
        self._part.leave()
        self.waits = True
        while self.owned:
            if self.lost is not None:
                self.owned.cancel()
            try:
                await self.owned.wait()
            except BaseException as raised:
                self._take(raised)
            self._part.leave()
        self.waits = False

    def _end(self) -> None:
        """It is over: what it leaves to the next one stays in the inbox."""
        part, lost = self._part, self.lost
        if part.worker is not None:
            part.worker.end()
        self.stage = Stage.OVER
        self.no_next()
        part.inbox.pause()
        part.life_over(self)
        if isinstance(lost, (KeyboardInterrupt, SystemExit)) and not self.outside:
            raise lost  # the loop raises it

    def _done(self, task: "asyncio.Task[None]") -> None:
        """The Task has ended: with the life, unless something broke that is not the subsystem's own."""
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if self.stage is not Stage.OVER and error is not None and not self._loop.is_closed():
            self.stage = Stage.OVER
            self.no_next()
            self.owned.cancel()
            self._part.collapsed(error)

    def _where(self) -> str:
        worker = self._part.worker
        return (worker and worker.where()) or self.strand.where()


def _outweighs(error: BaseException, first: BaseException) -> bool:
    """Whether an error that is to end the program comes after one that is not."""
    return interrupts(error) and not interrupts(first)


def _is_told_off(raised: BaseException) -> bool:
    """Whether a life ended so only because it was told to, after a failure from outside."""
    return isinstance(raised, asyncio.CancelledError) or (
        isinstance(raised, Closed) and raised.message is None
    )


def begun(part: Living, context: contextvars.Context, *args: Any, first: bool) -> Life:
    """A life that begins at the next turn, in a copy of some context variables."""
    life: Life = context.copy().run(partial(Life, first=first), part, *args)
    life.begin()
    return life
