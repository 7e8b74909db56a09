"""What a Wrapper passes on to the Actor in it: every method, whichever of the two is asynchronous."""

import copy
import gc
import inspect
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from orchestra import Actor, Priority, Wrapper, handles, start
from orchestra.inspection import HOOKS
from tests.runtime.clockwork import run
from tests.runtime.players import Bell, Calls, Job, Note, alone, turns

CALLED = ("handle", *HOOKS)
"""Every method of an Actor that the runtime calls."""


def inner_of(*methods: str, is_async: bool) -> type[Actor]:
    """An Actor class with these methods, which note their names in `log`."""

    def make(name: str) -> Callable[..., Any]:
        def plain(self: Any, *args: Any) -> None:
            self.log.append(f"inner {name}")

        async def waiting(self: Any, *args: Any) -> None:
            await turns(1)
            self.log.append(f"inner {name}")

        return waiting if is_async else plain

    body: dict[str, Any] = {name: make(name) for name in ("handle", *methods)}
    return type("Inner", (Actor,), {"log": None, **body})


def wrapper_of(name: str, how: str) -> type[Wrapper[Any, Any]]:
    """A Wrapper class that overrides one method: `awaits`, `returns`, or not at all (`leaves`)."""

    class Around(Wrapper):
        log: list[str]

    def returns(self: Any, *args: Any) -> Any:
        self.log.append(f"outer {name}")
        return getattr(super(Around, self), name)(*args)

    async def awaits(self: Any, *args: Any) -> None:
        self.log.append(f"outer {name}")
        await getattr(super(Around, self), name)(*args)
        self.log.append(f"outer {name} is over")

    if how != "leaves":
        setattr(Around, name, {"returns": returns, "awaits": awaits}[how])
    return Around


async def lived(actor: Any, *messages: Any) -> None:
    """Start it alone, give it a signal and messages, and stop it when all is quiet."""
    async with start(alone(actor)) as running:
        await running.broadcast(Bell())
        for message in messages or (Job(),):
            await running.send(message)
        await running.drain()


def test_no_method_of_an_actor_is_left_out() -> None:
    public = {name for name, value in vars(Actor).items() if not name.startswith("_")}
    assert public == {*CALLED, "priority"}, "a method of Actor that the runtime calls stands in HOOKS"
    for name in public:
        assert vars(Wrapper)[name] is not vars(Actor)[name], f"Wrapper does not forward {name}"
        assert inspect.getdoc(vars(Wrapper)[name])


@pytest.mark.parametrize("name", CALLED)
def test_each_method_is_forwarded_with_its_arguments(name: str) -> None:
    count = len(inspect.signature(vars(Actor)[name]).parameters) - 1
    got: list[Any] = []
    inner = type("Inner", (Actor,), {name: lambda self, *args: got.append(args)})()
    given = tuple(object() for _ in range(count))
    getattr(Wrapper(Wrapper(inner)), name)(*given)
    assert got == [given]


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.parametrize("how", ["leaves", "returns", "awaits"])
@pytest.mark.parametrize("inner_is_async", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
def test_the_inner_method_is_called_once_whatever_each_is(
    name: str, how: str, inner_is_async: bool, depth: int
) -> None:
    log: list[str] = []
    inner: Any = inner_of(*HOOKS, is_async=inner_is_async)()
    inner.log = log
    actor: Any = inner
    for _ in range(depth):
        actor = wrapper_of(name, how)(actor)
        actor.log = log
    run(lived(actor))
    about = [line for line in log if line.split()[1] == name]
    before = [f"outer {name}"] * depth if how != "leaves" else []
    after = [f"outer {name} is over"] * depth if how == "awaits" else []
    if name in ("handle", "started", "stopped", "on_signal"):
        assert about == [*before, f"inner {name}", *after]
    assert {line for line in log if line.startswith("inner")} >= {
        f"inner {each}" for each in ("handle", "started", "stopped", "on_signal")
    }


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("how", ["returns", "awaits"])
def test_a_hook_that_the_inner_one_has_not_can_be_forwarded_all_the_same(name: str, how: str) -> None:
    actor: Any = wrapper_of(name, how)(inner_of(is_async=False)())
    actor.inner.log = actor.log = []
    run(lived(actor))
    assert "inner handle" in actor.log
    assert (f"outer {name}" in actor.log) == (name in ("started", "stopped", "on_signal"))


@pytest.mark.parametrize("inner_is_async", [False, True])
def test_a_plain_override_may_keep_a_message_from_the_inner_one(inner_is_async: bool) -> None:
    class Odd(Wrapper):
        def handle(self, ctx: Any, message: Job) -> Any:
            return super().handle(ctx, message) if message.n % 2 else None

    inner: Any = inner_of(is_async=inner_is_async)()
    inner.log = []
    run(lived(Odd(inner), *(Job(n) for n in range(5))))
    assert inner.log == ["inner handle"] * 2


def test_a_coroutine_that_is_thrown_away_is_warned_of_by_python_and_no_more() -> None:
    class Forgets(Wrapper):
        def handle(self, ctx: Any, message: Job) -> None:
            super().handle(ctx, message)

    inner: Any = inner_of(is_async=True)()
    inner.log = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(lived(Forgets(inner)))
        gc.collect()
    told = [str(each.message) for each in caught if each.category is RuntimeWarning]
    assert [text.splitlines()[0] for text in told] == [  # debug mode adds where it was made
        f"coroutine '{inner_of.__name__}.<locals>.make.<locals>.waiting' was never awaited"
    ]
    assert inner.log == []


def test_what_may_be_awaited_is_seen_for_what_it_is_not_for_how_it_was_made() -> None:
    class Inner(Actor):
        def handle(self, ctx: Any, message: Job) -> Any:
            return turns(1)

    class Awaits(Wrapper):
        async def handle(self, ctx: Any, message: Job) -> None:
            assert await super().handle(ctx, message) is None

    run(lived(Awaits(Inner())))


def test_a_result_that_cannot_be_awaited_is_dropped() -> None:
    class Inner(Actor):
        def handle(self, ctx: Any, message: Job) -> int:
            return 7

    class Awaits(Wrapper):
        async def handle(self, ctx: Any, message: Job) -> None:
            assert await super().handle(ctx, message) is None

    run(lived(Awaits(Inner())))


def test_an_error_of_the_inner_one_comes_through() -> None:
    class Inner(Actor):
        async def handle(self, ctx: Any, message: Job) -> None:
            raise ValueError("inner")

    seen: list[BaseException] = []

    class Sees(Wrapper):
        async def handle(self, ctx: Any, message: Job) -> None:
            try:
                await super().handle(ctx, message)
            except ValueError as error:
                seen.append(error)

    run(lived(Sees(Inner())))
    assert [str(error) for error in seen] == ["inner"]


class Marked(Actor):
    """A marked method for each of two types, one of them asynchronous, and `handle` for the rest."""

    def __init__(self) -> None:
        self.got: list[tuple[str, Any]] = []

    @handles(Job)
    def on_job(self, ctx: Any, message: Job) -> None:
        self.got.append(("on_job", message))

    @handles(Note)
    async def on_note(self, ctx: Any, message: Note) -> None:
        await turns(1)
        self.got.append(("on_note", message))

    def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(("handle", message))


class HotJob(Job, frozen=True): ...


def test_handle_forwards_to_the_method_that_the_inner_one_has_for_the_class() -> None:
    class Same(Wrapper):
        async def handle(self, ctx: Any, message: Any) -> None:
            await super().handle(ctx, message)

    async def main() -> None:
        marked = Marked()
        wrapper = Same(Wrapper(marked))
        for message in (Job(1), Note(2), HotJob(3), Bell(4), Job(5)):
            await wrapper.handle(None, message)
        assert [(name, message.n) for name, message in marked.got] == [
            ("on_job", 1),
            ("on_note", 2),
            ("on_job", 3),
            ("handle", 4),
            ("on_job", 5),
        ]

    run(main())


def test_a_message_that_the_inner_one_does_not_handle_is_told() -> None:
    class Inner(Actor):
        @handles(Job)
        def on_job(self, ctx: Any, message: Job) -> None: ...

    with pytest.raises(TypeError, match=r"^Wrapper around Inner has no handler for Note$"):
        Wrapper(Wrapper(Inner())).handle(None, Note())


class Urgent(Actor):
    @staticmethod
    def priority(message: Any) -> Priority:
        return Priority.HIGH

    def handle(self, ctx: Any, message: Any) -> None: ...


def test_priority_is_that_of_the_inner_one_unless_it_is_overridden() -> None:
    class Slow(Wrapper):
        @staticmethod
        def priority(message: Any) -> Priority:
            return Priority.DATA_LOW

    assert Wrapper(Urgent()).priority(Job()) is Priority.HIGH
    assert Wrapper(Wrapper(Urgent())).priority(Job()) is Priority.HIGH
    assert Wrapper(Slow(Urgent())).priority(Job()) is Priority.DATA_LOW
    assert Wrapper(Calls()).priority(Job()) is Priority.NORMAL
    assert Wrapper.priority(Job()) is Priority.NORMAL


def test_repr_shows_what_is_inside() -> None:
    class Plain(Actor):
        def __repr__(self) -> str:
            return "Plain()"

    class Around(Wrapper): ...

    assert repr(Around(Wrapper(Plain()))) == "Around(Wrapper(Plain()))"


def test_a_wrapper_is_pickled_and_copied_with_what_is_inside() -> None:
    wrapper = Wrapper(Marked())
    wrapper.handle(None, Job())
    for again in (pickle.loads(pickle.dumps(wrapper)), copy.deepcopy(wrapper)):
        assert again.inner is not wrapper.inner
        again.handle(None, Job(2))
        assert [message.n for _, message in again.inner.got] == [0, 2]
    assert len(wrapper.inner.got) == 1
