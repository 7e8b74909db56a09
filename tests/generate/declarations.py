"""Orchestras whose generated source is held against the texts in `expected`."""

from typing import Any, Never

import attrs
import msgspec

from orchestra import Actor, Drop, DropOldest, Fail, Priority, Subsystem, handles, orchestra, subsystem


class Line(msgspec.Struct, frozen=True):
    text: str


class Count(msgspec.Struct, frozen=True):
    words: int


class Report(msgspec.Struct, frozen=True):
    total: int


@attrs.frozen
class Stop: ...


@attrs.frozen
class Appeared:
    path: str


class Reader(Subsystem):
    async def run(self, ctx: Any) -> None: ...


class Counter(Actor):
    def handle(self, ctx: Any, message: Any) -> None: ...


class PatientCounter(Actor):
    async def handle(self, ctx: Any, message: Any) -> None: ...

    async def on_signal(self, ctx: Any, signal: Any) -> None: ...


class Judge(Actor):
    """Some handlers are asynchronous, and it says itself which lane takes a message."""

    @handles(Line)
    def on_line(self, ctx: Any, message: Line) -> None: ...

    @handles(Count)
    async def on_count(self, ctx: Any, message: Count) -> None: ...

    def on_signal(self, ctx: Any, signal: Any) -> None: ...

    @staticmethod
    def priority(message: Any) -> Priority:
        return Priority.HIGH if isinstance(message, Count) else Priority.NORMAL


class Keeper(Actor):
    """Plain handlers, and a hook for signals."""

    @handles(Line)
    def on_line(self, ctx: Any, message: Line) -> None: ...

    def handle(self, ctx: Any, message: Any) -> None: ...

    def on_signal(self, ctx: Any, signal: Any) -> None: ...


class Watch(Keeper):
    """Plain handlers, and a hook for the deadline beside that for signals."""

    def deadline_passed(self, ctx: Any, deadline: float) -> None: ...


class Alarm(Actor):
    """Nothing but an asynchronous hook for the deadline."""

    async def deadline_passed(self, ctx: Any, deadline: float) -> None: ...


@orchestra(signal=Stop, event=Appeared)
class Pipeline:
    """A `run`, a plain Actor and an asynchronous one, each with one lane."""

    reader: Reader = subsystem(consumes=Never, sends=[Line])
    counter: Counter = subsystem(consumes=Line, sends=[Count], message_capacity=16)
    total: PatientCounter = subsystem(consumes=Count)


@orchestra(signal=Stop, event=Appeared, boxed_messages=True, outgoing=Report)
class Boxed:
    """Boxes, lanes, the levels from the send and from the receiver, and what leaves the orchestra."""

    reader: Reader = subsystem(consumes=Count, sends=[Line], priorities=[Priority.HIGH, Priority.NORMAL])
    keeper: Keeper = subsystem(consumes=Line, sends=[Count, Report], overflow=Fail(), boxed=False)


@orchestra(signal=Stop, event=Appeared)
class Judged:
    """A `priority` method, handlers by type, a broadcast, and a planned receiver."""

    reader: Reader = subsystem(consumes=Never, sends=[Line, Count, Report])
    judge: Judge = subsystem(consumes=Line | Count, message_capacity={Priority.HIGH: 8, Priority.NORMAL: 64})
    planned: Counter = subsystem(subscribes=[Report], wip=True)
    log: Counter = subsystem(subscribes=[Report])


@orchestra(signal=Stop, event=Appeared)
class Watched:
    """Deadlines, told by a plain hook and by an asynchronous one."""

    watch: Watch = subsystem(consumes=Line)
    alarm: Alarm = subsystem(sends=[Line])


class Disk(Subsystem):
    def run(self, ctx: Any) -> None: ...


class Ledger(Actor):
    """An Actor for a thread."""

    def handle(self, ctx: Any, message: Any) -> None: ...

    def on_signal(self, ctx: Any, signal: Any) -> None: ...


@orchestra(signal=Stop, event=Appeared)
class Threaded:
    """A `run` and an Actor in threads, and what is sent to them, from them, and to several from them."""

    reader: Reader = subsystem(consumes=Never, sends=[Line])
    disk: Disk = subsystem(consumes=Line, sends=[Count, Report], blocking=True)
    ledger: Ledger = subsystem(
        consumes=Count, subscribes=[Report], blocking=True, message_capacity=4, overflow=DropOldest()
    )
    total: PatientCounter = subsystem(subscribes=[Report], overflow=Drop())
    counter: Counter = subsystem(consumes=Never, subscribes=[Report])


@attrs.define
class Parcel:
    items: list[str]


@orchestra(signal=Stop, event=Appeared, boxed_messages="auto")
class Weighed:
    """Lanes that count bytes: one, one of two, one that threads share, and one of a broadcast."""

    reader: Reader = subsystem(consumes=Never, sends=[Parcel, Line, Count, Report])
    keeper: Keeper = subsystem(
        consumes=Line,
        subscribes=[Parcel],
        capacity_bytes=1_000,
        overflow=Drop(),
    )
    tally: PatientCounter = subsystem(
        consumes=Count,
        boxed=True,
        priorities=[Priority.HIGH, Priority.NORMAL],
        capacity_bytes={Priority.NORMAL: 1_000},
    )
    ledger: Ledger = subsystem(consumes=Report, boxed=True, blocking=True, capacity_bytes=1_000)
    log: Counter = subsystem(subscribes=[Parcel])


DECLARATIONS: list[Any] = [Pipeline, Boxed, Judged, Watched, Threaded, Weighed]
