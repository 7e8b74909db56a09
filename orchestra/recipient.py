"""A small handle to send messages of one type with; it may travel in messages itself."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, NoReturn, overload

from typing_extensions import TypeVar

from orchestra.box import Box
from orchestra.overflow import Overflow
from orchestra.priority import Priority
from orchestra.reply import Reply

__all__ = ["Recipient"]

T_contra = TypeVar("T_contra", contravariant=True, default=Any)
R = TypeVar("R")


class Recipient(Generic[T_contra]):
    """Whoever receives messages of one type, as `ctx.recipient(Type)` gives it.

        class Subscribe(msgspec.Struct):
            answer_to: Recipient[News]

    It may be put into messages (boxed ones too: it rides beside the frame) and outlives the subsystem
    that it came from. What is sent with it counts as coming from inside, so a drain lets it; it keeps no
    inbox open. Two are equal when they belong to the same running orchestra and the same type. It belongs
    to the event loop of its orchestra, and cannot be pickled.
    """

    __slots__ = ()

    __orchestra_whole__: ClassVar[str] = "it belongs to a running orchestra"

    @property
    def kind(self) -> type[Any]:
        """The class of messages that it sends, subclasses too."""
        raise NotImplementedError

    async def send(
        self,
        message: T_contra | Box[T_contra],
        *,
        priority: Priority | None = None,
        overflow: Overflow | None = None,
    ) -> bool:
        """Send a message, waiting where a lane has no room; in all as `Context.send`.

        Raises `Closed` when the receiver has ended, or the orchestra has; `UndeclaredMessage` for what is
        no instance of `kind`.
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
    async def ask(
        self,
        make: Callable[[Reply[R]], T_contra],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> R: ...
    @overload
    async def ask(
        self,
        make: Callable[[Reply[Any]], T_contra],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any: ...
    async def ask(
        self,
        make: Callable[[Reply[Any]], T_contra],
        *,
        timeout: float | None = None,
        priority: Priority | None = None,
    ) -> Any:
        """Send the message that `make` gives for a reply, and wait for the reply; as `Context.ask`."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Recipient cannot be pickled or copied: it belongs to a running orchestra")
