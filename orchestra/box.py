"""Boxes: a packed private copy of a message, in place of the message, while it waits in a lane."""

import sys
import weakref
from collections.abc import Callable, Mapping
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeAlias,
    TypeGuard,
    TypeVar,
    get_args,
    overload,
)

import msgspec

from orchestra.errors import DeclarationError
from orchestra.packing.beside import Beside
from orchestra.packing.boxes import BoxClasses
from orchestra.packing.classes import why_whole
from orchestra.packing.codec import Codec
from orchestra.packing.making import make_codec
from orchestra.packing.shapes.riding import LIVE

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
M = TypeVar("M")
C = TypeVar("C", bound=type)

Live = Annotated[T, LIVE]
"""A field that travels by reference when its message is boxed: `answer_to: Live[Recipient[Pong]]`."""

Boxing: TypeAlias = bool | Literal["auto"]
"""Whether messages are boxed; "auto" is for those of which something can be changed."""

_SWITCH = "__orchestra_boxed__"
_HELD = "__orchestra_codec__"


class Box(msgspec.Struct, Generic[T_co], frozen=True, gc=False, eq=False):
    """A packed private copy of one message; immutable.

    `frame` is the msgpack of what is packed. Two boxes are equal when they hold the same class,
    the same frame and equal values beside it.
    """

    __orchestra_whole__: ClassVar[str] = "it is a box already"

    codec: Codec
    frame: bytes

    @staticmethod
    def seal(message: M) -> "Box[M]":
        """Pack `message` ahead, to send it to several receivers or to keep the sender's object free.

        Raises BoxError, with the path of the field, if the message would not come back the same.
        """
        box: Box[M] = _held_codec(type(message)).seal(message)
        return box

    def open(self) -> T_co:
        """Unpack an equal copy of the message, a new one at each call."""
        return self.codec.open(self)  # type: ignore[no-any-return]  # the codec makes what it was given

    @property
    def kind(self) -> type[T_co]:
        """The class of the message."""
        return self.codec.kind

    @property
    def size(self) -> int:
        """How many bytes the frame has, with the large bytes that are not copied into it."""
        return len(self.frame)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Box):
            return NotImplemented
        return (
            type(self) is type(other)
            and self.kind is other.kind
            and self.frame == other.frame
            and _riders(self) == _riders(other)
            and beside(self) == beside(other)
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.frame, beside(self)))

    def __repr__(self) -> str:
        riders = len(_riders(self))
        beside = f" and {riders} {'rider' if riders == 1 else 'riders'}" if riders else ""
        return (
            f"<Box of {self.kind.__qualname__}, {self.size} {'byte' if self.size == 1 else 'bytes'}{beside}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Box.seal, (self.codec.open(self),)


class LargeBox(Box[T_co], Generic[T_co], frozen=True, gc=False, eq=False):
    """A box with large bytes beside the frame, by reference."""

    beside: Beside

    @property
    def size(self) -> int:
        return _size(self.frame, self.beside)


class RidingBox(Box[T_co], Generic[T_co], frozen=True, gc=True, eq=False):
    """A box with parts that travel beside the frame, by reference: anything, and perhaps large bytes."""

    riders: tuple[Any, ...]
    beside: Beside = ()

    @property
    def size(self) -> int:
        return _size(self.frame, self.beside)


class LooseBox(RidingBox[T_co], Generic[T_co], frozen=True, gc=True, eq=False):
    """A box whose message was not quite as its types say, and was packed value by value."""


_BOXES = BoxClasses(Box, LargeBox, RidingBox, LooseBox)
BOXES: frozenset[Any] = frozenset({Box, LargeBox, RidingBox, LooseBox})
"""The classes of boxes. `isinstance` takes ten times as long for what is no box: msgspec has a metaclass."""


def open_entry(entry: Any) -> Any:
    """The message of an entry of a lane: what is in a box, or the entry itself."""
    return entry.codec.open(entry) if entry.__class__ in BOXES else entry


def beside(box: Box[Any]) -> Beside:
    """The large bytes that stand beside the frame of a box."""
    return box.beside if isinstance(box, LargeBox | RidingBox) else ()


def _riders(box: Box[Any]) -> tuple[Any, ...]:
    return box.riders if isinstance(box, RidingBox) else ()


def _size(frame: bytes, beside: Beside) -> int:
    return len(frame) + sum([len(each) for each in beside if each is not None])


@overload
def boxed(kind: C, /) -> C: ...
@overload
def boxed(on: bool = True, /, *, check: bool = True) -> Callable[[C], C]: ...
def boxed(kind: Any = True, /, *, check: bool = True) -> Any:
    """Say for a message class, and the classes derived from it, whether it travels in a box.

    `@boxed` and `@boxed(False)` go before what the subsystem and the orchestra say.
    `@boxed(check=False)` trusts that fields hold what their types declare: faster, but a message
    that does not keep to them may come back changed, or fail at the receiver.
    """
    if isinstance(kind, type):
        return _switch(kind, True, check)
    if not isinstance(kind, bool):
        raise DeclarationError(f"boxed is for classes, and takes True or False; it was given {kind!r}")
    return lambda cls: _switch(cls, kind, check)


def _switch(kind: C, on: bool, check: bool) -> C:
    if not isinstance(kind, type):
        raise DeclarationError(f"boxed is for classes; it was given {kind!r}")
    try:
        setattr(kind, _SWITCH, (on, check))
    except TypeError as error:
        raise DeclarationError(f"boxed cannot mark {kind.__qualname__}: {error}") from None
    return kind


def boxed_switch(kind: type) -> bool | None:
    """What `@boxed` says for `kind` or a class that it derives from; None when nothing is said."""
    switch = getattr(kind, _SWITCH, None)
    return None if switch is None else bool(switch[0])


def why_not_boxed(kind: type) -> str | None:
    """Why messages of this class cannot be packed, so that `@boxed` is a mistake; None when they can."""
    return why_whole(kind)


def is_boxing(value: Any) -> TypeGuard[Boxing]:
    """Whether `value` says whether messages are boxed: True, False or "auto"."""
    return isinstance(value, bool) or (isinstance(value, str) and value == "auto")


# Codecs are made once for each class. A class that can be imported keeps its codec; for another
# one (made in a function) the codec lives as long as somebody uses it.
_kept: dict[type, dict[Any, Codec]] = {}
_by_name: dict[tuple[str, str], type] = {}
_loose: "weakref.WeakKeyDictionary[type, weakref.WeakValueDictionary[Any, Codec]]" = (
    weakref.WeakKeyDictionary()
)


def codec_of(kind: type, declared: Any = None, scope: Mapping[str, Any] | None = None) -> Codec:
    """The codec of exactly the class `kind`, made at the first call.

    `declared` is the subscripted form in which a generic class is consumed (`Page[int]`).
    `scope` has the names of the function in which the class was declared, for annotations that
    are strings.
    """
    if not get_args(declared):
        declared = None
    key = declared if _hashable(declared) else repr(declared)
    kept = _kept.get(kind)
    known = kept.get(key) if kept is not None else _loose_of(kind).get(key)
    if known is not None and not (scope and "cannot be resolved" in " ".join(known.rides.values())):
        return known
    codec = _make(kind, declared, scope or {})
    if _importable(kind):
        name = kind.__module__, kind.__qualname__
        replaced = _by_name.get(name)
        if replaced is not kind:
            _by_name[name] = kind
            if replaced is not None:
                _kept.pop(replaced, None)
        _kept.setdefault(kind, {})[key] = codec
    else:
        _loose_of(kind)[key] = codec
    return codec


def _loose_of(kind: type) -> "weakref.WeakValueDictionary[Any, Codec]":
    found = _loose.get(kind)
    if found is None:
        found = _loose[kind] = weakref.WeakValueDictionary()
    return found


def _held_codec(kind: type) -> Codec:
    """The codec for `Box.seal`, which has nobody else to keep it: a class made in a function does."""
    kept = _kept.get(kind)
    if kept is not None and None in kept:
        return kept[None]
    held = vars(kind).get(_HELD)
    if held is not None:
        return held  # type: ignore[no-any-return]  # nobody else writes this attribute
    codec = codec_of(kind)
    if kind not in _kept:
        try:
            setattr(kind, _HELD, codec)
        except TypeError:  # a class of the interpreter, which stays
            _kept.setdefault(kind, {})[None] = codec
    return codec


def _make(kind: type, declared: Any, scope: Mapping[str, Any]) -> Codec:
    check = getattr(kind, _SWITCH, (True, True))[1]
    return make_codec(kind, declared, scope, check, _BOXES)


def _importable(kind: type) -> bool:
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found is kind


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
