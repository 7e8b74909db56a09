"""Each line marked `# wrong` must be an error for mypy --strict and for basedpyright, no other may."""

from typing import Any, Never, assert_type

import msgspec

from orchestra import (
    Actor,
    Context,
    Priority,
    Recipient,
    Reply,
    Subsystem,
    deferred,
    orchestra,
    start,
    subsystem,
)
from orchestra.testing import FakeClock, Probe, Sent, alone, recorded, replace
from orchestra.wrappers import Timed


class Ping(msgspec.Struct): ...


class Pong(msgspec.Struct): ...


class Ask(msgspec.Struct):
    reply: Reply[int]


class Sig(msgspec.Struct): ...


class Player(Actor[Ping | Ask, Pong]):
    score = 0

    def handle(self, ctx: Context[Ping | Ask, Pong, Sig], message: Ping | Ask) -> None: ...


class Referee(Subsystem[Pong, Never]):
    whistles = 0

    async def run(self, ctx: Context[Pong, Never, Sig]) -> None: ...


@orchestra(signal=Sig, event=Sig)
class App:
    player: Player = subsystem()
    referee: Referee = subsystem()


async def main() -> None:
    async with alone(App, "player", Player()) as probe:
        assert_type(probe, Probe[Player])
        assert_type(probe.instance, Player)
        assert_type(probe.instance.score, int)
        probe.instance.whistles  # wrong
        assert_type(await probe.send(Ping()), bool)
        assert_type(await probe.send(Ping(), priority=Priority.HIGH, timeout=None), bool)
        assert_type(probe.try_send(Ping()), bool)
        probe.signal(Sig())
        await probe.signal(Sig())  # wrong
        assert_type(await probe.expect(Pong), Pong)
        assert_type(await probe.expect(Pong, timeout=1), Pong)
        assert_type(await probe.expect(Pong, Ping), Pong | Ping)
        await probe.expect(Pong, Ping, Ask)
        await probe.expect(Pong | Ping)
        await probe.expect(Pong())  # wrong
        await probe.expect("Pong")  # wrong
        await probe.expect(Pong, 1.0)  # wrong
        await probe.advance(1)
        await probe.advance("1")  # wrong
        assert_type(await probe.ask(Ask), int)
        await probe.ask(lambda reply: Ask(reply))
        await probe.ask(Ping())  # wrong
        assert_type(probe.recipient(Pong), Recipient[Pong])
        assert_type(probe.sent, list[Any])
        assert_type(probe.log[0], Sent)
        assert_type(probe.log[0].priority, Priority)
        assert_type(probe.clock, FakeClock)
        probe.bury(Ping(), ValueError())
        probe.bury(Ping(), ValueError)  # wrong
    async with alone(App, "referee", deferred(Referee), start=5, stop_timeout=0.1) as other:
        assert_type(other.instance, Referee)
    async with alone(App, "player", Timed(Player())) as timed:
        assert_type(timed.instance.inner, Actor[Ping | Ask, Pong])
    alone(App, "player", Player)  # wrong
    alone(App, Player())  # wrong
    alone(App, "player", Player(), 5)  # wrong

    app = App(player=Player(), referee=Referee())
    player, referee = recorded(Player()), recorded(Referee())
    assert_type(player.inner, Player)
    assert_type(player.inner.score, int)
    assert_type(referee.inner.whistles, int)
    assert_type(player.received, list[Any])
    assert_type(referee.sent, list[Any])
    assert_type(player.hooks, list[str])
    player.score  # wrong
    recorded(Player)  # wrong
    recorded(5)  # wrong
    assert_type(replace(app, player=player, referee=referee), App)
    start(replace(app, player=player))
    async with alone(App, "player", player) as third:
        assert_type(third.instance.inner.score, int)
    async with alone(App, "referee", deferred(lambda: recorded(Referee()))) as fourth:
        assert_type(fourth.instance.inner.whistles, int)
