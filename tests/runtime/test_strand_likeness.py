"""A strand against a plain Task: the same random program, the same events from outside, the same story."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import attrs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestra.runtime.scheduler import Scheduler
from orchestra.runtime.strand import Strand, park
from tests.effort import examples
from tests.runtime.clockwork import Clockwork, clockwork

variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

Op = tuple[Any, ...]


@attrs.define(eq=False)
class Story:
    """What a program does and sees, with the time; the programs run on a clockwork."""

    loop: Clockwork
    rest: Callable[[], Awaitable[None]]
    event: asyncio.Event = attrs.field(factory=asyncio.Event)
    queue: "asyncio.Queue[int]" = attrs.field(factory=asyncio.Queue)
    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    told: list[Any] = attrs.field(factory=list)
    task: "asyncio.Task[Any] | None" = None
    steps: int = 0
    beside: int = 0

    def tell(self, *what: Any) -> None:
        task = asyncio.current_task()
        whose = "main" if task is self.task else "other"
        assert task is not None
        self.told.append((self.loop.now, whose, task.cancelling(), variable.get(), *what))

    async def main(self, program: list[Op]) -> None:
        self.task = asyncio.current_task()
        try:
            await self.block(program)
        except BaseException as error:
            self.tell("ends with", shown(error))
            if not isinstance(error, (asyncio.CancelledError, Exception)):
                raise
        else:
            self.tell("ends")

    async def block(self, program: list[Op]) -> None:
        for op in program:
            self.steps += 1
            if self.steps > 60:
                return
            self.tell("begins", op[0])
            try:
                await self.op(op)
            except (asyncio.CancelledError, Exception) as error:
                self.tell(op[0], shown(error))
                raise
            self.tell("has done", op[0])

    async def op(self, op: Op) -> None:
        name, arguments = op[0], op[1:]
        await getattr(self, f"op_{name}")(*arguments)

    @contextmanager
    def others(self) -> Generator[None, None, None]:
        """Other Tasks run beside this one.

        A strand comes to them a turn later than a Task would, and the same turns are not promised;
        so it waits for a moment first, after which its Task and a plain one are level.
        """
        self.beside += 1
        try:
            yield
        finally:
            self.beside -= 1

    async def op_yield(self) -> None:
        await asyncio.sleep(0)

    async def op_sleep(self, time: int) -> None:
        await asyncio.sleep(time)

    async def op_rest(self) -> None:
        if asyncio.current_task() is self.task:
            await self.rest()
            if self.beside:
                await asyncio.sleep(0.01)

    async def op_event(self) -> None:
        await self.event.wait()

    async def op_queue(self) -> None:
        self.tell("got", await self.queue.get())

    async def op_lock(self, time: int) -> None:
        async with self.lock:
            await asyncio.sleep(time)

    async def op_set(self, value: int) -> None:
        variable.set(value)

    async def op_cancel_oneself(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel("by itself")

    async def op_change_ones_mind(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel("by itself")
        task.uncancel()

    async def op_fail(self) -> None:
        raise ValueError("failed")

    async def op_shield(self, time: int) -> None:
        await asyncio.shield(asyncio.sleep(time))

    async def op_gather(self, first: list[Op], second: list[Op]) -> None:
        with self.others():
            await asyncio.sleep(0.01)
            await asyncio.gather(self.block(first), self.block(second))

    async def op_timeout(self, time: int, inner: list[Op]) -> None:
        async with asyncio.timeout(time):
            await self.block(inner)

    async def op_wait_for(self, time: int, inner: list[Op]) -> None:
        await asyncio.wait_for(self.block([op for op in inner if op[0] != "rest"]), time)

    async def op_group(self, child: list[Op], inner: list[Op]) -> None:
        with self.others():
            await asyncio.sleep(0.01)
            async with asyncio.TaskGroup() as group:
                group.create_task(self.block(child))
                await self.block(inner)

    async def op_task(self, inner: list[Op]) -> None:
        with self.others():
            await asyncio.sleep(0.01)
            await asyncio.create_task(self.block(inner))

    async def op_catch(self, inner: list[Op]) -> None:
        try:
            await self.block(inner)
        except asyncio.CancelledError as error:
            self.tell("caught", shown(error))
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
        except Exception as error:
            self.tell("caught", shown(error))


def shown(error: BaseException) -> Any:
    if isinstance(error, BaseExceptionGroup):
        return type(error).__name__, [shown(each) for each in error.exceptions]
    return type(error).__name__, str(error)


Outside = tuple[int, str]


def tell_as_task(program: list[Op], outside: list[Outside]) -> list[Any]:
    with clockwork(strict=False) as loop:
        waiting: list[asyncio.Future[None]] = []

        async def rest() -> None:
            future = loop.create_future()
            waiting.append(future)
            await future

        def wake() -> None:
            for future in waiting:
                if not future.done():
                    future.set_result(None)
            waiting.clear()

        story = Story(loop, rest)
        task = loop.create_task(story.main(program))
        return play(story, task, outside, wake)


def tell_as_strand(program: list[Op], outside: list[Outside]) -> list[Any]:
    with clockwork(strict=False) as loop:
        scheduler = Scheduler(loop)
        resting = False

        async def rest() -> None:
            nonlocal resting
            resting = True
            try:
                while resting:
                    await park
            finally:
                resting = False

        def wake() -> None:
            nonlocal resting
            if resting:
                resting = False
                scheduler.add(strand.step)

        async def make() -> Strand:
            return Strand(story.main(program), loop, "strand", scheduler)

        story = Story(loop, rest)
        strand = loop.run_until_complete(make())
        scheduler.add(strand.step)
        return play(story, strand.task, outside, wake)


def play(
    story: Story, task: "asyncio.Task[Any]", outside: list[Outside], wake: Callable[[], None]
) -> list[Any]:
    loop, now = story.loop, 0
    loop.settle()
    for delay, what in [*outside, (50, "wake"), (50, "set"), (50, "cancel"), (50, "cancel"), (50, "cancel")]:
        now += delay
        # An event comes half a unit after any timer: what comes in one turn is another test's matter.
        loop.pass_time(now + 0.5 - loop.now)
        if what == "cancel":
            task.cancel("from outside")
        elif what == "wake":
            wake()
        elif what == "set":
            story.event.set()
        elif what == "put":
            story.queue.put_nowait(now)
        loop.settle()
    story.told.append(("at the end", task.done(), task.cancelling()))
    return list(story.told)


TIMES = st.integers(0, 4)


def programs() -> st.SearchStrategy[list[Op]]:
    plain: st.SearchStrategy[Op] = st.one_of(
        st.sampled_from(
            [
                ("rest",),
                ("yield",),
                ("event",),
                ("queue",),
                ("cancel_oneself",),
                ("change_ones_mind",),
                ("fail",),
            ]
        ),
        st.tuples(st.sampled_from(["sleep", "lock", "shield", "set"]), TIMES),
    )

    def nested(ops: st.SearchStrategy[Op]) -> st.SearchStrategy[Op]:
        inner = st.lists(ops, max_size=3)
        return st.one_of(
            st.tuples(st.sampled_from(["timeout", "wait_for"]), st.integers(1, 4), inner),
            st.tuples(st.sampled_from(["gather", "group"]), inner, inner),
            st.tuples(st.sampled_from(["task", "catch"]), inner),
        )

    return st.lists(st.recursive(plain, nested, max_leaves=8), min_size=1, max_size=5)


OUTSIDE = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["cancel", "wake", "set", "put"])), max_size=6
)


@settings(max_examples=examples(400))
@example([("rest",), ("cancel_oneself",), ("rest",)], [(1, "wake")])
@example([("rest",), ("cancel_oneself",), ("yield",)], [(1, "wake")])
@example([("rest",), ("cancel_oneself",), ("sleep", 1)], [(1, "wake")])
@example([("rest",), ("change_ones_mind",), ("sleep", 1)], [(1, "wake")])
@example([("rest",), ("change_ones_mind",), ("rest",), ("sleep", 1)], [(1, "wake")])
@example([("rest",), ("cancel_oneself",)], [(1, "wake")])
@example([("catch", [("rest",)]), ("rest",), ("sleep", 1)], [(1, "cancel"), (1, "wake")])
@example([("rest",), ("sleep", 4)], [(1, "wake"), (1, "cancel")])
@example([("timeout", 2, [("rest",)])], [])
@given(programs(), OUTSIDE)
def test_a_strand_behaves_as_a_task(program: list[Op], outside: list[Outside]) -> None:
    assert tell_as_strand(program, outside) == tell_as_task(program, outside)
