"""What the benchmarks of the link send, and the other process: `python -m benchmarks.link_parts ROLE AT`."""

import asyncio
import functools
import json
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from time import perf_counter_ns as clock
from typing import Any

import msgspec

from benchmarks.messages import Signal
from orchestra import (
    Actor,
    Context,
    Priority,
    Remote,
    Reply,
    Running,
    Subsystem,
    handles,
    orchestra,
    start,
    subsystem,
)
from orchestra.link import ZenohLink

DATA = bytes(16)


class Bulk(msgspec.Struct, frozen=True, gc=False):
    """One of many."""

    data: bytes


class Urgent(msgspec.Struct, frozen=True, gc=False):
    """Overtakes the many. `sent` is when, on the clock of the machine."""

    sent: int


class Start(msgspec.Struct, frozen=True, gc=False):
    """Count from here: so many come. -1 asks for what was noted."""

    count: int


class Question(msgspec.Struct):
    """Wants an answer."""

    reply: Reply[int]


class Heard(msgspec.Struct, frozen=True):
    """What the receiver noted: the most that its inbox held, and how long urgent ones took, in ns."""

    peak: int = 0
    delays: list[int] = []


class Sender(Subsystem):
    """Does what it is told."""

    def __init__(self, drive: Callable[[Any], Awaitable[None]]) -> None:
        self.drive = drive

    async def run(self, ctx: Context[Heard, Bulk | Urgent | Start | Question, Any]) -> None:
        await self.drive(ctx)


class Taker(Actor):
    """Counts what comes."""

    def __init__(self) -> None:
        self.left = 0
        self.peak = 0
        self.delays: list[int] = []
        self.queued: Callable[[], int] = lambda: 0

    @staticmethod
    def priority(message: Bulk | Urgent | Start | Question) -> Priority:
        return Priority.HIGH if isinstance(message, Urgent) else Priority.NORMAL

    @handles(Bulk)
    def count(self, ctx: Context[Any, Heard, Any], message: Bulk) -> None:
        self.left -= 1
        self.peak = max(self.peak, self.queued())
        if self.left == 0:
            ctx.spawn(ctx.send(Heard(self.peak)))

    @handles(Urgent)
    def note(self, ctx: Context[Any, Heard, Any], message: Urgent) -> None:
        self.delays.append(clock() - message.sent)

    @handles(Start)
    async def start(self, ctx: Context[Any, Heard, Any], message: Start) -> None:
        self.left = message.count
        await ctx.send(Heard(self.peak, self.delays))

    @handles(Question)
    def answer(self, ctx: Context[Any, Heard, Any], message: Question) -> None:
        message.reply.send(7)


@functools.cache
def wire(capacity: int) -> Any:
    """The orchestra whose receiver has a lane of this capacity."""

    @orchestra(signal=Signal, event=Signal)
    class Wire:
        sender: Sender = subsystem(consumes=Heard, sends=[Bulk, Urgent, Start, Question])
        taker: Taker = subsystem(
            consumes=Bulk | Urgent | Start | Question,
            sends=[Heard],
            message_capacity={Priority.HIGH: 64, Priority.NORMAL: capacity},
        )

    return Wire


async def taker(at: str, capacity: int) -> None:
    """Host the receiver until all stops."""
    made = Taker()
    async with start(wire(capacity)(sender=Remote(), taker=made), link=ZenohLink(connect=[at])) as running:
        made.queued = queued_of(running)
        print("ready", flush=True)
        await running.wait()


def queued_of(running: Running) -> Callable[[], int]:
    """What tells how many messages the inbox of the receiver holds."""
    lanes = running._ensemble.inboxes["taker"].lanes
    return lambda: max(len(lane.queue) for lane in lanes)


@contextmanager
def plain_session(*, listen: str = "", connect: str = "") -> Generator[Any]:
    """Zenoh as it is, on the same topology: one listens as a router, the other is its client."""
    import zenoh

    config = zenoh.Config()
    config.insert_json5("mode", json.dumps("router" if listen else "client"))
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("listen/endpoints", json.dumps([listen] if listen else []))
    config.insert_json5("connect/endpoints", json.dumps([connect] if connect else []))
    with zenoh.open(config) as session:
        yield session


async def plain(at: str, count: int) -> None:
    """Take so many samples, from Zenoh's thread into the loop by a deque and one flag."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    arrived: deque[bytes] = deque()
    woken = False
    left = count

    def take() -> None:
        nonlocal woken, left
        woken = False
        while arrived:
            arrived.popleft()
            left -= 1
        if left <= 0:
            ended.set()

    def callback(sample: Any) -> None:
        nonlocal woken
        arrived.append(sample.payload.to_bytes())
        if not woken:
            woken = True
            loop.call_soon_threadsafe(take)

    with plain_session(connect=at) as session:
        session.declare_subscriber("plain/data", callback)
        print("ready", flush=True)
        await ended.wait()
        session.put("plain/done", b"")
        await asyncio.sleep(0.1)


def echo(at: str) -> None:
    """Send back each sample, until an empty one comes."""
    ended = threading.Event()
    with plain_session(connect=at) as session:
        back = session.declare_publisher("plain/back").put

        def answer(sample: Any) -> None:
            payload = sample.payload.to_bytes()
            back(payload) if payload else ended.set()

        session.declare_subscriber("plain/ping", answer)
        print("ready", flush=True)
        ended.wait()


if __name__ == "__main__":
    role, at, *numbers = sys.argv[1:]
    if role == "echo":
        echo(at)
    else:
        asyncio.run({"taker": taker, "plain": plain}[role](at, *map(int, numbers)))
