"""The model of the phases, the page that shows it, and the runtime held against it."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Never

import attrs
import msgspec
import pytest

from orchestra import (
    Closed,
    NoReply,
    OrchestraError,
    Reply,
    Restart,
    Running,
    Subsystem,
    orchestra,
    start,
    subsystem,
)
from orchestra.runtime.lifecycle import (
    TABLE,
    TRANSITIONS,
    Action,
    Outcome,
    Phase,
    may_follow,
    outcome,
)
from tests.runtime.players import Bell, Job, Knock, Note, turns, until, within

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"


# the model itself


def test_the_model_answers_for_every_phase_and_action() -> None:
    assert set(TABLE) == set(Action)
    for action in Action:
        assert [outcome(phase, action) for phase in Phase] == list(TABLE[action])


def test_the_table_is_immutable() -> None:
    with pytest.raises(TypeError):
        TABLE[Action.SEND] = TABLE[Action.RECV]  # type: ignore[index]


def test_phases_only_ever_go_on() -> None:
    order = list(Phase)
    for phase, following in TRANSITIONS.items():
        assert all(order.index(each) > order.index(phase) for each in following)
        assert not may_follow(phase, phase)
    assert not TRANSITIONS[Phase.ENDED]


def test_nothing_is_accepted_for_good_once_it_stops() -> None:
    for action in Action:
        for phase in (Phase.STOPPING, Phase.ENDED):
            assert outcome(phase, action) not in {Outcome.ACCEPTED, Outcome.HANDLED, Outcome.LET_IN}


def test_what_is_closed_stays_closed() -> None:
    for row in TABLE.values():
        if Outcome.CLOSED in row:
            assert set(row[row.index(Outcome.CLOSED) :]) <= {Outcome.CLOSED, Outcome.NOTHING}


def test_the_page_shows_the_table_of_the_model() -> None:
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 1 + len(Phase):
            rows[cells[0]] = cells[1:]
    header = ["open", "draining", "stopping", "ended"]
    assert rows.pop("what") == header == [phase.value for phase in Phase]
    rows = {name: cells for name, cells in rows.items() if not re.fullmatch("[-:]+", name)}
    assert rows == {action.value: [cell.value for cell in TABLE[action]] for action in Action}
    assert list(rows) == [action.value for action in Action]


# the runtime


class Probe(Subsystem):
    """Hands its context to the test, and runs until the gate is open."""

    def __init__(self) -> None:
        self.ctx: Any = None
        self.gate = asyncio.Event()

    async def run(self, ctx: Any) -> None:
        self.ctx = ctx
        await self.gate.wait()


class Question(msgspec.Struct):
    n: int
    reply: Reply[int]


class Target(Probe):
    """Gets jobs and questions, which nobody but the test takes."""


class Phoenix(Probe):
    """Fails once, when the test says so, and starts again if it may."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = False
        self.lives = 0

    async def run(self, ctx: Any) -> None:
        self.lives += 1
        await super().run(ctx)
        if self.fails and self.lives == 1:
            raise ValueError("ashes")


@orchestra(signal=Bell, event=Knock, outgoing=Note, event_capacity=2)
class Stage:
    target: Target = subsystem(consumes=Job | Question, message_capacity=2)
    probe: Probe = subsystem(sends=[Job, Note, Question])
    phoenix: Phoenix = subsystem(consumes=Never, restart=Restart(backoff=0.001))

    conductor: Any = None
    gate: Any = None
    handled: Any = attrs.Factory(list)

    async def on_event(self, conductor: Any, event: Knock) -> None:
        self.conductor = conductor
        self.handled.append(event)
        await self.gate.wait()


@attrs.frozen
class Scene:
    """A running orchestra in some phase, whose handlers all wait for `release`."""

    app: Stage
    running: Running
    letters: list[Any]
    tasks: list[Any]

    def release(self) -> None:
        app = self.app
        for gate in (app.gate, app.probe.gate, app.target.gate, app.phoenix.gate):
            gate.set()


class Waits(Exception):
    """The call did not return at once."""


async def at_once(call: Awaitable[Any]) -> Any:
    """The result of a call that does not wait; `Waits` if it does."""
    task = asyncio.ensure_future(call)
    await turns()
    if not task.done():
        task.cancel()
        await turns()
        raise Waits
    return task.result()


async def reach(phase: Phase, running: Running, scene: Scene) -> None:
    if phase is Phase.DRAINING:
        scene.tasks.append(asyncio.ensure_future(running.drain()))
    elif phase is Phase.STOPPING:
        scene.tasks.append(asyncio.ensure_future(running.stop(60)))
    elif phase is Phase.ENDED:
        scene.release()
        await running.stop()
    await turns()


async def staged(
    phase: Phase, scenario: Callable[[Scene, Callable[[], Awaitable[None]]], Awaitable[Any]]
) -> Any:
    """Give a scenario a running orchestra and the function that brings it into the phase."""
    app = Stage(target=Target(), probe=Probe(), phoenix=Phoenix(), gate=asyncio.Event())
    letters: list[Any] = []
    async with start(app, dead_letters=letters.append) as running:
        scene = Scene(app, running, letters, [])
        await running.event(Knock())
        await until(lambda: app.conductor is not None and app.probe.ctx is not None)
        try:
            return await scenario(scene, lambda: reach(phase, running, scene))
        finally:
            scene.release()
            for task in scene.tasks:
                await task


async def sends(scene: Scene, send: Callable[[Any], Awaitable[Any]]) -> Outcome:
    """How sends fare: two for which there is room, and one for which there is none."""
    before = len(scene.letters)
    try:
        assert await at_once(send(Job(1))) is True
    except Closed as closed:
        assert closed.message == Job(1)
        return Outcome.CLOSED
    late = len(scene.letters) > before
    if late:
        assert (scene.letters[-1].message, scene.letters[-1].subsystem) == (Job(1), "target")
    assert await at_once(send(Job(2))) is True
    try:
        await at_once(send(Job(3)))
    except Waits:
        assert not late
        return Outcome.ACCEPTED
    except Closed as closed:
        assert late
        assert closed.message == Job(3)
        return Outcome.ACCEPTED_LATE
    raise AssertionError("the lane has room for two")


async def try_send_in(scene: Scene, move: Any) -> Outcome:
    await move()
    return await sends(scene, scene.app.probe.ctx.send)


async def try_conductor_send(scene: Scene, move: Any) -> Outcome:
    await move()
    return await sends(scene, scene.app.conductor.send)


async def try_outside_send(scene: Scene, move: Any) -> Outcome:
    await move()
    return await sends(scene, scene.running.send)


async def try_waiting_send(scene: Scene, move: Any) -> Outcome:
    running, target = scene.running, scene.app.target
    for n in range(2):
        running.try_send(Job(n))
    waiting = [
        asyncio.ensure_future(running.send(Job(5))),
        asyncio.ensure_future(scene.app.probe.ctx.send(Job(6))),
    ]
    await turns()
    await move()
    if scene.running.meters()["target"].waiting == 2:
        assert [await target.ctx.recv() for _ in range(4)] == [Job(0), Job(1), Job(5), Job(6)]
        assert await asyncio.gather(*waiting) == [True, True]
        return Outcome.LET_IN
    for task, job in zip(waiting, (Job(5), Job(6)), strict=True):
        with pytest.raises(Closed) as closed:
            await task
        assert closed.value.message == job
    assert not {Job(5), Job(6)} & {letter.message for letter in scene.letters}
    return Outcome.CLOSED


async def receives(recv: Callable[[], Awaitable[Any]], first: Any, end: Callable[[], None]) -> Outcome:
    """How a receive fares where `first` was put before; `end` lets everybody finish who may send."""
    try:
        got = await at_once(recv())
    except Closed as closed:
        assert closed.message is None
        return Outcome.CLOSED
    assert got == first
    waiting = asyncio.ensure_future(recv())
    await turns()
    if waiting.done():
        assert isinstance(waiting.exception(), Closed)
        return Outcome.LEFT_THEN_CLOSED
    end()
    await turns(50)
    if waiting.done():
        assert isinstance(waiting.exception(), Closed)
        return Outcome.TAKEN_TO_THE_END
    waiting.cancel()
    return Outcome.TAKEN


async def try_recv(scene: Scene, move: Any) -> Outcome:
    await scene.running.send(Job(7))
    await move()

    def end() -> None:
        scene.app.gate.set()
        scene.app.probe.gate.set()

    return await receives(scene.app.target.ctx.recv, Job(7), end)


async def try_recv_signal(scene: Scene, move: Any) -> Outcome:
    await scene.running.broadcast(Bell(3))
    await move()
    return await receives(scene.app.target.ctx.recv_signal, Bell(3), scene.app.gate.set)


async def try_outgoing(scene: Scene, move: Any) -> Outcome:
    await scene.app.probe.ctx.send(Note(4))
    await move()
    return await receives(scene.running.outgoing.recv, Note(4), scene.release)


async def try_broadcast(scene: Scene, broadcast: Callable[[Bell], Awaitable[None]]) -> Outcome:
    try:
        await at_once(broadcast(Bell(9)))
    except Closed:
        return Outcome.CLOSED
    assert await at_once(scene.app.target.ctx.recv_signal()) == Bell(9)
    assert await at_once(scene.app.probe.ctx.recv_signal()) == Bell(9)
    return Outcome.ACCEPTED


async def try_conductor_broadcast(scene: Scene, move: Any) -> Outcome:
    await move()
    return await try_broadcast(scene, scene.app.conductor.broadcast)


async def try_outside_broadcast(scene: Scene, move: Any) -> Outcome:
    await move()
    return await try_broadcast(scene, scene.running.broadcast)


async def try_event(scene: Scene, move: Any) -> Outcome:
    await move()
    try:
        for n in range(1, 3):
            await at_once(scene.running.event(Knock(n)))
    except Closed as closed:
        assert closed.message == Knock(1)
        return Outcome.CLOSED
    with pytest.raises(Waits):
        await at_once(scene.running.event(Knock(3)))
    return Outcome.ACCEPTED


async def try_queued_event(scene: Scene, move: Any) -> Outcome:
    await scene.running.event(Knock(8))
    await move()
    scene.app.gate.set()
    await turns(50)
    if Knock(8) in scene.app.handled:
        assert not scene.letters
        return Outcome.HANDLED
    assert [(each.message, each.subsystem) for each in scene.letters] == [(Knock(8), "on_event")]
    return Outcome.DEAD_LETTER


async def try_handler(scene: Scene, move: Any) -> Outcome:
    await move()
    if not scene.tasks:
        return Outcome.RUNS
    scene.app.gate.set()
    await turns()
    assert not scene.tasks[0].done(), "two handlers run still"
    if "draining" in repr(scene.running):
        scene.release()
        await scene.tasks[0]
        return Outcome.AWAITED
    await scene.running.stop(0)
    return Outcome.WITHIN_THE_LIMIT


def calls(name: str) -> Callable[[Scene, Any], Awaitable[Outcome]]:
    """A scenario for one of the calls that wait for the end."""

    async def scenario(scene: Scene, move: Any) -> Outcome:
        await move()
        phase = repr(scene.running).split()[-1]
        task = asyncio.ensure_future(getattr(scene.running, name)())
        await turns()
        if task.done():
            return Outcome.RETURNS
        changed = phase != repr(scene.running).split()[-1]
        if not changed and name == "stop":
            shorter = asyncio.ensure_future(scene.running.stop(0.01))
            await asyncio.wait([task, shorter])
            return Outcome.SHORTENS
        if changed:
            scene.release()
            await task
            return Outcome.BEGINS
        task.cancel()
        return Outcome.WAITS

    return scenario


async def try_start(scene: Scene, move: Any) -> Outcome:
    await move()
    try:
        async with start(scene.app):
            return Outcome.STARTS
    except RuntimeError as refused:
        assert "runs already" in str(refused)
        return Outcome.REFUSED


async def try_set_timer(scene: Scene, move: Any) -> Outcome:
    await move()
    ctx = scene.app.probe.ctx
    try:
        timer = ctx.send_after(60, Job(1))
        every = ctx.send_every(60, lambda: Job(2))
    except Closed as closed:
        assert closed.message == Job(1)
        with pytest.raises(Closed):
            ctx.send_every(60, lambda: Job(2))
        return Outcome.CLOSED
    assert timer.active is every.active
    if timer.active:
        assert not scene.letters
        return Outcome.SET
    told = [(each.message, each.subsystem, each.reason) for each in scene.letters]
    assert told == [(Job(1), "target", "timer")]
    return Outcome.CANCELLED


async def try_timer(scene: Scene, move: Any) -> Outcome:
    ctx, target = scene.app.probe.ctx, scene.app.target.ctx
    timers = [ctx.send_after(0.02, Job(n)) for n in range(3)]
    await move()
    active = [timer.active for timer in timers]
    await asyncio.sleep(0.06)
    if any(active):
        assert not scene.letters
        assert scene.running.meters()["target"].waiting == 1
        assert [await target.recv() for _ in range(3)] == [Job(0), Job(1), Job(2)]
        return Outcome.ACCEPTED
    told = [(each.message, each.subsystem, each.reason) for each in scene.letters]
    assert told == [(Job(n), "target", "timer") for n in range(3)]
    assert target.closed or target.try_recv() is None
    return Outcome.CANCELLED


async def try_restart(scene: Scene, move: Any) -> Outcome:
    await move()
    phoenix = scene.app.phoenix
    phoenix.fails = True
    scene.release()
    await asyncio.gather(*scene.tasks, return_exceptions=True)
    scene.tasks.clear()
    if "ended" not in repr(scene.running):
        await until(lambda: phoenix.lives == 2)
    try:
        await scene.running.stop()
        await scene.running.wait()
    except OrchestraError as error:
        assert "ashes" in str(error)
        assert phoenix.lives == 1
        return Outcome.STAYS_DOWN
    assert phoenix.lives == 2
    return Outcome.STARTS_AGAIN


async def try_spawn(scene: Scene, move: Any) -> Outcome:
    await move()
    gate = asyncio.Event()
    try:
        task = scene.app.probe.ctx.spawn(gate.wait())
    except Closed as closed:
        assert closed.message is None
        return Outcome.CLOSED
    await turns()
    assert not task.done()
    if not scene.tasks:
        gate.set()
        return Outcome.RUNS
    scene.release()
    await turns(50)
    assert not scene.tasks[0].done(), "the task runs still"
    if "draining" in repr(scene.running):
        gate.set()
        await scene.tasks[0]
        assert task.result() is True
        return Outcome.AWAITED
    await scene.running.stop(0)
    assert task.cancelled()
    return Outcome.WITHIN_THE_LIMIT


async def try_run_blocking(scene: Scene, move: Any) -> Outcome:
    go = threading.Event()
    ctx = scene.app.probe.ctx
    call = asyncio.ensure_future(ctx.run_blocking(go.wait, 30))
    try:
        moving = asyncio.ensure_future(move())
        await turns(50)
        if not moving.done():  # it waits for the function
            go.set()
            await moving
            with pytest.raises(Closed):
                await ctx.run_blocking(go.wait, 30)
            return Outcome.CLOSED
        if not scene.tasks:
            return Outcome.RUNS
        scene.release()
        await turns(50)
        assert not scene.tasks[0].done(), "a function runs still"
        if "draining" in repr(scene.running):
            go.set()
            await scene.tasks[0]
            return Outcome.AWAITED
        call.cancel()
        ends = await asyncio.gather(scene.tasks.pop(), scene.running.stop(0), return_exceptions=True)
        assert all("thread orchestra:pool-1" in str(end) for end in ends)
        return Outcome.LEFT_BEHIND
    finally:
        go.set()


async def try_recipient(scene: Scene, move: Any) -> Outcome:
    recipient = scene.app.probe.ctx.recipient(Job)
    await move()
    return await sends(scene, recipient.send)


def question(n: int) -> Callable[[Reply[int]], Question]:
    return lambda reply: Question(n, reply)


async def asks(scene: Scene, ask: Callable[[Any], Awaitable[Any]]) -> Outcome:
    """How asks fare: two for which there is room, and one for which there is none."""
    asked = [asyncio.ensure_future(ask(question(n))) for n in range(3)]
    await turns()
    if not asked[0].done():
        for n in range(3):
            (await scene.app.target.ctx.recv()).reply.send(n)
        assert await asyncio.gather(*asked) == [0, 1, 2]
        return Outcome.ACCEPTED
    errors = [type(asking.exception()) for asking in asked]
    if errors == [Closed] * 3:
        return Outcome.CLOSED
    assert errors == [NoReply, NoReply, Closed]
    assert [letter.message.n for letter in scene.letters] == [0, 1]
    return Outcome.NO_REPLY


async def try_ask(scene: Scene, move: Any) -> Outcome:
    probe = scene.app.probe.ctx
    by_recipient = probe.recipient(Question).ask
    await move()
    first = await asks(scene, probe.ask)
    if first is not Outcome.NO_REPLY:  # there the room is used up
        assert await asks(scene, by_recipient) is first
    return first


async def try_outside_ask(scene: Scene, move: Any) -> Outcome:
    await move()
    return await asks(scene, scene.running.ask)


async def try_pending_ask(scene: Scene, move: Any) -> Outcome:
    """One question is taken before, and one is queued."""
    for ask in (scene.app.probe.ctx.ask, scene.running.ask):
        taken, queued = (asyncio.ensure_future(ask(question(n))) for n in range(2))
        await turns()
        first = await scene.app.target.ctx.recv()
        await move()
        await turns()
        assert not taken.done()
        assert first.reply.send(5) is True
        assert await taken == 5
        if queued.done():
            assert isinstance(queued.exception(), NoReply)
            return Outcome.REPLY
        (await scene.app.target.ctx.recv()).reply.send(6)
        assert await queued == 6
        if scene.tasks:
            break
    return Outcome.REPLY


SCENARIOS = {
    Action.SEND: try_send_in,
    Action.CONDUCTOR_SEND: try_conductor_send,
    Action.OUTSIDE_SEND: try_outside_send,
    Action.WAITING_SEND: try_waiting_send,
    Action.RECV: try_recv,
    Action.RECV_SIGNAL: try_recv_signal,
    Action.READ_OUTGOING: try_outgoing,
    Action.CONDUCTOR_BROADCAST: try_conductor_broadcast,
    Action.OUTSIDE_BROADCAST: try_outside_broadcast,
    Action.EVENT: try_event,
    Action.QUEUED_EVENT: try_queued_event,
    Action.HANDLER: try_handler,
    Action.STOP: calls("stop"),
    Action.DRAIN: calls("drain"),
    Action.WAIT: calls("wait"),
    Action.START: try_start,
    Action.SET_TIMER: try_set_timer,
    Action.TIMER: try_timer,
    Action.RESTART: try_restart,
    Action.SPAWN: try_spawn,
    Action.RUN_BLOCKING: try_run_blocking,
    Action.RECIPIENT: try_recipient,
    Action.ASK: try_ask,
    Action.OUTSIDE_ASK: try_outside_ask,
    Action.PENDING_ASK: try_pending_ask,
}


def test_every_action_that_exists_is_tried() -> None:
    assert set(SCENARIOS) == set(Action)


@pytest.mark.parametrize(
    ("action", "phase"),
    [
        pytest.param(action, phase, id=f"{action.name.lower()}-{phase.value}")
        for action in SCENARIOS
        for phase in Phase
        if outcome(phase, action) is not Outcome.NOTHING
    ],
)
def test_the_runtime_does_what_the_model_says(action: Action, phase: Phase) -> None:
    assert within(10, staged(phase, SCENARIOS[action])) is outcome(phase, action)
