"""What a send does when the lane it is meant for is full."""

import attrs


@attrs.frozen
class Overflow:
    """Base of the overflow policies; it is none itself."""


@attrs.frozen
class Block(Overflow):
    """Wait for room, with no limit of time. The default."""


@attrs.frozen
class Fail(Overflow):
    """Raise `Full`, with the message in it, instead of waiting."""
