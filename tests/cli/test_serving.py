"""`orchestra serve` hosts a part of an orchestra in a process of its own."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestra import Remote, Running, start
from orchestra.link import ZenohLink
from tests.cli.test_cluster import router, running
from tests.cli.test_command import Command
from tests.link.sessions import free_port

SHOP = """
import msgspec
from orchestra import Actor, Context, orchestra, subsystem


class Task(msgspec.Struct, frozen=True):
    n: int


class Done(msgspec.Struct, frozen=True):
    n: int


class Halt(msgspec.Struct, frozen=True): ...


class Boss(Actor):
    def __init__(self) -> None:
        self.done = []

    def handle(self, ctx: Context, message: Done) -> None:
        self.done.append(message.n)


class Hand(Actor):
    def __init__(self, more: int = 0) -> None:
        self.more = more

    async def handle(self, ctx: Context, message: Task) -> None:
        if message.n < 0:
            raise ValueError("no such task")
        await ctx.send(Done(message.n + self.more))


@orchestra(signal=Halt, event=Halt)
class Shop:
    boss: Boss = subsystem(consumes=Done, sends=[Task])
    hand: Hand = subsystem(consumes=Task, sends=[Done])


def strong(hosts):
    assert hosts == {"hand"}
    return Shop(boss=Boss(), hand=Hand(1000))
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "served_shop.py").write_text(SHOP, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import served_shop  # type: ignore[import-not-found]  # it was written just now

    yield served_shop
    sys.modules.pop("served_shop", None)


@pytest.fixture
def folder(shop: Any) -> Path:
    return Path(shop.__file__).parent


@asynccontextmanager
async def near(shop: Any, **link: Any) -> AsyncIterator[tuple[Any, Running]]:
    boss = shop.Boss()
    async with start(shop.Shop(boss=boss, hand=Remote()), link=ZenohLink(**link)) as run:
        yield boss, run


async def until_done(boss: Any, many: int) -> None:
    async with asyncio.timeout(20):
        while len(boss.done) < many:
            await asyncio.sleep(0.01)


def test_a_served_part_works_and_ends_with_the_others(shop: Any, folder: Path) -> None:
    at = f"tcp/127.0.0.1:{free_port()}"

    async def main() -> None:
        async with near(shop, listen=[at]) as (boss, run):
            for n in range(100):
                await run.send(shop.Task(n))
            await until_done(boss, 100)
            assert boss.done == list(range(1000, 1100))
            await run.stop()

    with running("serve", "served_shop:strong", "--host", "hand", "--connect", at, cwd=folder) as part:
        asyncio.run(main())
        assert part.wait(20) == 0
        out, err = part.communicate()
        assert out == ""
        assert err.splitlines()[:2] == [
            f"orchestra: serving hand; connected to {at}",
            "orchestra: boss is here, hosting boss",
        ]


def test_a_part_may_be_the_one_that_listens(shop: Any, folder: Path) -> None:
    at = f"tcp/127.0.0.1:{free_port()}"

    async def main() -> None:
        async with near(shop, connect=[at]) as (boss, run):
            await run.send(shop.Task(1))
            await until_done(boss, 1)
            await run.stop()

    with running("serve", "served_shop:Shop", "--host", "hand", "--listen", at, cwd=folder) as part:
        asyncio.run(main())
        assert part.wait(20) == 0


def test_an_interrupt_stops_one_part_and_another_takes_its_place(shop: Any, folder: Path) -> None:
    words = ("serve", "served_shop:Shop", "--host", "hand", "--connect")

    async def main(at: str) -> None:
        async with near(shop, connect=[at]) as (boss, run):
            with running(*words, at, cwd=folder) as first:
                await run.send(shop.Task(1))
                await until_done(boss, 1)
                first.send_signal(signal.SIGINT)
                assert await asyncio.to_thread(first.wait, 20) == 0
            sending = asyncio.ensure_future(run.send(shop.Task(2)))
            with running(*words, at, cwd=folder) as second:
                await sending
                await until_done(boss, 2)
                await run.stop()
                assert await asyncio.to_thread(second.wait, 20) == 0
            assert boss.done == [1, 2]

    with router() as (_, at):
        asyncio.run(main(at))


def test_peers_tells_what_each_process_hosts(shop: Any, folder: Path, command: Command) -> None:
    async def main(at: str) -> None:
        async with near(shop, connect=[at], name="office") as (boss, run):
            with running(
                "serve", "served_shop:Shop", "--host", "hand", "--name", "yard", "--connect", at, cwd=folder
            ):
                await run.send(shop.Task(1))
                await until_done(boss, 1)
                done = await asyncio.to_thread(command, "peers", "--json", "--connect", at)
                assert [
                    (each["app"], each["process"], each["hosts"]) for each in json.loads(done.stdout)
                ] == [
                    ("Shop", "office", ["boss"]),
                    ("Shop", "yard", ["hand"]),
                ]
                await run.stop()

    with router() as (_, at):
        asyncio.run(main(at))


@pytest.mark.parametrize("verbose", [False, True])
def test_an_error_of_the_part_is_told_by_the_users_lines_alone(
    shop: Any, folder: Path, verbose: bool
) -> None:
    async def main(at: str) -> str:
        words = ["--verbose"] if verbose else []
        async with near(shop, connect=[at]) as (_, run):
            with running(
                "serve", "served_shop:Shop", "--host", "hand", *words, "--connect", at, cwd=folder
            ) as part:
                await run.send(shop.Task(-1))
                assert await asyncio.to_thread(part.wait, 20) == 1
                return part.communicate()[1]

    with router() as (_, at):
        told = asyncio.run(main(at))
        assert "ValueError: no such task" in told
        files = {Path(file).name for file in re.findall(r'File "(.*)", line', told)}
        assert ("launch.py" in files) is verbose
        assert ("left out; --verbose shows them" in told) is not verbose
        assert "served_shop.py" in files
        assert verbose or files == {"served_shop.py"}


def test_a_part_that_is_refused_says_why(shop: Any, folder: Path) -> None:
    at = f"tcp/127.0.0.1:{free_port()}"

    async def main() -> str:
        words = ("serve", "served_shop:Shop", "--host", "hand", "--connect", at)
        async with near(shop, listen=[at]) as (boss, run):
            with running(*words, cwd=folder):
                await run.send(shop.Task(1))
                await until_done(boss, 1)
                with running(*words, "--name", "rival", cwd=folder) as rival:
                    async with asyncio.timeout(20):
                        while "rival" not in run.peers() or run.peers()["rival"].state != "refused":
                            await asyncio.sleep(0.01)
                    await asyncio.sleep(0.3)  # until it is told
                    rival.send_signal(signal.SIGINT)
                    _, told = await asyncio.to_thread(rival.communicate)
                    await run.stop()
                    return told

    told = asyncio.run(main())
    assert "it refuses this process: 'hand' is hosted by 'hand'" in told
    assert "SIGINT: stopping within 10 s" in told


def test_nobody_listens(shop: Any, folder: Path) -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    words = ("serve", "served_shop:Shop", "--host", "hand", "--patience", "0.2", "--connect", at)
    with running(*words, cwd=folder) as part:
        _, err = part.communicate(timeout=20)
        assert part.returncode == 1
        assert err == f"orchestra: no connection within 0.2 s to {at}: nobody listens there\n"


def test_an_interrupt_ends_the_wait_for_who_listens(shop: Any, folder: Path) -> None:
    at = f"tcp/127.0.0.1:{free_port()}"
    with running("serve", "served_shop:Shop", "--host", "hand", "--connect", at, cwd=folder) as part:
        with pytest.raises(Exception, match="timed out"):
            part.wait(2)
        part.send_signal(signal.SIGINT)
        _, err = part.communicate(timeout=20)
        assert "Traceback" not in err
