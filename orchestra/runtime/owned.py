"""The tasks that a subsystem has spawned: held, awaited and cancelled together with it."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, Final, Protocol, TypeVar

from orchestra.runtime.inbox import Inbox
from orchestra.runtime.strand import place_of
from orchestra.runtime.telling import note

T = TypeVar("T")


class Owner(Protocol):
    """Whose tasks they are."""

    def task_failed(self, error: BaseException) -> None:
        """One has ended with an error."""


_NONE: Final[dict[asyncio.Task[Any], None]] = {}
"""What those have who have spawned none yet; a dict of its own is made for the first."""


class Owned:
    """The tasks of one subsystem that have not ended.

    The event loop holds tasks only weakly; these are held here until they have ended. The owner
    gets the error of each that ends with one; a task that is cancelled ends without.
    """

    __slots__ = ("_inbox", "_owner", "_tasks")

    def __init__(self, inbox: Inbox, owner: Owner) -> None:
        self._inbox = inbox
        self._owner = owner
        self._tasks: dict[asyncio.Task[Any], None] = _NONE

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str | None) -> "asyncio.Task[T]":
        """Let a coroutine run as a task of its own, in a copy of the caller's context variables."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            coroutine.close()
            raise
        name = name or getattr(coroutine, "__qualname__", None)
        if loop.get_task_factory() is None:
            task = loop.create_task(coroutine, name=name)
        else:
            task = loop.create_task(self._held_at_once(coroutine), name=name)
            task.add_done_callback(lambda _: coroutine.close())
        self._hold(task)
        task.add_done_callback(self._left)
        return task

    def cancel(self) -> None:
        """Cancel them all; those that swallow it go on."""
        for task in list(self._tasks):
            task.cancel()

    async def wait(self) -> None:
        """Wait until all that are there now have ended. Cancelling ends only the wait."""
        await asyncio.wait(self._tasks)

    def places(self) -> Iterator[str]:
        """Where each stands in its source."""
        for task in self._tasks:
            yield f"task {task.get_name()!r} at {place_of(task.get_coro())}"

    def __contains__(self, task: object) -> bool:
        return task in self._tasks

    def __bool__(self) -> bool:
        return bool(self._tasks)

    async def _held_at_once(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine whose task may take its first step before `create_task` returns: an eager one."""
        task = asyncio.current_task()
        assert task is not None
        self._hold(task)
        return await coroutine

    def _hold(self, task: "asyncio.Task[Any]") -> None:
        if self._tasks is _NONE:
            self._tasks = {}
        self._tasks[task] = None
        self._inbox.employ(task)

    def _left(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.pop(task, None)
        self._inbox.dismiss(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            note(error, f"raised in the task {task.get_name()!r} of {self._inbox.name!r}")
            self._owner.task_failed(error)
