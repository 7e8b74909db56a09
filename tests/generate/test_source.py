"""The generated source: as text, as code that can be inspected, and with names that clash."""

import asyncio
import inspect
import linecache
import os
import traceback
import types
from pathlib import Path
from typing import Any, Never, Union

import attrs
import msgspec
import pytest

from orchestra import (
    Actor,
    BoxError,
    Context,
    DropOldest,
    Priority,
    Reply,
    Subsystem,
    handles,
    orchestra,
    plan_of,
    start,
    subsystem,
)
from tests.generate.declarations import DECLARATIONS, Line, Pipeline
from tests.runtime.players import turns, within

EXPECTED = Path(__file__).parent / "expected"
RENEW = "UPDATE_EXPECTED=1 python -m pytest tests/generate/test_source.py"
HEADER = f"# ruff: noqa: F821, F841, RET508, RUF100\n# fmt: off\n# Renewed by: {RENEW}\n\n"


@pytest.mark.parametrize("app", DECLARATIONS, ids=lambda app: app.__name__)
def test_the_source_is_as_expected(app: Any) -> None:
    path = EXPECTED / f"{app.__name__.lower()}.py"
    source = HEADER + plan_of(app).source
    if os.environ.get("UPDATE_EXPECTED"):
        path.write_text(source, encoding="utf-8")
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    assert source == expected, f"if the change is meant, renew {path.name}: {RENEW}; then read the difference"


def test_nothing_is_expected_of_what_is_not_declared() -> None:
    assert {path.stem for path in EXPECTED.glob("*.py")} == {app.__name__.lower() for app in DECLARATIONS}


@pytest.mark.parametrize("app", DECLARATIONS, ids=lambda app: app.__name__)
def test_the_source_is_python_by_itself(app: Any) -> None:
    source = plan_of(app).source
    assert isinstance(compile(source, "<source>", "exec"), types.CodeType)
    assert "\t" not in source
    assert source.endswith("\n")
    assert not any(line != line.rstrip() for line in source.splitlines())
    assert max(map(len, source.splitlines())) <= 120


def test_the_same_declaration_gives_the_same_source() -> None:
    def make() -> Any:
        @orchestra(signal=Halt, event=Halt)
        class App:
            takes: Takes = subsystem(consumes=Line)

        return App

    assert plan_of(make()).source == plan_of(make()).source


class Takes(Actor):
    def __init__(self) -> None:
        self.got: list[Any] = []

    def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(message)


class Sends(Subsystem):
    ctx: Any

    async def run(self, ctx: Any) -> None:
        self.ctx = ctx
        await ctx.recv()


@attrs.frozen
class Halt: ...


def make_duo() -> Any:
    @orchestra(signal=Halt, event=Halt, boxed_messages=True)
    class Duo:
        sends: Sends = subsystem(consumes=Never, sends=[Line])
        takes: Takes = subsystem(consumes=Line)

    return Duo


def test_inspect_shows_the_source_of_each_verb() -> None:
    duo = make_duo()

    async def main() -> None:
        app = duo(sends=Sends(), takes=Takes())
        async with start(app):
            await turns()
            ctx = app.sends.ctx
            for verb in (ctx.send, ctx.try_send, ctx.recv, ctx.try_recv, ctx.recv_signal):
                shown = inspect.getsource(verb)
                assert f"def {verb.__name__}(" in shown
                assert inspect.cleandoc(shown).splitlines()[0] in inspect.cleandoc(plan_of(duo).source)
                name = inspect.getsourcefile(verb)
                assert name is not None
                assert name.startswith(f"<orchestra generated {__name__}.Duo")

    within(10, main())


def test_the_file_is_named_for_the_class_and_survives_checkcache() -> None:
    name = f"<orchestra generated {Pipeline.__module__}.Pipeline>"
    linecache.checkcache()
    assert "".join(linecache.getlines(name)) == plan_of(Pipeline).source


def test_a_traceback_shows_the_generated_line() -> None:
    duo = make_duo()

    async def main() -> None:
        async with start(duo(sends=Sends(), takes=Takes())) as running:
            with pytest.raises(BoxError) as caught:
                await running.send(Line(5))  # type: ignore[arg-type]  # this is the mistake
            frames = traceback.extract_tb(caught.value.__traceback__)
            (frame,) = [
                f for f in frames if f.filename.startswith("<orchestra generated") and f.name == "send"
            ]
            assert frame.line
            assert "seal" in frame.line
            assert f"{frame.filename}" in "".join(traceback.format_exception(caught.value))

    within(10, main())


# names that clash


MESSAGES = (
    "message priority kind lane box post inboxes send try_send inbox signals left recv try_recv recv_signal "
    "following taken ctx actor part work serve budget scheduler ready signal error on_signal park NORMAL Box "
    "Closed Priority list str len isinstance StopAsyncIteration BaseException print match case type _ soft "
    "normal high take_normal normal_queue normal_taken seal_Line codec build decode größe Ünï 名前"
).split()


def message_class(name: str) -> Any:
    return msgspec.defstruct(name, [("number", int)], frozen=True, module=__name__)


@pytest.mark.parametrize("boxed", [False, True], ids=["", "boxed"])
@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_class_may_have_any_name(name: str, boxed: bool) -> None:
    kind, other = message_class(name), message_class("Other")
    exercise(kind, other, boxed=boxed)


def exercise(kind: Any, other: Any, *, boxed: bool) -> None:
    class Handles(Actor):
        def __init__(self) -> None:
            self.got: list[Any] = []

        @handles(kind)
        def first(self, ctx: Any, message: Any) -> None:
            self.got.append(("first", message))

        @handles(other)
        async def second(self, ctx: Any, message: Any) -> None:
            self.got.append(("second", message))

    class Receives(Subsystem):
        def __init__(self) -> None:
            self.got: list[Any] = []

        async def run(self, ctx: Any) -> None:
            async for message in ctx:
                self.got.append(message)
                await ctx.send(other(message.number + 1))

    @orchestra(signal=Halt, event=Halt, boxed_messages=boxed)
    class App:
        handling: Handles = subsystem(
            consumes=Union[kind, other], message_capacity={Priority.HIGH: 4, Priority.NORMAL: 4}
        )

    @orchestra(signal=Halt, event=Halt, boxed_messages=boxed)
    class Chain:
        receiving: Receives = subsystem(consumes=kind, sends=[other])
        takes: Takes = subsystem(consumes=other)

    async def main() -> None:
        app = App(handling=Handles())
        async with start(app) as running:
            await running.send(kind(1))
            running.try_send(other(2), priority=Priority.NORMAL)
            await running.drain()
        assert app.handling.got == [("first", kind(1)), ("second", other(2))]
        chain = Chain(receiving=Receives(), takes=Takes())
        async with start(chain) as running:
            await running.send(kind(1))
            await running.drain()
        assert chain.takes.got == [other(2)]

    within(10, main())


FIELDS = (
    "message priority kind lane box post send try_send inbox signals left recv taken ctx actor part work "
    "serve budget scheduler ready signal error park normal high _private __dunder größe 名前 list len "
    "print match normal_queue outbox Line Closed Box take inbox_2 a_normal"
).split()


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_may_have_any_name(name: str) -> None:
    fields = {name: subsystem(consumes=Line), "sender": subsystem(consumes=Never, sends=[Line])}
    kinds = {name: Takes, "sender": Sends}
    app: Any = orchestra(signal=Halt, event=Halt)(type("App", (), {**fields, "__annotations__": kinds}))
    takes, sends = Takes(), Sends()

    async def main() -> None:
        async with start(app(**{name: takes, "sender": sends})) as running:
            await turns()
            await running.send(Line("a"))
            await sends.ctx.send(Line("b"))
            sends.ctx.try_send(Line("c"))
            await turns()
        assert [line.text for line in takes.got] == ["a", "b", "c"]

    within(10, main())


def test_fields_whose_generated_names_meet_are_kept_apart() -> None:
    names = ["a", "a_normal", "a_normal_queue", "a_inbox", "a_lanes", "a_outbox", "a_worker", "a_high"]
    messages = {name: message_class(f"Message_{name}") for name in names}
    fields = {
        name: subsystem(consumes=kind, message_capacity={Priority.HIGH: 4, Priority.NORMAL: 4})
        for name, kind in messages.items()
    }
    app: Any = orchestra(signal=Halt, event=Halt)(
        type("App", (), {**fields, "__annotations__": dict.fromkeys(names, Takes)})
    )
    takes = {name: Takes() for name in names}

    async def main() -> None:
        async with start(app(**takes)) as running:
            for kind in messages.values():
                await running.send(kind(1))
                await running.send(kind(2), priority=Priority.HIGH)
            await running.drain()
        for name, kind in messages.items():
            assert sorted(takes[name].got, key=lambda message: message.number) == [kind(1), kind(2)]

    within(10, main())


@pytest.mark.parametrize("boxed", [False, True], ids=["", "boxed"])
def test_classes_of_one_name_from_two_modules_are_two_messages(boxed: bool) -> None:
    first = msgspec.defstruct("Twin", [("number", int)], frozen=True, module="one")
    second = msgspec.defstruct("Twin", [("number", int)], frozen=True, module="two")
    exercise(first, second, boxed=boxed)


METHODS = (
    "message priority_ kind signals budget inbox ctx actor part park handle_ normal normal_queue take_normal "
    "taken work serve left list isinstance codec build decode"
).split()


@pytest.mark.parametrize("boxed", [False, True], ids=["", "boxed"])
@pytest.mark.parametrize("name", METHODS)
def test_a_handler_may_have_any_name(name: str, boxed: bool) -> None:
    def on_line(self: Any, ctx: Any, message: Any) -> None:
        self.got.append(message)

    async def on_other(self: Any, ctx: Any, message: Any) -> None:
        self.got.append(message)

    other = message_class("Other")
    body = {name: handles(Line)(on_line), "other": handles(other)(on_other), "__init__": Takes.__init__}
    kind: Any = type("Handles", (Actor,), body)
    app: Any = orchestra(signal=Halt, event=Halt, boxed_messages=boxed)(
        type(
            "App",
            (),
            {"handling": subsystem(consumes=Union[Line, other]), "__annotations__": {"handling": kind}},
        )
    )

    async def main() -> None:
        handling = kind()
        async with start(app(handling=handling)) as running:
            await running.send(Line("a"))
            await running.send(other(1))
            await running.drain()
        assert handling.got == [Line("a"), other(1)]

    within(10, main())


class Asks(msgspec.Struct):
    reply: Reply[int]


def test_requests_go_the_general_way_and_what_they_displace_is_told() -> None:
    @orchestra(signal=Halt, event=Halt)
    class Asked:
        sends: Sends = subsystem(consumes=Never, sends=[Line, Asks])
        takes: Takes = subsystem(consumes=Asks, subscribes=[Line], overflow=DropOldest())
        others: Takes = subsystem(subscribes=[Line], overflow=DropOldest())

    source = plan_of(Asked).source
    assert "if kind is Line " in source
    assert "if kind is Asks " not in source
    assert "takes_normal.displace(message)" in source
    assert "others_normal.displace(message)" not in source
    assert "others_normal_queue.popleft()" in source


def test_context_verbs_of_two_instances_do_not_share_state() -> None:
    duo = make_duo()

    async def main() -> None:
        one, two = duo(sends=Sends(), takes=Takes()), duo(sends=Sends(), takes=Takes())
        async with start(one), start(two):
            await turns()
            ctx: Context[Any, Any, Any] = one.sends.ctx
            await ctx.send(Line("for one"))
            await asyncio.sleep(0)
            await turns()
        assert one.takes.got == [Line("for one")]
        assert two.takes.got == []

    within(10, main())
