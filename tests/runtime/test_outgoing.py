"""What leaves the orchestra: in order, bounded, to the end."""

import asyncio
from typing import Any

import pytest

from orchestra import Closed, OrchestraError, orchestra, run, start, subsystem
from tests.runtime.players import Awaits, Bell, Calls, Job, Knock, Note, Runs, alone, turns, within


def shop(worker: Any, **options: Any) -> Any:
    """An orchestra whose worker consumes `Job` and sends `Note` out."""
    kind = type(worker)

    @orchestra(signal=Bell, event=Knock, outgoing=Note, **options)
    class Shop:
        worker: kind = subsystem(consumes=Job, sends=[Note])

    return Shop(worker=worker)


async def answer(ctx: Any, message: Job) -> None:
    await ctx.send(Note(message.n))


def test_results_come_in_order_and_the_loop_ends_when_nobody_can_send_more() -> None:
    async def main() -> None:
        async with start(shop(Awaits(answer))) as running:
            for n in range(10):
                await running.send(Job(n))
            draining = asyncio.ensure_future(running.drain())
            assert [note async for note in running.outgoing] == [Note(n) for n in range(10)]
            await draining

    within(10, main())


def test_a_batch_larger_than_the_capacity_completes_while_somebody_reads() -> None:
    async def main() -> None:
        async with start(shop(Awaits(answer), message_capacity=4)) as running:

            async def submit() -> None:
                for n in range(200):
                    await running.send(Job(n))
                await running.drain()

            submitting = asyncio.ensure_future(submit())
            assert [note.n async for note in running.outgoing] == list(range(200))
            await submitting

    within(10, main())


def test_who_sends_out_waits_while_nobody_reads_and_a_drain_waits_for_it() -> None:
    async def main() -> None:
        worker = Awaits(answer)
        async with start(shop(worker, message_capacity=2)) as running:
            for n in range(5):
                await running.send(Job(n))
                await turns(3)
            draining = asyncio.ensure_future(running.drain())
            await turns()
            assert len(worker.got) == 2
            assert not draining.done()
            assert [note.n async for note in running.outgoing] == list(range(5))
            await draining

    within(10, main())


def test_what_is_queued_can_still_be_read_after_the_end() -> None:
    async def main() -> None:
        async with start(shop(Calls(lambda ctx, message: ctx.try_send(Note(message.n))))) as running:
            for n in range(3):
                await running.send(Job(n))
            await running.drain()
            assert running.outgoing.try_recv() == Note(0)
        assert await running.outgoing.recv() == Note(1)
        assert running.outgoing.try_recv() == Note(2)
        with pytest.raises(Closed) as closed:
            await running.outgoing.recv()
        assert closed.value.message is None
        with pytest.raises(Closed):
            running.outgoing.try_recv()
        assert [note async for note in running.outgoing] == []

    within(10, main())


def test_what_fits_in_a_stop_still_comes_out_and_the_rest_is_refused() -> None:
    outcomes: list[Any] = []

    async def flood(ctx: Any, message: Job) -> None:
        while not ctx.closed:
            await asyncio.sleep(0)
        for n in range(4):
            try:
                outcomes.append(await ctx.send(Note(n)))
            except Closed as closed:
                outcomes.append(closed.message)

    async def main() -> None:
        async with start(shop(Awaits(flood), message_capacity=2)) as running:
            reading = asyncio.ensure_future(running.outgoing.recv())
            await running.send(Job())
            await turns()
            await running.stop()
            rest = [note async for note in running.outgoing]
            assert [await reading, *rest] == [Note(0), Note(1)]
        assert outcomes == [True, True, Note(2), Note(3)]

    within(10, main())


def test_a_reader_that_waits_sees_the_end_of_a_stop_and_of_a_failure() -> None:
    async def fail(ctx: Any, message: Job) -> None:
        raise ValueError

    async def main() -> None:
        async with start(shop(Awaits(answer))) as running:
            reading = asyncio.ensure_future(running.outgoing.recv())
            await turns()
            await running.stop()
            with pytest.raises(Closed):
                await reading
        async with start(shop(Awaits(fail)), dead_letters=lambda _: None) as running:
            reading = asyncio.ensure_future(running.outgoing.recv())
            await running.send(Job())
            with pytest.raises(Closed) as closed:
                await reading
            with pytest.raises(OrchestraError) as failure:
                await running.wait()
            assert closed.value.__cause__ is failure.value

    within(10, main())


def test_it_ends_in_an_open_orchestra_when_all_senders_have_finished() -> None:
    async def three(ctx: Any) -> None:
        for n in range(3):
            await ctx.send(Note(n))

    @orchestra(signal=Bell, event=Knock, outgoing=Note)
    class Two:
        source: Runs = subsystem(sends=[Note])
        other: Calls = subsystem(consumes=Job)

    async def main() -> None:
        async with start(Two(source=Runs(three), other=Calls())) as running:
            assert [note.n async for note in running.outgoing] == [0, 1, 2]
            await running.send(Job())

    within(10, main())


def test_a_cancelled_read_loses_nothing() -> None:
    async def main() -> None:
        async with start(shop(Awaits(answer))) as running:
            for n in range(20):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(running.outgoing.recv(), 0.0005)
                await running.send(Job(n))
                assert await running.outgoing.recv() == Note(n)
            assert running.outgoing.try_recv() is None

    within(10, main())


def test_main_collects_the_results_of_a_run() -> None:
    async def main(running: Any) -> int:
        for n in range(5):
            await running.send(Job(n))
        return sum([(await running.outgoing.recv()).n for _ in range(5)])

    assert run(shop(Awaits(answer)), main) == 10


def test_an_orchestra_without_outgoing_says_so() -> None:
    async def main() -> None:
        async with start(alone(Calls())) as running:
            with pytest.raises(TypeError, match="declares no outgoing"):
                running.outgoing

    within(10, main())
