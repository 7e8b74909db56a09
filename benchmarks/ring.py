"""A token goes round a ring of subsystems: what a hop costs when each message wakes the next one."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from types import FunctionType
from typing import Any, TypeAlias

import msgspec

from benchmarks import bars, loops, peers
from benchmarks.floor import clock
from benchmarks.harness import Case, Group, Lead
from benchmarks.messages import Signal
from orchestra import Actor, Context, orchestra, start, subsystem

MakeMessage: TypeAlias = Callable[[int], Any]
MakeStation: TypeAlias = Callable[[Any], Actor]

HOPS = 1_000
SIZES = (1, 2, 3, 50)
BESIDE_PEERS = (2, 50)


class Track:
    """How many tokens are still to go round, and the future of the end."""

    def __init__(self, laps: int) -> None:
        self.left = laps
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def another(self) -> bool:
        """Called when a token has made its hops: whether another one follows."""
        self.left -= 1
        if not self.left:
            self.ended.set_result(clock())
        return self.left > 0


def with_code_of_its_own(station: MakeStation) -> MakeStation:
    """Give a class a copy of its handler's code, as a class that was written out would have.

    The classes of a ring are made by one function, so their handlers would share one code object, and with
    it the interpreter's inline caches, which then see as many message classes as there are subsystems.
    """
    kind: Any = station
    handle = kind.handle
    kind.handle = FunctionType(
        handle.__code__.replace(),
        handle.__globals__,
        handle.__name__,
        handle.__defaults__,
        handle.__closure__,
    )
    return station


def synchronous(onward: MakeMessage) -> MakeStation:
    class Station(Actor):
        def __init__(self, track: Track) -> None:
            self.track = track

        def handle(self, ctx: Context[Any, Any, Any], message: Any) -> None:
            left = message.left
            if left:
                ctx.try_send(onward(left - 1))
            elif self.track.another():
                ctx.try_send(onward(HOPS))

    return with_code_of_its_own(Station)


def asynchronous(onward: MakeMessage) -> MakeStation:
    class Station(Actor):
        def __init__(self, track: Track) -> None:
            self.track = track

        async def handle(self, ctx: Context[Any, Any, Any], message: Any) -> None:
            left = message.left
            if left:
                await ctx.send(onward(left - 1))
            elif self.track.another():
                await ctx.send(onward(HOPS))

    return with_code_of_its_own(Station)


class Ring:
    """An orchestra class of `size` subsystems; each consumes a type of its own and sends the next's."""

    def __init__(self, size: int, station: Callable[[MakeMessage], MakeStation]) -> None:
        self.tokens = [
            msgspec.defstruct(f"Token{place}", [("left", int)], frozen=True, gc=False)
            for place in range(size)
        ]
        onward = [self.tokens[(place + 1) % size] for place in range(size)]
        self.stations = {f"station{place}": station(token) for place, token in enumerate(onward)}
        fields = {
            name: subsystem(consumes=consumed, sends=[sent])
            for name, consumed, sent in zip(self.stations, self.tokens, onward, strict=True)
        }
        body = {"__annotations__": dict(self.stations), "__module__": __name__, **fields}
        self.orchestra: Any = type(f"Ring{size}", (), body)

    def decorate(self) -> Any:
        """Make the class an orchestra, once; gives the class."""
        return orchestra(signal=Signal, event=Signal)(self.orchestra)

    def app(self, track: Any) -> Any:
        """An instance with new subsystems."""
        return self.orchestra(**{name: station(track) for name, station in self.stations.items()})

    async def ns_a_hop(self, laps: int) -> float:
        """Send `laps` tokens round, one after the other, each of `HOPS` hops."""
        track = Track(laps)
        async with start(self.app(track)) as running:
            began = clock()
            running.try_send(self.tokens[0](HOPS))
            took = await track.ended - began
        return took / ((HOPS + 1) * laps)


def group(laps: int) -> Group:
    """The cases, each with `laps` tokens in a run, of the peers with fewer."""
    cases: list[Case] = []
    for handlers, station in ((bars.SYNCHRONOUS, synchronous), (bars.ASYNCHRONOUS, asynchronous)):
        for size in SIZES:
            made = Ring(size, station)
            made.decorate()
            cases.append(Case(bars.ring(size, handlers), partial(_run, made.ns_a_hop, laps)))
    beside = list(peers.that_can("ring"))
    cases += [
        _by_peer(peer, size, max(1, laps // 10))
        for size in BESIDE_PEERS
        for peer in beside
        if size <= (peer.most or size)
    ]
    return Group(
        name="ring",
        title=f"one token of {HOPS} hops",
        unit="ns a hop",
        cases=cases,
        leads=[
            Lead(
                bars.fastest_ring(size),
                bars.ring(size, bars.SYNCHRONOUS),
                [bars.ring(size, peer.name) for peer in beside if peer.library],
                judged=not peers.missing(),
            )
            for size in BESIDE_PEERS
        ],
    )


def _by_peer(peer: peers.Peer, size: int, laps: int) -> Case:
    assert peer.ring is not None
    run = partial(peer.ring, size, HOPS, laps)
    return Case(bars.ring(size, peer.name), run, on_loop=peer.on_loop, wall=peer.wall)


def _run(passing: Callable[[int], Coroutine[Any, Any, float]], laps: int) -> float:
    return loops.run(passing(laps))
