"""Why a value cannot come back as it is, told to who sends it."""

from collections.abc import Iterable
from typing import Any


class Refusal(Exception):
    """A value cannot come back as it is. `path` grows as the exception passes through the levels."""

    def __init__(self, reason: str, path: Iterable[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = list(path)

    def where(self) -> str:
        """The path from the message, shortened in its middle when it is long."""
        steps = self.path[::-1]
        if len(steps) > 12:
            steps = [*steps[:6], "...", *steps[-3:]]
        return "".join(steps).removeprefix(".")


class TooDeep(Refusal):
    """A value that no other member of a union would take either."""


def misfit(declared: str, held: str, advice: str) -> Refusal:
    """Refuse a value of the type `held`."""
    return Refusal(f"it is declared {declared} and holds {_article(held)}; {advice}")


def misfit_of(kind: type, value: Any) -> Refusal:
    """Refuse a value that is not exactly of `kind`, with advice for the way in which it is not."""
    name, held = kind.__qualname__, type(value).__qualname__
    if name == held:
        name, held = f"{kind.__module__}.{name}", f"{type(value).__module__}.{held}"
    if isinstance(value, kind):
        return misfit(
            name,
            held,
            f"what is packed would come back as {name}: declare the field {held}, a union that"
            f" has {held}, or Live[{name}] to send it by reference",
        )
    return misfit(name, held, f"send {_article(name)}, or declare the field {held}")


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def shorten(value: Any) -> str:
    """The start of what `value` shows itself as."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
