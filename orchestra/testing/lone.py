"""`alone`: one subsystem of an orchestra class, and nobody else."""

from types import TracebackType
from typing import Any, Generic, TypeVar

from orchestra.decorator import is_orchestra, plan_of
from orchestra.errors import DeclarationError
from orchestra.fitting import wiring_for
from orchestra.messages import joined, shown
from orchestra.subsystems import Actor, Subsystem
from orchestra.supervision import Deferred
from orchestra.testing.clock import FakeClock
from orchestra.testing.probe import Probe
from orchestra.testing.stage import Stage

S = TypeVar("S", bound=Actor[Any, Any] | Subsystem[Any, Any])


class alone(Generic[S]):  # noqa: N801 - it reads as a verb: `async with alone(...) as probe`
    """Run one subsystem of an orchestra and no other: `async with alone(App, "counter", Counter()) as probe`.

    It is wired as the class declares the field `name`, and gets messages and signals from the probe alone.
    What it sends goes to the probe, which has room for everything; levels, boxing and undeclared types are
    checked as ever. No event comes, and time stands still until `probe.advance`. It has started, and what
    `started` sent is in `probe.sent`, when the block begins.

    `subsystem` may be wrapped, and may be `deferred(...)`: then it is made when the block begins, and made
    anew for each restart. `start` is where its clock begins, in seconds: give `time.monotonic()` for a
    subsystem that itself adds something to that for `ctx.set_deadline`.

    Leaving the block stops it and raises its error, as for `start`. What it has asked gets `NoReply` then,
    and what it does else may end within `stop_timeout` seconds of real time; after that it is cancelled,
    and `StopTimeout` is raised if it swallows that.

    Raises TypeError for a name that is no subsystem of the class, or one that is only planned, and for what
    is no instance that may stand there; `DeclarationError` for a class that is no orchestra, and for a
    subsystem that lacks what its field needs.
    """

    def __init__(
        self, app: type, name: str, subsystem: S, *, start: float = 0.0, stop_timeout: float = 1.0
    ) -> None:
        if not isinstance(app, type):
            raise TypeError(f"alone takes the orchestra class, {shown(type(app))}, not an instance of it")
        if not is_orchestra(app):
            raise DeclarationError(
                f"{shown(app)} is no orchestra: alone takes a class with @orchestra, then the name of a "
                "field of it, then the subsystem to put there"
            )
        plan = plan_of(app)
        if name not in plan.subsystems:
            there = joined(map(repr, plan.subsystems))
            raise TypeError(f"{plan.name} has no subsystem {name!r}; it has {there}")
        if plan.subsystems[name].wip:
            raise TypeError(f"{plan.name}.{name} is declared with wip=True: take that away to run it")
        if not isinstance(subsystem, Deferred):
            wiring_for(app, {name: subsystem})
        self._app = app
        self._name = name
        self._subsystem = subsystem
        self._start = start
        self._stop_timeout = stop_timeout
        self._stage: Stage | None = None

    async def __aenter__(self) -> Probe[S]:
        clock = FakeClock(self._start)
        stage = self._stage = Stage(self._app, self._name, self._subsystem, clock, self._stop_timeout)
        probe: Probe[S] = Probe(stage)
        stage.ensemble.launch()
        await probe.settle()
        return probe

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._stage is not None
        await self._stage.leave(error)
