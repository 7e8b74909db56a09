"""Types that contain themselves by a string, as before the statement `type`."""

import dataclasses
from typing import Any, Optional, Union

import msgspec
import pytest

from orchestra import Actor, Box, BoxError, orchestra, plan_of, subsystem
from orchestra.box import codec_of
from orchestra.cli.findings import Level, findings_of
from tests.box.strictly import same

Json = Union[None, bool, int, float, str, "list[Json]", "dict[str, Json]"]
Tree = dict[str, "Tree"]
Odd = Union[int, "Evens"]
Evens = list["Odd"]
Chain = Optional[tuple[int, "Chain"]]
Itself = "Itself"  # type: ignore[misc]  # wrong on purpose


class Halt(msgspec.Struct, frozen=True): ...


@dataclasses.dataclass
class Document:
    body: Json  # type: ignore[valid-type]  # mypy knows no such alias at run time
    more: "list[Json]"  # type: ignore[valid-type]  # likewise


class Nested(msgspec.Struct):
    tree: Tree
    odd: Odd
    chain: Chain


class Lost(msgspec.Struct):
    thing: Itself  # type: ignore[valid-type]  # wrong on purpose


DOCUMENT = Document([1, {"a": [None, True, {"b": 2.0}]}, "text"], [[[]], {"c": {}}])
NESTED = Nested({"a": {"b": {}}, "c": {}}, [1, [2, [3]], []], (1, (2, (3, None))))


@pytest.mark.parametrize("message", [DOCUMENT, NESTED])
def test_they_come_back_as_they_were(message: Any) -> None:
    box = Box.seal(message)
    assert same(box.open(), message)
    assert codec_of(type(message)).rides == {}


def test_what_is_not_as_declared_is_refused_with_its_path() -> None:
    with pytest.raises(BoxError, match=r"Document\.body\[0\]"):
        Box.seal(Document([{1}], []))


def test_what_names_itself_rides() -> None:
    assert "it names itself" in codec_of(Lost).rides["thing"]


@pytest.mark.parametrize("boxing", [False, True, "auto"])
def test_they_are_declared_as_any_message_is(boxing: Any) -> None:
    class Sink(Actor):
        def handle(self, ctx: Any, message: Any) -> None: ...

    @orchestra(signal=Halt, event=Halt)
    class App:
        sink: Sink = subsystem(consumes=Document | Nested, boxed=boxing)

    assert {finding.level for finding in findings_of(plan_of(App))} <= {Level.INFO}
