"""The slow subscriber: each policy gives the two subscribers what the text says, and the figures add up."""

import asyncio
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.slow_subscriber.app import (
    SLOW,
    Fast,
    Figures,
    Publisher,
    Slow,
    UnderBlock,
    UnderDrop,
    UnderDropOldest,
    compare,
)
from orchestra import start

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "examples.slow_subscriber"]
SECONDS, RATE = 1.5, 1000.0


@pytest.fixture(scope="module")
def figures() -> dict[str, Figures]:
    last = asyncio.run(compare(SECONDS, RATE, lambda passed, figures: None))
    return {each.policy: each for each in last}


def test_under_block_both_get_the_rate_of_the_slow_one(figures: dict[str, Figures]) -> None:
    block = figures["Block"]
    assert block.dropped == block.refused == 0
    assert block.fast_got <= SECONDS / SLOW + 8 + 3, "what the slow one took, its lane, and one under way"
    assert block.blocked_seconds > SECONDS / 2


@pytest.mark.parametrize("policy", ["Drop", "DropOldest"])
def test_under_a_policy_that_drops_the_fast_one_gets_all(figures: dict[str, Figures], policy: str) -> None:
    found = figures[policy]
    assert found.fast_got + found.fast_queued == found.published
    assert found.fast_got > 10 * figures["Block"].fast_got
    assert 3 <= found.slow_got <= SECONDS / SLOW + 2
    assert found.blocked_seconds < SECONDS / 2


def test_what_the_fast_one_got_or_has_waiting_is_all_at_any_moment() -> None:
    seen: list[Figures] = []
    asyncio.run(compare(0.2, RATE, lambda passed, figures: seen.extend(figures), interval=0))
    assert any(each.fast_queued for each in seen), "the publisher's last burst waits now and then"
    for each in seen:
        assert each.fast_got + each.fast_queued == each.published


def test_the_publisher_is_told_of_each_drop_but_not_of_what_was_thrown_out(
    figures: dict[str, Figures],
) -> None:
    assert abs(figures["Drop"].refused - figures["Drop"].dropped) <= 1
    assert figures["DropOldest"].refused == 0 < figures["DropOldest"].dropped


def test_drop_oldest_gives_the_slow_one_newer_samples(figures: dict[str, Figures]) -> None:
    assert figures["DropOldest"].age < SLOW * 2 < figures["Drop"].age


def test_what_the_slow_one_got_was_queued_or_dropped_adds_up(figures: dict[str, Figures]) -> None:
    for each in figures.values():
        assert abs(each.slow_got + each.slow_queued + each.dropped - each.published) <= 1


@pytest.mark.parametrize("kind", [UnderBlock, UnderDrop, UnderDropOldest])
def test_the_meters_add_up_after_the_end(kind: type[UnderBlock | UnderDrop | UnderDropOldest]) -> None:
    async def main() -> None:
        app = kind(publisher=Publisher(2000), fast=Fast(), slow=Slow())
        async with start(app, dead_letters=lambda letter: None) as running:
            await asyncio.sleep(0.3)
            await running.stop(timeout=0.01)
        for meters in running.meters().values():
            assert meters.sent == meters.received + meters.queued + meters.evicted
            assert meters.dropped == sum(meters.dropped_by.values())

    asyncio.run(main())


def run(*words: str) -> Sequence[str]:
    done = subprocess.run(
        [*COMMAND, *words], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    return (done.stdout, done.stderr)


def test_plain_lines_are_shown_when_there_is_no_terminal() -> None:
    out, err = run("--seconds", "0.4", "--rate", "500")
    assert "the fast one got" in out
    assert [line.split(":")[0] for line in err.splitlines()] == [
        f"0.0 s, {policy}" for policy in ("Block", "Drop", "DropOldest")
    ]


@pytest.mark.parametrize("words", [("--seconds", "0"), ("--rate", "-1")])
def test_an_option_that_is_not_above_zero_is_refused(words: tuple[str, str]) -> None:
    done = subprocess.run([*COMMAND, *words], cwd=ROOT, capture_output=True, timeout=30, check=False)
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr


def on_a_terminal(*words: str, interrupt: bool = False) -> str:
    parent, child = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=child,
        stderr=child,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
    ) as process:
        os.close(child)
        shown = b""
        try:
            while True:
                shown += os.read(parent, 4096)
                if interrupt and b"After" in shown:
                    process.send_signal(signal.SIGINT)
                    interrupt = False
        except OSError:  # how Linux tells that the other end is closed
            pass
        finally:
            os.close(parent)
        assert process.wait(timeout=30) == 0, shown
    return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).decode()


def test_on_a_terminal_the_table_is_drawn_while_it_runs_and_once_more_at_the_end() -> None:
    text = on_a_terminal("--seconds", "0.8")
    assert text.count("DropOldest") >= 3
    assert text[text.rindex("After") :].startswith("After 0.8 s")


def test_an_interrupt_ends_it_without_a_trace() -> None:
    text = on_a_terminal("--seconds", "20", interrupt=True)
    assert "Traceback" not in text
