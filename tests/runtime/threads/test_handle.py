"""`running.threadsafe()`: foreign threads, the loop's own, time limits, and after the end."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from orchestra import Closed, Full, OrchestraError, Threadsafe, orchestra, start, subsystem
from tests.runtime.players import Bell, Calls, Gated, Job, Knock, alone, turns, until, within


@orchestra(signal=Bell, event=Knock, event_capacity=1)
class Door:
    worker: Calls = subsystem(consumes=Job)
    events: Any = attrs.Factory(list)

    async def on_event(self, conductor: Any, event: Knock) -> None:
        self.events.append(event)


async def in_thread(work: Callable[..., Any], *args: Any) -> Any:
    return await asyncio.to_thread(work, *args)


def test_every_verb_works_from_a_thread_while_the_loop_is_idle() -> None:
    """C17."""

    async def main() -> None:
        app = Door(worker=Calls())
        async with start(app) as running:
            handle = running.threadsafe()

            def work() -> None:
                assert handle.send(Job(1)) is True
                assert handle.try_send(Job(2)) is True
                handle.broadcast(Bell(3))
                handle.event(Knock(4))
                with pytest.raises(TypeError):
                    handle.broadcast(Job())
                handle.drain()

            await in_thread(work)
            await running.wait()
        assert app.worker.got == [Job(1), Job(2)]
        assert Bell(3) in app.worker.hooks
        assert app.events == [Knock(4)]

    within(10, main())


def test_a_limit_of_time_withdraws_the_message() -> None:
    worker = Gated()

    async def main() -> None:
        async with start(alone(worker, message_capacity=1)) as running:
            handle = running.threadsafe()
            await running.send(Job(0))
            await until(lambda: worker.begun)
            await running.send(Job(1))

            def late() -> None:
                began = time.monotonic()
                with pytest.raises(TimeoutError):
                    handle.send(Job(2), timeout=0.05)
                assert 0.05 <= time.monotonic() - began < 5
                with pytest.raises(Full):
                    handle.try_send(Job(3))

            await in_thread(late)
            worker.gate.set()
            await running.drain()

    within(10, main())
    assert worker.got == [Job(0), Job(1)]


def test_a_loop_that_is_blocked_does_not_hold_up_a_limit() -> None:
    worker = Calls()

    async def main() -> None:
        async with start(alone(worker), slow_handler=None) as running:
            handle = running.threadsafe()
            took: list[float] = []

            def late() -> None:
                began = time.monotonic()
                with pytest.raises(TimeoutError):
                    handle.send(Job(2), timeout=0.05)
                took.append(time.monotonic() - began)

            thread = threading.Thread(target=late)
            thread.start()
            time.sleep(0.5)  # noqa: ASYNC251 - the loop is blocked
            thread.join()
            await turns()
            assert took[0] < 0.4
            assert not worker.got

    within(10, main())


def test_in_the_thread_of_the_loop_it_is_refused() -> None:
    """C25."""

    async def main() -> None:
        async with start(alone(Calls())) as running:
            handle = running.threadsafe()
            assert isinstance(handle, Threadsafe)
            for call in (
                lambda: handle.send(Job()),
                lambda: handle.try_send(Job()),
                handle.drain,
                handle.stop,
            ):
                with pytest.raises(RuntimeError, match="'MainThread' is that of the event loop"):
                    call()

    within(10, main())


def test_who_waits_is_freed_by_the_stop() -> None:
    worker = Gated()

    async def main() -> None:
        errors: list[Any] = []
        async with start(alone(worker, message_capacity=1), dead_letters=lambda _: None) as running:
            handle = running.threadsafe()
            await running.send(Job(0))
            await until(lambda: worker.begun)
            await running.send(Job(1))

            def waits(n: int) -> None:
                try:
                    handle.send(Job(n))
                except Closed as closed:
                    errors.append(closed.message)

            threads = [threading.Thread(target=waits, args=(n,)) for n in (2, 3)]
            for thread in threads:
                thread.start()
            await until(lambda: running.meters()["worker"].waiting == 2)
            worker.gate.set()
        for thread in threads:
            thread.join(5)
            assert not thread.is_alive()
        assert sorted(job.n for job in errors) == [2, 3]

    within(10, main())


def test_after_the_end_and_after_the_loop_there_is_closed_and_no_noise(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """H14."""
    kept: list[Any] = []

    async def main() -> None:
        async with start(alone(Calls())) as running:
            kept.append(running.threadsafe())

    within(10, main())
    for n in range(50):
        with pytest.raises(Closed) as closed:
            _in_another_thread(lambda n=n: kept[0].send(Job(n)))
        assert closed.value.message == Job(n)
    with pytest.raises(Closed):
        _in_another_thread(lambda: kept[0].broadcast(Bell()))
    _in_another_thread(kept[0].stop)
    _in_another_thread(kept[0].drain)
    assert not caplog.records
    assert capsys.readouterr().err == ""


def test_a_loop_that_was_closed_in_the_middle_hangs_no_thread() -> None:
    loop = asyncio.new_event_loop()
    starting = start(alone(Calls()), slow_handler=None)
    running = loop.run_until_complete(starting.__aenter__())
    handle = running.threadsafe()
    errors: list[BaseException] = []

    def waits() -> None:
        try:
            handle.drain()
            handle.send(Job())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=waits)
    thread.start()
    time.sleep(0.05)
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.close()
    thread.join(5)
    assert not thread.is_alive()
    assert len(errors) == 1, "either the failure, for its tasks were cancelled, or Closed"
    assert isinstance(errors[0], OrchestraError)


def _in_another_thread(work: Callable[[], Any]) -> Any:
    result: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    if errors:
        raise errors[0]
    return result[0]


def test_the_loop_may_be_in_any_thread() -> None:
    """K06."""
    worker = Calls()

    async def main() -> None:
        async with start(alone(worker, blocking=True)) as running:
            await running.send(Job(1))
            await running.drain()

    _in_another_thread(lambda: asyncio.run(main()))
    assert worker.got == [Job(1)]
