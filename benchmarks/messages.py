"""The messages that the benchmarks send."""

import msgspec

BYTES = bytes(range(256)) * 4 + b"12345"


class U8(msgspec.Struct, frozen=True, gc=False):
    """A message of one small number."""

    value: int


class Block(msgspec.Struct, frozen=True, gc=False):
    """A message of 1029 bytes. Each message is a new object; they share the bytes."""

    data: bytes


class Signal(msgspec.Struct, frozen=True):
    """The signal and the event of orchestras that use neither."""
