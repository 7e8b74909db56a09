"""Large `bytes`, which go beside the frame of a box by reference: nobody can change them.

As pickle does with its out-of-band buffers (PEP 574). Where a message leaves the process they are joined to
its frame again.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from orchestra.packing.codec import encode

Beside: TypeAlias = tuple[bytes | None, ...]
"""What stands beside a frame, in the order of the fields; None for a field that has None."""

LARGE = 256
"""Bytes from which on a field of a message is large."""


def joined(frame: bytes, count: int, beside: Beside) -> bytes:
    """One frame of all: of the `count` values that a frame has, and after them of what stands beside it."""
    if count == 0 and len(beside) == 1:
        return encode(beside[0])
    values = frame if count == 1 else frame[len(_array(count)) :]
    return b"".join([_array(count + len(beside)), values, *map(encode, beside)])


def _array(count: int) -> bytes:
    """How msgpack begins an array of so many values; for none, where a frame is empty, nothing."""
    if count == 0:
        return b""
    return bytes([0x90 | count]) if count < 16 else b"\xdc" + count.to_bytes(2)


def taken_out(tree: list[Any], places: Iterable[int]) -> Beside:
    """Take large bytes out of a list; give those, with None for what stays in it."""
    found = [tree[place] if _is_large(tree[place]) else None for place in places]
    if not any(found):
        return ()
    for place in itertools.compress(places, found):
        tree[place] = None
    return tuple(found)


def put_back(tree: list[Any], places: Sequence[int], beside: Beside) -> list[Any]:
    """Put into a list what was taken out of it."""
    for place, value in zip(places, beside, strict=False):
        if value is not None:
            tree[place] = value
    return tree


def _is_large(value: Any) -> bool:
    return type(value) is bytes and len(value) >= LARGE
