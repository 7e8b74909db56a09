"""Gaps, repetitions, and packets that are ahead of a signal."""

from hypothesis import given
from hypothesis import strategies as st

from orchestra.link.order import Stream, ahead, missing_from


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=40))
def test_each_number_is_admitted_once_or_lost_and_never_both(packets: list[tuple[int, int]]) -> None:
    stream = Stream()
    admitted: list[int] = []
    for first, count in packets:
        known = stream.admit(first, count)
        admitted += range(first + known, first + count)
    assert admitted == sorted(set(admitted))
    lost = [number for start, end in stream.gaps for number in range(start, end)]
    assert len(lost) == stream.lost
    assert sorted(admitted + lost) == list(range(stream.expected))


def test_gaps_are_told_until_the_sender_has_heard_of_them() -> None:
    stream = Stream()
    stream.admit(2, 1)
    stream.admit(5, 1)
    assert stream.gaps == [(0, 2), (3, 5)]
    stream.heard(3)
    assert stream.gaps == [(3, 5)]
    stream.heard(4)
    assert stream.gaps == [(3, 5)], "a part of it is not known yet"
    stream.heard(6)
    assert stream.gaps == []
    assert stream.lost == 4


def test_a_number_is_found_in_a_gap() -> None:
    assert missing_from([(3, 5)], 2, 1)
    assert not missing_from([(3, 5)], 2, 0)
    assert not missing_from([(3, 5)], 2, 3)


def test_a_packet_is_ahead_while_a_signal_of_any_origin_is_missing() -> None:
    assert not ahead({}, {})
    assert not ahead({1: 3}, {1: 3})
    assert ahead({1: 3}, {1: 4})
    assert ahead({1: 3}, {1: 3, 2: 1})
