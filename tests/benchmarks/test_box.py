"""The backlogs: each run is made once, in a process of its own, and boxed when it says so."""

import gc
import json
from typing import Any

import pytest

from benchmarks import backlog, bars, box
from benchmarks.messages import U8
from orchestra import DeclarationError, plan_of


def test_the_figures_of_a_backlog_are_of_the_same_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[backlog.Figures] = []

    def run(runs: backlog.Runs) -> backlog.Figures:
        made.append(backlog.Figures(fill=len(made), pause=10 * len(made)))
        return made[-1]

    monkeypatch.setattr(backlog.Runs, "_run", run)
    runs = backlog.Runs(bars.SLOTTED, 1)
    fill = runs.looked_at(lambda figures: figures.fill)
    pause = runs.looked_at(lambda figures: figures.pause)
    assert [fill(), fill(), pause(), pause(), pause(), fill()] == [0, 1, 0, 10, 20, 2]
    assert len(made) == 3


@pytest.mark.parametrize("kind", backlog.KINDS)
def test_a_run_finds_time_and_memory(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    backlog.main([kind, "300", "asyncio"])
    found = json.loads(capsys.readouterr().out)
    assert found["fill"] > 0
    assert found["drain"] > 0
    assert set(found) == {"fill", "drain", "memory", "pause"}


def test_only_the_boxed_kind_is_boxed() -> None:
    assert [kind for kind, (_, boxed) in backlog.KINDS.items() if boxed] == [bars.IN_BOXES]
    for boxed in (False, True):
        plan = plan_of(backlog.app_class(boxed, 1))
        assert all(bool(route.boxed) is boxed for route in plan.routes.values())


def test_the_longest_pause_is_that_of_a_collection() -> None:
    figures = backlog.Figures()
    with backlog.longest_pause(figures):
        gc.collect()
    assert figures.pause > 0
    seen = figures.pause
    gc.collect()
    assert figures.pause == seen


@pytest.mark.parametrize("taken", [True, False])
def test_auto_is_measured_where_a_declaration_takes_it(taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def declared(kind: type, receivers: int = 1, boxed: Any = False, capacity: int = 1) -> None:
        if boxed == "auto" and not taken:
            raise DeclarationError("boxed is 'auto'")

    monkeypatch.setattr(box, "app_class", declared)
    names = {case.name for case in box.sends(100).cases}
    assert (bars.box_send(bars.BOX_U8, bars.AUTO) in names) is taken


def test_each_receiver_of_a_broadcast_gets_every_message() -> None:
    assert box._send_ns(box.app_class(U8, 3, boxed=True), 3, U8, 7, 50) > 0
