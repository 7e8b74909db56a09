"""The phases of a running orchestra, and what each allows: the model that the runtime is tested against."""

import enum


class Phase(enum.Enum):
    """Where an orchestra is in its life; it only ever moves downwards in this list."""

    OPEN = "open"
    DRAINING = "draining"
    STOPPING = "stopping"
    ENDED = "ended"
