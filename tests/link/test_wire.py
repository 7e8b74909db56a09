"""Packets come back as they were, and whatever else comes is `Malformed`."""

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra.link import wire
from orchestra.link.keys import Keys, Sign, safe, sender_of, sign_of
from orchestra.link.wire import Header, Malformed
from orchestra.priority import Priority

COUNTS = st.integers(0, 2**63 - 1)


@given(st.lists(st.binary(max_size=4), max_size=70))
def test_frames_come_back(values: list[bytes]) -> None:
    frames = [msgspec.msgpack.encode(value) for value in values]
    assert [bytes(raw) for raw in wire.read_frames(wire.write_frames(frames), len(frames))] == frames


def test_as_many_frames_as_one_likes() -> None:
    for count in (15, 16, 65535, 65536):
        assert len(wire.read_frames(wire.write_frames([b"\x01"] * count), count)) == count


@given(COUNTS, st.dictionaries(COUNTS, COUNTS, max_size=3), st.lists(st.integers(0, 50), max_size=3))
def test_a_header_comes_back(first: int, signals: dict[int, int], counts: list[int]) -> None:
    runs: list[tuple[int | str, int, int]] = [(place, 0, count) for place, count in enumerate(counts)]
    header = Header(3, 5, first, sum(counts), 0, True, signals, runs)
    assert wire.read_header(wire.write_header(header)) == header


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_malformed(junk: bytes) -> None:
    for read in (wire.read_header, wire.read_control, wire.read_riding, lambda raw: wire.read_frames(raw, 3)):
        with contextlib.suppress(Malformed):
            read(junk)


@pytest.mark.parametrize(
    "header",
    [
        Header(0, 5, 0, 2, 0, False, {}, [(0, 0, 1)]),
        Header(0, 9, 0, 0, 0, False, {}, []),
        Header(0, 5, -1, 0, 0, False, {}, []),
        Header(0, 5, 0, 1, 0, False, {}, [(0, 7, 1)]),
    ],
)
def test_a_header_that_makes_no_sense_is_malformed(header: Header) -> None:
    with pytest.raises(Malformed):
        wire.read_header(wire.write_header(header))


@pytest.mark.parametrize(
    "control",
    [
        wire.Hello("near", "abc", ["hand"], 3, True),
        wire.Grants([wire.LaneNews(0, 5, 1, 2, 3, [(0, 1)])]),
        wire.Failure(1, "m", "K", "text", ["a"], {"b": 1}),
        wire.Bye([]),
        wire.Drain(),
    ],
    ids=lambda control: type(control).__name__,
)
def test_control_comes_back(control: wire.Control) -> None:
    assert wire.read_control(wire.write_control(control)) == control


def test_keys_tell_who_and_to_whom() -> None:
    keys = Keys("Shop", 0xAB)
    assert sign_of(keys.alive("a/b *")) == Sign("a-b", 0xAB)
    assert sender_of(keys.messages_to(1, Priority.HIGH)) == 0xAB
    assert keys.messages_to(0xAB, Priority.HIGH).startswith(keys.own(Priority.HIGH).removesuffix("*"))
    assert keys.control_to(0xAB).startswith(keys.own_control.removesuffix("*"))
    for wrong in ("", "orchestra/Shop/alive/x/12", "orchestra/Shop/alive/x/zzzzzzzzzzzzzzzz", "a/b"):
        assert sign_of(wrong) is None
    assert safe("$*/?#") == "-"
