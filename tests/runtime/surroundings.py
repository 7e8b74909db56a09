"""What stands around a lane that is tried without an inbox."""

from collections.abc import Callable
from threading import get_ident
from typing import Any

import attrs

from orchestra.errors import Closed
from orchestra.runtime.lane import Lane
from orchestra.runtime.strand import Strand
from orchestra.runtime.ticket import Ticket


@attrs.define
class Surroundings:
    """Each thing that a lane asks or tells, as a function; most of them do nothing."""

    arrived: Callable[[], None]
    bury: Callable[[Any, str], None]
    closed: Callable[[Any], Closed]
    left: Callable[[], None] = lambda: None
    sends_itself: Callable[[], bool] = lambda: False
    taken_from: Callable[[Lane], int] = lambda lane: 0
    report: Callable[[Lane, bool], None] = lambda lane, congested: None
    stalled: Callable[[Lane], None] = lambda lane: None
    blocks: Callable[[Lane, Ticket], None] = lambda lane, ticket: None
    displaced: Callable[[Any], None] | None = None
    interrupt: Callable[[], None] = lambda: None
    running_strand: Callable[[], Strand | None] = lambda: None
    alert: bool = False
    absent: bool = False
    thread: int = attrs.field(factory=get_ident)
