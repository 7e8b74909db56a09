"""Short names of message types for people to read."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from orchestra.messages import shown


def titles_of(messages: Iterable[Any]) -> dict[Any, str]:
    """A name for each type, by its class alone where that tells it from the others."""
    short = {message: shown(message) for message in messages}
    often = Counter(short.values())
    return {
        message: title if often[title] == 1 else shown(message, with_module=True)
        for message, title in short.items()
    }
