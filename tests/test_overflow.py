"""The overflow policies as values: what they take, which one send may ask for, how they are shown."""

import copy
import inspect
import math
import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import orchestra
from orchestra import Block, BlockFirst, Drop, DropOldest, Fail, UndeclaredOverflow
from orchestra.errors import SendError
from orchestra.overflow import (
    POLICIES,
    Overflow,
    can_block,
    can_drop,
    is_policy,
    permits,
    shown_policy,
)

waits = st.floats(min_value=0, max_value=1e6) | st.integers(min_value=0, max_value=1000)
policies = st.one_of(
    *(st.builds(each) for each in POLICIES if each is not Drop), st.builds(Drop, wait_before_drop=waits)
)
strangers: list[Any] = [Overflow(), Overflow, *POLICIES, None, "drop", 0.5, object()]


def test_a_drop_waits_one_millisecond_unless_told_otherwise() -> None:
    assert Drop().wait_before_drop == 0.001
    assert Drop(0.5) == Drop(wait_before_drop=0.5) != Drop()
    assert Drop(0).wait_before_drop == 0


@pytest.mark.parametrize("wait", [-1, -1e-9, math.inf, -math.inf, math.nan])
def test_a_wait_that_is_negative_or_has_no_end_is_refused(wait: float) -> None:
    with pytest.raises(ValueError) as caught:
        Drop(wait_before_drop=wait)
    told = f"Drop: wait_before_drop is {wait!r}: give a finite number of seconds, 0 or more"
    assert str(caught.value) == told


@pytest.mark.parametrize("wait", [None, "1", True, 1j, [0.1]])
def test_a_wait_that_is_no_number_is_refused(wait: Any) -> None:
    with pytest.raises(TypeError) as caught:
        Drop(wait)
    assert str(caught.value) == f"Drop: wait_before_drop is {wait!r}: give a number of seconds"


@given(policies)
def test_a_policy_is_a_value(policy: Overflow) -> None:
    for again in (attrs.evolve(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert again == policy and hash(again) == hash(policy) and repr(again) == repr(policy)


@pytest.mark.parametrize("policy", [each() for each in POLICIES], ids=repr)
def test_a_policy_cannot_be_changed(policy: Overflow) -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        policy.wait_before_drop = 1  # type: ignore[attr-defined]


@given(policies)
def test_each_policy_is_one_and_may_be_asked_of_a_lane_that_has_it(policy: Overflow) -> None:
    assert is_policy(policy) and permits(policy, policy)


@given(policies, policies)
def test_only_the_oldest_is_dropped_by_agreement_and_all_else_is_permitted(
    lane: Overflow, asked: Overflow
) -> None:
    agreed = type(lane) is DropOldest, type(asked) is DropOldest
    assert permits(lane, asked) is (agreed in ((True, True), (False, False)))
    assert permits(lane, asked) is permits(asked, lane)


@pytest.mark.parametrize("stranger", strangers, ids=repr)
def test_what_is_no_policy_is_permitted_nowhere(stranger: Any) -> None:
    assert not is_policy(stranger)
    assert not any(permits(each(), stranger) for each in POLICIES)


def test_no_other_class_is_a_policy() -> None:
    class Mine(Overflow):
        pass

    assert not is_policy(Mine())


@pytest.mark.parametrize(
    ("policy", "blocks", "drops"),
    [
        (Block(), True, False),
        (Fail(), False, False),
        (Drop(60), False, True),
        (DropOldest(), False, True),
        (BlockFirst(), True, True),
    ],
    ids=repr,
)
def test_which_policies_wait_without_a_limit_and_which_lose_messages(
    policy: Overflow, blocks: bool, drops: bool
) -> None:
    assert (can_block(policy), can_drop(policy)) == (blocks, drops)


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (Block(), "Block"),
        (BlockFirst(), "BlockFirst"),
        (Drop(), "Drop after 1 ms"),
        (Drop(0.0005), "Drop after 0.5 ms"),
        (Drop(2), "Drop after 2000 ms"),
        (Drop(0), "Drop at once"),
    ],
    ids=repr,
)
def test_a_policy_is_shown_in_a_few_words(policy: Overflow, told: str) -> None:
    assert shown_policy(policy) == told


def test_every_policy_is_exported_and_tells_what_it_means() -> None:
    for each in POLICIES:
        assert getattr(orchestra, each.__name__) is each and each.__name__ in orchestra.__all__
        assert "right" in (inspect.getdoc(each) or "")


def test_an_undeclared_overflow_carries_the_message_and_is_an_error_of_value() -> None:
    message = object()
    error = UndeclaredOverflow("the DATA lane of 'slow' takes only DropOldest()", message, "slow")
    assert {ValueError, SendError} <= set(UndeclaredOverflow.__mro__)
    assert error.message is message and error.subsystem == "slow"
    again = pickle.loads(pickle.dumps(UndeclaredOverflow("text", 7, "slow")))
    assert (str(again), again.message, again.subsystem) == ("text", 7, "slow")
