"""Which event loop the benchmarks run on."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Factory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]

NAMES = ("asyncio", "uvloop")

_factory: ContextVar[Factory] = ContextVar("_factory", default=asyncio.new_event_loop)


def choose(name: str) -> None:
    """Make `run` use the loop of this name from now on."""
    if name == "uvloop":
        import uvloop

        _factory.set(uvloop.new_event_loop)
    else:
        _factory.set(asyncio.new_event_loop)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine to its end in a new loop, and give its value."""
    with asyncio.Runner(loop_factory=_factory.get()) as runner:
        return runner.run(coroutine)
