"""boxed="auto": only message types of which something can be changed are boxed."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs
import msgspec
import pytest

from orchestra import boxed, orchestra, plan_of, start, subsystem
from orchestra.box import codec_of
from tests.runtime.players import Bell, Calls, Knock, within

T = TypeVar("T")


class Price(msgspec.Struct, frozen=True):
    value: int


class Cheap(Price, frozen=True):
    """A subclass that is frozen too."""

    note: str = ""


class Tagged(Price, frozen=True):
    """A subclass that holds a list."""

    tags: list[str] = msgspec.field(default_factory=list)


class Order(msgspec.Struct):
    items: list[int]


@boxed(False)
class Shared(msgspec.Struct):
    items: list[int]


@boxed
class Sealed(msgspec.Struct, frozen=True):
    value: int


@attrs.frozen
class Page(Generic[T]):
    item: T


class Odd:
    """It is not packed at all."""

    def __init__(self) -> None:
        self._items: list[int] = []


EVERYTHING = Price | Order | Shared | Sealed | Page[list[int]] | Odd


def app_of(
    consumes: Any = EVERYTHING, worker: Any = None, boxed_messages: Any = False, **options: Any
) -> Any:
    @orchestra(signal=Bell, event=Knock, boxed_messages=boxed_messages)
    class App:
        worker: Calls = subsystem(consumes=consumes, **options)

    return App


@pytest.mark.parametrize(
    "options", [{"boxed": "auto"}, {"boxed_messages": "auto"}, {"boxed": "auto", "boxed_messages": True}]
)
def test_the_declared_types_decide_and_a_class_decides_before_them(options: Any) -> None:
    plan = plan_of(app_of(**options))
    boxed_kinds = {kind.__name__ for kind, route in plan.routes.items() if route.boxed}
    assert boxed_kinds == {"Order", "Sealed", "Page"}
    assert plan.subsystems["worker"].boxed == "auto"


def test_a_field_that_says_goes_before_the_orchestra() -> None:
    for value in (True, False):
        plan = plan_of(app_of(Price | Order, boxed_messages="auto", boxed=value))
        assert {bool(route.boxed) for route in plan.routes.values()} == {value}


def test_each_receiver_of_a_broadcast_has_its_own_switch() -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        auto: Calls = subsystem(subscribes=[Price, Order], boxed="auto")
        always: Calls = subsystem(subscribes=[Price, Order], boxed=True)
        never: Calls = subsystem(subscribes=[Price, Order], boxed=False)

    routes = plan_of(App).routes
    assert routes[Price].boxed == {"always"}
    assert routes[Order].boxed == {"auto", "always"}


def test_a_generic_message_is_boxed_by_what_it_is_declared_with() -> None:
    assert not plan_of(app_of(Page[int], boxed="auto")).routes[Page].boxed
    assert plan_of(app_of(Page[list[int]], boxed="auto")).routes[Page].boxed


def test_what_can_be_changed_is_copied_and_the_rest_is_shared() -> None:
    async def main() -> None:
        worker = Calls()
        async with start(app_of(boxed="auto")(worker=worker)) as running:
            order, price, odd = Order([1]), Price(1), Odd()
            for message in (order, price, odd, Cheap(2), Tagged(3, tags=["a"])):
                await running.send(message)
            order.items.append(2)
            await running.drain()
        first, second, third, fourth, fifth = worker.got
        assert first == Order([1])
        assert second is price
        assert third is odd
        assert (fourth, fifth) == (Cheap(2), Tagged(3, tags=["a"]))

    within(10, main())


@pytest.mark.parametrize(("made", "copied"), [(lambda: Cheap(1), False), (lambda: Tagged(1), True)])
def test_a_subclass_is_looked_at_when_it_is_first_sent(made: Callable[[], Any], copied: bool) -> None:
    async def main() -> None:
        worker = Calls()
        async with start(app_of(Price, boxed="auto")(worker=worker)) as running:
            messages = [made(), made()]
            for message in messages:
                await running.send(message)
            assert (running.meters()["worker"].bytes > 0) is copied
            await running.drain()
        assert [taken is sent for taken, sent in zip(worker.got, messages, strict=True)] == [not copied] * 2

    within(10, main())


def test_a_declared_subclass_in_a_function_is_known_with_the_names_of_that_function() -> None:
    class Item(msgspec.Struct):
        number: int

    class Base(msgspec.Struct, frozen=True): ...

    class Child(Base, frozen=True):
        item: "Item"

    @orchestra(signal=Bell, event=Knock)
    class App:
        worker: Calls = subsystem(consumes=Base, boxed="auto")
        sender: Calls = subsystem(consumes=Price, sends=[Child])

    assert codec_of(Child).mutable == "item is of Item, which is not frozen"
    assert plan_of(App).boxed_of(Child) == {"worker"}
    assert not plan_of(App).boxed_of(Base)
