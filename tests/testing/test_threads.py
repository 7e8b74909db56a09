"""Blocking subsystems under test: alone, and recorded."""

import asyncio
import threading
import time
from typing import Any, Never

import msgspec
import pytest

from orchestra import Actor, Closed, OrchestraError, Reply, Restart, Subsystem, orchestra, start, subsystem
from orchestra.runtime.threads.door import Call
from orchestra.runtime.threads.home import Home
from orchestra.testing import alone, recorded, replace
from tests.runtime.players import within


class Line(msgspec.Struct, frozen=True):
    text: str


class Count(msgspec.Struct, frozen=True):
    words: int


class Get(msgspec.Struct):
    key: str
    reply: Reply[int]


class Flush(msgspec.Struct, frozen=True):
    pass


class Reader(Subsystem[Never, Line]):
    def run(self, ctx: Any) -> None:
        for n in range(1, 4):
            ctx.send(Line("word " * n))


class Counter(Actor[Line, Count | Get]):
    """Counts words, slowly; asks for what it does not know, and tells every ten seconds."""

    def __init__(self) -> None:
        self.words = 0
        self.passed: list[float] = []
        self.go = threading.Event()

    def started(self, ctx: Any) -> None:
        ctx.send_every(10, lambda: Count(self.words))

    def handle(self, ctx: Any, message: Line) -> None:
        match message.text:
            case "?":
                self.words += ctx.ask(lambda reply: Get("words", reply), timeout=3)
            case "later":
                ctx.set_timeout(5)
            case "slow":
                time.sleep(0.1)
                self.words += 1
            case "hangs":
                self.go.wait(10)
            case "fails":
                raise ValueError("told to")
            case text:
                self.words += len(text.split())
                ctx.send(Count(len(text.split())))

    def deadline_passed(self, ctx: Any, deadline: float) -> None:
        self.passed.append(deadline)

    def on_signal(self, ctx: Any, signal: Flush) -> None:
        ctx.send(Count(-self.words))


class Store(Subsystem[Get | Count, Never]):
    def run(self, ctx: Any) -> None:
        for item in ctx:
            if isinstance(item, Get):
                item.reply.send(len(item.key))


@orchestra(signal=Flush, event=Flush, boxed_messages=True)
class App:
    reader: Reader = subsystem(blocking=True)
    counter: Counter = subsystem(blocking=True, restart=Restart(limit=1, within=60, backoff=2.0))
    store: Store = subsystem(blocking=True)


def test_settling_waits_for_the_thread() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            for n in range(1, 20):
                await probe.send(Line("word " * n))
                await probe.settle()
                assert probe.sent == [Count(each) for each in range(1, n + 1)]
            await probe.send(Line("slow"))
            await probe.settle()
            assert probe.instance.words == sum(range(1, 20)) + 1
            probe.signal(Flush())
            await probe.settle()
            assert probe.sent[-1] == Count(-191)
            assert probe.log[0].receiver == "store"

    within(15, main())


def test_a_thread_that_is_about_to_use_the_loop_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Home._begin

    def slowly(home: Home, call: Call) -> None:
        begin(home, call)
        time.sleep(0.05)

    monkeypatch.setattr(Home, "_begin", slowly)

    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            assert probe.clock.wait == 10, "it has started"

    within(15, main())


def test_a_thread_that_hangs_is_waited_for_no_longer_than_a_second() -> None:
    async def main() -> None:
        counter = Counter()
        async with alone(App, "counter", counter) as probe:
            await probe.send(Line("hangs"))
            began = time.monotonic()
            await probe.settle()
            assert 0.9 < time.monotonic() - began < 4
            counter.go.set()
            await probe.send(Line("one"))
            assert await probe.expect(Count) == Count(1)

    within(15, main())


def test_its_time_is_that_of_the_probe() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            await probe.send(Line("two words"))
            await probe.advance(9.9)
            assert probe.sent == [Count(2)]
            await probe.advance(0.1)
            assert probe.sent == [Count(2), Count(2)]
            await probe.advance(3600)
            assert len(probe.sent) == 362
            await probe.send(Line("later"))
            await probe.advance(4.9)
            assert probe.instance.passed == []
            await probe.advance(0.1)
            assert probe.instance.passed == [pytest.approx(3615)]

    within(30, main())


def test_the_test_answers_what_the_thread_asks() -> None:
    """While it waits for the answer it counts as at rest."""

    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            await probe.send(Line("?"))
            began = time.monotonic()
            await probe.settle()
            assert time.monotonic() - began < 0.9
            asked = await probe.expect(Get)
            assert asked.reply.send(7) is True
            await probe.settle()
            assert probe.instance.words == 7

    within(15, main())


def test_a_limit_of_time_and_a_backoff_pass_when_the_test_says_so() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            await probe.send(Line("?"))
            await probe.settle()
            asked = await probe.expect(Get)
            await probe.advance(2.9)
            assert not asked.reply.done
            await probe.advance(0.1)
            assert asked.reply.done
            assert [letter.reason for letter in probe.letters] == ["failed"]
            await probe.send(Line("one"))
            await probe.advance(1.9)
            assert Count(1) not in probe.sent
            await probe.advance(0.1)
            assert await probe.expect(Count) == Count(1)
            await probe.send(Line("fails"))
            with pytest.raises(OrchestraError, match="ValueError: told to"):
                await probe.wait()

    within(15, main())


def test_a_run_alone_receives_and_is_asked() -> None:
    async def main() -> None:
        async with alone(App, "store", Store()) as probe:
            await probe.send(Count(1))
            assert await probe.ask(lambda reply: Get("four", reply)) == 4
            await probe.settle()
            assert probe.meters.received == 2
            await probe.drain()
        async with alone(App, "reader", Reader()) as probe:
            await probe.wait()
            await probe.settle()
            assert [each.text.count("word") for each in probe.sent] == [1, 2, 3]

    within(15, main())


def test_expecting_wakes_for_what_a_thread_sends() -> None:
    async def main() -> None:
        async with alone(App, "counter", Counter()) as probe:
            asyncio.get_running_loop().set_debug(True)  # it tells of what is not thread-safe
            expecting = asyncio.ensure_future(probe.expect(Count))
            await asyncio.sleep(0.01)
            await probe.send(Line("one two three"))
            assert await expecting == Count(3)

    within(15, main())


def test_recorded_runs_and_actors_in_threads() -> None:
    async def main() -> None:
        app = App(reader=Reader(), counter=Counter(), store=Store())
        reader, counter, store = recorded(Reader()), recorded(Counter()), recorded(Store())
        async with start(replace(app, reader=reader, counter=counter, store=store)) as running:
            await running.send(Line("?"))
            await running.drain()
        assert [line.text.count("word") for line in reader.sent] == [1, 2, 3]
        assert sorted(line.text.count("word") for line in counter.received) == [0, 1, 2, 3]
        assert counter.hooks == ["started", "stopped"]
        assert len(store.received) == 4
        assert counter.inner.words == 11

    within(15, main())


def test_a_recorded_run_in_a_thread_has_every_way_to_receive() -> None:
    class Receives(Subsystem[Line, Never]):
        def run(self, ctx: Any) -> None:
            assert ctx.recv() == Line("one")
            assert ctx.recv_signal() == Flush()
            while ctx.try_recv() is None:
                time.sleep(0.001)
            list(ctx)
            with pytest.raises(Closed):
                ctx.recv()

    @orchestra(signal=Flush, event=Flush)
    class Alone:
        worker: Receives = subsystem(blocking=True)

    async def main() -> None:
        worker = recorded(Receives())
        async with start(Alone(worker=worker)) as running:
            await running.send(Line("one"))
            while not worker.received:
                await asyncio.sleep(0.001)
            await running.broadcast(Flush())
            await running.send(Line("two"))
            await running.send(Line("three"))
            await running.drain()
        assert worker.received == [Line("one"), Flush(), Line("two"), Line("three")]

    within(15, main())
