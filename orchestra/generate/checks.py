"""Writes the checks of values against their types, for the functions that seal a message into a box.

A value that does not pass goes to the refusal: an expression that the function then returns.
"""

import builtins
import datetime as dt
import itertools
import uuid
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

from orchestra.generate.shapes import (
    Choice,
    Either,
    Many,
    Member,
    Moment,
    Record,
    Row,
    Scalar,
    Shape,
    Table,
    may_become_equal,
    parts_of,
)
from orchestra.generate.writer import Writer

_flatten = itertools.chain.from_iterable


class Checks:
    """Writes checks into functions, each of which has local names of its own."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.local = writer.names.nested()
        self.refusal = "seal_loosely(message)"
        self.tests: dict[int, str] = {}
        self.constants: dict[frozenset[Any], frozenset[Any]] = {}
        self.near: dict[str, str] | None = None
        self.near_names: dict[str, str] = {}

    def _write_tests(self, shapes: Iterable[Shape]) -> None:
        """Write a function for the check of each record that stands in more than one place."""
        met: dict[int, int] = {}

        def visit(shape: Shape) -> None:
            if isinstance(shape, Record):
                met[id(shape)] = met.get(id(shape), 0) + 1
                if met[id(shape)] > 1:
                    return
            for one in parts_of(shape):
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

    def _is_of(self, shape: Shape, value: str) -> str:
        kinds = sorted(shape.exactly() or (), key=lambda one: one.__name__)
        return " or ".join(f"type({value}) is {self._kind(one)}" for one in kinds)

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

    def _told_by_type(self, shape: Shape, strict: bool) -> frozenset[type] | None:
        """The exact types of the values, when nothing else is to be checked."""
        match shape:
            case Scalar():
                return frozenset({shape.kind}) if strict else shape.kinds
            case Member(by_msgspec=True, kind=kind):
                return frozenset({kind})
            case Moment(kind=kind) if not self._odd(kind, ""):
                return frozenset({kind})
            case Either():
                parts = [self._told_by_type(one, strict) for one in shape.members]
                return None if None in parts else frozenset[type]().union(*(one for one in parts if one))
            case _:
                return None

    def _misfit(self, shape: Shape, value: str, strict: bool, typed: bool) -> str:
        """The condition under which a value is, by itself, not as its type says; empty for none."""
        kinds = self._told_by_type(shape, strict)
        if typed and kinds is not None:
            return ""
        if kinds == frozenset({type(None)}):
            return f"{value} is not None"
        if kinds is not None and len(kinds) > 2:
            return f"type({value}) not in {self._kinds(kinds)}"
        if kinds is not None:
            ordered = sorted(kinds, key=lambda one: one.__name__, reverse=True)
            return " and ".join(f"type({value}) is not {self._kind(one)}" for one in ordered)
        match shape:
            case Choice():
                kind, more = next(iter(shape.kinds)), [f"{value} not in {self._choices(shape)}"]
            case Member(kind=kind):
                more = [f"{self._table(shape)}.get({value}.{shape.attribute}) is not {value}"]
            case Moment(kind=kind):
                more = self._odd(kind, value)
            case Many(kind=kind):
                more = self._merged(value, shape.item) if kind in {set, frozenset} else []
            case Table():
                kind, more = dict, self._merged(value, shape.key)
            case Row(items=items):
                kind, more = tuple, [f"len({value}) != {len(items)}"]
            case Record(kind=kind):
                more = self._more_in(shape, value)
            case _:
                raise AssertionError(shape)
        wrong_type = [] if typed else [f"type({value}) is not {self._kind(kind)}"]
        return " or ".join([*wrong_type, *more])

    def _merged(self, value: str, item: Shape) -> list[str]:
        """Conditions under which a set or dict cannot be filled again with as many items."""
        return [f"len(frozenset(list({value}))) != len({value})"] if may_become_equal(item) else []

    def _more_in(self, record: Record, value: str) -> list[str]:
        """Conditions under which an object has more in it than its fields."""
        if record.style == "named tuple":
            return [f"len({value}) != {len(record.fields)}"]
        return [self._undeclared(record, value)] if record.has_dict else []

    def _undeclared(self, record: Record, value: str) -> str:
        """The condition under which an object has attributes that are not declared."""
        if record.in_dict is not None:
            return f"len({value}.__dict__) != {record.in_dict}"
        fields = self._constant(frozenset(record.fields), f"{record.kind.__name__}_fields")
        return f"not {fields}.issuperset({value}.__dict__)"

    def _odd(self, kind: type, value: str) -> list[str]:
        """Conditions under which msgspec does not give the same value back."""
        if kind is dt.datetime:
            utc = self.writer.bind(dt.UTC, "utc")
            return [f"{value}.fold", f"{value}.tzinfo is not None and {value}.tzinfo is not {utc}"]
        if kind is dt.time:
            return [f"{value}.fold", f"{value}.tzinfo is not None"]
        if kind is uuid.UUID:
            unknown = self.writer.bind(uuid.SafeUUID.unknown, "unknown_safety")
            return [f"{value}.is_safe is not {unknown}"]
        return []

    # Names.

    def _local(self, wanted: str, expression: str) -> str:
        local = self.local.unique(wanted)
        self.writer.line(f"{local} = {expression}")
        return local

    def _kinds(self, kinds: frozenset[type]) -> str:
        names = "_or_".join(sorted(one.__name__ for one in kinds))
        return self._constant(kinds, f"{names}_only" if len(kinds) == 1 else names)

    def _constant(self, values: frozenset[Any], wanted: str) -> str:
        """Bind an equal set once. The types belong to the key: 1 equals True."""
        key = frozenset((type(one), one) for one in values)
        return self.writer.bind(self.constants.setdefault(key, values), wanted)

    def _choices(self, shape: Choice) -> str:
        return self._constant(frozenset(shape.values), "choices")

    def _table(self, shape: Member) -> str:
        return self.writer.bind(shape.table, f"{shape.kind.__name__}_members")

    def _kind(self, kind: type) -> str:
        known = getattr(builtins, kind.__name__, None) is kind
        name = kind.__name__ if known else self.writer.bind(kind, kind.__name__)
        if self.near is None:
            return name
        if name not in self.near_names:
            self.near_names[name] = self.writer.names.unique(f"{name}_")
        return self.near.setdefault(name, self.near_names[name])


def carried_types(union: Either) -> frozenset[type]:
    """The types of a union that have no place of their own."""
    own = union.slots or ()
    return (union.exactly() or frozenset()).difference(*(one.exactly() or () for one in own))
