"""A field whose subsystem runs in another process."""

from collections.abc import Callable
from typing import Any, Literal, final

import attrs

__all__ = ["Remote"]


@final
@attrs.frozen(eq=False)
class Elsewhere:
    """What a field holds whose subsystem another process hosts; `Remote(...)` makes it."""

    replicas: Literal["any"] | None = None
    by: Callable[[Any], Any] | None = None

    @property
    def many(self) -> bool:
        """Whether several processes may host it."""
        return self.replicas is not None or self.by is not None


def Remote(  # noqa: N802 - it stands where an instance of a class stands
    *, replicas: Literal["any"] | None = None, by: Callable[[Any], Any] | None = None
) -> Any:
    """Say of a field that another process hosts its subsystem: `start(App(hand=Remote()), link=...)`.

    By default one process hosts it; a second one that does is refused, by name. With `replicas="any"` any
    number may, and each message goes to the one that has granted the most room. With `by=` the same key
    goes to the same one: `Remote(by=lambda m: m.account)`; the key is a string, bytes, a number, a bool, None
    or a tuple of these. When a host comes, it takes over its share of the keys, about one in as many as there
    are hosts then; when one leaves, its keys alone move, each to one of the others. What had been sent before
    stays where it is, so around such a change two hosts may have messages of one key.

    To the type checker it fits every field. Raises TypeError for what makes no sense.
    """
    if replicas not in (None, "any"):
        raise TypeError(f'Remote: replicas is {replicas!r}: give "any", or leave it out for a single host')
    if by is not None and not callable(by):
        raise TypeError(f"Remote: by is {by!r}: give a function of the message, such as lambda m: m.account")
    if by is not None and replicas is not None:
        raise TypeError('Remote: give replicas="any" or by=, not both: a key decides who gets a message')
    return Elsewhere(replicas, by)
