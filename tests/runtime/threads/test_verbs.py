"""The context of a blocking subsystem has every verb of that of the loop, synchronous."""

import threading
import time
from typing import Any

import msgspec
import pytest

from orchestra import (
    Actor,
    BlockingContext,
    Context,
    Deadlock,
    Recipient,
    Reply,
    Timer,
    orchestra,
    start,
    subsystem,
)
from orchestra.runtime.threads.context import LiveBlockingContext
from tests.runtime.players import Bell, Knock, within


class Get(msgspec.Struct):
    key: str
    reply: Reply[str]


class Tick(msgspec.Struct):
    where: str


class Loop(msgspec.Struct):
    reply: Reply[int]


def verbs(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_no_verb_is_forgotten() -> None:
    assert verbs(Context) == verbs(BlockingContext)
    inherited = {name for name in verbs(BlockingContext) if name not in vars(LiveBlockingContext)}
    assert not inherited, "what it inherits only says that it is not implemented"


class Store(Actor):
    def __init__(self) -> None:
        self.kept: list[Get] = []

    def handle(self, ctx: Any, message: Get) -> None:
        if message.key == "kept":
            self.kept.append(message)
        else:
            message.reply.send(message.key.upper())


class Disk(Actor):
    """Uses each verb once, and notes what came of it."""

    def __init__(self) -> None:
        self.notes: dict[str, Any] = {}

    def started(self, ctx: Any) -> None:
        here = threading.current_thread()
        self.notes["run_blocking"] = ctx.run_blocking(threading.current_thread) is here
        self.notes["spawn"] = ctx.spawn(self.task())
        self.notes["timers"] = ctx.send_after(0.01, Tick("after")), ctx.send_every(0.01, self.tick)
        self.notes["recipient"] = ctx.recipient(Tick)
        self.notes["thread"] = here
        ctx.set_deadline(time.monotonic() + 3600)

    async def task(self) -> None:
        self.notes["task in"] = threading.current_thread()

    def tick(self) -> Tick:
        return Tick("every")

    def handle(self, ctx: Any, message: Tick | Loop) -> None:
        if isinstance(message, Loop):
            return
        self.notes[message.where] = threading.current_thread()
        if message.where == "every":
            self.notes["timers"][1].cancel()
            self.notes["ask"] = ctx.ask(lambda reply: Get("a", reply), timeout=10)
            with pytest.raises(TimeoutError, match=r"'store' did not reply to Get within 0\.01 s"):
                ctx.ask(lambda reply: Get("kept", reply), timeout=0.01)
            with pytest.raises(Deadlock) as caught:
                ctx.ask(Loop)
            self.notes["chain"] = caught.value.chain
        if {"after", "every"} <= self.notes.keys():
            ctx.set_timeout(0.01)

    def deadline_passed(self, ctx: Any, deadline: float) -> None:
        self.notes["deadline in"] = threading.current_thread()
        ctx.set_deadline(None)
        ctx.stop()


@orchestra(signal=Bell, event=Knock)
class App:
    disk: Disk = subsystem(consumes=Tick | Loop, sends=[Get, Loop], blocking=True)
    store: Store = subsystem(consumes=Get)


def test_every_verb_works_from_the_thread() -> None:
    disk = Disk()

    async def main() -> None:
        async with start(App(disk=disk, store=Store())) as running:
            await running.wait()

    within(20, main())
    notes = disk.notes
    assert notes["run_blocking"]
    assert notes["spawn"] is None
    assert notes["task in"] is not notes["thread"]
    assert notes["after"] is notes["every"] is notes["deadline in"] is notes["thread"]
    assert all(isinstance(timer, Timer) and not timer.active for timer in notes["timers"])
    assert isinstance(notes["recipient"], Recipient)
    assert notes["ask"] == "A"
    assert notes["chain"] == ("disk", "disk")
