"""What breaks a link that is not careful, each on a network that the test has in its hand."""

import asyncio
import logging
from typing import Any

import pytest

from orchestra import NoReply, RemoteError, SubsystemStalled
from orchestra.link import wire
from orchestra.link.keys import Keys, written
from tests.link.fabric import Network, lossy, until
from tests.link.shop import Boss, Hand, Phase, Question, Task
from tests.link.test_fabric import far, near, run, within


def control_key(running: Any, sender: int) -> str:
    """Under which key a process of the epoch `sender` tells something to this one."""
    own: Keys = running._ensemble.afar.mailbox.keys
    return own.own_control.removesuffix("*") + written(sender)


def stranger(network: Network) -> Any:
    return network.link("stranger").open(None)  # type: ignore[arg-type]  # nobody gives it up


@run
async def test_the_last_words_of_a_process_that_was_killed_do_not_bring_it_back() -> None:
    network = Network()
    first, second = Hand(answers=False), Hand(answers=False)
    async with near(network) as running:
        async with far(network, first):
            await running.send(Task(1))
            await until(lambda: first.seen == [1])
            epoch = running.peers()["far"].epoch
            network.session("far").kill()
            await until(lambda: running.peers()["far"].state == "away")
            late = stranger(network).publisher(control_key(running, epoch), priority=2, block=False)
            late.put(wire.write_control(wire.Seen(1, [])), b"")
            await asyncio.sleep(0.02)
            assert running.peers()["far"].state == "away"
            await until(lambda: not running.peers(), 2)
            hello = next(
                payload for key, payload, _ in network.puts if key.endswith(f"control/{written(epoch)}")
            )
            late.put(hello, b"")
            await asyncio.sleep(0.02)
            assert not running.peers()
            async with far(network, second, name="second"):
                await asyncio.wait_for(running.send(Task(2)), 2)
                await until(lambda: second.seen == [2])


@run
async def test_an_answer_that_was_lost_comes_again() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand), near(network) as running:
        assert await running.ask(lambda reply: Question(1, reply)) == 2
        asking = asyncio.ensure_future(running.ask(lambda reply: Question(-3, reply)))
        await until(lambda: hand.kept)
        network.drops = lambda key: "/control/" in key
        hand.kept.pop().send(7)
        await asyncio.sleep(0.05)
        network.drops = lambda key: False
        assert await asyncio.wait_for(asking, 3) == 7


@run
async def test_an_answer_given_while_the_cable_was_cut_comes_when_it_is_mended() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand), near(network) as running:
        asking = asyncio.ensure_future(running.ask(lambda reply: Question(-3, reply)))
        await until(lambda: hand.kept)
        network.cut("far")
        hand.kept.pop().send(7)
        await asyncio.sleep(0.05)
        network.mend("far")
        assert await asyncio.wait_for(asking, 3) == 7


@run
async def test_a_signal_that_was_lost_comes_again_though_nothing_follows_it() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand), near(network) as running:
        await until(lambda: running.peers() and running.peers()["far"].state == "here")
        network.drops = lambda key: "/control/" in key
        broadcasting = asyncio.ensure_future(running.broadcast(Phase(1), timeout=3))
        await asyncio.sleep(0.05)
        network.drops = lambda key: False
        await broadcasting
        assert hand.order == ["signal 1"]


@run
async def test_more_signals_missed_than_are_kept_are_given_up_and_counted() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand) as there, near(network) as running:
        await running.send(Task(1))
        await until(lambda: hand.seen == [1])
        network.drops = lambda key: "/control/" in key
        for k in range(1100):
            with pytest.raises(SubsystemStalled):
                await running.broadcast(Phase(k), timeout=0)
        network.drops = lambda key: False
        before = len(network.puts)
        await running.broadcast(Phase(1100), timeout=3)
        await running.send(Task(2))
        await until(lambda: hand.seen == [1, 2])
        await asyncio.sleep(0.3)
        assert len(network.puts) - before < 5000, "no storm"
        signals = [each for each in hand.order if isinstance(each, str)]
        assert signals == [f"signal {k}" for k in range(1101 - len(signals), 1101)]
        assert len(signals) >= 1000
        engine: Any = there._ensemble.afar
        assert engine.signals.missed == 1101 - len(signals)


@run
async def test_a_greeting_that_was_lost_is_repeated() -> None:
    network = Network()
    hand = Hand(answers=False)
    network.drops = lambda key: "/control/" in key
    async with far(network, hand), near(network) as running:
        await asyncio.sleep(0.1)
        network.drops = lambda key: False
        await asyncio.wait_for(running.send(Task(1)), 3)
        await until(lambda: hand.seen == [1])


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no text")


def with_state() -> Exception:
    error = ValueError("odd")
    error.__dict__[3] = 4  # type: ignore[index]  # it is odd
    return error


@pytest.mark.parametrize(
    "answer",
    [
        lambda reply: reply.fail(ValueError("\ud800")),
        lambda reply: reply.fail(Odd()),
        lambda reply: reply.fail(with_state()),
        lambda reply: reply.fail(ExceptionGroup("many", [ValueError(1), KeyError(2)])),
        lambda reply: reply.fail(UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no")),
        lambda reply: reply.send("\ud800"),
        lambda reply: reply.send(object()),
        lambda reply: reply.send(None),
    ],
)
def test_an_odd_answer_is_some_error(answer: Any) -> None:
    @run
    async def test() -> None:
        network = Network()
        hand = Hand(answers=False)
        async with far(network, hand), near(network) as running:
            asking = asyncio.ensure_future(running.ask(lambda reply: Question(-3, reply)))
            await until(lambda: hand.kept)
            answer(hand.kept.pop())
            with pytest.raises((NoReply, RemoteError, ValueError, TypeError)):
                await asyncio.wait_for(asking, 2)
            assert not asking.cancelled()
            assert await running.ask(lambda reply: Question(1, reply)) == 2

    test()


@run
async def test_a_flood_of_nonsense_does_not_hold_up_the_loop() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand), near(network) as running:
        await running.send(Task(0))
        engine: Any = running._ensemble.afar
        key = control_key(running, 12345)
        engine.mailbox.control.extend((key, b"\xc1", b"") for _ in range(200_000))
        sending = asyncio.ensure_future(running.send(Task(1)))
        engine._look()
        turns = 0
        while engine.mailbox.control:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 20
        await sending
        await until(lambda: hand.seen == [0, 1])


@run
async def test_a_flood_of_false_greetings_is_neither_kept_nor_told_each_time() -> None:
    network = Network()
    hand = Hand(answers=False)
    async with far(network, hand), near(network) as running:
        await running.send(Task(0))
        put = stranger(network)
        told: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("orchestra").addHandler(handler)
        try:
            for epoch in range(1, 3000):
                hello = wire.write_control(wire.Hello("x", "no", ["hand"], 0, True))
                put.publisher(control_key(running, epoch), priority=2, block=False).put(hello, b"")
                if not epoch % 100:
                    await asyncio.sleep(0)
            await running.send(Task(1))
            await until(lambda: hand.seen == [0, 1])
        finally:
            logging.getLogger("orchestra").removeHandler(handler)
        engine: Any = running._ensemble.afar
        assert len(engine.circle.neighbours) < 600
        assert len(told) < 600


@run
async def test_a_packet_that_claims_too_much_does_not_spoil_the_numbers() -> None:
    network = Network()
    boss, hand = Boss(), Hand(answers=False)
    async with far(network, hand) as there, near(network, boss=boss) as running:
        await running.send(Task(0))
        await until(lambda: hand.seen == [0])
        key, _, attachment = next(
            put for put in network.puts if "/to/" in put[0] and "/control/" not in put[0]
        )
        header = wire.read_header(attachment)
        huge = wire.Header(header.subsystem, header.level, 1, 2**62, 0, False, {}, [(0, 0, 2**62)])
        stranger(network).publisher(key, priority=5, block=False).put(b"\x90", wire.write_header(huge))
        await asyncio.sleep(0.02)
        for n in range(1, 50):
            await asyncio.wait_for(running.send(Task(n)), 2)
        await until(lambda: hand.seen and hand.seen[-1] == 49)
        assert len(hand.seen) > 30
        assert there.peers()["near"].refused > 0


@run
async def test_what_has_not_come_over_a_link_that_holds_is_sent_again_in_order() -> None:
    network = Network()
    letters: list[Any] = []
    hand = Hand(answers=False)
    async with far(network, hand), near(network, dead_letters=letters.append) as running:
        await until(lambda: running.peers())
        for begin in range(0, 120, 40):
            network.drops = lossy(0.5, begin, "/5/")
            for n in range(begin, begin + 30):
                await running.send(Task(n))
            network.drops = lambda key: False
            for n in range(begin + 30, begin + 40):
                await running.send(Task(n))
        await until(lambda: len(hand.seen) == 120)
        assert hand.seen == list(range(120))
        assert letters == []


@run
async def test_big_messages_go_in_pieces_and_keep_their_place_over_a_bad_network() -> None:
    network = Network()
    letters: list[Any] = []
    hand = Hand(answers=False)
    sizes = [1, 200_000, 1, 60_000, 1_000_000, 97_000, 1, 1]
    async with far(network, hand), near(network, dead_letters=letters.append) as running:
        await until(lambda: running.peers())
        network.drops = lossy(0.05, 3)
        for n, size in enumerate(sizes):
            await running.send(Task(n, bytes(size)))
        await until(lambda: len(hand.seen) == len(sizes))
        assert hand.seen == list(range(len(sizes)))
        assert letters == []
        assert max(len(payload) for _, payload, _ in network.puts) < 100_000


@within(40)
async def test_a_drain_ends_over_a_bad_network() -> None:
    network = Network()
    boss, hand = Boss(), Hand()
    async with far(network, hand) as there, near(network, boss=boss) as running:
        for n in range(30):
            await running.send(Task(n))
        network.drops = lossy(0.3, 1)
        await running.drain(timeout=30)
        await there.wait()
    assert boss.done == list(range(30))


@run
async def test_a_goodbye_that_was_lost_at_the_end_of_a_drain_is_said_again() -> None:
    network = Network()
    boss, hand = Boss(), Hand()
    goodbyes = 0

    def first_goodbye_and_finished(key: str) -> bool:
        nonlocal goodbyes
        control = wire.read_control(network.puts[-1][1]) if "/control/" in key else None
        goodbyes += isinstance(control, wire.Bye)
        return isinstance(control, wire.Finished) or (isinstance(control, wire.Bye) and goodbyes == 1)

    async with far(network, hand) as there, near(network, boss=boss) as running:
        await running.send(Task(1))
        await until(lambda: boss.done == [1])
        network.drops = first_goodbye_and_finished
        await running.drain(timeout=5)
        await asyncio.wait_for(there.wait(), 3)
    assert goodbyes >= 2


@run
async def test_after_a_restart_many_messages_are_one_packet_again() -> None:
    network = Network()
    async with near(network) as running:
        for _ in range(3):
            hand = Hand(answers=False)
            async with far(network, hand):
                await asyncio.wait_for(running.send(Task(0)), 3)
                await until(lambda hand=hand: hand.seen == [0])  # type: ignore[misc]  # of this round
                await asyncio.sleep(0.05)
                before = sum("/control/" not in key for key, _, _ in network.puts)
                for n in range(1, 9):
                    running.try_send(Task(n))
                await until(lambda hand=hand: len(hand.seen) == 9)  # type: ignore[misc]  # of this round
                assert sum("/control/" not in key for key, _, _ in network.puts) - before <= 3
