"""Actors of thespian on its simple system base, which runs them all in this process, one message at a time.

Its other bases give each actor a process, and each message goes through a socket. The clock starts when an
actor is told to begin, and stops when the system has no more messages: then `tell` returns.
"""

# It has no types, and may not be installed.
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportIncompatibleMethodOverride=false

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from thespian.actors import Actor, ActorSystem

from benchmarks.floor import clock
from benchmarks.messages import U8
from benchmarks.peers import Peer


class Counter(Actor):
    """Counts what it gets."""

    count = 0

    def receiveMessage(self, message: Any, sender: Any) -> None:  # noqa: N802 - the name is thespian's
        self.count += 1


class Sender(Actor):
    """Sends so many messages to each counter."""

    def receiveMessage(self, message: Any, sender: Any) -> None:  # noqa: N802
        if isinstance(message, tuple):
            counters, count = message
            for _ in range(count):
                sent = U8(7)
                for counter in counters:
                    self.send(counter, sent)


class Station(Actor):
    """Passes the token on; it learns first to whom."""

    onward: Any = None

    def receiveMessage(self, message: Any, sender: Any) -> None:  # noqa: N802
        if not isinstance(message, U8):
            self.onward = message
        elif message.value:
            self.send(self.onward, U8(message.value - 1))


class Answers(Actor):
    def receiveMessage(self, message: Any, sender: Any) -> None:  # noqa: N802
        self.send(sender, 7)


@contextmanager
def system() -> Generator[Any]:
    made = ActorSystem("simpleSystemBase")
    try:
        yield made
    finally:
        made.shutdown()


def fanout(subscribers: int, count: int) -> float:
    with system() as actors:
        counters = [actors.createActor(Counter) for _ in range(subscribers)]
        sender = actors.createActor(Sender)
        began = clock()
        actors.tell(sender, (counters, count))
        return (clock() - began) / count / subscribers


def ring(size: int, hops: int, laps: int) -> float:
    with system() as actors:
        stations = [actors.createActor(Station) for _ in range(size)]
        for place, station in enumerate(stations):
            actors.tell(station, stations[(place + 1) % size])
        began = clock()
        for _ in range(laps):
            actors.tell(stations[0], U8(hops))
        return (clock() - began) / ((hops + 1) * laps)


def ask(count: int) -> float:
    with system() as actors:
        answers = actors.createActor(Answers)
        began = clock()
        for _ in range(count):
            actors.ask(answers, U8(7))
        return (clock() - began) / count


def start(size: int) -> float:
    began = clock()
    with system() as actors:
        for _ in range(size):
            actors.createActor(Counter)
    return (clock() - began) / 1e6


PEER = Peer(
    "thespian",
    send=lambda count: fanout(1, count),
    ring=ring,
    fanout=fanout,
    ask=ask,
    start=start,
    on_loop=False,
    slower=10,
)
