"""Where messages from other processes come into the inbox of a subsystem that this one hosts.

Each lane lends its room to the senders there: what was granted and is not used is kept free, so its capacity
for those in this process is what is left. When messages were taken, room is granted anew.
"""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

import attrs
import msgspec

from orchestra.link import wire
from orchestra.link.credit import Account, Granter
from orchestra.link.exact import Back
from orchestra.link.order import Stream, ahead
from orchestra.link.parcels import Kinds, opened
from orchestra.link.peers import Neighbour, State
from orchestra.link.wire import PACKED, AsksBack, Grants, Header, Kind, LaneNews, Malformed
from orchestra.packing.codec import Codec
from orchestra.plan import Plan
from orchestra.priority import Priority
from orchestra.runtime.bytelane import ByteLane
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.lane import Gate, Lane
from orchestra.runtime.threads.inbox import held
from orchestra.runtime.threads.lane import SharedLane

MOST = 65536
"""Messages that are granted in a lane without a bound."""

BYTES = 32 * 1024
"""Bytes after whose arrival the sender is told, whatever the room."""


AGAIN = 0.05
"""Seconds after which what has not come is asked for once more."""


@attrs.frozen
class Surroundings:
    """What inlets need of the engine around them.

    `seen` has how many signals of each origin were seen here, `back` makes what rides beside a frame from a
    process, for a subsystem; `soon` has a function called at the next turn, once however often it is given,
    `later` a hundredth of a second later; `noise` is told of what is not as it should be.
    """

    kinds: Kinds
    seen: Mapping[int, int]
    back: Callable[[Neighbour, str, type], Back]
    soon: Callable[[Callable[[], None]], None]
    later: Callable[[Callable[[], None]], None]
    noise: Callable[[Neighbour, str], None]


@attrs.define(eq=False)
class Parts:
    """The pieces that have come of a big packet, and their count."""

    number: int = -1
    came: int = 0
    pieces: list[bytes] = attrs.Factory(list)

    def begin(self, number: int = -1) -> None:
        """Those before do not matter any more."""
        self.number, self.came, self.pieces = number, 0, []


@attrs.define(eq=False)
class Source:
    """What one process sends to one lane. `told` is up to where it was told what became of it."""

    neighbour: Neighbour
    stream: Stream = attrs.Factory(Stream)
    told: int = 0
    bytes: int = 0
    account: Account = attrs.Factory(Account)
    gone: bool = False
    asked: tuple[int, int, float] = (-1, 0, 0.0)
    """From which number and piece on it was asked to send again, and when."""
    parts: Parts = attrs.Factory(Parts)


class LaneInlet:
    """One lane of a hosted subsystem."""

    def __init__(
        self,
        inlet: "Inlet",
        lane: Lane,
        *,
        local: bool,
    ) -> None:
        self._inlet = inlet
        self._inbox = inlet.inbox
        self._around = inlet.around
        self._lane = lane
        self._local = local
        self._declared = lane.capacity
        self._lends = not lane.displaces and lane.capacity <= MOST
        self._granter = Granter(min(lane.capacity, MOST))
        self._sources: dict[int, Source] = {}
        self._watches = False

    # who may send

    def join(self, neighbour: Neighbour) -> None:
        """A process may send from now on, or again."""
        source = self._sources.get(neighbour.epoch)
        if source is None or source.gone:
            source = source or Source(neighbour)
            source.gone = False
            likely = not self._inlet.senders.isdisjoint(neighbour.hosts)
            source.account = self._granter.join(neighbour.epoch, likely=likely)
            self._sources[neighbour.epoch] = source
        self._ask_back()
        self.grant()
        self._tell(source)

    def leave(self, neighbour: Neighbour) -> None:
        """A process is gone, and may come again: its places are free, and what is not seen yet is lost."""
        source = self._sources.get(neighbour.epoch)
        if source is None or source.gone:
            return
        neighbour.lost += sum(header.count for header, _ in source.stream.held)
        source.stream.held.clear()
        source.parts.begin()
        source.gone = True
        self._granter.leave(neighbour.epoch)
        self.grant()

    # what comes

    def packet(self, neighbour: Neighbour, header: Header, payload: bytes) -> None:
        """A packet has come. It waits while a signal that its sender had seen was not seen here."""
        source = self._sources.get(neighbour.epoch)
        if source is None or source.gone:
            raise Malformed("messages before a greeting")
        if header.piece is not None:
            whole = self._joined(source, header, payload)
            if whole is None:
                return
            payload = whole
        if header.count > len(payload):
            raise Malformed(f"{len(payload)} bytes, where the header says {header.count} frames")
        if header.first > source.account.limit and not source.account.returning:
            raise Malformed(f"message {header.first}, where only {source.account.limit} were granted")
        if source.stream.held or ahead(self._around.seen, header.signals):
            source.stream.held.append((header, payload))
        else:
            self._accept(source, header, payload)

    def _joined(self, source: Source, header: Header, piece: bytes) -> bytes | None:
        """All pieces of a packet as one, when this is the last; they come in order, or are sent again."""
        assert header.piece is not None
        number, count = header.piece
        parts = source.parts
        if header.first > source.account.limit and not source.account.returning:
            raise Malformed(f"message {header.first}, where only {source.account.limit} were granted")
        if number >= count:
            raise Malformed(f"piece {number} of {count}")
        if parts.number != header.first:
            parts.begin(header.first)
        if number > parts.came:
            self._ask_again(source)
            return None
        if number == parts.came:
            parts.came += 1
            parts.pieces.append(piece)
            if parts.came == count:
                whole, parts.pieces = b"".join(parts.pieces), []
                return whole
        self._tell(source)
        return None

    def let_in(self) -> None:
        """Signals have been seen: accept what is no longer ahead."""
        for source in self._sources.values():
            held_back = source.stream.held
            while held_back and not ahead(self._around.seen, held_back[0][0].signals):
                self._accept(source, *held_back.popleft())

    def needs(self) -> dict[int, int]:
        """The signals, by origin, that the first packets that are held back need."""
        found: dict[int, int] = {}
        for source in self._sources.values():
            if source.stream.held:
                for origin, count in source.stream.held[0][0].signals.items():
                    if count > self._around.seen.get(origin, 0):
                        found[origin] = max(count, found.get(origin, 0))
        return found

    @property
    def holds_back(self) -> bool:
        """Whether a packet waits for a signal."""
        return any(source.stream.held for source in self._sources.values())

    def _accept(self, source: Source, header: Header, payload: bytes) -> None:
        stream, account, neighbour = source.stream, source.account, source.neighbour
        if header.first > max(stream.expected, header.heard):
            if header.piece is not None:
                source.parts.begin()
            self._ask_again(source)
            return
        lost = stream.lost
        skip = stream.admit(header.first, header.count)
        good = max(skip, min(header.count, account.limit - header.first))
        entries = self._opened(source, header, payload, skip, good) if good > skip else []
        if good < header.count:
            self._lose(source, header.first + good, header.first + header.count, "more than was granted")
        neighbour.lost += stream.lost - lost
        neighbour.received += len(entries)
        self._granter.arrive(neighbour.epoch, stream.expected)
        if entries:
            self._put(entries)
        stream.heard(header.heard)
        account.wants = account.wants or header.wants
        source.bytes += len(payload)
        if header.count == 0 or source.bytes >= BYTES or (stream.gaps and stream.gaps[-1][1] > source.told):
            self._tell(source)
        self._around.soon(self.grant)
        self._around.later(self._tell_all)

    def _ask_again(self, source: Source) -> None:
        """Something before this packet has not come, and its sender still has it: all is to come in order."""
        *missing, at = source.asked
        now = monotonic()
        expected, came = source.stream.expected, source.parts.came
        if missing != [expected, came] or now - at >= AGAIN:
            source.asked = expected, came, now
            self._tell(source, again=True)

    def _opened(self, source: Source, header: Header, payload: bytes, skip: int, good: int) -> list[Any]:
        """The entries for the lane, of the messages of a packet from number `skip` to before `good`."""
        try:
            frames = wire.read_frames(payload, header.count)
        except Malformed as error:
            self._lose(source, header.first + skip, header.first + good, str(error))
            return []
        if len(header.runs) == 1 and header.runs[0][1] == PACKED and skip == 0 and good == header.count:
            entries = self._opened_at_once(header.runs[0][0], frames)
            if entries is not None:
                return entries
        found: list[Any] = []
        number = 0
        for kind, form, count in header.runs:
            for _ in range(count):
                if skip <= number < good:
                    try:
                        found.append(self._open(source.neighbour, kind, form, frames[number]))
                    except Exception as error:  # whatever a stranger has sent, the loop goes on
                        self._lose(source, header.first + number, header.first + number + 1, str(error))
                number += 1
        return found

    def _opened_at_once(self, kind: Kind, frames: list[msgspec.Raw]) -> list[Any] | None:
        """The messages of packed frames of one kind; None where that does not go through."""
        try:
            codec = self._inlet.codec(kind)
            decode, build = codec.decode, codec.build
            if self._inbox.opens or decode is None or build is None or decode is bytes:
                return None
            return [build(decode(frame)) for frame in frames]
        except Exception:
            return None

    def _open(self, neighbour: Neighbour, kind: Kind, form: int, frame: msgspec.Raw) -> Any:
        codec = self._inlet.codec(kind)
        back = self._around.back(neighbour, self._inlet.name, codec.kind)
        found = opened(codec, form, frame, back)
        return found.box if self._inbox.opens else found.message

    def _lose(self, source: Source, first: int, end: int, why: str) -> None:
        """Count messages that came and are none; their sender is told that they are lost."""
        source.stream.gaps.append((first, end))
        source.stream.lost += end - first
        self._around.noise(source.neighbour, why)

    def _put(self, entries: list[Any]) -> None:
        lane, inbox = self._lane, self._inbox
        with held([inbox]):
            if lane._gate is not Gate.OPEN:
                for entry in entries:
                    lane.buried += 1
                    lane._around.bury(entry, "stopped")
                return
            if lane.displaces:
                for entry in entries:
                    if len(lane.queue) < lane.capacity:
                        lane.queue.append(entry)
                    else:
                        lane.displace(entry)
            else:
                if isinstance(lane, ByteLane):
                    lane.take_over(entries)
                else:
                    lane.queue.extend(entries)
                self._resize()
            for _ in entries:
                if not inbox.idle:
                    break
                inbox.wake()

    # room

    def grant(self) -> None:
        """Lend what room there is, and look again when something was taken."""
        lane = self._lane
        with held([self._inbox]):
            queued = len(lane.queue) + lane.senders_granted if self._lends else 0
            told = self._granter.grant(queued, local=self._counts_local)
            self._resize()
            wanted = self._granter.wanted(local=self._counts_local)
        for epoch in told:
            self._tell(self._sources[epoch])
        if wanted and not self._watches and (lane.queue or not isinstance(lane, SharedLane)):
            self._watches = True
            lane.watch(self._looked)  # a shared one says at once that it is empty

    def tick(self) -> None:
        """Lend what is free by now, and ask for room back where somebody starves."""
        self.grant()
        if len(self._lane.queue) < self._lane.room:
            self._lane.sought = False
        local = bool(self._lane.waiting) or self._lane.sought
        if self._granter.starving(local=local):
            self._granter.ask_back(local=local)
        self._ask_back()

    def _tell_all(self) -> None:
        """Tell all who do not know it what has arrived."""
        for source in self._sources.values():
            if source.stream.expected > source.told and not source.gone:
                self._tell(source)

    def returned(self, neighbour: Neighbour, number: int, limit: int) -> None:
        """A process has given back what it had not used."""
        if self._granter.returned(neighbour.epoch, number, limit):
            self.grant()
            self._tell(self._sources[neighbour.epoch])

    def news_for(self, neighbour: Neighbour) -> LaneNews | None:
        """What became of what a process has sent here; None where it cannot have."""
        source = self._sources.get(neighbour.epoch)
        return None if source is None or source.gone else self._news(source)

    @property
    def _counts_local(self) -> bool:
        """Whether room is kept for senders in this process."""
        return self._local or bool(self._lane.waiting)

    def _looked(self) -> None:
        self._watches = False
        self._around.soon(self.grant)

    def _resize(self) -> None:
        """What is lent is no room for those in this process."""
        if self._lends:
            self._lane.capacity = self._declared - self._granter.reserved
            self._lane.settle()

    def _ask_back(self) -> None:
        for epoch in self._granter.owing:
            source, account = self._sources[epoch], self._granter.accounts[epoch]
            if source.neighbour.state is State.HERE:
                place, level = self._inlet.place, self._lane.priority
                asked = AsksBack(place, level, account.round + 1, account.asked_back or 0)
                source.neighbour.tell(asked)

    def _tell(self, source: Source, *, again: bool = False) -> None:
        if source.neighbour.state is State.HERE:
            source.told, source.bytes = source.stream.expected, 0
            source.neighbour.tell(Grants([self._news(source, again)]))

    def _news(self, source: Source, again: bool = False) -> LaneNews:
        stream, account = source.stream, source.account
        place, level = self._inlet.place, self._lane.priority
        pieces = source.parts.came if source.parts.number == stream.expected else 0
        return LaneNews(
            place, level, account.round, account.limit, stream.expected, stream.gaps, again, pieces
        )


class Inlet:
    """The lanes of one hosted subsystem, as others see them."""

    def __init__(self, name: str, place: int, inbox: Inbox, plan: Plan, around: Surroundings) -> None:
        self.name = name
        self.place = place
        self.inbox = inbox
        self.around = around
        self._plan = plan
        self._codecs: dict[Kind, Codec] = {}
        self.senders = frozenset(plan.subsystems[name].senders)
        local = any(not plan.subsystems[sender].remote for sender in self.senders)
        self.lanes = {lane.priority: LaneInlet(self, lane, local=local) for lane in inbox.lanes}

    def codec(self, kind: Kind) -> Codec:
        """The codec of a kind of message, if this subsystem receives it."""
        codec = self._codecs.get(kind)
        if codec is None:
            codec = self.around.kinds.codec(kind)
            route = self._plan.route_of(codec.kind)
            if route is None or self.name not in route.receivers:
                raise Malformed(f"{self.name!r} receives no {codec.kind.__qualname__}")
            self._codecs[kind] = codec
        return codec

    def packet(self, neighbour: Neighbour, header: Header, payload: bytes) -> None:
        """A packet has come; raises `Malformed` for one that cannot be for this subsystem."""
        lane = self.lanes.get(Priority(header.level))
        if lane is None:
            raise Malformed(f"{self.name!r} has no lane of level {header.level}")
        lane.packet(neighbour, header, payload)
