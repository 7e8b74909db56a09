"""Which event loop the benchmarks run on."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, TypeVar

T = TypeVar("T")

NAMES = ("asyncio", "uvloop")

_chosen: ContextVar[str] = ContextVar("_chosen", default="asyncio")


def choose(name: str) -> None:
    """Make `run` use the loop of this name from now on."""
    _chosen.set(name)


def chosen() -> str:
    """The name of the loop that `run` uses."""
    return _chosen.get()


@contextmanager
def on(name: str) -> Generator[None]:
    """Meanwhile, `run` uses the loop of this name."""
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def others() -> tuple[str, ...]:
    """The loops beside the chosen one that are installed."""
    installed = [name for name in NAMES if name == "asyncio" or find_spec(name) is not None]
    return tuple(name for name in installed if name != chosen())


def _factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if chosen() == "uvloop":
        import uvloop

        return uvloop.new_event_loop
    return asyncio.new_event_loop


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine to its end in a new loop, and give its value."""
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(coroutine)
