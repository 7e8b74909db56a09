"""What the boxes of a plan look like, what they leave out, and where they are not worth it."""

import datetime as dt
import decimal
import enum
import functools
import inspect
import types
import typing
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from orchestra.box import boxed_switch, codec_of
from orchestra.messages import class_of, shown
from orchestra.packing.beside import LARGE
from orchestra.packing.codec import Codec
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
    for message in messages_named(plan):
        kind = class_of(message)
        boxed = plan.boxed_of(kind, message)
        receivers = tuple(name for name in _receivers(plan, kind) if name in boxed)
        if receivers:
            yield Boxed(message, receivers, codec_of(kind, message))


def messages_named(plan: Plan) -> Iterable[Any]:
    """The message types that are sent or received by declaration, each class once."""
    sent = (message for subsystem in plan.subsystems.values() for message in subsystem.sends)
    received = (route.message for route in plan.routes.values())
    return {class_of(message): message for message in (*sent, *received)}.values()


def _receivers(plan: Plan, kind: type) -> tuple[str, ...]:
    route = plan.route_of(kind)
    return () if route is None else route.receivers


def what_auto_decides(plan: Plan) -> Iterator[str]:
    """For each message type that boxed="auto" decides on, whether it is boxed, and why."""
    for message in messages_named(plan):
        kind = class_of(message)
        receivers = tuple(name for name in _receivers(plan, kind) if plan.subsystems[name].boxed == "auto")
        if receivers and boxed_switch(kind) is None:
            codec = codec_of(kind, message)
            told = Boxed(message, receivers, codec)
            if codec.mutable is not None:
                yield f"{told} is boxed by boxed='auto': {codec.mutable}"
            elif codec.whole is None:
                yield f"{told} is not boxed by boxed='auto': nothing that a box would copy can be changed"
            else:
                yield f"{told} is not boxed by boxed='auto' but travels by reference: {codec.whole}"


def what_counts_nothing(plan: Plan) -> Iterator[str]:
    """Message types that a lane with `capacity_bytes` takes whatever their size."""
    for message, receivers in uncounted(plan):
        yield (
            f"{shown(message)} (to {', '.join(map(repr, receivers))}) counts 0 bytes of capacity_bytes: "
            "it travels by reference"
        )


def uncounted(plan: Plan) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """The message types without a size that those receivers get whose lanes have `capacity_bytes`."""
    for message in messages_named(plan):
        kind = class_of(message)
        boxed = plan.boxed_of(kind, message)
        packed = boxed if boxed and codec_of(kind, message).whole is None else frozenset[str]()
        receivers = tuple(
            name
            for name in _receivers(plan, kind)
            if plan.subsystems[name].counts_bytes and name not in packed
        )
        if receivers:
            yield message, receivers


def codec_sources(plan: Plan) -> list[str]:
    """The source of each box that is really made, after what boxed="auto" has decided."""
    notes = "\n".join(f"# {text}" for text in what_auto_decides(plan))
    return [notes] * bool(notes) + [
        boxed.codec.source for boxed in boxes_of(plan) if boxed.codec.whole is None
    ]


def what_rides(plan: Plan) -> Iterator[str]:
    """Boxed types of which something travels by reference all the same."""
    for boxed in boxes_of(plan):
        if boxed.codec.whole is not None:
            yield f"{boxed} is not packed but travels whole, by reference: {boxed.codec.whole}"
        elif boxed.codec.rides:
            parts = ", ".join(f"{path} ({reason})" for path, reason in boxed.codec.rides.items())
            yield f"{boxed} is boxed, and beside the box travels by reference: {parts}"
        if boxed.codec.whole is None and (kept := _cached(class_of(boxed.message))):
            yield f"{boxed} is boxed, and what a cached_property has kept is shared: {', '.join(kept)}"
        if boxed.codec.large:
            large = ", ".join(boxed.codec.large)
            yield f"{boxed} is boxed, and bytes of {LARGE} or more are not copied: {large}"


def _cached(kind: type) -> list[str]:
    """The properties of a class whose values its objects keep in their `__dict__`."""
    found = inspect.getmembers_static(kind, lambda one: isinstance(one, functools.cached_property))
    return [name for name, _ in found]


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
