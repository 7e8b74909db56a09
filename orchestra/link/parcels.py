"""From the boxes in a lane to the frames of a packet, and back: what comes in is opened before it is seen."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import msgspec

from orchestra.box import Box, LooseBox, RidingBox, codec_of
from orchestra.link import wire
from orchestra.link.exact import Back, Out, from_tree, to_tree
from orchestra.link.wire import LOOSE, PACKED, RIDING, Kind, Malformed
from orchestra.messages import class_of
from orchestra.packing.codec import Codec
from orchestra.plan import Plan
from orchestra.recipient import Recipient
from orchestra.reply import Reply

Run: TypeAlias = tuple[Kind, int, int]
"""A kind, a form, and how many messages of these follow each other."""

_FORMS: Mapping[type, int] = {Box: PACKED, RidingBox: RIDING, LooseBox: LOOSE}


@attrs.frozen
class Opened:
    """A message that came in, and the box in which it did."""

    message: Any
    box: Box[Any]


class Kinds:
    """The classes of messages and signals that cross, by the place that both sides know."""

    def __init__(self, plan: Plan, names: Mapping[str, Any] | None = None) -> None:
        declared: dict[type, Any] = {class_of(message): message for message in plan.messages}
        declared |= {kind: route.message for kind, route in plan.routes.items()}
        declared |= dict.fromkeys(plan.signals)
        self._plan = plan
        self._kinds = tuple(declared)
        self._places: dict[type, Kind] = {kind: place for place, kind in enumerate(self._kinds)}
        self._codecs: dict[Kind, Codec] = {
            place: codec_of(kind, declared[kind], names) for place, kind in enumerate(self._kinds)
        }

    def written(self, kind: type) -> Kind:
        """How a class is told: its place, or the name of a subclass of one that has a place."""
        return self._places.get(kind, kind.__qualname__)

    def codec(self, told: Kind) -> Codec:
        """The codec of the class that was told, if it exists here; nothing is imported."""
        found = self._codecs.get(told)
        if found is None:
            found = self._codecs[told] = self._find(told)
        return found

    def _find(self, told: Kind) -> Codec:
        if isinstance(told, str):
            for kind in _below(self._kinds):
                if kind.__qualname__ == told and self._plan.route_of(kind) is not None:
                    return codec_of(kind)
        raise Malformed(f"a message of the kind {told!r}, which is not known here")


def _below(kinds: Iterable[type]) -> Iterable[type]:
    for kind in kinds:
        below: list[type] = type.__subclasses__(kind)
        yield from below
        yield from _below(below)


def pack(
    boxes: Sequence[Box[Any]], kinds: Kinds, out: Callable[[type], Out]
) -> tuple[list[Run], list[bytes]]:
    """The runs and the frames of some boxes, in order."""
    first = boxes[0]
    codec, plain = first.codec, Box
    if all(box.codec is codec and type(box) is plain for box in boxes):
        return [(kinds.written(codec.kind), PACKED, len(boxes))], _plain_frames([box.frame for box in boxes])
    runs: list[Run] = []
    frames: list[bytes] = []
    for box in boxes:
        run = kinds.written(box.kind), _FORMS[type(box)], 1
        if runs and runs[-1][:2] == run[:2]:
            run = *run[:2], runs.pop()[2] + 1
        runs.append(run)
        frames.append(frame_of(box, out(box.kind)))
    return runs, frames


def frame_of(box: Box[Any], out: Out) -> bytes:
    """One box as one value of msgpack."""
    if isinstance(box, RidingBox):
        return wire.write_riding(box.frame, [to_tree(rider, out) for rider in box.riders])
    return box.frame or wire.NOTHING


def _plain_frames(frames: list[bytes]) -> list[bytes]:
    return frames if all(frames) else [frame or wire.NOTHING for frame in frames]


def opened(codec: Codec, form: int, raw: bytes | msgspec.Raw, back: Back) -> Opened:
    """Open one frame from outside. Raises for whatever is not exactly what a sender would have packed."""
    if form == PACKED and codec.decode is not None and codec.build is not None:
        frame = bytes(raw)
        if frame == wire.NOTHING and codec.decode is bytes:
            frame = b""
        return Opened(codec.build(codec.decode(frame)), Box(codec, frame))
    if form == PACKED or codec.whole is not None:
        raise Malformed(f"a {codec.kind.__qualname__} that was packed in a way in which none is")
    frame, trees = wire.read_riding(raw)
    riders = tuple([from_tree(tree, back) for tree in trees])
    box: Box[Any] = (RidingBox if form == RIDING else LooseBox)(codec, frame, riders)
    message = codec.open(box)
    again = codec.seal(message)
    _check_addresses(codec, message)
    return Opened(message, again)


def _check_addresses(codec: Codec, message: Any) -> None:
    """What rides beside a frame by its address is an address, and nothing else."""
    for path, reason in codec.rides.items():
        if "." in path or "[" in path:
            continue
        for kind in (Reply, Recipient):
            if reason.startswith(f"{kind.__name__} ") and not isinstance(getattr(message, path), kind | None):
                raise Malformed(f"{codec.kind.__qualname__}.{path} is no {kind.__name__}")


Opener: TypeAlias = Callable[[Kind, int, "bytes | msgspec.Raw"], Opened]
