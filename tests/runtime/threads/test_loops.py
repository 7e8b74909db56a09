"""Several orchestras and several loops: in one loop, each in a thread, with threads of their own."""

import asyncio
import threading
from typing import Any

import pytest

from orchestra import OrchestraError, run, start
from tests.runtime.players import until, within
from tests.runtime.threads.cast import Acts, Lives, ToA, ToB, ToC, trio


def in_new_thread(work: Any, count: int = 1) -> list[Any]:
    """Run a function in threads of its own; their results, or raise the first error."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
    return results


def chain(ctx: Any, message: Any) -> None:
    if message.reply is not None:
        message.reply.send(ctx.ask(lambda reply: ToB(message.n, reply), timeout=10) + message.n)


def count(ctx: Any, message: Any) -> None:
    message.reply.send(message.n)


def test_run_in_a_thread_leaves_signals_alone_and_works() -> None:
    """K06."""

    async def main(running: Any) -> Any:
        return await running.ask(lambda reply: ToA(21, reply), timeout=10)

    assert in_new_thread(lambda: run(trio(Acts(chain), Acts(count)), main), 3) == [42] * 3


def test_run_without_main_in_a_thread_ends_by_itself() -> None:
    def source(ctx: Any) -> None:
        for n in range(50):
            ctx.send(ToB(n))

    b = Acts()
    in_new_thread(lambda: run(trio(Lives(source), b)))
    assert b.got == list(range(50))


def test_run_where_a_loop_runs_offers_start() -> None:
    """K06: as in a notebook."""

    async def main() -> None:
        with pytest.raises(RuntimeError, match="one runs already: use `async with start"):
            run(trio())
        assert await asyncio.to_thread(run, trio()) is None

    within(15, main())


def test_a_failure_of_a_run_in_a_thread_comes_out_there() -> None:
    def wrong(ctx: Any) -> None:
        raise ValueError("mine")

    with pytest.raises(OrchestraError, match="'a' of Trio failed: ValueError: mine"):
        in_new_thread(lambda: run(trio(Lives(wrong))))


def test_two_orchestras_in_one_loop_do_not_touch_each_other() -> None:
    """One is stopped, and fails, while the other goes on; their threads bear the same names."""

    async def main() -> None:
        first, second = trio(Acts(chain), Acts(count)), trio(Acts(chain), Acts(count))
        async with start(first) as one:
            async with start(second) as two:
                asking = [
                    each.ask(lambda reply, n=n: ToA(n, reply)) for n in range(20) for each in (one, two)
                ]
                assert await asyncio.gather(*asking) == [2 * n for n in range(20) for _ in range(2)]
            second.c.do = lambda ctx, message: 1 / 0
            with pytest.raises(OrchestraError, match="ZeroDivisionError"):
                async with start(second, dead_letters=lambda _: None) as two:
                    two.try_send(ToC(1))
                    await two.wait()
            assert await one.ask(lambda reply: ToA(4, reply)) == 8
            await one.drain()

    within(20, main())


def test_threads_of_one_orchestra_talk_to_another_in_the_same_loop() -> None:
    """By recipients: both ways at once."""

    async def main() -> None:
        taken: list[Any] = []

        def crossing(ctx: Any, message: Any) -> None:
            other = next(each for name, each in taken if name != ctx.name)
            message.reply.send(other.blocking.ask(lambda reply: ToB(message.n, reply), timeout=10))

        def give(ctx: Any) -> None:
            taken.append((ctx.name, ctx.recipient(ToB)))

        first = trio(Acts(crossing, started=give), Acts(count))
        second = trio(None, Acts(count), Acts(crossing, started=give))
        async with start(first) as one, start(second) as two:
            await until(lambda: len(taken) == 2)
            asking: list[Any] = [one.ask(lambda reply, n=n: ToA(n, reply)) for n in range(20)]
            asking += [two.ask(lambda reply, n=n: ToC(n, reply)) for n in range(20)]
            assert await asyncio.gather(*asking) == [*range(20)] * 2

    within(20, main())


def test_orchestras_in_the_loops_of_several_threads_talk_by_handles_and_recipients() -> None:
    """A thread of one loop's orchestra waits for the other loop; nobody waits for itself."""
    handles: list[Any] = []
    ready = threading.Barrier(2)
    end = threading.Barrier(2)

    def whole() -> list[Any]:
        def crossing(ctx: Any, message: Any) -> None:
            theirs = next(each for each in handles if each[0] is not own[0])
            message.reply.send(
                theirs[0].ask(lambda reply: ToB(message.n, reply), timeout=10)
                + theirs[1].ask(lambda reply: ToB(message.n, reply), timeout=10)
            )

        own: list[Any] = []
        to_b: list[Any] = []

        async def main() -> list[Any]:
            a = Acts(crossing, started=lambda ctx: to_b.append(ctx.recipient(ToB)))
            async with start(trio(a, Acts(count))) as running:
                await until(lambda: to_b)
                own.append(running.threadsafe())
                handles.append((own[0], to_b[0]))
                await asyncio.to_thread(ready.wait, 10)
                asking = [running.ask(lambda reply, n=n: ToA(n, reply)) for n in range(20)]
                results = await asyncio.gather(*asking)
                await asyncio.to_thread(end.wait, 10)
                await running.drain()
                return results

        return asyncio.run(main())

    assert in_new_thread(whole, 2) == [[2 * n for n in range(20)]] * 2
