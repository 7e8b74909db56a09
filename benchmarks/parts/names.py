"""The names that the steps may use, and what each stands for."""

import asyncio
import contextvars
from collections import deque
from time import monotonic
from types import MethodType
from typing import Any

from benchmarks.messages import U8
from benchmarks.parts import standins, ways


def made(loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    """New ones for each measurement; `loop` is a loop that does not run."""
    queue: deque[Any] = deque()
    one, full = deque([0]), deque(range(standins.BATCH))
    ready: deque[Any] = deque()
    turns = standins.Turns(ready)
    context = contextvars.copy_context()
    step = MethodType(context.run, standins.nothing)
    inbox = standins.Inbox((standins.Lane(queue),), turns, step)
    actor, parked, life = standins.Actor(), object(), standins.lives(None)
    life.send(None)
    task = loop.create_future()
    return {
        **ways.made(loop, inbox.lanes[0], inbox),
        "queue": queue,
        "one": one,
        "full": full,
        "signals": inbox.signals,
        "lane": inbox.lanes[0],
        "inbox": inbox,
        "scheduler": turns,
        "ready": ready,
        "following": ready.popleft,
        "nothing": standins.nothing,
        "step": step,
        "run": context.run,
        "resume": life.send,
        "parked": parked,
        "strand": standins.Strand(standins.Handoff(), context, task),
        "loop": loop,
        "task": task,
        "enter": asyncio._enter_task,
        "leave": asyncio._leave_task,
        "monotonic": monotonic,
        "send": standins.send,
        "ctx": standins.Ctx(standins.send, standins.try_send, standins.recv),
        "actor": actor,
        "handle": actor.handle,
        "handle_async": actor.handle_async,
        "make": U8,
        "batch": range(standins.BATCH),
    }
