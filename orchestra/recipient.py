"""A small handle to send messages of one type with; it may travel in messages itself."""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Generic, NoReturn, Protocol, overload

from typing_extensions import TypeVar

from orchestra.box import Box
from orchestra.overflow import Overflow
from orchestra.priority import Priority
from orchestra.reply import Reply

__all__ = ["BlockingRecipient", "Recipient"]

T_contra = TypeVar("T_contra", contravariant=True, default=Any)
R = TypeVar("R")


class Recipient(Generic[T_contra]):
    """Whoever receives messages of one type, as `ctx.recipient(Type)` gives it.

        class Subscribe(msgspec.Struct):
            answer_to: Recipient[News]

    It may be put into messages (boxed ones too: it rides beside the frame) and outlives the subsystem
    that it came from. What is sent with it counts as coming from inside, so a drain lets it; it keeps no
    inbox open. Two are equal when they belong to the same running orchestra and the same type. It cannot be
    pickled.

    It may be used in any thread. In the event loop of its orchestra `send` and `ask` give what is to be
    awaited. In every other thread, that of a blocking subsystem or of `ctx.run_blocking`, say, they wait by
    sleeping, and give the bool and the reply themselves: what is to be done is done in the loop, and the
    thread is freed, by `Closed`, when the orchestra ends. There `recipient.blocking` is the same recipient as
    the type checker is to see it. A thread that runs another event loop would block that: RuntimeError.
    """

    __slots__ = ()

    __orchestra_whole__: ClassVar[str] = "it belongs to a running orchestra"

    @property
    def kind(self) -> type[Any]:
        """The class of messages that it sends, subclasses too."""
        raise NotImplementedError

    @property
    def blocking(self) -> "BlockingRecipient[T_contra]":
        """This recipient, typed for other threads: `recipient.blocking.send(message)` gives a bool.

        Raises RuntimeError in the event loop of the orchestra, which would wait for itself.
        """
        raise NotImplementedError

    def send(
        self,
        message: T_contra | Box[T_contra],
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
    ) -> Coroutine[Any, Any, bool]:
        """Send a message, waiting where a lane has no room; in all as `Context.send`.

        Raises `Closed` when the receiver has ended, or the orchestra has; `UndeclaredMessage`, at the call,
        for what is no instance of `kind`.
        """
        raise NotImplementedError

    def try_send(
        self,
        message: T_contra | Box[T_contra],
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
    ) -> bool:
        """Send without ever waiting: as `send`, but `Full` is raised where it would wait without a limit."""
        raise NotImplementedError

    @overload
    def ask(
        self,
        make: Callable[[Reply[R]], T_contra],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Coroutine[Any, Any, R]: ...
    @overload
    def ask(
        self,
        make: Callable[[Reply[Any]], T_contra],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Coroutine[Any, Any, Any]: ...
    def ask(
        self,
        make: Callable[[Reply[Any]], T_contra],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Send the message that `make` gives for a reply, and wait for the reply; as `Context.ask`.

        `make` is called in the event loop, whatever thread asks.
        """
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Recipient cannot be pickled or copied: it belongs to a running orchestra")


class BlockingRecipient(Protocol[T_contra]):
    """A `Recipient` as a thread sees it: `send` and `ask` wait by sleeping, and give what comes of it."""

    @property
    def kind(self) -> type[Any]: ...
    def send(
        self,
        message: T_contra | Box[T_contra],
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
    ) -> bool: ...
    def try_send(
        self,
        message: T_contra | Box[T_contra],
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
    ) -> bool: ...
    @overload
    def ask(
        self,
        make: Callable[[Reply[R]], T_contra],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> R: ...
    @overload
    def ask(
        self,
        make: Callable[[Reply[Any]], T_contra],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any: ...
