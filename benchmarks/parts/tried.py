"""What was tried for a send that is accepted at once, beside how it is done."""

from functools import partial

from benchmarks.harness import Case, Group
from benchmarks.parts.steps import Step, step_ns

COROUTINE = "await a coroutine, as orchestra does"
FUTURE = "await a future that is done"
EXHAUSTED = "await an exhausted iterator, which cannot give True"
CLOSURES = "try_send with closures, as orchestra does"
DEFAULTS = "try_send with defaults in place of closures"
METHOD = "try_send as a method of a class"

TRIED = (
    Step(COROUTINE, "await send(message)"),
    Step(FUTURE, "await future(message)"),
    Step(EXHAUSTED, "await exhausted(message)"),
    Step(CLOSURES, "closures(message)\nqueue.popleft()"),
    Step(DEFAULTS, "defaults(message)\nqueue.popleft()"),
    Step(METHOD, "method(message)\nqueue.popleft()"),
)


def group(count: int) -> Group:
    """The ways, each measured `count` times."""
    return Group(
        name="tried",
        title="other ways to send",
        unit="ns",
        cases=[Case(step.name, partial(step_ns, step, count)) for step in TRIED],
        one_loop=True,
    )
