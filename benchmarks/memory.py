"""What waits costs memory: idle parts, queued messages, and what an inbox keeps after a burst.

Each run is a process of its own: `python -m benchmarks.memory WHAT COUNT` prints one figure. Memory is what
`tracemalloc` counts, which knows nothing of the stacks of threads. Where many subsystems are started, they
are the fields of one class, or those of many instances of a class of 100.
"""

import asyncio
import gc
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from time import perf_counter, process_time
from typing import Any, Never

import msgspec

from benchmarks import bars, loops, peers
from benchmarks.harness import Case, Group
from benchmarks.messages import U8, Signal
from orchestra import Actor, Context, Subsystem, orchestra, start, subsystem

EACH_CLASS = 100
"""Fields of the class that many are instances of."""

IDLE_FOR = 1.0
"""Seconds for which the processor is watched."""


class Waits(Actor):
    """Waits for a message that does not come."""

    def handle(self, ctx: Context[Any, Never, Any], message: Any) -> None: ...


class WaitsLater(Actor):
    """The same with an asynchronous handler."""

    async def handle(self, ctx: Context[Any, Never, Any], message: Any) -> None: ...


class WaitsItself(Subsystem):
    """The same with a `run` of its own."""

    async def run(self, ctx: Context[Any, Never, Any]) -> None:
        async for _ in ctx:
            pass


def app_class(kind: type, size: int) -> Any:
    """An orchestra class of `size` subsystems in a ring, each with a message type of its own."""
    messages = [
        msgspec.defstruct(f"M{place}", [("value", int)], frozen=True, gc=False) for place in range(size)
    ]
    fields = {
        f"part{place}": subsystem(consumes=message, sends=[messages[(place + 1) % size]])
        for place, message in enumerate(messages)
    }
    body = {"__module__": __name__, "__annotations__": dict.fromkeys(fields, kind), **fields}
    return orchestra(signal=Signal, event=Signal)(type(f"Of{size}", (), body))


@asynccontextmanager
async def many(kind: type, count: int, size: int) -> AsyncGenerator[Callable[[], Coroutine[Any, Any, None]]]:
    """`count` subsystems, `size` of them in an orchestra; gives what starts them."""
    made = app_class(kind, size)

    async def begin() -> None:
        for _ in range(count // size):
            app = made(**{f"part{place}": kind() for place in range(size)})
            await stack.enter_async_context(start(app))
        await asyncio.sleep(0)

    async with AsyncExitStack() as stack:
        yield begin


async def started_ms(kind: type, count: int, size: int) -> float:
    async with many(kind, count, size) as begin:
        gc.collect()
        began = perf_counter()
        await begin()
        return (perf_counter() - began) * 1000


async def idle_percent(kind: type, count: int, size: int) -> float:
    """How much of a core they take while nothing happens."""
    async with many(kind, count, size) as begin:
        await begin()
        gc.collect()
        await asyncio.sleep(0.5)
        before = process_time()
        await asyncio.sleep(IDLE_FOR)
        return 100 * (process_time() - before) / IDLE_FOR


def traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def subsystem_bytes(kind: type, count: int, size: int) -> float:
    async with many(kind, size, size) as once:
        await once()
    async with many(kind, count, size) as begin:
        tracemalloc.start()
        before = traced()
        await begin()
        return (traced() - before) / count


async def task_bytes(count: int) -> float:
    """A task that waits for a queue of its own."""

    async def wait(queue: asyncio.Queue[U8]) -> None:
        await queue.get()

    tracemalloc.start()
    before = traced()
    tasks = [asyncio.create_task(wait(asyncio.Queue())) for _ in range(count)]
    await asyncio.sleep(0)
    found = (traced() - before) / count
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return found


async def pykka_bytes(count: int) -> float:
    from benchmarks.peers.pykka_actors import Answers, stopped_at_the_end

    tracemalloc.start()
    before = traced()
    with stopped_at_the_end():
        for _ in range(count):
            Answers.start()
        return (traced() - before) / count


async def xoscar_bytes(count: int) -> float:
    from benchmarks.peers.xoscar_actors import Answers, pool

    async with pool() as create:
        tracemalloc.start()
        before = traced()
        for place in range(count):
            await create(f"answers{place}", Answers)
        return (traced() - before) / count


@orchestra(signal=Signal, event=Signal, message_capacity=1_000_000)
class Alone:
    part: Waits = subsystem(consumes=U8)


async def queued_bytes(count: int) -> float:
    """Bytes for each message that waits, beside the message itself: all are one and the same."""
    async with start(Alone(part=Waits()), dead_letters=lambda letter: None) as running:
        message = U8(7)
        tracemalloc.start()
        before = traced()
        for _ in range(count):
            running.try_send(message)
        return (traced() - before) / count


async def kept_bytes(count: int) -> float:
    """Bytes that are still there when the messages have been handled."""
    async with start(Alone(part=Waits())) as running:
        tracemalloc.start()
        running.try_send(U8(7))
        await asyncio.sleep(0.01)
        before = traced()
        for _ in range(count):
            running.try_send(U8(7))
        await asyncio.sleep(0.5)
        assert not running.meters()["part"].queued
        return max(0, traced() - before)


async def queue_bytes(count: int) -> float:
    queue: asyncio.Queue[U8] = asyncio.Queue()
    message = U8(7)
    tracemalloc.start()
    before = traced()
    for _ in range(count):
        queue.put_nowait(message)
    return (traced() - before) / count


FIGURES: Mapping[str, Callable[[int], Coroutine[Any, Any, float]]] = {
    "idle": lambda count: subsystem_bytes(Waits, count, EACH_CLASS),
    "idle-later": lambda count: subsystem_bytes(WaitsLater, count, EACH_CLASS),
    "idle-run": lambda count: subsystem_bytes(WaitsItself, count, EACH_CLASS),
    "idle-asyncio": task_bytes,
    "idle-pykka": pykka_bytes,
    "idle-xoscar": xoscar_bytes,
    "start-instances": lambda count: started_ms(Waits, count, EACH_CLASS),
    "start-fields": lambda count: started_ms(Waits, count, count),
    "processor": lambda count: idle_percent(Waits, count, EACH_CLASS),
    "queued": queued_bytes,
    "queued-asyncio": queue_bytes,
    "kept": kept_bytes,
}
"""What each run finds."""


def _in_a_process(what: str, count: int) -> float:
    words = [sys.executable, "-m", __spec__.name, what, str(count)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def _case(name: str, what: str, count: int) -> Case:
    return Case(name, partial(_in_a_process, what, count))


def groups(rounds: int, *, quick: bool = False) -> Sequence[Group]:
    """All the groups; with `quick` many subsystems are not also the fields of one class."""
    installed = {peer.name for peer in peers.found()}
    group = partial(Group, relative=False, wall=True, one_loop=True, cold=True, rounds=rounds)
    beside = [
        _case(bars.idle(f"an actor of {name}"), f"idle-{name}", 500)
        for name in ("pykka", "xoscar")
        if name in installed
    ]
    in_one_class = [] if quick else [_case(f"{bars.START_MANY}, fields of one class", "start-fields", 10_000)]
    return [
        group(
            name="idle",
            title="what waits for messages",
            unit="bytes",
            cases=[
                _case(bars.IDLE_SUBSYSTEM, "idle", 1_000),
                _case(f"{bars.IDLE_SUBSYSTEM}, asynchronous handler", "idle-later", 1_000),
                _case(f"{bars.IDLE_SUBSYSTEM}, a run of its own", "idle-run", 1_000),
                _case(bars.idle("a task with an asyncio.Queue"), "idle-asyncio", 1_000),
                *beside,
            ],
        ),
        group(
            name="many",
            title="many subsystems in one process",
            unit="ms",
            cases=[_case(bars.START_MANY, "start-instances", 10_000), *in_one_class],
        ),
        group(
            name="rest",
            title="many subsystems at rest",
            unit="% of a core",
            cases=[_case(bars.IDLE_CPU, "processor", 10_000)],
        ),
        group(
            name="queued",
            title="what waits in an inbox, by reference",
            unit="bytes",
            cases=[
                _case(bars.QUEUED, "queued", 100_000),
                _case(f"{bars.QUEUED}, asyncio.Queue", "queued-asyncio", 100_000),
                _case(bars.KEPT, "kept", 100_000),
            ],
        ),
    ]


def main(words: Sequence[str]) -> None:
    """Make one run and print its figure."""
    what, count = words
    print(loops.run(FIGURES[what](int(count))))


if __name__ == "__main__":
    main(sys.argv[1:])
