"""A class body becomes a `Declaration`: each field with its types, lanes, handlers and hooks."""

import collections
import inspect
import keyword
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, get_args, get_origin, overload

import attrs
import msgspec

from orchestra.box import Boxing, is_boxing
from orchestra.errors import OrchestraError
from orchestra.inspection import (
    Stated,
    check_arguments,
    check_plain,
    handlers_of,
    has_priority,
    hooks_of,
    is_coroutine,
    stated_by,
    style_of,
)
from orchestra.lanes import checked_capacity, checked_evict_after, checked_fairness, lanes_of
from orchestra.messages import as_class, class_of, members, shown, shown_all
from orchestra.mistakes import Place, Wrong, located
from orchestra.overflow import Overflow
from orchestra.plan import HandlerPlan, LanePlan, Style, Way
from orchestra.priority import Priority
from orchestra.scopes import Scope, is_class_variable, names_itself, own_annotations, scope_of
from orchestra.subsystems import Actor, Subsystem
from orchestra.supervision import Restart
from orchestra.wrapping import known_at_start

SPEC = "orchestra.subsystem"
"""The key in a field's attrs metadata under which `subsystem(...)` keeps what it was given."""

FieldMarker = type(attrs.field())

_Methods = tuple[tuple[HandlerPlan, ...], Mapping[str, bool]]
_NO_METHODS: Final[_Methods] = (), types.MappingProxyType({})

RESERVED = frozenset({"self", "NOTHING", "attr_dict", "on_event", "outgoing", "outside"})
"""Field names that a generated constructor, or the orchestra itself, uses."""


@attrs.frozen
class Spec:
    """What was given to `subsystem(...)`, unchecked."""

    consumes: Any
    sends: Any
    subscribes: Any
    boxed: Any
    blocking: Any
    wip: Any
    message_capacity: Any
    capacity_bytes: Any
    priorities: Any
    overflow: Any
    signal_capacity: Any
    evict_after: Any
    fairness: Any
    restart: Any


@attrs.frozen
class Options:
    """What was given to `@orchestra(...)`, unchecked."""

    signal: Any
    event: Any
    error: Any = OrchestraError
    gen: Any = "AllMessages"
    outgoing: Any = None
    boxed_messages: Any = False
    message_capacity: Any = 1024
    signal_capacity: Any = 64
    event_capacity: Any = 64


@attrs.frozen
class FieldDeclaration:
    """One subsystem field, checked by itself and with every default filled in.

    `annotation` is the resolved one, `kind` the class in it. `boxed` is None where the field does
    not say.
    """

    name: str
    annotation: Any
    kind: type
    style: Style
    consumes: tuple[Any, ...]
    subscribes: tuple[Any, ...]
    sends: tuple[Any, ...]
    boxed: Boxing | None
    wip: bool
    lanes: tuple[LanePlan, ...]
    signal_capacity: float
    handlers: tuple[HandlerPlan, ...]
    hooks: Mapping[str, bool]
    has_priority: bool
    evict_after: float | None
    fairness: int | None
    restart: Restart | None
    blocking: bool
    ways: Mapping[str, Way] | None


@attrs.frozen
class Declaration:
    """One orchestra class, each part checked by itself; how the parts fit together is the plan's to check."""

    cls: type
    fields: tuple[FieldDeclaration, ...]
    signals: tuple[Any, ...]
    events: tuple[Any, ...]
    outgoing: tuple[Any, ...]
    error: type[Exception]
    gen: str
    boxed_messages: Boxing
    message_capacity: float
    signal_capacity: float
    event_capacity: float
    has_on_event: bool
    place: Place | None


@overload
def subsystem(
    *,
    wip: Literal[True],
    consumes: Any = ...,
    sends: Sequence[Any] = ...,
    subscribes: Sequence[Any] = ...,
    boxed: Boxing | None = ...,
    blocking: bool = ...,
    message_capacity: float | Mapping[Priority, float] | None = ...,
    capacity_bytes: int | Mapping[Priority, int] | None = ...,
    priorities: Sequence[Priority] | None = ...,
    overflow: Overflow | Mapping[Priority, Overflow] | None = ...,
    signal_capacity: float | None = ...,
    evict_after: float | None = ...,
    fairness: int | None = ...,
    restart: Restart | None = ...,
    init: Literal[False] = False,
) -> Any: ...


@overload
def subsystem(
    *,
    consumes: Any = ...,
    sends: Sequence[Any] = ...,
    subscribes: Sequence[Any] = ...,
    boxed: Boxing | None = ...,
    blocking: bool = ...,
    wip: Literal[False] = ...,
    message_capacity: float | Mapping[Priority, float] | None = ...,
    capacity_bytes: int | Mapping[Priority, int] | None = ...,
    priorities: Sequence[Priority] | None = ...,
    overflow: Overflow | Mapping[Priority, Overflow] | None = ...,
    signal_capacity: float | None = ...,
    evict_after: float | None = ...,
    fairness: int | None = ...,
    restart: Restart | None = ...,
) -> Any: ...


def subsystem(
    *,
    consumes: Any = None,
    sends: Sequence[Any] = (),
    subscribes: Sequence[Any] = (),
    boxed: Boxing | None = None,
    blocking: bool = False,
    wip: bool = False,
    message_capacity: float | Mapping[Priority, float] | None = None,
    capacity_bytes: int | Mapping[Priority, int] | None = None,
    priorities: Sequence[Priority] | None = None,
    overflow: Overflow | Mapping[Priority, Overflow] | None = None,
    signal_capacity: float | None = None,
    evict_after: float | None = None,
    fairness: int | None = None,
    restart: Restart | None = None,
    init: bool | None = None,
) -> Any:
    """Declare a subsystem field of an orchestra class.

        counter: Counter = subsystem(consumes=Line, sends=[Count], message_capacity=256)

    `consumes` is a message type or a union: this subsystem alone receives them. `sends` lists the
    types it may send. `subscribes` lists broadcast types, of which each subscriber receives its
    own. With a `Subsystem[In, Out]` or `Actor[In, Out]` base all may be left out; given both,
    they must agree. `consumes=Never` with no `sends` declares a subsystem that lives on signals.

    `message_capacity` is the room of its inbox in messages, 1 or more, or `math.inf`: one number
    for each lane, or a mapping from `Priority`, which declares the lanes too. `priorities` lists the
    lanes. `overflow` says what a send to a full lane does, `Block()` by default: one policy,
    or a mapping from `Priority`; the policies are told in `orchestra.overflow`. `signal_capacity` is how
    many signals may wait here before a broadcast waits. `boxed` overrides the orchestra's
    `boxed_messages` for what is received here: True, False, or "auto", which boxes the types that are or
    hold, by their declared fields, something that can be changed.

    `capacity_bytes` limits each lane besides by the bytes of the boxes that wait in it: a whole number of 1
    or more, or a mapping from `Priority` for some of the lanes. It needs boxes; messages that travel by
    reference count nothing. A message whose box is larger than that can never be put, so its `send` raises
    `TooLarge` at once.

    `evict_after` limits how long this receiver may hold up its senders, in seconds: when it has taken no
    message from a full lane for that long, the blocking senders that wait there are let go: their `send`
    returns False. Further ones are then dropped at once, until it takes a message again. What is dropped
    so is counted, and it is logged once. It needs a bounded lane with `Block()` or `BlockFirst()`.
    Without it a sender waits as long as the receiver takes.

    `fairness` guards less urgent lanes against starving: after so many messages in a row from more urgent
    lanes, while a lower one has some too, one message of the lower lane that has waited longest is
    taken. Signals and control stay first. It is a whole number of 1 or more and needs two lanes. Without
    it lanes are served strictly by level, and one that starves is counted and warned of.

    `restart=Restart(...)` lets it start again when it has failed, within limits. Without it the first failure
    stops the orchestra.

    `blocking=True` runs the subsystem in a thread of its own, for work that blocks: files, databases,
    libraries that wait. Its `run`, handlers and hooks are then plain `def`, and its `ctx` is a
    `BlockingContext`, whose verbs have the same names and wait by themselves.

    `wip=True` marks a subsystem that is not written yet: it takes no constructor argument, and
    messages to it are dropped and counted. (`init` is for the type checker alone: leave it out.)

    Mistakes are reported by the decorator, as `DeclarationError`.
    """
    spec = Spec(
        consumes=consumes,
        sends=sends,
        subscribes=subscribes,
        boxed=boxed,
        blocking=blocking,
        wip=wip,
        message_capacity=message_capacity,
        capacity_bytes=capacity_bytes,
        priorities=priorities,
        overflow=overflow,
        signal_capacity=signal_capacity,
        evict_after=evict_after,
        fairness=fairness,
        restart=restart,
    )
    if wip:
        return attrs.field(default=None, init=False, metadata={SPEC: spec})
    return attrs.field(metadata={SPEC: spec})


def spec_in(value: Any) -> Spec | None:
    """What `subsystem(...)` put into a field or an attrs attribute; None where it did not make it."""
    if isinstance(value, FieldMarker | attrs.Attribute):
        found = value.metadata.get(SPEC)
        return found if isinstance(found, Spec) else None
    return None


def declare(cls: type, options: Options, scope: Scope | None = None) -> Declaration:
    """Read an orchestra class and check each part by itself. The class is left as it is.

    `scope` has the names for string annotations, by default those of the class's module. Raises
    `DeclarationError`.
    """
    scope = scope_of(cls) if scope is None else scope
    try:
        return _declared(cls, options, scope)
    except Wrong as wrong:
        raise located(cls, scope.place, wrong) from wrong.__cause__


def _declared(cls: type, options: Options, scope: Scope) -> Declaration:
    _check_class(cls)
    name = shown(cls)
    subsystems = _subsystem_fields(cls, scope)
    _check_gen(cls, options.gen)
    checked = {
        each: _at(name, checked_capacity, each, getattr(options, each))
        for each in ("message_capacity", "signal_capacity", "event_capacity")
    }
    if not is_boxing(options.boxed_messages):
        raise Wrong(f"{name}: boxed_messages is {options.boxed_messages!r}: give True, False or 'auto'")
    if not isinstance(options.error, type) or not issubclass(options.error, Exception):
        raise Wrong(f"{name}: error is {options.error!r}: give a class derived from Exception")
    return Declaration(
        cls=cls,
        fields=tuple(
            _field(cls, each, spec, annotation, scope, checked) for each, spec, annotation in subsystems
        ),
        signals=_required(name, "signal", options.signal),
        events=_required(name, "event", options.event),
        outgoing=() if options.outgoing is None else _types(name, "outgoing", options.outgoing),
        error=options.error,
        gen=options.gen,
        boxed_messages=options.boxed_messages,
        has_on_event=_has_on_event(cls),
        place=scope.place,
        **checked,
    )


def _at(where: str, function: Any, *args: Any, field: str | None = None, **keywords: Any) -> Any:
    """Call a function that knows no place; what it finds wrong is told with `where`."""
    try:
        return function(*args, **keywords)
    except Wrong as wrong:
        raise Wrong(f"{where}: {wrong.text}", *((field,) if field else ())) from wrong.__cause__


def _check_class(cls: type) -> None:
    name = shown(cls)
    if "__orchestra__" in vars(cls):
        raise Wrong(f"{name} is decorated with @orchestra twice: once is enough")
    if "__attrs_attrs__" in vars(cls) or "__dataclass_fields__" in vars(cls):
        raise Wrong(f"{name} is an attrs class or a dataclass already: leave the other decorator out")
    if isinstance(cls, msgspec.StructMeta) or issubclass(cls, tuple):
        kind = "tuple" if issubclass(cls, tuple) else "msgspec.Struct"
        raise Wrong(f"{name} is a {kind}: an orchestra is a plain class")
    if not cls.__dictoffset__:
        raise Wrong(f"{name} has __slots__, and its fields are kept in a __dict__: leave __slots__ out")


def _subsystem_fields(cls: type, scope: Scope) -> list[tuple[str, Spec, Any]]:
    """Each subsystem field, inherited ones first, in the order in which attrs collects them."""
    name = shown(cls)
    found: dict[str, tuple[str, Spec, Any]] = {}
    for base in reversed(cls.__mro__[1:-1]):
        for attribute in vars(base).get("__attrs_attrs__", ()):
            if not attribute.inherited:
                found.pop(attribute.name, None)
                spec = spec_in(attribute)
                if spec is not None:
                    found[attribute.name] = attribute.name, spec, scope_of(base).resolve(attribute.type)
        _check_undecorated(cls, base)
    annotations = own_annotations(cls)
    for each, value in vars(cls).items():
        if spec_in(value) is not None and each not in annotations:
            raise Wrong(f"{name}.{each} has no annotation: write {each}: ItsClass = subsystem(...)", each)
        if isinstance(value, FieldMarker) and each not in annotations:
            raise Wrong(f"{name}.{each} has no annotation: write {each}: ItsType = attrs.field(...)", each)
    for each, annotation in annotations.items():
        if is_class_variable(annotation):
            continue
        found.pop(each, None)
        value = vars(cls).get(each)
        spec = spec_in(value)
        _check_name(cls, each, spec)
        if spec is None:
            _check_baggage(cls, each, annotation, value, scope)
        else:
            found[each] = each, spec, annotation
    if not found:
        raise Wrong(f"{name} declares no subsystem: give it a field such as reader: Reader = subsystem(...)")
    return list(found.values())


def _check_undecorated(cls: type, base: type) -> None:
    fields = [each for each, value in vars(base).items() if spec_in(value) is not None]
    if fields:
        raise Wrong(
            f"{shown(cls)} has a base {shown(base)} whose subsystem field {fields[0]} is not collected: "
            f"decorate {shown(base)} with @orchestra or @attrs.define(slots=False)"
        )


def _check_name(cls: type, field: str, spec: Spec | None) -> None:
    where = f"{shown(cls)}.{field}"
    if field in RESERVED or (field.startswith("__") and field.endswith("__")):
        raise Wrong(f"{where}: the name {field!r} is reserved: choose another one", field)
    if spec is not None and field.startswith(f"_{cls.__name__.lstrip('_')}__"):
        raise Wrong(f"{where}: two leading underscores change the name of a field: use one", field)


def _check_baggage(cls: type, field: str, annotation: Any, value: Any, scope: Scope) -> None:
    where = f"{shown(cls)}.{field}"
    if isinstance(value, list | dict | set | bytearray | collections.deque):
        made = type(value).__name__
        raise Wrong(
            f"{where}: the default {value!r} would be one {made} for all instances: "
            "write attrs.field(factory=...)",
            field,
        )
    try:
        kind = as_class(scope.resolve(annotation))
    except Wrong:
        return
    if kind is not None and issubclass(kind, Subsystem | Actor):
        name = shown(kind)
        raise Wrong(f"{where}: {name} is a subsystem: write {field}: {name} = subsystem(...)", field)


def _check_gen(cls: type, gen: Any) -> None:
    name = shown(cls)
    if not isinstance(gen, str) or not gen.isidentifier() or keyword.iskeyword(gen):
        raise Wrong(f"{name}: gen is {gen!r}: give a name, such as 'AllMessages'")
    if gen in own_annotations(cls) or gen in vars(cls) or any(gen == each.name for each in _inherited(cls)):
        raise Wrong(f"{name}: gen is {gen!r}, and {name}.{gen} is there already: choose another name", gen)


def _inherited(cls: type) -> Sequence["attrs.Attribute[Any]"]:
    return getattr(cls, "__attrs_attrs__", ())


def _types(name: str, option: str, declared: Any) -> tuple[Any, ...]:
    found: tuple[Any, ...] = _at(f"{name}: {option}", members, declared)
    return found


def _required(name: str, option: str, declared: Any) -> tuple[Any, ...]:
    if declared is None:
        raise Wrong(f"{name}: {option} is None: give the class of its {option}s, or a union")
    found = _types(name, option, declared)
    if not found:
        raise Wrong(f"{name}: {option} is {shown(declared)}: give a class, even if it will never be used")
    return found


def _has_on_event(cls: type) -> bool:
    if inspect.getattr_static(cls, "on_event", None) is None:
        return False
    try:
        check_arguments(cls, "on_event", 2, "(self, conductor, event)")
    except Wrong as wrong:
        raise Wrong(wrong.text, "on_event") from wrong.__cause__
    if not is_coroutine(cls, "on_event"):
        raise Wrong(
            f"{shown(cls)}.on_event is not a coroutine: write async def on_event(self, conductor, event)",
            "on_event",
        )
    return True


def _field(
    cls: type, name: str, spec: Spec, annotation: Any, scope: Scope, defaults: dict[str, float]
) -> FieldDeclaration:
    where = f"{shown(cls)}.{name}"
    declared: FieldDeclaration = _at(
        where, _checked_field, name, spec, annotation, scope, defaults, field=name
    )
    return declared


def _checked_field(
    name: str, spec: Spec, annotation: Any, scope: Scope, defaults: dict[str, float]
) -> FieldDeclaration:
    resolved = _resolved(name, annotation, scope)
    kind = class_of(resolved)
    seen = scope.inside(kind)
    _check_flags(spec)
    written = not spec.wip
    late = written and known_at_start(kind)
    if written and kind is not Actor:
        style = style_of(kind, blocking=spec.blocking)
    else:
        style = _unwritten_style(kind)
    consumes, subscribes, sends = _messages(spec, stated_by(kind, get_args(resolved), seen), _base_name(kind))
    prioritized = written and has_priority(kind)
    acts = written and style is Style.ACTOR
    lanes = lanes_of(
        spec.message_capacity,
        spec.priorities,
        spec.overflow,
        defaults["message_capacity"],
        has_priority=prioritized or late or not written,
        capacity_bytes=spec.capacity_bytes,
    )
    handlers, hooks = _NO_METHODS
    if acts:
        handlers, hooks = _methods(kind, consumes + subscribes, seen, blocking=spec.blocking)
    return FieldDeclaration(
        name=name,
        annotation=resolved,
        kind=kind,
        style=style,
        consumes=consumes,
        subscribes=subscribes,
        sends=sends,
        boxed=spec.boxed,
        wip=spec.wip,
        lanes=lanes,
        signal_capacity=_signal_capacity(spec, defaults),
        handlers=handlers,
        hooks=hooks,
        has_priority=prioritized,
        evict_after=checked_evict_after(spec.evict_after, lanes),
        fairness=checked_fairness(spec.fairness, lanes),
        restart=_checked_restart(spec.restart),
        blocking=spec.blocking,
        ways=types.MappingProxyType({}) if late else None,
    )


def _methods(kind: type, receives: tuple[Any, ...], scope: Scope, *, blocking: bool) -> _Methods:
    """What is called of an Actor. A Wrapper is checked, and what is called of it is known at start."""
    if kind is Actor:
        return _NO_METHODS
    found = handlers_of(kind, receives, scope), hooks_of(kind)
    if blocking:
        check_plain(kind, *found)
    return _NO_METHODS if known_at_start(kind) else found


def _resolved(name: str, annotation: Any, scope: Scope) -> Any:
    """The subsystem class that an annotation means, subscripted or not."""
    if isinstance(annotation, FieldMarker) or names_itself(name, annotation):
        raise Wrong(
            "it is named like the class in its own annotation, where that name means the field: "
            f"name the field otherwise, such as {name.lower() if name != name.lower() else 'its_' + name}"
        )
    resolved = scope.resolve(annotation)
    while get_origin(resolved) in (Annotated, Final):
        resolved = scope.resolve(get_args(resolved)[0])
    kind = as_class(resolved)
    if kind is None or not issubclass(kind, Subsystem | Actor):
        raise Wrong(
            f"its annotation is {shown(resolved)}, and subsystem(...) needs a class derived from Subsystem "
            "or Actor"
        )
    return resolved


def _check_flags(spec: Spec) -> None:
    if spec.boxed is not None and not is_boxing(spec.boxed):
        raise Wrong(f"boxed is {spec.boxed!r}: give True, False, 'auto' or nothing")
    if not isinstance(spec.blocking, bool):
        raise Wrong(f"blocking is {spec.blocking!r}: give True or False")
    if not isinstance(spec.wip, bool):
        raise Wrong(f"wip is {spec.wip!r}: give True or False")


def _checked_restart(value: Any) -> Restart | None:
    if value is Restart:
        raise Wrong("restart is the class Restart: give a policy, Restart()")
    if value is not None and not isinstance(value, Restart):
        raise Wrong(f"restart is {value!r}: give Restart(limit=3, within=10, backoff=0.1), or leave it out")
    return value


def _unwritten_style(kind: type) -> Style:
    return Style.RUN if issubclass(kind, Subsystem) else Style.ACTOR


def _signal_capacity(spec: Spec, defaults: dict[str, float]) -> float:
    if spec.signal_capacity is None:
        return defaults["signal_capacity"]
    return checked_capacity("signal_capacity", spec.signal_capacity)


def _base_name(kind: type) -> str:
    return "Subsystem" if issubclass(kind, Subsystem) else "Actor"


def _messages(
    spec: Spec, stated: Stated, base: str
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """What a field consumes, subscribes to and sends: given, or stated by the bases, or both alike."""
    consumes = None if spec.consumes is None else _at("consumes", members, spec.consumes)
    subscribes = _listed("subscribes", spec.subscribes)
    sends = _listed("sends", spec.sends)
    said = consumes is not None or stated.receives is not None
    if consumes is None:
        consumes = tuple(message for message in stated.receives or () if message not in subscribes)
    if stated.receives is not None:
        _check_agreement("receives", consumes + subscribes, stated.receives)
    if stated.sends is not None:
        sends = sends or stated.sends
        _check_agreement("sends", sends, stated.sends)
    both = {class_of(message) for message in consumes} & {class_of(message) for message in subscribes}
    if both:
        raise Wrong(
            f"it consumes {shown_all(both)} and subscribes to it: a type is either consumed or broadcast"
        )
    if not said and not subscribes and not sends:
        raise Wrong(
            "it neither consumes nor sends anything: give consumes= or sends=, or derive its class from "
            f"{base}[In, Out]; consumes=Never is for a subsystem that lives on signals"
        )
    return consumes, subscribes, sends


def _listed(name: str, given: Any) -> tuple[Any, ...]:
    """The types in a sequence of types and unions."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        example = _example(given)
        raise Wrong(f"{name} is {_told(given)}: give a list of message types, such as {name}=[{example}]")
    found: dict[Any, None] = {}
    for each in given:
        found |= dict.fromkeys(_at(name, members, each))
    return tuple(found)


def _told(given: Any) -> str:
    return shown(given) if _example(given) != "Type" else repr(given)


def _example(given: Any) -> str:
    try:
        return shown(given) if members(given) else "Type"
    except (Wrong, TypeError):
        return "Type"


def _check_agreement(verb: str, given: tuple[Any, ...], stated: tuple[Any, ...]) -> None:
    if set(given) != set(stated):
        raise Wrong(
            f"subsystem(...) says that it {verb} {shown_all(given)}, and the base of its class says "
            f"{shown_all(stated)}: they must agree, or leave it out of subsystem(...)"
        )
