"""One subsystem while it runs: what it is wired with, and its lives, which follow each other."""

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
from orchestra.runtime.life import Life, begun
from orchestra.runtime.lives import ONE, Lives
from orchestra.runtime.log import logger
from orchestra.runtime.scheduler import Scheduler, Step
from orchestra.runtime.telling import told
from orchestra.runtime.threads.worker import Worker

T = TypeVar("T")


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

    def part_ended(self, part: "Part", error: BaseException | None = None) -> None:
        """The last life is over; an error is one that nobody has been told yet."""


class Outfit(Protocol):
    """What stands between a part and its instances."""

    def equip(self, instance: Any) -> None:
        """Make an instance the one that serves."""

    def leave(self) -> None:
        """A life is over: end what belongs to it; this must not raise."""


class Part:
    """A subsystem, its inbox, and its lives, of which there are several when it may start again.

    When a life has failed and may be followed by another one, that begins after its backoff; until then
    nothing of the subsystem runs. `life` is the present one, None between two and after the last; `done` says
    that that was it, `given_up` that the orchestra has ended without waiting for it.

    `asked_to_stop` says that the orchestra is to stop when it has ended, or before. `actor` is what is called
    of the `instance`: itself, or a face of it. `remake` gives a fresh one for the next life.
    """

    __slots__ = (
        "_backoff",
        "_context",
        "_loop",
        "_scheduler",
        "_stopping",
        "_supervisor",
        "actor",
        "asked_to_stop",
        "ctx",
        "done",
        "given_up",
        "inbox",
        "instance",
        "life",
        "lives",
        "name",
        "outfit",
        "plan",
        "remake",
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
        self.outfit: Outfit | None = None
        self.remake: Callable[[], Any] | None = None
        self.lives = ONE if plan is None or plan.restart is None else Lives(plan.restart)
        self.life: Life | None = None
        self.done = False
        self.given_up = False
        self.asked_to_stop = False
        self._scheduler = scheduler
        self._supervisor = supervisor
        self._backoff: Handle | None = None
        self._stopping = False

    def launch(self, loop: asyncio.AbstractEventLoop, context: contextvars.Context) -> None:
        """Let the first life begin at the next turn; each life has a copy of these context variables."""
        self._loop = loop
        self._context = context
        self._begin(first=True)

    def stop(self, failure: BaseException | None) -> None:
        """Take no further message, and begin no further life."""
        self.inbox.stop(failure)
        self._stopping = True
        if self.life is not None:
            self.life.no_next()
        if self._backoff is not None:
            self._backoff.cancel()
            self._backoff = None
            self._loop.call_soon(self._conclude)

    def cancel(self) -> None:
        """Cancel all that runs of it."""
        if self.life is not None:
            self.life.cancel()

    def close(self) -> None:
        """The orchestra has ended; what still runs of this part was given up."""
        self.given_up = True
        self.inbox.close("stopped")

    def fail(self, error: BaseException) -> None:
        """End the present life with a failure that comes from outside its strand; see `Life.fail`.

        Between two lives, and after the last, it is only logged.
        """
        if self.life is not None:
            self.life.fail(error)
        else:
            logger.error("%r failed too: %s", self.name, told(error))

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> "asyncio.Task[T]":
        """Run a coroutine in a task that belongs to this life; see `Context.spawn`."""
        if not asyncio.iscoroutine(coroutine):
            raise TypeError(
                f"{self.name!r} was to spawn {coroutine!r}, which is no coroutine: call an async function, "
                "ctx.spawn(work())"
            )
        if self.life is None or self.given_up:
            coroutine.close()
            closed = Closed(f"{self.name!r} spawns nothing more: it has ended", None, self.name)
            raise closed from self.inbox.failure
        return self.life.owned.spawn(coroutine, name)

    def runs(self, task: "asyncio.Task[Any] | None") -> bool:
        """Whether a task is its own: that of its strand, or one that it has spawned."""
        return self.life is not None and (task is self.life.task or task in self.life.owned)

    @property
    def at_work(self) -> bool:
        """Whether a handler, a hook or `run` may be running."""
        return self.life is not None and not self.life.waits

    def where(self) -> str:
        """Where the subsystem and its tasks stand in their source."""
        return "between two lives" if self.life is None else self.life.where()

    def obey(self, order: Order) -> None:
        """After a failure from outside, nothing more is taken: it is as if the inbox had ended."""
        assert order is Order.FAIL
        self.inbox.keep_order(order)
        raise self.inbox.ended()

    # called by generated code

    def served(self) -> None:
        """There is nothing more to take, for good: the strand goes on to the end."""
        assert self.life is not None
        self.life.go_on()

    def again(self) -> None:
        """The budget is spent and there may be more: go on at the next turn."""
        assert self.inbox.work is not None
        self._scheduler.ready.append(self.inbox.work)
        self.inbox.note_peaks()

    def broke(self, error: BaseException, message: Any) -> int:
        """A plain handler raised: the strand ends with it."""
        assert self.life is not None
        self.life.broke(error, message)
        return 0

    def handle_other(self, ctx: Any, message: Any) -> Any:
        """Handle an instance of a subclass of the types that have handlers."""
        return self._handler(message)(ctx, message)

    async def handle_other_async(self, ctx: Any, message: Any) -> None:
        """Handle an instance of a subclass where some handlers are asynchronous."""
        result = self._handler(message)(ctx, message)
        if inspect.isawaitable(result):
            await result

    # called by its lives

    def renew(self) -> None:
        """Make the instance for a life that is not the first."""
        if self.remake is not None and self.outfit is not None:
            self.outfit.equip(self.remake())

    def leave(self) -> None:
        """What else belongs to a life ends, at its end, perhaps more than once."""
        if self.outfit is not None:
            self.outfit.leave()

    def is_failure(self, error: BaseException) -> bool:
        """Whether an error is more than the end that was given."""
        return self._supervisor.is_failure(self, error)

    def bury_current(self, error: BaseException) -> None:
        """What was being handled when the life ended is dead-lettered."""
        self._supervisor.bury_current(self, error)

    def failed(self, error: BaseException, *, again: bool) -> float | None:
        """The life fails: the seconds until the next one, or None when there is to be none."""
        return self._supervisor.part_failed(self, error, again=again)

    def life_over(self, life: Life) -> None:
        """Let the next life begin after its backoff, unless something has asked for the end meanwhile."""
        self.life = None
        self._supervisor.life_ended(self, life.lost)
        if life.delay is None or self._stopping or self.asked_to_stop or self.inbox.shut:
            self._conclude()
        else:
            self._backoff = self._supervisor.later(life.delay, partial(self._begin, first=False))

    def collapsed(self, error: BaseException) -> None:
        """What stands around the subsystem's own code went wrong: that is the end, too."""
        self._conclude(error)

    # inside

    def _begin(self, *, first: bool) -> None:
        """Let a new life begin at the next turn."""
        self._backoff = None
        if not first:
            self.lives.restarts += 1
        self.life = begun(self, self._context, self._loop, self._scheduler, first=first)

    def _conclude(self, error: BaseException | None = None) -> None:
        """No other life follows."""
        self.life = None
        self.done = True
        self._supervisor.part_ended(self, error)

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
