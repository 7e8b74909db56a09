"""The keys under which processes find each other.

    orchestra/APP/alive/PROCESS/EPOCH               a liveliness token of each process
    orchestra/APP/about/EPOCH                       what it tells to whoever asks, such as `orchestra peers`
    orchestra/APP/to/EPOCH/LEVEL/FROM               messages to a process, by level of the lane
    orchestra/APP/to/EPOCH/control/FROM             credits, signals, replies, and all that is no message

APP and PROCESS are names, EPOCH and FROM the epochs of processes: 16 hexadecimal digits, new at each start.
"""

import re
from typing import TypeAlias

import attrs

from orchestra.priority import Priority

Epoch: TypeAlias = int

CONTROL = Priority.INTERACTIVE_HIGH
"""The level of all that is no message: it goes over the quick link."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.+:@=,-]+")


def safe(name: str) -> str:
    """A name as one chunk of a key: what keys give a meaning to is replaced."""
    return _UNSAFE.sub("-", name).strip("-") or "-"


def written(epoch: Epoch) -> str:
    """An epoch as it stands in a key."""
    return f"{epoch:016x}"


@attrs.frozen
class Sign:
    """Who is alive: the name of a process, and its epoch."""

    process: str
    epoch: Epoch


@attrs.frozen
class Keys:
    """The keys of one application, for the process of this epoch."""

    app: str
    epoch: Epoch

    def alive(self, process: str) -> str:
        """The token of this process."""
        return f"orchestra/{self.app}/alive/{safe(process)}/{written(self.epoch)}"

    @property
    def about(self) -> str:
        """Where this process answers who it is."""
        return f"orchestra/{self.app}/about/{written(self.epoch)}"

    @property
    def everybody(self) -> str:
        """The tokens of all."""
        return f"orchestra/{self.app}/alive/*/*"

    def messages_to(self, other: Epoch, level: Priority) -> str:
        """Messages to another process."""
        return f"orchestra/{self.app}/to/{written(other)}/{level.value}/{written(self.epoch)}"

    def control_to(self, other: Epoch) -> str:
        """All else that goes to another process."""
        return f"orchestra/{self.app}/to/{written(other)}/control/{written(self.epoch)}"

    def own(self, level: Priority) -> str:
        """Messages of a level to this process."""
        return f"orchestra/{self.app}/to/{written(self.epoch)}/{level.value}/*"

    @property
    def own_control(self) -> str:
        """All else that comes to this process."""
        return f"orchestra/{self.app}/to/{written(self.epoch)}/control/*"


def sign_of(key: str) -> Sign | None:
    """Whose token this is; None for a key that is none."""
    parts = key.split("/")
    if len(parts) != 5 or parts[2] != "alive":
        return None
    epoch = _epoch(parts[4])
    return None if epoch is None else Sign(parts[3], epoch)


def sender_of(key: str) -> Epoch | None:
    """Who has sent something; None for a key that does not say it."""
    return _epoch(key.rsplit("/", 1)[-1])


def _epoch(text: str) -> Epoch | None:
    if len(text) != 16:
        return None
    try:
        epoch = int(text, 16)
    except ValueError:
        return None
    return epoch if written(epoch) == text and epoch < 2**63 else None
