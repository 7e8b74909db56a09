"""Events from outside: handled one at a time, in order."""

import inspect
from collections.abc import Callable
from typing import Any

from orchestra.errors import Closed
from orchestra.runtime.inbox import Inbox


async def serve_events(inbox: Inbox, on_event: Callable[[Any], Any]) -> None:
    """Give each event to `on_event` until no more can come."""
    (lane,) = inbox.lanes
    taken = 0

    def count() -> tuple[int]:
        return (taken,)

    inbox.taken = count
    while True:
        if not lane.queue:
            try:
                await inbox.rest()
            except Closed:
                return
            continue
        event = inbox.current = lane.queue.popleft()
        taken += 1
        if lane.pressed:
            lane.relieve()
        result = on_event(event)
        if inspect.isawaitable(result):
            await result
        del event
