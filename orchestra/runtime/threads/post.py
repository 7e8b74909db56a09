"""The general way of a send from the thread of a blocking subsystem."""

from functools import partial
from typing import Any, cast

from orchestra.overflow import Overflow
from orchestra.priority import Priority
from orchestra.runtime.lane import Lane
from orchestra.runtime.post import Places, Post, decided, offer
from orchestra.runtime.threads.door import Bell, Door
from orchestra.runtime.threads.home import Home
from orchestra.runtime.threads.lane import SharedLane, redeem_in_thread
from orchestra.runtime.ticket import Ticket


class ThreadPost(Post):
    """A `Post` whose sends wait by sleeping. Every lane that it reaches is a shared one."""

    __slots__ = ("_door", "home")

    def __init__(self, home: Home, door: Door, *args: Any) -> None:
        super().__init__(*args)
        self.home = home
        self._door = door

    def send_in_thread(
        self, message: Any, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        """Send a message, sleeping where a lane has no room; see `Context.send`. Requests go by the loop."""
        places, way = self._laid(message, priority, overflow)
        if way.replies:
            return bool(self.home.do(partial(super().send, message, priority, overflow), message))
        self.drop_for(way.wip)
        living = self.living(places, len(places))
        return self.spread_in_thread(living, message, overflow) and not way.wip

    def try_send(
        self, message: Any, priority: Priority | None = None, overflow: Overflow | None = None
    ) -> bool:
        if self._laid(message, priority, overflow)[1].replies:
            return bool(self.home.do(partial(super().try_send, message, priority, overflow), message))
        return self.try_send_here(message, priority, overflow)

    def spread_in_thread(
        self, places: Places, message: Any, overflow: Overflow | None = None, *, others: bool = False
    ) -> bool:
        """As `spread`, sleeping until each lane has taken the message, dropped it or ended."""
        bell = Bell()

        def admit(lane: Lane, entry: Any) -> Ticket | bool:
            return cast(SharedLane, lane).admit_in_thread(bell, entry, message, overflow)

        offered = offer(places, admit)
        try:
            waits = cast(list[tuple[SharedLane, Ticket, Any]], offered.tickets)
            every = len(waits) == len(places) and not others
            return decided(offered.outcome(redeem_in_thread(waits, bell, message), every=every))
        finally:
            del offered

    def _count_planned(self, name: str) -> None:
        self._door.post(partial(super()._count_planned, name))
