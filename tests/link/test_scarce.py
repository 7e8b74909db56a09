"""Lanes with fewer places than senders, who do not wait: who is refused is lent a place all the same."""

import asyncio
from typing import Any

import msgspec
import pytest

from orchestra import Actor, Drop, Fail, Full, Remote, orchestra, start, subsystem
from tests.link.fabric import Network, until
from tests.link.shop import Phase
from tests.link.test_fabric import within

run = within(20)


class Step(msgspec.Struct, frozen=True):
    n: int


class Idle(Actor):
    """It may send, and nothing asks it to."""

    def handle(self, ctx: Any, message: Any) -> None: ...


class Hand(Actor):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def handle(self, ctx: Any, message: Step) -> None:
        self.seen.append(message.n)


@orchestra(signal=Phase, event=Phase)
class Narrow:
    first: Idle = subsystem(sends=[Step])
    second: Idle = subsystem(sends=[Step])
    hand: Hand = subsystem(consumes=Step, message_capacity=1, overflow=Fail())


@orchestra(signal=Phase, event=Phase)
class Dropping:
    first: Idle = subsystem(sends=[Step])
    second: Idle = subsystem(sends=[Step])
    hand: Hand = subsystem(consumes=Step, message_capacity=1, overflow=Drop(0))


def part(network: Network, name: str, kind: Any = Narrow, **hosted: Any) -> Any:
    fields = {field: Remote() for field in ("first", "second", "hand")} | hosted
    return start(kind(**fields), link=network.link(name))


async def tried(running: Any, count: int, pause: float = 0.05) -> list[bool]:
    """What came of so many tries to send, with pauses between them."""
    outcomes = []
    for n in range(count):
        try:
            outcomes.append(await running.send(Step(n)))
        except Full:
            outcomes.append(False)
        await asyncio.sleep(pause)
    return outcomes


@pytest.mark.parametrize("kind", [Narrow, Dropping])
def test_who_never_sends_keeps_no_place_from_one_who_tries(kind: Any) -> None:
    @run
    async def tries() -> None:
        network = Network()
        hand = Hand()
        async with (
            part(network, "far", kind, hand=hand),
            part(network, "quiet", kind, second=Idle()) as quiet,
            part(network, "near", kind, first=Idle()) as running,
        ):
            await until(lambda: len(quiet.peers()) == len(running.peers()) == 2)
            outcomes = await tried(running, 40)
            assert outcomes[-20:] == [True] * 20
            assert hand.seen == [n for n, taken in enumerate(outcomes) if taken]

    tries()


@run
async def test_who_tries_in_the_process_of_the_host_gets_what_others_do_not_use() -> None:
    network = Network()
    async with (
        part(network, "far", first=Idle(), hand=Hand()) as there,
        part(network, "near", second=Idle()) as running,
    ):
        await until(lambda: running.peers())
        assert True in await tried(running, 10)
        assert (await tried(there, 40))[-20:] == [True] * 20


@run
async def test_two_who_try_at_the_same_time_both_get_places() -> None:
    network = Network()
    async with (
        part(network, "far", hand=Hand()),
        part(network, "one", first=Idle()) as one,
        part(network, "two", second=Idle()) as two,
    ):
        await until(lambda: len(one.peers()) == len(two.peers()) == 2)
        outcomes = await asyncio.gather(tried(one, 60), tried(two, 60))
        assert min(sum(each) for each in outcomes) >= 10, outcomes


@run
async def test_who_was_quiet_for_long_is_lent_a_place_when_it_sends() -> None:
    network = Network()
    async with (
        part(network, "far", hand=Hand()),
        part(network, "quiet", second=Idle()) as quiet,
        part(network, "near", first=Idle()) as running,
    ):
        await until(lambda: len(quiet.peers()) == len(running.peers()) == 2)
        await tried(running, 20)
        assert (await tried(quiet, 40))[-20:] == [True] * 20
