"""The levels of urgency that a lane can have."""

import enum


class Priority(enum.IntEnum):
    """How urgent a message is: smaller is more urgent.

    The seven levels and their names are those of Eclipse Zenoh. `HIGH` and `NORMAL` are aliases
    of `DATA_HIGH` and `DATA`, for a subsystem that needs two levels only.
    """

    REAL_TIME = 1
    INTERACTIVE_HIGH = 2
    INTERACTIVE_LOW = 3
    DATA_HIGH = 4
    DATA = 5
    DATA_LOW = 6
    BACKGROUND = 7

    HIGH = DATA_HIGH
    NORMAL = DATA
