"""What cannot be wrapped, or wired when it is wrapped, is told with what would be right."""

import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from orchestra import (
    Actor,
    DeclarationError,
    Priority,
    Subsystem,
    Wrapper,
    handles,
    orchestra,
    start,
    subsystem,
)
from orchestra.fitting import wiring_for
from tests.runtime.players import Bell, Calls, Collects, Job, Knock, Note


class Same(Wrapper): ...


class Around(Wrapper):
    def handle(self, ctx: Any, message: Any) -> Any:
        return super().handle(ctx, message)


class OnJob(Actor):
    @handles(Job)
    def on_job(self, ctx: Any, message: Job) -> None: ...


def refused(worker: Any, **options: Any) -> str:
    """What the start says of an instance in a field that takes any Actor, up to the place."""

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Actor = subsystem(**{"consumes": Job | Note, **options})

    with pytest.raises((DeclarationError, TypeError)) as caught:
        wiring_for(App, {"worker": worker})
    text = str(caught.value)
    if isinstance(caught.value, DeclarationError):
        text, at, place = text.rpartition(", at ")
        assert at
        assert re.fullmatch(re.escape(__file__) + r":\d+", place)
    return text


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        (lambda: Calls, "Same wraps an instance: give Calls(...), not the class"),
        (
            Collects,
            (
                "Same wraps an Actor, and Collects is a Subsystem, which receives by itself in its run: "
                "write it as an Actor, or derive from it and override run"
            ),
        ),
        (lambda: 3, "Same wraps an Actor, and 3 is none: give an instance of a class with handlers"),
        (lambda: None, "Same wraps an Actor, and None is none: give an instance of a class with handlers"),
    ],
)
def test_only_an_actor_can_be_wrapped(inner: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(text)}$"):
        Same(inner())


@pytest.mark.parametrize("worker", [Same(OnJob()), Around(OnJob()), Around(Same(OnJob()))], ids=repr)
def test_a_type_without_a_handler_inside(worker: Any) -> None:
    kinds = repr(worker).count("Same") * ["Same"]
    kinds = (["Around"] if "Around" in repr(worker) else []) + kinds
    assert refused(worker) == (
        f"App.worker: {' around '.join([*kinds, 'OnJob'])} has no handler for Note: give OnJob "
        "handle(self, ctx, message) or a method marked @handles(Type), or mark one of "
        f"{' and '.join(kinds)} that keeps it"
    )


def test_lanes_without_normal_and_nobody_who_says_the_level() -> None:
    text = (
        "App.worker: its lanes are DATA_HIGH, and a message without a priority is NORMAL: "
        "add a NORMAL lane, or a static method priority(message)"
    )
    assert refused(Same(Calls()), priorities=[Priority.HIGH]) == text
    assert refused(Calls(), priorities=[Priority.HIGH]) == text


def test_a_mark_for_what_is_not_consumed() -> None:
    class OnNote(Wrapper):
        @handles(Note)
        def on_note(self, ctx: Any, message: Note) -> None: ...

    assert refused(OnNote(Calls()), consumes=Job) == (
        "App.worker: OnNote.on_note handles Note, which it does not consume: it consumes Job"
    )
    assert refused(Same(OnNote(Calls())), consumes=Job) == (
        "App.worker: OnNote.on_note handles Note, which it does not consume: it consumes Job"
    )


def test_an_inner_one_with_no_handler_at_all() -> None:
    class Mute(Actor): ...

    assert refused(Same(Mute())) == (
        "App.worker: Mute has no handler: give it handle(self, ctx, message) or methods marked @handles(Type)"
    )


def test_an_inner_priority_that_is_not_static() -> None:
    class Odd(Calls):
        def priority(self, message: Any) -> Priority:  # type: ignore[override]  # what the test is about
            return Priority.HIGH

    assert refused(Same(Odd())) == (
        "App.worker: Odd.priority is not a static method: write @staticmethod def priority(message), "
        "for it is called in the sender"
    )


def test_an_inner_hook_of_another_shape() -> None:
    class Odd(Calls):
        def started(self) -> None: ...  # type: ignore[override]  # what the test is about

    assert refused(Same(Odd())) == (
        "App.worker: Odd.started cannot be called with 1 argument: write started(self, ctx)"
    )


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (
            "handle",
            "App.worker: Bad.handle cannot be called with 2 arguments: write handle(self, ctx, message)",
        ),
        ("started", "App.worker: Bad.started cannot be called with 1 argument: write started(self, ctx)"),
    ],
)
def test_the_shape_of_what_a_wrapper_overrides_is_checked_at_decoration(method: str, text: str) -> None:
    bad = type("Bad", (Wrapper,), {method: lambda self: None, "__module__": __name__})
    with pytest.raises(DeclarationError, match=f"^{re.escape(text)}"):

        @orchestra(signal=Bell, event=Knock)
        class App:
            worker: bad = subsystem(consumes=Job)  # type: ignore[valid-type]  # made by the test


def test_an_init_that_forgets_the_inner_one() -> None:
    class Forgets(Wrapper):
        def __init__(self, inner: Any) -> None: ...

    worker = Forgets(Calls())
    assert refused(worker) == (
        "App.worker: Forgets has no inner: call super().__init__(inner) in its __init__"
    )
    assert repr(worker) == "Forgets('?')"


def test_an_attrs_class_that_holds_no_actor() -> None:
    @attrs.define(slots=False)
    class Holder(Wrapper):
        inner: Any

    assert refused(Holder(3)) == (
        "App.worker: Holder wraps an Actor, and 3 is none: give an instance of a class with handlers"
    )
    assert refused(Same(Holder(OnJob()))).startswith("App.worker: Same around Holder around OnJob has no")


def test_a_wrapper_of_itself() -> None:
    worker = Same(Calls())
    worker.inner = Same(worker)
    assert refused(worker) == "App.worker: Same wraps itself: give it another Actor"


def test_a_wrapper_where_a_run_is_declared() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Collects = subsystem(consumes=Job)

    text = r"^App.worker holds a Same, and Collects is declared, so it must be of Subsystem$"
    with pytest.raises(TypeError, match=text):
        start_now(App(worker=Same(Calls())))


def test_a_subsystem_where_any_actor_is_declared() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Actor = subsystem(consumes=Job)

    with pytest.raises(TypeError, match=r"holds a Collects, and Actor is declared, so it must be of Actor$"):
        start_now(App(worker=Collects()))
    with pytest.raises(DeclarationError, match=r"^Actor has no handler"):
        start_now(App(worker=Actor()))


def test_any_subsystem_is_still_refused() -> None:
    with pytest.raises(DeclarationError, match=r"^App.worker: Subsystem has no run"):

        @orchestra(signal=Bell, event=Knock)
        class App:
            worker: Subsystem = subsystem(consumes=Job)


def start_now(app: Any) -> None:
    coroutine = start(app).__aenter__()
    try:
        coroutine.send(None)
    finally:
        coroutine.close()
