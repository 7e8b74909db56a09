"""Which messages can cross to another process: by their types at a start, by their values at a send."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import msgspec

from orchestra.box import Box, RidingBox, beside, codec_of
from orchestra.errors import BoxError, LinkError
from orchestra.link.exact import KINDS, Tree, Unfit, to_tree
from orchestra.messages import shown
from orchestra.packing.codec import Codec
from orchestra.plan import Plan
from orchestra.recipient import Recipient
from orchestra.reply import Reply

_ADDRESSES = frozenset(
    f"{kind.__qualname__} is not packed: {kind.__orchestra_whole__}" for kind in (Reply, Recipient)
)
_EXACT = frozenset(kind.__qualname__ for kind in KINDS)


def crosses(reason: str) -> bool:
    """Whether what rides for this reason may cross all the same: by an address, or by a tree of its own."""
    name = reason.partition(" is not packed: ")[0]
    return reason in _ADDRESSES or name in _EXACT or reason.startswith("some other ")


def why_not(codec: Codec) -> str | None:
    """Why messages of a class cannot cross, in words that begin with the field; None when they can."""
    if codec.whole is not None:
        return f"it is not packed: {codec.whole}"
    fields = [f"its field {path!r} ({reason})" for path, reason in codec.rides.items() if not crosses(reason)]
    return f"{' and '.join(fields)} cannot leave the process" if fields else None


def check_plan(plan: Plan, names: Mapping[str, Any] | None = None) -> None:
    """Raise one `LinkError` with every subsystem, type and field that would have to cross and cannot."""
    found = list(dict.fromkeys(_problems(plan, names)))
    if found:
        raise LinkError(f"{plan.name} cannot be linked: {'; '.join(found)}")


def _problems(plan: Plan, names: Mapping[str, Any] | None) -> Iterator[str]:
    for route in plan.routes.values():
        for name in route.receivers:
            if plan.subsystems[name].remote and (why := why_not(codec_of(route.kind, route.message, names))):
                yield f"{name} receives {shown(route.message)} from other processes, and {why}"
    for signal in plan.signals:
        if (why := why_not(codec_of(signal, None, names))) is not None:
            yield f"the signal {shown(signal)} goes to all processes, and {why}"


def crossing(codec: Codec) -> Codec:
    """The codec of a class for receivers in other processes: what cannot cross is refused at the send."""
    seal = codec.seal
    return attrs.evolve(codec, seal=lambda message: fit_to_cross(seal(message), message))


def fit_to_cross(box: Box[Any], message: Any) -> Box[Any]:
    """The box in which a message crosses: its large bytes go in the frame.

    Raises `BoxError` where something is beside the frame which cannot cross.
    """
    if type(box) is Box:
        return box
    if box.codec.whole is not None:
        raise BoxError(box.kind, "", f"it would have to leave its process, and {box.codec.whole}", message)
    try:
        for rider in box.riders if isinstance(box, RidingBox) else ():
            to_tree(rider, _address)
    except Unfit as unfit:
        raise BoxError(box.kind, "", f"it would have to leave its process: {unfit}", message) from None
    return _joined(box, message) if beside(box) else box


def _joined(box: Box[Any], message: Any) -> Box[Any]:
    assert box.codec.join is not None
    try:
        joined: Box[Any] = box.codec.join(box)
    except msgspec.EncodeError as error:  # there are more than 4 GiB
        raise BoxError(box.kind, "", f"msgpack cannot carry it ({error})", message) from error
    return joined


def _address(value: Any) -> Tree:
    if not isinstance(value, Reply | Recipient):
        raise Unfit(f"a {type(value).__qualname__} cannot")
    return None
