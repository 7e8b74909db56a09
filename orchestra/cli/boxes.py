"""What the boxes of a plan look like, what they leave out, and where they are not worth it."""

import datetime as dt
import decimal
import enum
import types
import typing
import uuid
from collections.abc import Iterator
from typing import Any

import attrs

from orchestra.box import Codec, codec_of
from orchestra.messages import class_of, shown
from orchestra.plan import Plan

PLAIN = frozenset(
    {type(None), bool, int, float, str, bytes, bytearray, decimal.Decimal, uuid.UUID}
    | {dt.date, dt.datetime, dt.time, dt.timedelta}
)
"""Types of values with no values inside."""


@attrs.frozen
class Boxed:
    """A message type that travels in a box to `receivers`."""

    message: Any
    receivers: tuple[str, ...]
    codec: Codec

    def __str__(self) -> str:
        return f"{shown(self.message)} (to {', '.join(map(repr, self.receivers))})"


def boxes_of(plan: Plan) -> Iterator[Boxed]:
    """The boxed types that the plan names: what is received, and subclasses of it that are sent."""
    sent = (message for subsystem in plan.subsystems.values() for message in subsystem.sends)
    received = (route.message for route in plan.routes.values())
    for kind, message in {class_of(message): message for message in (*sent, *received)}.items():
        route = plan.route_of(kind)
        boxed = plan.boxed_of(kind)
        if route is not None and boxed:
            receivers = tuple(name for name in route.receivers if name in boxed)
            yield Boxed(message, receivers, codec_of(kind, message))


def codec_sources(plan: Plan) -> list[str]:
    """The source of each box that is really made."""
    return [boxed.codec.source for boxed in boxes_of(plan) if boxed.codec.whole is None]


def what_rides(plan: Plan) -> Iterator[str]:
    """Boxed types of which something travels by reference all the same."""
    for boxed in boxes_of(plan):
        if boxed.codec.whole is not None:
            yield f"{boxed} is not packed but travels whole, by reference: {boxed.codec.whole}"
        elif boxed.codec.rides:
            parts = ", ".join(f"{path} ({reason})" for path, reason in boxed.codec.rides.items())
            yield f"{boxed} is boxed, and beside the box travels by reference: {parts}"


def what_boxes_cost(plan: Plan) -> Iterator[str]:
    """Boxed types for which a plain send is faster and a box saves next to no memory."""
    for boxed in boxes_of(plan):
        if boxed.codec.whole is None and _is_flat(boxed.message):
            yield (
                f"{boxed} is boxed, and the box costs more than it gives: its fields are plain values, "
                "for which a send with a box takes 1.5 to 3 times as long"
            )


def _is_flat(message: Any) -> bool:
    """Whether every field is known to be a plain value."""
    kind = class_of(message)
    given = dict(zip(getattr(kind, "__parameters__", ()), typing.get_args(message), strict=False))
    try:
        hints = typing.get_type_hints(kind)
    except (NameError, TypeError, AttributeError):
        return False
    return all(_is_plain(given.get(hint, hint)) for hint in hints.values())


def _is_plain(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin in {typing.Union, types.UnionType}:
        return all(_is_plain(member) for member in typing.get_args(hint))
    if origin in {typing.Literal, typing.ClassVar}:
        return True
    return hint in PLAIN or (isinstance(hint, type) and issubclass(hint, enum.Enum))
