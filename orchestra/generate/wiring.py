"""The whole source for one orchestra class, and the functions that it makes."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from orchestra.box import codec_of
from orchestra.errors import Closed
from orchestra.generate.dispatch import write_worker
from orchestra.generate.outbox import OUTGOING, Codecs, write_outbox
from orchestra.generate.receiving import Receipt, write_receiver
from orchestra.generate.threads import write_thread_receiver
from orchestra.messages import class_of
from orchestra.overflow import Block
from orchestra.plan import LanePlan, Plan, Style, SubsystemPlan
from orchestra.priority import Priority
from orchestra.source import Writer, compile_source

OUTSIDE = "outside"
"""The sender that is no subsystem."""

_LOCALS = (
    "message priority kind lane box post inboxes send try_send inbox signals left recv try_recv recv_signal "
    "following taken ctx actor part work serve budget scheduler turns allowed more parked "
    "doors find door queue entry seal value "
    "overflow late others signal error on_signal deadline_passed lock home "
    "codec build decode batch count"
).split()


@attrs.frozen
class Wiring:
    """The generated functions of one orchestra class, by the name of the subsystem they serve.

    An outbox is a function `(post, inboxes, scheduler) -> send, try_send`; a receiver is
    `(inbox) -> recv, try_recv, recv_signal, following, taken`; a worker is
    `(inbox, ctx, actor, part) -> work or serve, taken`. `codecs` has the message classes that are
    packed for somebody.
    """

    source: str = attrs.field(repr=False)
    outboxes: Mapping[str, Callable[..., Any]] = attrs.field(repr=False)
    receivers: Mapping[str, Callable[..., Any]] = attrs.field(repr=False)
    workers: Mapping[str, Callable[..., Any]] = attrs.field(repr=False)
    codecs: Codecs = attrs.field(repr=False)


def outgoing_lanes(plan: Plan) -> tuple[LanePlan, ...]:
    """The lane from which what leaves the orchestra is taken."""
    return (LanePlan(Priority.NORMAL, plan.message_capacity, Block()),)


def generate(plan: Plan, names: Mapping[str, Any] | None = None) -> Wiring:
    """Write the source for a plan and make its functions.

    `names` are those that the annotations of messages declared in a function can use.
    """
    writer = Writer(taken=_names_in_use(plan))
    writer.bind(Closed, "Closed")
    codecs = _codecs(plan, names)
    made = list(_write(writer, plan, codecs))
    source = writer.source
    namespace = {"__name__": plan.module, **writer.namespace}
    compile_source(f"<orchestra generated {plan.module}.{plan.name}>", source, namespace, plan.cls)
    outboxes, receivers, workers = (
        _functions(made, namespace, role) for role in ("outbox", "receiver", "worker")
    )
    return Wiring(source, outboxes, receivers, workers, codecs)


def _codecs(plan: Plan, names: Mapping[str, Any] | None) -> Codecs:
    """The codecs of what the plan names: what is received, and subclasses of it that are sent."""
    sent = (message for subsystem in plan.subsystems.values() for message in subsystem.sends)
    received = (route.message for route in plan.routes.values())
    named = {class_of(message): message for message in (*sent, *received)}
    boxed = (kind for kind in named if plan.boxed_of(kind, named[kind], names))
    every = {kind: codec_of(kind, named[kind], names) for kind in boxed}
    for kind, codec in every.items():
        if plan.leaves(kind):
            from orchestra.link.crossing import crossing

            every[kind] = crossing(codec)
    return MappingProxyType({kind: codec for kind, codec in every.items() if codec.whole is None})


def _names_in_use(plan: Plan) -> Iterator[str]:
    yield from _LOCALS
    for name in (*plan.subsystems, OUTGOING, ""):
        prefix = f"{name}_" if name else ""
        yield from (
            f"{prefix}{end}"
            for end in ("inbox", "lanes", "acquire", "release", "priority", "outbox", "receiver", "worker")
        )
        for level in ("high", "normal", *(priority.name.lower() for priority in Priority)):
            yield from (f"{prefix}{level}{end}" for end in ("", "_queue", "_taken", "_count"))


def _write(writer: Writer, plan: Plan, codecs: Codecs) -> Iterator[tuple[str, str, str]]:
    """Write every function; yield role, subsystem and name of each."""
    writer.line(f'"""Wiring of {plan.module}.{plan.name}, generated from its declaration."""')
    for subsystem in plan.subsystems.values():
        if not subsystem.wip and not subsystem.remote:
            yield from _write_subsystem(writer, plan, codecs, subsystem)
    yield _outbox(writer, plan, codecs, OUTSIDE, "the outside", tuple(plan.routes))
    if plan.outgoing:
        yield _receiver(writer, Receipt.of(plan, codecs, OUTGOING, outgoing_lanes(plan)))


def _write_subsystem(
    writer: Writer, plan: Plan, codecs: Codecs, subsystem: SubsystemPlan
) -> Iterator[tuple[str, str, str]]:
    kinds = tuple(class_of(message) for message in subsystem.sends)
    yield _outbox(writer, plan, codecs, subsystem.name, subsystem.name, kinds)
    receipt = Receipt.of(plan, codecs, subsystem.name, subsystem.lanes, subsystem.fairness)
    if subsystem.style is Style.RUN:
        yield _receiver(writer, receipt, threaded=subsystem.blocking)
    elif subsystem.made_at_start:
        _space(writer)
        writer.line(
            f"# How {subsystem.name} is served is written at start, for the Actor that is given then."
        )
    else:
        function = f"{subsystem.name}_worker"
        _space(writer)
        write_worker(writer, subsystem, receipt, function)
        yield "worker", subsystem.name, function


def _outbox(
    writer: Writer, plan: Plan, codecs: Codecs, name: str, told: str, kinds: tuple[type, ...]
) -> tuple[str, str, str]:
    function = f"{name}_outbox"
    _space(writer)
    write_outbox(writer, plan, codecs, function, told, kinds)
    return "outbox", name, function


def _receiver(writer: Writer, receipt: Receipt, *, threaded: bool = False) -> tuple[str, str, str]:
    function = f"{receipt.name}_receiver"
    _space(writer)
    (write_thread_receiver if threaded else write_receiver)(writer, receipt, function)
    return "receiver", receipt.name, function


def _space(writer: Writer) -> None:
    writer.line()
    writer.line()


def _functions(
    made: list[tuple[str, str, str]], namespace: Mapping[str, Any], role: str
) -> Mapping[str, Callable[..., Any]]:
    return MappingProxyType({name: namespace[function] for kind, name, function in made if kind == role})
