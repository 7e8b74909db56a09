"""A `Declaration` becomes a `Plan`: how its parts fit together, checked, and where each message goes."""

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from orchestra.box import Boxing, boxed_switch, why_not_boxed
from orchestra.carrying import reply_fields
from orchestra.declaration import Declaration, FieldDeclaration
from orchestra.messages import class_of, derives, joined, shown, shown_all
from orchestra.mistakes import Wrong, located
from orchestra.plan import Plan, Route, SubsystemPlan, boxed_receivers

FIELD_FACTS = tuple(
    name
    for name in attrs.fields_dict(FieldDeclaration)
    if name in attrs.fields_dict(SubsystemPlan) and name != "boxed"
)


def make_plan(declaration: Declaration, names: Mapping[str, Any] | None = None) -> Plan:
    """Fit the parts of an orchestra together. Raises `DeclarationError` where they do not.

    `names` are those that the annotations of messages declared in a function can use.
    """
    try:
        return _planned(declaration, names or {})
    except Wrong as wrong:
        raise located(declaration.cls, declaration.place, wrong) from wrong.__cause__


def _planned(declaration: Declaration, names: Mapping[str, Any]) -> Plan:
    _check_consumers(declaration)
    _check_arguments_agree(declaration)
    _check_outgoing(declaration)
    _check_signals(declaration)
    _check_boxed(declaration)
    _check_bytes(declaration)
    routed = _routed(declaration)
    _check_sent(declaration, routed)
    senders = _senders(declaration, routed)
    subsystems = {
        field.name: SubsystemPlan(
            **{fact: getattr(field, fact) for fact in FIELD_FACTS},
            boxed=_boxing(declaration, field),
            senders=tuple(senders.get(field.name, ())),
        )
        for field in declaration.fields
    }
    return Plan(
        cls=declaration.cls,
        name=declaration.cls.__name__,
        module=declaration.cls.__module__,
        subsystems=types.MappingProxyType(subsystems),
        messages=_messages(declaration),
        signals=_kinds(declaration.signals),
        events=_kinds(declaration.events),
        outgoing=_kinds(declaration.outgoing),
        routes=types.MappingProxyType(_routes(declaration, routed, subsystems, names)),
        error=declaration.error,
        gen=declaration.gen,
        message_capacity=declaration.message_capacity,
        event_capacity=declaration.event_capacity,
        has_on_event=declaration.has_on_event,
    )


def _kinds(declared: Iterable[Any]) -> tuple[type, ...]:
    return tuple(dict.fromkeys(class_of(message) for message in declared))


def _messages(declaration: Declaration) -> tuple[Any, ...]:
    """Every message type as declared, each once, in order of first appearance."""
    found = [message for field in declaration.fields for message in (*_received(field), *field.sends)]
    return tuple(dict.fromkeys((*found, *declaration.outgoing)))


def _received(field: FieldDeclaration) -> tuple[Any, ...]:
    return field.consumes + field.subscribes


def _routed(declaration: Declaration) -> dict[type, tuple[str, ...]]:
    """The receivers of each routed class, in field order; of an outgoing one there are none."""
    found: dict[type, list[str]] = {}
    for field in declaration.fields:
        for kind in _kinds(_received(field)):
            found.setdefault(kind, []).append(field.name)
    for kind in _kinds(declaration.outgoing):
        found.setdefault(kind, [])
    return {kind: tuple(receivers) for kind, receivers in found.items()}


def _routes(
    declaration: Declaration,
    routed: dict[type, tuple[str, ...]],
    subsystems: dict[str, SubsystemPlan],
    names: Mapping[str, Any],
) -> dict[type, Route]:
    outgoing = _kinds(declaration.outgoing)
    declared: dict[type, Any] = {}
    for message in (*(m for field in declaration.fields for m in _received(field)), *declaration.outgoing):
        declared.setdefault(class_of(message), message)
    return {
        kind: Route(
            message=declared[kind],
            kind=kind,
            receivers=receivers,
            outgoing=kind in outgoing,
            boxed=boxed_receivers(declared[kind], receivers, subsystems, names),
            replies=reply_fields(kind, names, declared[kind]),
        )
        for kind, receivers in routed.items()
    }


def _first_routed(kind: type, routed: dict[type, tuple[str, ...]]) -> type | None:
    return next((base for base in kind.__mro__ if base in routed), None)


def _senders(declaration: Declaration, routed: dict[type, tuple[str, ...]]) -> dict[str, list[str]]:
    """For each subsystem those whose declared sends may reach it, in field order.

    What is sent and what is received must be one class, or subclass and base. A class with two
    bases, sent as the one and received as the other, is not seen: it need not exist yet.
    """
    derived: dict[type, set[str]] = {}
    for kind, receivers in routed.items():
        for base in kind.__mro__:
            derived.setdefault(base, set()).update(receivers)
    found: dict[str, list[str]] = {}
    for field in declaration.fields:
        reached: set[str] = set()
        for sent in _kinds(field.sends):
            nearest = _first_routed(sent, routed)
            reached.update(routed[nearest] if nearest else (), derived.get(sent, ()))
        for name in reached:
            found.setdefault(name, []).append(field.name)
    return found


def _check_consumers(declaration: Declaration) -> None:
    """A class is consumed by one subsystem, or subscribed to by any number, under one declared type."""
    cls = declaration.cls
    consumers: dict[type, tuple[FieldDeclaration, Any]] = {}
    for field in declaration.fields:
        for message in field.consumes:
            other, theirs = consumers.setdefault(class_of(message), (field, message))
            if other is not field:
                raise Wrong(
                    f"{_two(cls, other, field)} both consume {_same(theirs, message)}: a type has "
                    "one consumer; for a copy to each use subscribes=[...] in both",
                    field.name,
                    other.name,
                )
    subscribers: dict[type, tuple[FieldDeclaration, Any]] = {}
    for field in declaration.fields:
        for message in field.subscribes:
            consumer, theirs = consumers.get(class_of(message), (None, None))
            if consumer is not None:
                raise Wrong(
                    f"{shown(cls)}.{consumer.name} consumes {shown(theirs)} and {shown(cls)}.{field.name} "
                    f"subscribes to {_it(theirs, message)}: let both subscribe, or one consume",
                    field.name,
                    consumer.name,
                )
            first, theirs = subscribers.setdefault(class_of(message), (field, message))
            if theirs != message:
                raise Wrong(
                    f"{_two(cls, first, field)} subscribe to {_same(theirs, message)}: messages are routed "
                    f"by class, so both would receive all of {shown(class_of(message))}",
                    field.name,
                    first.name,
                )


def _two(cls: type, first: FieldDeclaration, second: FieldDeclaration) -> str:
    return f"{shown(cls)}.{first.name} and {shown(cls)}.{second.name}"


def _same(first: Any, second: Any) -> str:
    if first == second:
        return shown(first)
    return f"{shown(class_of(first))} ({shown(first)} and {shown(second)} are one class)"


def _it(first: Any, second: Any) -> str:
    return "it" if first == second else f"{shown(second)}, which is the same class"


def _check_arguments_agree(declaration: Declaration) -> None:
    """`Msg[int]` sent to a receiver of `Msg[str]` would arrive there: they are one class."""
    name = shown(declaration.cls)
    received: dict[type, list[tuple[str, Any]]] = {}
    for field in declaration.fields:
        for message in _received(field):
            received.setdefault(class_of(message), []).append((field.name, message))
    for field in declaration.fields:
        for sent in field.sends:
            kind = class_of(sent)
            theirs = received.get(kind, [])
            if theirs and all(kind not in (sent, message) and sent != message for _, message in theirs):
                receiver, message = theirs[0]
                raise Wrong(
                    f"{name}.{field.name} sends {shown(sent)} and {name}.{receiver} receives "
                    f"{shown(message)}: they are one class, and messages are routed by class",
                    field.name,
                    receiver,
                )


def _check_outgoing(declaration: Declaration) -> None:
    name = shown(declaration.cls)
    outgoing = _kinds(declaration.outgoing)
    for field in declaration.fields:
        for message in _received(field):
            if class_of(message) in outgoing:
                verb = "consumes" if message in field.consumes else "subscribes to"
                raise Wrong(
                    f"{name}.{field.name} {verb} {shown(message)}, which is outgoing: a message has one way; "
                    "send another type out",
                    field.name,
                )
    sent = _kinds(message for field in declaration.fields for message in field.sends)
    unsent = [kind for kind in outgoing if not any(derives(s, kind) or derives(kind, s) for s in sent)]
    if unsent and not declaration.has_on_event:
        raise Wrong(
            f"{name}: nobody sends {shown_all(unsent)}, which {_is(unsent)} outgoing: "
            "put it into the sends= of a subsystem, or leave it out"
        )


def _is(several: Sequence[Any]) -> str:
    return "is" if len(several) == 1 else "are"


def _check_signals(declaration: Declaration) -> None:
    """A receiver tells signals from messages by their class, so none may be both."""
    name = shown(declaration.cls)
    for field in declaration.fields:
        for message in (*_received(field), *field.sends):
            _check_signal(declaration, f"{name}.{field.name}", message, field.name)
    for message in declaration.outgoing:
        _check_signal(declaration, f"{name}: outgoing", message)


def _check_signal(declaration: Declaration, where: str, message: Any, *fields: str) -> None:
    kind = class_of(message)
    for signal in _kinds(declaration.signals):
        if kind is signal:
            raise Wrong(
                f"{where}: {shown(message)} is a signal, so it is no message: use another type", *fields
            )
        if derives(kind, signal) or derives(signal, kind):
            raise Wrong(
                f"{where}: {shown(message)} and the signal {shown(signal)} are subclass and base, so a "
                "receiver cannot tell them apart: use types of their own",
                *fields,
            )


def _check_boxed(declaration: Declaration) -> None:
    """A class that is marked `@boxed` must be one that can be packed."""
    for field in declaration.fields:
        for message in (*_received(field), *field.sends):
            kind = class_of(message)
            reason = why_not_boxed(kind) if boxed_switch(kind) else None
            if reason:
                where = f"{shown(declaration.cls)}.{field.name}"
                raise Wrong(
                    f"{where}: {shown(message)} is marked @boxed and cannot be packed: {reason}", field.name
                )


def _boxing(declaration: Declaration, field: FieldDeclaration) -> Boxing:
    return declaration.boxed_messages if field.boxed is None else field.boxed


def _check_bytes(declaration: Declaration) -> None:
    """A limit in bytes needs boxes, for nothing else has a size."""
    for field in declaration.fields:
        limited = any(lane.capacity_bytes is not None for lane in field.lanes)
        marked = any(boxed_switch(class_of(message)) for message in _received(field))
        if limited and not marked and not _boxing(declaration, field):
            raise Wrong(
                f"{shown(declaration.cls)}.{field.name}: capacity_bytes counts the bytes of boxes, and what "
                "it receives is not boxed: give it boxed=True or boxed='auto', or leave capacity_bytes out",
                field.name,
            )


def _check_sent(declaration: Declaration, routed: dict[type, tuple[str, ...]]) -> None:
    """Whatever is sent has a receiver, itself, by one of its bases, or by one of its subclasses."""
    cls = declaration.cls
    lost: dict[Any, list[str]] = {}
    for field in declaration.fields:
        for message in field.sends:
            kind = class_of(message)
            if _first_routed(kind, routed) is None and not any(derives(each, kind) for each in routed):
                lost.setdefault(message, []).append(field.name)
    if lost:
        fields = list(dict.fromkeys(name for names in lost.values() for name in names))
        senders = joined(f"{shown(cls)}.{name}" for name in fields)
        raise Wrong(
            f"{senders} {'sends' if len(fields) == 1 else 'send'} {shown_all(lost)}, which nobody receives: "
            "let a subsystem consume it, or name it in outgoing=",
            *fields,
        )
