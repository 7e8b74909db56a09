"""The command, in short runs."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import bars
from benchmarks.harness import Case, Group


@pytest.fixture
def one_case(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let `send` be one case of the given cost in ms, with a bar of 150 ms."""

    def use(cost: float) -> None:
        group = Group("send", "some", "ms", [Case(bars.IMPORT, lambda: cost)], relative=False)
        monkeypatch.setitem(command.GROUPS, "send", lambda quick: group)

    return use


@pytest.mark.parametrize(("cost", "status"), [(149, 0), (299, 0), (301, 1)])
def test_a_figure_over_its_bars_is_a_failure(
    one_case: Callable[[float], None], cost: float, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    one_case(cost)
    assert command.main(["send", "--quick", "--bars", "2"]) == status
    assert ("over 2 times its bar of 150" in capsys.readouterr().err) is bool(status)


def test_without_bars_no_figure_is_a_failure(one_case: Callable[[float], None]) -> None:
    one_case(1e6)
    assert command.main(["send", "--quick"]) == 0


def test_a_case_that_waits_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def idle() -> float:
        for _ in range(20):
            time.sleep(0.0001)
        return 1.0

    monkeypatch.setitem(
        command.GROUPS, "send", lambda quick: Group("send", "some", "ns", [Case("idle", idle)])
    )
    command.main(["send", "--quick"])
    assert "idle: waited" in capsys.readouterr().err


def test_an_unknown_group_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        command.main(["sendd"])
    assert leaving.value.code == 2
    assert "sendd" in capsys.readouterr().err


def _names(folder: Path, *words: str) -> set[str]:
    path = folder / "figures.json"
    assert command.main([*words, "--quick", "--json", str(path)]) == 0
    (group,) = json.loads(path.read_text())["groups"].values()
    return {result["name"] for result in group["results"]}


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "QUICK_ROUNDS", 1)


@pytest.mark.usefixtures("one_round")
def test_send_measures_each_way_to_a_receiver(tmp_path: Path) -> None:
    names = _names(tmp_path, "send")
    assert names >= {bars.U8_PLAIN, bars.U8_BOXED, bars.BYTES_PLAIN, bars.BYTES_BOXED, bars.U8_RECV}
    assert "asyncio.Queue, u8" in names


@pytest.mark.usefixtures("one_round")
def test_ring_measures_each_size_in_both_styles(tmp_path: Path) -> None:
    names = _names(tmp_path, "ring")
    assert names >= {
        bars.ring(size, style) for size in (1, 2, 3, 50) for style in (bars.SYNCHRONOUS, bars.ASYNCHRONOUS)
    }


@pytest.mark.usefixtures("one_round")
def test_start_measures_import_decoration_and_start(tmp_path: Path) -> None:
    assert _names(tmp_path, "start") == {bars.IMPORT, bars.DECORATE, bars.START_STOP}


def test_each_bar_belongs_to_a_case_that_is_measured() -> None:
    measured = {case.name for group in command.GROUPS.values() for case in group(True).cases}
    assert set(bars.BARS) <= measured
