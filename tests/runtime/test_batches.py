"""A synchronous Actor takes its messages in batches: what its handler does in the midst of one."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra import (
    Actor,
    Closed,
    DeadLetter,
    DropOldest,
    OrchestraError,
    Restart,
    orchestra,
    start,
    subsystem,
)
from tests.runtime.players import Bell, Job, Knock, Note, within

Act = Callable[[Any, Any], object]

SIZES = [1, 2, 3, 32, 33, 64, 65, 70, 150]


class Does(Actor):
    """Does something as it handles one of its messages."""

    def __init__(self, at: int, act: Act) -> None:
        self.at = at
        self.act = act
        self.got: list[Any] = []
        self.running: Any = None

    def handle(self, ctx: Any, message: Any) -> None:
        self.got.append(message)
        if message == Job(self.at):
            self.act(self, ctx)

    def on_signal(self, ctx: Any, signal: Bell) -> None:
        self.got.append(signal)


@orchestra(signal=Bell, event=Knock)
class App:
    worker: Does = subsystem(consumes=Job, sends=[Job], message_capacity=200)
    other: Does = subsystem(consumes=Note, sends=[Job])


def run(worker: Does, size: int) -> tuple[list[DeadLetter], Any]:
    """Let the worker find so many messages at once; give the dead letters and the meters at the end."""
    letters: list[DeadLetter] = []

    async def main() -> Any:
        app = App(worker=worker, other=Does(-1, lambda worker, ctx: None))
        async with start(app, dead_letters=letters.append) as running:
            worker.running = running
            await asyncio.sleep(0.01)
            for n in range(size):
                running.try_send(Job(n))
            for _ in range(20):
                await asyncio.sleep(0)
            meters = running.meters()["worker"]
            await running.stop()
        return meters

    return letters, within(10, main())


def run_to_failure(worker: Does, size: int) -> tuple[list[DeadLetter], Any]:
    """As `run`, for a worker that fails at one of them: nothing is ready any more at the end."""
    letters: list[DeadLetter] = []

    async def main() -> Any:
        app = App(worker=worker, other=Does(-1, lambda worker, ctx: None))
        with pytest.raises(OrchestraError):
            async with start(app, dead_letters=letters.append) as running:
                await asyncio.sleep(0.01)
                for n in range(size):
                    running.try_send(Job(n))
                await running.wait()
        assert not running._ensemble.scheduler.ready
        return running.meters()["worker"]

    return letters, within(10, main())


def inbox_of(worker: Any) -> Any:
    return worker.running._ensemble.inboxes["worker"]


@pytest.mark.parametrize("size", SIZES)
def test_everything_is_handled_in_order_and_counted(size: int) -> None:
    worker = Does(-1, lambda worker, ctx: None)
    letters, meters = run(worker, size)
    assert worker.got == [Job(n) for n in range(size)]
    assert not letters
    assert meters.received == size
    assert not meters.queued


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("at", [0, 1, 31, 63])
def test_a_signal_goes_before_the_next_message(size: int, at: int) -> None:
    worker = Does(at, lambda worker, ctx: inbox_of(worker).signal(Bell()))
    _, meters = run(worker, size)
    expected: list[Any] = [Job(n) for n in range(size)]
    if at < size:
        expected.insert(at + 1, Bell())
    assert worker.got == expected
    assert meters.received == size


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("end", "reason"),
    [(lambda worker, ctx: ctx.finish(), "finished"), (lambda worker, ctx: ctx.stop(), "stopped")],
)
def test_no_message_follows_the_end_and_the_others_are_dead_letters(size: int, end: Act, reason: str) -> None:
    worker = Does(1, end)
    letters, _ = run(worker, size)
    assert worker.got == [Job(n) for n in range(min(size, 2))]
    assert [(letter.message, letter.reason) for letter in letters] == [
        (Job(n), reason) for n in range(2, size)
    ]


@pytest.mark.parametrize("size", [1, 2, 70])
def test_a_stop_begins_when_the_handler_has_returned_whoever_is_ready(size: int) -> None:
    worker, letters = Does(0, lambda worker, ctx: ctx.stop()), list[DeadLetter]()
    other = Does(-1, lambda worker, ctx: None)

    async def main() -> None:
        async with start(App(worker=worker, other=other), dead_letters=letters.append) as running:
            await asyncio.sleep(0.01)
            running._ensemble.scheduler.budget = 64  # as it is when all are quick
            for n in range(size):
                running.try_send(Job(n))
            for _ in range(100):
                running.try_send(Note())
            await running.wait()

    within(10, main())
    assert worker.got == [Job(0)]
    assert other.got == []
    assert len(letters) == size - 1 + 100


@pytest.mark.parametrize("size", [5, 40, 64, 150])
def test_the_meters_tell_the_longest_that_the_queue_was(size: int) -> None:
    def burst(worker: Any, ctx: Any) -> None:
        for n in range(size):
            ctx.try_send(Job(1000 + n))

    _, meters = run(Does(0, burst), 1)
    assert max(lane.peak for lane in meters.lanes.values()) >= size


@pytest.mark.parametrize("size", SIZES)
def test_what_it_sends_to_itself_comes_last(size: int) -> None:
    worker = Does(0, lambda worker, ctx: ctx.try_send(Job(1000)))
    _, meters = run(worker, size)
    assert worker.got == [*(Job(n) for n in range(size)), Job(1000)]
    assert meters.received == size + 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("at", [0, 1, 31, 63])
def test_a_handler_that_fails_has_counted_its_message(size: int, at: int) -> None:
    def fail(worker: Any, ctx: Any) -> None:
        raise RuntimeError

    if at < size:
        worker = Does(at, fail)
        letters, meters = run_to_failure(worker, size)
        assert meters.received == at + 1
        assert [letter.message for letter in letters] == [Job(n) for n in range(at, size)]


def send_and_fail(worker: Any, ctx: Any) -> None:
    ctx.try_send(Job(1000))
    raise RuntimeError


@pytest.mark.parametrize("size", SIZES)
def test_what_a_handler_sends_to_itself_before_it_fails_is_not_handled(size: int) -> None:
    worker = Does(0, send_and_fail)
    letters, _ = run_to_failure(worker, size)
    assert worker.got == [Job(0)]
    assert [letter.message for letter in letters] == [*(Job(n) for n in range(size)), Job(1000)]


@pytest.mark.parametrize("size", SIZES)
def test_after_a_restart_it_handles_what_it_sent_to_itself_before_it_failed(size: int) -> None:
    @orchestra(signal=Bell, event=Knock)
    class Again:
        worker: Does = subsystem(
            consumes=Job, sends=[Job], message_capacity=200, restart=Restart(backoff=0.0)
        )

    worker, letters = Does(0, send_and_fail), list[DeadLetter]()

    async def main() -> None:
        async with start(Again(worker=worker), dead_letters=letters.append) as running:
            await asyncio.sleep(0.01)
            for n in range(size):
                running.try_send(Job(n))
            await running.drain()

    within(10, main())
    assert worker.got == [*(Job(n) for n in range(size)), Job(1000)]
    assert [letter.message for letter in letters] == [Job(0)]


def test_a_message_for_which_several_are_thrown_out_does_not_break_the_batch() -> None:
    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class Heavy:
        worker: Does = subsystem(consumes=bytes, sends=[bytes], capacity_bytes=1000, overflow=DropOldest())

    class Sends(Does):
        def handle(self, ctx: Any, message: bytes) -> None:
            self.got.append(len(message))
            if len(self.got) == 1:
                assert ctx.try_send(bytes(900))

    worker = Sends(0, lambda worker, ctx: None)

    async def main() -> Any:
        async with start(Heavy(worker=worker)) as running:
            await asyncio.sleep(0.01)
            for _ in range(8):
                running.try_send(bytes(100))
            await running.drain()
            return running.meters()["worker"]

    meters = within(10, main())
    assert worker.got[0] == 100
    assert worker.got[-1] == 900
    assert len(worker.got) + meters.dropped == 9


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=60),
    st.sampled_from(["nothing", "signal", "send", "finish"]),
    st.integers(0, 60),
)
def test_nothing_is_lost_or_doubled(gaps: list[int], act: str, at: int) -> None:
    acts: dict[str, Act] = {
        "nothing": lambda worker, ctx: None,
        "signal": lambda worker, ctx: inbox_of(worker).signal(Bell()),
        "send": lambda worker, ctx: ctx.try_send(Job(1000)),
        "finish": lambda worker, ctx: ctx.finish(),
    }
    worker = Does(at, acts[act])
    letters: list[DeadLetter] = []
    sent: list[Job] = []

    async def main() -> None:
        app = App(worker=worker, other=Does(-1, lambda worker, ctx: None))
        async with start(app, dead_letters=letters.append) as running:
            worker.running = running
            for n, gap in enumerate(gaps):
                try:
                    await running.send(Job(n))
                except Closed:
                    break
                sent.append(Job(n))
                for _ in range(gap):
                    await asyncio.sleep(0)
            await running.drain()

    within(10, main())
    handled = [item for item in worker.got if isinstance(item, Job) and item != Job(1000)]
    assert handled + [letter.message for letter in letters if letter.message != Job(1000)] == sent
    extra = [Job(1000)] if act == "send" and at < len(sent) else []
    assert [item for item in worker.got if item == Job(1000)] == extra
