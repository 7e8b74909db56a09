"""The handle that a request carries, and that whoever gets it answers with."""

from typing import Any, ClassVar, Generic, NoReturn, Protocol

from typing_extensions import TypeVar

__all__ = ["Reply"]

T_contra = TypeVar("T_contra", contravariant=True, default=Any)


class Answerable(Protocol):
    """The side of an ask that a `Reply` stands for."""

    @property
    def kind(self) -> str: ...
    @property
    def claimed(self) -> bool: ...
    def answer(self, value: Any) -> bool: ...
    def refuse(self, error: Exception) -> bool: ...
    def forgotten(self) -> None: ...


_NOBODY: Any = None
"""What a reply that is made by hand stands for; it is refused."""


class Reply(Generic[T_contra]):
    """What a request has in a field, to be answered once: `message.reply.send(7)`.

        class GetBalance(msgspec.Struct):
            account: str
            reply: Reply[int]

        balance = await ctx.ask(lambda reply: GetBalance("a", reply))

    `ctx.ask`, `running.ask` and `recipient.ask` make it; nobody else does. It may be kept and answered
    later, be handed on in another message, and be answered from any thread. When the last reference to it
    goes without an answer, its asker gets `NoReply` at once. When its message is boxed it rides beside
    the frame. It cannot be pickled or copied: what waits for it is in this process.
    """

    __slots__ = ("__weakref__", "_pending")

    __orchestra_whole__: ClassVar[str] = "what waits for it is in this process"

    def __init__(self, pending: Answerable = _NOBODY) -> None:
        if not hasattr(pending, "forgotten"):
            raise TypeError("a Reply is made by an ask: await ctx.ask(lambda reply: Request(..., reply))")
        self._pending = pending

    def send(self, value: T_contra) -> bool:
        """Answer: the asker's `ask` returns `value`.

        False when nobody waits any more: it was answered before, or the asker was cancelled or has come to
        its time limit. Such late replies are counted, see `Meters.late_replies`, and otherwise ignored.
        """
        return self._pending.answer(value)

    def fail(self, error: Exception | type[Exception]) -> bool:
        """Answer with an error: the asker's `ask` raises this very one.

        A class is called without arguments first. False as for `send`. Raises TypeError for what is no
        `Exception`, and for StopIteration, which no coroutine can raise.
        """
        raised = error() if isinstance(error, type) and issubclass(error, Exception) else error
        if not isinstance(raised, Exception):
            raise TypeError(f"Reply.fail takes an Exception, and {raised!r} is none")
        if isinstance(raised, StopIteration):
            raise TypeError("Reply.fail takes no StopIteration, for a coroutine cannot raise it")
        return self._pending.refuse(raised)

    @property
    def done(self) -> bool:
        """Whether an answer would come too late: there was one, or nobody waits any more."""
        return self._pending.claimed

    def __del__(self) -> None:
        if hasattr(self, "_pending"):
            self._pending.forgotten()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Reply cannot be pickled or copied: what waits for it is in this process")

    def __repr__(self) -> str:
        return f"<reply to {self._pending.kind}{', done' if self.done else ''}>"
