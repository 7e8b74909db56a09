"""Where a mistake is pointed at: the line of the field where there is one, else that of the class."""

import inspect
import linecache
import pathlib
import sys
import types
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from orchestra import Actor, DeclarationError, Subsystem, boxed, orchestra, subsystem


class A(msgspec.Struct): ...


class B(msgspec.Struct): ...


class Sig(msgspec.Struct): ...


class One(Subsystem):
    async def run(self, ctx: Any) -> None: ...


deco = orchestra(signal=Sig, event=Sig)


def place_of(make: Callable[[], Any]) -> tuple[str, int]:
    with pytest.raises(DeclarationError) as caught:
        make()
    file, _, line = str(caught.value).rpartition(", at ")[2].rpartition(":")
    return file, int(line)


def line_of(make: Callable[[], Any], mark: str = "# here") -> int:
    lines, first = inspect.getsourcelines(make)
    return first + next(number for number, line in enumerate(lines) if mark in line)


def at_a_field() -> None:
    @deco
    class App:
        title: str = ""
        first: One = subsystem(consumes=A)
        second: One = subsystem(  # here
            consumes=A
        )


def in_a_condition() -> None:
    @deco
    class App:
        first: One = subsystem(consumes=A)
        if first:
            title: str = ""
            second: One = subsystem(consumes=A, message_capacity=0)  # here


def without_annotation() -> None:
    @deco
    class App:
        first = subsystem(consumes=A)  # here


def at_the_class() -> None:
    @orchestra(signal=Sig, event=Sig)
    @(lambda kind: kind)
    class App:  # here
        title: str = ""


def the_second_of_that_name() -> None:
    class App:
        first: One = subsystem(consumes=A, message_capacity=0)

    @deco
    class App:  # type: ignore[no-redef]  # noqa: F811
        class Inner:
            first: int

        other: One = subsystem(consumes=B)
        first: One = subsystem(consumes=A, message_capacity=0)  # here


def at_a_method() -> None:
    @deco
    class App:
        first: One = subsystem(consumes=A)

        def on_event(self, conductor: Any, event: Any) -> None: ...  # here


def applied_by_hand() -> None:
    class App:
        first: One = subsystem(consumes=A, message_capacity=0)  # here

    deco(App)


def in_the_base() -> None:
    @deco
    class Base:
        first: One = subsystem(consumes=A)  # here

    @orchestra(signal=A, event=Sig)
    class App(Base):
        second: One = subsystem(consumes=B)


@pytest.mark.parametrize(
    "make",
    [
        at_a_field,
        in_a_condition,
        without_annotation,
        at_the_class,
        the_second_of_that_name,
        at_a_method,
        applied_by_hand,
        in_the_base,
    ],
)
def test_the_error_points_at_file_and_line(make: Callable[[], Any]) -> None:
    assert place_of(make) == (__file__, line_of(make))


def test_what_is_not_a_class_is_pointed_at_where_it_is_decorated() -> None:
    def make() -> None:
        deco(7)  # type: ignore[type-var] # here

    assert place_of(make) == (__file__, line_of(make))


def test_a_class_without_source_is_pointed_at_by_its_decorator() -> None:
    source = "\n\n@deco\nclass App:\n    first: One = subsystem(consumes=A, message_capacity=0)\n"
    names = {"deco": deco, "One": One, "A": A, "subsystem": subsystem, "__name__": "typed_in"}
    assert place_of(lambda: exec(compile(source, "<typed in>", "exec"), names)) == ("<typed in>", 3)


def test_source_that_only_linecache_knows_is_used() -> None:
    source = "\n\n@deco\nclass App:\n    first: One = subsystem(consumes=A, message_capacity=0)\n"
    linecache.cache["<a cell>"] = (len(source), None, source.splitlines(keepends=True), "<a cell>")
    names = {"deco": deco, "One": One, "A": A, "subsystem": subsystem, "__name__": "a_cell"}
    assert place_of(lambda: exec(compile(source, "<a cell>", "exec"), names)) == ("<a cell>", 5)


def test_a_base_in_another_file_is_pointed_at_there(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "base_of_it.py"
    file.write_text("@deco\nclass Base:\n    title: str = ''\n    first: One = subsystem(consumes=A)\n")
    module = types.ModuleType("base_of_it")
    module.__file__ = str(file)
    vars(module).update(deco=deco, One=One, A=A, subsystem=subsystem)
    sys.modules["base_of_it"] = module
    try:
        exec(compile(file.read_text(), str(file), "exec"), vars(module))

        def make() -> None:
            @orchestra(signal=A, event=Sig)
            class App(module.Base): ...  # type: ignore[name-defined]

        assert place_of(make) == (str(file), 4)
    finally:
        del sys.modules["base_of_it"]


def test_same_named_types_are_told_apart_by_their_modules() -> None:
    other: Any = type("A", (), {"__module__": "elsewhere"})

    class Stated(Actor[A, B]):
        def handle(self, ctx: Any, message: Any) -> None: ...

    with pytest.raises(DeclarationError) as caught:

        @deco
        class App:
            first: Stated = subsystem(consumes=A | other, sends=[B])

    assert f"it receives {__name__}.A and elsewhere.A, and the base" in str(caught.value)


def test_a_boxed_class_that_cannot_be_packed_is_refused() -> None:
    @boxed
    class Plain: ...

    with pytest.raises(
        DeclarationError, match=r"^App\.first: Plain is marked @boxed and cannot be packed: \w"
    ):

        @deco
        class App:
            first: One = subsystem(consumes=Plain)
