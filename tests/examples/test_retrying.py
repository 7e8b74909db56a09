"""The courier: what works late works, what never works is with the dead letters, and nothing is lost."""

import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

stamina = pytest.importorskip("stamina")

from examples.retrying import DeadLetterOffice, Delivery, Parcel, Street, delivery  # noqa: E402 - it needs it
from orchestra import OrchestraError, Running, plan_of, run  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def silent() -> Generator[None, None, None]:
    stamina.instrumentation.set_on_retry_hooks([])
    yield
    stamina.instrumentation.set_on_retry_hooks(None)


def test_it_prints_each_retry_and_what_came_of_each_parcel() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.retrying"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("again")] == [
        "ledger: Ada opened at ring 1",
        "ledger: Bob opened at ring 3",
        "dead letter: Parcel(to='Nobody') to 'courier' failed: NotAtHome('Nobody')",
        "ledger: Cleo opened at ring 2",
        "4 parcels, 0 failures; one took longer than 0.1 s",
    ]
    again = [re.fullmatch(r"again in ([\d.]+) s: NotAtHome\('(\w+)'\)", line) for line in lines]
    assert [(float(found[1]), found[2]) for found in again if found] == [
        (0.02, "Bob"),
        (0.04, "Bob"),
        (0.02, "Nobody"),
        (0.04, "Nobody"),
        (0.08, "Nobody"),
        (0.02, "Cleo"),
    ]


def test_every_parcel_is_received_or_a_dead_letter() -> None:
    street = Street({f"door {n}": n for n in range(1, 8)})
    office = DeadLetterOffice()
    app, courier = delivery(street, office)

    async def bring(running: Running) -> None:
        for n in range(1, 8):
            await running.send(Parcel(f"door {n}"))

    run(app, bring, dead_letters=office)
    assert [letter.message.to for letter in office.letters] == ["door 5", "door 6", "door 7"]
    assert courier.meters()["Parcel"].count == 7
    assert set(street.rings.values()) == {1, 2, 3, 4}, "four attempts at most"


def test_another_error_is_still_a_failure() -> None:
    class Broken(Street):
        async def ring(self, name: str) -> int:
            raise RuntimeError("no such street")

    office = DeadLetterOffice()
    app, courier = delivery(Broken({}), office)

    async def bring(running: Running) -> None:
        await running.send(Parcel("Ada"))

    with pytest.raises(OrchestraError, match="subsystem 'courier' of Delivery failed: RuntimeError"):
        run(app, bring, dead_letters=office)
    assert [letter.reason for letter in office.letters] == ["failed"]
    assert courier.meters()["Parcel"].failures == 1


def test_it_cannot_lock_up() -> None:
    assert plan_of(Delivery).graph.cycles == ()
