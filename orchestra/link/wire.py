"""What crosses between two processes, as bytes: pure. All that comes in is checked, and nothing is trusted.

Messages go in packets: the frames of many, one after the other, are the payload, and a `Header` is beside it.
All else is a `Control`. Both are msgpack; a packet that is not as it should be raises `Malformed`.
"""

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import msgspec

from orchestra.errors import OrchestraError

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Place: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**16)]
Level: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=7)]
Epoch: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Kind: TypeAlias = int | str
"""A class of messages: its place among those that the plan names, or the name of a subclass of one."""

PACKED, RIDING, LOOSE = 0, 1, 2
"""The forms of a frame: packed alone, packed with riders, packed by the shapes."""

NOTHING = b"\xc0"
"""What stands for an empty frame."""


class Malformed(OrchestraError):
    """Bytes from outside that are no packet."""


class Header(msgspec.Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a packet has in it: `count` messages from number `first` on, for one lane of one subsystem.

    `heard` is up to which number the sender knows what became of its messages, `wants` that it has more than
    it may send, `signals` how many signals of each origin it has seen, `runs` the kind, form and number of
    messages that follow each other. A packet of no messages asks what became of those before it. `piece` is
    which piece of the packet it is, from 0, and of how many, where it is too big for one.
    """

    subsystem: Place
    level: Level
    first: Count
    count: Count
    heard: Count
    wants: bool
    signals: dict[Epoch, Count]
    runs: list[tuple[Kind, Annotated[int, msgspec.Meta(ge=0, le=2)], Count]]
    piece: tuple[Place, Place] | None = None


class LaneNews(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What a receiver says of one lane: a limit, and what became of all before the number `arrived`.

    `again` asks for what was sent from there on: something before it has not come. `pieces` is how many
    pieces have come of what has that number.
    """

    subsystem: Place
    level: Level
    round: Count
    limit: Count
    arrived: Count
    gaps: list[tuple[Count, Count]]
    again: bool = False
    pieces: Count = 0


class Hello(msgspec.Struct, array_like=True, frozen=True, tag="hello"):
    """I am here: to everybody, and to each who says it first. `back` asks for one in return."""

    process: str
    digest: str
    hosts: list[str]
    signals: Count
    back: bool


class Declares(msgspec.Struct, array_like=True, frozen=True, tag="declares"):
    """What my digest stands for: yours is another."""

    description: dict[str, Any]


class Refuses(msgspec.Struct, array_like=True, frozen=True, tag="refuses"):
    """I do not talk to you; why."""

    why: str


class Grants(msgspec.Struct, array_like=True, frozen=True, tag="grants"):
    """News of lanes."""

    lanes: list[LaneNews]


class AsksBack(msgspec.Struct, array_like=True, frozen=True, tag="asks back"):
    """Give back what lies above this limit."""

    subsystem: Place
    level: Level
    round: Count
    limit: Count


class GivesBack(msgspec.Struct, array_like=True, frozen=True, tag="gives back"):
    """I keep this limit."""

    subsystem: Place
    level: Level
    round: Count
    limit: Count


class Told(msgspec.Struct, array_like=True, frozen=True, tag="signal"):
    """My signal of this number; the first one has 1."""

    number: Count
    kind: Kind
    form: int
    frame: bytes


class Missed(msgspec.Struct, array_like=True, frozen=True, tag="missed"):
    """I have not got your signals from this number on."""

    number: Count


class Forgotten(msgspec.Struct, array_like=True, frozen=True, tag="forgotten"):
    """My signals up to this number are not kept any more."""

    number: Count


class Seen(msgspec.Struct, array_like=True, frozen=True, tag="seen"):
    """Your signal of this number is in every queue; those that are over their capacity."""

    number: Count
    stalled: list[str]


class Answer(msgspec.Struct, array_like=True, frozen=True, tag="answer"):
    """The answer to what you asked: a tree of the value, and what rides beside it."""

    number: Count
    value: bytes
    riders: list[Any]


class Failure(msgspec.Struct, array_like=True, frozen=True, tag="failure"):
    """What you asked has failed with an error: its module and name, text, arguments and attributes."""

    number: Count
    module: str
    kind: str
    text: str
    args: list[Any]
    state: dict[str, Any]


class Heard(msgspec.Struct, array_like=True, frozen=True, tag="heard"):
    """Your answers to these questions have come."""

    numbers: list[Count]


class Stop(msgspec.Struct, array_like=True, frozen=True, tag="stop"):
    """Stop within so many seconds, all of us."""

    timeout: float


class Drain(msgspec.Struct, array_like=True, frozen=True, tag="drain"):
    """Take nothing more from outside, all of us."""


class HowQuiet(msgspec.Struct, array_like=True, frozen=True, tag="how quiet"):
    """Are you at rest? The number of the question."""

    number: Count


class Quiet(msgspec.Struct, array_like=True, frozen=True, tag="quiet"):
    """Whether I am at rest, and how many messages I have sent to others, and had from them."""

    number: Count
    rests: bool
    sent: Count
    had: Count


class Finished(msgspec.Struct, array_like=True, frozen=True, tag="finished"):
    """These subsystems of mine have finished, and all that they sent has arrived."""

    names: list[str]


class Ending(msgspec.Struct, array_like=True, frozen=True, tag="ending"):
    """I have heard of the stop, and end."""


class Bye(msgspec.Struct, array_like=True, frozen=True, tag="bye"):
    """I have ended. News of all lanes that you have sent to."""

    lanes: list[LaneNews]


Control: TypeAlias = (
    Hello
    | Declares
    | Refuses
    | Grants
    | AsksBack
    | GivesBack
    | Told
    | Missed
    | Forgotten
    | Seen
    | Answer
    | Failure
    | Heard
    | Stop
    | Drain
    | HowQuiet
    | Quiet
    | Finished
    | Ending
    | Bye
)

_encode = msgspec.msgpack.Encoder().encode
_header = msgspec.msgpack.Decoder(Header).decode
_control = msgspec.msgpack.Decoder(Control).decode
_frames = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_loose = msgspec.msgpack.Decoder(tuple[bytes, list[Any]]).decode


def write_control(control: Control) -> bytes:
    """The bytes of a control message."""
    return _encode(control)


def read_control(payload: bytes) -> Control:
    """The control message in these bytes."""
    try:
        return _control(payload)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Malformed(f"no control message: {error}") from None


def write_header(header: Header) -> bytes:
    """The bytes of a header."""
    return _encode(header)


def read_header(attachment: bytes) -> Header:
    """The header in these bytes; its runs come to its count."""
    try:
        header = _header(attachment)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Malformed(f"no header: {error}") from None
    if sum(run[2] for run in header.runs) != header.count:
        raise Malformed("the runs of a packet do not come to its count")
    return header


def write_frames(frames: Sequence[bytes]) -> bytes:
    """The payload of a packet: an array of frames, each of which is one value of msgpack."""
    count = len(frames)
    if count < 16:
        start = bytes((0x90 | count,))
    elif count < 2**16:
        start = b"\xdc" + count.to_bytes(2)
    else:
        start = b"\xdd" + count.to_bytes(4)
    return start + b"".join(frames)


def read_frames(payload: bytes, count: int) -> list[msgspec.Raw]:
    """The frames of a packet, each as a piece of it."""
    if not count:
        return []
    try:
        frames = _frames(payload)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Malformed(f"no frames: {error}") from None
    if len(frames) != count:
        raise Malformed(f"{len(frames)} frames, where the header says {count}")
    return frames


def write_riding(frame: bytes, riders: list[Any]) -> bytes:
    """A frame and the trees of what rides beside it, as one frame."""
    return _encode((frame, riders))


def read_riding(frame: bytes | msgspec.Raw) -> tuple[bytes, list[Any]]:
    """The frame in a frame, and the trees beside it."""
    try:
        return _loose(frame)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Malformed(f"no frame with riders: {error}") from None
