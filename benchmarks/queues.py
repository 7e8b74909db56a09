"""The works on anything that has an asynchronous `put` and `get`, in tasks of asyncio."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeAlias

import attrs

from benchmarks import loops
from benchmarks.floor import clock
from benchmarks.messages import U8
from benchmarks.peers import Peer, TwoSided

CAPACITY = 1024


class Queue(Protocol):
    """What the queues have in common."""

    async def put(self, item: Any, /) -> None: ...
    async def get(self) -> Any: ...


Make: TypeAlias = Callable[[int], Queue]
"""Makes a queue of this capacity."""


async def send_ns(queue: Queue, count: int) -> float:
    """Nanoseconds for a message from one task to another through `queue`."""

    async def produce() -> None:
        for _ in range(count):
            await queue.put(U8(7))

    async def consume() -> int:
        left = count
        while left:
            await queue.get()
            left -= 1
        return clock()

    consumer = asyncio.create_task(consume())
    began = clock()
    await produce()
    return (await consumer - began) / count


async def fanout_ns(queues: Sequence[Queue], count: int) -> float:
    """Nanoseconds for each message and subscriber: one queue and one task for each subscriber."""

    async def consume(queue: Queue) -> None:
        for _ in range(count):
            await queue.get()

    consumers = [asyncio.create_task(consume(queue)) for queue in queues]
    began = clock()
    for _ in range(count):
        message = U8(7)
        for queue in queues:
            await queue.put(message)
    await asyncio.wait(consumers)
    return (clock() - began) / count / len(queues)


async def ring_ns(queues: Sequence[Queue], hops: int, laps: int) -> float:
    """Nanoseconds a hop for a token that goes round tasks with a queue each."""
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    left = laps

    async def station(here: Queue, onward: Queue) -> None:
        nonlocal left
        while True:
            token = await here.get()
            if token.value:
                await onward.put(U8(token.value - 1))
                continue
            left -= 1
            if left:
                await onward.put(U8(hops))
            else:
                done.set_result(clock())

    pairs = zip(queues, [*queues[1:], queues[0]], strict=True)
    async with tasks([station(here, onward) for here, onward in pairs]):
        began = clock()
        await queues[0].put(U8(hops))
        took = await done - began
    return took / ((hops + 1) * laps)


@attrs.frozen
class Question:
    """A question with the future of its answer."""

    answer: asyncio.Future[int]


async def ask_ns(queue: Queue, count: int) -> float:
    """Nanoseconds from a question in `queue` to its answer in a future, and to the next question."""
    loop = asyncio.get_running_loop()

    async def answering() -> None:
        while True:
            question = await queue.get()
            question.answer.set_result(7)

    async with tasks([answering()]):
        began = clock()
        for _ in range(count):
            question = Question(loop.create_future())
            await queue.put(question)
            await question.answer
        took = clock() - began
    return took / count


async def start_ms(make: Make, size: int) -> float:
    """Milliseconds to start and stop `size` tasks, each of which waits for a queue of its own."""

    async def wait(queue: Queue) -> None:
        while True:
            await queue.get()

    began = clock()
    async with tasks([wait(make(CAPACITY)) for _ in range(size)]):
        await asyncio.sleep(0)
    return (clock() - began) / 1e6


@asynccontextmanager
async def tasks(coroutines: Sequence[Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    """Tasks that run meanwhile and are cancelled at the end."""
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(coroutine) for coroutine in coroutines]
        yield
        for task in made:
            task.cancel()


def peer(
    name: str,
    make: Make,
    *,
    start: Callable[[int], float] | None = None,
    two_sided: Callable[[int], TwoSided] | None = None,
    library: bool = True,
    slower: int = 1,
) -> Peer:
    """A peer that is a queue."""

    def send(count: int) -> float:
        return _run(lambda: send_ns(make(CAPACITY), count))

    def ring(size: int, hops: int, laps: int) -> float:
        return _run(lambda: ring_ns([make(CAPACITY) for _ in range(size)], hops, laps))

    def fanout(subscribers: int, count: int) -> float:
        return _run(lambda: fanout_ns([make(CAPACITY) for _ in range(subscribers)], count))

    def ask(count: int) -> float:
        return _run(lambda: ask_ns(make(CAPACITY), count))

    return Peer(
        name,
        send=send,
        ring=ring,
        fanout=fanout,
        ask=ask,
        start=start,
        two_sided=two_sided,
        library=library,
        slower=slower,
    )


def _run(work: Callable[[], Coroutine[Any, Any, float]]) -> float:
    """Queues are made in the loop: some bind themselves to it."""

    async def within() -> float:
        return await work()

    return loops.run(within())
