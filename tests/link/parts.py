"""Parts of the shop as programs of their own: `python -m tests.link.parts ROLE ADDRESS [NAME]`.

Each writes what it does as lines of JSON.
"""

import asyncio
import json
import sys
import threading
from typing import Any

from orchestra import Remote, start
from orchestra.link import ZenohLink
from tests.link.shop import Boss, Hand, Pad, Shop, Task

LEASE = 0.6


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


class LoudHand(Hand):
    """Tells what it sees; it takes its time when the argument says so."""

    pause = 0.0

    async def handle(self, ctx: Any, message: Any) -> None:
        if isinstance(message, Task):
            say(seen=message.n, queued=ctx_queued())
            if self.pause:
                await asyncio.sleep(self.pause)
        await super().handle(ctx, message)


_running: list[Any] = []


def ctx_queued() -> int:
    return int(_running[0].meters()["hand"].queued) if _running else 0


async def hand(address: str, name: str, *rest: str) -> None:
    made = LoudHand(answers="answers" in rest)
    made.pause = 0.001 if "slow" in rest else 0.0
    app = Shop(boss=Remote(replicas="any"), hand=made, pad=Pad())
    link = ZenohLink(connect=[address], name=name, lease=LEASE)
    if "listen" in rest:
        link = ZenohLink(listen=[address], name=name, lease=LEASE)
    async with start(app, link=link) as running:
        _running.append(running)
        say(up=name)
        await running.wait()
    say(ended=name)


async def sender(address: str, name: str, count: str) -> None:
    """Hosts a boss of its own and sends tasks, numbered."""
    async with start(
        Shop(boss=Boss(), hand=Remote(), pad=Remote()),
        link=ZenohLink(connect=[address], name=name, lease=LEASE),
        dead_letters=lambda letter: say(letter=letter.message.n, reason=letter.reason),
    ) as running:
        for n in range(int(count)):
            await running.send(Task(n))
        say(sent=int(count))
        await asyncio.sleep(0.3)


def router(address: str, name: str) -> None:
    session = ZenohLink(listen=[address], name=name, lease=LEASE).open(threading.Event())
    say(up=name)
    try:
        threading.Event().wait()
    finally:
        session.close(1.0)


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    if role == "router":
        router(*arguments)
    else:
        asyncio.run({"hand": hand, "sender": sender}[role](*arguments))
