"""Orchestras with boxed lanes."""

from typing import Any, Never

from orchestra import orchestra, start, subsystem
from tests.runtime.players import Bell, Calls, Collects, Knock, within


def boxing(kind: Any, sink: Any, **options: Any) -> Any:
    """An orchestra of one subsystem, `sink`, to which `kind` travels in a box."""
    sink_kind = type(sink)

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class Boxing:
        sink: sink_kind = subsystem(consumes=kind, **options)  # type: ignore[valid-type]  # known at run time

    return Boxing(sink=sink)


def deliver(kind: Any, *messages: Any, sink: Any = None, **options: Any) -> list[Any]:
    """What a receiver of `kind` gets when these messages are sent to it; raises what a send raises."""
    sink = Calls() if sink is None else sink

    async def main() -> None:
        async with start(boxing(kind, sink, **options)) as running:
            for message in messages:
                await running.send(message)
            await running.drain()

    within(20, main())
    got: list[Any] = sink.got
    return got


def fan(kind: Any, *, first: Any = None, second: Any = None, third: Any = None) -> Any:
    """An orchestra that sends `kind` to two receivers in a box, and to a third as it is."""

    @orchestra(signal=Bell, event=Knock, boxed_messages=True)
    class Fan:
        first: Calls = subsystem(consumes=Never, subscribes=[kind])
        second: Collects = subsystem(consumes=Never, subscribes=[kind])
        third: Calls = subsystem(consumes=Never, subscribes=[kind], boxed=False)

    return Fan(first=first or Calls(), second=second or Collects(), third=third or Calls())
