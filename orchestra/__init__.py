"""Declare the long-lived parts of a program in one class; the wiring between them is generated."""

from orchestra.box import Box, Live, boxed
from orchestra.context import Conductor, Context
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
    UndeclaredPriority,
)
from orchestra.launch import run, start
from orchestra.overflow import Block, Fail
from orchestra.priority import Priority
from orchestra.runtime.letters import DeadLetter
from orchestra.runtime.meters import LaneMeters, Meters
from orchestra.runtime.running import Running
from orchestra.subsystems import Actor, Subsystem, handles

__all__ = [
    "Actor",
    "Block",
    "Box",
    "BoxError",
    "Closed",
    "Conductor",
    "Context",
    "DeadLetter",
    "DeclarationError",
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
    "UndeclaredMessage",
    "UndeclaredPriority",
    "boxed",
    "handles",
    "orchestra",
    "plan_of",
    "run",
    "start",
    "subsystem",
]
