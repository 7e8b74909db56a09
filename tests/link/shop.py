"""A small orchestra to be spread over several processes: a boss sends tasks to a hand, which answers."""

import asyncio
from typing import Any

import msgspec

from orchestra import Actor, Context, DropOldest, Priority, Reply, orchestra, subsystem


class Task(msgspec.Struct, frozen=True):
    n: int
    data: bytes = b""


class Note(msgspec.Struct, frozen=True):
    n: int


class Question(msgspec.Struct, frozen=True):
    n: int
    reply: Reply[int]


class Done(msgspec.Struct, frozen=True):
    n: int


class Phase(msgspec.Struct, frozen=True):
    k: int


class Boss(Actor):
    def __init__(self) -> None:
        self.done: list[int] = []
        self.phases: list[int] = []

    def handle(self, ctx: Context[Done, Task, Phase], message: Done) -> None:
        self.done.append(message.n)

    def on_signal(self, ctx: Any, signal: Phase) -> None:
        self.phases.append(signal.k)


class Hand(Actor):
    """It works at a task only while `gate` is open, and notes all that it has seen."""

    def __init__(self, answers: bool = True) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.answers = answers
        self.seen: list[int] = []
        self.order: list[Any] = []
        self.kept: list[Any] = []

    async def handle(self, ctx: Context[Any, Any, Phase], message: Any) -> None:
        await self.gate.wait()
        if isinstance(message, Question):
            await self.answer(message)
            return
        self.seen.append(message.n)
        self.order.append(message.n)
        if self.answers:
            await ctx.send(Done(message.n))

    async def answer(self, question: Question) -> None:
        match question.n:
            case -1:
                question.reply.fail(KeyError("no such"))
            case -2:
                raise ValueError("it broke")
            case -3:
                self.kept.append(question.reply)
            case -4:
                pass
            case n:
                question.reply.send(2 * n)

    def on_signal(self, ctx: Any, signal: Phase) -> None:
        self.order.append(f"signal {signal.k}")


class Pad(Actor):
    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.seen: list[int] = []

    async def handle(self, ctx: Any, message: Note) -> None:
        await self.gate.wait()
        self.seen.append(message.n)


@orchestra(signal=Phase, event=Phase)
class Shop:
    boss: Boss = subsystem(consumes=Done, sends=[Task, Note, Question])
    hand: Hand = subsystem(
        consumes=Task | Question, sends=[Done], message_capacity={Priority.HIGH: 4, Priority.NORMAL: 16}
    )
    pad: Pad = subsystem(consumes=Note, message_capacity=2, overflow=DropOldest())
