"""One subsystem alone: what reaches it comes from the test, and what it sends stays with the test."""

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace, TracebackType
from typing import Any, TypeVar

import attrs

from orchestra.box import open_entry
from orchestra.priority import Priority
from orchestra.runtime.assembly import assemble_one
from orchestra.runtime.conductor import check_signal
from orchestra.runtime.ensemble import Ensemble
from orchestra.runtime.letters import DeadLetter, Letters
from orchestra.runtime.meters import Meters, read_meters
from orchestra.runtime.pressure import Pressure
from orchestra.runtime.running import Running
from orchestra.testing.clock import FakeClock

M = TypeVar("M")

TURNS = 1000
"""Turns of the event loop after which `settle` no longer waits for a subsystem that is at work all the time."""


@attrs.frozen
class Sent:
    """A message that the subsystem sent: to whom, at which level, and at what time of the clock."""

    message: Any
    receiver: str
    priority: Priority
    time: float
