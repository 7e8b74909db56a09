"""Starting an orchestra: within an event loop, or as the whole program."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from orchestra.decorator import is_orchestra, plan_of
from orchestra.errors import LinkError, StopTimeout
from orchestra.fitting import wiring_for
from orchestra.interrupts import interrupts
from orchestra.messages import shown, shown_all
from orchestra.plan import Plan
from orchestra.remote import Elsewhere
from orchestra.runtime.afar import Peer
from orchestra.runtime.assembly import assemble
from orchestra.runtime.clock import limit
from orchestra.runtime.ensemble import GRACE, PATIENCE, Ensemble
from orchestra.runtime.gridlock import Gridlock, Gridlocks
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.instances import instances_of, remakers_of
from orchestra.runtime.letters import DeadLetter, Letters
from orchestra.runtime.lifecycle import Phase
from orchestra.runtime.pressure import Congestion, Pressure
from orchestra.runtime.running import Running
from orchestra.runtime.threads.watcher import SLOW

if TYPE_CHECKING:
    from orchestra.link.engine import Engine, Link, Mailbox

Result = TypeVar("Result")
Hook = Callable[[DeadLetter], object]
CongestionHook = Callable[[Congestion], object]
GridlockHook = Callable[[Gridlock], object]
PeerHook = Callable[[Peer], object]

_AS_CONTEXT = "write `async with start(app) as running`"

_running: dict[int, tuple[Any, Ensemble]] = {}
"""The instances that run now, by id. It holds them, so that nothing of a running orchestra is collected."""


def start(
    app: Any,
    *,
    dead_letters: Hook | None = None,
    on_congestion: CongestionHook | None = None,
    on_gridlock: GridlockHook | None = None,
    slow_handler: float | None = SLOW,
    pool_threads: int | None = None,
    link: "Link | None" = None,
    on_peer: PeerHook | None = None,
) -> "Starting":
    """Run an orchestra within the present event loop: `async with start(app) as running: ...`.

    Every subsystem starts at the next turn of the loop. Leaving the block means `running.stop()`; the
    orchestra's error is raised there unless `wait`, `drain` or `stop` raised it before. When the body
    raised as well, its error is the context of the orchestra's; when the body was cancelled, that goes on.

    `dead_letters` is called with a `DeadLetter` for each message that will never be handled; by default
    they are logged. `on_congestion` is called with a `Congestion` when a lane becomes congested and when it
    has recovered; both are logged too, at most once a second for each lane. `on_gridlock` is called with a
    `Gridlock`, once for each circle of subsystems that wait for room in each other's lanes; it is logged
    too. A handler that keeps the loop for more than `slow_handler` seconds (None: never) is warned of by
    name. `pool_threads` limits the threads of `ctx.run_blocking`; by default there are up to four more than
    cores, and no more than 32.

    `link` says how this process reaches those that host what its fields name as `Remote()`, and those that
    want what it hosts: a `ZenohLink`. `on_peer` is called with a `Peer` whenever another process of the
    orchestra comes, goes away, comes back, is gone or is refused. Leaving the block stops only this process.

    One instance runs once at a time. What fields hold as `deferred(...)` is made before anything runs, and an
    error in that comes out here. Raises TypeError for what is no instance of an orchestra class, when a field
    holds no subsystem, for a hook that would have to be awaited, and for limits that are no such numbers;
    `LinkError` for what cannot be linked.
    """
    _check_hook("dead_letters", dead_letters, "a stop", "letters.append")
    _check_hook("on_congestion", on_congestion, "a send", "changes.append")
    _check_hook("on_gridlock", on_gridlock, "a send", "gridlocks.append")
    _check_hook("on_peer", on_peer, "what arrives", "changes.append")
    threads = _thread_options(slow_handler, pool_threads)
    if link is not None and (isinstance(link, type) or not callable(getattr(link, "open", None))):
        raise TypeError(f"link is {link!r}: give a ZenohLink, such as ZenohLink(connect=['tcp/HOST:PORT'])")
    return Starting(app, dead_letters, on_congestion, on_gridlock, threads, link, on_peer)


def _check_hook(name: str, hook: Any, amid: str, example: str) -> None:
    """Refuse what cannot be called, and what would have to be awaited."""
    if hook is not None and not callable(hook):
        raise TypeError(f"{name} is {hook!r}: give a function, such as {example}")
    if inspect.iscoroutinefunction(hook):
        raise TypeError(f"{name} takes a plain function: it is called in the middle of {amid}")


def _thread_options(slow_handler: Any, pool_threads: Any) -> dict[str, Any]:
    """What was given about threads, checked."""
    numeric = isinstance(slow_handler, int | float) and not isinstance(slow_handler, bool)
    if slow_handler is not None and not (numeric and slow_handler > 0):
        raise TypeError(f"slow_handler is {slow_handler!r}: give a number of seconds above 0, or None")
    if pool_threads is not None and (type(pool_threads) is not int or pool_threads < 1):
        raise TypeError(f"pool_threads is {pool_threads!r}: give a whole number of 1 or more")
    return {"slow_handler": slow_handler, "pool_threads": pool_threads}


class Starting:
    """What `start` returns: an asynchronous context manager that gives the `Running`."""

    def __init__(
        self,
        app: Any,
        hook: Hook | None,
        on_congestion: CongestionHook | None,
        on_gridlock: GridlockHook | None,
        threads: dict[str, Any],
        link: "Link | None" = None,
        on_peer: PeerHook | None = None,
    ) -> None:
        self._link = link
        self._on_peer = on_peer
        self._engine: Engine | None = None
        self._threads = threads
        self._app = app
        self._on_gridlock = on_gridlock
        self._hook = hook
        self._on_congestion = on_congestion
        self._running: Running | None = None

    async def __aenter__(self) -> Running:
        declared = _plan_for(self._app, "start")
        if self._link is None:
            return self._start(declared, None)
        from orchestra.link.engine import check_plan, opened

        _check_not_running(self._app, declared)
        check_plan(wiring_for(type(self._app), _remote_fields(self._app, declared))[0])
        mailbox = await opened(self._link, declared)
        try:
            running = self._start(declared, mailbox)
        except BaseException:
            await mailbox.close()
            raise
        return running

    def _start(self, declared: Plan, mailbox: "Mailbox | None") -> Running:
        app = self._app
        _check_not_running(app, declared)
        self._running = Running(declared)
        instances = instances_of(app, declared, self._running)
        plan, wiring = wiring_for(type(app), instances)
        pressure, gridlocks = Pressure(self._on_congestion), Gridlocks(self._on_gridlock)
        if mailbox is None:
            _check_all_here(plan, instances)
        ensemble = Ensemble(plan, Letters(self._hook), pressure, gridlocks, **self._threads)
        remakers = remakers_of(app, self._running, instances)
        absent: Mapping[str, Inbox] = {}
        if mailbox is not None:
            from orchestra.link.engine import Engine

            self._engine = Engine(mailbox, ensemble, instances, self._on_peer)
            absent = self._engine.inboxes
        assembly = assemble(app, plan, wiring, ensemble, instances, remakers, absent)
        self._running.wire(assembly)
        _running[id(app)] = app, ensemble
        ensemble.ended.add_done_callback(lambda _: _forget(app, ensemble))
        ensemble.launch()
        if self._engine is not None:
            self._engine.launch(assembly.recipients)
        return self._running

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._running is not None
        try:
            await self._running.leave(error)
        finally:
            if self._engine is not None:
                await self._engine.closed()

    if not TYPE_CHECKING:  # a type checker finds these by itself

        def __enter__(self) -> NoReturn:
            raise self._misused()

        def __exit__(self, *args: object) -> None:
            """Without it Python tells of this and not of `__enter__`."""

        def __await__(self) -> NoReturn:
            raise self._misused()

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}: {_AS_CONTEXT}")

        def _misused(self) -> TypeError:
            return TypeError(f"nothing runs yet: {_AS_CONTEXT}")

    @property
    def waits(self) -> bool:
        """Whether to enter it waits for other processes."""
        return self._link is not None

    @property
    def left_behind(self) -> bool:
        """Whether the orchestra has ended and subsystems still run: those that a `StopTimeout` named."""
        return self._running is not None and self._running.left_behind


def _check_not_running(app: Any, plan: Plan) -> None:
    if _runs(app):
        raise RuntimeError(f"this {plan.name} runs already; make another instance, or stop it first")


def _remote_fields(app: Any, plan: Plan) -> Mapping[str, Elsewhere]:
    """The fields whose subsystems another process hosts."""
    held = {name: getattr(app, name) for name, each in plan.subsystems.items() if not each.wip}
    return {name: value for name, value in held.items() if isinstance(value, Elsewhere)}


def _check_all_here(plan: Plan, instances: Mapping[str, Any]) -> None:
    """Refuse a field whose subsystem is in another process, where there is no link to any."""
    for name, instance in instances.items():
        if isinstance(instance, Elsewhere):
            raise LinkError(
                f"{plan.name}.{name} is Remote(), and there is no link to the process that hosts it: "
                "start(..., link=ZenohLink(connect=['tcp/HOST:PORT']))"
            )


def _runs(app: Any) -> bool:
    """Whether an instance runs; one whose event loop was closed before it had ended does not."""
    _, ensemble = _running.get(id(app), (None, None))
    return ensemble is not None and ensemble.phase is not Phase.ENDED and not ensemble.loop.is_closed()


def _forget(app: Any, ensemble: Ensemble) -> None:
    if _running.get(id(app), (None, None))[1] is ensemble:
        del _running[id(app)]


@overload
def run(
    app: Any,
    main: None = None,
    *,
    dead_letters: Hook | None = None,
    on_congestion: CongestionHook | None = None,
    on_gridlock: GridlockHook | None = None,
    slow_handler: float | None = SLOW,
    pool_threads: int | None = None,
    timeout: float = PATIENCE,
    link: "Link | None" = None,
    on_peer: PeerHook | None = None,
) -> None: ...
@overload
def run(
    app: Any,
    main: Callable[[Running], Awaitable[Result]],
    *,
    dead_letters: Hook | None = None,
    on_congestion: CongestionHook | None = None,
    on_gridlock: GridlockHook | None = None,
    slow_handler: float | None = SLOW,
    pool_threads: int | None = None,
    timeout: float = PATIENCE,
    link: "Link | None" = None,
    on_peer: PeerHook | None = None,
) -> Result | None: ...
def run(
    app: Any,
    main: Callable[[Running], Awaitable[Any]] | None = None,
    *,
    dead_letters: Hook | None = None,
    on_congestion: CongestionHook | None = None,
    on_gridlock: GridlockHook | None = None,
    slow_handler: float | None = SLOW,
    pool_threads: int | None = None,
    timeout: float = PATIENCE,
    link: "Link | None" = None,
    on_peer: PeerHook | None = None,
) -> Any:
    """Run an orchestra as the whole program, in an event loop of its own, until it has ended.

    Without `main` nothing comes from outside: a pipeline ends by itself, when its timers are over too.
    `async def main(running)` may drive it; when it returns, the orchestra drains and stops, and `run` returns
    its value.

    The first SIGINT or SIGTERM stops the orchestra within `timeout` seconds (of several processes only this
    one; `main` is cancelled), and `run` returns None; the second ends the process at once, with the signal's
    status. The same signal once more within 0.15 s counts as one: some programs send it twice. Outside the
    main thread signals are left alone. Raises the orchestra's error, and that of `main`; RuntimeError when an
    event loop runs already: there, use `start`.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError(
            "run() makes an event loop of its own, and one runs already: use `async with start(app)`"
        )
    _check_main(app, main)
    limit("the timeout of run", timeout)
    starting = start(
        app,
        link=link,
        on_peer=on_peer,
        dead_letters=dead_letters,
        on_congestion=on_congestion,
        on_gridlock=on_gridlock,
        slow_handler=slow_handler,
        pool_threads=pool_threads,
    )
    asked = asyncio.Event()
    with asyncio.Runner() as runner:
        with interrupts(runner.get_loop(), asked.set, timeout):
            return runner.run(_main(starting, main, timeout, asked))


async def _main(
    starting: Starting,
    main: Callable[[Running], Awaitable[Any]] | None,
    timeout: float,
    asked: asyncio.Event,
) -> Any:
    try:
        async with AsyncExitStack() as stack:
            running = await _entered(stack, starting, asked)
            if running is None:
                return None
            driving = asyncio.ensure_future(running.run_alone() if main is None else _drive(main, running))
            await _until_done_or_asked(driving, running, asked)
            return driving.result() if driving.done() else await _stop(driving, running, timeout)
    finally:
        if starting.left_behind:
            await _abandon_tasks()


async def _entered(stack: AsyncExitStack, starting: Starting, asked: asyncio.Event) -> Running | None:
    """Start within `stack`; None when a signal comes while that waits for other processes."""
    if not starting.waits:
        return await stack.enter_async_context(starting)
    entering = asyncio.ensure_future(stack.enter_async_context(starting))
    interrupted = asyncio.ensure_future(asked.wait())
    await asyncio.wait([entering, interrupted], return_when=asyncio.FIRST_COMPLETED)
    interrupted.cancel()
    if not entering.done():
        entering.cancel()
        await asyncio.wait([entering])
    return None if entering.cancelled() else entering.result()


def _check_main(app: Any, main: Any) -> None:
    """Refuse what would only go wrong when the orchestra runs already, or never end."""
    if inspect.iscoroutine(main):
        main.close()
        raise TypeError("main is a coroutine: give the function itself, run(app, main), not run(app, main())")
    if main is not None and not callable(main):
        raise TypeError(f"main is {main!r}: give a function, async def main(running)")
    if main is not None and not _takes_one(main):
        raise TypeError("main cannot be called with the running alone: write async def main(running)")
    plan = _plan_for(app, "run")
    if main is None and plan.outgoing:
        raise TypeError(
            f"{plan.name} sends {shown_all(plan.outgoing)} out, and without main nobody reads it: "
            "give async def main(running), which reads running.outgoing"
        )


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with one argument, as far as its signature tells."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # written in C: it tells no signature
        return True
    return True


async def _drive(main: Callable[[Running], Awaitable[Any]], running: Running) -> Any:
    answer = main(running)
    if not inspect.isawaitable(answer):
        raise TypeError(f"main gave {answer!r}, which cannot be awaited: write async def main(running)")
    result = await answer
    await running.drain()
    return result


async def _until_done_or_asked(
    driving: "asyncio.Future[Any]", running: Running, asked: asyncio.Event
) -> None:
    """Wait until `main` is done, a signal has come, or the orchestra has failed and `main` goes on."""
    others = [asyncio.ensure_future(asked.wait()), asyncio.ensure_future(_failure(running))]
    await asyncio.wait([driving, *others], return_when=asyncio.FIRST_COMPLETED)
    if not driving.done() and not asked.is_set():
        await asyncio.wait([driving, others[0]], timeout=GRACE, return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        other.cancel()


async def _failure(running: Running) -> None:
    if await running.outcome() is None:
        await asyncio.Event().wait()


async def _stop(driving: "asyncio.Future[Any]", running: Running, timeout: float) -> None:
    """Stop within the limit, and cancel `main`: raise what went wrong with either."""
    stopping = asyncio.ensure_future(running.stop(timeout, everywhere=False))
    driving.cancel()
    within = None if timeout == math.inf else timeout + 2 * GRACE
    await asyncio.wait([driving, stopping], timeout=within)
    stopping.result()
    if not driving.done():
        await _abandon_tasks()
        raise StopTimeout(["main"], ["an await that swallowed its cancellation"], timeout)
    if not driving.cancelled():
        driving.result()


async def _abandon_tasks() -> None:
    """Give what swallowed its cancellation a last chance, and then let the loop close without it."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, left = await asyncio.wait(left, timeout=GRACE)
    for task in left:
        asyncio._unregister_task(task)


def _plan_for(app: Any, verb: str) -> Plan:
    """The plan of an instance, as its class declares it; `verb` is what was given something else."""
    if isinstance(app, type):
        raise TypeError(f"{verb} takes an instance: {shown(app)}(...), not the class")
    if not is_orchestra(type(app)):
        raise TypeError(f"{verb} takes an instance of a class with @orchestra, and {app!r} is none")
    return plan_of(type(app))
