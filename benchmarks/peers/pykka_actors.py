"""Actors of pykka: a thread each, `tell` from one to the other, `ask` for an answer."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter_ns as clock
from typing import Any

import pykka

from benchmarks.messages import U8
from benchmarks.peers import Peer


class Counter(pykka.ThreadingActor):
    """Counts what it is told."""

    def __init__(self, count: int, done: threading.Semaphore) -> None:
        super().__init__()
        self.left = count
        self.done = done

    def on_receive(self, message: Any) -> None:
        self.left -= 1
        if not self.left:
            self.done.release()


class Sender(pykka.ThreadingActor):
    """Tells all counters `count` messages."""

    def on_receive(self, message: Any) -> None:
        counters, count = message
        for _ in range(count):
            told = U8(7)
            for counter in counters:
                counter.tell(told)


class Station(pykka.ThreadingActor):
    """Passes the token on; it learns first to whom."""

    def __init__(self, done: threading.Semaphore) -> None:
        super().__init__()
        self.onward: Any = None
        self.done = done

    def on_receive(self, message: Any) -> None:
        if self.onward is None:
            self.onward = message
        elif message.value:
            self.onward.tell(U8(message.value - 1))
        else:
            self.done.release()


class Answers(pykka.ThreadingActor):
    def on_receive(self, message: Any) -> int:
        return 7


@contextmanager
def stopped_at_the_end() -> Generator[None]:
    try:
        yield
    finally:
        pykka.ActorRegistry.stop_all()


def fanout(subscribers: int, count: int) -> float:
    done = threading.Semaphore(0)
    with stopped_at_the_end():
        counters = [Counter.start(count, done) for _ in range(subscribers)]
        sender = Sender.start()
        began = clock()
        sender.tell((counters, count))
        for _ in counters:
            done.acquire()
        return (clock() - began) / count / subscribers


def ring(size: int, hops: int, laps: int) -> float:
    done = threading.Semaphore(0)
    with stopped_at_the_end():
        stations = [Station.start(done) for _ in range(size)]
        for place, station in enumerate(stations):
            station.tell(stations[(place + 1) % size])
        began = clock()
        for _ in range(laps):
            stations[0].tell(U8(hops))
            done.acquire()
        return (clock() - began) / ((hops + 1) * laps)


def ask(count: int) -> float:
    with stopped_at_the_end():
        answers = Answers.start()
        began = clock()
        for _ in range(count):
            answers.ask(U8(7))
        return (clock() - began) / count


def start(size: int) -> float:
    began = clock()
    with stopped_at_the_end():
        for _ in range(size):
            Answers.start()
    return (clock() - began) / 1e6


PEER = Peer(
    "pykka",
    send=lambda count: fanout(1, count),
    ring=ring,
    fanout=fanout,
    ask=ask,
    start=start,
    on_loop=False,
    wall=True,
    slower=10,
)
