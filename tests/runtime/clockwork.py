"""An event loop under the test's hand: turned step by step, its time passes only when nothing is ready."""

import asyncio
import heapq
import selectors
import types
from collections.abc import Coroutine, Generator, Iterable
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Never sleeps: the time for which it was to wait is put on the clock of the loop."""

    loop: "Clockwork"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everything waits, and nothing can come any more")
        self.loop.now += max(timeout, 0.0)
        return super().select(0)


class Clockwork(asyncio.SelectorEventLoop):
    """A real asyncio loop with a clock of its own, which starts at 0 and jumps to the next timer."""

    def __init__(self) -> None:
        self.now = 0.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)
        self.errors: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, context: self.errors.append(context))

    def time(self) -> float:
        return self.now

    def turn(self) -> None:
        """Run what is ready now, once."""
        self.call_soon(self.stop)
        self.run_forever()

    def settle(self, turns: int = 10_000) -> None:
        """Turn until nothing is ready; timers stay."""
        for _ in range(turns):
            self.turn()
            if not self.busy:
                return
        raise AssertionError("the loop does not come to rest")

    @property
    def busy(self) -> bool:
        """Whether a callback is ready, or a timer is due."""
        ready: Any = self._ready  # type: ignore[attr-defined]  # asyncio tells this nowhere else
        return bool(ready)

    def pass_time(self, seconds: float) -> None:
        """Let the timers of the next `seconds` fire, each in its turn."""
        end = self.now + seconds
        timers: Any = self._scheduled  # type: ignore[attr-defined]  # asyncio tells this nowhere else
        while True:
            self.settle()
            due = [timer.when() for timer in heapq.nsmallest(len(timers), timers) if not timer.cancelled()]
            if not due or due[0] > end:
                break
            self.now = max(self.now, due[0])
        self.now = end

    def close(self) -> None:
        if not self.is_closed():
            for _ in range(100):  # some need to be told more than once
                tasks = asyncio.all_tasks(self)
                for task in tasks:
                    task.cancel()
                self.settle()
                if not tasks:
                    break
        super().close()


def check(tasks: Iterable["asyncio.Task[Any] | None"]) -> None:
    """Raise the error of a Task that has failed."""
    for task in tasks:
        if task is not None and task.done() and not task.cancelled():
            task.result()


@contextmanager
def clockwork(*, strict: bool = True) -> Generator[Clockwork, None, None]:
    """A loop that is closed at the end, and in which, when it is strict, nothing went wrong unseen."""
    loop = Clockwork()
    try:
        yield loop
    finally:
        loop.close()
    assert loop.errors == [] or not strict


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, on a clockwork."""
    with clockwork() as loop:
        return loop.run_until_complete(coroutine)


@types.coroutine
def dawdling(coroutine: Coroutine[Any, Any, T], turns: int) -> Generator[Any, Any, T]:
    """Await a coroutine, and be late by some turns of the loop whenever what it waits for has come."""
    error: BaseException | None = None
    while True:
        try:
            if error is None:
                awaited = coroutine.send(None)
            else:
                thrown, error = error, None
                awaited = coroutine.throw(thrown)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # the result of the coroutine
        try:
            yield awaited
            for _ in range(turns):
                yield None
        except BaseException as raised:
            error = raised
