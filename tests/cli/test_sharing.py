"""What several may change at once is told of, and the usual handing over is not."""

from typing import Any

import msgspec
import pytest

from orchestra import Actor, Subsystem, boxed, orchestra, plan_of, subsystem
from orchestra.cli.findings import Finding, Level, findings_of
from orchestra.cli.sharing import what_is_shared

ADVICE = ": box it (boxed='auto'), make it frozen, or let one alone change it"
LIST = "List travels by reference and can be changed (items is a list), and "


class List(msgspec.Struct, frozen=True):
    items: list[int]


class Still(msgspec.Struct, frozen=True):
    items: tuple[int, ...]


@boxed(False)
class Meant(msgspec.Struct):
    number: int


class Halt: ...


class Taker(Actor):
    def handle(self, ctx: Any, message: Any) -> None: ...


class Source(Subsystem):
    async def run(self, ctx: Any) -> None: ...


class Thread(Subsystem):
    def run(self, ctx: Any) -> None: ...


def shared(message: Any = List, source: type = Source, outgoing: Any = None, **fields: Any) -> list[str]:
    annotations = {"source": source, **dict.fromkeys(fields, Taker)}
    first = subsystem(sends=[message], blocking=source is Thread)
    body = {"source": first, **{name: subsystem(**options) for name, options in fields.items()}}
    made = type("App", (), {"__annotations__": annotations, **body, "__module__": __name__})
    return list(what_is_shared(plan_of(orchestra(signal=Halt, event=Halt, outgoing=outgoing)(made))))


def test_two_subscribers_get_the_same_object() -> None:
    told = [f"{LIST}'a' and 'b' get the same object{ADVICE}"]
    assert shared(a={"subscribes": [List]}, b={"subscribes": [List]}) == told


def test_a_thread_among_them_is_named() -> None:
    told = [f"{LIST}'a' and 'b' get the same object and 'b' gets it in a thread{ADVICE}"]
    assert shared(a={"subscribes": [List]}, b={"subscribes": [List], "blocking": True}) == told


def test_one_receiver_in_a_thread_is_enough() -> None:
    told = [f"{LIST}'a' gets it in a thread{ADVICE}"]
    assert shared(a={"consumes": List, "blocking": True}) == told


def test_what_comes_out_of_a_thread_is_told_of_also_where_it_leaves() -> None:
    told = [f"{LIST}it comes from the thread of 'source' to 'a'{ADVICE}"]
    assert shared(source=Thread, a={"consumes": List}) == told
    told = [f"{LIST}it comes from the thread of 'source' to running.outgoing{ADVICE}"]
    assert shared(source=Thread, outgoing=List, a={"consumes": Still}) == told


@pytest.mark.parametrize(
    ("message", "one", "other"),
    [
        (List, {}, None),
        (List, {"boxed": True}, {"boxed": "auto"}),
        (List, {"boxed": True}, {}),
        (List, {"wip": True}, {}),
        (Still, {}, {"blocking": True}),
        (Meant, {}, {"blocking": True}),
    ],
)
def test_nothing_is_said_where_one_alone_has_it(message: Any, one: Any, other: Any) -> None:
    fields = {"a": one} if other is None else {"a": one, "b": other}
    assert shared(message, **{name: {"subscribes": [message], **each} for name, each in fields.items()}) == []


def test_it_is_an_info() -> None:
    @orchestra(signal=Halt, event=Halt)
    class App:
        one: Taker = subsystem(subscribes=[List])
        other: Taker = subsystem(subscribes=[List])

    text = f"{LIST}'one' and 'other' get the same object{ADVICE}"
    assert Finding(Level.INFO, text) in findings_of(plan_of(App))
