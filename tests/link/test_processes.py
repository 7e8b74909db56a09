"""Real processes on this machine, with real sessions of Zenoh: killed, frozen, restarted."""

import asyncio
import contextlib
import json
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from orchestra import Drop, Remote, SubsystemStalled, start
from orchestra.link import ZenohLink
from tests.link.fabric import until
from tests.link.parts import LEASE
from tests.link.shop import Boss, Note, Phase, Shop, Task

pytest.importorskip("zenoh")


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def plain() -> None:
        asyncio.run(asyncio.wait_for(test(), 45))

    del plain.__wrapped__
    return plain


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{probe.getsockname()[1]}"


class Part:
    """A process, and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[dict[str, Any]] = []
        self.reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.said.append(json.loads(line))

    def all(self, what: str) -> list[Any]:
        return [each[what] for each in self.said if what in each]

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()
        await self.reading

    async def ended(self) -> int:
        code = await asyncio.wait_for(self.process.wait(), 15)
        await self.reading
        return code


@contextlib.asynccontextmanager
async def part(*arguments: str) -> AsyncIterator[Part]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.link.parts", *arguments, stdout=asyncio.subprocess.PIPE
    )
    made = Part(process)
    try:
        if arguments[0] != "sender":
            await until(lambda: made.all("up"), 10)
        yield made
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            await made.kill()


def boss_at(address: str, boss: Boss | None = None, *, listen: bool = True, **more: Any) -> Any:
    app = Shop(boss=boss or Boss(), hand=Remote(), pad=Remote())
    where = {"listen": [address]} if listen else {"connect": [address]}
    return start(app, link=ZenohLink(**where, name="boss", lease=LEASE), **more)


@run
async def test_a_killed_process_is_noticed_and_a_new_one_takes_over() -> None:
    address, letters = free_address(), list[Any]()
    async with boss_at(address, dead_letters=letters.append) as running:
        async with part("hand", address, "first") as first:
            for n in range(100):
                await running.send(Task(n))
            await until(lambda: len(first.all("seen")) == 100)
            await asyncio.sleep(0.05)
            await first.kill()
            killed = time.monotonic()
            await until(lambda: "first" not in running.peers() or running.peers()["first"].state != "here")
            assert time.monotonic() - killed < 0.5
            waiting = [asyncio.ensure_future(running.send(Task(n))) for n in range(100, 150)]
            assert await running.send(Task(999), overflow=Drop(wait_before_drop=0.01)) is False
            async with part("hand", address, "second") as second:
                up = time.monotonic()
                await asyncio.gather(*waiting)
                assert time.monotonic() - up < 1.0, "sending goes on within a second of its return"
                await until(lambda: second.all("seen") == list(range(100, 150)))
                await running.stop(timeout=3)
                assert await second.ended() == 0
    assert letters == []


@run
async def test_a_frozen_process_is_waited_for_by_nobody_else_and_goes_on() -> None:
    address, letters = free_address(), list[Any]()
    async with boss_at(address, dead_letters=letters.append) as running:
        async with part("hand", address, "hand") as hand:
            await running.send(Task(0))
            await until(lambda: hand.all("seen") == [0])
            hand.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(0.05)
            sends = [asyncio.ensure_future(running.send(Task(n))) for n in range(1, 40)]
            await asyncio.sleep(0.05)
            began = time.monotonic()
            assert await running.send(Task(999), overflow=Drop(wait_before_drop=0.02)) is False
            with pytest.raises(SubsystemStalled, match="'hand'"):
                await running.broadcast(Phase(1), timeout=0.1)
            assert time.monotonic() - began < 0.3
            await until(lambda: not running.peers(), 4)
            hand.process.send_signal(signal.SIGCONT)
            await asyncio.wait_for(asyncio.gather(*sends), 5)
            await until(lambda: 39 in hand.all("seen"))
            seen, lost = hand.all("seen"), [letter.message.n for letter in letters]
            assert seen == sorted(set(seen))
            assert len(lost) == len(set(lost)) <= 16
            assert set(seen) | set(lost) == set(range(40))
            await running.stop(timeout=3)
            assert await hand.ended() == 0


@run
async def test_a_big_message_to_a_frozen_process_stops_neither_the_loop_nor_other_lanes() -> None:
    address = free_address()
    async with boss_at(address) as running, part("hand", address, "hand") as hand:
        await running.send(Task(0))
        await until(lambda: hand.all("seen") == [0])
        hand.process.send_signal(signal.SIGSTOP)
        sending = asyncio.ensure_future(running.send(Task(1, bytes(5_000_000))))
        await asyncio.sleep(0.05)
        worst = 0.0
        for n in range(50):
            began = time.monotonic()
            await running.send(Note(n))  # the lane of another subsystem, of the same level
            await asyncio.sleep(0.002)
            worst = max(worst, time.monotonic() - began)
        assert worst < 0.2
        assert await sending
        hand.process.send_signal(signal.SIGCONT)
        await until(lambda: hand.all("seen") == [0, 1])


@run
async def test_a_router_may_be_restarted() -> None:
    address, letters = free_address(), list[Any]()
    async with contextlib.AsyncExitStack() as stack:
        router = await stack.enter_async_context(part("router", address, "router"))
        hand = await stack.enter_async_context(part("hand", address, "hand"))
        running = await stack.enter_async_context(boss_at(address, listen=False, dead_letters=letters.append))
        for n in range(50):
            await running.send(Task(n))
        await until(lambda: len(hand.all("seen")) == 50)
        await router.kill()
        await until(lambda: all(peer.state != "here" for peer in running.peers().values()))
        assert await running.send(Task(999), overflow=Drop(wait_before_drop=0.01)) is False
        sends = [asyncio.ensure_future(running.send(Task(n))) for n in range(50, 80)]
        await stack.enter_async_context(part("router", address, "router"))
        await asyncio.wait_for(asyncio.gather(*sends), 8)
        await until(lambda: 79 in hand.all("seen"))
        seen, lost = hand.all("seen"), [letter.message.n for letter in letters]
        assert seen == sorted(set(seen))
        assert set(seen) | set(lost) == set(range(80))
        await running.stop(timeout=3)
        assert await hand.ended() == 0


@run
async def test_three_senders_never_put_more_than_the_capacity() -> None:
    address = free_address()
    count = 3000
    async with part("hand", address, "hand", "listen") as hand:
        async with contextlib.AsyncExitStack() as stack:
            senders = [
                await stack.enter_async_context(part("sender", address, f"sender{k}", str(count)))
                for k in range(3)
            ]
            for each in senders:
                assert await each.ended() == 0
                assert each.all("letter") == []
        await until(lambda: len(hand.all("seen")) == 3 * count, 10)
        assert max(hand.all("queued")) <= 16
        assert sorted(hand.all("seen")) == sorted(list(range(count)) * 3)


@run
async def test_messages_go_back_and_forth_while_a_part_is_restarted() -> None:
    address, letters = free_address(), list[Any]()
    boss = Boss()
    async with boss_at(address, boss, dead_letters=letters.append) as running:

        async def send() -> None:
            for n in range(3000):
                await running.send(Task(n))
                if n % 10 == 0:
                    await asyncio.sleep(0.001)

        sending = asyncio.ensure_future(send())
        async with part("hand", address, "hand", "answers") as hand:
            await until(lambda: len(boss.done) > 500)
            await hand.kill()
            first = hand.all("seen")
        async with part("hand", address, "hand", "answers") as hand:
            await sending
            await until(lambda: 2999 in boss.done)
            second = hand.all("seen")
            assert not set(first) & set(second), "nothing was sent again"
            assert boss.done == sorted(set(boss.done))
            lost = {letter.message.n for letter in letters}
            known = set(first) | set(second) | lost
            assert len(set(range(3000)) - known) <= 16 + 1, "only what it had in its inbox when it was killed"
            assert not lost & set(second)
            await running.stop(timeout=3)
            assert await hand.ended() == 0
