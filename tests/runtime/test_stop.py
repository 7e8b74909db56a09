"""Stop: told to all at once, bounded, and it names those that are left."""

import asyncio
import contextlib
import gc
import logging
import math
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from orchestra import Closed, DeadLetter, StopTimeout, orchestra, run, start, subsystem
from tests.runtime.players import (
    Awaits,
    Bell,
    Calls,
    Collects,
    Gated,
    Job,
    Knock,
    Note,
    Runs,
    alone,
    pair,
    told,
    turns,
    until,
    within,
)

ROOT = Path(__file__).parents[2]


class Stubborn:
    """Swallows every cancellation until it is let go."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()

    async def __call__(self, ctx: Any, message: Any = None) -> None:
        while not self.let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.let_go.wait()


def test_what_is_queued_is_dead_lettered_and_the_running_handler_finishes() -> None:
    async def main() -> None:
        worker = Gated()
        letters: list[DeadLetter] = []
        async with start(alone(worker), dead_letters=letters.append) as running:
            for n in range(4):
                await running.send(Job(n))
            await turns()
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            assert told(letters) == [(Job(n), "worker", "stopped") for n in (1, 2, 3)]
            assert not stopping.done()
            worker.gate.set()
            await stopping
            assert worker.hooks[-1] == "stopped", "the result comes after the stop hook"
        assert worker.got == [Job(0)]

    within(10, main())


def test_stop_overtakes_a_flood_of_messages() -> None:
    async def main() -> None:
        def again(ctx: Any, message: Job) -> None:
            ctx.try_send(Job(message.n + 1))

        @orchestra(signal=Bell, event=Knock)
        class Flood:
            worker: Calls = subsystem(consumes=Job, sends=[Job], message_capacity=50_000)

        letters: list[DeadLetter] = []
        async with start(Flood(worker=Calls(again)), dead_letters=letters.append) as running:
            for n in range(40_000):
                running.try_send(Job(n))
            await asyncio.sleep(0.01)
            await asyncio.wait_for(running.stop(), 5)
        meters = running.meters()["worker"]
        assert meters.evicted == len(letters)
        assert meters.queued == 0

    within(10, main())


def test_twenty_slow_subsystems_stop_side_by_side() -> None:
    class Slow(Calls):
        async def stopped(self, ctx: Any) -> None:
            await asyncio.sleep(0.1)

    body: dict[str, Any] = {"__annotations__": {f"part_{n}": Slow for n in range(20)}}
    kinds = [type(f"Job{n}", (), {}) for n in range(20)]
    body |= {f"part_{n}": subsystem(consumes=kinds[n]) for n in range(20)}
    many = orchestra(signal=Bell, event=Knock)(type("Many", (), body))

    async def main() -> None:
        async with start(many(**{f"part_{n}": Slow() for n in range(20)})) as running:
            await turns()
            began = time.monotonic()
            await running.stop()
            assert 0.09 < time.monotonic() - began < 1.5

    within(10, main())


def test_what_a_running_handler_sends_is_accepted_where_there_is_room() -> None:
    outcomes: list[Any] = []

    async def send(ctx: Any, message: Job) -> None:
        await until(lambda: ctx.closed)
        for n in range(3):
            try:
                outcomes.append(await ctx.send(Note(n)))
            except Closed as closed:
                outcomes.append(closed.message)

    async def main() -> None:
        second = Gated()
        letters: list[DeadLetter] = []
        async with start(
            pair(Awaits(send), second, message_capacity=2), dead_letters=letters.append
        ) as running:
            await running.send(Job())
            await turns()
            await running.stop()
        assert outcomes == [True, True, Note(2)]
        assert told(letters) == [(Note(0), "second", "stopped"), (Note(1), "second", "stopped")]
        assert running.meters()["second"].evicted == 2

    within(10, main())


def test_sends_that_wait_when_the_stop_comes_get_closed_and_the_message_is_nowhere() -> None:
    outcomes: list[Any] = []

    async def send(ctx: Any, message: Job) -> None:
        for n in range(9):
            try:
                await ctx.send(Note(n))
            except Closed as closed:
                outcomes.append(closed.message)
                return

    async def main() -> None:
        second = Gated()
        letters: list[DeadLetter] = []
        async with start(
            pair(Awaits(send), second, message_capacity=1), dead_letters=letters.append
        ) as running:
            await running.send(Job())
            await turns()
            outside = asyncio.ensure_future(running.send(Note(100)))
            await turns()
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            second.gate.set()
            await stopping
            with pytest.raises(Closed) as closed:
                await outside
        assert closed.value.message == Note(100)
        assert outcomes == [Note(2)]
        assert second.begun == [Note(0)]
        assert told(letters) == [(Note(1), "second", "stopped")]

    within(10, main())


def test_a_closed_send_that_ends_a_handler_in_a_stop_is_no_failure() -> None:
    async def flood(ctx: Any, message: Job) -> None:
        while True:
            await ctx.send(Note())

    async def main() -> None:
        letters: list[DeadLetter] = []
        async with start(
            pair(Awaits(flood), Gated(), message_capacity=1), dead_letters=letters.append
        ) as running:
            await running.send(Job(7))
            await turns()
            await running.stop(0.05)
        assert (Job(7), "first", "failed") in told(letters)

    within(10, main())


def test_signals_that_came_before_the_stop_are_still_seen() -> None:
    async def main() -> None:
        first, second = Gated(), Runs(None)
        heard: list[Any] = []

        async def live(ctx: Any) -> None:
            await until(lambda: ctx.closed)
            heard.extend([await ctx.recv_signal(), await ctx.recv()])
            with pytest.raises(Closed):
                await ctx.recv_signal()
            with pytest.raises(Closed):
                await ctx.recv()
            with pytest.raises(Closed):
                ctx.try_recv()

        second.do = live
        async with start(pair(first, second), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await running.send(Note())
            await turns()
            await running.broadcast(Bell(1))
            await running.broadcast(Bell(2))
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            first.gate.set()
            await stopping
        assert heard == [Bell(1), Bell(2)]
        assert first.hooks == ["started", Bell(1), Bell(2), "stopped"]

    within(10, main())


def test_at_the_limit_all_that_run_are_cancelled() -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(60))
        letters: list[DeadLetter] = []
        async with start(alone(worker), dead_letters=letters.append) as running:
            await running.send(Job(1))
            await running.send(Job(2))
            await turns()
            began = time.monotonic()
            await running.stop(timeout=0.05)
            assert 0.04 < time.monotonic() - began < 5
        assert told(letters) == [(Job(2), "worker", "stopped"), (Job(1), "worker", "cancelled")]
        assert worker.hooks == ["started", "stopped"]

    within(10, main())


def test_an_error_while_being_cancelled_is_the_orchestras_error() -> None:
    async def cleans_up(ctx: Any, message: Job) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("clean-up")

    async def main() -> None:
        async with start(alone(Awaits(cleans_up)), dead_letters=lambda _: None) as running:
            await running.send(Job(1))
            await turns()
            with pytest.raises(Exception, match="clean-up"):
                await running.stop(timeout=0.02)

    within(10, main())


def test_those_that_swallow_their_cancellation_are_named_with_their_place() -> None:
    async def main() -> None:
        letters: list[DeadLetter] = []
        stubborn = Stubborn()
        began = time.monotonic()
        async with start(pair(Runs(stubborn), Runs(stubborn)), dead_letters=letters.append) as running:
            await turns()
            await running.send(Note(1))
            with pytest.raises(StopTimeout) as late:
                await running.stop(timeout=0.05)
            assert 0.5 < time.monotonic() - began < 5, "one limit for all, and one grace"
            stubborn.let_go.set()
            with pytest.raises(Closed):
                running.try_send(Job())
        assert late.value.subsystems == ("first", "second")
        assert all("test_stop.py" in place and "Stubborn.__call__" in place for place in late.value.places), (
            late.value
        )
        assert late.value.timeout == 0.05
        assert told(letters) == [(Note(1), "second", "stopped")]

    within(10, main())


def test_only_the_stragglers_are_named() -> None:
    async def main() -> None:
        stubborn = Stubborn()
        app = pair(Awaits(lambda ctx, message: asyncio.sleep(60)), Runs(stubborn))
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job())
            await turns()
            with pytest.raises(StopTimeout, match="'second' at") as late:
                await running.stop(timeout=0.02)
            stubborn.let_go.set()
        assert late.value.subsystems == ("second",)

    within(10, main())


def test_an_error_of_a_straggler_is_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    stubborn = Stubborn()

    async def late(ctx: Any, message: Job) -> None:
        await stubborn(ctx)
        raise ValueError("too late")

    async def main() -> None:
        letters: list[DeadLetter] = []
        async with start(alone(Awaits(late)), dead_letters=letters.append) as running:
            await running.send(Job(1))
            await turns()
            with pytest.raises(StopTimeout):
                await running.stop(timeout=0.02)
            stubborn.let_go.set()
            await until(lambda: letters)
        assert told(letters) == [(Job(1), "worker", "failed")]

    with caplog.at_level(logging.ERROR, "orchestra"):
        within(10, main())
    assert "too late" in caplog.text


def test_a_stop_without_any_time_may_be_followed_by_another_one() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker), dead_letters=lambda letter: None) as running:
            await running.send(Job())
            await turns()
            stopping = asyncio.ensure_future(running.stop(timeout=0))
            await asyncio.sleep(0)
            await running.stop(timeout=5)
            await stopping
        assert worker.got == []

    within(10, main())


def test_stop_may_be_called_twice_and_the_shorter_limit_counts() -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(60))
        async with start(alone(worker), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await turns()
            began = time.monotonic()
            await asyncio.gather(running.stop(60), running.stop(0.03), running.stop(30))
            await running.stop()
            assert time.monotonic() - began < 10

    within(20, main())


def test_stop_from_inside_does_not_change_the_limit_of_a_stop() -> None:
    async def main() -> None:
        worker = Gated()

        class Stops(Calls):
            def stopped(self, ctx: Any) -> None:
                ctx.stop()

        async with start(pair(worker, Stops())) as running:
            await running.send(Job())
            await turns()
            stopping = asyncio.ensure_future(running.stop(1000))
            await asyncio.sleep(0.01)
            assert running._ensemble._timeout == 1000
            worker.gate.set()
            await stopping

    within(10, main())


def test_stop_without_a_limit_waits() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker)) as running:
            await running.send(Job())
            await turns()
            stopping = asyncio.ensure_future(running.stop(math.inf))
            await asyncio.sleep(0.02)
            worker.gate.set()
            await stopping
        assert worker.got == [Job()]

    within(10, main())


@pytest.mark.parametrize("verb", ["stop", "wait", "drain"])
def test_waiting_for_the_end_within_a_handler_is_refused(verb: str) -> None:
    errors: list[BaseException] = []
    holder: list[Any] = []

    async def call(ctx: Any, message: Any = None) -> None:
        try:
            await getattr(holder[0], verb)()
        except RuntimeError as refused:
            errors.append(refused)

    async def later(ctx: Any) -> None:
        await until(lambda: holder)
        await call(ctx)

    async def main() -> None:
        async with start(pair(Awaits(call), Runs(later))) as running:
            holder.append(running)
            await running.send(Job())
            await until(lambda: len(errors) == 2)
            assert "open" in repr(running)
        assert all(verb in str(error) for error in errors)

    within(10, main())


def test_cancelling_stop_ends_only_the_wait_in_time() -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker)) as running:
            await running.send(Job())
            await turns()
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(running.stop(), 0.05)
            assert time.monotonic() - began < 5
            worker.gate.set()
            await running.wait()
        assert worker.got == [Job()]

    within(10, main())


def test_leaving_the_block_tells_everyone_to_stop_and_waits() -> None:
    async def main() -> None:
        second = Collects()
        worker = Calls()
        async with start(pair(worker, second)):
            await turns()
        assert second.ended
        assert worker.hooks == ["started", "stopped"]

    within(10, main())


def test_leaving_at_once_still_starts_and_stops_everyone() -> None:
    async def main() -> None:
        worker, second = Calls(), Collects()
        async with start(pair(worker, second)) as running:
            running.try_send(Job())
        assert worker.hooks == ["started", "stopped"]
        assert worker.got == []
        assert second.ended

    logging.getLogger("orchestra").setLevel(logging.ERROR)
    try:
        within(10, main())
    finally:
        logging.getLogger("orchestra").setLevel(logging.NOTSET)


def test_a_cancelled_body_is_bounded_and_the_cancellation_goes_on() -> None:
    async def main() -> None:
        worker = Calls()

        async def body() -> None:
            async with start(alone(worker)):
                await asyncio.sleep(60)

        task = asyncio.ensure_future(body())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert worker.hooks == ["started", "stopped"]

    within(10, main())


def test_a_cancellation_while_leaving_cancels_the_subsystems_and_goes_on() -> None:
    async def main() -> None:
        worker = Awaits(lambda ctx, message: asyncio.sleep(60))

        async def body() -> None:
            async with start(alone(worker), dead_letters=lambda _: None) as running:
                await running.send(Job())
                await turns()

        task = asyncio.ensure_future(body())
        await until(lambda: worker.begun)
        await turns(50)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 5
        assert worker.hooks == ["started", "stopped"]

    within(10, main())


def test_a_cancellation_at_the_moment_of_the_end_is_not_hidden() -> None:
    async def main() -> None:
        for delay in range(30):

            async def body() -> None:
                async with start(alone(Calls())) as running:
                    await running.stop()
                await asyncio.sleep(60)

            task = asyncio.ensure_future(body())
            await turns(delay)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    within(10, main())


def test_after_the_end_the_outside_gets_typed_errors_also_when_the_loop_is_closed() -> None:
    async def main() -> Any:
        async with start(alone(Calls())) as running:
            pass
        return running

    running = within(10, main())
    with pytest.raises(Closed) as closed:
        running.try_send(Job(1))
    assert closed.value.message == Job(1)
    assert running.meters()["worker"].sent == 0
    thread_errors: list[BaseException] = []

    def post() -> None:
        try:
            running.try_send(Job(1))
        except BaseException as error:
            thread_errors.append(error)

    thread = threading.Thread(target=post)
    thread.start()
    thread.join()
    assert isinstance(thread_errors[0], RuntimeError)


def test_another_thread_is_told_that_the_handle_is_not_its_own() -> None:
    async def main() -> None:
        async with start(alone(Calls())) as running:

            def other() -> list[str]:
                texts = []
                for verb in (running.send, running.event, running.broadcast):
                    with pytest.raises((RuntimeError, TypeError)) as refused:
                        asyncio.run(verb(Bell()))
                    texts.append(str(refused.value))
                for verb in (running.stop, running.drain, running.wait):
                    with pytest.raises(RuntimeError) as refused:
                        asyncio.run(verb())
                    texts.append(str(refused.value))
                return texts

            texts = await asyncio.to_thread(other)
            assert sum("thread" in text for text in texts) == 5
            assert "open" in repr(running)
            await running.send(Job())
            await running.drain()

    within(10, main())


def test_the_same_instance_cannot_run_twice_at_once() -> None:
    async def main() -> None:
        app = alone(Calls())
        async with start(app) as running:
            with pytest.raises(RuntimeError, match="runs already"):
                async with start(app):
                    pass
            await running.send(Job())
            await running.drain()
            async with start(app) as again:
                await again.send(Job(2))
                await again.drain()
        assert app.worker.got == [Job(), Job(2)]

    within(10, main())


def test_the_same_instance_runs_again_in_a_second_loop() -> None:
    app = alone(Calls(), message_capacity=1)

    async def main(n: int) -> None:
        async with start(app) as running:
            running.try_send(Job(n))
            await running.drain()

    for n in range(3):
        within(10, main(n))
    run(app)
    assert app.worker.got == [Job(0), Job(1), Job(2)]
    assert app.worker.hooks == ["started", "stopped"] * 4


def test_two_instances_of_one_class_run_side_by_side() -> None:
    async def main() -> None:
        first, second = Calls(), Calls()
        async with start(alone(first)) as one, start(alone(second)) as two:
            await one.send(Job(1))
            await two.send(Job(2))
            await one.drain()
            await two.drain()
        assert (first.got, second.got) == ([Job(1)], [Job(2)])

    within(10, main())


def test_an_orchestra_that_is_dropped_without_leaving_lets_the_loop_end() -> None:
    app = alone(Calls())

    async def main() -> None:
        running = await start(app).__aenter__()
        await running.send(Job())
        await turns()

    within(10, main())
    assert app.worker.got == [Job()]
    within(10, main())
    assert app.worker.got == [Job(), Job()], "it may run again after that"


def test_an_instance_whose_loop_was_closed_in_the_middle_may_run_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = alone(Calls())

    async def enter() -> None:
        running = await start(app).__aenter__()
        await running.send(Job(1))
        await turns()

    async def again() -> None:
        async with start(app) as running:
            await running.send(Job(2))
            await running.drain()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(enter())
    loop.close()
    within(10, again())
    assert app.worker.got == [Job(1), Job(2)]
    with caplog.at_level(logging.CRITICAL, "asyncio"):
        gc.collect()


def test_nothing_of_a_running_orchestra_is_collected() -> None:
    async def main() -> None:
        worker, gate = Gated(), asyncio.Event()

        async def wait(ctx: Any) -> None:
            await gate.wait()
            await ctx.recv()

        second = Runs(wait)
        running = await (starting := start(pair(worker, second))).__aenter__()
        await running.send(Job(1))
        send = running.send
        del running, starting
        for _ in range(10):
            gc.collect()
            await turns(3)
        worker.gate.set()
        gate.set()
        await send(Job(2))
        await until(lambda: len(worker.got) == 2)
        await send.__self__.stop()

    within(10, main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_all_works_with_eager_tasks() -> None:
    async def pass_on(ctx: Any, message: Job) -> None:
        await asyncio.create_task(asyncio.sleep(0))
        await ctx.send(Note(message.n))

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        for kind in (Calls, Collects):
            first, second = Awaits(pass_on), kind()
            async with start(pair(first, second, message_capacity=2)) as running:
                async with asyncio.TaskGroup() as group:
                    for n in range(50):
                        group.create_task(running.send(Job(n)))
                await running.broadcast(Bell())
                await running.drain()
            assert [item for item in second.got if isinstance(item, Note)] == [Note(n) for n in range(50)]
        stubborn = Stubborn()
        async with start(pair(Runs(stubborn), Collects())) as running:
            await turns()
            with pytest.raises(StopTimeout):
                await running.stop(0.02)
            stubborn.let_go.set()

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(asyncio.wait_for(main(), 10))


def test_all_works_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def pass_on(ctx: Any, message: Job) -> None:
        await asyncio.sleep(0)
        await ctx.send(Note(message.n))

    async def main() -> None:
        for kind in (Calls, Collects):
            first, second = Awaits(pass_on), kind()
            async with start(pair(first, second, circle=True, message_capacity=2)) as running:
                await asyncio.gather(*(running.send(Job(n)) for n in range(50)))
                await running.broadcast(Bell())
                await running.drain()
            assert [item for item in second.got if isinstance(item, Note)] == [Note(n) for n in range(50)]
        stubborn = Stubborn()
        async with start(pair(Runs(stubborn), Collects())) as running:
            await turns()
            with pytest.raises(StopTimeout):
                await running.stop(0.02)
            stubborn.let_go.set()
        async with start(alone(Calls())) as running:
            await running.stop(math.inf)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(main(), 10))


def test_two_orchestras_in_two_loops_do_not_disturb_each_other() -> None:
    async def send_on(ctx: Any, message: Job) -> None:
        await asyncio.sleep(0.0005)
        await ctx.send(Note(message.n))

    results: list[Any] = []

    def work() -> None:
        async def main() -> None:
            second = Calls()
            async with start(pair(Awaits(send_on), second, message_capacity=2)) as running:
                for n in range(50):
                    await running.send(Job(n))
                await running.drain()
            results.append(second.got)

        within(20, main())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[Note(n) for n in range(50)]] * 2


def test_a_handler_that_spawns_while_others_wait_for_it_goes_on() -> None:
    async def spawn(ctx: Any, message: Job) -> None:
        await asyncio.gather(*(asyncio.create_task(asyncio.sleep(0.001)) for _ in range(3)))

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Awaits = subsystem(consumes=Job, message_capacity=1)

        async def on_event(self, conductor: Any, event: Knock) -> None:
            for n in range(5):
                await conductor.send(Job(n))

    async def main() -> None:
        app = App(worker=Awaits(spawn))
        async with start(app) as running:
            await running.event(Knock())
            await running.drain()
        assert len(app.worker.got) == 5

    within(10, main())


def test_a_program_that_ends_without_leaving_exits() -> None:
    code = """
        import asyncio
        from orchestra import start
        from tests.runtime.players import Calls, Job, alone

        async def main():
            running = await start(alone(Calls())).__aenter__()
            await running.send(Job())

        asyncio.run(main())
        print("over")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr
