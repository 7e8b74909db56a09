"""One subsystem while it runs: its lives, each from `started` to its end, and what goes wrong in them."""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from orchestra.errors import Closed
from orchestra.messages import class_of
from orchestra.plan import SubsystemPlan
from orchestra.runtime.clock import Handle
from orchestra.runtime.inbox import Inbox, Order
from orchestra.runtime.lives import Lives
from orchestra.runtime.log import logger
from orchestra.runtime.owned import Owned
from orchestra.runtime.scheduler import Scheduler, Step
from orchestra.runtime.strand import Strand, park
from orchestra.runtime.telling import note, told
from orchestra.runtime.threads.worker import Worker

T = TypeVar("T")

REMINDER = 10.0
"""Seconds between two lines about a life that has failed and does not end."""


class Supervisor(Protocol):
    """Who decides what follows from the end of a life."""

    def is_failure(self, part: "Part", error: BaseException) -> bool:
        """Whether an error is more than the end that a part was given."""
        ...

    def bury_current(self, part: "Part", error: BaseException) -> None:
        """What a part was handling when its life ended is dead-lettered."""

    def part_failed(self, part: "Part", error: BaseException, *, again: bool) -> float | None:
        """A life fails: the seconds until the next one, or None when there is to be none."""

    def later(self, delay: float, function: Callable[[], None]) -> Handle:
        """Call a function after `delay` seconds."""
        ...

    def life_ended(self, part: "Part", error: BaseException | None) -> None:
        """A life is over, with its failure or without."""

    def part_ended(self, part: "Part", error: BaseException | None) -> None:
        """The last life is over."""


class Part:
    """A subsystem, its inbox, and its lives, of which there are several when it may start again.

    Each life has a strand, which runs `started`, serves until the inbox is over, waits for the tasks of
    the subsystem, and runs `stopped`. The plain functions of a synchronous Actor run from the ready-queue
    meanwhile, in the same context. When a life has failed and may be followed by another one, that begins
    after its backoff; until then nothing of the subsystem runs.

    `asked_to_stop` says that the orchestra is to stop when it has ended, or before; `winding_up` that
    the life only waits for its tasks. `actor` is what is called of the `instance`: itself, or a
    face of it. `equip` makes an instance the one that serves, `remake` gives a
    fresh one for the next life. What is in `leftovers` is called when a life is over, and must not raise.
    """

    __slots__ = (
        "_again",
        "_alive",
        "_backoff",
        "_cancelled",
        "_context",
        "_delay",
        "_error",
        "_given_up",
        "_loop",
        "_lost",
        "_outside",
        "_reminder",
        "_scheduler",
        "_serving",
        "_stopping",
        "_supervisor",
        "actor",
        "asked_to_stop",
        "ctx",
        "done",
        "equip",
        "inbox",
        "instance",
        "leftovers",
        "lives",
        "name",
        "owned",
        "plan",
        "remake",
        "serve",
        "winding_up",
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
        supervisor: Supervisor,
    ) -> None:
        self.name = name
        self.plan = plan
        self.instance = self.actor = actor
        self.inbox = inbox
        self.ctx: Any = None
        self.serve: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.work: Step | None = None
        self.worker: Worker | None = None
        self.equip: Callable[[Any], None] = lambda actor: None
        self.remake: Callable[[], Any] | None = None
        self.lives = Lives(None if plan is None else plan.restart)
        self.owned = Owned(inbox, self._task_failed)
        self.leftovers: list[Callable[[], None]] = []
        self.done = False
        self.winding_up = False
        self.asked_to_stop = False
        self._scheduler = scheduler
        self._supervisor = supervisor
        self._error: BaseException | None = None
        self._serving = False
        self._alive = False
        self._stopping = False
        self._given_up = False
        self._backoff: Handle | None = None
        self._reminder: asyncio.TimerHandle | None = None
        self._lost: BaseException | None = None
        self._outside = False
        self._cancelled = False
        self._again = True
        self._delay: float | None = None

    def launch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the first life begin at the next turn."""
        self._loop = loop
        self._context = contextvars.copy_context()
        self._begin()

    def stop(self, failure: BaseException | None) -> None:
        """Take no further message, and begin no further life."""
        self.inbox.stop(failure)
        self._stopping = True
        if self._reminder is not None:
            self._reminder.cancel()
        if self._backoff is not None:
            self._backoff.cancel()
            self._backoff = None
            self._loop.call_soon(self._conclude)

    def cancel(self) -> None:
        """Cancel all that runs of it."""
        self.task.cancel()
        self.owned.cancel()

    def close(self) -> None:
        """The orchestra has ended; what still runs of this part was given up."""
        self._given_up = True
        self.inbox.close("stopped")

    def fail(self, error: BaseException) -> None:
        """End this life with a failure that comes from outside its strand.

        The running handler is cancelled; when it swallows that, the life still takes nothing more. A
        further failure of the same life is logged, and noted at the first one.
        """
        first = self._lost or self._error
        if first is None and self._alive:
            if self._serving:
                self._serve_no_more()
                self._go_on()
            else:
                self._cancelled = True
                self.task.cancel()
            self._outside = True
            self.inbox.order(Order.FAIL)
            self._lose(error)
        elif first is not error and not _is_told_off(error):
            logger.error("%r failed too: %s", self.name, told(error))
            if first is not None:
                note(first, f"and {self.name!r} failed too: {told(error)}")

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> "asyncio.Task[T]":
        """Run a coroutine in a task that belongs to this life; see `Context.spawn`."""
        if not asyncio.iscoroutine(coroutine):
            raise TypeError(
                f"{self.name!r} was to spawn {coroutine!r}, which is no coroutine: call an async function, "
                "ctx.spawn(work())"
            )
        if not self._alive or self._given_up:
            coroutine.close()
            closed = Closed(f"{self.name!r} spawns nothing more: it has ended", None, self.name)
            raise closed from self.inbox.failure
        return self.owned.spawn(coroutine, name)

    @property
    def task(self) -> "asyncio.Task[None]":
        """The Task in which everything asynchronous of this life runs, save what it has spawned."""
        assert self.inbox.strand is not None
        return self.inbox.strand.task

    def where(self) -> str:
        """Where the subsystem and its tasks stand in their source."""
        assert self.inbox.strand is not None
        own = [] if self.winding_up and self.owned else [self._where()]
        return ", ".join([*own, *self.owned.places()])

    def _where(self) -> str:
        assert self.inbox.strand is not None
        in_thread = None if self.worker is None else self.worker.where()
        return in_thread or self.inbox.strand.where()

    def obey(self, order: Order) -> None:
        """After a failure from outside, nothing more is taken: it is as if the inbox had ended."""
        assert order is Order.FAIL
        self.inbox.signals.appendleft(order)
        raise self.inbox.ended()

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
        self.inbox.current = None if self._lost is not None else message
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

    # its lives

    def _begin(self) -> None:
        """Make a strand for a new life and let it run at the next turn."""
        self._backoff = None
        first = self.inbox.strand is None
        if not first:
            self.lives.restarts += 1
        name, scheduler = f"orchestra:{self.name}", self._scheduler
        strand = self._context.copy().run(
            Strand, self._live(first), self._loop, name, scheduler.poke, scheduler
        )
        self._alive = True
        self.inbox.strand = strand
        self.inbox.work = strand.step
        self._scheduler.add(strand.step)

    async def _live(self, first: bool) -> None:
        """A whole life. It awaits `serve` itself: each coroutine between costs time at each step."""
        started = False
        try:
            if not first and self.remake is not None:
                self.equip(self.remake())
            await self._call_hook("started")
            started = True
            self._raise_failure()
            if self.work is not None:
                await self._serve_by(self.work)
            elif self.serve is not None:
                await self.serve()
        except BaseException as raised:
            self._take(raised)
        await self._let_go_of_life()
        if started:
            self._again = False
            try:
                await self._call_hook("stopped")
            except BaseException as raised:
                self._take(raised, "stopped() of ")
            await self._let_go_of_life()
        self._end()

    def _take(self, raised: BaseException, origin: str = "") -> None:
        """Take what was raised for the end of this life; after its failure it is only noted there."""
        if isinstance(raised, GeneratorExit) and self._is_left_behind:
            raise raised  # it is collected: there is nobody to tell
        if self._cancelled:
            self._cancelled = False
            self.task.uncancel()
        lost, self._error = self._lost, None
        self._supervisor.bury_current(self, lost or raised)
        if lost is None:
            if self._supervisor.is_failure(self, raised):
                self._lose(raised)
        elif raised is not lost and not _is_told_off(raised):
            logger.error("%s%r then raised %s", origin, self.name, told(raised))
            note(lost, f"and {origin}{self.name!r} then raised {told(raised)}")

    def _lose(self, error: BaseException) -> None:
        """This life has failed; what it has yet to do is bounded by the stop that may follow."""
        self._lost = error
        self._delay = self._supervisor.part_failed(self, error, again=self._again)
        if self._delay is not None:
            self._reminder = self._loop.call_later(REMINDER, self._remind)

    def _remind(self) -> None:
        """What swallows its cancellation keeps the next life from beginning: that is not to go unseen."""
        logger.warning("%r is to start again, but its last life goes on: %s", self.name, self.where())
        self._reminder = self._loop.call_later(REMINDER, self._remind)

    async def _let_go_of_life(self) -> None:
        """See to the end of all that belongs to this life beside its strand.

        Its timers are cancelled, and its tasks are waited for; those of a life that failed are cancelled
        before. The next life does not begin earlier.
        """
        for leave in self.leftovers:
            leave()
        self.winding_up = True
        while self.owned:
            if self._lost is not None:
                self.owned.cancel()
            try:
                await self.owned.wait()
            except BaseException as raised:
                self._take(raised)
        self.winding_up = False

    def _task_failed(self, error: BaseException) -> None:
        if self._supervisor.is_failure(self, error):
            self.fail(error)

    def _raise_failure(self) -> None:
        """A failure from outside came while `started` ran, and the cancellation was swallowed."""
        if self._lost is not None:
            raise self._lost

    def _end(self) -> None:
        """The life is over: what it leaves to the next one stays in the inbox."""
        lost, delay, outside = self._lost, self._delay, self._outside
        if self.worker is not None:
            self.worker.end()
        self._alive = self._outside = self._cancelled = False
        self._lost = self._error = self._delay = None
        self._again = True
        if self._reminder is not None:
            self._reminder.cancel()
        self.inbox.pause()
        self._supervisor.life_ended(self, lost)
        if delay is not None and not self._stopping:
            self._backoff = self._supervisor.later(delay, self._begin)
            return
        self._conclude()
        if isinstance(lost, (KeyboardInterrupt, SystemExit)) and not outside:
            self.task.add_done_callback(asyncio.Task.exception)  # the loop raises it: nobody else asks for it
            raise lost

    def _conclude(self) -> None:
        """No other life follows."""
        self.done = True
        self._supervisor.part_ended(self, None)

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
            self._serving = False
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
        if self._serving:
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


def _is_told_off(raised: BaseException) -> bool:
    """Whether a life ended so only because it was told to, after a failure from outside."""
    return isinstance(raised, asyncio.CancelledError) or (
        isinstance(raised, Closed) and raised.message is None
    )
