"""`@orchestra`: declare, plan, generate, and attach the result to the very class that was given."""

import enum
import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never, TypeVar, Union, dataclass_transform

import attrs

from orchestra.box import Boxing
from orchestra.declaration import Declaration, Options, declare, spec_in, subsystem
from orchestra.errors import DeclarationError, OrchestraError
from orchestra.generate.wiring import Wiring, generate
from orchestra.messages import shown
from orchestra.mistakes import Place, Wrong, located
from orchestra.plan import Plan
from orchestra.planning import make_plan
from orchestra.scopes import scope_of

__all__ = ["orchestra", "plan_of"]

C = TypeVar("C", bound=type)


@dataclass_transform(kw_only_default=True, field_specifiers=(subsystem, attrs.field))
def orchestra(
    *,
    signal: Any,
    event: Any,
    error: type[Exception] = OrchestraError,
    gen: str = "AllMessages",
    outgoing: Any = None,
    boxed_messages: Boxing = False,
    message_capacity: float = 1024,
    signal_capacity: float = 64,
    event_capacity: float = 64,
) -> Callable[[C], C]:
    """Make a class an orchestra: its `subsystem(...)` fields are wired to each other.

        @orchestra(signal=Conclude, event=Arrived)
        class App:
            adder: Adder = subsystem(consumes=Numbers, sends=[Total])
            ledger: Ledger = subsystem(consumes=Total, message_capacity=2)
            title: str = "sums"

            async def on_event(self, conductor: Conductor[Conclude], event: Arrived) -> None:
                await conductor.send(Numbers(event.items))

    `signal` and `event` are classes or unions. `on_event` turns an event from outside into signals
    and messages; without it the orchestra takes no events. `outgoing` names the types that come
    out at `running.outgoing`. `error` is what a failure is raised as. `boxed_messages` packs every
    message that waits, where neither its class nor its receiver says otherwise; "auto" packs those that
    are or hold something that can be changed, by their declared types.

    `message_capacity` (messages for each lane) and `signal_capacity` (signals for each subsystem)
    are the defaults of the fields; `event_capacity` is how many events may wait. Each is
    a whole number of 1 or more, or `math.inf`.

    The class stays the same object. It gets a keyword-only `__init__` and a `__repr__` made by attrs
    (its own are kept; an own `__init__` may call `self.__attrs_init__`), the union of its messages
    under the name `gen`, and its plan, see `plan_of`. Other fields behave as in attrs. A subclass
    inherits the fields, and needs a decorator of its own to add any.

    Every mistake raises `DeclarationError`.
    """
    options = Options(
        signal=signal,
        event=event,
        error=error,
        gen=gen,
        outgoing=outgoing,
        boxed_messages=boxed_messages,
        message_capacity=message_capacity,
        signal_capacity=signal_capacity,
        event_capacity=event_capacity,
    )

    def decorate(cls: C) -> C:
        frame = sys._getframe(1)
        place = Place(frame.f_code.co_filename, frame.f_lineno)
        _check_target(cls, place)
        scope = scope_of(cls, frame, place)
        declaration = declare(cls, options, scope)
        plan = make_plan(declaration, scope.names)
        _attach(cls, declaration, plan, generate(plan, scope.names))
        return cls

    return decorate


def _by_name(decorator: Callable[..., Callable[[C], C]]) -> Callable[..., Callable[[C], C]]:
    """The decorator, which tells what to write where it is given a class, or anything else, by position."""

    @functools.wraps(decorator)
    def checked(*given: Any, **options: Any) -> Callable[[C], C]:
        if given:
            raise DeclarationError(
                f"@orchestra ({shown(given[0])}) needs its options by name: "
                "write @orchestra(signal=..., event=...)"
            )
        return decorator(**options)

    return checked


if not TYPE_CHECKING:  # which would lose the dataclass_transform
    orchestra = _by_name(orchestra)


def plan_of(app: type) -> Plan:
    """The plan of an orchestra class: its subsystems, messages, routes and generated source.

    Raises `DeclarationError` for a class without `@orchestra`.
    """
    if not is_orchestra(app):
        raise DeclarationError(
            f"{shown(app)} is no orchestra: plan_of takes a class with @orchestra(signal=..., event=...)"
        )
    plan: Plan = app.__orchestra__  # type: ignore[attr-defined]  # put there by the decorator
    _check_subclass(app, plan)
    return plan


def is_orchestra(app: type) -> bool:
    """Whether a class, or one that it derives from, has been decorated."""
    return isinstance(getattr(app, "__orchestra__", None), Plan)


def _check_target(cls: Any, place: Place) -> None:
    if not isinstance(cls, type):
        raise located(cls, place, Wrong(f"@orchestra decorates a class, and {shown(cls)} is none"))
    if issubclass(cls, enum.Enum):
        raise located(cls, place, Wrong(f"{shown(cls)} is an enum, and @orchestra needs a plain class"))


def _attach(cls: Any, declaration: Declaration, plan: Plan, wiring: Wiring) -> None:
    kinds = {field.name: field.annotation for field in declaration.fields}

    def as_declared(_: type, fields: list["attrs.Attribute[Any]"]) -> list["attrs.Attribute[Any]"]:
        return [_as_declared(field, kinds) for field in fields]

    attrs.define(cls, slots=False, eq=False, kw_only=True, field_transformer=as_declared)
    cls.__init__ = _refusing(cls.__init__, cls, plan)
    cls.__orchestra__ = attrs.evolve(plan, source=wiring.source)
    cls.__orchestra_wiring__ = wiring
    setattr(cls, plan.gen, Union[plan.messages] if plan.messages else Never)  # noqa: UP007 - the members are known at run time only


def _as_declared(field: "attrs.Attribute[Any]", kinds: dict[str, Any]) -> "attrs.Attribute[Any]":
    """A field with its resolved type, and its own name, underscores too, in the constructor."""
    implied = getattr(field, "alias_is_default", field.alias in (None, field.name.lstrip("_")))
    return field.evolve(
        alias=field.name if implied else field.alias,
        type=kinds.get(field.name, field.type),
    )


def _refusing(init: Callable[..., None], cls: type, plan: Plan) -> Callable[..., None]:
    """A constructor that refuses an undecorated subclass whose additions would be left out."""

    @functools.wraps(init)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is not cls:
            _check_subclass(type(self), plan)
        init(self, *args, **kwargs)

    return construct


def _check_subclass(kind: type, plan: Plan) -> None:
    """Refuse a subclass that adds to a plan and has none of its own."""
    for owner in kind.__mro__:
        if owner is plan.cls or "__orchestra__" in vars(owner):
            return
        for name, value in vars(owner).items():
            if spec_in(value) is not None or (name == "on_event" and not plan.has_on_event):
                what = "on_event" if name == "on_event" else f"the subsystem {name}"
                raise located(
                    owner,
                    None,
                    Wrong(
                        f"{shown(owner)} adds {what} to {shown(plan.cls)} and is not decorated: "
                        f"put @orchestra(...) on {shown(owner)} too",
                        name,
                    ),
                )
