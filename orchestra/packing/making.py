"""Makes the codec of a message class."""

from collections.abc import Callable, Mapping
from typing import Any

from orchestra.packing.beside import joined
from orchestra.packing.boxes import BoxClasses, Functions
from orchestra.packing.classes import why_whole
from orchestra.packing.codec import Codec
from orchestra.packing.hints import Hint, scopes_of
from orchestra.packing.loose import Loose
from orchestra.packing.mutability import what_can_change
from orchestra.packing.shapes.records import Record
from orchestra.packing.shaping import Builder
from orchestra.source import Writer, compile_source


class _Owner:
    """Lives as long as the generated functions, and keeps their text registered."""


def make_codec(kind: type, declared: Any, outer: Mapping[str, Any], check: bool, boxes: BoxClasses) -> Codec:
    """Write the source for `kind`, and make its codec.

    `declared` is its subscripted form, and `outer` has the names of the scope in which it was declared.
    """
    writer = Writer(["message", "box", "codec", "seal_loosely", "open_loosely", "riders", "beside"])
    name = repr(f"{kind.__module__}.{kind.__qualname__}")[1:-1].replace('"', "'")
    seal, open_ = (writer.names.unique(f"{verb}_{kind.__name__}") for verb in ("seal", "open"))
    whole = why_whole(kind)
    rides: dict[str, str] = {}
    mutable = steps = None
    more: dict[str, Any] = {}
    if whole is not None:
        _write_whole(writer, name, seal, open_, writer.bind(boxes.riding, "RidingBox"))
    else:
        arguments = Hint(declared, scopes_of(kind, None, outer)[kind]) if declared is not None else None
        record = Builder(outer).record(kind, arguments)
        assert isinstance(record, Record)
        rides = {path.removeprefix("."): reason for path, reason in record.rides()}
        mutable = what_can_change(record)
        functions = Functions(writer, record, check, boxes)
        places = [place for place, field in enumerate(record.fields) if field in functions.large]
        loose = Loose(record, places, boxes.loose, writer.namespace)
        writer.namespace |= {"seal_loosely": loose.seal, "open_loosely": loose.open}
        steps = functions.write(name, seal, open_)
        more = {"scalar": functions.scalar(), "large": functions.large, "join": _join(functions, loose)}
    namespace, owner = writer.namespace, _Owner()
    namespace |= {"__name__": kind.__module__, "__owner__": owner}
    compile_source(f"<orchestra generated box {name}>", writer.source, namespace, owner)
    if steps is not None:
        more["decode"], more["build"] = (namespace[step] for step in steps)
    codec = Codec(kind, writer.source, rides, whole, mutable, namespace[seal], namespace[open_], **more)
    namespace["codec"] = codec
    return codec


def _write_whole(writer: Writer, name: str, seal: str, open_: str, box: str) -> None:
    writer.line(f'"""Messages of {name} are not packed: they travel by reference."""\n\n')
    with writer.block(f"def {seal}(message)"):
        writer.line(f'return {box}(codec, b"", (message,))')
    writer.line("\n")
    with writer.block(f"def {open_}(box)"):
        writer.line("return box.riders[0]")


def _join(functions: Functions, loose: Loose) -> Callable[[Any], Any] | None:
    """What makes one frame of that of a box and the bytes beside it; None where there never are any."""
    if not functions.large:
        return None
    boxes, rides, count = functions.boxes, functions.rides, len(functions.rest)

    def join(box: Any) -> Any:
        if type(box) is boxes.loose:
            return loose.join(box)
        frame = joined(box.frame, count, box.beside)
        return boxes.riding(box.codec, frame, box.riders) if rides else boxes.packed(box.codec, frame)

    return join
