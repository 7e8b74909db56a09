"""What went wrong with a send is gone with its error: a reply in it is not kept for the garbage collector."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestra import Closed, Deadlock, Full, NoReply, orchestra, start, subsystem
from tests.runtime.asking import Acts, ToA, ToAll, ToB, ToC, trio
from tests.runtime.clockwork import run
from tests.runtime.players import Bell, Knock, turns


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Canary: ...


async def sleep(ctx: Any, message: Any) -> None:
    await asyncio.sleep(1000)


async def send(ctx: Any, kind: type) -> None:
    await ctx.send(kind())


async def try_send(ctx: Any, kind: type) -> None:
    ctx.try_send(kind())


async def send_by_recipient(ctx: Any, kind: type) -> None:
    await ctx.recipient(kind).send(kind())


async def ask(ctx: Any, kind: type) -> None:
    await ctx.ask(kind)


async def ask_within(ctx: Any, kind: type) -> None:
    await ctx.ask(kind, timeout=1)


async def wait_long_enough(ctx: Any, kind: type) -> None:
    async with asyncio.timeout(1):
        await ctx.send(kind())


@pytest.mark.parametrize("kind", [ToB, ToAll])
@pytest.mark.parametrize("ended", [False, True], ids=["full", "ended"])
@pytest.mark.parametrize("verb", [send, try_send, send_by_recipient, ask, ask_within, wait_long_enough])
def test_an_error_of_a_send_is_gone_when_it_has_been_caught(
    verb: Callable[[Any, type], Any], ended: bool, kind: type
) -> None:
    @orchestra(signal=Bell, event=Knock)
    class Trio:
        a: Acts = subsystem(consumes=ToA, sends=[ToB, ToAll])
        b: Acts = subsystem(consumes=ToB, subscribes=[ToAll], message_capacity=1)
        c: Acts = subsystem(subscribes=[ToAll], message_capacity=1)

    left: list[Any] = []

    async def fail(ctx: Any, message: Any) -> None:
        canary = Canary()  # it lives as long as this frame, which is in the traceback of the error
        left.append(weakref.ref(canary))
        with contextlib.suppress(Full, Closed, NoReply, Deadlock, TimeoutError):
            await verb(ctx, kind)

    async def main() -> None:
        app = Trio(a=Acts(fail), b=Acts(sleep), c=Acts(sleep))
        async with start(app, dead_letters=lambda letter: None) as running:
            for _ in range(2):
                running.try_send(ToAll())
                await turns()
            if ended:
                for name in "bc":
                    running._ensemble.parts[name].ctx.finish()
            await running.send(ToA())
            await asyncio.sleep(5)
            if not ended:
                for name in "bc":
                    running._ensemble.parts[name].ctx.finish()
                await turns()
            assert [canary() for canary in left] == [None]
            await running.stop(0)

    run(main())


class Large:
    """Something that one does not want to keep."""


async def give(result: Any) -> Any:
    await asyncio.sleep(1)
    return result


async def within_a_limit(ctx: Any, message: Any) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            await asyncio.sleep(1000)


async def catch(ctx: Any, message: Any) -> None:
    async def fail() -> None:
        await asyncio.sleep(1)
        raise LookupError

    for _ in range(2):
        with contextlib.suppress(LookupError):
            await asyncio.create_task(fail())


async def ask_in_vain(ctx: Any, message: Any) -> None:
    with contextlib.suppress(TimeoutError):
        await ctx.ask(ToB, timeout=1)


async def ask_until_cancelled(ctx: Any, message: Any) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            await ctx.ask(ToB)


async def ask_one_that_forgets(ctx: Any, message: Any) -> None:
    with contextlib.suppress(NoReply):
        await ctx.ask(ToC)


async def give_the_message_on(ctx: Any, message: Any) -> None:
    message = await asyncio.create_task(give(message))


@pytest.mark.parametrize(
    "do",
    [within_a_limit, catch, ask_in_vain, ask_until_cancelled, ask_one_that_forgets, give_the_message_on],
)
def test_a_request_that_is_forgotten_after_something_went_wrong_gets_no_reply(do: Any) -> None:
    async def forget(ctx: Any, message: Any) -> None:
        await do(ctx, message)

    async def nothing(ctx: Any, message: Any) -> None: ...

    async def main() -> None:
        async with start(trio(Acts(forget), Acts(sleep), Acts(nothing))) as running:
            with pytest.raises(NoReply, match="'a': the reply was dropped without an answer"):
                await running.ask(ToA, timeout=10)
            await running.stop(0)

    run(main())


@pytest.mark.parametrize("stays", [False, True])
def test_what_a_handler_has_awaited_is_not_kept(stays: bool) -> None:
    left: list[Any] = []

    async def wait(ctx: Any, message: Any) -> None:
        large = Large()
        left.append(weakref.ref(large))
        large = await asyncio.create_task(give(large))
        del large
        if stays:
            await asyncio.sleep(100)

    async def main() -> None:
        async with start(trio(Acts(wait))) as running:
            await running.send(ToA())
            await asyncio.sleep(2)
            assert [large() for large in left] == [None]
            await running.stop(0)

    run(main())


def test_an_error_in_one_lane_is_gone_when_the_wait_for_another_is_cancelled() -> None:
    @orchestra(signal=Bell, event=Knock)
    class Both:
        a: Acts = subsystem(consumes=ToA, subscribes=[ToAll], sends=[ToAll], message_capacity=1)
        b: Acts = subsystem(subscribes=[ToAll], message_capacity=1)

    async def to_itself_too(ctx: Any, message: Any) -> None:
        if message.__class__ is ToAll:
            return
        with contextlib.suppress(Full):
            ctx.try_send(ToAll())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await ctx.send(ToAll(message.reply))

    async def main() -> None:
        async with start(Both(a=Acts(to_itself_too), b=Acts(sleep)), dead_letters=lambda _: None) as running:
            for _ in range(2):
                running.try_send(ToAll())
                await turns()
            with pytest.raises(NoReply, match="'a': the reply was dropped without an answer"):
                await running.ask(ToA, timeout=5)
            await running.stop(0)

    run(main())
