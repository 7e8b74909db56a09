"""The part of an orchestra that one process hosts: an instance whose other fields are `Remote()`."""

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from orchestra.cli.errors import CommandError
from orchestra.cli.target import find, find_plan
from orchestra.decorator import is_orchestra
from orchestra.messages import shown
from orchestra.plan import Plan
from orchestra.remote import Elsewhere, Remote


def part_of(target: str, hosts: Sequence[str]) -> Any:
    """The instance that `target` names or makes, with the subsystems in `hosts` and no others.

    An orchestra class is called with a fresh instance of each hosted subsystem, whose classes must need no
    arguments. A function is called with the frozenset of the names when it takes an argument, and without
    else. Of what comes out, all other fields are replaced by `Remote()`, unless they are already.
    """
    found = find(target)
    wanted = frozenset(hosts)
    if isinstance(found, type):
        return _of_class(target, found, find_plan(target), wanted)
    made = found if is_orchestra(type(found)) else _called(target, found, wanted)
    if not is_orchestra(type(made)):
        raise CommandError(f"{target!r} gave a {type(made).__qualname__}, not an orchestra")
    return _narrowed(target, made, wanted)


def _of_class(target: str, cls: Any, plan: Plan, hosts: frozenset[str]) -> Any:
    _check_names(plan, hosts)
    fields = {
        name: _made(target, plan, name) if name in hosts else Remote()
        for name, each in plan.subsystems.items()
        if not each.wip
    }
    _check_call(target, cls, fields)
    return cls(**fields)


def _made(target: str, plan: Plan, name: str) -> Any:
    kind: Callable[[], Any] = plan.subsystems[name].kind
    try:
        inspect.signature(kind).bind()
    except TypeError as error:
        raise CommandError(
            f"{plan.name}.{name} is {shown(kind)}, which cannot be made without arguments ({error}): "
            f"in place of {target!r}, name a function that makes {plan.name}"
        ) from None
    return kind()


def _check_call(target: str, cls: Any, fields: dict[str, Any]) -> None:
    try:
        inspect.signature(cls).bind(**fields)
    except TypeError as error:
        raise CommandError(
            f"{target!r} cannot be made with its subsystems alone ({error}): name a function that makes it"
        ) from None


def _called(target: str, found: Any, hosts: frozenset[str]) -> Any:
    if not callable(found):
        raise CommandError(f"{target!r} is no orchestra: it names an object of type {shown(type(found))}")
    signature = inspect.signature(found)
    for words in ((hosts,), ()):
        try:
            signature.bind(*words)
        except TypeError:
            continue
        return found(*words)
    raise CommandError(
        f"{target!r} needs arguments: it is called with the names of what it hosts, or with none"
    )


def _narrowed(target: str, app: Any, hosts: frozenset[str]) -> Any:
    plan: Plan = type(app).__orchestra__
    _check_names(plan, hosts)
    missing = [name for name in sorted(hosts) if isinstance(getattr(app, name), Elsewhere)]
    if missing:
        raise CommandError(f"{target!r} gave Remote() for {', '.join(map(repr, missing))}, to be hosted here")
    part = copy.copy(app)
    for name, each in plan.subsystems.items():
        if name not in hosts and not each.wip and not isinstance(getattr(app, name), Elsewhere):
            setattr(part, name, Remote())
    return part


def _check_names(plan: Plan, hosts: frozenset[str]) -> None:
    ready = [name for name, each in plan.subsystems.items() if not each.wip]
    for name in sorted(hosts.difference(ready)):
        what = "is wip: there is nothing to host" if name in plan.subsystems else "is no subsystem of it"
        raise CommandError(f"{plan.name} has {', '.join(map(repr, ready))} to host; {name!r} {what}")
