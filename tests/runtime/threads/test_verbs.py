"""Each verb of a blocking context: from a handler, from `run` and from the hooks, in the thread."""

import asyncio
import contextvars
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from orchestra import Closed, Missed, NoReply, Timer, UndeclaredMessage, start
from tests.runtime.players import Job, alone, until, within
from tests.runtime.threads.cast import STYLES, Acts, Awaits, Done, Lives, ToA, ToB, ToC, doer, in_thread, trio

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def here() -> str:
    return threading.current_thread().name


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("blocking", ["a", "ab"])
def test_ask_gives_the_reply(style: str, blocking: str) -> None:
    def ask(ctx: Any) -> Any:
        return ctx.ask(lambda reply: ToB(1, reply), timeout=5), here()

    assert in_thread(style, ask, blocking=blocking) == ("b", "orchestra:a")


@pytest.mark.parametrize("style", ["actor", "run"])
def test_make_is_called_in_the_loop_with_the_context_variables_of_the_thread(style: str) -> None:
    seen: list[Any] = []

    def ask(ctx: Any) -> Any:
        variable.set("mine")

        def make(reply: Any) -> Any:
            seen.append((here(), variable.get()))
            variable.set("theirs")
            return ToB(1, reply)

        ctx.ask(make)
        return variable.get()

    assert in_thread(style, ask) == "mine"
    assert seen == [("MainThread", "mine")]


@pytest.mark.parametrize("style", ["actor", "run"])
def test_an_error_of_the_receiver_comes_back_itself(style: str) -> None:
    wrong = KeyError("no")

    def ask(ctx: Any) -> Any:
        with pytest.raises(KeyError) as caught:
            ctx.ask(lambda reply: ToB(1, reply))
        return caught.value

    assert in_thread(style, ask, b=Acts(lambda ctx, message: message.reply.fail(wrong))) is wrong


@pytest.mark.parametrize("style", ["actor", "run"])
@pytest.mark.parametrize("wrong", [lambda reply: Job(), lambda reply: 1 / 0, ToB(1)])
def test_what_is_wrong_with_an_ask_is_raised_in_the_thread(style: str, wrong: Any) -> None:
    def ask(ctx: Any) -> Any:
        with pytest.raises((UndeclaredMessage, ZeroDivisionError, TypeError)):
            ctx.ask(wrong)
        return ctx.ask(lambda reply: ToB(1, reply))

    assert in_thread(style, ask) == "b"


@pytest.mark.parametrize("style", ["actor", "run"])
def test_a_limit_of_time_on_an_ask(style: str) -> None:
    kept: list[Any] = []

    def ask(ctx: Any) -> Any:
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=r"'b' did not reply to ToB within 0\.05 s"):
            ctx.ask(lambda reply: ToB(1, reply), timeout=0.05)
        return time.monotonic() - began

    assert 0.05 <= in_thread(style, ask, b=Acts(lambda ctx, message: kept.append(message))) < 5


def test_a_limit_of_time_counts_the_wait_for_room() -> None:
    go = threading.Event()
    results: list[str] = []

    def ask(ctx: Any) -> None:
        for n in range(2):
            ctx.send(ToB(n))
        with pytest.raises(TimeoutError, match=r"'b' had no room for ToB within 0\.05 s"):
            ctx.ask(lambda reply: ToB(9, reply), timeout=0.05)
        results.append("late")
        go.set()

    b = Acts(lambda ctx, message: go.wait(5))
    in_thread("run", ask, b=b, message_capacity=1)
    assert results == ["late"]
    assert 9 not in b.got


@pytest.mark.parametrize("style", ["actor", "run"])
def test_a_recipient_is_made_and_travels(style: str) -> None:
    """From a thread to the loop, and back to the thread's own inbox."""
    got: list[Any] = []
    done = Done()

    async def reply_to(ctx: Any, message: Any) -> None:
        got.append(await message.to.send(ToC(7)))

    def give(ctx: Any) -> None:
        to_c = ctx.recipient(ToC)
        assert to_c == ctx.recipient(ToC)
        with pytest.raises(UndeclaredMessage):
            ctx.recipient(Job)
        ctx.send(ToB(1, None, to_c))

    async def main() -> None:
        c = Acts()
        app = trio(doer(style, give, done), Awaits(reply_to), c, blocking="ac")
        async with start(app) as running:
            running.try_send(ToA())
            await until(lambda: c.got)
            assert (got, c.got) == ([True], [7])
            await running.stop()

    within(10, main())


@pytest.mark.parametrize("style", ["actor", "run", "started"])
def test_spawn_gives_nothing_and_does_not_wait(style: str) -> None:
    """The coroutine runs in the loop, with the context variables of the thread."""
    seen: list[Any] = []
    go = threading.Event()

    async def work() -> None:
        await asyncio.sleep(0)  # an eager task has its name only after its first step
        seen.append((here(), variable.get(), asyncio.current_task().get_name()))  # type: ignore[union-attr]
        while not go.is_set():
            await asyncio.sleep(0.001)
        seen.append("end")

    def spawn(ctx: Any) -> Any:
        variable.set("mine")
        result = ctx.spawn(work(), name="mine too")
        gc.collect()  # K09
        seen.append("spawned")
        threading.Timer(0.05, go.set).start()
        return result

    assert in_thread(style, spawn) is None
    assert sorted(map(str, seen)) == ["('MainThread', 'mine', 'mine too')", "end", "spawned"]
    assert seen[-1] == "end", "a stop lets it finish"


def test_each_thread_has_its_own_context_variables_in_the_loop() -> None:
    """Also when the loop was woken once for two of them."""
    seen: list[str] = []
    ready = threading.Barrier(3)

    async def work() -> None:
        seen.append(variable.get())

    def spawn(ctx: Any) -> None:
        variable.set(ctx.name)
        ready.wait(5)
        ctx.spawn(work())

    async def main() -> None:
        async with start(trio(Lives(spawn), Lives(spawn)), slow_handler=None) as running:
            await asyncio.sleep(0.01)
            ready.wait(5)
            time.sleep(0.05)  # noqa: ASYNC251 - the loop is busy while both leave their work
            await running.drain()

    within(10, main())
    assert sorted(seen) == ["a", "b"]


def test_a_drain_waits_for_what_a_thread_has_spawned() -> None:
    seen: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0.05)
        seen.append("end")

    async def main() -> None:
        worker = Lives(lambda ctx: (ctx.spawn(work()), list(ctx)))
        async with start(alone(worker, blocking=True)) as running:
            await running.drain()
            assert seen == ["end"]

    within(10, main())


def test_what_cannot_be_spawned_is_refused_and_closed() -> None:
    kept: list[Any] = []

    async def work() -> None: ...

    def spawn(ctx: Any) -> None:
        kept.append(ctx)
        with pytest.raises(TypeError, match="which is no coroutine"):
            ctx.spawn(work)

    in_thread("run", spawn)
    coroutine = work()
    with pytest.raises(
        RuntimeError, match=r"belongs to the thread 'orchestra:a', .*: outside it, use running"
    ):
        kept[0].spawn(coroutine)
    coroutine.close()


@pytest.mark.parametrize("style", STYLES)
def test_run_blocking_simply_calls(style: str) -> None:
    def call(ctx: Any) -> Any:
        with pytest.raises(ZeroDivisionError):
            ctx.run_blocking(lambda: 1 / 0)
        return ctx.run_blocking(lambda a, *, b: (a, b, here()), 1, b=2)

    assert in_thread(style, call) == (1, 2, "orchestra:a")


@pytest.mark.parametrize("style", ["actor", "run", "started"])
def test_send_after(style: str) -> None:
    c = Acts()
    done = Done()

    def set_them(ctx: Any) -> None:
        second = ctx.send_after(0.2, ToC(2))
        first = ctx.send_after(0.01, ToC(1))
        gone = ctx.send_after(60, ToC(3))
        assert isinstance(gone, Timer)
        assert gone.active
        assert gone.when is not None
        assert gone.cancel() is True
        assert gone.cancel() is False
        assert not gone.active
        with pytest.raises(ValueError, match="the delay is -1 s"):
            ctx.send_after(-1, ToC())
        with pytest.raises(UndeclaredMessage):
            ctx.send_after(1, Job())
        while first.active or second.active:
            time.sleep(0.001)

    async def main() -> None:
        async with start(trio(doer(style, set_them, done), c=c)) as running:
            running.try_send(ToA())
            await until(lambda: len(c.got) == 2)
            await running.stop()

    within(10, main())
    assert c.got == [1, 2]
    assert done.error is None


@pytest.mark.parametrize("style", ["actor", "run", "started"])
def test_send_every(style: str) -> None:
    """The factory is called in the loop; the ticks go on while the thread does something else."""
    c = Acts()
    done = Done()
    where: set[str] = set()

    def set_it(ctx: Any) -> None:
        def make() -> ToC:
            where.add(here())
            return ToC(len(c.got))

        timer = ctx.send_every(0.005, make, missed=Missed.COALESCE)
        while len(c.got) < 3:
            time.sleep(0.001)
        assert timer.cancel()
        assert timer.missed >= 0

    async def main() -> None:
        async with start(trio(doer(style, set_it, done), c=c), dead_letters=lambda _: None) as running:
            running.try_send(ToA())
            await until(lambda: done.over)
            count = len(c.got)
            await asyncio.sleep(0.05)
            assert len(c.got) <= count + 1, "one may have been under way"
            await running.stop()

    within(10, main())
    assert done.error is None
    assert where == {"MainThread"}


def test_a_thread_ticks_itself() -> None:
    got: list[Any] = []

    def run(ctx: Any) -> None:
        ctx.send_every(0.005, lambda: ToA(5))
        for item in ctx:
            got.append(item.n)
            if len(got) == 3:
                return

    async def main() -> None:
        async with start(trio(Lives(run)), dead_letters=lambda _: None) as running:
            await until(lambda: len(got) == 3)
            await running.stop()

    within(10, main())
    assert got == [5, 5, 5]


@pytest.mark.parametrize("how", ["set_timeout", "set_deadline"])
def test_a_deadline_passes_in_the_thread(how: str) -> None:
    passed: list[Any] = []

    def set_it(ctx: Any) -> None:
        if how == "set_timeout":
            ctx.set_timeout(0.02)
        else:
            ctx.set_deadline(time.monotonic() + 0.02)

    def pass_it(ctx: Any, deadline: float) -> None:
        passed.append((here(), time.monotonic() >= deadline))
        if len(passed) < 3:
            set_it(ctx)

    async def main() -> None:
        a = Acts(lambda ctx, message: set_it(ctx), deadline_passed=pass_it)
        async with start(trio(a)) as running:
            await running.send(ToA())
            await until(lambda: len(passed) == 3)
            await running.stop()

    within(10, main())
    assert passed == [("orchestra:a", True)] * 3


def test_a_deadline_comes_before_messages_and_may_be_taken_away() -> None:
    order: list[Any] = []
    go = threading.Event()

    def handle(ctx: Any, message: Any) -> None:
        order.append(message.n)
        if message.n == 0:
            ctx.set_timeout(0)
            go.wait(5)
        elif message.n == 1:
            ctx.set_timeout(0)
            ctx.set_timeout(None)

    async def main() -> None:
        a = Acts(handle, deadline_passed=lambda ctx, deadline: order.append("deadline"))
        async with start(trio(a)) as running:
            for n in range(3):
                await running.send(ToA(n))
            await until(lambda: order)
            await asyncio.sleep(0.02)
            go.set()
            await until(lambda: 2 in order)
            await running.drain()

    within(10, main())
    assert order == [0, "deadline", 1, 2]


def test_a_run_has_no_deadline() -> None:
    def run(ctx: Any) -> None:
        for verb in (ctx.set_timeout, ctx.set_deadline):
            with pytest.raises(TypeError, match="Lives has a run of its own"):
                verb(1.0)

    in_thread("run", run)


VERBS: dict[str, Callable[[Any], Any]] = {
    "ask": lambda ctx: ctx.ask(lambda reply: ToB(1, reply)),
    "recipient": lambda ctx: ctx.recipient(ToB),
    "send_after": lambda ctx: ctx.send_after(1, ToB()),
    "send_every": lambda ctx: ctx.send_every(1, ToB),
    "set_deadline": lambda ctx: ctx.set_deadline(None),
    "set_timeout": lambda ctx: ctx.set_timeout(None),
    "run_blocking": lambda ctx: ctx.run_blocking(here),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_refused_in_any_other_thread(verb: str) -> None:
    """C25: the event loop's own thread above all, which would wait for itself."""
    kept: list[Any] = []

    async def main() -> None:
        async with start(trio(Acts(started=kept.append))) as running:
            await until(lambda: kept)
            with pytest.raises(RuntimeError, match="'orchestra:a', and this is the thread 'MainThread'"):
                VERBS[verb](kept[0])
            with pytest.raises(RuntimeError, match=r"'orchestra:a', and this is the thread '(?!MainThread)"):
                await asyncio.to_thread(VERBS[verb], kept[0])
            await running.stop()

    within(10, main())


@pytest.mark.parametrize("verb", ["ask", "send_after", "send_every", "spawn"])
def test_a_thread_that_was_given_up_gets_closed(verb: str) -> None:
    """Its orchestra has ended; whatever it does then hangs no thread and raises what it can tell."""
    go = threading.Event()
    done = Done()

    async def work() -> None: ...

    def late(ctx: Any) -> Any:
        go.wait(20)
        with pytest.raises(Closed):
            ctx.spawn(work()) if verb == "spawn" else VERBS[verb](ctx)
        return "closed"

    async def main() -> None:
        async with start(trio(doer("run", late, done))) as running:
            await asyncio.sleep(0.02)
            with pytest.raises(Exception, match="'a'"):
                await running.stop(0.01)
        go.set()
        await until(lambda: done.over)

    within(10, main())
    assert done.result == "closed"


def test_no_reply_at_once_for_what_is_not_answered_in_a_thread() -> None:
    def ask(ctx: Any) -> Any:
        with pytest.raises(NoReply, match="dropped without an answer"):
            ctx.ask(lambda reply: ToB(1, reply), timeout=10)
        return "no reply"

    assert in_thread("run", ask, b=Acts(lambda ctx, message: None)) == "no reply"
