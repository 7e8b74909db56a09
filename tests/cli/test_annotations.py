"""Annotations that contradict the declaration are warned of, and those that only say more or less are not."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Never, TypeVar

import msgspec
import pytest

from orchestra import Actor, BlockingContext, Context, Subsystem, handles, orchestra, plan_of, subsystem
from orchestra.cli.annotations import wrong_annotations
from orchestra.cli.findings import Finding, Level, findings_of

T = TypeVar("T")


class A(msgspec.Struct, frozen=True): ...


class B(msgspec.Struct, frozen=True): ...


class C(msgspec.Struct, frozen=True): ...


class ChildOfA(A, frozen=True): ...


class Halt: ...


class Quoted(Actor[A, Never]):
    def handle(self, ctx: "Context[B, Never, Halt]", message: "B") -> "None": ...


class Unknown(Actor[A, Never]):
    def handle(self, ctx: "Context[Nowhere, Never, Halt]", message: "Nowhere") -> "Nowhere": ...  # type: ignore[name-defined]  # noqa: F821 - it is the case in question


def warnings(kind: Any, **options: Any) -> list[str]:
    @orchestra(signal=Halt, event=Halt, outgoing=B if "sends" in options else None)
    class App:
        first: kind = subsystem(**options)

    return list(wrong_annotations(plan_of(App)))


def with_handler(ctx: Any, message: Any, returned: Any) -> type:
    def handle(self: Any, ctx: Any, message: Any) -> None: ...

    handle.__annotations__ = {"ctx": ctx, "message": message, "return": returned}
    return type("Worker", (Actor,), {"handle": handle})


def of_a_handler(ctx: Any = Any, message: Any = A, returned: Any = None) -> list[str]:
    return warnings(with_handler(ctx, message, returned), consumes=A, sends=[B])


def test_a_ctx_with_the_two_sides_changed_is_warned_of() -> None:
    [told] = of_a_handler(Context[B, A, Halt])
    assert told == (
        "Worker.handle has a ctx annotated Context[B, A, Halt], and by its declaration it receives A, not B "
        "and sends B, not A"
    )


def test_a_ctx_that_sends_more_than_is_declared_is_warned_of_in_a_thread_too() -> None:
    class Runs(Subsystem):
        def run(self, ctx: BlockingContext[A, B | C, Halt]) -> None: ...

    [told] = warnings(Runs, consumes=A, sends=[B], blocking=True)
    assert told == (
        "Runs.run has a ctx annotated BlockingContext[A, B | C, Halt], and by its declaration it "
        "sends B, not C"
    )


def test_a_message_of_another_type_is_warned_of() -> None:
    class Marked(Actor):
        @handles(A)
        def on_a(self, ctx: Any, message: C) -> None: ...

        def handle(self, ctx: Any, message: A) -> None: ...

    assert warnings(Marked, consumes=A | B) == [
        "Marked.on_a has a message annotated C, and is called with A",
        "Marked.handle has a message annotated A, and is called with B",
    ]


@pytest.mark.parametrize(
    ("returned", "shown"),
    [
        (B, "B"),
        (bool, "bool"),
        (B | None, "B | None"),
        (Awaitable[B], "Awaitable[B]"),
        (Coroutine[Any, Any, B], "Coroutine[Any, Any, B]"),
    ],
)
def test_a_handler_that_returns_something_is_warned_of(returned: Any, shown: str) -> None:
    [told] = of_a_handler(returned=returned)
    assert told == (
        f"Worker.handle is annotated to return {shown}, and what a handler returns is dropped: "
        "send it, or answer by a Reply"
    )


def test_strings_are_resolved_in_the_module_of_the_class() -> None:
    ctx, message = warnings(Quoted)
    assert ctx == (
        "Quoted.handle has a ctx annotated Context[B, Never, Halt], and by its declaration it "
        "receives A, not B"
    )
    assert message == "Quoted.handle has a message annotated B, and is called with A"


@pytest.mark.parametrize(
    "annotations",
    [
        {"ctx": Context[A, B, Halt]},
        {"ctx": Context[ChildOfA, B, Halt]},
        {"ctx": Context[A | Halt, Never, Halt]},
        {"ctx": Context[Never, Any, Any]},
        {"ctx": Context},
        {"ctx": Callable[[A], B]},
        {"ctx": Context[T, T, Halt]},  # type: ignore[valid-type]
        {"message": A | B},
        {"message": ChildOfA},
        {"message": object},
        {"message": A | None},
        {"message": T},
        *({"returned": one} for one in (Any, object, Never, T, Awaitable[None], Awaitable[None] | None)),
        {"returned": Coroutine[Any, Any, None]},
        {"returned": Coroutine},
    ],
    ids=str,
)
def test_what_does_not_contradict_is_left_alone(annotations: dict[str, Any]) -> None:
    assert of_a_handler(**annotations) == []


def test_what_cannot_be_known_is_left_alone() -> None:
    class B(msgspec.Struct): ...

    class Local(Actor):
        def handle(self, ctx: "Context[B, Never, Halt]", message: "B") -> None: ...

    class Base(Actor[T, Never], Generic[T]):
        def handle(self, ctx: Context[T, Never, Halt], message: T) -> None: ...

    class Bare(Actor):
        def handle(self, ctx, message): ...  # type: ignore[no-untyped-def]

    assert warnings(Unknown) == warnings(Base[A]) == []
    assert warnings(Local, consumes=B) == warnings(Bare, consumes=A) == []


def test_a_number_may_be_annotated_as_the_wider_one() -> None:
    assert warnings(with_handler(Context[float, Never, Halt], float, None), consumes=int) == []


def test_a_class_in_two_fields_may_name_what_either_receives_and_sends() -> None:
    class Both(Actor):
        def handle(self, ctx: Context[A | B, B | C, Halt], message: A | B) -> None: ...

    @orchestra(signal=Halt, event=Halt, outgoing=C)
    class App:
        first: Both = subsystem(consumes=A, sends=[B])
        second: Both = subsystem(consumes=B, sends=[C])

    assert list(wrong_annotations(plan_of(App))) == []


def test_it_is_a_warning_and_told_once() -> None:
    @orchestra(signal=Halt, event=Halt)
    class App:
        first: Quoted = subsystem(subscribes=[A])
        second: Quoted = subsystem(subscribes=[A])

    found = [each for each in findings_of(plan_of(App)) if each.level is Level.WARNING]
    assert found == [Finding(Level.WARNING, text) for text in dict.fromkeys(wrong_annotations(plan_of(App)))]
    assert len(found) == 2
