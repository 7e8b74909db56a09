"""An orchestra inside the time limits, task groups and cancellations of others: nothing is eaten."""

import asyncio
from typing import Any

import pytest

from orchestra import OrchestraError, Restart, start
from tests.runtime.clockwork import run as virtually
from tests.runtime.players import Calls, Gated, Job, Runs, alone, turns, until, within


def fail(ctx: Any, message: Any) -> None:
    raise ValueError("inside")


def test_a_failure_within_a_task_group_comes_out_beside_the_errors_of_its_siblings() -> None:
    async def orchestrate() -> None:
        async with start(alone(Calls(fail)), dead_letters=lambda _: None) as running:
            await running.send(Job())
            await running.wait()

    async def sibling() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise LookupError("beside")

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as group:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(sibling())
                tasks.create_task(orchestrate())
        kinds = sorted(type(error).__name__ for error in group.value.exceptions)
        assert kinds == ["LookupError", "OrchestraError"]

    virtually(main())


def test_an_orchestra_whose_sibling_fails_is_stopped_and_hides_nothing() -> None:
    worker = Calls()

    async def orchestrate() -> None:
        async with start(alone(worker)) as running:
            await running.wait()

    async def sibling() -> None:
        await turns()
        raise LookupError("beside")

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as group:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(orchestrate())
                tasks.create_task(sibling())
        assert [type(error) for error in group.value.exceptions] == [LookupError]
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_a_task_group_around_start_in_one_task_sees_the_failure() -> None:
    async def main() -> None:
        with pytest.raises(ExceptionGroup) as group:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(asyncio.sleep(60))
                async with start(alone(Calls(fail)), dead_letters=lambda _: None) as running:
                    await running.send(Job())
                    await running.wait()
        assert [type(error) for error in group.value.exceptions] == [OrchestraError]
        assert not asyncio.current_task().cancelling()  # type: ignore[union-attr]

    virtually(main())


@pytest.mark.parametrize("verb", ["drain", "stop", "wait"])
@pytest.mark.parametrize("way", ["timeout", "wait_for", "wait_for task"])
def test_a_time_limit_around_a_wait_is_kept_though_handlers_take_longer(verb: str, way: str) -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker)) as running:
            await running.send(Job())
            await turns()
            call = getattr(running, verb)
            with pytest.raises(TimeoutError):
                if way == "timeout":
                    async with asyncio.timeout(0.05):
                        await call()
                else:
                    await asyncio.wait_for(
                        call() if way == "wait_for" else asyncio.ensure_future(call()), 0.05
                    )
            assert not worker.got
            worker.gate.set()
        assert worker.got == [Job()], "what was under way was not harmed"

    within(10, main())


def test_a_cancellation_at_the_moment_in_which_a_wait_completes_is_not_hidden() -> None:
    async def main() -> None:
        for delay in range(25):
            after: list[str] = []

            async def body(after: list[str] = after) -> None:
                async with start(alone(Calls())) as running:
                    async with asyncio.timeout(5):
                        await running.drain()
                await asyncio.sleep(0)
                await asyncio.sleep(60)
                after.append("went on")

            task = asyncio.ensure_future(body())
            await turns(delay)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not after

    within(10, main())


def test_a_cancelled_body_ends_a_backoff_and_spawned_tasks_within_bounds() -> None:
    async def live(ctx: Any) -> None:
        ctx.spawn(asyncio.sleep(1e6))
        raise ValueError

    async def main() -> None:
        loop = asyncio.get_running_loop()
        lives = Runs(live)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                async with start(alone(lives, restart=Restart(backoff=60))):
                    await asyncio.sleep(60)
        assert loop.time() == pytest.approx(1)

    virtually(main())


def test_a_second_cancellation_cancels_what_runs_at_once() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        worker = Calls(lambda ctx, message: ctx.spawn(asyncio.sleep(1e6)))

        async def body() -> None:
            async with start(alone(worker)) as running:
                await running.send(Job())
                await asyncio.sleep(60)

        task = asyncio.ensure_future(body())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        assert not task.done(), "the spawned task may finish within the limit"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert loop.time() == pytest.approx(2)
        assert worker.hooks == ["started", "stopped"]

    virtually(main())


@pytest.mark.parametrize("restart", [None, Restart()])
def test_a_stop_has_ended_only_when_the_last_hook_has(restart: Restart | None) -> None:
    class Slow(Calls):
        async def stopped(self, ctx: Any) -> None:
            await asyncio.sleep(3)
            self.hooks.append("stopped")

    async def main() -> None:
        worker = Slow(lambda ctx, message: ctx.stop())
        async with start(alone(worker, restart=restart)) as running:
            await running.send(Job())
            await asyncio.gather(running.wait(), running.wait())
            assert worker.hooks == ["started", "stopped"]

    virtually(main())


def test_a_drain_with_a_limit_ends_a_backoff_and_lets_tasks_finish_as_a_stop_does() -> None:
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(5)
        done.append("worked")

    def handle(ctx: Any, message: Job) -> None:
        if message.n:
            raise ValueError
        ctx.spawn(work())

    async def main() -> None:
        loop = asyncio.get_running_loop()
        app = alone(Calls(handle), restart=Restart(backoff=60))
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job(0))
            await running.drain(timeout=2)
            assert loop.time() == pytest.approx(5)
            assert done == ["worked"]
        async with start(app, dead_letters=lambda _: None) as running:
            await running.send(Job(1))
            await running.drain(timeout=2)
            assert loop.time() == pytest.approx(7)

    virtually(main())


def test_a_thousand_restarts_leave_nothing_behind() -> None:
    class Spawns(Calls):
        def handle(self, ctx: Any, message: Any) -> None:
            ctx.spawn(asyncio.sleep(60))
            raise ValueError

    async def main() -> None:
        app = alone(Spawns(), restart=Restart(limit=2000, backoff=0))
        async with start(app, dead_letters=lambda _: None) as running:
            for n in range(1000):
                await running.send(Job(n))
            await until(lambda: running.meters()["worker"].restarts == 1000, 30)
            await turns()
            assert len(asyncio.all_tasks()) == 2

    within(30, main())
