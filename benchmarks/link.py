"""Messages from one process to another over a link, beside plain Zenoh and its default callback.

The clock is one on the wall, and the processes may use all cores. Each run starts the other process anew; the
clock runs from the first send until the other one has said that it has handled the last.
"""

import asyncio
import os
import signal
import socket
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from time import perf_counter_ns as clock
from typing import Any

from benchmarks import bars
from benchmarks.harness import Case, Group
from benchmarks.link_parts import DATA, Bulk, Heard, Question, Sender, Start, Urgent, plain_session, wire
from orchestra import Context, Remote, start
from orchestra.link import ZenohLink

Script = Callable[["Run"], Awaitable[float]]
URGENT_CAPACITY = 1024
"""The capacity of the lane that is flooded while urgent messages are timed."""


class Run:
    """One run: the context of the sender, and the other process."""

    def __init__(self, ctx: Context[Heard, Any, Any], at: str, other: "subprocess.Popen[str]") -> None:
        self.ctx = ctx
        self.at = at
        self.other = other

    async def begin(self, count: int) -> None:
        """Wait until the other process is there and knows how many messages will come."""
        await self.ctx.send(Start(count))
        await self.heard()

    async def heard(self) -> Heard:
        """What the other process says next."""
        while not isinstance(item := await self.ctx.recv(), Heard):
            pass
        return item


@contextmanager
def _on_all_cores() -> Generator[None]:
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _other(role: str, at: str, *words: object) -> Generator["subprocess.Popen[str]"]:
    """The other process, once it runs; killed at the end if it does not end by itself."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.link_parts", role, at, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{probe.getsockname()[1]}"


def linked(capacity: int, script: Script) -> float:
    """Let `script` drive the sender, with the receiver in another process."""

    async def main() -> float:
        at = _address()
        figure = asyncio.get_running_loop().create_future()

        async def drive(ctx: Context[Heard, Any, Any]) -> None:
            figure.set_result(await script(Run(ctx, at, other)))

        with _other("taker", at, capacity) as other:
            app = wire(capacity)(sender=Sender(drive), taker=Remote())
            async with start(app, link=ZenohLink(listen=[at]), dead_letters=lambda letter: None) as running:
                await asyncio.wait(
                    [figure, asyncio.ensure_future(running.wait())], return_when=asyncio.FIRST_COMPLETED
                )
                await running.stop(timeout=3)
        return float(figure.result())

    with _on_all_cores():
        return asyncio.run(main())


def rate(count: int) -> Script:
    """Messages a second."""

    async def script(run: Run) -> float:
        await run.begin(count)
        send = run.ctx.send
        began = clock()
        for _ in range(count):
            await send(Bulk(DATA))
        await run.heard()
        return count * 1e9 / (clock() - began)

    return script


def fullest(count: int) -> Script:
    """The most messages that the inbox of the receiver has held."""

    async def script(run: Run) -> float:
        await run.begin(count)
        for _ in range(count):
            await run.ctx.send(Bulk(DATA))
        return float((await run.heard()).peak)

    return script


def urgent(percent: int, seconds: float) -> Script:
    """Milliseconds from the send of an urgent message to its handler, while bulk always waits for room."""

    async def script(run: Run) -> float:
        await run.begin(0)

        async def flood() -> None:
            while True:
                await run.ctx.send(Bulk(DATA))

        flooding = asyncio.ensure_future(flood())
        end = clock() + seconds * 1e9
        while clock() < end:
            await run.ctx.send(Urgent(clock()))
            await asyncio.sleep(0.005)
        flooding.cancel()
        await run.ctx.send(Start(-1))
        delays = (await run.heard()).delays
        return statistics.quantiles(delays, n=100, method="inclusive")[percent - 1] / 1e6

    return script


async def recovery(run: Run) -> float:
    """Milliseconds from the return of a killed receiver, its `start` done, until it has handled a message."""
    await run.begin(1)
    run.other.send_signal(signal.SIGKILL)
    await asyncio.to_thread(run.other.wait)
    with _other("taker", run.at, URGENT_CAPACITY) as again:
        assert again.stdout is not None
        await asyncio.to_thread(again.stdout.readline)
        began = clock()
        while not await _handled(run):
            pass
        took = (clock() - began) / 1e6
        again.kill()
    return took


async def _handled(run: Run) -> bool:
    """Send one message, and tell whether it was soon handled: what went to the killed one is lost."""
    await run.ctx.send(Start(1))
    try:
        async with asyncio.timeout(0.05):
            await run.heard()
    except TimeoutError:
        return False
    return True


def round_trip(count: int) -> Script:
    """Microseconds from a question to its answer, one at a time."""

    async def script(run: Run) -> float:
        await run.begin(0)
        await run.ctx.ask(Question)
        began = clock()
        for _ in range(count):
            await run.ctx.ask(Question)
        return (clock() - began) / count / 1e3

    return script


def plain_rate(count: int) -> float:
    """Messages a second by `put`, into a deque and one wake-up of the loop for many."""
    with _on_all_cores():
        at = _address()
        with plain_session(listen=at) as session, _other("plain", at, count) as other:
            done = asyncio.run(_plain(session, other, count, DATA))
    return count * 1e9 / done


async def _plain(session: Any, other: "subprocess.Popen[str]", count: int, payload: bytes) -> int:
    import zenoh

    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    session.declare_subscriber("plain/done", lambda sample: loop.call_soon_threadsafe(ended.set))
    assert other.stdout is not None
    await asyncio.to_thread(other.stdout.readline)
    put = session.declare_publisher("plain/data", congestion_control=zenoh.CongestionControl.BLOCK).put
    await asyncio.sleep(0.1)
    began = clock()
    for _ in range(count):
        put(payload)
    await ended.wait()
    return clock() - began


def plain_round_trip(count: int) -> float:
    """Microseconds for a put there and one back, one at a time."""

    async def main(session: Any, other: "subprocess.Popen[str]") -> float:
        loop, answers = asyncio.get_running_loop(), asyncio.Queue[None]()
        session.declare_subscriber(
            "plain/back", lambda sample: loop.call_soon_threadsafe(answers.put_nowait, None)
        )
        assert other.stdout is not None
        await asyncio.to_thread(other.stdout.readline)
        put = session.declare_publisher("plain/ping").put
        await asyncio.sleep(0.1)
        began = clock()
        for _ in range(count):
            put(b"7")
            await answers.get()
        took = (clock() - began) / count / 1e3
        put(b"")
        return took

    with _on_all_cores():
        at = _address()
        with plain_session(listen=at) as session, _other("echo", at) as other:
            return asyncio.run(main(session, other))


def groups(count: int, million: int, seconds: float, rounds: int) -> list[Group]:
    """The groups. `count` messages make a run of the rate, `million` that of the fullest inbox."""

    def at(capacity: int) -> Callable[[], float]:
        messages = min(count, max(500, count * capacity // 256))
        return lambda: linked(capacity, rate(messages))

    full = count >= bars.FULL_LINKED
    rates = [
        *(
            Case(bars.linked(capacity), at(capacity), against=bars.PLAIN_ZENOH, judged=full)
            for capacity in bars.LINKED
        ),
        Case(bars.PLAIN_ZENOH, lambda: plain_rate(count), against=bars.PLAIN_ZENOH),
    ]
    inbox = Case(bars.FULLEST, lambda: linked(bars.LINKED[-1], fullest(million)) / bars.LINKED[-1])
    delays = [
        Case(name, lambda percent=percent: linked(URGENT_CAPACITY, urgent(percent, seconds)))  # type: ignore[misc]  # each has its own
        for name, percent in ((bars.URGENT_HALF, 50), (bars.URGENT_MOST, 99))
    ]
    trips = [
        Case(bars.LINKED_ASK, lambda: linked(64, round_trip(count // 50)), against=bars.PLAIN_TRIP),
        Case(bars.PLAIN_TRIP, lambda: plain_round_trip(count // 50), against=bars.PLAIN_TRIP),
    ]
    back = Case(bars.RECOVERY, lambda: linked(URGENT_CAPACITY, recovery))
    over = "to another process"

    def group(
        name: str, title: str, unit: str, cases: list[Case], ratio: str = "", many: int = rounds
    ) -> Group:
        return Group(
            name,
            title,
            unit,
            cases,
            relative=bool(ratio),
            ratio=ratio,
            wall=True,
            rounds=many,
            one_loop=True,
            cold=True,
        )

    return [
        group("rate", f"16 bytes {over}", "messages/s", rates, "× plain Zenoh"),
        group("ask", f"there and back, {over}", "µs", trips, "× plain Zenoh"),
        group("urgent", f"urgent under a flood, {over}", "ms", delays),
        group("recovery", "a part is killed and returns", "ms", [back]),
        group("inbox", f"{million:,} messages", "× its capacity", [inbox], many=1),
    ]
