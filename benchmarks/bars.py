"""What each figure must reach: the only place where the bars stand.

A bar of a message or a hop is a ratio to the floor; a bar of a start or of a pause is in milliseconds, one
of memory in bytes. A bar of a rate, a publish, an urgent message, a message to a thread, of what is boxed, of
the time and the memory of a backlog, and of how cost grows is a ratio to another case of its group.
A bar beside peers says how many times as fast as the fastest of them it must be.
"""

from collections.abc import Mapping

U8_PLAIN = "u8 to a synchronous Actor"
U8_BOXED = "u8 to a synchronous Actor, boxed"
BYTES_PLAIN = "1029 bytes to a synchronous Actor"
BYTES_BOXED = "1029 bytes to a synchronous Actor, boxed"
U8_RECV = "u8 to await ctx.recv()"
U8_TRY = "u8 to a synchronous Actor, try_send in a loop"


def sent(peer: str) -> str:
    """The name of the case of a send by a peer."""
    return f"u8, {peer}"


FASTEST_SEND = "u8, the fastest library"
HAND_MADE_SEND = "u8, made by hand"


def ring(size: int, handler: str) -> str:
    """The name of the case of a ring of `size` subsystems with `handler` handlers, or of this peer."""
    return f"ring of {size}, {handler}"


def fastest_ring(size: int) -> str:
    """The name of how far ahead of the fastest library a ring of this size is."""
    return ring(size, "the fastest library")


def fanout(subscribers: int, publisher: str = "") -> str:
    """The name of the case of a message to so many subscribers, by this peer or by orchestra."""
    plural = "" if subscribers == 1 else "s"
    return f"to {subscribers} subscriber{plural}{publisher and ', '}{publisher}"


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


def urgent_by_queue(backlog: int) -> str:
    """The same through an `asyncio.PriorityQueue`."""
    return f"asyncio.PriorityQueue, {backlog:,} wait"


TO_THREAD = "from the loop to a thread"
FROM_THREAD = "from a thread to the loop"
THERE_AND_BACK = "from the loop to a thread and back"


def idle(peer: str) -> str:
    """The name of the case of what waits and does nothing, by this peer or by orchestra."""
    return f"{peer}, idle"


IDLE_SUBSYSTEM = "an idle subsystem"
START_MANY = "start 10,000 subsystems"
IDLE_CPU = "10,000 idle subsystems, % of a core"
QUEUED = "a queued message"
KEPT = "kept of 100,000 queued messages when they are handled"


def among(subsystems: int) -> str:
    """The name of the case of a send in an orchestra of so many subsystems."""
    return f"a send among {subsystems:,} subsystems"


def behind(queued: int) -> str:
    """The name of the case of a send and a receive while so many messages wait."""
    return f"a send and a receive, {queued:,} queued"


def decorate(subsystems: int) -> str:
    """The name of the case of the decoration of a class of so many subsystems."""
    return f"decorate {subsystems:,} subsystems"


AMONG = (2, 10, 100, 1_000)
BEHIND = (1, 100, 10_000, 100_000)
DECORATED = (50, 100, 200, 400, 800)


def asks(asker: str, answering: str) -> str:
    """The name of the case in which this asker asks an Actor with such a handler."""
    article = "an" if answering.startswith("a") else "a"
    return f"{asker} asks {article} {answering} Actor"


FUTURES = "two tasks with futures"

BACKLOGS = (10, 1_000, 100_000)

UNBOXED, BOXED, AUTO, SEALED_AHEAD = "unboxed", "boxed", "auto", "sealed ahead"
BOX_U8, BOX_BYTES, BOX_BYTEARRAY = "u8", "1029 bytes", "1029 bytes in a bytearray"
TEN_DICTS, BUFFER = "ten small dicts", "64 KiB buffer"


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
FULL_BACKLOG = 500_000
"""How many messages wait in the backlog that the bars are for."""

TIME, MEMORY, PAUSE = "fill and drain", "memory", "longest pause"


def backlog(kind: str, what: str) -> str:
    """The name of the case of one figure of a backlog of messages of this kind."""
    return f"{kind}: {what}"


LINKED = (1, 16, 64, 256, 1024)
FULL_LINKED = 100_000
"""How many messages go to another process in the run that the bar of their rate is for."""


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
    U8_PLAIN: 4.0,
    U8_BOXED: 9,
    BYTES_PLAIN: 4.2,
    U8_TRY: 3.2,
    U8_RECV: 5.2,
    ring(2, SYNCHRONOUS): 5,
    ring(50, SYNCHRONOUS): 5,
    ring(2, ASYNCHRONOUS): 10,
    ring(50, ASYNCHRONOUS): 10,
    fanout(8): 1.8,
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
    IDLE_SUBSYSTEM: 6 * 1024,
    QUEUED: 8.5,
    KEPT: 12 * 1024,
    START_MANY: 5_000,
    IDLE_CPU: 1,
    among(AMONG[-1]): 1.3,
    behind(BEHIND[-1]): 1.3,
    decorate(DECORATED[-1]): 1.3,
    URGENT_MOST: 10,
    RECOVERY: 1000,
    FULLEST: 1,
}
"""What a figure must not exceed."""

AT_LEAST: Mapping[str, float] = {
    beside("Drop", PACED): 0.95,
    beside("DropOldest", PACED): 0.95,
    FASTEST_SEND: 2,
    HAND_MADE_SEND: 1,
    fastest_ring(2): 8,
    fastest_ring(50): 8,
    linked(LINKED[-1]): 0.6,
}
"""What a figure must reach."""
