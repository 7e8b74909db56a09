"""Misspelt hooks are hinted at, and nothing that only looks a little like one."""

from typing import Any

import pytest

from orchestra import Actor, Priority, Subsystem, handles, orchestra, plan_of, subsystem
from orchestra.cli.findings import Level, findings_of
from orchestra.cli.hooks import misspelt_hooks


class Job: ...


class Halt: ...


def worker(**methods: Any) -> type:
    return type("Worker", (Actor,), {"handle": lambda self, ctx, message: None, **methods})


def hints(kind: Any) -> list[str]:
    @orchestra(signal=Halt, event=Halt)
    class App:
        first: kind = subsystem(consumes=Job)

    return list(misspelt_hooks(plan_of(App)))


def one(self: Any, ctx: Any) -> None: ...


async def two(self: Any, ctx: Any, more: Any) -> None: ...


@pytest.mark.parametrize(
    ("name", "method", "hook"),
    [
        ("start", one, "started"),
        ("on_start", one, "started"),
        ("on_started", one, "started"),
        ("strated", one, "started"),
        ("stop", one, "stopped"),
        ("on_stop", one, "stopped"),
        ("stoped", one, "stopped"),
        ("on_singal", two, "on_signal"),
        ("on_signals", two, "on_signal"),
        ("onsignal", two, None),
        ("deadline_pased", two, "deadline_passed"),
        ("on_deadline", two, "deadline_passed"),
        ("prioritiy", staticmethod(lambda message: Priority.HIGH), "priority"),
        ("start", lambda self: None, None),
        ("start", 5, None),
        ("_start", one, None),
        ("restarted", one, None),
        ("steps", one, None),
        ("on_reply", two, None),
    ],
)
def test_a_name_that_is_like_that_of_a_hook_is_hinted_at(name: str, method: Any, hook: str | None) -> None:
    told = [f"Worker.{name} is never called by itself: is the hook {hook} meant?"]
    assert hints(worker(**{name: method})) == (told if hook else [])


def test_nothing_is_said_where_the_class_has_the_hook_too() -> None:
    assert hints(worker(start=one, started=one)) == []


def test_nothing_is_said_of_a_handler_nor_of_a_run() -> None:
    class Handles(Actor):
        @handles(Job)
        def on_stop(self, ctx: Any, message: Job) -> None: ...

    class Runs(Subsystem):
        async def run(self, ctx: Any) -> None: ...
        def start(self, ctx: Any) -> None: ...

    assert hints(Handles) == hints(Runs) == []


def test_an_on_event_of_an_actor_is_told_where_events_go() -> None:
    told = ["Worker.on_event is never called by itself: events go to App.on_event"]
    assert hints(worker(on_event=two)) == told
    assert hints(worker(on_event=one)) == []


@pytest.mark.parametrize(
    ("name", "method", "hinted"),
    [
        ("onevent", two, True),
        ("on_events", two, True),
        ("on_evnet", two, True),
        ("event", two, True),
        ("on_event_done", one, False),
        ("onevent", one, False),
        ("prevent", two, False),
        ("_on_event", two, False),
    ],
)
def test_a_name_that_is_like_on_event_is_hinted_at_in_the_orchestra(
    name: str, method: Any, hinted: bool
) -> None:
    told = [f"App.{name} is never called by itself: is the hook on_event meant?"]
    body = {"__annotations__": {"first": worker()}, "first": subsystem(consumes=Job), name: method}
    app = orchestra(signal=Halt, event=Halt)(type("App", (), {**body, "__module__": __name__}))
    assert list(misspelt_hooks(plan_of(app))) == (told if hinted else [])
    had = orchestra(signal=Halt, event=Halt)(type("App", (), {**body, "on_event": two, name: method}))
    assert list(misspelt_hooks(plan_of(had))) == []


def test_a_method_of_a_base_is_told_once_for_each_class_and_is_an_info() -> None:
    class Heir(worker(start=one)):  # type: ignore[misc]
        pass

    @orchestra(signal=Halt, event=Halt)
    class App:
        first: Heir = subsystem(consumes=Job)
        second: Heir = subsystem(sends=[Job])

    told = [each for each in findings_of(plan_of(App)) if "hook" in each.text]
    assert [(each.level, each.text) for each in told] == [
        (Level.INFO, "Heir.start is never called by itself: is the hook started meant?")
    ]
