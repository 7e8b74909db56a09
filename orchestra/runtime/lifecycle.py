"""The phases of a running orchestra, and what each allows: the model that the runtime is tested against.

Pure: a table and two questions to it. `docs/lifecycle.md` shows the same table.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class Phase(enum.Enum):
    """Where an orchestra is in its life; it only ever moves downwards in this list."""

    OPEN = "open"
    DRAINING = "draining"
    STOPPING = "stopping"
    ENDED = "ended"


class Action(enum.Enum):
    """What somebody may do, or what may come due, while an orchestra is in some phase."""

    SEND = "`ctx.send`, `ctx.try_send`"
    CONDUCTOR_SEND = "`conductor.send`, `conductor.try_send`"
    OUTSIDE_SEND = "`running.send`, `running.try_send`"
    WAITING_SEND = "a `send` that waits for room already"
    RECV = "`ctx.recv`, `ctx.try_recv`, the next message of an Actor"
    RECV_SIGNAL = "`ctx.recv_signal`, `on_signal`"
    READ_OUTGOING = "`running.outgoing`"
    CONDUCTOR_BROADCAST = "`conductor.broadcast`"
    OUTSIDE_BROADCAST = "`running.broadcast`"
    EVENT = "`running.event`"
    QUEUED_EVENT = "an event that is queued already"
    HANDLER = "a handler, `on_event` or `run` that runs already"
    STOP = "`running.stop`, `ctx.stop`"
    DRAIN = "`running.drain`"
    WAIT = "`running.wait`"
    START = "`start` of the same instance"
    RECIPIENT = "`recipient.send`, `recipient.try_send`"
    ASK = "`ctx.ask`, `recipient.ask`"
    OUTSIDE_ASK = "`running.ask`"
    PENDING_ASK = "an ask that waits for its reply already"
    SET_TIMER = "`ctx.send_after`, `ctx.send_every`, `ctx.set_deadline`, `ctx.set_timeout`"
    TIMER = "a timer comes due"
    RESTART = "a subsystem with `restart=` fails"
    SPAWN = "a task of `ctx.spawn`"
    RUN_BLOCKING = "a function in `ctx.run_blocking`"


class Outcome(enum.Enum):
    """What comes of an action. The value is what the documentation shows."""

    ACCEPTED = "accepted, as the lane's policy says"
    """A send is put where there is room; where there is none it waits, or raises `Full`. A signal or an event
    is queued."""

    ACCEPTED_LATE = "dead-lettered where there is room, else `Closed`"
    """It returns as if accepted where it would not have had to wait, and its message goes to the dead
    letters at once: nobody takes another message. Where it would have had to wait it raises `Closed`."""

    CLOSED = "`Closed`"
    """It raises `Closed`; a message that was given is nowhere but in the error."""

    LET_IN = "let in when there is room"
    """It goes on waiting in its place, and is put at its turn."""

    TAKEN = "the next one, or a wait for it"
    """What is queued is taken, most urgent first; when there is nothing the receiver waits."""

    TAKEN_TO_THE_END = "the next one, until no more can come; then `Closed`"
    """As `TAKEN`; once no more can come, and what was queued has been taken, the receiver sees the end."""

    LEFT_THEN_CLOSED = "what is queued; then `Closed`"
    """What came before is still given; then the receiver sees the end, without a wait."""

    HANDLED = "handled at its turn"
    DEAD_LETTER = "dead-lettered"

    RUNS = "runs"
    AWAITED = "runs; its end is waited for"
    WITHIN_THE_LIMIT = "may finish within the limit, then cancelled"
    LEFT_BEHIND = "may finish within the limit, then left behind"
    """Nothing can end a thread: its caller is cancelled, and the function runs on."""

    CANCELLED = "cancelled"
    """It ends at once. A delayed message whose timer is cancelled so goes to the dead letters."""

    BEGINS = "begins, and waits for the end"
    """The phase changes at once; the call returns when the orchestra has ended, and raises its error."""

    WAITS = "waits for the end"
    SHORTENS = "waits for the end; a shorter limit counts"
    RETURNS = "returns at once"
    """There is nothing left to wait for; an error of the orchestra is raised as by a call that waited."""

    REFUSED = "refused: `RuntimeError`"
    STARTS = "starts afresh"

    NO_REPLY = "as a send; then `NoReply`"
    """The request is dead-lettered, and the asker knows at once that nobody will reply."""

    REPLY = "the reply, or `NoReply` as soon as none can come"
    SET = "set"
    STARTS_AGAIN = "starts again after its backoff"
    STAYS_DOWN = "fails for good"
    NOTHING = "there is none"


_O = Outcome

TABLE: Final[Mapping[Action, tuple[Outcome, Outcome, Outcome, Outcome]]] = MappingProxyType(
    {
        # in the order of Phase:     open, draining, stopping, ended
        Action.SEND: (_O.ACCEPTED, _O.ACCEPTED, _O.ACCEPTED_LATE, _O.CLOSED),
        Action.CONDUCTOR_SEND: (_O.ACCEPTED, _O.ACCEPTED, _O.ACCEPTED_LATE, _O.CLOSED),
        Action.OUTSIDE_SEND: (_O.ACCEPTED, _O.CLOSED, _O.CLOSED, _O.CLOSED),
        Action.WAITING_SEND: (_O.LET_IN, _O.LET_IN, _O.CLOSED, _O.NOTHING),
        Action.RECV: (_O.TAKEN, _O.TAKEN_TO_THE_END, _O.CLOSED, _O.CLOSED),
        Action.RECV_SIGNAL: (_O.TAKEN, _O.TAKEN_TO_THE_END, _O.LEFT_THEN_CLOSED, _O.CLOSED),
        Action.READ_OUTGOING: (_O.TAKEN, _O.TAKEN_TO_THE_END, _O.TAKEN_TO_THE_END, _O.LEFT_THEN_CLOSED),
        Action.CONDUCTOR_BROADCAST: (_O.ACCEPTED, _O.ACCEPTED, _O.CLOSED, _O.CLOSED),
        Action.OUTSIDE_BROADCAST: (_O.ACCEPTED, _O.CLOSED, _O.CLOSED, _O.CLOSED),
        Action.EVENT: (_O.ACCEPTED, _O.CLOSED, _O.CLOSED, _O.CLOSED),
        Action.QUEUED_EVENT: (_O.HANDLED, _O.HANDLED, _O.DEAD_LETTER, _O.NOTHING),
        Action.HANDLER: (_O.RUNS, _O.AWAITED, _O.WITHIN_THE_LIMIT, _O.NOTHING),
        Action.STOP: (_O.BEGINS, _O.BEGINS, _O.SHORTENS, _O.RETURNS),
        Action.DRAIN: (_O.BEGINS, _O.WAITS, _O.WAITS, _O.RETURNS),
        Action.WAIT: (_O.WAITS, _O.WAITS, _O.WAITS, _O.RETURNS),
        Action.START: (_O.REFUSED, _O.REFUSED, _O.REFUSED, _O.STARTS),
        Action.RECIPIENT: (_O.ACCEPTED, _O.ACCEPTED, _O.ACCEPTED_LATE, _O.CLOSED),
        Action.ASK: (_O.ACCEPTED, _O.ACCEPTED, _O.NO_REPLY, _O.CLOSED),
        Action.OUTSIDE_ASK: (_O.ACCEPTED, _O.CLOSED, _O.CLOSED, _O.CLOSED),
        Action.PENDING_ASK: (_O.REPLY, _O.REPLY, _O.REPLY, _O.NOTHING),
        Action.SET_TIMER: (_O.SET, _O.CANCELLED, _O.CANCELLED, _O.CLOSED),
        Action.TIMER: (_O.ACCEPTED, _O.CANCELLED, _O.CANCELLED, _O.NOTHING),
        Action.RESTART: (_O.STARTS_AGAIN, _O.STARTS_AGAIN, _O.STAYS_DOWN, _O.NOTHING),
        Action.SPAWN: (_O.RUNS, _O.AWAITED, _O.WITHIN_THE_LIMIT, _O.CLOSED),
        Action.RUN_BLOCKING: (_O.RUNS, _O.AWAITED, _O.LEFT_BEHIND, _O.CLOSED),
    }
)
"""For each action its outcome in each phase."""

TRANSITIONS: Final[Mapping[Phase, frozenset[Phase]]] = MappingProxyType(
    {
        Phase.OPEN: frozenset({Phase.DRAINING, Phase.STOPPING, Phase.ENDED}),
        Phase.DRAINING: frozenset({Phase.STOPPING, Phase.ENDED}),
        Phase.STOPPING: frozenset({Phase.ENDED}),
        Phase.ENDED: frozenset(),
    }
)
"""For each phase those that may follow it. When every subsystem finishes by itself it ends without a stop."""


def outcome(phase: Phase, action: Action) -> Outcome:
    """What comes of an action in a phase."""
    return TABLE[action][_COLUMN[phase]]


def may_follow(phase: Phase, following: Phase) -> bool:
    """Whether an orchestra may go from one phase straight to another."""
    return following in TRANSITIONS[phase]


_COLUMN: Final = {phase: column for column, phase in enumerate(Phase)}
