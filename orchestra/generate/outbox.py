"""The sending side of one subsystem: for each type it sends, the lane, the box and the room, decided."""

from collections.abc import Iterable, Mapping

from orchestra.box import Codec
from orchestra.generate.names import kind_name, lane_name
from orchestra.generate.writer import Writer
from orchestra.plan import Plan, Route, Style, SubsystemPlan
from orchestra.priority import Priority

OUTGOING = "outgoing"
"""The name of the inbox for what leaves the orchestra."""


Codecs = Mapping[type, Codec]
"""The codecs of the message classes that are packed for somebody."""


def write_outbox(
    writer: Writer, plan: Plan, codecs: Codecs, function: str, sender: str, kinds: Iterable[type]
) -> None:
    """Write a function that makes `send` and `try_send` for a sender of these message classes.

    Only what has one receiver and may be told by its class is written out; the rest (subclasses,
    boxes made ahead, broadcasts, types that are not sent) goes to the general way, `post`.
    """
    direct = [route for kind in kinds if (route := _direct(plan, kind)) is not None]
    with writer.block(f"def {function}(post, inboxes, scheduler)"):
        writer.line(f'"""What {sender} sends: {_summary(direct)}."""')
        receivers = dict.fromkeys(_receiver(route) for route in direct)
        for receiver in receivers:
            _write_receiver(writer, plan, receiver)
        if any(_is_actor(plan.subsystems.get(receiver)) for receiver in receivers):
            writer.line("ready = scheduler.ready.append")
        for is_async in (True, False):
            writer.line()
            _write_send(writer, plan, codecs, direct, is_async=is_async)
        writer.line()
        writer.line("return send, try_send")


def receivers_of(route: Route) -> tuple[str, ...]:
    """The inboxes that a route leads to."""
    return (OUTGOING,) if route.outgoing else route.receivers


def _direct(plan: Plan, kind: type) -> Route | None:
    route = plan.route_of(kind)
    if route is None or route.kind is not kind:
        return None
    if route.outgoing:
        return route
    alone = len(route.receivers) == 1 and not plan.subsystems[route.receivers[0]].wip
    return route if alone else None


def _receiver(route: Route) -> str:
    return OUTGOING if route.outgoing else route.receivers[0]


def _summary(routes: list[Route]) -> str:
    told = [f"{kind_name(route.kind)} to {_receiver(route)}" for route in routes]
    return ", ".join(told) or "nothing that is known beforehand"


def _write_receiver(writer: Writer, plan: Plan, receiver: str) -> None:
    subsystem = plan.subsystems.get(receiver)
    writer.line(f'{receiver}_inbox = inboxes["{receiver}"]')
    if subsystem is not None and (subsystem.has_priority or len(subsystem.lanes) > 1):
        writer.line(f"{receiver}_lanes = {receiver}_inbox.by_priority")
    if subsystem is not None and subsystem.has_priority:
        writer.line(f"{receiver}_priority = {receiver}_inbox.level")
    elif (lane := _default_lane(subsystem, receiver)) is not None:
        normal = writer.bind(Priority.NORMAL, "NORMAL")
        writer.line(f"{lane} = {receiver}_inbox.by_priority[{normal}]")
        writer.line(f"{lane}_queue = {lane}.queue")
        writer.line(f"{lane}_append = {lane}_queue.append")


def _default_lane(subsystem: SubsystemPlan | None, receiver: str) -> str | None:
    """The lane of a message whose sender gives no level; None when the receiver's method decides."""
    if subsystem is None:
        return lane_name(receiver, Priority.NORMAL)
    return None if subsystem.has_priority else lane_name(receiver, Priority.NORMAL)


def _write_send(writer: Writer, plan: Plan, codecs: Codecs, direct: list[Route], *, is_async: bool) -> None:
    header = "async def send" if is_async else "def try_send"
    with writer.block(f"{header}(message, priority=None)"):
        if direct:
            writer.line("kind = message.__class__")
        for route in direct:
            _write_case(writer, plan, codecs, route, is_async=is_async)
        if is_async:
            writer.line("return await post.send(message, priority)")
        else:
            writer.line("return post.try_send(message, priority)")


def _write_case(writer: Writer, plan: Plan, codecs: Codecs, route: Route, *, is_async: bool) -> None:
    receiver = _receiver(route)
    subsystem = plan.subsystems.get(receiver)
    kind = writer.bind(route.kind, kind_name(route.kind))
    fixed = _default_lane(subsystem, receiver)
    one_lane = subsystem is None or len(subsystem.lanes) == 1
    test = f"kind is {kind} and priority is None" if fixed and one_lane else f"kind is {kind}"
    with writer.block(f"if {test}"):
        if fixed and one_lane:
            lane, queue, append = fixed, f"{fixed}_queue", f"{fixed}_append"
        else:
            _write_choice(writer, receiver, fixed)
            lane, queue, append = "lane", "lane.queue", "lane.queue.append"
        entry = _write_entry(writer, codecs, route, receiver)
        with writer.block(f"if len({queue}) < {lane}.room"):
            writer.line(f"{append}({entry})")
            _write_wake(writer, subsystem, receiver)
            writer.line("return True")
        if is_async:
            writer.line(f"return await {lane}.put({entry}, message)")
        else:
            writer.line(f"return {lane}.put_now({entry}, message)")


def _write_wake(writer: Writer, subsystem: SubsystemPlan | None, receiver: str) -> None:
    """Write what lets a waiting receiver go on; nobody but the Actor itself receives from its inbox."""
    inbox = f"{receiver}_inbox"
    with writer.block(f"if {inbox}.idle"):
        if not _is_actor(subsystem):
            writer.line(f"{inbox}.wake()")
            return
        writer.line(f"{inbox}.idle = False")
        writer.line(f"ready({inbox}.work)")
        with writer.block("if not scheduler.awake"):
            writer.line("scheduler.rise()")


def _is_actor(subsystem: SubsystemPlan | None) -> bool:
    return subsystem is not None and subsystem.style is Style.ACTOR


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
    codec = codecs.get(route.kind)
    if codec is None or receiver not in route.boxed:
        return "message"
    seal = writer.bind(codec.seal, f"seal_{kind_name(route.kind)}")
    writer.line(f"box = {seal}(message)")
    return "box"
