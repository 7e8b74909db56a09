"""What two processes must agree on before they talk: a description of the plan, and its digest. Pure.

The description is plain data, and says nothing of modules: a program that is run as a script declares the
same as the module that it is. What may differ is what is hosted where, instances, restarts, and threads.
"""

import hashlib
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias, get_args, get_origin

import msgspec

from orchestra.messages import class_of
from orchestra.packing.classes import style_of
from orchestra.packing.hints import Hint, Unresolvable, field_hints
from orchestra.plan import LanePlan, Plan, SubsystemPlan

Description: TypeAlias = dict[str, Any]

MOST = 3
"""How many differences are told."""


def described(plan: Plan, names: Mapping[str, Any] | None = None) -> Description:
    """What the other process has to declare as well.

    `names` are those that the annotations of messages declared in a function can use.
    """
    types_: dict[str, Any] = {}
    for message in (*plan.messages, *plan.signals):
        _describe(class_of(message), names or {}, types_)
    return {
        "orchestra": plan.name,
        "subsystems": {name: _subsystem(each) for name, each in plan.subsystems.items()},
        "signals": [kind.__qualname__ for kind in plan.signals],
        "types": types_,
    }


def digest(description: Description) -> str:
    """A short name for a description: equal ones have the same."""
    return hashlib.blake2b(msgspec.json.encode(description), digest_size=16).hexdigest()


def differences(here: Any, there: Any, path: str = "") -> Iterator[str]:
    """Where two descriptions differ, in words."""
    if isinstance(here, dict) and isinstance(there, dict):
        for name in dict.fromkeys((*here, *there)):
            inner = f"{path}.{name}" if path else str(name)
            if name not in there:
                yield f"{inner} is declared here and not there"
            elif name not in here:
                yield f"{inner} is declared there and not here"
            else:
                yield from differences(here[name], there[name], inner)
        if list(here) != list(there) and set(here) == set(there):
            yield f"{path or 'what is declared'} stands in another order"
    elif here != there:
        yield f"{path} is {_shown(here)} here and {_shown(there)} there"


def told(here: Description, there: Description) -> str:
    """The first few differences, as a sentence."""
    found = list(differences(here, there))
    more = f"; and {len(found) - MOST} more" if len(found) > MOST else ""
    return "; ".join(found[:MOST]) + more


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) or "nothing" if isinstance(value, list) else str(value)


def _subsystem(plan: SubsystemPlan) -> Description:
    return {
        "consumes": [_text(each) for each in plan.consumes],
        "subscribes": [_text(each) for each in plan.subscribes],
        "sends": [_text(each) for each in plan.sends],
        "lanes": {lane.priority.name: _lane(lane) for lane in plan.lanes},
        "wip": plan.wip,
    }


def _lane(lane: LanePlan) -> str:
    size = "" if lane.capacity_bytes is None else f" and {lane.capacity_bytes} bytes"
    return f"{lane.capacity:g}{size}, {lane.overflow!r}"


def _describe(kind: type, names: Mapping[str, Any], found: dict[str, Any]) -> None:
    """Add what a class has in it, and the classes in its fields."""
    if kind.__qualname__ in found:
        return
    style = style_of(kind)
    if style is None:
        found[kind.__qualname__] = "a class"
        return
    fields: dict[str, str] = {}
    found[kind.__qualname__] = fields
    for name, hint in field_hints(kind, style[1], None, names).items():
        fields[name] = _told(hint, names, found)


def _told(hint: Hint, names: Mapping[str, Any], found: dict[str, Any]) -> str:
    hint = hint.resolve()
    annotation = hint.annotation
    if isinstance(annotation, Unresolvable):
        return annotation.text
    if isinstance(annotation, type) and get_origin(annotation) is None:
        if style_of(annotation) is not None:
            _describe(annotation, names, found)
        return annotation.__qualname__
    if get_origin(annotation) is Literal:
        return _text(annotation)
    inner = [_told(hint.inner(arg), names, found) for arg in get_args(annotation) if arg is not Ellipsis]
    return _joined(annotation, inner)


def _text(annotation: Any) -> str:
    """An annotation, the same in every version of Python."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation.__qualname__
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(annotation)))}]"
    return _joined(annotation, [_text(arg) for arg in get_args(annotation) if arg is not Ellipsis])


def _joined(annotation: Any, inner: list[str]) -> str:
    origin = get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(inner)
    if origin is typing.Annotated:
        return inner[0]
    if annotation is None:
        return "NoneType"
    name = getattr(origin or annotation, "__qualname__", None) or str(annotation).rpartition(".")[2]
    return f"{name}[{', '.join(inner)}]" if inner else str(name)
