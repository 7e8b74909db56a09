"""Values that msgpack cannot carry come back as they were, and what is no tree makes nothing."""

import datetime as dt
import uuid
import zoneinfo
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.link import exact
from orchestra.link.exact import Unfit, from_tree, to_tree

ZONES = st.one_of(
    st.none(),
    st.just(dt.UTC),
    st.sampled_from([zoneinfo.ZoneInfo("UTC"), zoneinfo.ZoneInfo("Europe/Berlin")]),
    st.builds(dt.timezone, st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23))),
    st.just(dt.timezone(dt.timedelta(hours=1), "MEZ")),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.binary().map(bytearray),
    st.complex_numbers(allow_nan=False),
    st.datetimes(timezones=ZONES).flatmap(lambda d: st.sampled_from([d, d.replace(fold=1)])),
    st.times().map(lambda t: t.replace(fold=1)),
    st.dates(),
    st.timedeltas(),
    st.uuids(),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.builds(range, st.integers(0, 9), st.integers(0, 9)),
)
HASHABLE = st.one_of(st.integers(), st.text(), st.dates())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.sets(HASHABLE),
        st.frozensets(HASHABLE),
        st.dictionaries(HASHABLE, inner),
    ),
    max_leaves=8,
)


def same(here: Any, there: Any) -> bool:
    if type(here) is not type(there) or here != there:
        return False
    if isinstance(here, dt.datetime | dt.time):
        return here.fold == there.fold and repr(here) == repr(there)
    if isinstance(here, list | tuple):
        return all(map(same, here, there))
    if isinstance(here, dict):
        return all(same(value, there[key]) for key, value in here.items())
    return True


@given(VALUES)
def test_a_value_comes_back_equal_and_of_its_very_type(value: Any) -> None:
    assert same(value, from_tree(msgspec.msgpack.decode(msgspec.msgpack.encode(to_tree(value)))))


JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.integers(-5, 2**70),
        st.text(max_size=3),
        st.sampled_from(["datetime", "dict", "set", "int"]),
    ),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=20,
)


@given(JUNK)
def test_what_is_no_tree_is_refused_and_nothing_else_happens(junk: Any) -> None:
    with suppress(Unfit):
        from_tree(junk)


@pytest.mark.parametrize(
    "value",
    [uuid.uuid1(), Decimal("-0E+3"), Fraction(-1, 3), 2**80, dt.UTC, (1, [2, {3}])],
    ids=repr,
)
def test_examples(value: Any) -> None:
    assert same(value, from_tree(to_tree(value)))


@pytest.mark.parametrize(
    "value", [object(), print, Exception, Exception("x"), type("Mine", (int,), {})(3)], ids=repr
)
def test_everything_else_cannot_cross(value: Any) -> None:
    with pytest.raises(Unfit):
        to_tree(value)


def test_what_msgpack_has_no_length_for_cannot_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "_LONGEST", 3)
    assert to_tree([b"abc", "abc"]) == ["list", b"abc", "abc"]
    for value in (b"abcd", "abcd"):
        with pytest.raises(Unfit, match="of 4 GiB or more cannot"):
            to_tree([value])


def test_a_circle_cannot_cross() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(Unfit, match="deep"):
        to_tree(circle)
