"""Large bytes beside a frame: how they are joined to it, and taken out of a tree."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.packing.beside import LARGE, joined, put_back, taken_out

VALUES = (
    st.integers().filter(lambda n: abs(n) < 2**63) | st.text(max_size=3) | st.lists(st.booleans(), max_size=2)
)
BYTES = st.none() | st.sampled_from([b"", b"x", bytes(LARGE), bytes(70_000)])


def frame_of(values: list[Any]) -> bytes:
    """As the generated code packs them: nothing for none, one by itself, several in an array."""
    if not values:
        return b""
    return msgspec.msgpack.encode(values[0] if len(values) == 1 else values)


@given(st.lists(VALUES, max_size=20), st.lists(BYTES, min_size=1, max_size=3))
def test_what_is_joined_is_what_would_have_been_packed(values: list[Any], beside: list[bytes | None]) -> None:
    assert joined(frame_of(values), len(values), tuple(beside)) == frame_of([*values, *beside])


@given(st.lists(VALUES | BYTES, min_size=1, max_size=5), st.data())
def test_what_is_taken_out_is_put_back(tree: list[Any], data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(tree) - 1))))
    rest = list(tree)
    beside = taken_out(rest, places)
    large = {place for place in places if type(tree[place]) is bytes and len(tree[place]) >= LARGE}
    assert {place for place, value in zip(places, beside, strict=False) if value is not None} == large
    assert all(
        (rest[place] is None) if place in large else rest[place] is tree[place] for place in range(len(tree))
    )
    assert put_back(rest, places, beside) == tree


@pytest.mark.parametrize("count", [15, 16, 17, 2_000])
def test_arrays_of_every_length(count: int) -> None:
    values = list(range(count - 1))
    assert msgspec.msgpack.decode(joined(frame_of(values), len(values), (b"x",))) == [*values, b"x"]
