"""Handlers that a generator takes over: `async def`s as they are, and whatever else can be awaited."""

import asyncio
import functools
import inspect
from typing import Any, Never

from orchestra import Actor, orchestra, start, subsystem
from orchestra.generate.coroutines import as_coroutine
from tests.runtime.players import Bell, Job, Knock, within


def deferring(method: Any) -> Any:
    """A decorator whose function gives a future, which is no coroutine."""

    @functools.wraps(method)
    def call(*arguments: Any) -> Any:
        return asyncio.ensure_future(method(*arguments))

    return call


class Plain(Actor[Job, Never]):
    async def handle(self, ctx: Any, message: Job) -> None: ...


class Deferring(Actor[Job, Never]):
    def __init__(self) -> None:
        self.got: list[Job] = []

    @deferring
    async def handle(self, ctx: Any, message: Job) -> None:
        await asyncio.sleep(0)
        self.got.append(message)


def test_an_async_def_is_left_as_it_is() -> None:
    handle = Plain().handle
    assert as_coroutine(handle) is handle


def test_a_handler_that_gives_another_awaitable_is_awaited() -> None:
    actor = Deferring()
    assert inspect.iscoroutinefunction(as_coroutine(actor.handle))

    @orchestra(signal=Bell, event=Knock)
    class One:
        actor: Deferring = subsystem()

    async def main() -> None:
        async with start(One(actor=actor)) as running:
            await running.send(Job())
            await running.send(Job())
            await running.drain()

    within(10, main())
    assert len(actor.got) == 2
