"""The small examples do what their texts say, and `orchestra check` finds no error in any."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples.backpressure import Bakery
from examples.census import Census
from examples.duo import Duo
from orchestra import plan_of
from orchestra.graph import CycleKind

ROOT = Path(__file__).parents[2]


def lines_of(name: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_duo_asks_and_answers_and_ends_by_itself() -> None:
    assert lines_of("duo") == [f"asker: the square of {n} is {n * n}" for n in range(1, 6)]


def test_the_baker_is_slowed_down_and_the_signal_overtakes_the_trays() -> None:
    lines = lines_of("backpressure")
    assert [line for line in lines if line.startswith("oven: tray")] == [
        f"oven: tray {n} is in" for n in range(1, 9)
    ]
    hotter = [number for number, line in enumerate(lines) if "times hotter" in line]
    assert len(hotter) == 1
    before = lines[: hotter[0]]
    racked = sum(line.startswith("baker:") for line in before)
    baked = sum(line.startswith("oven: tray") for line in before)
    assert baked < 8
    assert racked - baked <= 2, "the lane has room for two"


@pytest.mark.parametrize("app", [Duo, Bakery, Census])
def test_no_example_can_lock_up(app: type) -> None:
    assert all(cycle.kind is CycleKind.BROKEN for cycle in plan_of(app).graph.cycles)


def test_the_census_has_a_boxed_and_an_unboxed_subsystem_and_a_lane_for_what_is_urgent() -> None:
    subsystems = plan_of(Census).subsystems
    assert len(subsystems) >= 4
    assert {subsystem.boxed for subsystem in subsystems.values()} == {True, False}
    assert len(subsystems["tally"].lanes) == 2
