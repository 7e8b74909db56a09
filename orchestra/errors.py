"""Every error that `orchestra` raises."""

from collections.abc import Sequence
from typing import Any

from orchestra.priority import Priority


class OrchestraError(Exception):
    """Base of the errors of this library, and the default `error` of an orchestra."""


class DeclarationError(OrchestraError, TypeError):
    """A class, field or type was declared in a way that cannot be wired.

    Raised at decoration. The text names the class, the field, the types, says what would be
    right, and points at file and line.
    """


class SendError(OrchestraError):
    """A message could not be sent; `message` is the very object that was given to the send."""

    def __init__(self, text: str, message: Any = None, subsystem: str | None = None) -> None:
        super().__init__(text)
        self.message = message
        self.subsystem = subsystem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._again, (type(self), self.args, self.__dict__)

    @staticmethod
    def _again(kind: "type[SendError]", args: tuple[Any, ...], state: dict[str, Any]) -> "SendError":
        error = kind.__new__(kind, *args)
        error.__dict__.update(state)
        return error


class Full(SendError):
    """The lane has no room and its policy is not to wait.

    `message` is the object given to the send, `subsystem` the receiver's name, `priority` the lane.
    """

    def __init__(self, message: Any, subsystem: str, priority: Priority, why: str = "") -> None:
        super().__init__(f"the {priority.name} lane of {subsystem!r} is full{why}", message, subsystem)
        self.priority = priority


class TooLarge(SendError):
    """The box of the message is larger than all the room of a lane that counts bytes: it can never fit.

    `message` is the object given to the send, `subsystem` the receiver's name, `priority` the lane; `size` is
    that of the box and `capacity` that of the lane, both in bytes. Nothing was put anywhere.
    """

    def __init__(self, message: Any, subsystem: str, priority: Priority, size: int, capacity: int) -> None:
        super().__init__(
            f"a box of {size} bytes can never fit into the {priority.name} lane of {subsystem!r}, "
            f"which holds {capacity} bytes",
            message,
            subsystem,
        )
        self.priority = priority
        self.size = size
        self.capacity = capacity


class Closed(SendError):
    """The receiver takes no more messages, or, at a receiver, no more will come.

    At a sender `message` is the object given to the send; at a receiver it is None. After a
    failure the failure is the `__cause__`.
    """


class UndeclaredMessage(SendError, TypeError):
    """The sender does not declare this message type, or nobody receives it."""


class UndeclaredPriority(SendError, ValueError):
    """The receiver has no lane of this level; the text names the lanes it has."""


class UndeclaredOverflow(SendError, ValueError):
    """The lane does not permit the overflow policy that this send asks for; the text says what it takes.

    `message` is the object given to the send, `subsystem` the receiver's name.
    """


class NoReply(OrchestraError):
    """Nobody will answer what was asked any more.

    `subsystem` names who was to answer, and `message` is what was asked where it is still known: it was
    dropped or dead-lettered, or its handler failed. The text says why; an error of the receiver is the
    `__cause__`.
    """

    def __init__(self, text: str, message: Any = None, subsystem: str | None = None) -> None:
        super().__init__(text)
        self.message = message
        self.subsystem = subsystem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.message, self.subsystem)


class Deadlock(OrchestraError):
    """An ask would have waited for ever: it closes a circle of subsystems that wait for each other.

    `chain` has their names, from the asker on; the first is also the last. The text says what each waits for.
    """

    def __init__(self, text: str, chain: Sequence[str]) -> None:
        super().__init__(text)
        self.chain = tuple(chain)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.chain)


class BoxError(OrchestraError, ValueError):
    """A message cannot be packed so that it comes back the same.

    `kind` is the message class, `path` the field within it (`items[3].price`), `reason` says why, and
    `message` is the very object that was given to the send.
    """

    def __init__(self, kind: type, path: str, reason: str, message: Any = None) -> None:
        where = f"{kind.__qualname__}.{path}" if path else kind.__qualname__
        super().__init__(f"{where} cannot be boxed: {reason}")
        self.kind = kind
        self.path = path
        self.reason = reason
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.path, self.reason, self.message)


class SubsystemStalled(OrchestraError):
    """Subsystems did not read their signals in time; `subsystems` names them all.

    Every other subsystem has the signal, and those named here have it queued: nothing is lost.
    """

    def __init__(self, subsystems: Sequence[str], timeout: float) -> None:
        names = ", ".join(repr(name) for name in subsystems)
        super().__init__(f"signals unread after {timeout:g} s: {names}")
        self.subsystems = tuple(subsystems)
        self.timeout = timeout

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.subsystems, self.timeout)


class RemoteError(OrchestraError):
    """A failure that was answered from another process, of a type that is not known here.

    `kind` is the name of the type there; the text is that of the failure.
    """

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__(text)
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.kind)


class StopTimeout(OrchestraError):
    """Subsystems were still running when the time to stop was over; `subsystems` names them.

    `places` says for each where it stands (file, line, function), and so for its tasks that are left.
    """

    def __init__(self, subsystems: Sequence[str], places: Sequence[str], timeout: float) -> None:
        still = "; ".join(f"{name!r} {_at(place)}" for name, place in zip(subsystems, places, strict=True))
        super().__init__(f"still running {timeout:g} s after the stop: {still}")
        self.subsystems = tuple(subsystems)
        self.places = tuple(places)
        self.timeout = timeout

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.subsystems, self.places, self.timeout)


def _at(place: str) -> str:
    """A place, or what stands there ("task 'x' at ..."), as it follows a name."""
    return place if place.startswith(("task ", "thread ")) else f"at {place}"


class LinkError(OrchestraError, ConnectionError):
    """The link to the other processes could not be opened, or is closed; the text says which and why.

    Raised at start: a field is `Remote()` and there is no link, a message that would have to cross cannot be
    packed, an address is taken, nobody lets this process in, or a package is missing.
    """
