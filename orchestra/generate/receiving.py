"""The receiving side: signals first, then the lanes by level, then waiting."""

from collections.abc import Generator
from contextlib import contextmanager

import attrs

from orchestra.box import BOXES, Box
from orchestra.generate.names import kind_name, lane_name
from orchestra.generate.outbox import OUTGOING, Codecs
from orchestra.overflow import Block, DropOldest
from orchestra.packing.codec import Codec
from orchestra.plan import LanePlan, Plan
from orchestra.source import Writer


@attrs.frozen
class Receipt:
    """How the entries of one inbox are taken.

    `lanes` stand most urgent first; `opens` says whether an entry may be a box; `codec` is that of the only
    class that is boxed for it, if boxes of it have no riders; `fairness` is after how many messages in a
    row a lower lane has its turn; `circular` that messages may come back to their sender, so that it
    matters for the end which tasks are still at work; `shared` that threads use the inbox too; `locked`
    that even who takes needs its lock, because others may take too or several things are looked at.
    """

    name: str
    lanes: tuple[LanePlan, ...]
    opens: bool
    codec: Codec | None
    kinds: tuple[type, ...]
    fairness: int | None
    circular: bool
    shared: bool
    locked: bool

    @classmethod
    def of(
        cls,
        plan: Plan,
        codecs: Codecs,
        name: str,
        lanes: tuple[LanePlan, ...],
        fairness: int | None = None,
    ) -> "Receipt":
        """How the inbox `name` is taken from."""
        return cls(
            name=name,
            lanes=lanes,
            opens=plan.opens(name),
            codec=_only_codec(plan, codecs, name),
            kinds=tuple(route.kind for route in plan.routes_to.get(name, ())),
            fairness=fairness,
            circular=name in plan.circular,
            shared=name in plan.shared,
            locked=name in plan.shared
            and (fairness is not None or any(isinstance(lane.overflow, DropOldest) for lane in lanes)),
        )

    def lane(self, lane: LanePlan) -> str:
        """The local name of a lane."""
        return lane_name("", lane.priority).removeprefix("_")

    @property
    def names(self) -> list[str]:
        """The local names of the lanes."""
        return [self.lane(lane) for lane in self.lanes]

    @property
    def sole(self) -> bool:
        """Whether there is one lane, so that what counts down to the next pause counts its messages too."""
        return len(self.lanes) == 1 and self.fairness is None


def _only_codec(plan: Plan, codecs: Codecs, name: str) -> Codec | None:
    boxed = [codecs.get(route.kind) for route in plan.routes_to.get(name, ()) if name in route.boxed]
    if len(boxed) == 1 and boxed[0] is not None and boxed[0].build is not None:
        return boxed[0]
    return None


def write_receiver(writer: Writer, receipt: Receipt, function: str) -> None:
    """Write a function that makes the receiving verbs of one `run` method.

    They are `recv`, `try_recv`, `recv_signal`, and `following`, which `async for` calls.
    """
    with writer.block(f"def {function}(inbox)"):
        writer.line(f'"""How {receipt.name} receives: signals, then {told(receipt)}."""')
        write_lanes(writer, receipt, paced=True)
        if not receipt.circular and receipt.name != OUTGOING:
            writer.line("scheduler = inbox.scheduler")
        write_pacing(writer, receipt)
        _write_waiting(writer, receipt, "recv")
        _write_following(writer)
        _write_try_recv(writer, receipt)
        writer.line()
        with writer.block("async def recv_signal()"):
            with writer.block("while not signals"):
                writer.line("await inbox.rest_for_signal()")
            writer.line("return inbox.take_signal()")
        write_taken(writer, receipt, paced=True)
        writer.line()
        writer.line("return recv, try_recv, recv_signal, following, taken")


def write_lanes(writer: Writer, receipt: Receipt, *, paced: bool = False) -> None:
    """Write the local names that taking from the lanes needs."""
    writer.line("signals = inbox.signals")
    if receipt.locked:
        writer.line("lock = inbox.lock")
    if receipt.fairness is not None:
        writer.line(f"turns = inbox.turns({receipt.fairness})")
        return
    names = receipt.names
    writer.line(f"{', '.join(names)} = inbox.lanes" if len(names) > 1 else f"({names[0]},) = inbox.lanes")
    for name in names:
        writer.line(f"{name}_queue = {name}.queue")
    if not (paced and receipt.sole):
        for name in names:
            writer.line(f"{name}_taken = 0")


def write_pacing(writer: Writer, receipt: Receipt) -> None:
    """Write the count of messages to take until the others have their turn.

    Where that counts the messages of the only lane too, the allowed ones but for those left are taken.
    """
    writer.line("allowed = left = 1" if receipt.sole else "left = 1")


def write_pause(writer: Writer, receipt: Receipt, wait: str = "await") -> None:
    """Write the pause after as many messages as were allowed, which is short where nobody else is ready."""
    with writer.block("if not left"):
        if receipt.sole:
            writer.line("left, allowed = 1, allowed + 1  # also when it is cancelled: the others have run")
            writer.line(f"more = inbox.more() or ({wait} inbox.breathe())")
            writer.line("left, allowed = left + more, allowed + more")
        else:
            writer.line("left = 1  # also when it is cancelled: the others have run")
            writer.line(f"left += inbox.more() or ({wait} inbox.breathe())")
        writer.line("continue")


@contextmanager
def held(writer: Writer, receipt: Receipt) -> Generator[None, None, None]:
    """Write what follows under the lock of the inbox, where it is needed."""
    if not receipt.locked:
        yield
        return
    with writer.block("with lock"):
        yield


def write_take(
    writer: Writer,
    receipt: Receipt,
    first: str,
    *,
    batch: bool = False,
    paced: str | None = None,
    then: str | None = None,
    unless: str = "",
) -> None:
    """Write the branches that take one message from the most urgent lane that has one.

    In a batch, during which nobody else runs, messages are counted by small local numbers, to be added up at
    its end, and there `write_relief` is enough for lanes that block. `paced` is the statement that counts
    down to the next pause; in an only lane no other count is needed.
    """
    if receipt.fairness is not None:
        _write_fair_take(writer, first, paced, then, unless)
        return
    for position, lane in enumerate(receipt.lanes):
        name = receipt.lane(lane)
        with writer.block(f"{first if position == 0 else 'elif'} {name}_queue{unless}"):
            writer.line(f"message = {name}_queue.popleft()")
            if not (paced and receipt.sole):
                writer.line(f"{name}_count += 1" if batch else f"{name}_taken += 1")
            if paced:
                writer.line(paced)
            if not (batch and isinstance(lane.overflow, Block)):
                _write_relief(writer, name)
            if then is not None:
                writer.line(then)


def write_count(writer: Writer, receipt: Receipt, *, begin: bool) -> None:
    """Write the beginning of the count of a batch, or the adding up at its end."""
    if receipt.sole:
        writer.line("allowed = budget" if begin else f"{receipt.names[0]}_taken += allowed - budget")
    elif receipt.fairness is None:
        for name in receipt.names:
            writer.line(f"{name}_count = 0" if begin else f"{name}_taken += {name}_count")


def write_relief(writer: Writer, receipt: Receipt) -> None:
    """Write what lets waiting senders in after a batch of messages was taken."""
    for lane in receipt.lanes:
        if receipt.fairness is None and isinstance(lane.overflow, Block):
            _write_relief(writer, receipt.lane(lane))


def _write_relief(writer: Writer, name: str) -> None:
    with writer.block(f"if {name}.pressed"):
        writer.line(f"{name}.relieve()")


def _write_fair_take(writer: Writer, first: str, paced: str | None, then: str | None, unless: str) -> None:
    test = "not signals and " if unless else ""
    with writer.block(f"{first} {test}(lane := turns.next()) is not None"):
        writer.line("message = lane.queue.popleft()")
        if paced:
            writer.line(paced)
        _write_relief(writer, "lane")
        if then is not None:
            writer.line(then)


def write_open(writer: Writer, receipt: Receipt) -> None:
    """Write the opening of what was taken, where it may be a box."""
    if not receipt.opens:
        return
    test = f"type(message) is {writer.bind(Box, 'Box')}"
    if receipt.codec is not None:
        codec, name = receipt.codec, kind_name(receipt.codec.kind)
        build = writer.bind(codec.build, name if codec.build is codec.kind else f"build_{name}")
        decode = writer.bind(codec.decode, f"decode_{name}")
        with writer.block(f"if {test} and message.codec is {writer.bind(codec, f'codec_{name}')}"):
            writer.line(f"message = {build}({decode}(message.frame))")
    else:
        with writer.block(f"if {test}"):
            writer.line("codec = message.codec")
            writer.line("build, decode = codec.build, codec.decode")
            writer.line("message = build(decode(message.frame))")
    with writer.block(f"elif message.__class__ in {writer.bind(BOXES, 'BOXES')}"):
        writer.line("message = message.codec.open(message)")


def write_nonlocal(writer: Writer, receipt: Receipt, *more: str, paced: bool = False) -> None:
    """Write the declaration of the variables that a nested function changes."""
    counts = [f"{name}_taken" for name in receipt.names] if receipt.fairness is None else []
    if paced:
        counts = ["allowed", "left"] if receipt.sole else [*counts, "left"]
    if counts or more:
        writer.line(f"nonlocal {', '.join([*counts, *more])}")


def write_taken(writer: Writer, receipt: Receipt, *, paced: bool = False) -> None:
    """Write the function that tells how many messages were taken from each lane."""
    writer.line()
    with writer.block("def taken()"):
        if receipt.fairness is not None:
            writer.line("return tuple(turns.taken)")
        elif receipt.sole:
            writer.line(f"return ({'allowed - left' if paced else f'{receipt.names[0]}_taken'},)")
        else:
            writer.line(f"return {', '.join(f'{name}_taken' for name in receipt.names)}")


def told(receipt: Receipt) -> str:
    """What an inbox receives, and through which lanes, in a few words."""
    lanes = " before ".join(receipt.lane(lane) for lane in receipt.lanes)
    return f"{', '.join(map(kind_name, receipt.kinds)) or 'nothing'} ({lanes})"


def _write_waiting(writer: Writer, receipt: Receipt, name: str) -> None:
    writer.line()
    with writer.block(f"async def {name}()"):
        write_nonlocal(writer, receipt, paced=True)
        with writer.block("while True"):
            with writer.block("if signals"):
                writer.line("return inbox.take_signal()")
            write_pause(writer, receipt)
            with held(writer, receipt):
                write_take(writer, receipt, "if", paced="left -= 1", then="break")
            writer.line("await inbox.rest()")
        write_open(writer, receipt)
        _write_hold(writer, receipt)
        writer.line("return message")


def _write_hold(writer: Writer, receipt: Receipt) -> None:
    """Write that the running task has the message now: it is a dead letter when that fails.

    Only the strand runs in turns of the scheduler. Who receives outside cannot fail here.
    """
    if receipt.name == OUTGOING:
        return
    if receipt.circular:
        writer.line("inbox.hold(message)")
        return
    with writer.block("if scheduler.began"):
        writer.line("inbox.current = message")
    with writer.block("else"):
        writer.line("inbox.hold(message)  # another task than the strand's")


def _write_following(writer: Writer) -> None:
    writer.line()
    with writer.block("async def following()"):
        with writer.block("try"):
            writer.line("return await recv()")
        with writer.block("except Closed"):
            writer.line("raise StopAsyncIteration from None")


def _write_try_recv(writer: Writer, receipt: Receipt) -> None:
    writer.line()
    with writer.block("def try_recv()"):
        if receipt.sole:
            writer.line("nonlocal allowed")
        else:
            write_nonlocal(writer, receipt)
        with writer.block("if signals"):
            writer.line("return inbox.take_signal()")
        with held(writer, receipt):
            write_take(writer, receipt, "if", paced="allowed += 1" if receipt.sole else None)
            with writer.block("else"):
                writer.line("return inbox.nothing()")
        write_open(writer, receipt)
        _write_hold(writer, receipt)
        writer.line("return message")
