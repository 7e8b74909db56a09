"""Writes, for one message class, the functions that seal a message into a box and open it again.

They check that every value is as its type says, pack what msgpack carries and unpack it, with nothing
looked up while messages flow. A message that does not pass the checks is left to `orchestra.packing.loose`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from orchestra.packing.beside import LARGE
from orchestra.packing.codec import encode
from orchestra.packing.shapes.records import Record
from orchestra.packing.shapes.riding import Ride
from orchestra.packing.shapes.scalars import Scalar
from orchestra.packing.shapes.shape import Riders, Shape, of
from orchestra.packing.trees import Trees, is_decodable
from orchestra.source import Writer


class BoxClasses(NamedTuple):
    """The classes of boxes: packed alone, with bytes beside the frame, with riders, packed by the shapes.

    The last two may have bytes beside the frame as well.
    """

    packed: Any
    large: Any
    riding: Any
    loose: Any


class Functions(Trees):
    """Writes the two functions for one record."""

    def __init__(self, writer: Writer, record: Record, check: bool, boxes: BoxClasses) -> None:
        super().__init__(writer)
        self.record = record
        self.check = check
        self.boxes = boxes
        self.riding = [name for name, one in record.fields.items() if isinstance(one, Ride)]
        packed = {name: one for name, one in record.fields.items() if name not in self.riding}
        self.loose = {name for name, one in packed.items() if not is_decodable(one)}
        self.large = tuple(name for name, one in packed.items() if check and self._is_of_bytes(one))
        self.rest = {name: one for name, one in packed.items() if name not in self.large}
        self.packed = {**self.rest, **{name: packed[name] for name in self.large}}
        self.rides = bool(self.riding or self.loose)

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
            self._write_tests(shape for field, shape in self.packed.items() if field not in self.loose)
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
