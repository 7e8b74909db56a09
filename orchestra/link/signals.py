"""Signals between processes: each is numbered by its origin, and all see those of an origin in order.

A signal that was missed is asked for again. `seen` has how many signals of each origin were put into the
queues here; the packets of messages carry it, and wait where they arrive until as many were seen there.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from orchestra.box import Box
from orchestra.link.crossing import crossing
from orchestra.link.exact import Unfit, refuse
from orchestra.link.parcels import Kinds, opened, pack
from orchestra.link.peers import Neighbour, State
from orchestra.link.wire import Forgotten, Malformed, Missed, Seen, Told

KEPT = 1024
"""Signals of this process that are kept for those who have missed them."""

PATIENCE = 0.5
"""Seconds after which what was not answered is said again."""


@attrs.define(eq=False)
class Unheard:
    """The signals that a process has not said to have got, by number, and when it was last told one."""

    neighbour: Neighbour
    numbers: dict[int, None] = attrs.Factory(dict)
    at: float = 0.0


@attrs.define(eq=False)
class Packed:
    """A signal as it crosses, and who has not read it: by epoch, the subsystems that are named."""

    told: Told
    unread: dict[int, tuple[str, ...]] = attrs.Factory(dict)
    future: "asyncio.Future[None] | None" = None


class Signals:
    """The signals of this process and of the others.

    `carried` is what of `seen` goes with messages: not of processes that are gone, which nobody can get now.
    `put` puts a signal into every queue here, and gives what is over its capacity: the names of subsystems,
    and what is to be awaited until none is. `caught_up` is called when more was seen.
    """

    def __init__(
        self,
        epoch: int,
        kinds: Kinds,
        loop: asyncio.AbstractEventLoop,
        here: Callable[[], Iterable[Neighbour]],
        put: Callable[[Any], "tuple[list[str], asyncio.Future[Any] | None]"],
        caught_up: Callable[[], None],
    ) -> None:
        self._epoch = epoch
        self._kinds = kinds
        self._loop = loop
        self._here = here
        self._put = put
        self._caught_up = caught_up
        self._own: OrderedDict[int, Packed] = OrderedDict()
        self._unheard: dict[int, Unheard] = {}
        self._asked: dict[int, tuple[int, float]] = {}
        self._being_read: set[tuple[int, int]] = set()
        self.seen: dict[int, int] = {epoch: 0}
        self.carried: dict[int, int] = {}
        self.missed = 0

    @property
    def count(self) -> int:
        """How many signals this process has sent."""
        return self.seen[self._epoch]

    # those of this process

    def pack(self, signal: Any) -> Packed:
        """A signal as it crosses. Raises `BoxError` for one that cannot be packed."""
        codec = self._kinds.codec(self._kinds.written(type(signal)))
        box: Box[Any] = crossing(codec).seal(signal)
        runs, frames = pack([box], self._kinds, lambda kind: refuse)
        kind, form, _ = runs[0]
        return Packed(Told(0, kind, form, frames[0]))

    def tell(self, packed: Packed) -> "asyncio.Future[None] | None":
        """It is in the queues here: give it to all others; what is given is done when all have read it."""
        number = self.seen[self._epoch] = self.carried[self._epoch] = self.count + 1
        told = packed.told
        packed.told = Told(number, told.kind, told.form, told.frame)
        self._own[number] = packed
        if len(self._own) > KEPT:
            self._own.popitem(last=False)
        for neighbour in self._here():
            packed.unread[neighbour.epoch] = neighbour.hosts
            unheard = self._unheard.setdefault(neighbour.epoch, Unheard(neighbour))
            unheard.numbers[number] = None
            unheard.at = self._loop.time()
            neighbour.tell(packed.told)
        if not packed.unread:
            return None
        packed.future = self._loop.create_future()
        return packed.future

    def was_seen(self, neighbour: Neighbour, seen: Seen) -> None:
        """A process has put a signal of this one into its queues; some may be over their capacity."""
        if neighbour.epoch in self._unheard:
            self._unheard[neighbour.epoch].numbers.pop(seen.number, None)
        packed = self._own.get(seen.number)
        if packed is not None and neighbour.epoch in packed.unread:
            if seen.stalled:
                packed.unread[neighbour.epoch] = tuple(seen.stalled)
            else:
                self._read(packed, neighbour.epoch)

    def again(self, neighbour: Neighbour, number: int) -> None:
        """A process has missed signals from this number on."""
        kept = next(iter(self._own), self.count + 1)
        if number < kept:
            neighbour.tell(Forgotten(kept - 1))
        for each, packed in self._own.items():
            if each >= number:
                neighbour.tell(packed.told)

    def tell_again(self) -> None:
        """Say again what was not heard: the first that is missing, for then the rest is asked for."""
        now = self._loop.time()
        for unheard in self._unheard.values():
            number = next(iter(unheard.numbers), None)
            while number is not None and number not in self._own:
                del unheard.numbers[number]
                number = next(iter(unheard.numbers), None)
            if number is not None and unheard.neighbour.state is State.HERE and now - unheard.at >= PATIENCE:
                unheard.at = now
                unheard.neighbour.tell(self._own[number].told)

    def gone(self, neighbour: Neighbour) -> None:
        """Nobody waits for it any more, nor for what it has sent."""
        self._unheard.pop(neighbour.epoch, None)
        self._asked.pop(neighbour.epoch, None)
        self.carried.pop(neighbour.epoch, None)
        for packed in self._own.values():
            if neighbour.epoch in packed.unread:
                self._read(packed, neighbour.epoch)

    def _read(self, packed: Packed, epoch: int) -> None:
        del packed.unread[epoch]
        if not packed.unread and packed.future is not None and not packed.future.done():
            packed.future.set_result(None)

    # those of others

    def greeted(self, neighbour: Neighbour, count: int) -> None:
        """A process tells how many it has sent: at its first greeting those before do not matter here."""
        seen = self.seen.setdefault(neighbour.epoch, count)
        if seen < count:
            neighbour.tell(Missed(seen + 1))
        if seen:
            self.carried[neighbour.epoch] = seen
        self._caught_up()

    def came(self, neighbour: Neighbour, told: Told) -> None:
        """A signal of another process has come. Raises for what is none."""
        seen = self.seen.get(neighbour.epoch)
        if seen is None:
            return
        if told.number <= seen:
            if (neighbour.epoch, told.number) not in self._being_read:
                neighbour.tell(Seen(told.number, []))
            return
        if told.number > seen + 1:
            self._miss(neighbour, seen)
            return
        codec = self._kinds.codec(told.kind)
        try:
            signal = opened(codec, told.form, told.frame, no_address).message
        except Malformed:
            raise
        except Exception as error:
            raise Malformed(f"no signal: {error}") from None
        self.seen[neighbour.epoch] = self.carried[neighbour.epoch] = told.number
        stalled, reading = self._put(signal)
        neighbour.tell(Seen(told.number, stalled))
        if reading is not None:
            self._being_read.add((neighbour.epoch, told.number))
            reading.add_done_callback(lambda _: self._has_read(neighbour, told.number))
        self._caught_up()

    def _miss(self, neighbour: Neighbour, seen: int) -> None:
        """Ask for what comes after those seen, once for all that came too early."""
        asked, at = self._asked.get(neighbour.epoch, (-1, 0.0))
        now = self._loop.time()
        if asked != seen or now - at >= PATIENCE:
            self._asked[neighbour.epoch] = seen, now
            neighbour.tell(Missed(seen + 1))

    def forgotten(self, neighbour: Neighbour, number: int) -> None:
        """A process does not keep what was missed any more, up to this number."""
        if number > self.seen.get(neighbour.epoch, number):
            self.give_up(neighbour.epoch, number)
            self.carried[neighbour.epoch] = number
            self._caught_up()

    def give_up(self, origin: int, count: int) -> None:
        """What a process that is gone has sent and nobody has now is counted, and no longer waited for."""
        seen = self.seen.get(origin, 0)
        if seen < count:
            self.missed += count - seen
            self.seen[origin] = count

    def _has_read(self, neighbour: Neighbour, number: int) -> None:
        self._being_read.discard((neighbour.epoch, number))
        if neighbour.state is State.HERE:
            neighbour.tell(Seen(number, []))


def no_address(mark: str, rest: Any) -> Any:
    """Signals carry no addresses."""
    raise Unfit(f"a signal with a {mark}")
