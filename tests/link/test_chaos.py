"""Two senders, a receiver, and a network in which everything goes wrong: nothing twice, all accounted for."""

import asyncio
import logging
import random
from typing import Any

import pytest

from orchestra import Priority
from tests.link.fabric import Network, lossy, until
from tests.link.shop import Hand, Phase, Task
from tests.link.test_fabric import far, near

COUNT = 200
WRONGS = ("cut", "long cut", "loss", "freeze", "long freeze", "signal")


async def go_wrong(network: Network, running: Any, chance: random.Random) -> None:
    """One thing that goes wrong, and is well again."""
    name = chance.choice(("far", "near", "third"))
    match chance.choice(WRONGS):
        case "cut":
            network.cut(name)
            await asyncio.sleep(chance.random() * 0.1)
            network.mend(name)
        case "long cut":
            network.cut(name)
            await asyncio.sleep(0.4)
            network.mend(name)
        case "loss":
            network.drops = lossy(0.2, chance.randrange(1000))
            await asyncio.sleep(0.1)
            network.drops = lambda key: False
        case "freeze":
            network.freeze(name)
            await asyncio.sleep(0.05)
            network.thaw(name)
        case "long freeze":
            network.freeze(name)
            network.vanish(name)
            await asyncio.sleep(0.4)
            network.thaw(name, again=True)
        case "signal":
            await asyncio.wait([asyncio.ensure_future(running.broadcast(Phase(1), timeout=0.05))])


async def play(seed: int) -> None:
    chance, network, hand = random.Random(seed), Network(), Hand(answers=False)
    network.delay = lambda key: chance.random() * 0.003
    letters: list[Any] = []
    most = 0
    async with (
        far(network, hand) as there,
        near(network, dead_letters=letters.append) as running,
        near(network, name="third", dead_letters=letters.append) as third,
    ):
        await until(lambda: len(there.peers()) == 2)

        async def send(who: Any, base: int) -> None:
            for n in range(COUNT):
                await who.send(Task(base + n))
                if chance.random() < 0.2:
                    await asyncio.sleep(chance.random() * 0.01)

        async def open_and_close() -> None:
            nonlocal most
            while True:
                hand.gate.clear()
                await asyncio.sleep(chance.random() * 0.01)
                most = max(most, there.meters()["hand"].lanes[Priority.NORMAL].queued)
                hand.gate.set()
                await asyncio.sleep(chance.random() * 0.02)

        sends = [asyncio.ensure_future(send(who, base)) for who, base in ((running, 0), (third, 1000))]
        gate = asyncio.ensure_future(open_and_close())
        for _ in range(4):
            await asyncio.sleep(chance.random() * 0.05)
            await go_wrong(network, running, chance)
        await asyncio.gather(*sends)
        everything = {base + n for base in (0, 1000) for n in range(COUNT)}
        await until(lambda: {*hand.seen, *(letter.message.n for letter in letters)} == everything)
        gate.cancel()
        hand.gate.set()
    lost = [letter.message.n for letter in letters]
    assert len(lost) == len(set(lost)), seed
    for base in (0, 1000):
        mine = [n for n in hand.seen if base <= n < base + COUNT]
        assert mine == sorted(set(mine)), seed
    assert most <= 16, seed


@pytest.mark.parametrize("first", [0, 8])
def test_nothing_comes_twice_and_all_is_accounted_for(first: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)

    async def play_all() -> None:
        await asyncio.wait_for(asyncio.gather(*(play(seed) for seed in range(first, first + 8))), 30)

    asyncio.run(play_all())
