"""The sending side of one subsystem: for each type it sends, the lane, the box and the room, decided."""

import builtins
import enum
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from threading import get_ident

from orchestra.box import Box
from orchestra.errors import BoxError
from orchestra.generate.names import kind_name, lane_name
from orchestra.overflow import Drop, DropOldest, Overflow
from orchestra.packing.codec import Codec, encode
from orchestra.plan import Plan, Route, Style, SubsystemPlan
from orchestra.priority import Priority
from orchestra.source import Writer

OUTGOING = "outgoing"
"""The name of the inbox for what leaves the orchestra."""


Codecs = Mapping[type, Codec]
"""The codecs of the message classes that are packed for somebody."""

FEW = 8
"""Up to so many classes are told apart by one test after the other; a dict costs as much as six tests."""


def write_outbox(
    writer: Writer, plan: Plan, codecs: Codecs, function: str, sender: str, kinds: Iterable[type]
) -> None:
    """Write a function that makes `send` and `try_send` for a sender of these message classes.

    Only what may be told by its class is written out; the rest (subclasses, boxes made ahead, a policy for
    one message, requests, types that are not sent) goes to the general way, `post`. Many classes with one
    lane each are looked up in a dict of `doors`: the lane, its queue, its inbox, and what seals a message.
    """
    direct = [route for kind in kinds if (route := _direct(plan, kind)) is not None]
    doors = [route for route in direct if _is_door(plan, route)]
    doors = doors if len(doors) > FEW else []
    told = [route for route in direct if route not in doors] if doors else direct
    threaded = sender in plan.subsystems and plan.subsystems[sender].blocking
    with writer.block(f"def {function}(post, inboxes, scheduler)"):
        where = " from its thread" if threaded else ""
        looked_up = [f"{len(doors)} classes by their doors"] if doors else []
        writer.line(f'"""What {sender} sends{where}: {_summary(told, looked_up)}."""')
        if threaded:
            writer.line("home = post.home")
        receivers = dict.fromkeys(receiver for route in direct for receiver in receivers_of(route))
        together = [receivers_of(route) for route in direct if len(receivers_of(route)) > 1]
        told_together = {receiver for group in together for receiver in group}
        for receiver in receivers:
            _write_receiver(writer, plan, receiver, broadcast=receiver in told_together)
        if doors:
            _write_doors(writer, codecs, doors)
        for mode in (Mode.SLEEP if threaded else Mode.AWAIT, Mode.NEVER):
            writer.line()
            _write_send(writer, plan, codecs, told, mode, threaded=threaded, doors=doors)
        writer.line()
        writer.line("return send, try_send")


class Mode(enum.Enum):
    """How a send waits where there is no room."""

    AWAIT = enum.auto()
    SLEEP = enum.auto()
    NEVER = enum.auto()


def receivers_of(route: Route) -> tuple[str, ...]:
    """The inboxes that a route leads to."""
    return (OUTGOING,) if route.outgoing else route.receivers


def _direct(plan: Plan, kind: type) -> Route | None:
    route = plan.route_of(kind)
    if route is None or route.kind is not kind:
        return None
    subsystems = [plan.subsystems[name] for name in route.receivers]
    if route.replies or any(subsystem.wip for subsystem in subsystems):
        return None
    if len(subsystems) > 1 and any(subsystem.has_priority for subsystem in subsystems):
        return None
    return route


def _is_door(plan: Plan, route: Route) -> bool:
    """Whether every message of a class goes into one lane of one inbox, which no thread shares."""
    if len(receivers_of(route)) != 1:
        return False
    (receiver,) = receivers_of(route)
    subsystem = plan.subsystems.get(receiver)
    lanes = 1 if subsystem is None else len(subsystem.lanes)
    decided = _default_lane(subsystem, receiver) is not None and lanes == 1
    return decided and receiver not in plan.shared and not _counts_bytes(subsystem)


def _write_doors(writer: Writer, codecs: Codecs, routes: list[Route]) -> None:
    writer.line("doors = {")
    for route in routes:
        (receiver,) = receivers_of(route)
        kind = writer.bind(route.kind, kind_name(route.kind))
        lane = lane_name(receiver, Priority.NORMAL)
        seal = _seal(writer, codecs, route) if receiver in route.boxed else None
        writer.line(f"    {kind}: ({lane}, {lane}_queue, {receiver}_inbox, {seal}),")
    writer.line("}")
    writer.line("find = doors.get")


def _write_door(writer: Writer, routes: list[Route], mode: Mode) -> None:
    """Write what is done with the classes that are looked up."""
    writer.line("door = find(kind)")
    with writer.block("if door is not None and priority is None and overflow is None"):
        writer.line("lane, queue, inbox, seal = door")
        entry = "message"
        if any(route.boxed for route in routes):
            writer.line("entry = message if seal is None else seal(message)")
            entry = "entry"
        with writer.block("if len(queue) < lane.room"):
            writer.line(f"queue.append({entry})")
            with writer.block("if inbox.idle"):
                writer.line("inbox.wake()")
            writer.line("return True")
        put = "await lane.put" if mode is Mode.AWAIT else "lane.put_now"
        writer.line(f"return {put}({entry}, message)")


def _seal(writer: Writer, codecs: Codecs, route: Route) -> str | None:
    codec = codecs.get(route.kind)
    return None if codec is None else writer.bind(codec.seal, f"seal_{kind_name(route.kind)}")


def _summary(routes: list[Route], more: list[str]) -> str:
    told = [f"{kind_name(route.kind)} to {' and '.join(receivers_of(route))}" for route in routes]
    return ", ".join([*told, *more]) or "nothing that is known beforehand"


def _write_receiver(writer: Writer, plan: Plan, receiver: str, *, broadcast: bool) -> None:
    subsystem = plan.subsystems.get(receiver)
    writer.line(f'{receiver}_inbox = inboxes["{receiver}"]')
    counts_bytes = _counts_bytes(subsystem)
    if receiver in plan.shared and not counts_bytes:
        writer.line(f"{receiver}_acquire = {receiver}_inbox.lock.acquire")
        writer.line(f"{receiver}_release = {receiver}_inbox.lock.release")
    if subsystem is not None and (subsystem.has_priority or len(subsystem.lanes) > 1):
        writer.line(f"{receiver}_lanes = {receiver}_inbox.by_priority")
    if subsystem is not None and subsystem.has_priority:
        writer.line(f"{receiver}_priority = {receiver}_inbox.level")
    elif (lane := _default_lane(subsystem, receiver)) is not None:
        normal = writer.bind(Priority.NORMAL, "NORMAL")
        writer.line(f"{lane} = {receiver}_inbox.by_priority[{normal}]")
        if not counts_bytes and (broadcast or subsystem is None or len(subsystem.lanes) == 1):
            writer.line(f"{lane}_queue = {lane}.queue")


def _default_lane(subsystem: SubsystemPlan | None, receiver: str) -> str | None:
    """The lane of a message whose sender gives no level; None when the receiver's method decides."""
    if subsystem is None:
        return lane_name(receiver, Priority.NORMAL)
    return None if subsystem.has_priority else lane_name(receiver, Priority.NORMAL)


def _write_send(
    writer: Writer,
    plan: Plan,
    codecs: Codecs,
    direct: list[Route],
    mode: Mode,
    *,
    threaded: bool,
    doors: list[Route],
) -> None:
    header = {Mode.AWAIT: "async def send", Mode.SLEEP: "def send", Mode.NEVER: "def try_send"}[mode]
    with writer.block(f"{header}(message, priority=None, overflow=None)"):
        if threaded:
            write_home(writer)
        if direct or doors:
            packs = any(route.boxed and route.kind in codecs for route in (*direct, *doors))
            # What says that it is of another class, as a mock does, would come out of a box as that.
            writer.line("kind = type(message)" if packs else "kind = message.__class__")
        if doors:
            _write_door(writer, doors, mode)
        for route in direct:
            write = _write_case if len(receivers_of(route)) == 1 else _write_broadcast
            write(writer, plan, codecs, route, mode)
        general = {
            Mode.AWAIT: "await post.send",
            Mode.SLEEP: "post.send_in_thread",
            Mode.NEVER: "post.try_send",
        }
        writer.line(f"return {general[mode]}(message, priority, overflow)")


def write_home(writer: Writer) -> None:
    """Write the refusal of every thread but the one that the subsystem lives in."""
    with writer.block(f"if {writer.bind(get_ident, 'get_ident')}() != home.ident"):
        writer.line("home.refuse()")


def _write_case(writer: Writer, plan: Plan, codecs: Codecs, route: Route, mode: Mode) -> None:
    """Write what is done with a class that one subsystem receives."""
    (receiver,) = receivers_of(route)
    subsystem = plan.subsystems.get(receiver)
    kind = writer.bind(route.kind, kind_name(route.kind))
    fixed = _default_lane(subsystem, receiver)
    one_lane = subsystem is None or len(subsystem.lanes) == 1
    test = "priority is None and overflow is None" if fixed and one_lane else "overflow is None"
    with writer.block(f"if kind is {kind} and {test}"):
        if fixed and one_lane:
            lane, queue = fixed, f"{fixed}_queue"
        else:
            _write_choice(writer, receiver, fixed)
            lane, queue = "lane", "lane.queue"
        entry = _write_entry(writer, codecs, route, receiver)
        if _counts_bytes(subsystem):
            with writer.block(f"if {lane}.offer({entry})"):
                writer.line("return True")
            _write_check(writer, lane, entry)
        else:
            with _held(writer, plan, receiver):
                woken_here = _is_woken_here(plan, receiver)
                if woken_here:
                    # An Actor that is idle has nothing in its lanes.
                    with writer.block(f"if {receiver}_inbox.idle and {lane}.room"):
                        writer.line(f"{queue}.append({entry})")
                        _write_waking(writer, receiver)
                        writer.line("return True")
                with writer.block(f"if len({queue}) < {lane}.room"):
                    writer.line(f"{queue}.append({entry})")
                    if not woken_here:
                        _write_wake(writer, receiver)
                    writer.line("return True")
                _write_quick_refusal(writer, subsystem, lane)
        put = {Mode.AWAIT: "await {}.put", Mode.SLEEP: "{}.put_in_thread", Mode.NEVER: "{}.put_now"}[mode]
        writer.line(f"return {put.format(lane)}({entry}, message)")


def _counts_bytes(subsystem: SubsystemPlan | None) -> bool:
    """Whether a lane of the receiver looks itself whether a box fits, and takes it itself."""
    return subsystem is not None and subsystem.counts_bytes


def _write_check(writer: Writer, lane: str, entry: str) -> None:
    """Write the refusal of a box that can never fit."""
    if entry == "box":
        writer.line(f"{lane}.check(box, message)")


@contextmanager
def _held(writer: Writer, plan: Plan, receiver: str) -> Generator[None, None, None]:
    """Write what follows under the lock of an inbox that threads share: a `with` costs twice as much."""
    if receiver not in plan.shared:
        yield
        return
    writer.line(f"{receiver}_acquire()")
    with writer.block("try"):
        yield
    with writer.block("finally"):
        writer.line(f"{receiver}_release()")


def _write_quick_refusal(writer: Writer, subsystem: SubsystemPlan | None, lane: str) -> None:
    policies = _policies(subsystem)
    if any(isinstance(policy, Drop) for policy in policies):
        of_another = any(not isinstance(policy, Drop) for policy in policies)
        drops = f" and {lane}.policy.__class__ is {writer.bind(Drop, 'Drop')}" if of_another else ""
        with writer.block(f"if {lane}.congested{drops}"):
            writer.line(f"{lane}.early += 1")
            writer.line("return False")


def _policies(subsystem: SubsystemPlan | None) -> list[Overflow]:
    return [] if subsystem is None else [lane.overflow for lane in subsystem.lanes]


def _write_broadcast(writer: Writer, plan: Plan, codecs: Codecs, route: Route, mode: Mode) -> None:
    """Write what is done with a class that several subsystems receive: each lane is asked once, in turn.

    Lanes that had no room at once are dealt with together, when every other one has the message.
    """
    kind = writer.bind(route.kind, kind_name(route.kind))
    with writer.block(f"if kind is {kind} and priority is None and overflow is None"):
        entries = _write_entries(writer, codecs, route)
        for receiver, entry in entries.items():
            if _counts_bytes(plan.subsystems[receiver]):
                _write_check(writer, lane_name(receiver, Priority.NORMAL), entry)
        writer.line("taken, late = True, ()")
        for receiver in route.receivers:
            subsystem = plan.subsystems[receiver]
            lane, entry = lane_name(receiver, Priority.NORMAL), entries[receiver]
            if subsystem.counts_bytes:
                with writer.block(f"if not {lane}.offer({entry})"):
                    writer.line(f"late += (({lane}, {entry}),)")
                continue
            with _held(writer, plan, receiver):
                _write_offer(writer, plan, subsystem, lane, entry)
        with writer.block("if late"):
            count = len(route.receivers)
            places = f"post.living(late, {count})"
            if mode is Mode.NEVER:
                writer.line(f"return post.spread_now({places}, message) and taken")
            else:
                spread = "await post.spread" if mode is Mode.AWAIT else "post.spread_in_thread"
                writer.line(f"others = len(late) < {count}")
                writer.line(f"return {spread}({places}, message, others=others) and taken")
        writer.line("return taken")


def _is_asked(plan: Plan, receiver: str) -> bool:
    """Whether what waits in the lanes of a receiver may carry replies, so that its loss has to be told."""
    return any(route.replies and receiver in route.receivers for route in plan.routes.values())


def _write_offer(writer: Writer, plan: Plan, subsystem: SubsystemPlan, lane: str, entry: str) -> None:
    """Write what is done with one lane of a broadcast. A marked lane has no room, so the mark comes first."""
    policy = _policy(subsystem)
    first = "if"
    if isinstance(policy, Drop):
        with writer.block(f"if {lane}.congested"):
            writer.line(f"{lane}.early += 1")
            writer.line("taken = False")
        first = "elif"
    with writer.block(f"{first} len({lane}_queue) < {lane}.room"):
        writer.line(f"{lane}_queue.append({entry})")
        if _is_woken_here(plan, subsystem.name):
            with writer.block(f"if {subsystem.name}_inbox.idle"):
                _write_waking(writer, subsystem.name)
        else:
            _write_wake(writer, subsystem.name)
    if isinstance(policy, DropOldest) and _is_asked(plan, subsystem.name):
        with writer.block(f"elif {lane}.displaces"):
            writer.line(f"{lane}.displace({entry})")
    elif isinstance(policy, DropOldest):
        with writer.block(f"elif {lane}.displaces"):
            writer.line(f"{lane}_queue.popleft()")
            writer.line(f"{lane}_queue.append({entry})")
            writer.line(f"{lane}.displaced += 1")
    with writer.block("else"):
        writer.line(f"late += (({lane}, {entry}),)")


def _policy(subsystem: SubsystemPlan) -> Overflow:
    return next(lane.overflow for lane in subsystem.lanes if lane.priority is Priority.NORMAL)


def _write_entries(writer: Writer, codecs: Codecs, route: Route) -> dict[str, str]:
    """What each receiver of a broadcast gets: the message, or the one box that all boxed ones share."""
    if not route.boxed or route.kind not in codecs:
        return dict.fromkeys(route.receivers, "message")
    _write_box(writer, codecs[route.kind])
    return {receiver: "box" if receiver in route.boxed else "message" for receiver in route.receivers}


def _write_box(writer: Writer, codec: Codec) -> None:
    """Write the packing of a message: of an only value that is as declared, with no function between."""
    name = kind_name(codec.kind)
    seal = writer.bind(codec.seal, f"seal_{name}")
    if codec.scalar is None:
        writer.line(f"box = {seal}(message)")
        return
    field, kind = codec.scalar
    known, box = writer.bind(codec, f"codec_{name}"), writer.bind(Box, "Box")
    packed = f"{box}({known}, {writer.bind(encode, 'encode')}(value))"
    with writer.block("try"):
        writer.line(f"value = message.{field}")
        writer.line(f"box = {packed} if type(value) is {_kind(writer, kind)} else {seal}(message)")
    with writer.block(f"except {writer.bind(BoxError, 'BoxError')}"):
        writer.line("raise")
    with writer.block("except Exception"):
        writer.line(f"box = {seal}(message)")


def _kind(writer: Writer, kind: type) -> str:
    known = getattr(builtins, kind.__name__, None) is kind
    return kind.__name__ if known else writer.bind(kind, kind.__name__)


def _write_wake(writer: Writer, receiver: str) -> None:
    """Write what lets a waiting receiver go on."""
    with writer.block(f"if {receiver}_inbox.idle"):
        writer.line(f"{receiver}_inbox.wake()")


def _write_waking(writer: Writer, receiver: str) -> None:
    """Write what lets a waiting Actor go on: nobody but itself receives from its inbox."""
    writer.line(f"{receiver}_inbox.idle = False")
    writer.line(f"scheduler.ready.append({receiver}_inbox.work)")
    with writer.block("if not scheduler.awake"):
        writer.line("scheduler.rise()")


def _is_woken_here(plan: Plan, receiver: str) -> bool:
    """Whether a send makes a waiting receiver ready by itself."""
    subsystem = plan.subsystems.get(receiver)
    is_actor = subsystem is not None and subsystem.style is Style.ACTOR
    return is_actor and receiver not in plan.shared and not _counts_bytes(subsystem)


def _write_choice(writer: Writer, receiver: str, fixed: str | None) -> None:
    inbox = f"{receiver}_inbox"
    if fixed is not None:
        with writer.block("if priority is None"):
            writer.line(f"lane = {fixed}")
        with writer.block("else"):
            writer.line(f"lane = {receiver}_lanes.get(priority) or {inbox}.no_lane(priority, message)")
        return
    with writer.block("if priority is None"):
        writer.line(f"priority = {receiver}_priority(message)")
    writer.line(f"lane = {receiver}_lanes.get(priority) or {inbox}.no_lane(priority, message)")


def _write_entry(writer: Writer, codecs: Codecs, route: Route, receiver: str) -> str:
    if receiver not in route.boxed or route.kind not in codecs:
        return "message"
    _write_box(writer, codecs[route.kind])
    return "box"
