"""The command, in short runs."""

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import backlog, bars, box, link, memory, peers, ring, scale, send, thread
from benchmarks.harness import Case, Group, Lead, measure


@pytest.fixture
def one_case(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let `send` be one case of the given cost in ms, with a bar of 150 ms."""

    def use(cost: float) -> None:
        group = Group("send", "some", "ms", [Case(bars.IMPORT, lambda: cost)], relative=False)
        monkeypatch.setitem(command.GROUPS, "send", lambda quick: [group])

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

    def waits_told(*, wall: bool) -> bool:
        group = Group("send", "some", "ns", [Case("idle", idle)], wall=wall)
        monkeypatch.setitem(command.GROUPS, "send", lambda quick: [group])
        command.main(["send", "--quick"])
        return "idle: waited" in capsys.readouterr().err

    assert waits_told(wall=False)
    assert not waits_told(wall=True), "a clock on the wall counts them"


@pytest.mark.parametrize(("rate", "status"), [(960.0, 0), (490.0, 0), (470.0, 1)])
def test_a_rate_below_its_bar_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, rate: float, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    name = bars.beside("Drop", bars.PACED)
    cases = [Case("alone", lambda: 1000.0, against="alone"), Case(name, lambda: rate, against="alone")]
    monkeypatch.setitem(command.GROUPS, "send", lambda quick: [Group("send", "some", "a second", cases)])
    assert command.main(["send", "--quick", "--bars", "2"]) == status
    assert ("is less than 1/2 of its bar of 0.95" in capsys.readouterr().err) is bool(status)


def test_an_unknown_group_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        command.main(["sendd"])
    assert leaving.value.code == 2
    assert "sendd" in capsys.readouterr().err


def _names(folder: Path, *words: str) -> set[str]:
    path = folder / "figures.json"
    assert command.main([*words, "--quick", "--json", str(path)]) == 0
    groups = json.loads(path.read_text())["groups"].values()
    return {result["name"] for group in groups for result in group["results"]}


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "QUICK_ROUNDS", 1)


@pytest.mark.usefixtures("one_round")
def test_send_measures_each_way_to_a_receiver(tmp_path: Path) -> None:
    names = _names(tmp_path, "send")
    assert names >= {bars.U8_PLAIN, bars.U8_BOXED, bars.BYTES_PLAIN, bars.BYTES_BOXED, bars.U8_RECV}
    assert names >= {bars.U8_TRY, *(bars.sent(peer.name) for peer in peers.that_can("send"))}


@pytest.mark.usefixtures("one_round")
def test_ring_measures_each_size_in_both_styles(tmp_path: Path) -> None:
    names = _names(tmp_path, "ring")
    assert names >= {
        bars.ring(size, style) for size in (1, 2, 3, 50) for style in (bars.SYNCHRONOUS, bars.ASYNCHRONOUS)
    }


@pytest.mark.usefixtures("one_round")
def test_start_measures_import_decoration_and_start(tmp_path: Path) -> None:
    assert _names(tmp_path, "start") >= {bars.IMPORT, bars.DECORATE, bars.START_STOP}


@pytest.mark.usefixtures("one_round")
def test_priority_measures_each_backlog(tmp_path: Path) -> None:
    assert _names(tmp_path, "priority") == {
        name(backlog) for backlog in (10, 1_000, 100_000) for name in (bars.urgent, bars.urgent_by_queue)
    }


@pytest.mark.usefixtures("one_round")
def test_thread_measures_each_way_beside_the_libraries_for_that(tmp_path: Path) -> None:
    ways = (bars.TO_THREAD, bars.FROM_THREAD, bars.THERE_AND_BACK)
    beside = [f", {peer.name}" for peer in peers.that_can("two_sided")]
    assert _names(tmp_path, "thread") == {f"{way}{other}" for way in ways for other in ("", *beside)}


@pytest.mark.usefixtures("one_round")
def test_ask_measures_each_asker_beside_futures(tmp_path: Path) -> None:
    names = _names(tmp_path, "ask")
    assert names >= {bars.FUTURES, bars.asks("an Actor", "synchronous"), bars.asks("a run", "asynchronous")}


@pytest.mark.usefixtures("one_round")
def test_box_measures_sends_broadcasts_seals_and_backlogs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(command.GROUPS, "box", lambda quick: box.groups(count=100, waiting=200))
    names = _names(tmp_path, "box")
    assert names >= {bars.box_send(bars.BUFFER, way) for way in (bars.UNBOXED, bars.BOXED)}
    assert names >= {bars.broadcast(16, way) for way in (bars.UNBOXED, bars.BOXED, bars.SEALED_AHEAD)}
    assert names >= {bars.EACH_SEALED, bars.ONCE_SEALED}
    assert names >= {
        bars.backlog(kind, what)
        for kind in (bars.SLOTTED, bars.STRUCT, bars.WITHOUT_GC, bars.IN_BOXES)
        for what in (bars.TIME, bars.MEMORY, bars.PAUSE)
    }


@pytest.mark.usefixtures("one_round")
def test_fanout_measures_each_size_and_peers_that_can(tmp_path: Path) -> None:
    names = _names(tmp_path, "fanout")
    assert names >= {bars.fanout(size) for size in (1, 2, 4, 8, 16)}
    assert bars.fanout(8, "asyncio.Queue") in names


@pytest.mark.parametrize(("waiting", "judged"), [(bars.FULL_BACKLOG, True), (20_000, False)])
def test_a_backlog_is_held_to_its_bars_only_at_the_size_they_are_for(waiting: int, judged: bool) -> None:
    cases = [case for group in backlog.groups(waiting) for case in group.cases]
    assert {case.judged for case in cases} == {judged}


@pytest.mark.parametrize(("count", "judged"), [(bars.FULL_LINKED, True), (10_000, False)])
def test_the_rate_of_a_link_is_held_to_its_bar_only_in_a_full_run(count: int, judged: bool) -> None:
    rates, *_ = link.groups(count=count, million=1, seconds=1, rounds=1)
    assert {case.judged for case in rates.cases if case.name in bars.AT_LEAST} == {judged}


@pytest.mark.parametrize("missing", [[], ["culsans"]])
def test_without_the_libraries_that_a_bar_is_for_there_is_no_verdict(
    missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = [peer for peer in peers.found() if peer.name not in missing]
    monkeypatch.setattr(peers, "found", lambda: there)
    monkeypatch.setattr(peers, "missing", lambda: missing)
    cases = {case.name: case for case in thread.group(count=1).cases}
    assert cases[bars.TO_THREAD].judged is not bool(missing)
    leads = {lead.name: lead for group in (send.group(count=1), ring.group(laps=1)) for lead in group.leads}
    assert leads[bars.HAND_MADE_SEND].judged
    assert leads[bars.FASTEST_SEND].judged is not bool(missing)
    assert leads[bars.fastest_ring(2)].judged is not bool(missing)


def test_memory_measures_what_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_in_a_process", lambda what, count: float(len(what)))
    assert _names(tmp_path, "memory") >= {bars.IDLE_SUBSYSTEM, bars.QUEUED, bars.START_MANY, bars.IDLE_CPU}


@pytest.mark.parametrize("what", sorted(set(memory.FIGURES) - {"idle-pykka", "idle-xoscar", "processor"}))
def test_each_figure_of_memory_is_found(
    what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory, "EACH_CLASS", 10)
    try:
        memory.main([what, "20"])
    finally:
        tracemalloc.stop()
    assert float(capsys.readouterr().out) >= 0


def test_scale_measures_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "AMONG", (2, 5))
    monkeypatch.setattr(bars, "BEHIND", (1, 50))
    monkeypatch.setattr(bars, "DECORATED", (3, 6))
    for group in scale.groups(count=100, rounds=1):
        found = measure(group, 1)
        assert all(result.cost > 0 for result in found.results)
        assert found.results[0].ratio == 1.0


@pytest.mark.usefixtures("one_round")
def test_link_measures_each_capacity_beside_plain_zenoh(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    groups = link.groups(count=500, million=500, seconds=0.1, rounds=1)
    monkeypatch.setitem(command.GROUPS, "link", lambda quick: groups)
    names = _names(tmp_path, "link")
    assert names >= {bars.PLAIN_ZENOH, *(bars.linked(capacity) for capacity in bars.LINKED)}
    assert names >= {bars.LINKED_ASK, bars.URGENT_HALF, bars.URGENT_MOST, bars.RECOVERY, bars.FULLEST}


def test_the_groups_of_one_name_go_into_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    groups = [Group(name, name, "ms", [Case(name, lambda: 1.0)], relative=False) for name in ("one", "two")]
    monkeypatch.setitem(command.GROUPS, "send", lambda quick: groups)
    monkeypatch.setattr(command, "ROUNDS", 1)
    monkeypatch.setattr(command.report, "default_path", lambda name: tmp_path / f"{name}.json")
    assert command.main(["send"]) == 0
    (path,) = tmp_path.iterdir()
    assert path.name == "send.json"
    assert set(json.loads(path.read_text())["groups"]) == {"one", "two"}


def test_each_bar_belongs_to_a_case_that_is_measured() -> None:
    every = [group for groups in command.GROUPS.values() for group in groups(True)]
    parts: list[Case | Lead] = [part for group in every for part in (*group.cases, *group.leads)]
    measured = {part.name for part in parts}
    assert {*bars.BARS, *bars.AT_LEAST} <= measured
    assert not set(bars.BARS) & set(bars.AT_LEAST)
