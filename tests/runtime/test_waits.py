"""The graph of who waits for whom, by itself."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra import Priority
from orchestra.runtime.waits import Circle, Edge, Waits


@attrs.define
class Wait:
    target: str | None
    what: str = "something"
    lane: Priority | None = None
    holds: bool = True


def edge(target: str | None, *, holds: bool = True) -> Edge:
    return Wait(target, holds=holds)


def nobody(name: str) -> bool:
    return False


def chain(circle: Circle | None) -> tuple[str, ...] | None:
    return None if circle is None else circle.chain


def test_who_waits_for_itself_is_a_circle() -> None:
    assert chain(Waits(nobody).circle("a", edge("a"))) == ("a", "a")


def test_a_circle_is_found_over_any_number_of_others() -> None:
    waits = Waits(nobody)
    for place in range(1, 100):
        waits.asking[str(place)] = edge(str(place + 1))
    assert chain(waits.circle("100", edge("1"))) == ("100", *map(str, range(1, 100)), "100")
    assert waits.circle("100", edge("101")) is None
    assert waits.circle("0", edge("1")) is None


def test_who_waits_for_several_waits_for_none_of_them() -> None:
    waits = Waits(nobody)
    waits.asking["a"] = edge(None)
    assert waits.circle("b", edge("a")) is None
    assert waits.circle("b", edge(None)) is None


def test_a_circle_that_one_does_not_belong_to_is_none_of_its_own() -> None:
    waits = Waits(nobody)
    waits.asking["a"] = edge("b")
    waits.asking["b"] = edge("a")
    assert waits.circle("c", edge("a")) is None


def test_a_sender_that_waits_no_longer_has_no_edge() -> None:
    waits = Waits(nobody)
    waiting = Wait("b")
    waits.send("a", waiting)
    assert chain(waits.circle("b", edge("a"))) == ("b", "a", "b")
    waiting.holds = False
    assert waits.circle("b", edge("a")) is None
    assert not waits.sending


def test_the_wait_for_room_within_an_ask_comes_before_it() -> None:
    waits = Waits(nobody)
    waits.asking["a"] = edge("b")
    waits.send("a", edge("c"))
    assert chain(waits.circle("c", edge("a"))) == ("c", "a", "c")
    assert waits.circle("b", edge("a")) is None
    waits.sending.clear()
    assert chain(waits.circle("b", edge("a"))) == ("b", "a", "b")


@pytest.mark.parametrize("free", "abc")
def test_one_that_still_receives_breaks_the_circle(free: str) -> None:
    waits = Waits(lambda name: name == free)
    waits.asking["a"] = edge("b")
    waits.asking["b"] = edge("c")
    assert waits.circle("c", edge("a")) is None


def test_who_has_ended_waits_for_nobody() -> None:
    waits = Waits(nobody)
    waits.asking["a"] = edge("b")
    waits.send("a", edge("b"))
    waits.forget("a")
    waits.forget("a")
    assert waits.circle("b", edge("a")) is None


def test_a_circle_says_who_waits_for_what() -> None:
    waits = Waits(nobody)
    waits.asking["guard"] = Wait("store", "the reply of 'store' to Get")
    circle = waits.circle("store", Wait("guard", "room in the HIGH lane of 'guard'", Priority.HIGH))
    assert circle is not None
    assert str(circle) == (
        "store -> guard -> store: 'store' waits for room in the HIGH lane of 'guard'; "
        "'guard' waits for the reply of 'store' to Get"
    )
    assert circle.lanes == (("guard", Priority.HIGH),)


def test_a_circle_is_the_same_wherever_one_enters_it() -> None:
    def key(last: str, following: str, before: str) -> object:
        waits = Waits(nobody)
        waits.asking[following] = edge(before)
        waits.asking[before] = edge(last)
        circle = waits.circle(last, edge(following))
        assert circle is not None
        return circle.key

    assert key("a", "b", "c") == key("b", "c", "a") == key("c", "a", "b") != key("a", "c", "b")


def test_who_sends_to_several_waits_for_each_of_them() -> None:
    waits = Waits(nobody)
    for target in "bcd":
        waits.send("a", edge(target))
    for last in "bcd":
        assert chain(waits.circle(last, edge("a"))) == (last, "a", last)
    assert waits.circle("e", edge("a")) is None


def test_the_shortest_circle_is_told() -> None:
    waits = Waits(nobody)
    waits.send("a", edge("b"))
    waits.send("a", edge("c"))
    waits.asking["b"] = edge("d")
    waits.asking["d"] = edge("e")
    assert chain(waits.circle("e", edge("a"))) == ("e", "a", "b", "d", "e")
    waits.asking["c"] = edge("e")
    assert chain(waits.circle("e", edge("a"))) == ("e", "a", "c", "e")


NAMES = "abcdef"


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.dictionaries(
        st.sampled_from(NAMES), st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=3)
    ),
    st.sets(st.sampled_from(NAMES)),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
)
def test_it_finds_exactly_the_circles_that_there_are(
    asking: dict[str, str],
    sending: dict[str, list[tuple[str, bool]]],
    free: set[str],
    who: str,
    target: str,
) -> None:
    waits = Waits(free.__contains__)
    waits.asking.update({name: edge(to) for name, to in asking.items()})
    for name, targets in sending.items():
        for to, holds in targets:
            waits.send(name, edge(to, holds=holds))
    real: dict[str, set[str]] = {name: {to} for name, to in asking.items()}
    real |= {
        name: held for name, targets in sending.items() if (held := {to for to, holds in targets if holds})
    }
    reached = {target} - free if who not in free else set()
    while further := {to for name in reached for to in real.get(name, ()) if name != who} - free - reached:
        reached |= further
    circle = waits.circle(who, edge(target))
    if who not in reached:
        assert circle is None
    else:
        assert circle is not None
        assert circle.chain[0] == circle.chain[-1] == who
        assert circle.chain[1] == target
        assert not free & set(circle.chain)
        assert [each.target for each in circle.edges] == list(circle.chain[1:])
        following = zip(circle.chain[1:], circle.chain[2:], strict=False)
        assert all(to in real[name] for name, to in following)
