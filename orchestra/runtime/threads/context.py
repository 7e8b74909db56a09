"""The context that a blocking subsystem is given."""

import contextlib
from collections.abc import Callable
from typing import Any

from orchestra.context import BlockingContext
from orchestra.errors import Closed
from orchestra.runtime.threads.inbox import ThreadInbox


class LiveBlockingContext(BlockingContext[Any, Any, Any]):
    """A context whose verbs are the generated functions of one blocking subsystem."""

    __slots__ = (
        "__next__",
        "_finish",
        "_inbox",
        "_stop",
        "recv",
        "recv_signal",
        "send",
        "try_recv",
        "try_send",
    )

    def __init__(
        self,
        inbox: ThreadInbox,
        verbs: dict[str, Callable[..., Any]],
        stop: Callable[[], None],
        finish: Callable[[], None],
    ) -> None:
        self._inbox = inbox
        self._stop = stop
        self._finish = finish
        for name, verb in verbs.items():
            setattr(self, name, verb)

    def __iter__(self) -> "LiveBlockingContext":
        self._inbox.home.check()
        return self

    @property
    def name(self) -> str:
        return self._inbox.name

    @property
    def closed(self) -> bool:
        return self._inbox.over

    def stop(self) -> None:
        self._inbox.home.check()
        calmly(self._stop)

    def finish(self) -> None:
        self._inbox.home.check()
        calmly(self._finish)

    def do(self, work: Callable[[], Any]) -> Any:
        """Have something done, or awaited, in the loop; see `Home.do`."""
        return self._inbox.home.do(work)

    def __repr__(self) -> str:
        return f"<blocking context of {self.name!r}>"


def calmly(end: Callable[[], None]) -> None:
    """Call what ends something; there is nothing to end when it has ended already."""
    with contextlib.suppress(Closed):
        end()
