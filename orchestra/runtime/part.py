"""One subsystem while it runs: from `started` to its end, and what is done with what goes wrong."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from orchestra.messages import class_of
from orchestra.plan import SubsystemPlan
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.scheduler import Scheduler, Step
from orchestra.runtime.strand import Strand, park
from orchestra.runtime.telling import note, told
from orchestra.runtime.threads.worker import Worker

End = Callable[["Part", BaseException | None], None]


class Part:
    """A subsystem, its inbox and its strand.

    The strand runs `started`, serves until the inbox is over, runs `stopped`, and tells `ended`. The
    plain functions of a synchronous Actor run from the ready-queue meanwhile, in the same context.
    `asked_to_stop` says that the orchestra is to stop when it has ended, or before.
    """

    __slots__ = (
        "_ended",
        "_error",
        "_scheduler",
        "_serving",
        "actor",
        "asked_to_stop",
        "ctx",
        "done",
        "inbox",
        "name",
        "plan",
        "serve",
        "work",
        "worker",
    )

    def __init__(
        self,
        name: str,
        plan: SubsystemPlan | None,
        actor: Any,
        inbox: Inbox,
        scheduler: Scheduler,
        ended: End,
    ) -> None:
        self.name = name
        self.plan = plan
        self.actor = actor
        self.inbox = inbox
        self.ctx: Any = None
        self.serve: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.work: Step | None = None
        self.worker: Worker | None = None
        self.done = False
        self.asked_to_stop = False
        self._scheduler = scheduler
        self._ended = ended
        self._error: BaseException | None = None
        self._serving = False

    def launch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make the strand and let it run at the next turn."""
        strand = Strand(self._live(), loop, f"orchestra:{self.name}", self._scheduler.poke, self._scheduler)
        self.inbox.strand = strand
        self.inbox.work = strand.step
        self._scheduler.add(strand.step)

    @property
    def task(self) -> "asyncio.Task[None]":
        """The Task in which everything asynchronous of this subsystem runs."""
        assert self.inbox.strand is not None
        return self.inbox.strand.task

    def where(self) -> str:
        """Where the subsystem stands in its source."""
        assert self.inbox.strand is not None
        in_thread = None if self.worker is None else self.worker.where()
        return in_thread or self.inbox.strand.where()

    # called by generated code

    def served(self) -> None:
        """There is nothing more to take, for good: the strand goes on to the end."""
        self._go_on()

    def again(self) -> None:
        """The budget is spent and there may be more: go on at the next turn."""
        assert self.inbox.work is not None
        self._scheduler.ready.append(self.inbox.work)
        self.inbox.note_peaks()

    def broke(self, error: BaseException, message: Any) -> int:
        """A plain handler raised: the strand ends with it."""
        self.inbox.current = message
        self._error = error
        for lane in self.inbox.lanes:
            lane.relieve()
        self._go_on()
        return 0

    def handle_other(self, message: Any) -> Any:
        """Handle an instance of a subclass of the types that have handlers."""
        return self._handler(message)(self.ctx, message)

    async def handle_other_async(self, message: Any) -> None:
        """Handle an instance of a subclass where some handlers are asynchronous."""
        result = self._handler(message)(self.ctx, message)
        if inspect.isawaitable(result):
            await result

    @property
    def _is_left_behind(self) -> bool:
        """Whether the orchestra has given this part up, or the loop was closed under it."""
        return self.inbox.shut or self.task.get_loop().is_closed()

    # its life

    async def _live(self) -> None:
        """The whole life. It awaits `serve` itself: each coroutine between costs time at each step."""
        started = False
        error: BaseException | None = None
        try:
            await self._call_hook("started")
            started = True
            if self.work is not None:
                await self._serve_by(self.work)
            elif self.serve is not None:
                await self.serve()
        except BaseException as raised:
            if isinstance(raised, GeneratorExit) and self._is_left_behind:
                raise  # it is collected: there is nobody to tell
            error = raised
        if started:
            error = await self._stopped(error)
        if self.worker is not None:
            self.worker.end()
        self.done = True
        self._ended(self, error)
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            self.task.add_done_callback(asyncio.Task.exception)  # the loop raises it: nobody else asks for it
            raise error

    async def _stopped(self, error: BaseException | None) -> BaseException | None:
        """Run `stopped`; give the error of the life so far, or its own."""
        try:
            await self._call_hook("stopped")
        except BaseException as another:
            if error is None:
                return another
            note(error, f"and stopped() of {self.name!r} then raised {told(another)}")
        return error

    async def _serve_by(self, work: Step) -> None:
        """Let the ready-queue call `work` in the context of the strand, until it has no more to do."""
        inbox = self.inbox
        assert inbox.strand is not None
        run: Any = inbox.strand.context.run
        inbox.work = partial(run, work)
        self._serving = True
        self._scheduler.add(inbox.work)
        try:
            while self._serving:
                await park
        finally:
            self._serve_no_more()
        if self._error is not None:
            raise self._error

    async def _call_hook(self, name: str) -> None:
        if self.plan is not None and name in self.plan.hooks:
            hook = partial(getattr(self.actor, name), self.ctx)
            result = hook() if self.worker is None else await self.worker.call(hook)
            if inspect.isawaitable(result):
                await result

    def _go_on(self) -> None:
        """Plain functions have served: the strand takes over again."""
        assert self.inbox.strand is not None
        self._serving = False
        self._scheduler.add(self.inbox.strand.step)

    def _serve_no_more(self) -> None:
        """The strand goes on, perhaps because it was cancelled: no plain function is called any more."""
        inbox = self.inbox
        assert inbox.strand is not None
        assert inbox.work is not None
        self._scheduler.discard(inbox.work)
        inbox.work = inbox.strand.step
        inbox.idle = False

    def _handler(self, message: Any) -> Callable[..., Any]:
        assert self.plan is not None
        methods = {class_of(h.message): h.method for h in self.plan.handlers}
        for base in type(message).__mro__:
            if base in methods:
                handler: Callable[..., Any] = getattr(self.actor, methods[base])
                return handler
        raise AssertionError(
            f"{self.name!r} was given a {type(message).__qualname__}, and it has no route here"
        )
