"""An orchestra with other subsystems in some of its fields."""

from typing import Any, TypeVar

import attrs

from orchestra.decorator import plan_of
from orchestra.messages import shown
from orchestra.subsystems import Actor, Subsystem

App = TypeVar("App")


def replace(app: App, /, **subsystems: Any) -> App:
    """A copy of an orchestra instance with other subsystems: `replace(app, counter=FakeCounter())`.

    Each stands where the named field's own one stood, with that field's messages, lanes and policies, and
    may be any Subsystem or Actor. Baggage may be replaced too. The rest is shared with `app`, which stays
    as it is. Raises TypeError for a name that is no field, and for what is no subsystem.
    """
    plan = plan_of(type(app))
    kind: Any = type(app)
    fields = [field.name for field in attrs.fields(kind) if field.init]
    for name, given in subsystems.items():
        if name not in fields:
            raise TypeError(f"{plan.name} has no field {name!r} to replace; it has {', '.join(fields)}")
        if name in plan.subsystems and not isinstance(given, Subsystem | Actor):
            raise TypeError(f"{plan.name}.{name} needs an instance of Subsystem or Actor, not {shown(given)}")
    values = {name: subsystems.get(name, getattr(app, name)) for name in fields}
    return kind(**values)  # type: ignore[no-any-return]  # it is the class of app
