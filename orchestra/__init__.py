"""Declare the long-lived parts of a program in one class; the wiring between them is generated."""

from orchestra.box import Box, Live, boxed
from orchestra.context import BlockingContext, Conductor, Context
from orchestra.declaration import subsystem
from orchestra.decorator import orchestra, plan_of
from orchestra.errors import (
    BoxError,
    Closed,
    Deadlock,
    DeclarationError,
    Full,
    LinkError,
    NoReply,
    OrchestraError,
    RemoteError,
    StopTimeout,
    SubsystemStalled,
    TooLarge,
    UndeclaredMessage,
    UndeclaredOverflow,
    UndeclaredPriority,
)
from orchestra.launch import run, start
from orchestra.overflow import Block, BlockFirst, Drop, DropOldest, Fail
from orchestra.priority import Priority
from orchestra.recipient import BlockingRecipient, Recipient
from orchestra.remote import Remote
from orchestra.reply import Reply
from orchestra.runtime.afar import Peer
from orchestra.runtime.gridlock import Gridlock
from orchestra.runtime.letters import DeadLetter
from orchestra.runtime.meters import LaneMeters, Meters
from orchestra.runtime.pressure import Congestion
from orchestra.runtime.running import Running
from orchestra.runtime.threads.handle import Threadsafe
from orchestra.subsystems import Actor, Subsystem, handles
from orchestra.supervision import Restart, deferred
from orchestra.timer import Missed, Timer
from orchestra.wrapping import Wrapper

__all__ = [
    "Actor",
    "Block",
    "BlockFirst",
    "BlockingContext",
    "BlockingRecipient",
    "Box",
    "BoxError",
    "Closed",
    "Conductor",
    "Congestion",
    "Context",
    "DeadLetter",
    "Deadlock",
    "DeclarationError",
    "Drop",
    "DropOldest",
    "Fail",
    "Full",
    "Gridlock",
    "LaneMeters",
    "LinkError",
    "Live",
    "Meters",
    "Missed",
    "NoReply",
    "OrchestraError",
    "Peer",
    "Priority",
    "Recipient",
    "Remote",
    "RemoteError",
    "Reply",
    "Restart",
    "Running",
    "StopTimeout",
    "Subsystem",
    "SubsystemStalled",
    "Threadsafe",
    "Timer",
    "TooLarge",
    "UndeclaredMessage",
    "UndeclaredOverflow",
    "UndeclaredPriority",
    "Wrapper",
    "boxed",
    "deferred",
    "handles",
    "orchestra",
    "plan_of",
    "run",
    "start",
    "subsystem",
]
