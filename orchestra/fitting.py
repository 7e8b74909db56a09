"""Fitting the wiring to the instances that an orchestra is started with.

A field may hold an instance of another class than the declared one, or a Wrapper, or say that another process
hosts its subsystem. What is called of it is known only then, so the part of the plan that tells it, and the
wiring, are made anew, once for each choice of classes.
"""

import functools
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from orchestra.chains import Chain, as_wrapped, chain_of, check_lanes
from orchestra.decorator import plan_of
from orchestra.generate.wiring import Wiring, generate
from orchestra.inspection import check_plain, handlers_of, has_priority, hooks_of, stated_by, style_of
from orchestra.messages import class_of, derives, shown, shown_all
from orchestra.mistakes import Wrong, located
from orchestra.plan import Plan, Style, SubsystemPlan, boxed_receivers
from orchestra.remote import Elsewhere
from orchestra.scopes import scope_of
from orchestra.subsystems import Actor, Subsystem
from orchestra.wrapping import Wrapper

Kind = type | Chain
"""The class of what a field holds, or the classes of a Wrapper and of what is in it."""


def wiring_for(cls: Any, instances: Mapping[str, Any]) -> tuple[Plan, Wiring]:
    """The plan and the wiring of an orchestra class for the instances in its fields, by name.

    They are made anew where these are of other classes than declared. A field without one stays as declared.
    """
    plan = plan_of(cls)
    declared = tuple(_declared_kind(subsystem) for subsystem in plan.subsystems.values())
    kinds = tuple(
        _kind(cls, subsystem, instances[name]) if name in instances else kind
        for (name, subsystem), kind in zip(plan.subsystems.items(), declared, strict=True)
    )
    _check_apart(cls, instances)
    return (plan, cls.__orchestra_wiring__) if kinds == declared else _wiring_of((cls, kinds))


def _check_apart(cls: type, instances: Mapping[str, Any]) -> None:
    """Refuse one instance for two subsystems: both would run it, perhaps in two threads."""
    first: dict[int, str] = {}
    for name, instance in instances.items():
        for each in _all_in(instance):
            other = first.setdefault(id(each), name)
            if other != name:
                raise TypeError(
                    f"{shown(cls)}.{other} and {shown(cls)}.{name} hold the same {shown(type(each))}: "
                    "give each an instance of its own"
                )


def _all_in(instance: Any) -> Iterator[Any]:
    """What a field holds: a subsystem, or a Wrapper and what is in it."""
    while isinstance(instance, Wrapper):
        yield instance
        instance = getattr(instance, "inner", None)
    if not isinstance(instance, Elsewhere | type | None):
        yield instance


def _declared_kind(subsystem: SubsystemPlan) -> type | None:
    """The class that the wiring was made for at decoration, if it was."""
    return None if subsystem.made_at_start else subsystem.kind


def _kind(cls: type, subsystem: SubsystemPlan, actor: Any) -> Kind:
    where = f"{shown(cls)}.{subsystem.name}"
    if isinstance(actor, Elsewhere):
        return Elsewhere
    if isinstance(actor, type):
        raise TypeError(f"{where} holds the class {shown(actor)}: give an instance, {shown(actor)}(...)")
    if actor is None:
        raise TypeError(f"{where} holds None: give an instance of {shown(subsystem.kind)}")
    base = Subsystem if subsystem.style is Style.RUN else Actor
    if not isinstance(actor, base):
        raise TypeError(
            f"{where} holds {_with_article(type(actor).__qualname__)}, "
            f"and {shown(subsystem.kind)} is declared, so it must be of {base.__name__}"
        )
    return chain_of(where, actor) if isinstance(actor, Wrapper) else type(actor)


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOaeio" else f"a {name}"


@functools.lru_cache(maxsize=128)
def _wiring_of(classes: tuple[type, tuple[Kind | None, ...]]) -> tuple[Plan, Wiring]:
    """The wiring of an orchestra class (the first one) whose fields hold instances of the other classes."""
    cls, kinds = classes
    plan = plan_of(cls)
    subsystems = {
        name: subsystem
        if kind is None or kind is _declared_kind(subsystem)
        else _as_given(cls, subsystem, kind)
        for (name, subsystem), kind in zip(plan.subsystems.items(), kinds, strict=True)
    }
    changed = attrs.evolve(plan, subsystems=MappingProxyType(subsystems))
    if Elsewhere in kinds:
        routes = {
            kind: attrs.evolve(route, boxed=boxed_receivers(route.message, route.receivers, subsystems))
            for kind, route in plan.routes.items()
        }
        changed = attrs.evolve(changed, routes=MappingProxyType(routes))
    wiring = generate(changed)
    return attrs.evolve(changed, source=wiring.source), wiring


def _as_given(cls: type, subsystem: SubsystemPlan, kind: Kind) -> SubsystemPlan:
    """The part of a plan, with what the given class has in place of the declared one."""
    if not isinstance(kind, type):
        return as_wrapped(cls, subsystem, kind)
    if kind is Elsewhere:
        return attrs.evolve(subsystem, remote=True, boxed=True, blocking=False, fairness=None, restart=None)
    _check_stated(cls, subsystem, kind)
    try:
        if style_of(kind, blocking=subsystem.blocking) is Style.RUN:
            return attrs.evolve(subsystem, has_priority=has_priority(kind))
        receives = (*subsystem.consumes, *subsystem.subscribes)
        given = attrs.evolve(
            subsystem,
            has_priority=has_priority(kind),
            hooks=hooks_of(kind),
            handlers=handlers_of(kind, receives, scope_of(kind)),
            ways=None,
        )
        if given.blocking:
            check_plain(kind, given.handlers, given.hooks)
    except Wrong as wrong:
        raise located(kind, None, wrong) from wrong.__cause__
    check_lanes(cls, given)
    return given


def _check_stated(cls: type, subsystem: SubsystemPlan, kind: type) -> None:
    """Refuse a class whose base names messages, and not all that its field receives."""
    try:
        stated = stated_by(kind, (), scope_of(kind)).receives
    except Wrong:
        return  # it names what only the function around it knows
    if stated is None:
        return
    bases = [class_of(message) for message in stated]
    for verb, messages in (("consumes", subsystem.consumes), ("subscribes to", subsystem.subscribes)):
        missing = [each for each in messages if not any(derives(class_of(each), base) for base in bases)]
        if missing:
            root = "a Subsystem" if subsystem.style is Style.RUN else "an Actor"
            text = (
                f"{shown(cls)}.{subsystem.name} {verb} {shown_all(missing)}, and {shown(kind)} is {root} of "
                f"{shown_all(stated)}: give an instance that receives {shown_all(missing)}, or name that in "
                f"the base of {shown(kind)}"
            )
            raise located(cls, None, Wrong(text, subsystem.name))
