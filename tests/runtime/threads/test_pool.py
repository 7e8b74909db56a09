"""`ctx.run_blocking`: whose threads, how many, what comes back, and how it ends."""

import asyncio
import contextvars
import gc
import re
import threading
import time
from typing import Any

import pytest

from orchestra import Closed, Drop, Priority, StopTimeout, Subsystem, start
from tests.runtime.players import (
    Awaits,
    Calls,
    Collects,
    Gated,
    Job,
    Note,
    Runs,
    alone,
    pair,
    turns,
    until,
    within,
)

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def in_run(do: Any, **options: Any) -> Any:
    """Run an orchestra of one `run`, and give what it gave."""
    results: list[Any] = []

    async def run(ctx: Any) -> None:
        results.append(await do(ctx))

    async def main() -> None:
        async with start(alone(Runs(run)), **options) as running:
            await running.drain()

    within(20, main())
    return results[0]


def test_results_errors_and_context_variables_come_back() -> None:
    def fails(error: BaseException) -> None:
        raise error

    async def do(ctx: Any) -> Any:
        variable.set("seen")
        assert await ctx.run_blocking(lambda a, *, b: (a, b, variable.get()), 1, b=2) == (1, 2, "seen")
        with pytest.raises(ValueError, match="mine"):
            await ctx.run_blocking(fails, ValueError("mine"))
        with pytest.raises(RuntimeError, match="StopIteration") as caught:
            await ctx.run_blocking(fails, StopIteration(5))
        assert isinstance(caught.value.__cause__, StopIteration)
        return await ctx.run_blocking(lambda: threading.current_thread().name)

    assert in_run(do) == "orchestra:pool-1"
    assert not [thread for thread in threading.enumerate() if "pool" in thread.name]


def test_a_hundred_blocking_calls_leave_the_default_executor_alone() -> None:
    """K01, and K09: nothing of it is held weakly."""

    async def do(ctx: Any) -> Any:
        most = 0
        running = 0
        lock = threading.Lock()

        def work(n: int) -> int:
            nonlocal most, running
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.005)
            with lock:
                running -= 1
            return n

        calls = [asyncio.ensure_future(ctx.run_blocking(work, n)) for n in range(100)]
        await asyncio.sleep(0)
        gc.collect()
        began = time.monotonic()
        await asyncio.to_thread(lambda: None)
        quick = time.monotonic() - began
        assert await asyncio.gather(*calls) == list(range(100))
        assert quick < 0.1
        return most

    assert 1 <= in_run(do, pool_threads=4) <= 4


def test_calls_beyond_the_threads_wait_in_order() -> None:
    async def do(ctx: Any) -> Any:
        order: list[int] = []
        await asyncio.gather(*[ctx.run_blocking(order.append, n) for n in range(50)])
        return order

    assert in_run(do, pool_threads=1) == list(range(50))


def test_a_cancelled_caller_is_free_at_once_and_a_drain_waits_for_the_function() -> None:
    go = threading.Event()
    done: list[int] = []

    def work() -> None:
        go.wait(5)
        done.append(1)

    async def run(ctx: Any) -> None:
        call = asyncio.ensure_future(ctx.run_blocking(work))
        waiting = asyncio.ensure_future(ctx.run_blocking(done.append, 2))
        await asyncio.sleep(0.01)
        call.cancel()
        waiting.cancel()
        began = time.monotonic()
        await asyncio.gather(call, waiting, return_exceptions=True)
        assert time.monotonic() - began < 1

    async def main() -> None:
        async with start(alone(Runs(run)), pool_threads=1) as running:
            asyncio.get_running_loop().call_later(0.1, go.set)
            await running.drain()
            assert done == [1]

    within(10, main())


def test_a_function_that_runs_on_is_named() -> None:
    go = threading.Event()

    def stays() -> None:
        go.wait(20)

    async def main() -> None:
        worker = Awaits(lambda ctx, message: ctx.run_blocking(stays))
        async with start(alone(worker)) as running:
            await running.send(Job())
            await until(lambda: worker.begun)
            await asyncio.sleep(0.05)
            await running.stop(0.05)

    with pytest.raises(StopTimeout) as late:
        within(10, main())
    go.set()
    assert late.value.subsystems == ("worker",)
    assert late.value.places[0].startswith("thread orchestra:pool-1 at ")
    assert "stays" in late.value.places[0]


def test_a_function_written_in_c_that_runs_on_is_named_too() -> None:
    class Worker(Awaits):
        async def handle(self, ctx: Any, message: Job) -> None:
            self.begun.append(message)
            await ctx.run_blocking(time.sleep, 1.5)

    async def main() -> None:
        worker = Worker()
        async with start(alone(worker)) as running:
            await running.send(Job())
            await until(lambda: worker.begun)
            await asyncio.sleep(0.05)
            await running.stop(0.05)

    with pytest.raises(StopTimeout) as late:
        within(10, main())
    assert late.value.places == ("thread orchestra:pool-1 in time.sleep",)


def test_after_the_end_it_is_closed() -> None:
    async def main() -> None:
        kept: list[Any] = []

        async def run(ctx: Any) -> None:
            kept.append(ctx)

        async with start(alone(Runs(run))) as running:
            await running.drain()
        with pytest.raises(Closed):
            await kept[0].run_blocking(lambda: None)

    within(10, main())


@pytest.mark.parametrize("given", [0, 2.5, True, "4"])
def test_a_wrong_number_of_threads_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"pool_threads is .*: give a whole number of 1 or more"):
        start(alone(Awaits()), pool_threads=given)


@pytest.mark.parametrize(
    "use",
    [
        lambda ctx: ctx.try_send(Note(1), priority=Priority.NORMAL),
        lambda ctx: ctx.send(Note(1), overflow=Drop()).send(None),
        lambda ctx: ctx.send(Note(1)).send(None),
        lambda ctx: ctx.ask(lambda reply: Note(1)).send(None),
    ],
    ids=["try_send", "send", "send to a full lane", "ask"],
)
def test_the_slow_ways_of_the_context_of_the_loop_refuse_another_thread_while_the_loop_is_awake(
    use: Any,
) -> None:
    errors: list[str] = []
    receiver = Gated()

    async def run(ctx: Any) -> None:
        def work() -> None:
            with pytest.raises(RuntimeError) as caught:
                use(ctx)
            errors.append(str(caught.value))

        for n in range(3):  # one is handled, two fill the lane
            await ctx.send(Note(n))
        await turns()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(5)
        receiver.gate.set()

    async def main() -> None:
        async with start(pair(Runs(run), receiver, message_capacity=2)) as running:
            await running.drain()

    within(20, main())
    assert receiver.got == [Note(0), Note(1), Note(2)], "nothing was sent"
    assert len(errors) == 1
    assert re.fullmatch(
        r"the context belongs to the thread of its event loop, and this is 'Thread-.*': "
        r"give the field blocking=True, or use running\.threadsafe\(\)",
        errors[0],
    )


@pytest.mark.parametrize("second", [Calls, Collects])
def test_a_send_by_the_context_of_the_loop_from_a_thread_arrives_and_is_refused(second: Any) -> None:
    """The loop sleeps meanwhile, and nothing else would wake it."""
    receiver = second()
    errors: list[str] = []

    async def run(ctx: Any) -> None:
        def work() -> None:
            time.sleep(0.05)  # the loop has come to rest
            with pytest.raises(RuntimeError) as caught:
                ctx.try_send(Note(1))
            errors.append(str(caught.value))
            began = time.monotonic()
            while not receiver.got and time.monotonic() < began + 5:
                time.sleep(0.001)
            errors.extend([] if receiver.got else ["it did not arrive"])

        await ctx.run_blocking(work)

    async def main() -> None:
        async with start(pair(Runs(run), receiver)) as running:
            await running.drain()

    within(20, main())
    assert receiver.got == [Note(1)]
    assert errors == [
        (
            "the context belongs to the thread of its event loop, and this is 'orchestra:pool-1': "
            "give the field blocking=True, or use running.threadsafe(). The message was sent"
        )
    ]


@pytest.mark.parametrize("blocking", [False, True])
def test_only_a_plain_function_runs_in_a_thread(blocking: bool) -> None:
    async def sleeps() -> None: ...

    told: list[str] = []

    class InThread(Subsystem):
        def run(self, ctx: Any) -> None:
            for given in (sleeps, sleeps(), None):
                with pytest.raises(TypeError) as caught:
                    ctx.run_blocking(given)
                told.append(str(caught.value))

    async def run(ctx: Any) -> None:
        for given in (sleeps, sleeps(), None):
            with pytest.raises(TypeError) as caught:
                await ctx.run_blocking(given)
            told.append(str(caught.value))

    async def main() -> None:
        async with start(alone(InThread() if blocking else Runs(run), blocking=blocking)) as running:
            await running.drain()

    within(20, main())
    plain = "run_blocking takes a function and its arguments, run_blocking(time.sleep, 1), not "
    assert told[0] == "run_blocking takes a plain function, and sleeps is asynchronous: await it"
    assert told[1].startswith(f"{plain}<coroutine object ")
    assert told[2] == f"{plain}None"
