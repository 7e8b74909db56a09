"""Messages that several may hold at once and change, since they travel by reference."""

from collections.abc import Iterator
from typing import Any

from orchestra.box import boxed_switch, codec_of
from orchestra.cli.boxes import messages_named
from orchestra.messages import class_of, derives, joined, shown
from orchestra.plan import Plan


def what_is_shared(plan: Plan) -> Iterator[str]:
    """A line for each type that can be changed, is not boxed, and has several receivers or meets a thread.

    One receiver in the event loop is the usual handing over. `@boxed(False)` says that sharing is meant.
    """
    for message in messages_named(plan):
        kind = class_of(message)
        why = _why_shared(plan, kind, message)
        changeable = codec_of(kind, message).mutable if why and boxed_switch(kind) is None else None
        if changeable is not None:
            yield (
                f"{shown(message)} travels by reference and can be changed ({changeable}), and {why}: "
                "box it (boxed='auto'), make it frozen, or let one alone change it"
            )


def _why_shared(plan: Plan, kind: type, message: Any) -> str | None:
    """Who may hold the same object at once; None where it is handed from one to another in the loop."""
    route = plan.route_of(kind)
    if route is None:
        return None
    boxed = plan.boxed_of(kind, message)
    parts = plan.subsystems
    receivers = [
        name for name in route.receivers if name not in boxed and not (parts[name].wip or parts[name].remote)
    ]
    if not receivers and not route.outgoing:
        return None
    threads = [name for name in receivers if parts[name].blocking]
    senders = [each.name for each in parts.values() if each.blocking and not each.wip and _sends(each, kind)]
    reasons = [f"{_named(receivers)} get the same object"] * (len(receivers) > 1)
    reasons += [f"{_named(threads)} gets it in a thread" for _ in threads[:1]]
    reasons += [f"it comes from the thread of {_named(senders)}" for _ in senders[:1]]
    if not reasons:
        return None
    return joined(reasons) if len(receivers) > 1 or threads else f"{joined(reasons)} to {_to(receivers)}"


def _sends(subsystem: Any, kind: type) -> bool:
    sends = [class_of(sent) for sent in subsystem.sends]
    return any(derives(kind, sent) or derives(sent, kind) for sent in sends)


def _named(names: list[str]) -> str:
    return joined(map(repr, names))


def _to(receivers: list[str]) -> str:
    return _named(receivers) if receivers else "running.outgoing"
