"""The cases of a slow subscriber and of urgent messages, in runs so short that only large effects count."""

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import bars, congestion, priority
from benchmarks.harness import Group
from benchmarks.messages import U8


def _named(group: Group, part: str) -> float:
    """The figure of the one case that has `part` in its name."""
    (case,) = [case for case in group.cases if part in case.name]
    return case.run()


@pytest.fixture(scope="module")
def groups() -> dict[str, Group]:
    return {group.name: group for group in congestion.groups(seconds=0.12, count=2_000)}


@pytest.mark.parametrize("publisher", [bars.PACED, bars.FULL_SPEED])
@pytest.mark.parametrize(
    ("waits", "drops"),
    [
        ("one, Block,", "one, Drop,"),
        ("one, Block,", "one, DropOldest,"),
        ("Queue: await both", "drop by hand"),
    ],
)
def test_who_waits_for_the_slow_one_gets_its_rate_and_who_drops_does_not(
    groups: dict[str, Group], publisher: str, waits: str, drops: str
) -> None:
    assert _named(groups[publisher], waits) <= 2 / congestion.SLOW
    assert _named(groups[publisher], drops) > 10_000


def test_the_paced_publisher_keeps_its_rate(groups: dict[str, Group]) -> None:
    rate = _named(groups[bars.PACED], bars.ALONE)
    assert congestion.RATE / 2 < rate < congestion.RATE * 1.5


def test_the_drops_by_hand_are_counted() -> None:
    async def main() -> int:
        queues = congestion.Queues()
        for _ in range(congestion.ROOM + 3):
            await queues.publish_or_drop(U8(1))
        return queues.dropped

    assert asyncio.run(main()) == 3


def test_a_publish_to_two_reaches_both(groups: dict[str, Group]) -> None:
    for case in groups["publish"].cases:
        assert case.run() > 0


def test_the_congestion_command_writes_all_its_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "QUICK_ROUNDS", 1)
    path = tmp_path / "figures.json"
    assert command.main(["congestion", "--quick", "--json", str(path)]) == 0
    assert set(json.loads(path.read_text())["groups"]) == {bars.PACED, bars.FULL_SPEED, "publish"}


@pytest.mark.parametrize("backlog", [1, 3_000])
def test_an_urgent_message_does_not_wait_for_the_backlog(backlog: int) -> None:
    assert 0 < asyncio.run(priority._latency_us(backlog, samples=5)) < 20_000
