"""A message to eight subscribers: what each of them costs."""

import attrs

from benchmarks.fanout import publish_ns
from benchmarks.parts import send, wired
from benchmarks.parts.section import Section
from benchmarks.parts.steps import Step

SUBSCRIBERS = 8


def _shared(step: Step) -> Step:
    """A step that is done once for all of them."""
    return attrs.evolve(step, name=f"{step.name}: an eighth", each=step.each * SUBSCRIBERS)


def _whole(count: int) -> float:
    return publish_ns(wired.published(SUBSCRIBERS), SUBSCRIBERS, count // SUBSCRIBERS)


FANOUT = Section(
    name="fanout",
    title="a message to eight subscribers, for each of them",
    steps=[
        *map(_shared, (send.LOOP, send.MAKE, send.AWAIT, send.CLASS)),
        _shared(
            Step(
                "note whether all have taken it",
                "taken, late = True, ()\nif late:\n    pass\nawaited = taken",
            )
        ),
        *(send.ROOM, send.IDLE, send.PUT_AND_TAKE, *send.BATCHES, send.HANDLE, send.COUNT),
    ],
    together=attrs.evolve(
        send.SEND.together,
        each=send.SEND.together.each * SUBSCRIBERS,
        around=wired.to_many(SUBSCRIBERS),
    ),
    whole={"for a subscriber, whole": _whole},
)
