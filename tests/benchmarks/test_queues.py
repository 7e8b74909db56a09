"""The peers: each does all that it says it can, once, on each loop that it runs on."""

import asyncio
import multiprocessing
import sys
import threading
import time

import pytest

from benchmarks import loops, peers
from benchmarks.messages import BYTES, U8
from benchmarks.peers import Peer
from benchmarks.peers.hand_made import HandMade


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


WORKS = {"send": (50,), "ring": (2, 20, 2), "fanout": (3, 20), "ask": (10,), "start": (3,)}


def _works() -> list[tuple[Peer, str]]:
    return [(peer, work) for work in WORKS for peer in peers.that_can(work)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loop", loops.NAMES)
@pytest.mark.parametrize(
    ("peer", "work"), _works(), ids=lambda it: it.name if isinstance(it, Peer) else str(it)
)
def test_each_work_of_a_peer_has_a_cost(peer: Peer, work: str, loop: str) -> None:
    if loop != "asyncio" and not (peer.on_loop and loop in loops.others()):
        pytest.skip(f"it does not run on {loop}")
    before = threading.active_count()
    with loops.on(loop):
        assert getattr(peer, work)(*WORKS[work]) > 0
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before, "it leaves a thread behind"
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("name", ["aiologic", "culsans", "janus"])
def test_a_queue_with_two_sides_passes_from_each_to_the_other(name: str) -> None:
    (peer,) = [peer for peer in peers.that_can("two_sided") if peer.name == name]
    assert peer.two_sided is not None
    make = peer.two_sided

    async def main() -> tuple[int, int]:
        queue = make(3)
        queue.sync_q.put(1)
        first = await queue.async_q.get()
        await queue.async_q.put(2)
        return first, queue.sync_q.get()

    assert asyncio.run(main()) == (1, 2)


def test_slower_peers_have_shorter_runs() -> None:
    assert Peer("slow", slower=10).fewer(1_000) == 100
    assert Peer("slow", slower=10).fewer(5) == 1


def test_a_peer_that_is_not_installed_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "janus", None)
    monkeypatch.delitem(sys.modules, "benchmarks.peers.janus_queue", raising=False)
    monkeypatch.setattr(peers, "_found", peers._found.__wrapped__)
    assert "janus" in peers.missing()
    assert "janus" not in {peer.name for peer in peers.found()}


def test_a_peer_that_has_a_mistake_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS", {"not_there": "janus"})
    with pytest.raises(ModuleNotFoundError):
        peers._found.__wrapped__()
