"""What one subsystem has sent, caught where its receivers would be."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import attrs

from orchestra.box import Box, open_entry
from orchestra.priority import Priority

NOTHING: Final = object()
"""Stands for no message: a message may be any value."""


@attrs.frozen
class Sent:
    """A message on its way to one receiver: to whom, at which level, and when.

    `receiver` is the field of a subsystem, or "outgoing". `time` is in seconds of the probe's clock.
    """

    message: Any
    receiver: str
    priority: Priority
    time: float


class Caught:
    """The messages that a subsystem sent, in order.

    A message to several subscribers is one of `messages`, and in `log` once for each of them; it can be
    expected when all have it. `subscribers` gives those of a class whose messages are caught here. Everything
    is noted down in the event loop, also what a thread sends.
    """

    def __init__(self, subscribers: Callable[[type], frozenset[str]], now: Callable[[], float]) -> None:
        self.log: list[Sent] = []
        self.messages: list[Any] = []
        self.unexpected: list[Any] = []
        self.arrival = asyncio.Event()
        self._subscribers = subscribers
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._under_way: list[_UnderWay] = []

    def sink(self, receiver: str, priority: Priority) -> "deque[Any]":
        """A queue for the lane of a receiver that is not there: what is put into it is caught."""
        return _Sink(self, receiver, priority)

    def catch(self, entry: Any, receiver: str, priority: Priority) -> None:
        """Take what was put into a lane."""
        if threading.get_ident() == self._thread:
            self._note(entry, receiver, priority)
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody looks any more
                self._loop.call_soon_threadsafe(self._note, entry, receiver, priority)

    def pop(self, kinds: tuple[type, ...]) -> Any:
        """The first message of these types that was not popped before, or `NOTHING`."""
        for place, message in enumerate(self.unexpected):
            if isinstance(message, kinds):
                del self.unexpected[place]
                return message
        return NOTHING

    def receivers_of(self, message: Any) -> list[str]:
        """Who was sent this very object."""
        return [each.receiver for each in self.log if each.message is message]

    def _note(self, entry: Any, receiver: str, priority: Priority) -> None:
        sending = self._sending(entry, receiver)
        self.log.append(Sent(sending.message, receiver, priority, self._now()))
        sending.left.discard(receiver)
        if not sending.left:
            self._under_way.remove(sending)
            self.unexpected.append(sending.message)
            self.arrival.set()

    def _sending(self, entry: Any, receiver: str) -> "_UnderWay":
        """The send that others were given the message of just before, or a new one."""
        for each in self._under_way:
            if receiver in each.left and each.is_sent_as(entry):
                return each
        message = open_entry(entry)
        self.messages.append(message)
        sending = _UnderWay(entry, message, {receiver, *self._subscribers(type(message))})
        self._under_way.append(sending)
        return sending


@attrs.define(eq=False)
class _UnderWay:
    """A message that was put into some lanes, and is put into those that are `left` in the same send."""

    entry: Any
    message: Any
    left: set[str]

    def is_sent_as(self, entry: Any) -> bool:
        """Whether an entry is this message: itself or, where some receivers get boxes, in or out of one."""
        if entry is self.entry:
            return True
        boxed = isinstance(entry, Box) or isinstance(self.entry, Box)
        return boxed and (entry.kind if isinstance(entry, Box) else type(entry)) is type(self.message)


class _Sink(deque[Any]):
    """A queue that is always empty."""

    def __init__(self, caught: Caught, receiver: str, priority: Priority) -> None:
        super().__init__()
        self._caught = caught
        self._receiver = receiver
        self._priority = priority

    def append(self, entry: Any, /) -> None:
        self._caught.catch(entry, self._receiver, self._priority)
