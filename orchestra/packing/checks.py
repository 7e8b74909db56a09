"""Writes the checks of values against their types, for the functions that seal a message into a box.

A value that does not pass goes to the refusal: an expression that the function then returns.
"""

import itertools
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from orchestra.packing.conditions import Conditions
from orchestra.packing.shapes.containers import Many, Row, Table
from orchestra.packing.shapes.records import Record
from orchestra.packing.shapes.shape import Shape
from orchestra.packing.shapes.unions import Either, carried_types
from orchestra.source import Writer

_flatten = itertools.chain.from_iterable


class Checks(Conditions):
    """Writes checks into functions, each of which has local names of its own."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.local = writer.names.nested()
        self.refusal = "seal_loosely(message)"
        self.tests: dict[int, str] = {}

    def _write_tests(self, shapes: Iterable[Shape]) -> None:
        """Write a function for the check of each record that stands in more than one place."""
        met: dict[int, int] = {}

        def visit(shape: Shape) -> None:
            if isinstance(shape, Record):
                met[id(shape)] = met.get(id(shape), 0) + 1
                if met[id(shape)] > 1:
                    return
            for _, one in shape.parts():
                visit(one)
            if isinstance(shape, Record):
                records.append(shape)

        records: list[Record] = []
        for shape in shapes:
            visit(shape)
        for record in records:
            if met[id(record)] > 1:
                self._write_test(record)

    def _write_test(self, record: Record) -> None:
        writer = self.writer
        name = writer.names.unique(f"fits_{record.kind.__name__}")
        self.local = writer.names.nested()
        item = self.local.unique("item")
        self.refusal = "False"
        writer.line("\n")
        with writer.block(f"def {name}({item})"):
            self._check_record(record, item, strict=False)
            writer.line("return True")
        self.refusal = "seal_loosely(message)"
        self.tests[id(record)] = name

    def _refuse_if(self, condition: str) -> None:
        if not condition:
            return
        with self.writer.block(f"if {condition}"):
            self.writer.line(f"return {self.refusal}")

    def _check(self, shape: Shape, value: str, *, strict: bool, typed: bool = False) -> None:
        """Write the check of one value.

        It is `strict` where msgspec decodes by the annotation itself; `typed` says that the type
        is known to be right.
        """
        match shape:
            case Either(optional=Shape() as inner) if shape.scalars is None:
                with self.writer.block(f"if {value} is not None"):
                    self._check(inner, value, strict=strict)
            case Either(slots=tuple() as slots) if self._told_by_type(shape, strict) is None:
                self._check_union(shape, slots, value)
            case Many(item=item):
                self._refuse_if(self._misfit(shape, value, strict, typed))
                self._check_all(item, value, strict=strict)
            case Row(items=items):
                self._refuse_if(self._misfit(shape, value, strict, typed))
                for place, one in enumerate(items):
                    self._check(one, self._local(f"{value}_{place}", f"{value}[{place}]"), strict=strict)
            case Table():
                self._refuse_if(self._misfit(shape, value, strict, typed))
                self._check_table(shape, value, strict=strict)
            case Record() if id(shape) in self.tests:
                self._refuse_if(f"not {self.tests[id(shape)]}({value})")
            case Record():
                self._check_record(shape, value, strict=strict, typed=typed)
            case _:
                self._refuse_if(self._misfit(shape, value, strict, typed))

    def _check_table(self, table: Table, value: str, *, strict: bool) -> None:
        """Write the check of keys and values: pair by pair, but for values that are checked all at once.

        Values are looked up by text: for the few entries that most dicts have, pairs take longer to make.
        """
        told = self._told_by_type(table.value, strict) is not None
        if not told and self._flat(table.value, strict):
            self._check_all(table.key, value, strict=strict)
            self._check_all(table.value, f"{value}.values()", strict=strict)
            return
        key = self.local.unique("key")
        if told and self._told_by_type(table.key, strict) == frozenset[type]({str}):
            with self._loop(f"{key} in {value}"):
                self._check(table.key, key, strict=strict)
                self._check(table.value, f"{value}[{key}]", strict=strict)
            return
        part = self.local.unique("part")
        with self._loop(f"{key}, {part} in {value}.items()"):
            self._check(table.key, key, strict=strict)
            self._check(table.value, part, strict=strict)

    @contextmanager
    def _loop(self, header: str) -> Generator[None, None, None]:
        """Write a loop; the classes that it tests have local names, which are found faster, before it."""
        if self.near is not None:
            with self.writer.block(f"for {header}"):
                yield
            return
        self.near, lines = {}, list[str]()
        with self.writer.after(lines):
            with self.writer.block(f"for {header}"):
                yield
            if self.near:
                lines.append(f"{', '.join(self.near.values())} = {', '.join(self.near)}")
        self.near = None

    def _check_union(self, union: Either, slots: tuple[Shape, ...], value: str) -> None:
        word = "if"
        for one in slots:
            with self.writer.block(f"{word} {self._is_of(one, value)}"):
                self._check(one, value, strict=False, typed=True)
            word = "elif"
        carried = carried_types(union)
        with self.writer.block(f"elif type({value}) not in {self._kinds(carried)}" if carried else "else"):
            self.writer.line(f"return {self.refusal}")

    def _check_record(self, record: Record, value: str, *, strict: bool, typed: bool = False) -> None:
        self._refuse_if(self._misfit(record, value, strict, typed))
        for field, one in record.fields.items():
            local = self._local(f"{value}_{field}", f"{value}.{field}")
            self._check(one, local, strict=strict or record.is_native())

    def _check_all(self, shape: Shape, values: str, *, strict: bool) -> None:
        """Write the check of all the values of an iterable expression."""
        kinds = self._told_by_type(shape, strict)
        if kinds is not None:
            self._refuse_if(f"not {self._kinds(kinds)}.issuperset(map(type, {values}))")
        elif self._flat(shape, strict):
            self._check_all_flat(shape, values, strict=strict)
        else:
            one = self.local.unique("one")
            with self._loop(f"{one} in {values}"):
                self._check(shape, one, strict=strict)

    def _flat(self, shape: Shape, strict: bool) -> bool:
        """Whether the shape is of sequences or sets, and for all within the exact type is enough."""
        if self._told_by_type(shape, strict) is not None:
            return True
        return isinstance(shape, Many) and self._flat(shape.item, strict)

    def _check_all_flat(self, shape: Shape, values: str, *, strict: bool) -> None:
        assert isinstance(shape, Many)
        self._refuse_if(f"not {self._kinds(frozenset({shape.kind}))}.issuperset(map(type, {values}))")
        flatten = self.writer.bind(_flatten, "flatten")
        self._check_all(shape.item, f"{flatten}({values})", strict=strict)

    def _local(self, wanted: str, expression: str) -> str:
        local = self.local.unique(wanted)
        self.writer.line(f"{local} = {expression}")
        return local
