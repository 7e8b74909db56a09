"""An orchestra with other subsystems in some of its fields."""

import copy
from typing import Any, TypeVar

import attrs

from orchestra.decorator import plan_of
from orchestra.fitting import wiring_for
from orchestra.messages import shown
from orchestra.subsystems import Actor, Subsystem
from orchestra.supervision import Deferred

App = TypeVar("App")


def replace(app: App, /, **subsystems: Any) -> App:
    """A copy of an orchestra instance with other subsystems: `replace(app, counter=FakeCounter())`.

    Each stands where the named field's own one stood, with that field's messages, lanes and policies. It may
    be of any class: an Actor for an Actor, a Subsystem for a Subsystem, or what `deferred(...)` makes.
    Baggage may be replaced too. The rest is shared with `app`, which stays as it is; so let only one of them
    run at a time.

    Raises TypeError for a name that is no field, and for what is no subsystem that may stand there;
    `DeclarationError` for a subsystem that lacks what its field needs.
    """
    if isinstance(app, type):
        raise TypeError(f"replace takes an instance: replace({shown(app)}(...), ...), not the class")
    kind: Any = type(app)
    plan = plan_of(kind)
    fields = [field.name for field in attrs.fields(kind) if field.init]
    for name, given in subsystems.items():
        if name in plan.subsystems and plan.subsystems[name].wip:
            raise TypeError(f"{plan.name}.{name} is declared with wip=True: there is nothing to replace")
        if name not in fields:
            raise TypeError(f"{plan.name} has no field {name!r} to replace; it has {', '.join(fields)}")
        if name in plan.subsystems and not isinstance(given, Subsystem | Actor | Deferred):
            raise TypeError(f"{plan.name}.{name} needs an instance of Subsystem or Actor, not {shown(given)}")
    wiring_for(
        kind,
        {
            name: given
            for name, given in subsystems.items()
            if name in plan.subsystems and not isinstance(given, Deferred)
        },
    )
    other = copy.copy(app)
    for name, given in subsystems.items():
        setattr(other, name, given)
    return other
