"""Runs of the command, each in a process of its own, in a folder with an orchestra module."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Command = Callable[..., "subprocess.CompletedProcess[str]"]

SHOP = '''
"""A small orchestra."""
import math

import msgspec

from orchestra import (
    Actor, Block, BlockFirst, Context, Drop, DropOldest, Fail, Priority, Subsystem, orchestra, subsystem
)

print("the module speaks while it is imported")


class Order(msgspec.Struct):
    quantity: int


class Basket(msgspec.Struct):
    items: list[int]
    note: object


class Receipt(msgspec.Struct):
    lines: list[str]


class Halt(msgspec.Struct, frozen=True):
    pass


class Desk(Actor):
    def handle(self, ctx, message): ...


class Till(Actor):
    def handle(self, ctx, message): ...


class Teller(Subsystem):
    async def run(self, ctx):
        print("the teller ran")


@orchestra(signal=Halt, event=Halt, boxed_messages=True)
class Shop:
    desk: Desk = subsystem(consumes=Order | Basket)


@orchestra(signal=Halt, event=Halt)
class Circle:
    desk: Desk = subsystem(consumes=Order, sends=[Receipt])
    till: Till = subsystem(consumes=Receipt, sends=[Order])


@orchestra(signal=Halt, event=Halt)
class Broken:
    desk: Desk = subsystem(consumes=Order, sends=[Receipt])
    till: Till = subsystem(consumes=Receipt, sends=[Order], overflow=Fail())


@orchestra(signal=Halt, event=Halt)
class Wide:
    desk: Desk = subsystem(consumes=Order, message_capacity=math.inf)
    teller: Teller = subsystem(sends=[Order])


@orchestra(signal=Halt, event=Halt)
class Booth:
    teller: Teller = subsystem(consumes=Order)
    name: str = "booth"


@orchestra(signal=Halt, event=Halt)
class Leaky:
    desk: Desk = subsystem(
        consumes=Order,
        sends=[Receipt],
        evict_after=5,
        overflow={
            Priority.REAL_TIME: Fail(),
            Priority.HIGH: BlockFirst(),
            Priority.NORMAL: Block(),
            Priority.DATA_LOW: DropOldest(),
            Priority.BACKGROUND: Drop(),
        },
        message_capacity={
            Priority.REAL_TIME: 1,
            Priority.HIGH: 1,
            Priority.NORMAL: 1,
            Priority.DATA_LOW: 1,
            Priority.BACKGROUND: math.inf,
        },
    )
    till: Till = subsystem(consumes=Receipt, sends=[Order], overflow=Drop(wait_before_drop=0.005))
    later: Till = subsystem(consumes=Basket, overflow=Drop(), wip=True)
    teller: Teller = subsystem(sends=[Basket], overflow=Drop())


class Heir(Circle):
    """Adds nothing, so the plan is that of Circle."""


class Plain: ...


number = 7


def booth():
    return Booth(teller=Teller())


def needs(argument):
    return booth()


def nothing():
    return None


def fails():
    raise RuntimeError("from the user")


class Spills(Actor):
    def started(self, ctx):
        try:
            self.pour()
        except KeyError as error:
            raise ExceptionGroup("spilt", [error])

    def pour(self):
        raise KeyError("the jug")

    def handle(self, ctx, message): ...


@orchestra(signal=Halt, event=Halt)
class Sink:
    spills: Spills = subsystem(consumes=Order)


def sink():
    return Sink(spills=Spills())
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    return tmp_path


@pytest.fixture
def command(folder: Path) -> Command:
    def run(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "orchestra", *words],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            timeout=50,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **environment},
        )

    return run
