"""Almost the same as `shop`: a task has a text."""

import msgspec

from orchestra import DropOldest, Priority, orchestra, subsystem
from tests.link.shop import Boss, Done, Hand, Note, Pad, Phase, Question


class Task(msgspec.Struct, frozen=True):
    n: str
    data: bytes = b""


@orchestra(signal=Phase, event=Phase)
class Shop:
    boss: Boss = subsystem(consumes=Done, sends=[Task, Note, Question])
    hand: Hand = subsystem(
        consumes=Task | Question, sends=[Done], message_capacity={Priority.HIGH: 4, Priority.NORMAL: 16}
    )
    pad: Pad = subsystem(consumes=Note, message_capacity=2, overflow=DropOldest())
