"""The subsystems of the census."""

import asyncio
import contextlib
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from pathlib import Path
from typing import Any, Never

from examples.census.counting import count_file, leave_interrupts_to_the_parent
from examples.census.keys import keyboard_and_signals
from examples.census.messages import (
    Counted,
    Found,
    Report,
    ReportNow,
    SourceFile,
    StopWalking,
    Unreadable,
    WalkDone,
)
from examples.census.screen import Screen
from orchestra import Actor, Closed, Context, Full, Priority, Subsystem, handles

TOP_NAMES = 10

MOMENT = 0.2
"""Seconds in which a stop is told of. A SIGTERM to all processes of a group ends those of the pool too."""

Entry = Counted | Unreadable | Found | ReportNow
"""What the tally receives."""


class Walker(Subsystem[StopWalking, SourceFile | Found | WalkDone]):
    """Finds the `.py` files below `root`, `limit` at most, in the order of their paths."""

    def __init__(
        self, root: Path, *, limit: int | None = None, skipped: frozenset[str] = frozenset()
    ) -> None:
        self.root = root
        self.limit = limit
        self.skipped = skipped

    @staticmethod
    def priority(message: StopWalking) -> Priority:
        return Priority.HIGH

    async def run(self, ctx: Context[StopWalking, SourceFile | Found | WalkDone]) -> None:
        paths = await asyncio.to_thread(lambda: sorted(self._paths())[: self.limit])
        await ctx.send(Found(len(paths)))
        for done, path in enumerate(paths):
            if ctx.try_recv() is not None:
                await ctx.send(Found(done))
                break
            await ctx.send(SourceFile(path))
        await ctx.send(WalkDone())

    def _paths(self) -> Iterator[str]:
        for folder, subfolders, files in os.walk(self.root):
            subfolders[:] = [name for name in subfolders if name not in self.skipped]
            yield from (os.path.join(folder, name) for name in files if name.endswith(".py"))


class Reader(Subsystem[SourceFile, Counted | Unreadable]):
    """Has each file counted in a pool of processes, as many at a time as keep the cores busy."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes or os.cpu_count() or 1

    async def run(self, ctx: Context[SourceFile, Counted | Unreadable]) -> None:
        pool = ProcessPoolExecutor(
            self.processes,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=leave_interrupts_to_the_parent,
        )
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(2 * self.processes):
                    group.create_task(self._serve(ctx, pool))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, ctx: Context[SourceFile, Counted | Unreadable], pool: ProcessPoolExecutor) -> None:
        """One of several tasks that receive side by side: each file goes to one of them."""
        loop = asyncio.get_running_loop()
        async for file in ctx:
            try:
                figures = await loop.run_in_executor(pool, count_file, file.path)
            except BrokenExecutor:
                await asyncio.sleep(MOMENT)
                if ctx.closed:
                    return
                raise
            try:
                await ctx.send(figures)
            except Closed:
                return


class Tally(Actor[Entry, Report]):
    """Adds up, and reports when it is asked to, and at the end."""

    def __init__(self) -> None:
        self.found = 0
        self.files = 0
        self.code = 0
        self.comment = 0
        self.blank = 0
        self.tokens: Counter[str] = Counter()
        self.names: Counter[str] = Counter()
        self.unreadable: list[Unreadable] = []

    @staticmethod
    def priority(message: Entry) -> Priority:
        return Priority.HIGH if isinstance(message, ReportNow) else Priority.NORMAL

    @handles(Counted)
    def add(self, ctx: Context[Entry, Report], message: Counted) -> None:
        self.files += 1
        self.code += message.code
        self.comment += message.comment
        self.blank += message.blank
        self.tokens.update(message.tokens)
        self.names.update(message.names)

    @handles(Unreadable)
    def note(self, ctx: Context[Entry, Report], message: Unreadable) -> None:
        self.unreadable.append(message)

    @handles(Found)
    def expect(self, ctx: Context[Entry, Report], message: Found) -> None:
        self.found = message.files

    @handles(ReportNow)
    def report(self, ctx: Context[Entry, Report], message: ReportNow) -> None:
        with contextlib.suppress(Full):
            ctx.try_send(self.figures())

    async def stopped(self, ctx: Context[Entry, Report, Any]) -> None:
        with contextlib.suppress(Closed):
            await ctx.send(self.figures(final=True))

    def figures(self, *, final: bool = False) -> Report:
        return Report(
            found=self.found,
            files=self.files,
            lines=self.code + self.comment + self.blank,
            code=self.code,
            comment=self.comment,
            blank=self.blank,
            tokens=dict(self.tokens.most_common()),
            names=sorted(self.names.items(), key=lambda name: (-name[1], name[0]))[:TOP_NAMES],
            unreadable=sorted(self.unreadable, key=lambda file: file.path),
            final=final,
        )


class Reporter(Subsystem[Report, Never]):
    """Shows each report as it comes, and keeps the last."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.last = Report()

    async def run(self, ctx: Context[Report, Never]) -> None:
        with self.screen:
            async for self.last in ctx:
                self.screen.show(self.last)


class Desk(Subsystem[WalkDone, StopWalking | ReportNow]):
    """Asks for a report every `interval` seconds, at the key `r` and at SIGUSR1; `q` stops the walker."""

    def __init__(self, interval: float) -> None:
        self.interval = interval

    async def run(self, ctx: Context[WalkDone, StopWalking | ReportNow]) -> None:
        def ask(message: StopWalking | ReportNow) -> None:
            with contextlib.suppress(Full, Closed):
                ctx.try_send(message)

        with keyboard_and_signals(stop=lambda: ask(StopWalking()), report=lambda: ask(ReportNow())):
            while not await self._walk_is_done(ctx):
                ask(ReportNow())

    async def _walk_is_done(self, ctx: Context[WalkDone, StopWalking | ReportNow]) -> bool:
        """Wait for the walker, one interval at most. A receive that is cancelled loses nothing."""
        try:
            async with asyncio.timeout(self.interval):
                await ctx.recv()
        except TimeoutError:
            return False
        except Closed:
            return True
        return True
