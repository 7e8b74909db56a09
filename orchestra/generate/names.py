"""How generated code calls things."""

import re

from orchestra.priority import Priority


def kind_name(kind: type) -> str:
    """A message class as it is called in generated code."""
    return re.sub(r"\W+", "_", kind.__name__)


def lane_name(receiver: str, priority: Priority) -> str:
    """A lane of a receiver, by the short name of its level where it has one."""
    short = {Priority.HIGH: "high", Priority.NORMAL: "normal"}
    return f"{receiver}_{short.get(priority, priority.name.lower())}"
