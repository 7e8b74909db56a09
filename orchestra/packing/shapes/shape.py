"""The base of the shapes, and what goes from one to the other while a value is packed."""

import functools
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Riders(list[Any]):
    """What travels beside the tree of one message.

    `refused` keeps what members of unions have refused: without it the time for members that are
    alike, within each other, would double with every level.
    """

    __slots__ = ("refused",)

    def __init__(self, riders: Iterable[Any] = ()) -> None:
        super().__init__(riders)
        self.refused: dict[tuple[int, int], tuple[Any, str, tuple[str, ...]]] = {}


class Shape:
    """Base of the shapes.

    `pack` and `open` carry any value. The generated functions carry those that are exactly as
    declared, in a way of their own, where the shape has a `wire`. A shape is `constrained` when
    its annotation has constraints, which msgspec would check when it decodes: the sender's object
    is what counts.
    """

    def describe(self) -> str:
        """A short name of the type."""
        return "object"

    def parts(self) -> Iterable[tuple[str, "Shape"]]:
        """The shapes of the values within, each with the path that leads to them."""
        return ()

    def wire(self) -> Any:
        """The type of the tree, for msgspec."""
        return None

    def is_straight(self) -> bool:
        """Whether the generated functions encode and decode the value itself."""
        return False

    def is_native(self) -> bool:
        """Whether msgspec decodes exactly from the annotation as written."""
        return False

    def fits(self, kind: type) -> bool:
        """Whether a value of exactly this type may have this shape."""
        raise NotImplementedError

    def exactly(self) -> frozenset[type] | None:
        """The types that a value may have in the generated functions; None when any may come."""
        return None

    def pack(self, value: Any, riders: Riders, depth: int) -> Any:
        """Return the tree of `value`; raise Refusal where it is not as declared."""
        raise NotImplementedError

    def open(self, tree: Any, riders: Sequence[Any]) -> Any:
        """Return the value that `pack` was given."""
        raise NotImplementedError

    def open_all(self, trees: list[Any], riders: Sequence[Any]) -> list[Any]:
        """The values of many trees."""
        open_, values = self.open, []
        for tree in trees:  # a comprehension would take another level of the stack on Python 3.11
            values.append(open_(tree, riders))  # noqa: PERF401 - see above
        return values

    def rides(self) -> Iterator[tuple[str, str]]:
        """Path and reason of each part that always travels by reference."""
        for path, part in self.parts():
            for inner, reason in part.rides():
                yield path + inner, reason


def of(origin: Any, arguments: Any) -> Any:
    """`origin[arguments]`, for a container class."""
    return types.GenericAlias(origin, arguments)


def remembered(method: Callable[[Any], T]) -> Callable[[Any], T]:
    """Ask a shape once: it asks its parts, and the same part may stand in many places."""
    name = f"_{method.__name__}"

    @functools.wraps(method)
    def ask(self: Any) -> T:
        known: dict[str, Any] = self.__dict__
        if name not in known:
            known[name] = method(self)
        return known[name]  # type: ignore[no-any-return]  # what `method` gave

    return ask
