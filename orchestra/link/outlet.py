"""What stands in a process for the inbox of a subsystem in another one, and sends on what is put there.

Its lanes are real ones, with the priorities and policies that are declared. Their capacity is what the host
has granted and was not used yet, so the code of a send, its waits, drops and marks are those of any lane.
When something was put, the pump takes all that is queued and puts it on the wire in few packets.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import attrs
import msgspec

from orchestra.box import Box
from orchestra.errors import LinkError
from orchestra.link import wire
from orchestra.link.credit import Purse, rendezvous
from orchestra.link.exact import Out, Unfit, to_tree
from orchestra.link.order import Range, missing_from
from orchestra.link.parcels import Kinds, Run, pack
from orchestra.link.peers import Neighbour, State
from orchestra.link.wire import Header, LaneNews
from orchestra.remote import Elsewhere
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.lane import Lane
from orchestra.runtime.threads.inbox import held

PACKET = 48 * 1024
"""Bytes of frames in one packet, at most, where it has several."""

AHEAD = 3
"""Pieces of a big message that may be on the way."""

WINDOW = 128 * 1024
"""Bytes of one lane that may be on the way to one host; a single message may have more."""


@attrs.define(eq=False)
class Sent:
    """A packet of which it is not known yet what became of it.

    `number`, `runs` and `payload` are as it was sent, for it is sent again where it has not come. One that
    is too big goes in `pieces`, of which so many are `put` and so many `came`.
    """

    first: int
    boxes: Sequence[Box[Any]]
    size: int
    number: int
    count: int
    runs: list[Run]
    payload: bytes
    pieces: int
    put: int = 0
    came: int = 0


@attrs.define(eq=False)
class Way:
    """What one lane has sent to one host. `heard` is up to where it knows what became of it."""

    purse: Purse = attrs.Factory(Purse)
    unheard: deque[Sent] = attrs.Factory(deque)
    flying: int = 0
    heard: int = 0
    asked_at: float = 0.0
    wants: bool = False
    """It was said that somebody waits for room, and no room has come since."""

    def has_room(self, more: int) -> bool:
        """Whether a message of so many bytes may be on the way too; one that goes in pieces goes alone."""
        if not self.unheard:
            return True
        return more <= PACKET and self.unheard[-1].pieces == 1 and self.flying < WINDOW


@attrs.define(eq=False)
class Host:
    """A process that hosts the subsystem, with a way for each lane."""

    neighbour: Neighbour
    ways: tuple[Way, ...]

    @property
    def here(self) -> bool:
        """Whether anything can be sent to it."""
        return self.neighbour.state is State.HERE


@attrs.frozen
class Surroundings:
    """What outlets need of the engine around them.

    `signals` tells how many signals of each origin were seen here, `out` how what rides beside a frame
    crosses to a process; `lost` gets each box that will not be handled, the subsystem, the reason and the
    error.
    """

    kinds: Kinds
    signals: Callable[[], dict[int, int]]
    out: Callable[[Neighbour], Callable[[type], Out]]
    lost: Callable[[Box[Any], str, str, BaseException | None], None]
    now: Callable[[], float]


class Outlet:
    """The stand-in for one subsystem."""

    def __init__(
        self, name: str, place: int, inbox: Inbox, elsewhere: Elsewhere, around: Surroundings
    ) -> None:
        self.name = name
        self.place = place
        self.inbox = inbox
        self.elsewhere = elsewhere
        self.hosts: dict[int, Host] = {}
        self._around = around
        self._taken = [0] * len(inbox.lanes)
        self._by_key: dict[Any, Host] = {}
        inbox.taken = lambda: tuple(self._taken)
        inbox.work = self.pump
        inbox.idle = True
        for lane in inbox.lanes:
            self._resize(lane)

    # its hosts

    def refuses(self, neighbour: Neighbour) -> str | None:
        """Why a process that hosts it is not wanted: it is hosted already, and one may; None when it is."""
        other = None if self.elsewhere.many else self._present()
        if other is None or other.neighbour is neighbour:
            return None
        return (
            f"{self.name!r} is hosted by {other.neighbour} already: let one process host it, or say "
            f'{self.name}=Remote(replicas="any") where it is sent to'
        )

    def host_came(self, neighbour: Neighbour) -> None:
        """A process hosts it."""
        if neighbour.epoch not in self.hosts:
            self.hosts[neighbour.epoch] = Host(neighbour, tuple(Way() for _ in self.inbox.lanes))

    def displaced_by(self, neighbour: Neighbour) -> Neighbour | None:
        """The only host, if it was not heard of lately and another process hosts the subsystem now."""
        if self.elsewhere.many or neighbour.epoch in self.hosts:
            return None
        others = [host.neighbour for host in self.hosts.values() if host.neighbour.state is State.AWAY]
        return others[0] if others else None

    def _present(self) -> Host | None:
        for host in self.hosts.values():
            if host.neighbour.state in (State.HERE, State.AWAY):
                return host
        return None

    def host_gone(self, neighbour: Neighbour, why: str) -> None:
        """A host is gone for good: nobody knows what became of what it had not acknowledged."""
        host = self.hosts.get(neighbour.epoch)
        if host is None:
            return
        for way in host.ways:
            for sent in way.unheard:
                for box in sent.boxes:
                    self._around.lost(box, self.name, why, None)
            way.unheard.clear()
            way.flying = 0
            way.heard = way.purse.limit = way.purse.sent
        self.changed()

    def changed(self) -> None:
        """Hosts have come or gone, or one may be heard again."""
        self._by_key.clear()
        for lane in self.inbox.lanes:
            self._resize(lane)
        self.wake()

    def ask_again_of(self, neighbour: Neighbour) -> None:
        """Ask one host what became of what was sent to it, if anything was."""
        host = self.hosts.get(neighbour.epoch)
        for place in range(0 if host is None else len(host.ways)):
            if host is not None and host.ways[place].purse.sent:
                self._ask(host, place)

    def ask_again(self) -> None:
        """Ask every host that is here what became of what was sent to it."""
        for host in self.hosts.values():
            if host.here:
                for place, way in enumerate(host.ways):
                    if way.unheard:
                        self._ask(host, place)

    def forget(self, neighbour: Neighbour) -> None:
        """A host that was gone is not known any more."""
        self.hosts.pop(neighbour.epoch, None)

    # what hosts say

    def news(self, neighbour: Neighbour, place: int, news: LaneNews) -> None:
        """A host tells what became of what was sent to a lane, and how much more may be."""
        host = self.hosts.get(neighbour.epoch)
        if host is None:
            return
        way = host.ways[place]
        self._settle(way, news.arrived, news.gaps)
        if way.purse.granted(news.round, news.limit):
            way.wants = False
        self._resize(self.inbox.lanes[place])
        for sent in list(way.unheard):
            if sent.pieces > 1 and news.arrived == sent.number:
                sent.came = news.pieces if news.again else max(sent.came, news.pieces)
            if news.again:
                sent.put = sent.came
            self._send(host, place, sent)
        self.wake()

    def give_back(self, neighbour: Neighbour, place: int, number: int, limit: int) -> int | None:
        """A host asks for room that was granted and not used; gives the limit that is kept."""
        host = self.hosts.get(neighbour.epoch)
        if host is None:
            return None
        self._send_queued(place)
        kept = host.ways[place].purse.give_back(number, limit)
        self._resize(self.inbox.lanes[place])
        return kept

    def _settle(self, way: Way, arrived: int, gaps: list[Range]) -> None:
        unheard = way.unheard
        arrived = min(arrived, way.purse.sent)
        while unheard and unheard[0].first < arrived:
            sent = unheard[0]
            end = sent.first + len(sent.boxes)
            if gaps:
                for number, box in enumerate(sent.boxes):
                    if sent.first + number >= arrived:
                        break
                    if missing_from(gaps, sent.first, number):
                        self._around.lost(box, self.name, "lost", None)
            way.flying -= sent.size
            unheard.popleft()
            if end > arrived:
                rest = sent.boxes[arrived - sent.first :]
                size = sum(box.size for box in rest)
                left = attrs.evolve(sent, first=arrived, boxes=rest, size=size)
                unheard.appendleft(left)
                way.flying += left.size
                break
        way.heard = max(way.heard, arrived)

    # sending

    def wake(self) -> None:
        """Something may be sent that could not before."""
        if self.inbox.idle and any(lane.queue for lane in self.inbox.lanes):
            self.inbox.wake()

    def pump(self) -> int:
        """Send all that is queued and may be sent; a step of the scheduler."""
        self.inbox.idle = True
        before = sum(self._taken)
        for place in range(len(self.inbox.lanes)):
            self._send_queued(place)
        return (sum(self._taken) - before) // 16

    def _send_queued(self, place: int) -> None:
        lane = self.inbox.lanes[place]
        if not lane.queue:
            return
        with held([self.inbox]):
            here = self._here()
            if len(here) == 1 and self.elsewhere.by is None:
                self._send_to(here[0], lane, place)
            else:
                self._divide(here, lane, place)
            self._resize(lane)

    def _send_to(self, host: Host, lane: Lane, place: int) -> None:
        way, queue = host.ways[place], lane.queue
        while queue and way.purse.credit > 0 and way.has_room(queue[0].size):
            boxes: list[Box[Any]] = []
            size = 0
            for _ in range(min(len(queue), way.purse.credit)):
                more = queue[0].size
                if boxes and size + more > PACKET:
                    break
                size += more
                boxes.append(queue.popleft())
            self._taken[place] += len(boxes)
            self._put(host, place, boxes, size)

    def _divide(self, hosts: list[Host], lane: Lane, place: int) -> None:
        """Send each message to its host: the one for its key, or the one that has granted most."""
        queue = lane.queue
        while queue and hosts:
            host = self._chosen(hosts, place, queue[0])
            if host is None:
                self._taken[place] += 1
                queue.popleft()
                continue
            way = host.ways[place]
            if way.purse.credit <= 0 or not way.has_room(queue[0].size):
                break
            box = queue.popleft()
            self._taken[place] += 1
            self._put(host, place, [box], box.size)

    def _chosen(self, hosts: list[Host], place: int, box: Box[Any]) -> Host | None:
        by = self.elsewhere.by
        if by is None:
            size = box.size
            return max(
                hosts,
                key=lambda host: host.ways[place].purse.credit if host.ways[place].has_room(size) else -1,
            )
        try:
            key = msgspec.msgpack.encode(to_tree(by(box.open())))
        except Exception as error:
            self._around.lost(box, self.name, "failed", error)
            return None
        found = self._by_key.get(key)
        if found is None:
            if len(self._by_key) > 65536:
                self._by_key.clear()
            names = [host.neighbour.process for host in hosts]
            found = self._by_key[key] = rendezvous(
                key,
                (
                    (
                        host.neighbour.process.encode()
                        if names.count(host.neighbour.process) == 1
                        else f"{host.neighbour.epoch:016x}{host.neighbour.process}".encode(),
                        host,
                    )
                    for host in hosts
                ),
            )
        return found

    def _put(self, host: Host, place: int, boxes: list[Box[Any]], size: int) -> None:
        way = host.ways[place]
        try:
            runs, frames = pack(boxes, self._around.kinds, self._around.out(host.neighbour))
        except Unfit as error:  # its sender was told already unless it was changed since
            for box in boxes:
                self._around.lost(box, self.name, "failed", error)
            return
        first = way.purse.spend(len(boxes))
        payload = wire.write_frames(frames)
        pieces = 1 if len(payload) <= 2 * PACKET else -(-len(payload) // PACKET)
        sent = Sent(first, boxes, size, first, len(boxes), runs, payload, pieces)
        way.unheard.append(sent)
        way.flying += size
        host.neighbour.sent += len(boxes)
        self._send(host, place, sent)

    def _send(self, host: Host, place: int, sent: Sent) -> None:
        """Put a packet, or as many pieces of it as may be on the way."""
        lane = self.inbox.lanes[place]
        wants = bool(lane.waiting) or lane.sought
        if sent.pieces == 1 and not sent.put:
            sent.put = 1
            self._write(host, place, sent.number, sent.count, sent.runs, sent.payload, wants=wants)
        while sent.pieces > 1 and sent.put < min(sent.pieces, sent.came + AHEAD):
            piece = sent.payload[sent.put * PACKET : (sent.put + 1) * PACKET]
            which = sent.put, sent.pieces
            sent.put += 1
            self._write(host, place, sent.number, sent.count, sent.runs, piece, wants=wants, piece=which)

    def _write(
        self,
        host: Host,
        place: int,
        first: int,
        count: int,
        runs: list[Run],
        payload: bytes,
        *,
        wants: bool,
        piece: tuple[int, int] | None = None,
    ) -> None:
        lane, way = self.inbox.lanes[place], host.ways[place]
        way.asked_at = self._around.now()
        way.wants = wants = wants and way.purse.credit <= 0
        signals = self._around.signals()
        header = wire.write_header(
            Header(self.place, lane.priority, first, count, way.heard, wants, signals, runs, piece)
        )
        with suppress(LinkError):  # closed: what was put is not acknowledged, and lost
            host.neighbour.publisher(lane.priority).put(payload, header)

    def _ask(self, host: Host, place: int) -> None:
        """Send a packet of no messages: what became of those before?"""
        wants = _needs_room(self.inbox.lanes[place])
        self._write(host, place, host.ways[place].purse.sent, 0, [], wire.write_frames([]), wants=wants)

    def tick(self, now: float, patience: float) -> None:
        """Ask where nothing was heard for some time, and somebody waits for it, or was turned away."""
        for place, lane in enumerate(self.inbox.lanes):
            waits = _needs_room(lane)
            for host in self.hosts.values():
                way = host.ways[place]
                starves = waits and way.purse.credit <= 0
                late = now - way.asked_at >= patience and bool(way.unheard or starves)
                if host.here and (late or (starves and not way.wants)):
                    self._ask(host, place)

    # room

    def _resize(self, lane: Lane) -> None:
        """Let the room of a lane be what is granted and not used."""
        place = self.inbox.lanes.index(lane)
        here = self._here()
        self.inbox.absent = not here
        granted = [max(host.ways[place].purse.credit, 0) for host in here]
        if not granted:
            capacity = 0
        elif self.elsewhere.by is not None:
            capacity = min(granted)
        else:
            capacity = sum(granted)
        if lane.displaces:
            capacity = max(capacity, 1)
        grown = capacity > lane.capacity
        lane.capacity = capacity
        if capacity:
            lane.sought = False
        if grown:
            lane.relieve()
        else:
            lane.settle()

    def _here(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.here]

    # questions

    @property
    def unheard(self) -> int:
        """How many messages were sent of which it is not known whether they have arrived."""
        return sum(
            len(sent.boxes) for host in self.hosts.values() for way in host.ways for sent in way.unheard
        )

    def unheard_of(self, neighbour: Neighbour) -> int:
        """How many of those went to one process."""
        host = self.hosts.get(neighbour.epoch)
        return 0 if host is None else sum(len(sent.boxes) for way in host.ways for sent in way.unheard)

    @property
    def empty(self) -> bool:
        """Whether nothing waits here, and all that was sent has arrived."""
        return not self.inbox.queued and not self.unheard

    # its end

    def stop(self) -> None:
        """Take only what fits; what is queued is still sent on."""
        self.inbox.why = "the orchestra stops"
        for lane in self.inbox.lanes:
            lane.keep()

    def close(self) -> None:
        """Take nothing more; what could not be sent is dead-lettered."""
        self.pump()
        for host in self.hosts.values():
            for way in host.ways:
                for sent in way.unheard:
                    for box in sent.boxes:
                        self._around.lost(box, self.name, "lost", None)
                way.unheard.clear()
        self.inbox.close("stopped")


def _needs_room(lane: Lane) -> bool:
    return bool(lane.waiting or lane.queue) or lane.sought
