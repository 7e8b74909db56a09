"""Conditions in generated code: under which a value is, by itself, not as its type says."""

import builtins
import datetime as dt
import uuid
from typing import Any

from orchestra.packing.shapes.choices import Choice, Member
from orchestra.packing.shapes.containers import Many, Row, Table
from orchestra.packing.shapes.records import Record
from orchestra.packing.shapes.recursion import Again
from orchestra.packing.shapes.riding import Ride
from orchestra.packing.shapes.scalars import Moment, Scalar
from orchestra.packing.shapes.shape import Shape
from orchestra.packing.shapes.unions import Either
from orchestra.source import Writer


class Conditions:
    """Makes conditions, as expressions, and the names for what they test.

    `near` maps the names of classes to the local names that they have in the loop that is being written, and
    is None outside of loops.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.near: dict[str, str] | None = None
        self._near_names: dict[str, str] = {}
        self._constants: dict[frozenset[Any], frozenset[Any]] = {}

    def _is_of(self, shape: Shape, value: str) -> str:
        kinds = sorted(shape.exactly() or (), key=lambda one: one.__name__)
        return " or ".join(f"type({value}) is {self._kind(one)}" for one in kinds)

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
        return [f"len(frozenset(list({value}))) != len({value})"] if _may_become_equal(item) else []

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

    def _kinds(self, kinds: frozenset[type]) -> str:
        names = "_or_".join(sorted(one.__name__ for one in kinds))
        return self._constant(kinds, f"{names}_only" if len(kinds) == 1 else names)

    def _constant(self, values: frozenset[Any], wanted: str) -> str:
        """Bind an equal set once. The types belong to the key: 1 equals True."""
        key = frozenset((type(one), one) for one in values)
        return self.writer.bind(self._constants.setdefault(key, values), wanted)

    def _choices(self, shape: Choice) -> str:
        return self._constant(frozenset(shape.values), "choices")

    def _table(self, shape: Member) -> str:
        return self.writer.bind(shape.table, f"{shape.kind.__name__}_members")

    def _kind(self, kind: type) -> str:
        known = getattr(builtins, kind.__name__, None) is kind
        name = kind.__name__ if known else self.writer.bind(kind, kind.__name__)
        if self.near is None:
            return name
        if name not in self._near_names:
            self._near_names[name] = self.writer.names.unique(f"{name}_")
        return self.near.setdefault(name, self._near_names[name])


def _may_become_equal(shape: Shape) -> bool:
    """Whether items of a set or keys of a dict may be changed in place."""
    return isinstance(shape, (Record, Again, Ride)) or any(_may_become_equal(one) for _, one in shape.parts())
