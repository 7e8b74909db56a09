"""A queue that is nearly always empty, against a deque; and what an idle subsystem takes because of it."""

import asyncio
import gc
import sys
import tracemalloc
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestra import Actor, Context, orchestra, start, subsystem
from orchestra.runtime.short import Short

CALLS = st.lists(st.tuples(st.sampled_from(["append", "appendleft", "popleft"]), st.integers()))


@given(CALLS)
def test_it_behaves_as_a_deque(calls: list[tuple[str, int]]) -> None:
    short: Short[int] = Short()
    other: deque[int] = deque()
    for name, value in calls:
        if name != "popleft":
            getattr(short, name)(value)
            getattr(other, name)(value)
        elif other:
            assert short.popleft() == other.popleft()
        else:
            with pytest.raises(IndexError):
                short.popleft()
        assert list(short) == list(other)


def test_it_is_small_while_it_is_empty() -> None:
    assert sys.getsizeof(Short()) * 8 < sys.getsizeof(deque())


class Idle(Actor):
    def handle(self, ctx: Context[Any, Any, Any], message: Any) -> None: ...


class Signal: ...


BURST = 10_000


def _of(size: int) -> Any:
    kinds = [type(f"M{place}", (), {}) for place in range(size)]
    fields = {f"part{place}": subsystem(consumes=kind) for place, kind in enumerate(kinds)}
    body = {"__module__": __name__, "__annotations__": dict.fromkeys(fields, Idle), **fields}
    return orchestra(signal=Signal, event=Signal, message_capacity=2 * BURST)(type("Many", (), body))


@pytest.mark.slow  # in debug mode, every handle keeps a traceback
def test_an_idle_subsystem_takes_little_memory() -> None:
    size = 100
    app = _of(size)

    def made() -> Any:
        return app(**{f"part{place}": Idle() for place in range(size)})

    async def main() -> float:
        async with start(made()):
            await asyncio.sleep(0)
        gc.collect()
        tracemalloc.start()
        try:
            async with start(made()):
                await asyncio.sleep(0)
                gc.collect()
                return tracemalloc.get_traced_memory()[0] / size
        finally:
            tracemalloc.stop()

    assert asyncio.run(main()) < 15 * 1024


@pytest.mark.slow  # in debug mode, every handle keeps a traceback
def test_an_inbox_gives_memory_back_after_a_burst() -> None:
    app = _of(1)
    kind = app.AllMessages

    async def main() -> tuple[int, int]:
        async with start(app(part0=Idle())) as running:
            running.try_send(kind())
            await running.send(kind())
            await asyncio.sleep(0.01)
            gc.collect()
            tracemalloc.start()
            try:
                for _ in range(BURST):
                    running.try_send(kind())
                full = tracemalloc.get_traced_memory()[0]
                await running.send(kind())
                while running.meters()["part0"].queued:
                    await asyncio.sleep(0.01)
                gc.collect()
                return full, tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()

    full, after = asyncio.run(main())
    assert full > 8 * BURST
    assert after < 16_000, "a deque keeps sixteen of its blocks, of half a KiB"
