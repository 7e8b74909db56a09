"""A send to a synchronous Actor, awaited or not: the sender fills the queue, the receiver takes batches."""

from benchmarks.messages import U8
from benchmarks.parts import wired
from benchmarks.parts.section import Section
from benchmarks.parts.standins import BATCH
from benchmarks.parts.steps import Step
from benchmarks.send import ToHandler, to_handler_ns, tried_to_handler_ns

LOOP = Step("the loop of the sender", "for _ in batch:\n    pass", each=BATCH, needed=True)
MAKE = Step("make the message", "make(value)", needed=True)
AWAIT = Step("call `send`, and await its coroutine", "await ctx.send(message)")
CALL = Step("call `try_send`", "ctx.try_send(message)")
CLASS = Step(
    "tell its class, and that no level or policy is given",
    "kind = message.__class__\nif kind is U8 and priority is None and overflow is None:\n    pass",
)
ROOM = Step("compare the queue with its room", "if len(queue) < lane.room:\n    pass")
IDLE = Step("look whether the receiver waits", "if inbox.idle:\n    pass")
PUT_AND_TAKE = Step(
    "put it into the queue, and take it out", "queue.append(message)\nmessage = queue.popleft()"
)
HANDLE = Step("call the handler", "handle(ctx, message)", needed=True)
COUNT = Step("what the handler does: it counts", "actor.left -= 1\nif not actor.left:\n    pass", needed=True)

BATCHES = (
    Step(
        "the loop of a batch, one message's share",
        "for count in inbox.course(budget, len(full)):\n    pass",
        each=BATCH,
    ),
    Step(
        "look at the signals, the clock and the peak after a batch, one message's share",
        "if signals:\n    pass\nif not queue:\n    pass\n"
        "budget = inbox.more()\n"
        "taken += count\nbudget -= count",
        each=BATCH,
    ),
)
"""What is done for a batch of messages."""

HANDLED = "while turn:\n    if following()():\n        pass"

SEND = Section(
    name="send",
    title="a send to a synchronous Actor",
    steps=[LOOP, MAKE, AWAIT, CLASS, ROOM, IDLE, PUT_AND_TAKE, *BATCHES, HANDLE, COUNT],
    together=Step(
        "",
        f"for _ in capacity:\n    await sender.send(make(value))\n{HANDLED}",
        each=len(wired.CAPACITY),
        around=wired.to_handler,
    ),
    whole={"a send, whole": lambda count: to_handler_ns(ToHandler, U8, 7, count)},
)

TRY_SEND = Section(
    name="try_send",
    title="a try_send to a synchronous Actor",
    steps=[
        Step("the loop of the sender", "number -= 1\nif number:\n    pass", needed=True),
        *(MAKE, CALL, CLASS, ROOM, IDLE, PUT_AND_TAKE, *BATCHES, HANDLE, COUNT),
    ],
    together=Step(
        "",
        f"for _ in capacity:\n    number -= 1\n    sender.try_send(make(value))\n{HANDLED}",
        each=len(wired.CAPACITY),
        around=wired.to_handler,
    ),
    whole={"a try_send, whole": tried_to_handler_ns},
)
