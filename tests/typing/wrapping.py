"""Each line marked `# wrong` must be an error for mypy --strict and for basedpyright, no other may."""

from collections.abc import Mapping
from typing import Any, Never, assert_type

import msgspec
from typing_extensions import TypeVar

from orchestra import Actor, Context, Subsystem, Wrapper, handles, orchestra, subsystem
from orchestra.wrappers import Retrying, Timed, Timing


class Job(msgspec.Struct): ...


class Note(msgspec.Struct): ...


class Sig(msgspec.Struct): ...


class Worker(Actor[Job, Note]):
    async def handle(self, ctx: Context[Job, Note, Sig], message: Job) -> None:
        await ctx.send(Note())


class Logger(Actor[Note, Never]):
    def handle(self, ctx: Context[Note, Never, Sig], message: Note) -> None: ...


class Reader(Subsystem[Never, Job]):
    async def run(self, ctx: Context[Never, Job, Sig]) -> None: ...


In = TypeVar("In", default=Any)
SOut = TypeVar("SOut", default=Any)


class Traced(Wrapper[In, SOut]):
    """For any Actor, with an argument of its own."""

    def __init__(self, inner: Actor[In, SOut], *, prefix: str) -> None:
        super().__init__(inner)
        self.prefix = prefix

    def started(self, ctx: Context[In, SOut, Any]) -> Any:
        return super().started(ctx)

    async def handle(self, ctx: Context[In, SOut, Any], message: In) -> None:
        print(self.prefix, message)
        await super().handle(ctx, message)

    async def on_signal(self, ctx: Context[In, SOut, Any], signal: Any) -> None:
        await super().on_signal(ctx, signal)

    def stopped(self, ctx: Context[In, SOut, Any]) -> Any:
        return super().stopped()  # wrong


class OnJobs(Wrapper[Job, Note]):
    """For one kind of Actor."""

    @handles(Job)
    async def on_job(self, ctx: Context[Job, Note, Sig], message: Job) -> None:
        await super().handle(ctx, message)
        await super().handle(ctx, Note())  # wrong
        await ctx.send(message)  # wrong


@orchestra(signal=Sig, event=Sig)
class App:
    traced: Traced[Job, Note] = subsystem()
    logger: Actor[Note, Never] = subsystem()


assert_type(Timed(Worker()), Timed[Job, Note])
assert_type(Timed(Worker()).inner, Actor[Job, Note])
assert_type(Timed(Worker()).meters(), Mapping[str, Timing])
assert_type(Timed(Worker()).meters()["Job"].longest, float)
assert_type(Retrying(Timed(Worker())), Retrying[Job, Note])
assert_type(Traced(Worker(), prefix="> "), Traced[Job, Note])
assert_type(App(traced=Traced(Worker(), prefix=""), logger=Logger()).traced.prefix, str)

App(traced=Traced(Timed(Worker()), prefix="> "), logger=Timed(Retrying(Logger())))
App(traced=Traced(Logger(), prefix="> "), logger=Logger())  # wrong
App(traced=Worker(), logger=Logger())  # wrong
App(traced=Traced(Worker(), prefix="> "), logger=Timed(Worker()))  # wrong
OnJobs(Worker())
OnJobs(Logger())  # wrong
Traced(Worker())  # wrong
Wrapper(Reader())  # wrong
Wrapper(Worker)  # wrong
Timed(Worker(), warn_over="1")  # wrong
Retrying(Worker(), on=(OSError, ValueError), attempts=None, timeout=None, wait_jitter=0)
Retrying(Worker(), on=lambda error: 2.5 if isinstance(error, OSError) else False)
Retrying(Worker(), on=OSError())  # wrong
Retrying(Worker(), attempts="3")  # wrong


@orchestra(signal=Sig, event=Sig)
class Declared:
    worker: Worker = subsystem()
    logger: Logger = subsystem()


Declared(worker=Timed(Worker()), logger=Logger())  # wrong
