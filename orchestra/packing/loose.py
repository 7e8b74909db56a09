"""The way of messages that are not quite as declared: sealed and opened by the shapes, value by value.

The shapes carry what is still exact, or find the field that cannot be packed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec

from orchestra.errors import BoxError
from orchestra.packing.beside import put_back, taken_out
from orchestra.packing.codec import encode
from orchestra.packing.shapes.records import Record
from orchestra.packing.shapes.refusals import Refusal
from orchestra.packing.shapes.shape import Riders

_decode = msgspec.msgpack.Decoder().decode


@attrs.frozen(eq=False)
class Loose:
    """The functions of one record, for boxes of the class `box`.

    `places` is where bytes that may be large stand in the tree; `namespace` has the codec, once it is made.
    """

    record: Record
    places: Sequence[int]
    box: Any
    namespace: Mapping[str, Any]

    def seal(self, message: Any) -> Any:
        """Pack a message; raise BoxError where that cannot be done exactly."""
        riders = Riders()
        try:
            tree = self.record.pack(message, riders, 0)
            beside = taken_out(tree, self.places)
            frame = encode(tree)
        except Refusal as refusal:
            raise BoxError(self.record.kind, refusal.where(), refusal.reason, message) from None
        except Exception as error:
            raise BoxError(self.record.kind, "", f"msgpack cannot carry it ({error})", message) from error
        return self.box(self.namespace["codec"], frame, tuple(riders), beside)

    def open(self, box: Any) -> Any:
        """The message of a box."""
        return self.record.open(self._tree(box), box.riders)

    def join(self, box: Any) -> Any:
        """The same box with all bytes in the frame."""
        return self.box(box.codec, encode(self._tree(box)), box.riders)

    def _tree(self, box: Any) -> list[Any]:
        return put_back(_decode(box.frame), self.places, box.beside)
