"""What a running orchestra needs of its parts in other processes, and what it tells of them."""

from asyncio import Future
from collections.abc import Collection, Mapping
from typing import Any, Literal, Protocol

import attrs

from orchestra.runtime.inbox import Inbox


@attrs.frozen(kw_only=True)
class Peer:
    """Another process of the same orchestra, as this one sees it.

    `process` is its name, `epoch` a number that is new at each of its starts, `hosts` are the subsystems that
    run there. `state` is "met" (it is alive, and nothing more is known yet), "here", "away" (nothing is heard
    of it, and it may come back), "gone" (it has ended, or was away too long), or "refused": then `why` says
    why this process does not talk to it, or it to this one. `since` is the time of that, as `time.time()`
    gives it.

    `sent` and `received` count messages to and from it, `lost` those from it that are known not to have
    come, `unacknowledged` those to it of which is not known yet whether they have, `refused` packets from it
    that were not what they should be.
    """

    process: str
    epoch: int = attrs.field(repr="{:016x}".format)
    hosts: tuple[str, ...] = ()
    state: Literal["met", "here", "away", "gone", "refused"] = "met"
    why: str = ""
    since: float = 0.0
    sent: int = 0
    received: int = 0
    lost: int = 0
    unacknowledged: int = 0
    refused: int = 0


class Afar(Protocol):
    """The other processes, as seen from this one."""

    @property
    def released(self) -> bool:
        """Whether nothing more can come from there, but what their subsystems still say at their end."""
        ...

    @property
    def inboxes(self) -> Mapping[str, Inbox]:
        """What stands here for the inboxes of the subsystems there."""
        ...

    @property
    def unfinished(self) -> Mapping[str, Collection[str]]:
        """The subsystems there that have not finished, and who may send to them."""
        ...

    def peers(self) -> Mapping[str, Peer]:
        """The processes, by name."""
        ...

    def pack(self, signal: Any) -> Any:
        """A signal as it crosses. Raises `BoxError` for what cannot."""

    def tell(self, packed: Any) -> "Future[None] | None":
        """Give a signal to all; what is given is done when each has it within its capacity."""

    def stalled(self, packed: Any) -> list[str]:
        """The subsystems there that have not read a signal."""
        ...

    def stop(self, timeout: float) -> None:
        """Tell all to stop within so many seconds."""

    def stopping(self) -> None:
        """This process stops."""

    def drain(self) -> None:
        """Tell all to take nothing more from outside."""

    def finished(self, name: str) -> None:
        """A subsystem of this process has finished."""

    async def others_ended(self, timeout: float) -> None:
        """Wait until the others have ended, after a stop."""
