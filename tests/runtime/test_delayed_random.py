"""Whatever happens to delayed messages: each is handled, counted, dead-lettered or cancelled, once."""

import asyncio
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestra import Block, BlockFirst, Drop, DropOldest, Fail, orchestra, start, subsystem
from orchestra.overflow import Overflow
from tests.effort import examples
from tests.runtime.clockwork import run
from tests.runtime.players import Awaits, Bell, Calls, Job, Knock, Note, turns


class Sets(Calls):
    """Hands its context to the test."""

    def started(self, ctx: Any) -> None:
        self.ctx = ctx


class Slow(Awaits):
    """Hands its context to the test, and takes a second and a half for each message."""

    def started(self, ctx: Any) -> None:
        self.ctx = ctx

    async def handle(self, ctx: Any, message: Any) -> None:
        self.begun.append(message)
        await asyncio.sleep(1.5)
        self.got.append(message)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from([0, 0, 0.5, 1, 2, 7])),
        st.tuples(st.just("cancel"), st.integers(0, 20)),
        st.tuples(st.just("wait"), st.sampled_from([0, 0.5, 1, 3])),
        st.tuples(st.sampled_from(["finish sender", "finish slow"]), st.just(0)),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=examples(150))
@given(
    steps=STEPS,
    policy=st.sampled_from([Block(), Drop(0.7), Drop(0), DropOldest(), Fail(), BlockFirst()]),
    capacity=st.integers(1, 3),
    end=st.sampled_from(["drain", "stop", "leave", "stop at once"]),
)
def test_no_message_is_lost_or_told_twice(
    steps: list[tuple[str, float]], policy: Overflow, capacity: int, end: str
) -> None:
    @orchestra(signal=Bell, event=Knock)
    class App:
        sender: Sets = subsystem(consumes=Note, sends=[Job])
        slow: Slow = subsystem(consumes=Job, message_capacity=capacity, overflow=policy)

    async def main() -> None:
        app = App(sender=Sets(), slow=Slow())
        letters: list[Any] = []
        timers: list[Any] = []
        cancelled = 0
        async with start(app, dead_letters=letters.append) as running:
            await turns()
            for what, value in steps:
                if what == "set" and not app.sender.ctx.closed:
                    timers.append(app.sender.ctx.send_after(value, Job(len(timers) + 1)))
                elif what == "cancel" and value < len(timers):
                    cancelled += timers[int(value)].cancel()
                elif what == "wait":
                    await asyncio.sleep(value)
                elif what.startswith("finish"):
                    getattr(app, what.split()[1]).ctx.finish()
                    await turns()
            if end == "drain":
                await running.drain()
            elif end.startswith("stop"):
                await running.stop(0 if end == "stop at once" else 10)
            await turns()
        meters = running.meters()["slow"]
        fate = Counter(letter.message.n for letter in letters)
        handled = Counter(job.n for job in app.slow.got)
        assert not fate & handled
        assert max((fate | handled).values(), default=0) <= 1
        dropped = meters.dropped
        assert len(timers) == sum(fate.values()) + sum(handled.values()) + cancelled + dropped
        assert not any(timer.active for timer in timers)
        assert meters.waiting == 0
        assert {letter.reason for letter in letters} <= {"timer", "stopped", "finished", "cancelled"}

    run(main())
