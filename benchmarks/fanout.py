"""One publisher, some subscribers: what a message costs for each of them.

Each subscriber has a lane of its own and a synchronous handler. The peers that know no topics put the message
into a queue for each subscriber.
"""

from functools import partial
from typing import Any

from benchmarks import bars, loops, peers
from benchmarks.harness import Case, Group
from benchmarks.messages import U8, Signal
from benchmarks.queues import CAPACITY
from benchmarks.send import Handler, Sender, Stopwatch
from orchestra import orchestra, start, subsystem

SIZES = (1, 2, 4, 8, 16)
BESIDE_PEERS = (1, 8)


def app_class(subscribers: int) -> Any:
    """An orchestra class of one publisher and so many subscribers."""
    handlers = {f"subscriber{place}": subsystem(subscribes=[U8]) for place in range(subscribers)}
    body = {
        "__module__": __name__,
        "__annotations__": {"publisher": Sender, **dict.fromkeys(handlers, Handler)},
        "publisher": subsystem(sends=[U8]),
        **handlers,
    }
    made = type(f"To{subscribers}", (), body)
    return orchestra(signal=Signal, event=Signal, message_capacity=CAPACITY)(made)


async def _drained(app: Any) -> None:
    async with start(app) as running:
        await running.drain()


def publish_ns(app: Any, subscribers: int, count: int) -> float:
    """Nanoseconds for each message and subscriber, from the first send until the last one is handled."""
    watch = Stopwatch()
    handlers = {f"subscriber{place}": Handler(count, watch) for place in range(subscribers)}
    loops.run(_drained(app(publisher=Sender(U8, 7, count, watch), **handlers)))
    return watch.per_message(count) / subscribers


def group(count: int) -> Group:
    """The cases: about `count` messages are handled in a run, of the slower peers fewer."""
    cases = [
        Case(bars.fanout(size), partial(publish_ns, app_class(size), size, max(1, count // size)))
        for size in SIZES
    ]
    cases += [_by_peer(peer, size, count) for size in BESIDE_PEERS for peer in peers.that_can("fanout")]
    return Group(
        name="fanout",
        title=f"one publisher, some subscribers with a synchronous handler, capacity {CAPACITY}",
        unit="ns a subscriber",
        cases=cases,
    )


def _by_peer(peer: peers.Peer, size: int, count: int) -> Case:
    assert peer.fanout is not None
    run = partial(peer.fanout, size, max(1, peer.fewer(count) // size))
    return Case(bars.fanout(size, peer.name), run, on_loop=peer.on_loop, wall=peer.wall)
