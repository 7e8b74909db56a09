"""Other ways to do the same work, each in a file of its own and used as its own documentation advises.

A peer is measured in the same rounds as orchestra. What it does is a function for each kind of work, or None
where the work does not fit; the functions give nanoseconds, each in the unit of its group.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

import attrs

PEERS: Mapping[str, str] = {
    "hand_made": "",
    "asyncio_queue": "",
    "anyio_streams": "anyio",
    "trio_channels": "trio",
    "culsans_queue": "culsans",
    "janus_queue": "janus",
    "aiologic_queue": "aiologic",
    "pykka_actors": "pykka",
    "xoscar_actors": "xoscar",
    "ezmsg_topics": "ezmsg",
    "thespian_actors": "thespian",
}
"""The modules here, each with the distribution that it needs."""

Send = Callable[[int], float]
Ring = Callable[[int, int, int], float]
Fanout = Callable[[int, int], float]


class SyncSide(Protocol):
    """The side of a queue for threads."""

    def put(self, item: Any) -> None: ...
    def get(self) -> Any: ...


class AsyncSide(Protocol):
    """The side of a queue for tasks."""

    async def put(self, item: Any) -> None: ...
    async def get(self) -> Any: ...


class TwoSided(Protocol):
    """A queue between threads and tasks."""

    @property
    def sync_q(self) -> SyncSide: ...
    @property
    def async_q(self) -> AsyncSide: ...


@attrs.frozen
class Peer:
    """One peer: what it is called in the tables, and what it can do.

    `send(count)` gives nanoseconds a message from one part to another, `ring(size, hops, laps)` nanoseconds a
    hop, `fanout(subscribers, count)` nanoseconds for each message and subscriber, `ask(count)` nanoseconds a
    question and its answer, and `start(size)` milliseconds to start and stop so many parts.
    """

    name: str
    send: Send | None = None
    ring: Ring | None = None
    fanout: Fanout | None = None
    ask: Callable[[int], float] | None = None
    start: Callable[[int], float] | None = None
    two_sided: Callable[[int], TwoSided] | None = None
    """Makes a queue of this capacity between a thread and the loop."""
    beside_slow: Callable[..., float] | None = None
    """The rate of a fast subscriber beside a slow one; see `benchmarks.congestion`."""
    library: bool = True
    """False for what is written by hand."""
    on_loop: bool = True
    """Whether it runs on the event loop that is chosen, asyncio's or uvloop."""
    wall: bool = False
    """Whether it has threads of its own, that wait for each other: then the clock is one on the wall."""
    slower: int = 1
    """Its runs are so many times shorter than those of orchestra, to be done in time."""

    most: int | None = None
    """The most parts of a ring or of a fan-out, where more take long to set up."""

    def fewer(self, count: int) -> int:
        """How many messages are enough for a run, where orchestra has `count`."""
        return max(1, count // self.slower)


@cache
def _found() -> tuple[Sequence[Peer], Sequence[str]]:
    peers: list[Peer] = []
    missing: list[str] = []
    for module, needs in PEERS.items():
        try:
            peers.append(import_module(f"{__name__}.{module}").PEER)
        except ModuleNotFoundError as error:
            if not needs or (error.name or "").partition(".")[0] != needs:
                raise
            missing.append(needs)
    return peers, missing


def found() -> Sequence[Peer]:
    """The peers whose library is installed."""
    return _found()[0]


def missing() -> Sequence[str]:
    """The libraries that are not installed."""
    return _found()[1]


def that_can(work: str) -> Iterator[Peer]:
    """The installed peers that can do this work: the name of a field of `Peer`."""
    return (peer for peer in found() if getattr(peer, work) is not None)
