"""A sender of few classes and one of many, which are looked up in a dict: they behave alike."""

import asyncio
from functools import reduce
from operator import or_
from typing import Any

import msgspec
import pytest

from orchestra import (
    Actor,
    Closed,
    Drop,
    Full,
    Priority,
    Subsystem,
    handles,
    orchestra,
    plan_of,
    start,
    subsystem,
)
from tests.runtime.players import Bell, Knock, turns, until, within

FEW, MANY = 3, 12


class Keeps(Actor):
    """Keeps what it handles once its gate is open."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.begun = 0
        self.gate = asyncio.Event()

    async def handle(self, ctx: Any, message: Any) -> None:
        self.begun += 1
        await self.gate.wait()
        self.got.append(message)


class Hands(Subsystem):
    """Hands out its context."""

    ctx: Any = None

    async def run(self, ctx: Any) -> None:
        self.ctx = ctx
        async for _ in ctx:
            pass


def kinds_of(count: int) -> list[Any]:
    return [msgspec.defstruct(f"Kind{n}", [("n", int)], module=__name__) for n in range(count)]


def app_of(kinds: list[Any], **options: Any) -> Any:
    """An orchestra of a sender of all kinds, and a receiver for each; those of even number get boxes."""
    receivers = {
        f"to{n}": subsystem(consumes=kind, boxed=n % 2 == 0, **options) for n, kind in enumerate(kinds)
    }
    body = {
        "__module__": __name__,
        "__annotations__": {"hands": Hands, **dict.fromkeys(receivers, Keeps)},
        "hands": subsystem(sends=kinds),
        **receivers,
    }
    cls: Any = orchestra(signal=Bell, event=Knock)(type("Many", (), body))
    return cls(hands=Hands(), **{name: Keeps() for name in receivers})


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("inside", [True, False])
def test_each_class_goes_to_its_receiver(count: int, inside: bool) -> None:
    kinds = kinds_of(count)

    async def main() -> None:
        app = app_of(kinds)
        async with start(app) as running:
            await until(lambda: app.hands.ctx)
            sender = app.hands.ctx if inside else running
            sent = [kind(n) for n, kind in enumerate(kinds)]
            for n, message in enumerate(sent):
                getattr(app, f"to{n}").gate.set()
                assert await sender.send(message)
                assert sender.try_send(message)
                assert await sender.send(message, priority=Priority.NORMAL)
            await running.drain()
        for n, message in enumerate(sent):
            got = getattr(app, f"to{n}").got
            assert got == [message] * 3
            assert [one is message for one in got] == [n % 2 == 1] * 3, "those of even number are copies"

    within(20, main())


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_lane_without_room_is_waited_for_or_refused(count: int) -> None:
    kinds = kinds_of(count)

    async def main() -> None:
        app = app_of(kinds, message_capacity=1)
        async with start(app) as running:
            await until(lambda: app.hands.ctx)
            ctx, kind = app.hands.ctx, kinds[1]
            await ctx.send(kind(0))
            await until(lambda: app.to1.begun)
            await ctx.send(kind(1))
            with pytest.raises(Full) as full:
                ctx.try_send(refused := kind(2))
            assert full.value.message is refused
            waiting = asyncio.ensure_future(ctx.send(kind(3)))
            await turns()
            assert not waiting.done()
            app.to1.gate.set()
            assert await waiting
            await until(lambda: len(app.to1.got) == 3)
            await running.stop()
            with pytest.raises(Closed):
                await ctx.send(kind(4))

    within(20, main())


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_congested_lane_drops_at_once_and_counts(count: int) -> None:
    kinds = kinds_of(count)

    async def main() -> None:
        app = app_of(kinds, message_capacity=1, overflow=Drop(0))
        async with start(app, dead_letters=lambda letter: None) as running:
            await until(lambda: app.hands.ctx)
            ctx, kind = app.hands.ctx, kinds[0]
            await ctx.send(kind(0))
            await until(lambda: app.to0.begun)
            assert [await ctx.send(kind(n)) for n in range(4)] == [True, False, False, False]
            assert running.meters()["to0"].dropped_by == {"waited": 1, "congested": 2}
            app.to0.gate.set()

    within(20, main())


def test_few_classes_are_told_apart_by_tests_and_many_by_a_dict() -> None:
    few, many = (plan_of(type(app_of(kinds_of(count)))).source for count in (FEW, MANY))
    assert "doors" not in few and "if kind is Kind2" in few
    assert "door = find(kind)" in many and "if kind is" not in many
    assert f"What hands sends: {MANY} classes by their doors." in many


def handling(kinds: list[Any]) -> Any:
    """An orchestra of one Actor with a method for each kind, of names that generated code uses too."""

    def method(kind: Any, place: int) -> Any:
        def handle(self: Any, ctx: Any, message: Any) -> None:
            self.got.append((place, message))

        handle.__annotations__["message"] = kind
        return handles(kind)(handle)

    names = ["find", "batch", "count", *(f"on_{place}" for place in range(len(kinds)))]
    methods = {names[place]: method(kind, place) for place, kind in enumerate(kinds)}
    worker: Any = type("Worker", (Actor,), {**methods, "__module__": __name__})
    body = {
        "__module__": __name__,
        "__annotations__": {"worker": worker},
        "worker": subsystem(consumes=reduce(or_, kinds)),
    }
    cls: Any = orchestra(signal=Bell, event=Knock)(type("Handling", (), body))
    made = worker()
    made.got = []
    return cls(worker=made), made


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("together", [True, False])
def test_each_message_reaches_the_method_for_its_class_and_so_does_one_of_a_subclass(
    count: int, together: bool
) -> None:
    kinds = kinds_of(count)
    app, worker = handling(kinds)
    child = msgspec.defstruct("Child", [], bases=(kinds[1],), module=__name__)
    sent = [kind(place) for place, kind in enumerate(kinds)] + [child(99)]

    async def main() -> None:
        async with start(app) as running:
            await turns()
            for message in sent:
                running.try_send(message)
                if not together:
                    await turns(3)
            await running.drain()

    within(20, main())
    assert worker.got == [*enumerate(sent[:-1]), (1, sent[-1])]


def test_few_methods_are_told_apart_by_tests_and_many_by_a_dict() -> None:
    few, many = (plan_of(type(handling(kinds_of(count))[0])).source for count in (FEW, MANY))
    assert "elif kind is Kind2" in few and "part.handle_other" in few
    assert "(find(message.__class__) or part.handle_other)(ctx, message)" in many
