"""What a send does when the lane it is meant for has no room.

A lane has no room when it holds as many messages as its capacity, and also while senders wait for
it: room that frees is theirs. The policy stands with the lane, for all that is sent to it, and one
send may ask for another (`ctx.send(message, overflow=...)`) as far as `permits` goes.

| policy         | `send` without room                           | `try_send` without room              |
|----------------|-----------------------------------------------|--------------------------------------|
| `Block()`      | waits, with no limit: True                    | raises `Full`                        |
| `Fail()`       | raises `Full`                                 | raises `Full`                        |
| `Drop(wait)`   | waits up to `wait`: True, or False if dropped | False, dropped at once               |
| `DropOldest()` | True at once; the oldest message makes room   | as `send`                            |
| `BlockFirst()` | waits, as `Block`; False while another waits  | raises `Full`; False while one waits |

Where there is room each of them puts the message at once and returns True. Each lane counts what
was dropped, by reason, and how often and how long senders were blocked.
"""

import math
from typing import Any, TypeGuard, final

import attrs


@attrs.frozen
class Overflow:
    """Base of the overflow policies; it is none itself, and there are no others than those here."""


@final
@attrs.frozen
class Block(Overflow):
    """Wait for room, with no limit of time. The default.

    `send` returns True once the message is in; `try_send` raises `Full` where `send` would wait.
    Nothing is lost and a slow receiver slows its senders down, so it is right wherever each message
    counts: work, orders, control. It is wrong for a broadcast to receivers of unequal speed: all
    get the rate of the slowest.
    """


@final
@attrs.frozen
class Fail(Overflow):
    """Raise `Full`, with the message in it, instead of waiting: from `send` and `try_send` alike.

    Nothing is lost unseen: the sender decides. It is right where the sender can do something else
    with the message (refuse a request, try another receiver), and it breaks a circle of senders
    that might wait for one another.
    """


def _check_wait(policy: Any, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"Drop: wait_before_drop is {value!r}: give a number of seconds")
    if not (0 <= value < math.inf):
        raise ValueError(f"Drop: wait_before_drop is {value!r}: give a finite number of seconds, 0 or more")


@final
@attrs.frozen
class Drop(Overflow):
    """Wait `wait_before_drop` seconds for room, then drop the message; drop at once while congested.

    The congestion rule is that of Eclipse Zenoh. A send that finds no room waits, and if its wait runs
    out the message is dropped and the lane is marked congested. While it is marked, each further
    `Drop` send to it drops at once, so that a slow receiver costs its senders one wait and not one a
    message. The mark goes as soon as there is room, when the receiver takes a message; it never
    outlives that. Each lane has a mark of its own: a congested bulk lane does not touch a more urgent
    one, and `Block` sends do not heed the mark.

    `send` returns True when the message is in and False when it was dropped: never before its wait is
    over unless the lane is marked, and never stuck behind a `Block` send. `try_send` returns False
    at once and does not mark the lane. It is right for a stream of which some may be missed (samples,
    ticks, telemetry) and for a broadcast in which one slow receiver must not slow the rest. The wait
    is there to let a burst pass: about the time in which the receiver gets through some messages.

    `wait_before_drop` is finite and 0 or more; 0 drops at once and marks at once. Another value
    raises `ValueError`, and what is no number `TypeError`.
    """

    wait_before_drop: float = attrs.field(default=0.001, validator=_check_wait)


@final
@attrs.frozen
class DropOldest(Overflow):
    """Throw away the oldest message of the lane to make room: the lane keeps the newest.

    `send` and `try_send` never wait and always return True; the sender is not told what was thrown
    away, but the lane counts it. It is right where only the latest matters (a position, a price,
    a setting to reach), with a capacity as small as 1. Never for a lane that also carries
    what must arrive: the oldest goes whatever it is. No other policy can be asked of such a lane, and
    this one of no other lane: it would throw away what another sender was promised.
    """


@final
@attrs.frozen
class BlockFirst(Overflow):
    """Let one sender wait for room, and drop what others send meanwhile.

    `send` waits, with no limit of time, and returns True, unless another `BlockFirst` send waits for
    this lane already: then it drops its message at once and returns False. `try_send` raises `Full` where
    `send` would wait, and returns False where `send` would drop. It is right where one message of many
    senders is as good as another, and one must arrive: notices that something changed, say.
    """


POLICIES = (Block, Fail, Drop, DropOldest, BlockFirst)
"""Every policy there is."""


def is_policy(value: Any) -> TypeGuard[Overflow]:
    """Whether `value` is one of the policies here: not their base, nor the class of one."""
    return type(value) in POLICIES


def permits(lane: Overflow, asked: Overflow) -> bool:
    """Whether a send may ask for `asked` at a lane whose own policy is `lane`.

    A `DropOldest` lane takes only `DropOldest`, and no other lane takes that: it would throw away
    what others were promised. Everything else is permitted everywhere. What is no policy never is.
    """
    return is_policy(asked) and isinstance(lane, DropOldest) == isinstance(asked, DropOldest)


def can_block(policy: Overflow) -> bool:
    """Whether a send may wait for room without a limit of time."""
    return isinstance(policy, Block | BlockFirst)


def can_drop(policy: Overflow) -> bool:
    """Whether messages may be lost because the lane has no room."""
    return isinstance(policy, Drop | DropOldest | BlockFirst)


def shown_policy(policy: Overflow) -> str:
    """A policy in a few words, with its wait: "Block", "Drop after 1 ms"."""
    name = type(policy).__name__
    if not isinstance(policy, Drop):
        return name
    wait = policy.wait_before_drop
    return f"{name} after {wait * 1000:g} ms" if wait else f"{name} at once"
