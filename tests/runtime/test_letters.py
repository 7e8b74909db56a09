"""Dead letters: each thing that will never be handled, once, with its reason."""

import asyncio
import logging
from typing import Any

import msgspec
import pytest

from orchestra import DeadLetter, OrchestraError, Priority, orchestra, start, subsystem
from orchestra.runtime.letters import Letters
from tests.runtime.clockwork import run as virtually
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


def test_by_default_the_first_of_each_kind_is_logged_and_then_their_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        worker = Gated()
        async with start(alone(worker)) as running:
            for n in range(5):
                await running.send(Job(n))
            await turns()
            stopping = asyncio.ensure_future(running.stop())
            await turns()
            worker.gate.set()
            await stopping

    with caplog.at_level(logging.WARNING, "orchestra"):
        within(10, main())
    assert [record.getMessage() for record in caplog.records if record.name == "orchestra"] == [
        "Job to 'worker' was not handled: stopped",
        "3 more messages were not handled by 'worker': stopped",
    ]


def test_the_log_of_a_flood_is_one_line_each_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    lines: list[tuple[float, str]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        class Times(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                lines.append((round(loop.time(), 1), record.getMessage()))

        handler = Times()
        logging.getLogger("orchestra").addHandler(handler)
        letters = Letters(None)
        for second in range(25):
            for _ in range(100):
                letters.bury(DeadLetter(Job(second), "worker", "failed"))
            letters.bury(DeadLetter(Job(second), "other", "finished"))
            await asyncio.sleep(1)
        await asyncio.sleep(60)
        letters.bury(DeadLetter(Job(), "worker", "failed"))
        letters.bury(DeadLetter(Job(), "worker", "failed"))
        await asyncio.sleep(1)
        letters.close()
        letters.bury(DeadLetter(Job(), "worker", "failed"))
        logging.getLogger("orchestra").removeHandler(handler)

    virtually(main())
    first = "Job to 'worker' was not handled: failed"
    assert [line for line in lines if "worker" in line[1]] == [
        (0.0, first),
        (10.0, "999 more messages were not handled by 'worker': failed"),
        (20.0, "1000 more messages were not handled by 'worker': failed"),
        (30.0, "500 more messages were not handled by 'worker': failed"),
        (85.0, first),
        (86.0, "1 more message was not handled by 'worker': failed"),
        (86.0, first),
    ]
    assert [when for when, text in lines if "other" in text] == [0.0, 10.0, 20.0, 30.0]


def test_a_hook_that_raises_is_logged_and_the_rest_still_come(caplog: pytest.LogCaptureFixture) -> None:
    got: list[Any] = []

    def hook(letter: DeadLetter) -> None:
        got.append(letter.message)
        if letter.message == Job(0):
            raise ValueError("hook")

    async def main() -> None:
        async with start(alone(Calls()), dead_letters=hook) as running:
            for n in range(4):
                running.try_send(Job(n))
            await running.stop()

    with caplog.at_level(logging.ERROR, "orchestra"):
        within(10, main())
    assert got == [Job(n) for n in range(4)]
    assert "dead_letters hook failed" in caplog.text
    assert "ValueError: hook" in caplog.text


def test_a_hook_that_would_have_to_be_awaited_is_refused() -> None:
    async def hook(letter: DeadLetter) -> None: ...

    with pytest.raises(TypeError, match="plain function"):
        start(alone(Calls()), dead_letters=hook)


def test_a_hook_may_send_again_from_within() -> None:
    async def leave(ctx: Any) -> None:
        await ctx.recv()

    async def main() -> None:
        second, letters = Calls(), []
        async with start(pair(Runs(leave), second), dead_letters=lambda letter: hook(letter)) as running:

            def hook(letter: DeadLetter) -> None:
                letters.append(letter)
                running.try_send(Note(letter.message.n))

            for n in range(4):
                running.try_send(Job(n))
            await until(lambda: len(letters) == 3)
            await running.drain()
        assert second.got == [Note(1), Note(2), Note(3)]

    within(10, main())


def test_reasons_tell_what_happened() -> None:
    async def handle(ctx: Any, message: Job) -> None:
        if message.n == 0:
            await asyncio.sleep(60)

    async def main() -> None:
        letters: list[DeadLetter] = []
        async with start(alone(Awaits(handle)), dead_letters=letters.append) as running:
            for n in range(2):
                await running.send(Job(n))
            await turns()
            await running.stop(0.02)
        assert told(letters) == [(Job(1), "worker", "stopped"), (Job(0), "worker", "cancelled")]

    within(10, main())


def test_all_lanes_and_all_receivers_are_emptied() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Gated = subsystem(consumes=Job, message_capacity={Priority.HIGH: 3, Priority.NORMAL: 3})
        one: Gated = subsystem(subscribes=[Note])
        two: Gated = subsystem(subscribes=[Note])

    async def main() -> None:
        letters: list[DeadLetter] = []
        app = App(worker=Gated(), one=Gated(), two=Gated())
        async with start(app, dead_letters=letters.append) as running:
            for n in range(3):
                running.try_send(Job(n))
                running.try_send(Job(10 + n), priority=Priority.HIGH)
                running.try_send(Note(n))
            await running.stop()
        assert sorted((letter.subsystem, letter.message.n) for letter in letters) == sorted(
            [("worker", n) for n in (0, 1, 2, 10, 11, 12)]
            + [(name, n) for name in ("one", "two") for n in range(3)]
        )

    within(10, main())


def test_the_hook_never_sees_a_box() -> None:
    class Heavy(msgspec.Struct):
        items: list[int]

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class App:
        worker: Calls = subsystem(consumes=Heavy)

    async def main() -> None:
        letters: list[DeadLetter] = []
        async with start(App(worker=Calls()), dead_letters=letters.append) as running:
            running.try_send(Heavy([1]))
            await running.stop()
        assert [letter.message for letter in letters] == [Heavy([1])]

    within(10, main())


def test_a_letter_of_a_failed_message_carries_the_error() -> None:
    def fail(ctx: Any, message: Any) -> None:
        raise ValueError("x")

    async def main() -> None:
        letters: list[DeadLetter] = []
        with pytest.raises(OrchestraError):
            async with start(pair(Calls(fail), Collects()), dead_letters=letters.append) as running:
                await running.send(Job())
                await running.wait()
        assert repr(letters[0].error) == "ValueError('x')"

    within(10, main())
