"""A message without a sender that waits in line for room in a lane, as a sender would."""

import asyncio
from collections.abc import Callable
from typing import Any

from orchestra.errors import Closed
from orchestra.runtime.lane import Lane
from orchestra.runtime.ticket import Ticket

Left = Callable[["InLine", bool | None], None]


class InLine:
    """One entry that waits with a ticket.

    `left` is called when it leaves the line: with True when it was put, False when a policy dropped it, None
    when the lane has closed, or somebody ended all tasks of the loop. It is not called when it was withdrawn.
    """

    __slots__ = ("_left", "_task", "_ticket", "_withdrawn", "entry", "lane")

    def __init__(
        self, lane: Lane, ticket: Ticket, entry: Any, left: Left, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.lane = lane
        self.entry = entry
        self._ticket = ticket
        self._left = left
        self._withdrawn = False
        self._task = loop.create_task(self._wait(), name=f"orchestra:a timer's message to {lane.subsystem}")

    def withdraw(self) -> None:
        """Leave the line: the entry is nowhere, and its place goes to the next."""
        self._withdrawn = True
        self.lane.withdraw(self._ticket)  # a Task that has not begun would not do it
        self._task.cancel()

    async def _wait(self) -> None:
        outcome: bool | None = None
        try:
            outcome = await self.lane.redeem(self._ticket, self.entry, None)
        except Closed:
            pass
        finally:
            if not self._withdrawn:
                self._left(self, outcome)
