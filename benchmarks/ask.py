"""A question and its answer: what a round trip costs, beside two tasks that hand futures to each other."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import msgspec

from benchmarks import bars, loops, peers
from benchmarks.floor import clock
from benchmarks.harness import Case, Group
from benchmarks.messages import Signal
from orchestra import Actor, Context, Reply, Subsystem, orchestra, start, subsystem


class Ask(msgspec.Struct):
    """Says to the asking subsystem how often it is to ask."""

    count: int
    took: Reply[float]


class Question(msgspec.Struct):
    reply: Reply[int]


class Answers(Actor[Question]):
    def handle(self, ctx: Context[Any, Any, Any], message: Question) -> None:
        message.reply.send(7)


class AnswersLater(Actor[Question]):
    async def handle(self, ctx: Context[Any, Any, Any], message: Question) -> None:
        message.reply.send(7)


async def _ask(ctx: Context[Any, Question, Any], message: Ask) -> None:
    began = clock()
    for _ in range(message.count):
        await ctx.ask(Question)
    message.took.send((clock() - began) / message.count)


class Asks(Actor[Ask, Question]):
    async def handle(self, ctx: Context[Ask, Question, Any], message: Ask) -> None:
        await _ask(ctx, message)


class AsksInRun(Subsystem[Ask, Question]):
    async def run(self, ctx: Context[Ask, Question, Any]) -> None:
        async for message in ctx:
            if isinstance(message, Ask):
                await _ask(ctx, message)


class AsksInATask(Actor[Ask, Question]):
    async def handle(self, ctx: Context[Ask, Question, Any], message: Ask) -> None:
        await asyncio.create_task(_ask(ctx, message))


def duo(asks: type, answers: type) -> Callable[[], Any]:
    """What makes an orchestra of one that asks and one that answers."""
    fields = {"asking": asks, "answering": answers}
    body = {"__annotations__": fields, "__module__": __name__, **{name: subsystem() for name in fields}}
    made: Any = orchestra(signal=Signal, event=Signal)(type("Duo", (), body))
    return lambda: made(asking=asks(), answering=answers())


async def ask_ns(make: Callable[[], Any], count: int) -> float:
    """Nanoseconds from a question to its answer, and to the next question."""
    async with start(make()) as running:
        return await running.ask(partial(Ask, count))


async def futures_ns(count: int) -> float:
    """Nanoseconds for a task to set a future that another awaits, and for that one to set one back."""
    loop = asyncio.get_running_loop()
    question: asyncio.Future[int] = loop.create_future()
    answer: asyncio.Future[int] = loop.create_future()

    async def answering() -> None:
        nonlocal question
        for _ in range(count):
            await question
            question = loop.create_future()
            answer.set_result(7)

    task = asyncio.create_task(answering())
    await asyncio.sleep(0)
    began = clock()
    for _ in range(count):
        answer = loop.create_future()
        question.set_result(1)
        await answer
    took = clock() - began
    await task
    return took / count


def group(count: int) -> Group:
    """The cases, each with `count` round trips in a run."""
    pairs = {
        bars.asks("an Actor", "synchronous"): duo(Asks, Answers),
        bars.asks("an Actor", "asynchronous"): duo(Asks, AnswersLater),
        bars.asks("a run", "synchronous"): duo(AsksInRun, Answers),
        bars.asks("a run", "asynchronous"): duo(AsksInRun, AnswersLater),
        bars.asks("a task", "synchronous"): duo(AsksInATask, Answers),
    }
    cases = [Case(name, partial(_run, partial(ask_ns, make), count)) for name, make in pairs.items()]
    cases.append(Case(bars.FUTURES, partial(_run, futures_ns, count)))
    for peer in peers.that_can("ask"):
        assert peer.ask is not None
        run = partial(peer.ask, peer.fewer(count))
        cases.append(Case(peer.name, run, on_loop=peer.on_loop, wall=peer.wall))
    return Group(name="ask", title="one question and its answer", unit="ns a round trip", cases=cases)


def _run(asking: Callable[[int], Coroutine[Any, Any, float]], count: int) -> float:
    return loops.run(asking(count))
