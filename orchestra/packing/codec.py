"""How messages of one class are packed: what is generated for it, and what is known of it."""

import types
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import msgspec

encode = msgspec.msgpack.Encoder().encode
"""Makes the frames."""


def _unchanging(rides: Mapping[str, str]) -> Mapping[str, str]:
    return types.MappingProxyType(dict(rides))


@attrs.frozen(eq=False)
class Codec:
    """How messages of exactly the class `kind` are packed.

    `seal` and `open` are functions generated for this class, and `source` is their text. `rides`
    maps each part of a message that always travels by reference to the reason. `whole` is the
    reason why messages of this class are not packed at all, and None when they are. `mutable` says what of
    a message could be changed by who holds it, in words, and is None when nothing that is packed can.

    `seal` raises BoxError for a message that would not come back the same, and wants an object of
    exactly `kind`; `open` gives back an equal object and does not fail.

    A box of the class `Box` itself is opened by `build(decode(box.frame))` too: the generated receivers do
    that. Both are None where every box has riders. `scalar` is the only field of a message and the exact type
    of its value, where a box holds just that value, encoded: the generated senders do that by themselves.
    `large` are the fields whose bytes go beside the frame when they are large; `join` gives a box with all of
    them in the frame, and is None where there are no such fields.
    """

    kind: type
    source: str = attrs.field(repr=False)
    rides: Mapping[str, str] = attrs.field(converter=_unchanging)
    whole: str | None
    mutable: str | None
    seal: Callable[[Any], Any] = attrs.field(repr=False)
    open: Callable[[Any], Any] = attrs.field(repr=False)
    decode: Callable[[bytes], Any] | None = attrs.field(default=None, repr=False)
    build: Callable[[Any], Any] | None = attrs.field(default=None, repr=False)
    scalar: tuple[str, type] | None = attrs.field(default=None, repr=False)
    large: tuple[str, ...] = ()
    join: Callable[[Any], Any] | None = attrs.field(default=None, repr=False)
