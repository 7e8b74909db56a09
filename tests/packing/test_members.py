"""Members of enumerations that msgspec does not know come back as they were, wherever they stand."""

import enum
from typing import Any

import msgspec
import pytest

from orchestra import Box


class Code(enum.IntEnum):
    KNOWN = 1

    @classmethod
    def unknown(cls, value: int) -> "Code":
        """As some libraries do for values of a newer protocol: a member that the class does not list."""
        made = int.__new__(cls, value)
        made._name_, made._value_ = f"UNKNOWN_{value}", value
        return made


class Mood(enum.Enum):
    CALM = "calm"


class Colour(enum.StrEnum):
    RED = "red"

    @classmethod
    def _missing_(cls, value: object) -> "Colour":
        made = str.__new__(cls, str(value))
        made._name_, made._value_ = str(value).upper(), str(value)
        return made


class Inner(msgspec.Struct):
    code: Code


class Forms(msgspec.Struct):
    plain: Code
    optional: Code | None
    either: Code | str
    listed: list[Code]
    unique: frozenset[Code]
    keyed: dict[Code, Code]
    pair: tuple[Code, int]
    inner: Inner
    inners: list[Inner]


class Moods(msgspec.Struct):
    mood: Mood
    moods: list[Mood]


class Colours(msgspec.Struct):
    colour: Colour


def forms(one: Code) -> Forms:
    known = Code.KNOWN
    return Forms(
        one,
        one,
        one,
        [known, one],
        frozenset([one]),
        {known: one, one: known},
        (one, 1),
        Inner(one),
        [Inner(one)],
    )


@pytest.mark.parametrize("one", [Code.unknown(9), Code.unknown(0)])
def test_a_member_that_was_made_by_other_means_is_the_very_same(one: Code) -> None:
    found = Box.seal(forms(one)).open()
    (unique,) = found.unique
    (value, key), places = list(found.keyed.values()), list(found.keyed)
    assert all(
        each is one
        for each in (
            found.plain,
            found.optional,
            found.either,
            found.listed[1],
            unique,
            value,
            found.pair[0],
            found.inner.code,
            found.inners[0].code,
        )
    )
    assert key is found.listed[0] is places[0] is Code.KNOWN


def test_only_one_of_several_places_needs_to_be_unknown() -> None:
    message = forms(Code.KNOWN)
    message.inners.append(Inner(Code.unknown(7)))
    assert Box.seal(message).open().inners[1].code is message.inners[1].code


def test_a_member_that_was_added_later_comes_back() -> None:
    Box.seal(Moods(Mood.CALM, []))
    added: Any = object.__new__(Mood)
    added._name_, added._value_ = "WILD", "wild"
    Mood._member_map_["WILD"] = Mood._value2member_map_["wild"] = added
    found = Box.seal(Moods(added, [Mood.CALM, added])).open()
    assert found.mood is found.moods[1] is added


def test_a_member_of_a_missing_value_keeps_its_attributes() -> None:
    colour: Any = Colour("blue")
    colour.note = "not cached"
    assert Box.seal(Colours(colour)).open().colour.note == "not cached"
