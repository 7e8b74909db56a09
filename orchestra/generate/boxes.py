"""Generates, for one message class, the functions that seal a message into a box and open it again.

The generated functions check that every value is as its type says, pack what msgpack carries and
unpack it, with nothing looked up while messages flow. A message that does not pass the checks goes
to the shapes (`orchestra.generate.shapes`): they carry what is still exact, or find the field that
cannot be packed. Large bytes go beside the frame (`orchestra.generate.beside`).
"""

import builtins
import datetime as dt
import itertools
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import msgspec

from orchestra.errors import BoxError
from orchestra.generate.beside import LARGE, joined, put_back, taken_out
from orchestra.generate.hints import Hint, scopes_of
from orchestra.generate.mutability import what_can_change
from orchestra.generate.records import why_whole
from orchestra.generate.shapes import (
    Choice,
    Either,
    Many,
    Member,
    Moment,
    Record,
    Refusal,
    Ride,
    Riders,
    Row,
    Scalar,
    Shape,
    Table,
    extent,
    may_become_equal,
    of,
    parts_of,
)
from orchestra.generate.shaping import Builder
from orchestra.generate.writer import Writer, compile_source

encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_new = object.__new__
_new_tuple = tuple.__new__
_flatten = itertools.chain.from_iterable
_set_field = object.__setattr__


MOST_LEVELS = 16
"""How many levels a field may have for generated functions; Python has at most 20 loops in each other."""

MOST_PARTS = 2000
"""How many parts the type of a field may have, all written out, for generated functions."""


@attrs.frozen
class BoxClasses:
    """The classes of boxes: packed alone, with bytes beside the frame, with riders, packed by the shapes.

    The last two may have bytes beside the frame as well.
    """

    packed: Any
    large: Any
    riding: Any
    loose: Any


@attrs.frozen(eq=False)
class Generated:
    """What was made for one class. `namespace` wants the codec, as `codec`, before the functions are used.

    `decode` and `build` are the two steps of opening a box that has no riders, if there are such boxes.
    `scalar` is the only field of a message with the exact type of its value, where nothing else is to be
    checked; `encode` packs that value. `large` are the fields whose bytes go beside the frame where they are
    large, and `join` makes of a box with bytes beside its frame one with all in it.
    """

    source: str
    rides: Mapping[str, str]
    whole: str | None
    mutable: str | None
    seal: Callable[[Any], Any]
    open: Callable[[Any], Any]
    namespace: dict[str, Any]
    decode: Callable[[bytes], Any] | None = None
    build: Callable[[Any], Any] | None = None
    scalar: tuple[str, type] | None = None
    large: tuple[str, ...] = ()
    join: Callable[[Any], Any] | None = None


class _Owner:
    """Lives as long as the generated functions, and keeps their text registered."""


def generate(
    kind: type, declared: Any, outer: Mapping[str, Any], check: bool, boxes: BoxClasses
) -> Generated:
    """Write the source for `kind`.

    `declared` is its subscripted form, and `outer` has the names of the scope in which it was declared.
    """
    writer = Writer(["message", "box", "codec", "seal_loosely", "open_loosely", "riders"])
    name = repr(f"{kind.__module__}.{kind.__qualname__}")[1:-1].replace('"', "'")
    seal, open_ = (writer.names.unique(f"{verb}_{kind.__name__}") for verb in ("seal", "open"))
    whole = why_whole(kind)
    rides: dict[str, str] = {}
    mutable = None
    made: dict[str, Any] = {}
    if whole is not None:
        _write_whole(writer, name, seal, open_, writer.bind(boxes.riding, "RidingBox"))
    else:
        arguments = Hint(declared, scopes_of(kind, None, outer)[kind]) if declared is not None else None
        record = Builder(outer).record(kind, arguments)
        assert isinstance(record, Record)
        rides = {path.removeprefix("."): reason for path, reason in record.rides()}
        mutable = what_can_change(record)
        generator = _Generator(writer, record, check, boxes)
        writer.namespace["seal_loosely"], writer.namespace["open_loosely"] = _loosely(
            record, generator.large, writer.namespace, boxes
        )
        made["steps"] = generator.write(name, seal, open_)
        made |= {"scalar": generator.scalar(), "large": generator.large, "join": generator.join()}
    namespace, owner = writer.namespace, _Owner()
    namespace |= {"__name__": kind.__module__, "__owner__": owner}
    compile_source(f"<orchestra generated box {name}>", writer.source, namespace, owner)
    steps = made.pop("steps", None)
    if steps is not None:
        made["decode"], made["build"] = (namespace[step] for step in steps)
    return Generated(
        writer.source, rides, whole, mutable, namespace[seal], namespace[open_], namespace, **made
    )


def _write_whole(writer: Writer, name: str, seal: str, open_: str, box: str) -> None:
    writer.line(f'"""Messages of {name} are not packed: they travel by reference."""\n\n')
    with writer.block(f"def {seal}(message)"):
        writer.line(f'return {box}(codec, b"", (message,))')
    writer.line("\n")
    with writer.block(f"def {open_}(box)"):
        writer.line("return box.riders[0]")


def _loosely(
    record: Record, large: Sequence[str], namespace: Mapping[str, Any], boxes: BoxClasses
) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The functions that seal and open by the shapes alone."""
    places = places_of(record, large)

    def seal_loosely(message: Any) -> Any:
        riders = Riders()
        try:
            tree = record.pack(message, riders, 0)
            beside = taken_out(tree, places)
            frame = encode(tree)
        except Refusal as refusal:
            raise BoxError(record.kind, refusal.where(), refusal.reason, message) from None
        except Exception as error:
            raise BoxError(record.kind, "", f"msgpack cannot carry it ({error})", message) from error
        return boxes.loose(namespace["codec"], frame, tuple(riders), beside)

    def open_loosely(box: Any) -> Any:
        return record.open(put_back(_decode(box.frame), places, box.beside), box.riders)

    return seal_loosely, open_loosely


def places_of(record: Record, fields: Sequence[str]) -> list[int]:
    """Where some fields stand in the tree of a record."""
    return [place for place, name in enumerate(record.fields) if name in fields]


class _Generator:
    """Writes the seal and open functions of one record."""

    def __init__(self, writer: Writer, record: Record, check: bool, boxes: BoxClasses) -> None:
        self.writer = writer
        self.record = record
        self.check = check
        self.boxes = boxes
        self.riding = [name for name, one in record.fields.items() if isinstance(one, Ride)]
        packed = {name: one for name, one in record.fields.items() if name not in self.riding}
        self.loose = {name for name, one in packed.items() if not _decodable(one)}
        self.large = tuple(name for name, one in packed.items() if check and self._is_of_bytes(one))
        self.rest = {name: one for name, one in packed.items() if name not in self.large}
        self.packed = {**self.rest, **{name: packed[name] for name in self.large}}
        self.rides = bool(self.riding or self.loose)
        self.local = writer.names.nested()
        self.refusal = "seal_loosely(message)"
        self.tests: dict[int, str] = {}
        self.helpers: dict[int, tuple[str, str]] = {}
        self.constants: dict[frozenset[Any], frozenset[Any]] = {}
        self.near: dict[str, str] | None = None
        self.near_names: dict[str, str] = {}

    def write(self, name: str, seal: str, open_: str) -> tuple[str, str] | None:
        """Write both functions, after the helpers for the records within.

        Return the names of the two steps of opening, where a box has no riders.
        """
        writer = self.writer
        writer.line(f'"""How messages of {name} are boxed."""')
        for field, shape in self.packed.items():
            if field not in self.loose:
                self._write_helpers(shape)
        if self.check:
            self._write_tests()
        writer.line("\n")
        self._write_seal(seal)
        writer.line("\n")
        return self._write_open(open_)

    # Sealing.

    def scalar(self) -> tuple[str, type] | None:
        """The only field and the exact type of its value, where to seal is to check that and to encode."""
        record = self.record
        if record.style != "struct" or record.has_dict or not self.check or self.rides or self.large:
            return None
        match list(self.packed.items()):
            case [(field, Scalar(kind=kind) as shape)] if shape.is_straight():
                return field, kind
            case _:
                return None

    def join(self) -> Callable[[Any], Any] | None:
        """What makes one frame of that of a box and the bytes beside it; None where there never are any."""
        if not self.large:
            return None
        boxes, rides, count = self.boxes, self.rides, len(self.rest)
        places = places_of(self.record, self.large)

        def join(box: Any) -> Any:
            if type(box) is boxes.loose:
                frame = encode(put_back(_decode(box.frame), places, box.beside))
                return boxes.loose(box.codec, frame, box.riders)
            frame = joined(box.frame, count, box.beside)
            return boxes.riding(box.codec, frame, box.riders) if rides else boxes.packed(box.codec, frame)

        return join

    def _write_seal(self, name: str) -> None:
        writer, record = self.writer, self.record
        self.local = writer.names.nested()
        values = {field: self.local.unique(field) for field in self.packed}
        with writer.block(f"def {name}(message)"):
            with writer.block("try"):
                for field, local in values.items():
                    writer.line(f"{local} = message.{field}")
                if self.check:
                    for field, shape in self.packed.items():
                        if field not in self.loose:
                            self._check(shape, values[field], strict=False)
                self._refuse_if(" or ".join(self._more_in(record, "message")))
                if self.large:
                    with writer.block(
                        f"if {' or '.join(self._is_large(field, values) for field in self.large)}"
                    ):
                        self._write_box(self.rest, values, self.large)
                self._write_box(self.packed, values)
            with writer.block("except Exception"):
                writer.line("pass")
            writer.line("return seal_loosely(message)")

    def _is_of_bytes(self, shape: Shape) -> bool:
        """Whether the values are bytes, or bytes and None, and nothing else is to be known of them."""
        kinds = self._told_by_type(shape, strict=False)
        return kinds in (frozenset({bytes}), frozenset({bytes, type(None)}))

    def _is_large(self, field: str, values: Mapping[str, str]) -> str:
        """The condition under which the bytes of a field are large."""
        value = values[field]
        test = f"len({value}) >= {LARGE}"
        kinds = self._told_by_type(self.packed[field], strict=False) or frozenset()
        return f"{value} is not None and {test}" if type(None) in kinds else test

    def _write_box(
        self, packed: Iterable[str], values: Mapping[str, str], beside: Iterable[str] = ()
    ) -> None:
        """Write the making and the return of a box, with the bytes of some fields beside its frame."""
        writer = self.writer
        riders = [f"message.{field}" for field in self.riding]
        if self.loose:
            writer.line(f"riders = {writer.bind(Riders, 'Riders')}([{', '.join(riders)}])")
        frame = self._frame([self._tree(field, values[field]) for field in packed])
        if self.loose:
            # The riders are complete only when the frame is made.
            writer.line(f"frame = {frame}")
        parts = ["codec", "frame" if self.loose else frame]
        if self.rides:
            parts.append("tuple(riders)" if self.loose else self._tuple(riders))
        if beside:
            parts.append(self._tuple(values[field] for field in beside))
        if self.rides:
            kind = writer.bind(self.boxes.riding, "RidingBox")
        elif beside:
            kind = writer.bind(self.boxes.large, "LargeBox")
        else:
            kind = writer.bind(self.boxes.packed, "Box")
        writer.line(f"return {kind}({', '.join(parts)})")

    def _frame(self, trees: Sequence[str]) -> str:
        """An expression for the frame of some trees."""
        pack = self.writer.bind(encode, "encode")
        match trees:
            case []:
                return 'b""'
            case [one]:
                return f"{pack}({one})"
            case _:
                return f"{pack}({self._tuple(trees)})"

    def _tree(self, field: str, local: str) -> str:
        shape = self.packed[field]
        if field in self.loose:
            return f"{self.writer.bind(shape.pack, f'pack_{field}')}({local}, riders, 0)"
        return self._pack(shape, local)

    # Opening.

    def _write_open(self, name: str) -> tuple[str, str] | None:
        writer = self.writer
        decode = writer.bind(self._decoder(self.packed), "decode")
        build = None if self.rides else self._builder()
        self.local = writer.names.nested()
        with writer.block(f"def {name}(box)"):
            if self.rides:
                with writer.block(f"if type(box) is {writer.bind(self.boxes.riding, 'RidingBox')}"):
                    writer.line("riders = box.riders")
                    if self.large:
                        with writer.block("if box.beside"):
                            self._write_opened_with_bytes()
                    self._write_built(f"{decode}(box.frame)", self.packed)
            else:
                with writer.block(f"if type(box) is {writer.bind(self.boxes.packed, 'Box')}"):
                    writer.line(f"return {build}({decode}(box.frame))")
                if self.large:
                    with writer.block(f"if type(box) is {writer.bind(self.boxes.large, 'LargeBox')}"):
                        self._write_opened_with_bytes()
            writer.line("return open_loosely(box)")
        return None if build is None else (decode, build)

    def _write_opened_with_bytes(self) -> None:
        """Write the opening of a box with bytes beside its frame."""
        self.writer.line("beside = box.beside")
        decode = self.writer.bind(self._decoder(self.rest), "decode_the_rest")
        self._write_built(f"{decode}(box.frame)", self.rest, self.large)

    def _builder(self) -> str:
        """The name of what makes a message of its tree: the class, where that takes the tree as it is."""
        writer, kind = self.writer, self.record.kind
        straight = all(one.is_straight() for one in self.packed.values())
        if straight and self.record.style == "struct" and self.record.positional == len(self.packed) == 1:
            return writer.bind(kind, kind.__name__)
        name = writer.names.unique(f"build_{kind.__name__}")
        self.local = writer.names.nested()
        tree = self.local.unique("tree")
        with writer.block(f"def {name}({tree})"):
            self._write_built(tree, self.packed)
        writer.line("\n")
        return name

    def _write_built(self, tree: str, packed: Mapping[str, Shape], beside: Sequence[str] = ()) -> None:
        """Write the making of the message of an expression for its tree, and of what is beside that."""
        writer, record = self.writer, self.record
        names = {field: self.local.unique(field) for field in packed}
        straight = all(one.is_straight() for one in packed.values()) and not self.loose
        in_order = len(names) > 1 and list(names) == list(record.fields)
        if in_order and straight and record.style == "struct" and record.positional == len(names):
            writer.line(f"return {writer.bind(record.kind, record.kind.__name__)}(*{tree})")
            return
        if len(names) == 1 and straight:
            values = dict.fromkeys(names, tree)
        else:
            if names:
                writer.line(f"{', '.join(names.values())} = {tree}")
            values = {field: self._value(field, local) for field, local in names.items()}
        values |= {field: f"riders[{place}]" for place, field in enumerate(self.riding)}
        values |= {field: f"beside[{place}]" for place, field in enumerate(beside)}
        self._write_build(record, [values[field] for field in record.fields])

    def _decoder(self, packed: Mapping[str, Shape]) -> Callable[[bytes], Any]:
        if not packed:
            return bytes
        wires = [Any if field in self.loose else one.wire() for field, one in packed.items()]
        return msgspec.msgpack.Decoder(wires[0] if len(wires) == 1 else of(tuple, tuple(wires))).decode

    def _value(self, field: str, local: str) -> str:
        shape = self.packed[field]
        if field in self.loose:
            return f"{self.writer.bind(shape.open, f'open_{field}')}({local}, riders)"
        return self._open(shape, local)

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

    # Records within the message that msgspec does not rebuild by itself.

    def _write_helpers(self, shape: Shape) -> None:
        if shape.is_straight() or id(shape) in self.helpers:
            return
        for one in parts_of(shape):
            self._write_helpers(one)
        if isinstance(shape, Record) and not shape.is_straight():
            self._write_helper(shape)

    def _write_tests(self) -> None:
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
        for field, shape in self.packed.items():
            if field not in self.loose:
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

    def _is_of(self, shape: Shape, value: str) -> str:
        kinds = sorted(shape.exactly() or (), key=lambda one: one.__name__)
        return " or ".join(f"type({value}) is {self._kind(one)}" for one in kinds)

    def _carried(self, union: Either, value: str) -> str:
        """The value in the place of the scalars of a union."""
        carried = _carried_types(union)
        return f"{value} if type({value}) in {self._kinds(carried)} else None" if carried else "None"

    @staticmethod
    def _tuple(parts: Iterable[str]) -> str:
        parts = list(parts)
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"

    # Checks.

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
        carried = _carried_types(union)
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


def _carried_types(union: Either) -> frozenset[type]:
    """The types of a union that have no place of their own."""
    own = union.slots or ()
    return (union.exactly() or frozenset()).difference(*(one.exactly() or () for one in own))


def _decodable(shape: Shape) -> bool:
    """Whether the generated functions can carry this shape through a msgspec decoder.

    Those for very many levels or parts nobody could read, nor Python compile.
    """
    levels, parts = extent(shape)
    if levels > MOST_LEVELS or parts > MOST_PARTS or shape.wire() is None:
        return False
    try:
        msgspec.msgpack.Decoder(shape.wire())
    except Exception:
        return False
    return True
