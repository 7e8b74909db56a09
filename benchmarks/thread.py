"""Messages between the loop and a thread, beside the queues of janus and culsans that are made for it."""

import asyncio
import threading
from collections.abc import Callable
from time import perf_counter_ns as clock
from typing import Any, Never, Protocol

import culsans
import janus

from benchmarks import bars, loops
from benchmarks.harness import Case, Group
from benchmarks.messages import U8, Signal
from benchmarks.send import CAPACITY, Handler, Sender, Stopwatch
from orchestra import Actor, BlockingContext, Subsystem, orchestra, start, subsystem


class Watch(Stopwatch):
    """A stopwatch on the wall."""


class Sleeper(Subsystem):
    """Receives in a thread."""

    def __init__(self, count: int, watch: Stopwatch) -> None:
        self.count = count
        self.watch = watch

    def run(self, ctx: BlockingContext[Any, Never, Any]) -> None:
        left = self.count
        for _ in ctx:
            left -= 1
            if not left:
                break
        self.watch.ended = clock()


class SleepingSender(Subsystem):
    """Sends from a thread."""

    def __init__(self, count: int, watch: Stopwatch) -> None:
        self.count = count
        self.watch = watch

    def run(self, ctx: BlockingContext[Never, U8, Any]) -> None:
        self.watch.began = clock()
        for _ in range(self.count):
            ctx.send(U8(7))


class Echo(Subsystem):
    """Sends back from its thread what it receives."""

    def run(self, ctx: BlockingContext[U8, Block, Any]) -> None: ...
