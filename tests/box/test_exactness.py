"""For messages and classes that nobody thought of, what is opened equals what was sealed, or is refused."""

import dataclasses
import enum
import gc
import linecache
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestra.box import Box, RidingBox, codec_of
from orchestra.errors import BoxError
from tests.box.strategies import GROUPS, NAMES, WRONG, Tone, Typed, make_class, messages
from tests.box.strictly import parts, same

SLOW = settings(max_examples=50, suppress_health_check=list(HealthCheck))
MUTABLE = (list, dict, set, bytearray, msgspec.Struct)


def within(value: Any, seen: dict[int, Any] | None = None) -> dict[int, Any]:
    """All objects within a value, by their ids."""
    seen = {} if seen is None else seen
    if id(value) not in seen:
        seen[id(value)] = value
        for part in parts(value):
            within(part, seen)
    return seen


def can_change(value: Any) -> bool:
    if isinstance(value, msgspec.Struct):
        return not value.__struct_config__.frozen
    return isinstance(value, (list, dict, set, bytearray)) or (
        (dataclasses.is_dataclass(value) or attrs.has(type(value))) and not isinstance(value, type)
    )


def hold(message: Any, box: Box[Any]) -> None:
    """What is opened is strictly equal; what rides is the very object, and nothing else is shared."""
    opened = box.open()
    assert same(opened, message), (opened, message, box.codec.source)
    assert opened is not message
    riders = box.riders if isinstance(box, RidingBox) else ()
    reached = within(opened)
    riding: dict[int, Any] = {}
    for rider in riders:
        within(rider, riding)
        assert id(rider) in reached or isinstance(rider, dict)  # a dict of attributes that are not declared
    shared = {key: one for key, one in within(message).items() if key in reached and can_change(one)}
    assert shared.keys() <= riding.keys(), (shared, box.codec.source)


@pytest.mark.parametrize("group", GROUPS)
@SLOW
@given(st.data())
def test_a_message_of_any_class_comes_back_strictly_equal(group: str, data: st.DataObject) -> None:
    kind, values, _ = data.draw(messages(group))
    codec = codec_of(kind)
    assert codec.whole is None
    for message in data.draw(st.lists(values, min_size=1, max_size=3)):
        box = codec.seal(message)
        hold(message, box)
        assert box == codec.seal(message) and hash(box) == hash(codec.seal(message))
        assert f"{box.size} byte" in repr(box)


Place = tuple[Any, Callable[[Any], None]]


def places_in(value: Any, depth: int = 4) -> Iterator[Callable[[Any], None]]:
    """What puts another value into a place of this one, for all places."""
    if depth == 0:
        return
    if isinstance(value, list):
        for place, one in enumerate(value):
            yield lambda new, place=place: value.__setitem__(place, new)
            yield from places_in(one, depth - 1)
        yield value.append
    elif isinstance(value, dict):
        for key, one in value.items():
            yield lambda new, key=key: value.__setitem__(key, new)
            yield from places_in(one, depth - 1)
        yield lambda new: value.__setitem__(new if new.__hash__ else "k", None)
    elif isinstance(value, tuple):
        for one in value:
            yield from places_in(one, depth - 1)
    if not isinstance(value, (enum.Enum, type)):
        force: Any = (
            msgspec.structs.force_setattr if isinstance(value, msgspec.Struct) else object.__setattr__
        )
        for name in fields_of(value):
            yield lambda new, name=name: force(value, name, new)
            yield from places_in(getattr(value, name), depth - 1)
        if hasattr(value, "__dict__"):
            yield lambda new: object.__setattr__(value, "not_declared", new)


def fields_of(value: Any) -> list[str]:
    if isinstance(value, msgspec.Struct):
        return list(value.__struct_fields__)
    if dataclasses.is_dataclass(value):
        return [one.name for one in dataclasses.fields(value)]
    return [one.name for one in attrs.fields(type(value))] if attrs.has(type(value)) else []


def spoil(data: st.DataObject, message: Any) -> None:
    """Put something into a place of the message that it was not declared for, mostly."""
    places = list(places_in(message))
    if places:
        put = data.draw(st.sampled_from(places))
        try:
            put(data.draw(WRONG))
        except (AttributeError, TypeError):
            return


@pytest.mark.parametrize("group", GROUPS)
@SLOW
@given(st.data())
def test_a_message_that_breaks_its_declaration_comes_back_strictly_equal_or_is_refused(
    group: str, data: st.DataObject
) -> None:
    kind, values, _ = data.draw(messages(group))
    codec = codec_of(kind)
    message = data.draw(values)
    spoil(data, message)
    try:
        box = codec.seal(message)
    except BoxError as error:
        assert error.kind is kind and error.reason and error.message is message
        assert error.path.startswith(tuple(NAMES)) and error.path in str(error)
    else:
        hold(message, box)


def disturb(value: Any) -> None:
    """Change all that can be changed within a value."""
    for one in list(parts(value)):
        disturb(one)
    for put in list(places_in(value, 1)):
        try:
            put("changed")
        except (AttributeError, TypeError):
            continue
    if isinstance(value, (list, dict, set, bytearray)):
        value.clear()


@pytest.mark.parametrize("group", GROUPS)
@SLOW
@given(st.data())
def test_what_the_sender_changes_after_the_seal_never_shows(group: str, data: st.DataObject) -> None:
    kind, values, _ = data.draw(messages(group))
    codec = codec_of(kind)
    message = data.draw(values)
    box = codec.seal(message)
    if isinstance(box, RidingBox):
        return
    before = box.open()
    disturb(message)
    assert same(box.open(), before)


def test_making_classes_and_codecs_leaves_nothing_behind() -> None:
    makers: list[Any] = [
        ("struct", {"child": False, "defaults": True, "dict": True}),
        ("attrs", {"later": False, "busy": True, "slots": True}),
        ("dataclass", {"later": True, "start": True, "slots": True}),
        ("named tuple", {}),
    ]

    def once(number: int) -> None:
        fields = [Typed(list[int], st.none()), Typed(Tone, st.none())]
        kind, _, _ = make_class(fields, makers[number % len(makers)])
        message = kind(message=[1], box=Tone.LOW) if number % 4 != 2 else kind(message=[1])
        if number % 4 == 2:
            message.box = Tone.LOW
        assert same(codec_of(kind).open(Box.seal(message)), message)

    def living() -> int:
        gc.collect()
        return len(gc.get_objects())

    for number in range(20):
        once(number)
    text, before = set(linecache.cache), living()
    for number in range(60):
        once(number)
    assert living() - before < 200
    assert {name for name in linecache.cache if "orchestra" in name} <= text
