"""Declare the long-lived parts of a program in one class; the wiring between them is generated."""

from orchestra.box import Box, Live, boxed
from orchestra.context import BlockingContext, Conductor, Context
from orchestra.declaration import subsystem
from orchestra.decorator import orchestra, plan_of
from orchestra.errors import (
    BoxError,
    Closed,
    DeclarationError,
    Full,
    OrchestraError,
    StopTimeout,
    SubsystemStalled,
    UndeclaredMessage,
    UndeclaredOverflow,
    UndeclaredPriority,
)
from orchestra.launch import run, start
from orchestra.overflow import Block, BlockFirst, Drop, DropOldest, Fail
from orchestra.priority import Priority
from orchestra.runtime.letters import DeadLetter
from orchestra.runtime.meters import LaneMeters, Meters
from orchestra.runtime.pressure import Congestion
from orchestra.runtime.running import Running
from orchestra.runtime.threads.handle import Threadsafe
from orchestra.subsystems import Actor, Subsystem, handles

__all__ = [
    "Actor",
    "Block",
    "BlockFirst",
    "BlockingContext",
    "Box",
    "BoxError",
    "Closed",
    "Conductor",
    "Congestion",
    "Context",
    "DeadLetter",
    "DeclarationError",
    "Drop",
    "DropOldest",
    "Fail",
    "Full",
    "LaneMeters",
    "Live",
    "Meters",
    "OrchestraError",
    "Priority",
    "Running",
    "StopTimeout",
    "Subsystem",
    "SubsystemStalled",
    "Threadsafe",
    "UndeclaredMessage",
    "UndeclaredOverflow",
    "UndeclaredPriority",
    "boxed",
    "handles",
    "orchestra",
    "plan_of",
    "run",
    "start",
    "subsystem",
]
