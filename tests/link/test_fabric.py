"""Several parts of one orchestra in one event loop, joined by a network that the test has in its hand."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from orchestra import Drop, Full, NoReply, Priority, Remote, SubsystemStalled, start
from tests.link.fabric import Network, lossy, until
from tests.link.shop import Boss, Done, Hand, Note, Pad, Phase, Question, Shop, Task

Test = Callable[[], Coroutine[Any, Any, None]]


def within(seconds: float) -> Callable[[Test], Callable[[], None]]:
    """A test that is a coroutine, and takes no longer."""

    def decorate(test: Test) -> Callable[[], None]:
        @wraps(test)
        def plain() -> None:
            asyncio.run(asyncio.wait_for(test(), seconds))

        del plain.__wrapped__
        return plain

    return decorate


run = within(10)


def near(network: Network, **more: Any) -> Any:
    app = Shop(
        boss=more.pop("boss", None) or Boss(), hand=more.pop("hand", Remote()), pad=more.pop("pad", Remote())
    )
    return start(app, link=network.link(more.pop("name", "near")), **more)


def far(network: Network, hand: Hand, pad: Pad | None = None, **more: Any) -> Any:
    app = Shop(boss=Remote(replicas="any"), hand=hand, pad=pad or Pad())
    return start(app, link=network.link(more.pop("name", "far")), **more)


@run
async def test_messages_cross_in_order_and_come_back() -> None:
    network = Network()
    boss, hand = Boss(), Hand()
    async with far(network, hand), near(network, boss=boss) as running:
        for n in range(200):
            assert await running.send(Task(n))
        await until(lambda: len(boss.done) == 200)
        assert boss.done == list(range(200)) == hand.seen
        meters = running.meters()["hand"]
        assert (meters.sent, meters.received, meters.queued) == (200, 200, 0)
        (peer,) = running.peers().values()
        assert (peer.process, peer.hosts, peer.state) == ("far", ("hand", "pad"), "here")
        assert (peer.sent, peer.received, peer.lost) == (200, 200, 0)


@run
async def test_who_starts_first_does_not_matter() -> None:
    network = Network()
    hand = Hand()
    async with near(network) as running:
        sending = asyncio.ensure_future(running.send(Task(1)))
        await asyncio.sleep(0.05)
        assert not sending.done(), "nobody is there to grant room"
        async with far(network, hand):
            assert await sending
            await until(lambda: hand.seen == [1])


@run
async def test_a_remote_inbox_never_holds_more_than_its_capacity() -> None:
    network = Network()
    network.delay = lambda key: 0.001
    hand = Hand(answers=False)
    hand.gate.clear()
    async with far(network, hand) as there, near(network) as running, near(network, name="third") as third:
        for each in (running, third):
            await until(lambda each=each: "far" in each.peers())
        sends = [
            asyncio.ensure_future(each.send(Task(n))) for n in range(40) for each in (running, third, there)
        ]
        await asyncio.sleep(0.2)
        lane = there.meters()["hand"].lanes[Priority.NORMAL]
        assert lane.queued <= 16
        assert sum(send.done() for send in sends) <= 17
        hand.gate.set()
        most = 0
        while not all(send.done() for send in sends):
            most = max(most, there.meters()["hand"].lanes[Priority.NORMAL].queued)
            await asyncio.sleep(0)
        await until(lambda: len(hand.seen) == 120)
        assert most <= 16


@run
async def test_what_finds_no_room_is_dropped_or_refused_as_in_one_process() -> None:
    network = Network()
    hand = Hand(answers=False)
    hand.gate.clear()
    async with far(network, hand), near(network) as running:
        await until(lambda: running.peers())
        assert await running.send(Task(0))  # it waits for the first places
        sent = 0
        with pytest.raises(Full):
            for sent in range(1, 100):
                running.try_send(Task(sent))
                await asyncio.sleep(0.002)
        assert 16 <= sent <= 17
        assert await running.send(Task(99), overflow=Drop(wait_before_drop=0.01)) is False
        hand.gate.set()


@run
async def test_who_finds_no_room_is_told_that_no_process_hosts_the_receiver() -> None:
    network = Network()
    hand = Hand()
    nobody = "no process hosts 'hand' now"
    async with near(network) as running:
        for _ in range(2):
            with pytest.raises(Full) as full:
                running.try_send(Task(0))
            assert str(full.value) == f"the DATA lane of 'hand' is full: {nobody}"
            with pytest.raises(TimeoutError) as late:
                await running.ask(lambda reply: Question(1, reply), timeout=0.02)
            assert str(late.value) == f"'hand' had no room for Question within 0.02 s: {nobody}"
            async with far(network, hand):
                assert await running.ask(lambda reply: Question(1, reply)) == 2
            await until(lambda: all(peer.state != "here" for peer in running.peers().values()))


@run
async def test_an_ask_whose_host_has_vanished_says_so_at_its_time_limit() -> None:
    network = Network()
    hand = Hand()
    async with far(network, hand), near(network) as running:
        asking = asyncio.ensure_future(running.ask(lambda reply: Question(-3, reply), timeout=0.1))
        await until(lambda: hand.kept)
        network.cut("far")
        with pytest.raises(TimeoutError) as late:
            await asking
        assert str(late.value) == (
            "'hand' did not reply to Question within 0.1 s: no process hosts 'hand' now"
        )
        network.mend("far")


@run
async def test_the_newest_come_through_a_lane_that_drops_the_oldest() -> None:
    network = Network()
    pad = Pad()
    pad.gate.clear()
    async with far(network, Hand(), pad), near(network) as running:
        await until(lambda: running.peers())
        for n in range(50):
            assert await running.send(Note(n))
            await asyncio.sleep(0.001)
        pad.gate.set()
        await until(lambda: 49 in pad.seen)
        assert pad.seen == sorted(pad.seen)
        assert len(pad.seen) <= 4


@run
async def test_a_slow_lane_holds_up_no_other() -> None:
    network = Network()
    hand, pad = Hand(answers=False), Pad()
    hand.gate.clear()
    async with far(network, hand, pad), near(network) as running:
        await until(lambda: running.peers())
        stuck = [asyncio.ensure_future(running.send(Task(n))) for n in range(40)]
        await asyncio.sleep(0.05)
        assert await asyncio.wait_for(running.send(Task(1000), priority=Priority.HIGH), 0.5)
        assert await asyncio.wait_for(running.send(Note(1)), 0.5)
        await until(lambda: pad.seen == [1])
        hand.gate.set()
        await asyncio.gather(*stuck)
        assert hand.seen.index(1000) <= 1


@run
async def test_a_message_that_was_sent_after_a_signal_is_seen_after_it() -> None:
    network = Network()
    hand = Hand(answers=False)
    network.delay = lambda key: 0.05 if "/control/" in key else 0.0
    async with far(network, hand), near(network) as running:
        await running.send(Task(1))
        await until(lambda: hand.order == [1])
        await running.broadcast(Phase(1))
        await running.send(Task(2))
        await until(lambda: len(hand.order) == 3)
        assert hand.order == [1, "signal 1", 2]


@run
async def test_a_signal_that_was_lost_is_asked_for() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand), near(network) as running:
        await running.send(Task(1))
        await until(lambda: hand.order == [1])
        network.drops = lambda key: "/control/" in key
        await asyncio.wait([asyncio.ensure_future(running.broadcast(Phase(1), timeout=0.05))])
        network.drops = lambda key: False
        await running.send(Task(2))
        await until(lambda: len(hand.order) == 3)
        assert hand.order == [1, "signal 1", 2]


@run
async def test_a_broadcast_names_those_elsewhere_who_do_not_read_it() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand), near(network) as running:
        await running.send(Task(1))
        await until(lambda: hand.seen == [1])
        hand.gate.clear()
        await running.send(Task(2))
        await asyncio.sleep(0.02)
        with pytest.raises(SubsystemStalled) as stalled:
            for k in range(100):
                await running.broadcast(Phase(k), timeout=0.05)
        assert stalled.value.subsystems == ("hand",)
        hand.gate.set()


@run
async def test_asks_cross() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand) as there, near(network) as running:
        assert await running.ask(lambda reply: Question(21, reply)) == 42
        with pytest.raises(KeyError, match="no such"):
            await running.ask(lambda reply: Question(-1, reply))
        with pytest.raises(NoReply, match="dropped"):
            await running.ask(lambda reply: Question(-4, reply))
        with pytest.raises(TimeoutError):
            await running.ask(lambda reply: Question(-3, reply), timeout=0.05)
        assert hand.kept.pop().send(1) is True, "that nobody waits is not known over there"
        assert there is not None


@run
async def test_a_failing_handler_answers_and_the_others_go_on() -> None:
    network = Network()
    letters: list[Any] = []
    with pytest.raises(Exception, match="it broke"):
        async with near(network) as running:
            async with far(network, Hand(), dead_letters=letters.append):
                with pytest.raises(NoReply, match="ValueError: it broke"):
                    await running.ask(lambda reply: Question(-2, reply))
                await until(lambda: not running.peers())
    assert [letter.reason for letter in letters] == ["failed"]


@run
async def test_an_ask_is_answered_at_once_when_the_process_is_gone() -> None:
    network = Network()
    hand = Hand()
    async with near(network) as running:
        async with far(network, hand):
            asking = asyncio.ensure_future(running.ask(lambda reply: Question(-3, reply)))
            await until(lambda: hand.kept)
            network.session("far").kill()
            with pytest.raises(NoReply, match=r"is gone|nobody knows"):
                await asking


@run
async def test_what_a_killed_process_had_not_acknowledged_is_dead_lettered_once() -> None:
    network = Network()
    letters: list[Any] = []
    hand, again = Hand(answers=False), Hand(answers=False)
    async with near(network, dead_letters=letters.append) as running:
        async with far(network, hand):
            await running.send(Task(0))
            await until(lambda: hand.seen == [0])
            await asyncio.sleep(0.3)
            network.session("far").cut = True
            for n in range(1, 4):
                assert await running.send(Task(n))
            network.session("far").kill()
            await until(lambda: not running.peers())
            assert [(letter.message, letter.reason) for letter in letters] == [
                (Task(n), "lost") for n in (1, 2, 3)
            ]
            async with far(network, again):
                for n in range(4, 30):
                    assert await running.send(Task(n))
                await until(lambda: again.seen == list(range(4, 30)))
    assert len(letters) == 3


@run
async def test_what_was_on_a_cable_that_was_cut_comes_when_it_is_mended() -> None:
    network = Network()
    letters: list[Any] = []
    hand = Hand(answers=False)
    async with far(network, hand), near(network, dead_letters=letters.append) as running:
        for n in range(10):
            await running.send(Task(n))
        await until(lambda: len(hand.seen) == 10)
        network.drops = lambda key: "/to/" in key
        for n in range(10, 14):
            await running.send(Task(n))
        await asyncio.sleep(0.01)
        network.drops = lambda key: False
        network.cut("far")
        await asyncio.sleep(0.05)
        assert [peer.state for peer in running.peers().values()] == ["away"]
        sending = asyncio.ensure_future(running.send(Task(14)))
        network.mend("far")
        await sending
        await until(lambda: 14 in hand.seen)
        await asyncio.sleep(0.1)
        assert hand.seen == list(range(15))
        assert letters == []
        for n in range(100, 140):
            await running.send(Task(n))
        await until(lambda: 139 in hand.seen)


@run
async def test_a_frozen_process_stops_nobody_and_goes_on_when_it_wakes() -> None:
    network = Network()
    letters: list[Any] = []
    hand = Hand(answers=False)
    async with far(network, hand), near(network, dead_letters=letters.append) as running:
        await running.send(Task(0))
        await until(lambda: hand.seen == [0])
        network.freeze("far")
        sends = [asyncio.ensure_future(running.send(Task(n))) for n in range(1, 40)]
        await asyncio.sleep(0.01)
        assert await running.send(Task(99), overflow=Drop(wait_before_drop=0.01)) is False
        network.vanish("far")
        await until(lambda: not running.peers())
        network.thaw("far", again=True)
        await asyncio.wait_for(asyncio.gather(*sends), 5)
        await until(lambda: 39 in hand.seen)
        assert hand.seen == sorted(set(hand.seen)), "nothing came twice, and in order"
        lost = [letter.message.n for letter in letters]
        assert lost == sorted(set(lost))
        assert set(lost) | set(hand.seen) == set(range(40))


@run
async def test_nothing_comes_twice_and_all_is_accounted_for_over_a_bad_network() -> None:
    network = Network()
    letters: list[Any] = []
    hand = Hand(answers=False)
    async with far(network, hand) as there, near(network, dead_letters=letters.append) as running:
        await until(lambda: running.peers())
        network.drops = lossy(0.1, 7)
        network.delay = lambda key: 0.0005
        for n in range(300):
            await running.send(Task(n))
        network.drops = lambda key: False
        await until(lambda: len(hand.seen) + len(letters) == 300)
        assert hand.seen == sorted(set(hand.seen))
        assert sorted(hand.seen + [letter.message.n for letter in letters]) == list(range(300))
        assert {letter.reason for letter in letters} <= {"lost"}
        assert there.peers()["near"].lost == len(letters)


@run
async def test_a_stop_stops_all_parts_and_only_this_one_when_told_so() -> None:
    network = Network()
    async with near(network) as running:
        async with far(network, Hand()) as there, far(network, Hand(), name="spare") as spare:
            await until(lambda: len(running.peers()) == 2)
            await spare.stop(everywhere=False)
            await until(lambda: len(running.peers()) == 1)
            await running.stop(timeout=2)
            await asyncio.wait_for(there.wait(), 1)


@run
async def test_leaving_the_block_stops_only_this_process() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand) as there:
        async with near(network) as running:
            await running.send(Task(1))
        await asyncio.sleep(0.05)
        async with near(network) as running:
            await running.send(Task(2))
            await until(lambda: hand.seen == [1, 2])
        assert "open" in repr(there)


@run
async def test_a_drain_ends_all_when_all_is_handled() -> None:
    network = Network()
    network.delay = lambda key: 0.002
    boss, hand = Boss(), Hand()
    async with far(network, hand) as there, near(network, boss=boss) as running:
        for n in range(100):
            await running.send(Task(n))
        await running.drain()
        await asyncio.wait_for(there.wait(), 2)
    assert boss.done == list(range(100))


@run
async def test_each_says_goodbye_to_those_who_ended_before_it() -> None:
    network = Network()
    told: list[tuple[str, str, str]] = []

    def note(who: str) -> Any:
        return lambda peer: told.append((who, peer.process, peer.state))

    async with (
        far(network, Hand(), on_peer=note("far")) as there,
        near(network, on_peer=note("near")) as running,
        near(network, name="third", on_peer=note("third")) as third,
    ):
        for each in (there, running, third):
            await until(lambda each=each: len(each.peers()) == 2)
        await running.drain()
        began = asyncio.get_running_loop().time()
        await asyncio.gather(there.wait(), third.wait())
        assert asyncio.get_running_loop().time() - began < 2
    assert [each for each in told if each[2] == "away"] == []


@run
async def test_one_that_ends_and_whose_goodbye_is_lost_is_gone_soon_and_never_away() -> None:
    network = Network()
    told: list[tuple[str, str]] = []
    async with (
        far(network, Hand()),
        near(network, on_peer=lambda peer: told.append((peer.state, peer.why))) as running,
    ):
        await until(lambda: running.peers())
        engine: Any = running._ensemble.afar
        (neighbour,) = engine.circle.neighbours.values()
        neighbour.ending = True  # as when it has told that it stops
        network.vanish("far")
        await until(lambda: not running.peers(), 3)
        assert told[-1] == ("gone", "it has ended")
        assert "away" not in dict(told)


@run
async def test_a_second_host_is_refused_and_takes_over_when_the_first_is_gone() -> None:
    network = Network()
    first, second = Hand(answers=False), Hand(answers=False)
    changes: list[Any] = []
    async with near(network, on_peer=changes.append) as running:
        async with far(network, first):
            await running.send(Task(1))
            async with far(network, second, name="second"):
                await until(lambda: "second" in running.peers())
                await until(lambda: running.peers()["second"].state == "refused")
                assert "'hand' is hosted by 'far'" in running.peers()["second"].why
                await running.send(Task(2))
                await until(lambda: first.seen == [1, 2])
                network.session("far").kill()
                await running.send(Task(3))
                await until(lambda: second.seen == [3])
    assert {(change.process, change.state) for change in changes} >= {
        ("far", "here"),
        ("second", "refused"),
        ("far", "away"),
        ("far", "gone"),
        ("second", "here"),
    }


@run
async def test_processes_that_declare_something_else_refuse_each_other_and_say_what() -> None:
    from tests.link import other

    network = Network()
    async with near(network) as running:
        app = other.Shop(boss=Remote(), hand=other.Hand(), pad=other.Pad())
        async with start(app, link=network.link("odd", app="Shop")) as odd:
            await until(lambda: "odd" in running.peers() and "types" in running.peers()["odd"].why)
            assert running.peers()["odd"].state == "refused"
            assert "types.Task.n is int here and str there" in running.peers()["odd"].why
            await until(lambda: odd.peers()["near"].state == "refused")


@run
async def test_any_number_of_replicas_share_the_work() -> None:
    network = Network()
    hands = [Hand(answers=False) for _ in range(3)]
    async with near(network, hand=Remote(replicas="any"), pad=Remote(replicas="any")) as running:
        async with far(network, hands[0], name="a"), far(network, hands[1], name="b"):
            await until(lambda: len(running.peers()) == 2)
            for n in range(100):
                await running.send(Task(n))
                await asyncio.sleep(0)
            await until(lambda: sum(len(hand.seen) for hand in hands) == 100)
            assert all(len(hand.seen) > 20 for hand in hands[:2])
            assert sorted(hands[0].seen + hands[1].seen) == list(range(100))


@run
async def test_a_key_goes_to_one_replica() -> None:
    network = Network()
    hands = {name: Hand(answers=False) for name in ("a", "b", "c")}
    async with near(network, hand=Remote(by=lambda task: task.n % 20), pad=Remote(replicas="any")) as running:
        async with far(network, hands["a"], name="a"), far(network, hands["b"], name="b"):
            await until(lambda: len(running.peers()) == 2)
            for n in range(200):
                await running.send(Task(n))
            await until(lambda: sum(len(hand.seen) for hand in hands.values()) == 200)
            keys = {name: {n % 20 for n in hand.seen} for name, hand in hands.items()}
            assert keys["a"] and keys["b"] and not keys["a"] & keys["b"]
            async with far(network, hands["c"], name="c"):
                await until(lambda: len(running.peers()) == 3)
                for hand in hands.values():
                    hand.seen.clear()
                for n in range(200):
                    await running.send(Task(n))
                await until(lambda: sum(len(hand.seen) for hand in hands.values()) == 200)
                after = {name: {n % 20 for n in hand.seen} for name, hand in hands.items()}
                assert after["a"] <= keys["a"] and after["b"] <= keys["b"]
                assert after["c"] == set(range(20)) - after["a"] - after["b"]


@run
async def test_what_strangers_send_is_counted_and_stops_nothing() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand) as there, near(network) as running:
        await running.send(Task(1))
        await until(lambda: hand.seen == [1])
        stranger = network.link("stranger").open(None)  # type: ignore[arg-type]  # nobody gives it up
        keys = {key for key, _, _ in network.puts if "/to/" in key}
        for key in keys:
            for payload, attachment in (
                (b"", b""),
                (b"\xc1", b"\xc1"),
                (b"\x91\xc0" * 1000, b"\x98" + b"\0" * 8),
            ):
                stranger.publisher(key, priority=5, block=False).put(payload, attachment)
        for n in range(2, 10):
            await running.send(Task(n))
        await until(lambda: hand.seen == list(range(1, 10)))
        assert there.peers()["near"].refused > 0


@run
async def test_a_process_may_host_nothing_and_send_from_outside() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand) as there:
        outside = Shop(boss=Remote(), hand=Remote(), pad=Remote())
        async with start(outside, link=network.link("outside")) as running:
            await running.send(Task(1))
            assert await running.ask(lambda reply: Question(4, reply)) == 8
            await until(lambda: hand.seen == [1])
        async with start(outside, link=network.link("outside")) as running:
            await running.send(Task(2))
            await running.drain()
        await asyncio.wait_for(there.wait(), 2)
        assert hand.seen == [1, 2]


@run
async def test_a_stop_waits_for_handlers_elsewhere() -> None:
    network = Network()
    hand = Hand(answers=False)
    hand.gate.clear()
    async with far(network, hand) as there, near(network) as running:
        await running.send(Task(1))
        await asyncio.sleep(0.05)
        asyncio.get_running_loop().call_later(0.3, hand.gate.set)
        began = asyncio.get_running_loop().time()
        await running.stop(timeout=2)
        assert 0.2 < asyncio.get_running_loop().time() - began < 1.0
        assert hand.seen == [1]
        await there.wait()


@run
async def test_a_message_that_waits_for_a_signal_of_a_process_that_is_gone_is_let_in() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand), near(network) as running:
        await running.send(Task(1))
        async with near(network, name="third") as third:
            await until(lambda: len(running.peers()) == 2)
            await third.broadcast(Phase(7))
        await until(lambda: len(running.peers()) == 1)
        await running.send(Task(2))
        await until(lambda: hand.seen == [1, 2])


@run
async def test_what_nobody_has_sent_is_counted_and_logged_once() -> None:
    network = Network()
    async with near(network) as running:
        stranger = network.link("stranger").open(None)  # type: ignore[arg-type]  # nobody gives it up
        engine: Any = running._ensemble.afar
        for key in (engine.mailbox.keys.own_control, engine.mailbox.keys.own(Priority.NORMAL)):
            for end in ("0123456789abcdef", "nobody"):
                for payload in (b"", b"\xc1", b"\x91\xa5hello", bytes(1000)):
                    put = stranger.publisher(key.removesuffix("*") + end, priority=5, block=False).put
                    for _ in range(10):
                        put(payload, payload)
        await until(lambda: engine.strange >= 120)
        assert running.peers() == {}
        assert await running.send(Task(1), overflow=Drop(wait_before_drop=0)) is False


@run
async def test_what_a_dead_process_had_sent_does_not_bring_it_back() -> None:
    network = Network()
    boss = Boss()
    async with near(network, boss=boss) as running, far(network, Hand()) as there:
        await until(lambda: running.peers())
        network.delay = lambda key: 0.05
        for n in range(5):
            await there.send(Done(n))
        await asyncio.sleep(0.01)
        session = network.session("far")
        session.closed = True
        for each in network.sessions:
            if each is not session:
                each.see([(token, False) for token in session.tokens])
        await until(lambda: boss.done == list(range(5)))
        assert [peer.state for peer in running.peers().values()] == ["away"]
        await until(lambda: not running.peers())
