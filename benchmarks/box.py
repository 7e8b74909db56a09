"""What a box costs: a send, a broadcast, sealing ahead, and a backlog (see `benchmarks.backlog`).

A case has one sender and as many receivers as it says, all of them synchronous Actors. The messages of a case
are new objects that share their content, so that an unboxed send costs no more for a big message than for a
small one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks import backlog, bars, loops
from benchmarks.floor import clock
from benchmarks.harness import Case, Group
from benchmarks.messages import BYTES, U8, Block, Buffer, Signal, TenDicts, ten_dicts
from benchmarks.queues import CAPACITY
from benchmarks.send import Handler, Sender, Stopwatch
from orchestra import Box, DeclarationError, orchestra, start, subsystem

BUFFERS = 32
"""Capacity of a lane of buffers: a thousand of them would be memory to fill, not messages to send."""

AHEAD = 16
"""For how many receivers a message is sealed ahead."""

Make = Callable[[Any], Any]


def app_class(kind: type, receivers: int = 1, boxed: Any = False, capacity: int = CAPACITY) -> Any:
    """An orchestra class of a sender of `kind` and so many receivers of it."""
    handlers = {f"handler{place}": subsystem(subscribes=[kind], boxed=boxed) for place in range(receivers)}
    body = {
        "__module__": __name__,
        "__annotations__": {"sender": Sender, **dict.fromkeys(handlers, Handler)},
        "sender": subsystem(sends=[kind]),
        **handlers,
    }
    made = type(f"{kind.__name__}ToHandlers", (), body)
    return orchestra(signal=Signal, event=Signal, message_capacity=capacity)(made)


async def _drained(app: Any) -> None:
    async with start(app) as running:
        await running.drain()


def _send_ns(app: Any, receivers: int, make: Make, value: Any, count: int) -> float:
    """Nanoseconds a message, from the first send until each receiver has handled the last one."""
    watch = Stopwatch()
    handlers = {f"handler{place}": Handler(count, watch) for place in range(receivers)}
    loops.run(_drained(app(sender=Sender(make, value, count, watch), **handlers)))
    return watch.per_message(count)


def _ways() -> dict[str, Any]:
    """The ways to send: what a table calls them, and what the declaration says of boxing."""
    ways: dict[str, Any] = {bars.UNBOXED: False, bars.BOXED: True}
    try:
        app_class(U8, boxed="auto")
    except DeclarationError:
        return ways
    return {**ways, bars.AUTO: "auto"}


def sends(count: int) -> Group:
    """What a send costs, for each message and each way; `count` messages in a run, of buffers fewer."""
    contents: dict[str, tuple[type, Any, int, int]] = {
        bars.BOX_U8: (U8, 7, CAPACITY, count),
        bars.BOX_BYTES: (Block, BYTES, CAPACITY, count),
        bars.BOX_BYTEARRAY: (Buffer, bytearray(BYTES), CAPACITY, count),
        bars.TEN_DICTS: (TenDicts, ten_dicts(1_000), CAPACITY, count // 4),
        bars.BUFFER: (Buffer, bytearray(2**16), BUFFERS, count // 50),
    }
    cases = []
    for content, (kind, value, capacity, number) in contents.items():
        for way, boxed in _ways().items():
            app = app_class(kind, boxed=boxed, capacity=capacity)
            run = partial(_send_ns, app, 1, kind, value, number)
            cases.append(Case(bars.box_send(content, way), run, bars.box_send(content, bars.UNBOXED)))
    return Group(
        name="sends",
        title=f"one sender, one receiver, capacity {CAPACITY} (of buffers {BUFFERS})",
        unit="ns a message",
        cases=cases,
        ratio="× unboxed",
    )


def broadcasts(count: int) -> Group:
    """What a broadcast of ten small dicts costs, packed in the send or ahead of all sends."""
    content = ten_dicts(1_000)
    box = Box.seal(TenDicts(content))
    cases = []
    for receivers in (1, 4, AHEAD):
        ways: dict[str, tuple[bool, Make]] = {
            bars.UNBOXED: (False, TenDicts),
            bars.BOXED: (True, TenDicts),
            bars.SEALED_AHEAD: (True, lambda value: box),
        }
        for way, (boxed, make) in ways.items():
            run = partial(_send_ns, app_class(TenDicts, receivers, boxed), receivers, make, content, count)
            cases.append(Case(bars.broadcast(receivers, way), run, bars.broadcast(receivers, bars.UNBOXED)))
    return Group(
        name="broadcasts",
        title="ten small dicts to some receivers",
        unit="ns a message",
        cases=cases,
        ratio="× unboxed",
    )


def _each_sealed(message: Any, count: int) -> float:
    began = clock()
    for _ in range(count):
        _ = [Box.seal(message) for _ in range(AHEAD)]
    return (clock() - began) / count


def _sealed_ahead(message: Any, count: int) -> float:
    began = clock()
    for _ in range(count):
        box = Box.seal(message)
        _ = [box for _ in range(AHEAD)]
    return (clock() - began) / count


def seals(count: int) -> Group:
    """What it costs to have a box of ten small dicts for each of several receivers."""
    message = TenDicts(ten_dicts(1_000))
    return Group(
        name="seals",
        title=f"boxes of ten small dicts for {AHEAD} receivers",
        unit="ns a message",
        cases=[
            Case(bars.EACH_SEALED, partial(_each_sealed, message, count), bars.EACH_SEALED),
            Case(bars.ONCE_SEALED, partial(_sealed_ahead, message, count), bars.EACH_SEALED),
        ],
        ratio="× a seal for each",
        one_loop=True,
    )


def groups(count: int, waiting: int, rounds: int | None = None) -> Sequence[Group]:
    """All the groups: `count` messages in a run, and `waiting` ones in a backlog.

    `rounds` is the most rounds for the backlogs.
    """
    return [
        sends(count),
        broadcasts(count // 20),
        seals(count // 50),
        *backlog.groups(waiting, rounds),
    ]
