"""What is called of a wrapped Actor is decided at start: the outermost override, else the inner one's own."""

import asyncio
from typing import Any, Generic

import pytest
from typing_extensions import TypeVar

from orchestra import (
    Actor,
    Context,
    Drop,
    Full,
    Priority,
    Subsystem,
    Wrapper,
    handles,
    orchestra,
    plan_of,
    start,
    subsystem,
)
from orchestra.fitting import wiring_for
from orchestra.plan import SubsystemPlan
from orchestra.runtime.face import faced
from tests.runtime.clockwork import run
from tests.runtime.players import Awaits, Bell, Calls, Gated, Job, Knock, Note, alone, told, turns, until

In = TypeVar("In", default=Any)
SOut = TypeVar("SOut", default=Any)


class Same(Wrapper[In, SOut]):
    """Changes nothing."""


class Returns(Wrapper[In, SOut]):
    def handle(self, ctx: Any, message: Any) -> Any:
        return super().handle(ctx, message)


class Waits(Wrapper[In, SOut]):
    async def handle(self, ctx: Any, message: Any) -> None:
        await super().handle(ctx, message)


class HotJob(Job, frozen=True): ...


class HotterJob(HotJob, frozen=True): ...


class Marked(Actor):
    def __init__(self) -> None:
        self.got: list[tuple[str, int]] = []

    @handles(Job)
    def on_job(self, ctx: Any, message: Job) -> None:
        self.got.append(("on_job", message.n))

    @handles(Note)
    async def on_note(self, ctx: Any, message: Note) -> None:
        await turns(1)
        self.got.append(("on_note", message.n))


def given(worker: Any, consumes: Any = Job) -> SubsystemPlan:
    """The part of the plan that is made for an instance."""

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Actor[Any, Any] = subsystem(consumes=consumes)

    return wiring_for(App, {"worker": worker})[0].subsystems["worker"]


async def lived(worker: Any, *messages: Any, consumes: Any = Job | Note) -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Actor[Any, Any] = subsystem(consumes=consumes)

    async with start(App(worker=worker)) as running:
        for message in messages:
            await running.send(message)
        await running.drain()


@pytest.mark.parametrize("around", [Same, lambda inner: Same(Same(inner))])
def test_a_method_that_no_wrapper_overrides_is_called_directly(around: Any) -> None:
    inner = Calls()
    wrapper = around(inner)
    face = faced(wrapper, given(wrapper))
    for name in ("handle", "started", "stopped", "on_signal"):
        assert getattr(face, name) == getattr(inner, name)
    assert repr(face) == f"<face of {wrapper!r}>"


def test_only_hooks_that_somebody_has_are_called() -> None:
    class Bare(Actor):
        def handle(self, ctx: Any, message: Job) -> None: ...

    class Starts(Wrapper):
        async def started(self, ctx: Any) -> None: ...

    assert dict(given(Same(Bare())).hooks) == {}
    assert dict(given(Starts(Bare())).hooks) == {"started": True}
    assert dict(given(Starts(Calls())).hooks) == {"started": True, "stopped": False, "on_signal": False}
    assert set(given(Same(Bare())).ways or ()) == {"handle"}


@pytest.mark.parametrize(
    ("worker", "is_async"),
    [
        (Same(Calls()), False),
        (Returns(Calls()), False),
        (Returns(Returns(Calls())), False),
        (Waits(Calls()), True),
        (Returns(Waits(Calls())), True),
        (Same(Awaits()), True),
        (Returns(Awaits()), True),
        (Returns(Same(Returns(Awaits()))), True),
        (Waits(Awaits()), True),
    ],
    ids=repr,
)
def test_a_handler_is_asynchronous_where_something_along_the_way_is(worker: Any, is_async: bool) -> None:
    assert [handler.is_async for handler in given(worker).handlers] == [is_async]


def test_a_plain_override_is_awaited_only_for_types_whose_handler_is_asynchronous() -> None:
    class OnJob(Wrapper):
        @handles(Job)
        def on_job(self, ctx: Any, message: Job) -> Any:
            return super().handle(ctx, message)

    handlers = {handler.message: handler.is_async for handler in given(OnJob(Marked()), Job | Note).handlers}
    assert handlers == {Job: False, Note: True}


def test_the_outermost_wrapper_that_handles_a_type_gets_it() -> None:
    log: list[str] = []

    class Inner(Wrapper):
        def handle(self, ctx: Any, message: Any) -> Any:
            log.append(f"inner {type(message).__name__}")
            return super().handle(ctx, message)

    class Outer(Wrapper):
        @handles(Note)
        async def on_note(self, ctx: Any, message: Note) -> None:
            log.append(f"outer {type(message).__name__}")
            await super().handle(ctx, message)

    marked = Marked()
    run(lived(Outer(Inner(marked)), Job(1), Note(2), Job(3)))
    assert log == ["inner Job", "outer Note", "inner Note", "inner Job"]
    assert marked.got == [("on_job", 1), ("on_note", 2), ("on_job", 3)]


def test_methods_of_one_name_in_wrapper_and_inner_are_kept_apart() -> None:
    log: list[int] = []

    class Around(Wrapper):
        @handles(Job)
        def on_note(self, ctx: Any, message: Job) -> None:
            log.append(message.n)

    marked = Marked()
    worker = Around(marked)
    assert {h.message: h.method for h in given(worker, Job | Note).handlers} == {
        Job: "on_note",
        Note: "on_note_1",
    }
    run(lived(worker, Job(1), Note(2)))
    assert (log, marked.got) == ([1], [("on_note", 2)])


def test_subclasses_go_to_the_nearest_mark_of_the_outermost_that_handles_them() -> None:
    log: list[str] = []

    class OnHot(Wrapper):
        @handles(HotJob)
        def on_hot(self, ctx: Any, message: HotJob) -> Any:
            log.append(type(message).__name__)
            return super().handle(ctx, message)

    marked = Marked()
    run(lived(OnHot(marked), Job(1), HotJob(2), HotterJob(3), consumes=Job | Note))
    assert log == ["HotJob", "HotterJob"]
    assert marked.got == [("on_job", 1), ("on_job", 2), ("on_job", 3)]


def test_a_marked_method_may_keep_a_type_that_the_inner_one_does_not_know() -> None:
    class Extra(Wrapper):
        def __init__(self, inner: Actor) -> None:
            super().__init__(inner)
            self.extra: list[Note] = []

        @handles(Note)
        def on_extra(self, ctx: Any, message: Note) -> None:
            self.extra.append(message)

    class Inner(Marked):
        on_note = None  # type: ignore[assignment]  # it handles Job alone

    worker = Extra(Inner())
    run(lived(worker, Job(1), Note(2)))
    assert worker.extra == [Note(2)]
    assert worker.inner.got == [("on_job", 1)]


def test_the_generics_of_a_wrapper_state_what_it_receives_and_sends() -> None:
    @orchestra(signal=Bell, event=Knock, outgoing=Note)
    class App:
        worker: Same[Job, Note] = subsystem()

    plan = plan_of(App).subsystems["worker"]
    assert (plan.consumes, plan.sends) == ((Job,), (Note,))


def test_before_the_start_nothing_is_known_of_what_is_inside() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Returns = subsystem(consumes=Job)

    plan = plan_of(App)
    assert plan.subsystems["worker"].made_at_start
    assert (plan.subsystems["worker"].handlers, dict(plan.subsystems["worker"].hooks)) == ((), {})
    assert "# How worker is served is written at start" in plan.source
    assert "def worker_worker" not in plan.source
    made, _ = wiring_for(App, {"worker": Returns(Calls())})
    assert "def worker_worker(inbox, ctx, actor, part):" in made.source
    assert "straight from the ready-queue" in made.source


def test_the_wiring_is_made_once_for_each_chain_of_classes() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Same = subsystem(consumes=Job)

    first, second, other = (
        wiring_for(App, {"worker": worker})[1] for worker in (Same(Calls()), Same(Calls()), Same(Awaits()))
    )
    assert first is second
    assert first is not other


def test_an_orchestra_without_wrappers_runs_the_wiring_made_at_decoration() -> None:
    app = alone(Calls())
    assert wiring_for(type(app), {"worker": app.worker})[1] is type(app).__orchestra_wiring__
    assert plan_of(type(app)).subsystems["worker"].ways is None
    calls = Calls()
    assert faced(calls, plan_of(type(app)).subsystems["worker"]) is calls


def test_a_field_of_the_plain_class_takes_a_wrapper_of_it() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Calls = subsystem(consumes=Job)

    async def main() -> None:
        for worker in (Waits(Calls()), Returns(Calls())):
            async with start(App(worker=worker)) as running:  # type: ignore[arg-type]  # only at run time
                await running.send(Job(1))
                await running.drain()
            assert worker.inner.got == [Job(1)]
            assert worker.inner.hooks == ["started", "stopped"]

    run(main())


def test_a_field_of_type_actor_takes_any_actor() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Actor[Job, Any] = subsystem(sends=[])

    async def main() -> None:
        for worker in (Calls(), Awaits(), Same(Calls())):
            async with start(App(worker=worker)) as running:
                await running.send(Job(1))
                await running.drain()
        assert plan_of(App).subsystems["worker"].consumes == (Job,)

    run(main())


def test_one_wrapper_class_stands_in_several_fields_around_different_actors() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        first: Returns = subsystem(consumes=Job)
        second: Returns = subsystem(consumes=Note)

    async def main() -> None:
        first, second = Calls(), Awaits()
        async with start(App(first=Returns(first), second=Returns(second))) as running:
            await running.send(Job(1))
            await running.send(Note(2))
            await running.drain()
        assert (first.got, second.got) == ([Job(1)], [Note(2)])

    run(main())


class Levelled(Gated):
    @staticmethod
    def priority(message: Job) -> Priority:
        return Priority.HIGH if message.n % 2 else Priority.NORMAL


@pytest.mark.parametrize("worker", [Same(Levelled()), Waits(Same(Levelled()))], ids=repr)
def test_priority_of_the_inner_one_picks_the_lane(worker: Any) -> None:
    inner = worker
    while isinstance(inner, Wrapper):
        inner = inner.inner
    inner.gate = asyncio.Event()

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Actor[Any, Any] = subsystem(consumes=Job, priorities=[Priority.HIGH, Priority.NORMAL])

    async def main() -> None:
        async with start(App(worker=worker)) as running:
            for n in range(6):
                await running.send(Job(n))
            inner.gate.set()
            await running.drain()
        assert [job.n for job in inner.got] == [1, 3, 5, 0, 2, 4]

    run(main())


def test_priority_of_a_wrapper_goes_before_that_of_the_inner_one() -> None:
    class Reversed(Wrapper):
        @staticmethod
        def priority(message: Job) -> Priority:
            return Priority.NORMAL if message.n % 2 else Priority.HIGH

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Same = subsystem(consumes=Job, priorities=[Priority.HIGH, Priority.NORMAL])

    async def main() -> None:
        inner = Levelled()
        async with start(App(worker=Same(Reversed(inner)))) as running:
            for n in range(4):
                await running.send(Job(n))
            inner.gate.set()
            await running.drain()
        assert [job.n for job in inner.got] == [0, 2, 1, 3]

    run(main())


def test_lanes_without_normal_do_when_the_inner_one_has_a_priority() -> None:
    class AlwaysHigh(Calls):
        @staticmethod
        def priority(message: Job) -> Priority:
            return Priority.HIGH

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Same = subsystem(consumes=Job, priorities=[Priority.HIGH])

    async def main() -> None:
        worker = Same(AlwaysHigh())
        async with start(App(worker=worker)) as running:
            await running.send(Job(1))
            await running.drain()
        assert worker.inner.got == [Job(1)]

    run(main())


def test_the_name_of_the_field_stays_the_name_of_the_subsystem() -> None:
    class Breaks(Awaits):
        async def handle(self, ctx: Any, message: Job) -> None:
            names.append(ctx.name)
            raise ValueError("broken")

    names: list[str] = []
    letters: list[Any] = []

    @orchestra(signal=Bell, event=Knock, error=RuntimeError)
    class App:
        worker: Returns = subsystem(consumes=Job, message_capacity=1, overflow=Drop())

    async def main() -> None:
        with pytest.raises(RuntimeError, match="subsystem 'worker' of App failed: ValueError: broken"):
            async with start(App(worker=Returns(Breaks())), dead_letters=letters.append) as running:
                await running.send(Job(1))
                await until(lambda: names)
                assert running.meters()["worker"].received == 1
        assert told(letters) == [(Job(1), "worker", "failed")]

    run(main())
    assert names == ["worker"]


def test_a_full_lane_of_a_wrapped_actor_is_told_by_its_field() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Same = subsystem(consumes=Job, message_capacity=1)

    async def main() -> None:
        worker = Same(Gated())
        async with start(App(worker=worker)) as running:
            await running.send(Job(1))
            await turns()
            running.try_send(Job(2))
            with pytest.raises(Full) as caught:
                running.try_send(Job(3))
            assert caught.value.subsystem == "worker"
            worker.inner.gate.set()
            await running.drain()

    run(main())


def test_what_the_outer_hands_on_may_be_another_message() -> None:
    class Doubles(Wrapper[Job, Any]):
        async def handle(self, ctx: Context[Job, Any, Any], message: Job) -> None:
            await super().handle(ctx, Job(message.n * 2))
            await super().handle(ctx, Note(message.n))

    marked = Marked()
    run(lived(Doubles(marked), Job(1), Job(2), consumes=Job | Note))
    assert marked.got == [("on_job", 2), ("on_note", 1), ("on_job", 4), ("on_note", 2)]


class Generic_(Wrapper[In, SOut], Generic[In, SOut]):
    """A wrapper that states its own parameters."""


def test_a_wrapper_may_be_generic_by_itself() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Generic_[Job] = subsystem(sends=[])

    assert plan_of(App).subsystems["worker"].consumes == (Job,)


def test_a_run_is_not_disturbed_by_a_wrapper_beside_it() -> None:
    class Source(Subsystem):
        async def run(self, ctx: Any) -> None:
            for n in range(3):
                await ctx.send(Job(n))

    @orchestra(signal=Bell, event=Knock)
    class App:
        source: Source = subsystem(sends=[Job])
        worker: Waits = subsystem(consumes=Job)

    async def main() -> None:
        worker = Waits(Calls())
        async with start(App(source=Source(), worker=worker)) as running:
            await running.drain()
        assert worker.inner.got == [Job(0), Job(1), Job(2)]

    run(main())
