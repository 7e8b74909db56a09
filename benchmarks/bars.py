"""What each figure must reach: the only place where the bars stand.

A bar of a message or a hop is a ratio to the floor; a bar of a start or of a pause is in milliseconds; a
bar of a rate, of a publish, of an urgent message, of a message to a thread, of what is boxed and of the time
and the memory of a backlog is a ratio to another case of its group.
"""

from collections.abc import Mapping

U8_PLAIN = "u8 to a synchronous Actor"
U8_BOXED = "u8 to a synchronous Actor, boxed"
BYTES_PLAIN = "1029 bytes to a synchronous Actor"
BYTES_BOXED = "1029 bytes to a synchronous Actor, boxed"
U8_RECV = "u8 to await ctx.recv()"


def ring(size: int, handler: str) -> str:
    """The name of the case of a ring of `size` subsystems with `handler` handlers."""
    return f"ring of {size}, {handler}"


SYNCHRONOUS = "synchronous handlers"
ASYNCHRONOUS = "asynchronous handlers"

IMPORT = "import orchestra"
DECORATE = "decorate a class of 50 subsystems"
START_STOP = "start and stop it"

ALONE = "the fast subscriber alone"


def beside(policy: str, publisher: str) -> str:
    """The name of the case of a fast subscriber beside a slow one whose lane has this policy."""
    return f"beside a slow one, {policy}, {publisher}"


PACED = "paced"
FULL_SPEED = "at full speed"

SEND_TO_ONE = "a send to one"
PUBLISH_TO_TWO = "a publish to two"


def urgent(backlog: int) -> str:
    """The name of the case of an urgent message that arrives when so many others wait."""
    return f"urgent, {backlog:,} wait"


TO_THREAD = "from the loop to a thread"
FROM_THREAD = "from a thread to the loop"
THERE_AND_BACK = "from the loop to a thread and back"


def asks(asker: str, answering: str) -> str:
    """The name of the case in which this asker asks an Actor with such a handler."""
    article = "an" if answering.startswith("a") else "a"
    return f"{asker} asks {article} {answering} Actor"


FUTURES = "two tasks with futures"

BACKLOGS = (10, 1_000, 100_000)

UNBOXED, BOXED, AUTO, SEALED_AHEAD = "unboxed", "boxed", "auto", "sealed ahead"
BOX_U8, BOX_BYTES, TEN_DICTS, BUFFER = "u8", "1029 bytes", "ten small dicts", "64 KiB buffer"


def box_send(content: str, way: str) -> str:
    """The name of the case of a send of this content, boxed or not."""
    return f"{content}, {way}"


def broadcast(receivers: int, way: str) -> str:
    """The name of the case of ten small dicts that go to so many receivers, boxed or not."""
    return f"to {receivers} {'receiver' if receivers == 1 else 'receivers'}, {way}"


EACH_SEALED = "a seal for each of 16"
ONCE_SEALED = "one seal for all 16"

SLOTTED, STRUCT, WITHOUT_GC, IN_BOXES = (
    "slotted class",
    "msgspec.Struct",
    "records, Struct(gc=False)",
    "msgspec.Struct, boxed",
)
TIME, MEMORY, PAUSE = "fill and drain", "memory", "longest pause"


def backlog(kind: str, what: str) -> str:
    """The name of the case of one figure of a backlog of messages of this kind."""
    return f"{kind}: {what}"


LINKED = (1, 16, 64, 256, 1024)


def linked(capacity: int) -> str:
    """The name of the case of messages to a remote inbox of this capacity."""
    return f"capacity {capacity}"


PLAIN_ZENOH = "plain zenoh-python"
LINKED_ASK = "ask"
PLAIN_TRIP = "a put there and one back"
URGENT_HALF, URGENT_MOST = "half of them", "99 of 100"
RECOVERY = "from its return to a message handled"
FULLEST = "the fullest that the inbox was"

BARS: Mapping[str, float] = {
    U8_PLAIN: 5,
    U8_BOXED: 9,
    BYTES_PLAIN: 5.5,
    U8_RECV: 6.5,
    ring(2, SYNCHRONOUS): 7,
    ring(50, SYNCHRONOUS): 7,
    ring(2, ASYNCHRONOUS): 14,
    ring(50, ASYNCHRONOUS): 14,
    IMPORT: 150,
    DECORATE: 250,
    START_STOP: 100,
    PUBLISH_TO_TWO: 1.8,
    urgent(BACKLOGS[-1]): 1.5,
    TO_THREAD: 0.25,
    box_send(BOX_U8, BOXED): 1.8,
    box_send(BOX_BYTES, BOXED): 2.2,
    ONCE_SEALED: 1 / 6,
    backlog(IN_BOXES, TIME): 0.75,
    backlog(IN_BOXES, MEMORY): 0.2,
    backlog(IN_BOXES, PAUSE): 10,
    URGENT_MOST: 10,
    RECOVERY: 1000,
    FULLEST: 1,
}
"""What a figure must not exceed."""

AT_LEAST: Mapping[str, float] = {
    beside("Drop", PACED): 0.95,
    beside("DropOldest", PACED): 0.95,
    linked(LINKED[-1]): 0.6,
}
"""What a figure must reach."""
