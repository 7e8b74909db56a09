"""The lanes of an inbox, from what `subsystem(...)` says of capacity, priorities and overflow."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from orchestra.mistakes import Wrong
from orchestra.overflow import POLICIES, Block, Overflow, can_block, is_policy, shown_policy
from orchestra.plan import LanePlan
from orchestra.priority import Priority


def checked_capacity(name: str, value: Any) -> float:
    """A capacity: a whole number of 1 or more, or `math.inf`. `name` is the argument, for the error."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return int(value)
    if isinstance(value, float) and value == math.inf:
        return math.inf
    raise Wrong(f"{name} is {value!r}: a capacity is a whole number of 1 or more, or math.inf")


def lanes_of(
    capacity: Any,
    priorities: Any,
    overflow: Any,
    default: float,
    *,
    has_priority: bool,
    capacity_bytes: Any = None,
) -> tuple[LanePlan, ...]:
    """The lanes, most urgent first. `default` is the capacity where none is given.

    Without a NORMAL lane the class must say the level of each message, so `has_priority` must hold.
    """
    capacities = _capacities(capacity, _levels(priorities), default)
    policies = _policies(overflow, tuple(capacities))
    check_normal(capacities, has_priority=has_priority)
    limits = _bytes(capacity_bytes, tuple(capacities))
    return tuple(
        LanePlan(level, capacities[level], policies[level], limits.get(level)) for level in sorted(capacities)
    )


def check_normal(levels: Collection[Priority], *, has_priority: bool) -> None:
    """Refuse lanes without a NORMAL one where nobody says the level of each message."""
    if Priority.NORMAL not in levels and not has_priority:
        raise Wrong(
            f"its lanes are {named(levels)}, and a message without a priority is NORMAL: "
            "add a NORMAL lane, or a static method priority(message)"
        )


def checked_evict_after(value: Any, lanes: Sequence[LanePlan]) -> float | None:
    """The limit for a receiver that takes nothing, in seconds; it needs a lane on which senders wait."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise Wrong(f"evict_after is {value!r}: give a finite number of seconds above 0, or leave it out")
    if not any(can_block(lane.overflow) and lane.bounded for lane in lanes):
        raise Wrong(
            f"evict_after is {value!r}, and no sender waits here without a limit ({_told(lanes)}): "
            "leave it out, or give a bounded lane Block() or BlockFirst()"
        )
    return value


def checked_fairness(value: Any, lanes: Sequence[LanePlan]) -> int | None:
    """How many messages in a row may overtake a lower lane; it needs a lower lane."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Wrong(f"fairness is {value!r}: give a whole number of messages, 1 or more, or leave it out")
    if len(lanes) == 1:
        raise Wrong(
            f"fairness is {value!r}, and its one lane is {named(lane.priority for lane in lanes)}: "
            "leave it out, or declare more lanes with priorities="
        )
    return value


def _told(lanes: Sequence[LanePlan]) -> str:
    """Each lane with its policy, or that it has no bound."""
    return ", ".join(
        f"{lane.priority.name} {shown_policy(lane.overflow) if lane.bounded else 'unbounded'}"
        for lane in lanes
    )


def named(levels: Any) -> str:
    """Levels by name, most urgent first."""
    return ", ".join(level.name for level in sorted(levels))


def _levels(priorities: Any) -> tuple[Priority, ...] | None:
    if priorities is None:
        return None
    if isinstance(priorities, str) or not isinstance(priorities, Sequence) or not priorities:
        raise Wrong(f"priorities is {priorities!r}: give a list, as [Priority.HIGH, Priority.NORMAL]")
    for level in priorities:
        _check_level("priorities", level)
    twice = [level.name for level in dict.fromkeys(priorities) if priorities.count(level) > 1]
    if twice:
        raise Wrong(f"priorities names {', '.join(twice)} more than once (HIGH is DATA_HIGH, NORMAL is DATA)")
    return tuple(priorities)


def _check_level(name: str, level: Any) -> None:
    if not isinstance(level, Priority):
        raise Wrong(f"{name} has {level!r}, which is no Priority: use Priority.HIGH or another level")


def _capacities(capacity: Any, levels: tuple[Priority, ...] | None, default: float) -> dict[Priority, float]:
    if not isinstance(capacity, Mapping):
        each = default if capacity is None else checked_capacity("message_capacity", capacity)
        return dict.fromkeys((Priority.NORMAL,) if levels is None else levels, each)
    if not capacity:
        raise Wrong("message_capacity is empty: give a capacity for each lane, such as {Priority.NORMAL: 64}")
    for level in capacity:
        _check_level("message_capacity", level)
    if levels is not None and set(levels) != set(capacity):
        raise Wrong(
            f"priorities has {named(levels)} and message_capacity has {named(capacity)}: "
            "they must name the same lanes, or leave priorities out"
        )
    return {
        level: checked_capacity(f"message_capacity of {level.name}", each) for level, each in capacity.items()
    }


def _bytes(limit: Any, levels: tuple[Priority, ...]) -> dict[Priority, int]:
    """The limit in bytes of each lane that has one."""
    if limit is None:
        return {}
    if not isinstance(limit, Mapping):
        return dict.fromkeys(levels, _checked_bytes("capacity_bytes", limit))
    if not limit:
        raise Wrong(
            "capacity_bytes is empty: give a limit for some lane, such as {Priority.NORMAL: 1_000_000}, "
            "or leave it out"
        )
    for level in limit:
        _check_level("capacity_bytes", level)
    undeclared = [level for level in limit if level not in levels]
    if undeclared:
        raise Wrong(f"capacity_bytes has a limit for {named(undeclared)}, and its lanes are {named(levels)}")
    return {level: _checked_bytes(f"capacity_bytes of {level.name}", each) for level, each in limit.items()}


def _checked_bytes(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Wrong(f"{name} is {value!r}: give a whole number of bytes, 1 or more, or leave it out")
    return int(value)


def _policies(overflow: Any, levels: tuple[Priority, ...]) -> dict[Priority, Overflow]:
    if not isinstance(overflow, Mapping):
        policy = Block() if overflow is None else _checked_policy("overflow", overflow)
        return dict.fromkeys(levels, policy)
    for level in overflow:
        _check_level("overflow", level)
    undeclared = [level for level in overflow if level not in levels]
    if undeclared:
        raise Wrong(f"overflow has a policy for {named(undeclared)}, and its lanes are {named(levels)}")
    given = {level: _checked_policy(f"overflow of {level.name}", each) for level, each in overflow.items()}
    return {level: given.get(level, Block()) for level in levels}


def _checked_policy(name: str, policy: Any) -> Overflow:
    if isinstance(policy, type) and policy in POLICIES:
        raise Wrong(f"{name} is the class {policy.__name__}: give a policy, {policy.__name__}()")
    if not is_policy(policy):
        *others, last = (f"{each.__name__}()" for each in POLICIES)
        raise Wrong(f"{name} is {policy!r}, which is no policy: give {', '.join(others)} or {last}")
    return policy
