"""What will be wired: derived from a declaration, before any code is generated."""

import enum
import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import attrs

from orchestra.box import Boxing, boxed_switch, codec_of
from orchestra.graph import Graph, graph_of, on_cycles
from orchestra.messages import class_of
from orchestra.overflow import Overflow
from orchestra.priority import Priority
from orchestra.supervision import Restart


class Style(enum.Enum):
    """How a subsystem is written."""

    RUN = "run"
    ACTOR = "actor"


@attrs.frozen
class LanePlan:
    """One level of an inbox. `capacity` is in messages; `math.inf` is unbounded.

    `capacity_bytes` limits the bytes of the boxes in it as well; None does not.
    """

    priority: Priority
    capacity: float
    overflow: Overflow
    capacity_bytes: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether it can be full at all."""
        return not math.isinf(self.capacity) or self.capacity_bytes is not None


@attrs.frozen
class HandlerPlan:
    """The method of an Actor that handles one consumed type."""

    message: Any
    method: str
    is_async: bool


@attrs.frozen
class Way:
    """Where a method of a wrapped Actor is: so many wrappers in from the outermost, under this name.

    `lenient` says that it may give something to await or not: a plain method around an asynchronous one.
    """

    depth: int
    method: str
    lenient: bool = False


@attrs.frozen
class SubsystemPlan:
    """One subsystem of an orchestra.

    `lanes` stand most urgent first. `handlers` has the handlers of an Actor; a message goes to that of
    its exact class, else of the nearest of its bases in method resolution order. `hooks` maps each
    hook that the class really has (started, stopped, on_signal, deadline_passed) to whether it is
    asynchronous.
    `senders` names the subsystems that may send to this one by declaration, itself too.
    A sender is freed from this receiver when it has taken nothing for `evict_after` seconds; after
    `fairness` messages in a row from more urgent lanes one of a lower lane is taken; when it has failed
    it starts again as `restart` says. None is off. `blocking` is True when it lives in a thread of its own.
    `remote` is True when another process hosts it; only a start knows that.
    `ways` is None but for an Actor that is wrapped: then it tells where each method that is called is. It is
    empty where only the instance tells what is called, and then there are no `handlers` and `hooks` yet.
    """

    name: str
    kind: type
    style: Style
    consumes: tuple[Any, ...]
    subscribes: tuple[Any, ...]
    sends: tuple[Any, ...]
    boxed: Boxing
    wip: bool
    lanes: tuple[LanePlan, ...]
    signal_capacity: float
    handlers: tuple[HandlerPlan, ...]
    hooks: Mapping[str, bool]
    has_priority: bool
    senders: tuple[str, ...]
    evict_after: float | None = None
    fairness: int | None = None
    restart: Restart | None = None
    blocking: bool = False
    ways: Mapping[str, Way] | None = None
    remote: bool = False

    @property
    def counts_bytes(self) -> bool:
        """Whether a lane of its inbox is limited by bytes."""
        return any(lane.capacity_bytes is not None for lane in self.lanes)

    @property
    def made_at_start(self) -> bool:
        """Whether handlers, hooks and `priority` are not known before an instance is given."""
        return self.ways is not None and not self.ways


@attrs.frozen
class Route:
    """Where messages of one type go.

    `message` is the type as declared (a class or a subscripted generic), `kind` its class.
    `receivers` names the subsystems; it is empty for an outgoing type. `boxed` names those of
    the receivers for which the message travels in a box, `replies` the fields that may hold a reply.
    """

    message: Any
    kind: type
    receivers: tuple[str, ...]
    outgoing: bool
    boxed: frozenset[str]
    replies: tuple[str, ...] = ()


@attrs.frozen
class Plan:
    """Everything that is decided at decoration. Immutable.

    `messages` are the types as declared, each once, in order of first appearance. `routes` has
    each class that somebody receives or that is outgoing; a subclass goes the way of the nearest.
    """

    cls: type
    name: str
    module: str
    subsystems: Mapping[str, SubsystemPlan]
    messages: tuple[Any, ...]
    signals: tuple[type, ...]
    events: tuple[type, ...]
    outgoing: tuple[type, ...]
    routes: Mapping[type, Route]
    error: type[Exception]
    gen: str
    message_capacity: float
    event_capacity: float
    has_on_event: bool
    source: str = attrs.field(default="", repr=False)

    @cached_property
    def graph(self) -> Graph:
        """Who may send what to whom; made when it is first asked for."""
        return graph_of(self)

    @cached_property
    def shared(self) -> frozenset[str]:
        """The inboxes that threads use: those of blocking subsystems, and those that they may send to.

        What leaves the orchestra goes through one that is called "outgoing".
        """
        blocking = {each.name for each in self.subsystems.values() if each.blocking and not each.wip}
        reached = {each.name for each in self.subsystems.values() if blocking.intersection(each.senders)}
        out = {"outgoing"} if any(self.leads_out(name) for name in blocking) else set[str]()
        return frozenset(blocking | reached | out)

    @cached_property
    def circular(self) -> frozenset[str]:
        """The subsystems that may send to themselves, over any number of others."""
        return on_cycles({name: subsystem.senders for name, subsystem in self.subsystems.items()})

    @cached_property
    def routes_to(self) -> Mapping[str, tuple[Route, ...]]:
        """The routes that lead to each inbox that gets anything; what leaves goes to "outgoing"."""
        found: dict[str, list[Route]] = {}
        for route in self.routes.values():
            for name in ("outgoing",) if route.outgoing else route.receivers:
                found.setdefault(name, []).append(route)
        return {name: tuple(routes) for name, routes in found.items()}

    def leads_out(self, sender: str) -> bool:
        """Whether a subsystem may send what leaves the orchestra."""
        sends = [class_of(sent) for sent in self.subsystems[sender].sends]
        return any(issubclass(out, kind) or issubclass(kind, out) for out in self.outgoing for kind in sends)

    def route_of(self, kind: type) -> Route | None:
        """The route of messages of exactly this class: its own, else that of the nearest of its bases."""
        for base in kind.__mro__:
            route = self.routes.get(base)
            if route is not None:
                return route
        return None

    def boxed_of(
        self, kind: type, message: Any = None, names: Mapping[str, Any] | None = None
    ) -> frozenset[str]:
        """The receivers for which messages of exactly this class travel in a box.

        A subclass with a switch of its own, or with other fields, may differ from the class it is routed as.
        `message` is the class as declared, `names` those that its annotations can use.
        """
        route = self.route_of(kind)
        if route is None:
            return frozenset()
        if route.kind is kind:
            return route.boxed
        return boxed_receivers(message or kind, route.receivers, self.subsystems, names)

    def leaves(self, kind: type) -> bool:
        """Whether messages of exactly this class go to another process."""
        route = self.route_of(kind)
        return route is not None and any(self.subsystems[name].remote for name in route.receivers)

    def opens(self, name: str) -> bool:
        """Whether what the inbox `name` receives may be in a box."""
        if name in self.subsystems and self.subsystems[name].boxed == "auto":
            return True  # a subclass may be boxed where its base is not
        return any(name in route.boxed for route in self.routes_to.get(name, ()))


def boxed_receivers(
    message: Any,
    receivers: Iterable[str],
    subsystems: Mapping[str, SubsystemPlan],
    names: Mapping[str, Any] | None = None,
) -> frozenset[str]:
    """Those of `receivers` for which a message type is boxed: its class decides, else the receiver.

    Where that leaves it to the type ("auto"), what is declared of its fields decides. For a receiver in
    another process every message is.
    """
    kind = class_of(message)
    switch = boxed_switch(kind)
    if switch is not None:
        return frozenset(name for name in receivers if switch or subsystems[name].remote)
    boxed = {name: subsystems[name].boxed for name in receivers}
    if "auto" in boxed.values() and codec_of(kind, message, names).mutable is None:
        return frozenset(name for name, boxing in boxed.items() if boxing is True)
    return frozenset(name for name, boxing in boxed.items() if boxing)
