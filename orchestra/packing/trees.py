"""Writes how a value becomes a tree that msgspec packs, and how it is made again of one.

Most values are their own trees. What msgspec does not rebuild by itself has helpers: functions that pack and
open the records within a message.
"""

from collections.abc import Iterable

import msgspec

from orchestra.packing.checks import Checks
from orchestra.packing.shapes.choices import Member
from orchestra.packing.shapes.containers import Many, Row, Table
from orchestra.packing.shapes.records import Record
from orchestra.packing.shapes.shape import Shape
from orchestra.packing.shapes.unions import Either, carried_types
from orchestra.source import Writer

_new = object.__new__
_new_tuple = tuple.__new__
_set_field = object.__setattr__

MOST_LEVELS = 16
"""How many levels a field may have for generated functions; Python has at most 20 loops in each other."""

MOST_PARTS = 2000
"""How many parts the type of a field may have, all written out, for generated functions."""


class Trees(Checks):
    """Writes helpers, and the expressions that use them."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.helpers: dict[int, tuple[str, str]] = {}

    def _write_helpers(self, shape: Shape) -> None:
        if shape.is_straight() or id(shape) in self.helpers:
            return
        for _, one in shape.parts():
            self._write_helpers(one)
        if isinstance(shape, Record) and not shape.is_straight():
            self._write_helper(shape)

    def _write_helper(self, record: Record) -> None:
        if id(record) in self.helpers:
            return
        writer, name = self.writer, record.kind.__name__
        pack, open_ = writer.names.unique(f"pack_{name}"), writer.names.unique(f"open_{name}")
        self.helpers[id(record)] = pack, open_
        self.local = writer.names.nested()
        item, tree = self.local.unique("item"), self.local.unique("tree")
        writer.line("\n")
        with writer.block(f"def {pack}({item})"):
            parts = [self._pack(one, f"{item}.{field}") for field, one in record.fields.items()]
            writer.line(f"return {self._tuple(parts)}")
        writer.line("\n")
        with writer.block(f"def {open_}({tree})"):
            values = [self._open(one, f"{tree}[{place}]") for place, one in enumerate(record.fields.values())]
            self._write_build(record, values)

    def _pack(self, shape: Shape, value: str) -> str:
        """An expression for the tree of `value`."""
        if shape.is_straight():
            return value
        match shape:
            case Member():
                return f"{value}.{shape.attribute}"
            case Record():
                return f"{self.helpers[id(shape)][0]}({value})"
            case Many(item=item):
                one = self.local.unique("one")
                return f"[{self._pack(item, one)} for {one} in {value}]"
            case Row(items=items):
                return self._tuple(self._pack(one, f"{value}[{place}]") for place, one in enumerate(items))
            case Table():
                key, one = self.local.unique("key"), self.local.unique("one")
                tree = f"{self._pack(shape.key, key)}: {self._pack(shape.value, one)}"
                return f"{{{tree} for {key}, {one} in {value}.items()}}"
            case Either(optional=Shape() as inner):
                return f"(None if {value} is None else {self._pack(inner, value)})"
            case Either(slots=tuple() as slots):
                return self._tuple([*(self._slot(one, value) for one in slots), self._carried(shape, value)])
            case _:
                raise AssertionError(shape)

    def _open(self, shape: Shape, tree: str) -> str:
        """An expression for the value of `tree`."""
        if shape.is_straight():
            return tree
        match shape:
            case Member():
                return f"{self._table(shape)}[{tree}]"
            case Record():
                return f"{self.helpers[id(shape)][1]}({tree})"
            case Many(item=item, kind=kind):
                one = self.local.unique("one")
                made = f"[{self._open(item, one)} for {one} in {tree}]"
                return made if kind is list else f"{kind.__name__}({made})"
            case Row(items=items):
                return self._tuple(self._open(one, f"{tree}[{place}]") for place, one in enumerate(items))
            case Table():
                key, one = self.local.unique("key"), self.local.unique("one")
                made = f"{self._open(shape.key, key)}: {self._open(shape.value, one)}"
                return f"{{{made} for {key}, {one} in {tree}.items()}}"
            case Either(optional=Shape() as inner):
                return f"(None if {tree} is None else {self._open(inner, tree)})"
            case Either(slots=tuple() as slots):
                choices = [
                    f"{self._open(one, f'{tree}[{place}]')} if {tree}[{place}] is not None else "
                    for place, one in enumerate(slots)
                ]
                return f"({''.join(choices)}{tree}[{len(slots)}])"
            case _:
                raise AssertionError(shape)

    def _slot(self, shape: Shape, value: str) -> str:
        """The tree of a value in the place of one member of a union, or None when it is another's."""
        return f"{self._pack(shape, value)} if {self._is_of(shape, value)} else None"

    def _carried(self, union: Either, value: str) -> str:
        """The value in the place of the scalars of a union."""
        carried = carried_types(union)
        return f"{value} if type({value}) in {self._kinds(carried)} else None" if carried else "None"

    @staticmethod
    def _tuple(parts: Iterable[str]) -> str:
        parts = list(parts)
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"

    def _write_build(self, record: Record, values: list[str]) -> None:
        """Write the making of an object from an expression for each field, and its return."""
        writer = self.writer
        kind = writer.bind(record.kind, record.kind.__name__)
        if record.style == "struct":
            named = (f"{name}={value}" for name, value in record.named(values))
            writer.line(f"return {kind}({', '.join([*values[: record.positional], *named])})")
        elif record.style == "named tuple":
            new = writer.bind(_new_tuple, "new_tuple")
            writer.line(f"return {new}({kind}, {self._tuple(values)})")
        else:
            made = self.local.unique("made")
            writer.line(f"{made} = {writer.bind(_new, 'new')}({kind})")
            for name, value in zip(record.fields, values, strict=True):
                if record.plain_set:
                    writer.line(f"{made}.{name} = {value}")
                else:
                    writer.line(f"{writer.bind(_set_field, 'set_field')}({made}, {name!r}, {value})")
            writer.line(f"return {made}")


def is_decodable(shape: Shape) -> bool:
    """Whether the generated functions can carry this shape through a msgspec decoder.

    Those for very many levels or parts nobody could read, nor Python compile.
    """
    levels, parts = _extent(shape)
    if levels > MOST_LEVELS or parts > MOST_PARTS or shape.wire() is None:
        return False
    try:
        msgspec.msgpack.Decoder(shape.wire())
    except Exception:
        return False
    return True


def _extent(shape: Shape) -> tuple[int, int]:
    """How many levels a type has, and how many parts the type of its tree has, all written out."""
    known: dict[int, tuple[int, int]] = {}

    def measure(one: Shape) -> tuple[int, int]:
        if id(one) not in known:
            inner = [measure(part) for _, part in one.parts()]
            levels, sizes = [level for level, _ in inner], [size for _, size in inner]
            known[id(one)] = 1 + max(levels, default=0), 1 + (0 if one.is_straight() else sum(sizes))
        return known[id(one)]

    return measure(shape)
