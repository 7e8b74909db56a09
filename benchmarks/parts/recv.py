"""A message to a subsystem that awaits `ctx.recv()` in a loop of its own."""

from benchmarks.parts import wired
from benchmarks.parts.section import Section
from benchmarks.parts.send import AWAIT, CLASS, IDLE, LOOP, MAKE, PUT_AND_TAKE, ROOM
from benchmarks.parts.standins import BATCH
from benchmarks.parts.steps import Step
from benchmarks.send import to_receiver_ns

RECV = Section(
    name="recv",
    title="a send to `await ctx.recv()`",
    steps=[
        *(LOOP, MAKE, AWAIT, CLASS, ROOM, IDLE, PUT_AND_TAKE),
        Step("call `recv`, and await its coroutine", "await ctx.recv()"),
        Step(
            "look for a signal, the clock and a message",
            "if signals:\n    pass\nif not left:\n    pass\nif full:\n    pass",
        ),
        Step(
            "look at the clock and the peak, one message's share",
            "awaited = inbox.more()\nif not awaited:\n    pass",
            each=BATCH,
        ),
        Step("count it", "left -= 1"),
        Step("look whether senders wait for room", "if lane.pressed:\n    pass"),
        Step(
            "keep what is in hand, to be buried if `run` fails",
            "if scheduler.began:\n    inbox.current = message",
        ),
        Step("what the receiver does: it counts", "number -= 1\nif number:\n    pass", needed=True),
    ],
    together=Step(
        "",
        "for _ in capacity:\n    await sender.send(make(value))\n"
        "for _ in capacity:\n    number -= 1\n    await receiver.recv()",
        each=len(wired.CAPACITY),
        around=wired.to_receiver,
    ),
    whole={"a send and a recv, whole": to_receiver_ns},
)
