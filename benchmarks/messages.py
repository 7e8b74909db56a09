"""The messages that the benchmarks send."""

import attrs
import msgspec

BYTES = bytes(range(256)) * 4 + b"12345"


class U8(msgspec.Struct, frozen=True, gc=False):
    """A message of one small number."""

    value: int


class Block(msgspec.Struct, frozen=True, gc=False):
    """A message of 1029 bytes. Each message is a new object; they share the bytes."""

    data: bytes


class Buffer(msgspec.Struct, frozen=True, gc=False):
    """A message of bytes that can be changed."""

    data: bytearray


class TenDicts(msgspec.Struct, frozen=True):
    """A message of ten small dicts, of two entries each."""

    items: list[dict[str, int]]


@attrs.frozen
class SlottedTenDicts:
    """The same message as an ordinary class with slots."""

    items: list[dict[str, int]]


class Trade(msgspec.Struct, frozen=True, gc=False):
    """What is in one of the dicts."""

    id: int
    size: int


class TenRecords(msgspec.Struct, frozen=True, gc=False):
    """The same content in records, of which the garbage collector knows nothing but their list."""

    items: list[Trade]


def ten_dicts(number: int) -> list[dict[str, int]]:
    """The content of the message of this number."""
    return [{"id": number + place, "size": place} for place in range(10)]


def ten_records(number: int) -> list[Trade]:
    """The same in records."""
    return [Trade(number + place, place) for place in range(10)]


class Signal(msgspec.Struct, frozen=True):
    """The signal and the event of orchestras that use neither."""
