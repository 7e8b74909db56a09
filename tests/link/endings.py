"""Ways in which a process with a link may end: `python -m tests.link.endings WAY ADDRESS`."""

import asyncio
import sys
from typing import Any

from orchestra import Context, Remote, run, start
from orchestra.link import ZenohLink
from tests.link.shop import Boss, Hand, Pad, Shop, Task


class Broken(Hand):
    async def handle(self, ctx: Context[Any, Any, Any], message: Any) -> None:
        raise ValueError("it broke")


def app(**more: Any) -> Shop:
    return Shop(**{"boss": Boss(), "hand": Remote(), "pad": Remote(), **more})


async def body(way: str, link: ZenohLink) -> None:
    async with start(app(hand=Broken()) if way == "failure" else app(), link=link) as running:
        print("up", flush=True)
        if way == "failure":
            await running.send(Task(1))
            await running.wait()
        if way == "raise":
            raise RuntimeError("the body raises")
        if way == "exit":
            sys.exit(3)
        if way == "waiting send":
            await asyncio.wait_for(running.send(Task(1)), 0.2)
        if way == "forever":
            await running.wait()
        if way == "stop":
            await running.stop(1)
        if way == "drain":
            await running.drain()


async def nobody(link: ZenohLink) -> None:
    print("up", flush=True)
    async with asyncio.timeout(0.3):
        async with start(app(), link=link):
            pass


async def main(running: Any) -> str:
    await asyncio.sleep(0.05)
    return "done"


if __name__ == "__main__":
    way, address = sys.argv[1:]
    listening = ZenohLink(listen=[address], lease=0.6)
    if way == "serve":
        print("up", flush=True)
        run(Shop(boss=Remote(), hand=Hand(), pad=Pad()), link=listening)
    elif way == "main":
        print("up", flush=True)
        print(run(app(), main, link=listening))
    elif way == "nobody":
        asyncio.run(nobody(ZenohLink(connect=[address], lease=0.6)))
    else:
        asyncio.run(body(way, listening))
