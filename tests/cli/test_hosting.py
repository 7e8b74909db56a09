"""Which instance hosts the named subsystems: made of a class, an instance or a function."""

import sys
from pathlib import Path
from typing import Any

import pytest

from orchestra.cli.errors import CommandError
from orchestra.cli.hosting import part_of
from orchestra.remote import Elsewhere

MODULE = '''
"""A shop of two parts."""
from orchestra import Actor, orchestra, subsystem
from orchestra.remote import Remote


class Task: ...


class Done: ...


class Halt: ...


class Boss(Actor):
    def handle(self, ctx, message: Done) -> None: ...


class Hand(Actor):
    def __init__(self, strength: int = 1) -> None:
        self.strength = strength

    def handle(self, ctx, message: Task) -> None: ...


class Picky(Hand):
    def __init__(self, strength: int) -> None:
        super().__init__(strength)


@orchestra(signal=Halt, event=Halt)
class Shop:
    boss: Boss = subsystem(consumes=Done, sends=[Task])
    hand: Hand = subsystem(consumes=Task, sends=[Done])
    title: str = "shop"


@orchestra(signal=Halt, event=Halt)
class Strict:
    boss: Boss = subsystem(consumes=Done, sends=[Task])
    hand: Picky = subsystem(consumes=Task, sends=[Done])


@orchestra(signal=Halt, event=Halt)
class Titled:
    boss: Boss = subsystem(consumes=Done, sends=[Task])
    hand: Hand = subsystem(consumes=Task, sends=[Done])
    title: str


asked = []


def make(hosts):
    asked.append(hosts)
    return Shop(boss=Boss(), hand=Hand(7) if "hand" in hosts else Remote(), title="made")


def whole():
    return Shop(boss=Boss(), hand=Hand(8))


def optional(hosts=None):
    return Shop(boss=Boss(), hand=Hand(9 if hosts else 0))


def many(one, two):
    return whole()


def remote():
    return Shop(boss=Boss(), hand=Remote())


def key(message):
    return message


def by_key():
    return Shop(boss=Boss(), hand=Remote(by=key))


instance = whole()
number = 7
'''


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "parts_of_shop.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda name, *hosts: part_of(f"parts_of_shop:{name}", hosts)
    sys.modules.pop("parts_of_shop", None)


def elsewhere(app: Any) -> list[str]:
    return [name for name in type(app).__orchestra__.subsystems if isinstance(getattr(app, name), Elsewhere)]


def test_a_class_is_made_with_fresh_instances(parts: Any) -> None:
    app = parts("Shop", "hand")
    assert elsewhere(app) == ["boss"]
    assert app.hand.strength == 1
    assert parts("Shop", "hand").hand is not app.hand
    assert elsewhere(parts("Shop", "hand", "boss")) == []
    assert elsewhere(parts("Strict", "boss")) == ["hand"]


def test_a_function_may_be_told_what_is_hosted(parts: Any) -> None:
    app = parts("make", "hand")
    assert (app.hand.strength, app.title, elsewhere(app)) == (7, "made", ["boss"])
    assert sys.modules["parts_of_shop"].asked == [frozenset({"hand"})]
    assert parts("optional", "hand").hand.strength == 9


def test_a_function_may_make_all_of_it(parts: Any) -> None:
    app = parts("whole", "hand")
    assert (app.hand.strength, elsewhere(app)) == (8, ["boss"])


def test_an_instance_stays_as_it_is(parts: Any) -> None:
    app = parts("instance", "boss")
    whole = sys.modules["parts_of_shop"].instance
    assert app is not whole
    assert app.boss is whole.boss
    assert (elsewhere(app), elsewhere(whole)) == (["hand"], [])


def test_how_a_remote_field_is_shared_stays(parts: Any) -> None:
    app = parts("by_key", "boss")
    assert app.hand.by is sys.modules["parts_of_shop"].key


@pytest.mark.parametrize(
    ("name", "hosts", "text"),
    [
        ("Shop", ["hands"], "Shop has 'boss', 'hand' to host; 'hands' is no subsystem of it"),
        ("Shop", ["title"], "'title' is no subsystem of it"),
        ("Strict", ["hand"], "Strict.hand is Picky, which cannot be made without arguments"),
        ("Titled", ["hand"], "cannot be made with its subsystems alone"),
        ("many", ["hand"], "needs arguments"),
        ("remote", ["hand"], "gave Remote\\(\\) for 'hand'"),
        ("number", ["hand"], "is no orchestra"),
        ("Task", ["hand"], "Task"),
        ("key", ["hand"], "gave a frozenset, not an orchestra"),
    ],
)
def test_what_cannot_be_hosted(parts: Any, name: str, hosts: list[str], text: str) -> None:
    with pytest.raises(CommandError, match=text):
        parts(name, *hosts)
