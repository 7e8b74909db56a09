"""Settings for all tests, and the choice of the event loop that they run in.

`--loop debug`, `--loop uvloop` and `--loop eager` run the suite in asyncio's debug mode, on uvloop, and
with the eager task factory. The random tests then try a quarter of their examples,
and the slow tests are left out: both are for the plain loop.
"""

import asyncio
import gc
import os
import sys
from collections.abc import Iterator

import hypothesis
import pytest

hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")

LOOPS = ("plain", "debug", "uvloop", "eager")


class _Eager(asyncio.DefaultEventLoopPolicy):
    """Every new loop runs the first step of a Task at once."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        if sys.version_info >= (3, 12):
            loop.set_task_factory(asyncio.eager_task_factory)
        return loop


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--loop", choices=LOOPS, default="plain", help="the event loop to run the tests in")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--loop") != "plain":
        hypothesis.settings.register_profile("other loop", hypothesis.settings.default, max_examples=25)
        hypothesis.settings.load_profile("other loop")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--loop") != "plain":
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip("a slow test, for the plain loop alone"))
    reason = {"uvloop": None, "eager": "eager tasks came with Python 3.12"}.get(config.getoption("--loop"))
    if reason is not None and sys.version_info < (3, 12):
        for item in items:
            item.add_marker(pytest.mark.skip(reason))


@pytest.fixture(autouse=True, scope="session")
def small_heap() -> Iterator[None]:
    """Let `gc.collect()` in a test look at what the tests have made, not at every module."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="session")
def event_loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let `asyncio.run` make the loops that were asked for."""
    chosen = request.config.getoption("--loop")
    with pytest.MonkeyPatch.context() as patch:
        if chosen == "debug":
            patch.setenv("PYTHONASYNCIODEBUG", "1")
            patch.setattr(asyncio.constants, "DEBUG_STACK_DEPTH", 1)  # looking for ten costs most of the time
        elif chosen == "eager":
            asyncio.set_event_loop_policy(_Eager())
        elif chosen == "uvloop":
            import uvloop

            asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
        yield
    asyncio.set_event_loop_policy(None)
