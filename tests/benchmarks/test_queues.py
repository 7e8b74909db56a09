"""The work on other queues that stands beside the figures."""

import asyncio

import pytest

from benchmarks.messages import BYTES, U8
from benchmarks.queues import HandMade, ring_ns, send_ns


def test_the_bytes_are_1029() -> None:
    assert len(BYTES) == 1029


@pytest.mark.parametrize("capacity", [1, 3, 1024])
def test_the_hand_made_queue_keeps_order_and_capacity(capacity: int) -> None:
    async def main() -> list[int]:
        queue = HandMade(capacity)
        got: list[int] = []

        async def produce() -> None:
            for number in range(100):
                await queue.put(U8(number))
                assert len(queue._items) <= capacity

        async def consume() -> None:
            for _ in range(100):
                got.append((await queue.get()).value)

        await asyncio.gather(produce(), consume())
        return got

    assert asyncio.run(main()) == list(range(100))


@pytest.mark.parametrize("make", [HandMade, asyncio.Queue])
def test_a_send_has_a_cost(make: type) -> None:
    assert asyncio.run(send_ns(make(4), 100)) > 0


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_hop_has_a_cost(size: int) -> None:
    assert asyncio.run(ring_ns(size, hops=20, laps=3)) > 0
