"""`Restart` and `deferred`: what they take, what they refuse, and how a factory is called."""

import math
import pickle
from functools import partial
from typing import Any

import pytest

from orchestra import Restart, Running, deferred
from orchestra.runtime.lives import Lives
from orchestra.supervision import Deferred


def test_the_defaults_are_those_of_the_contract() -> None:
    assert Restart() == Restart(limit=3, within=10.0, backoff=0.1)
    assert pickle.loads(pickle.dumps(Restart(limit=2))) == Restart(limit=2)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(ValueError) as refused:
        Restart(limit=limit)
    assert str(refused.value) == f"Restart: limit is {limit}: give a whole number of restarts, 1 or more"


@pytest.mark.parametrize("limit", [1.0, True, "3", None])
def test_a_limit_that_is_no_whole_number_is_refused(limit: Any) -> None:
    with pytest.raises(TypeError) as refused:
        Restart(limit=limit)
    assert str(refused.value) == f"Restart: limit is {limit!r}: give a whole number of restarts, 1 or more"


@pytest.mark.parametrize("within", [0, -1.0, math.nan])
def test_a_window_of_no_length_is_refused(within: float) -> None:
    with pytest.raises(ValueError) as refused:
        Restart(within=within)
    told = f"Restart: within is {within!r}: give a number of seconds above 0, or math.inf"
    assert str(refused.value) == told


@pytest.mark.parametrize("within", [True, "10", None])
def test_a_window_that_is_no_number_is_refused(within: Any) -> None:
    with pytest.raises(TypeError, match="Restart: within is"):
        Restart(within=within)


def test_a_window_without_end_is_taken() -> None:
    lives = Lives(Restart(limit=1, within=math.inf))
    assert lives.again(0.0) == 0.1
    assert lives.told() == "restart 1 of 1"
    assert lives.again(1e9) is None


@pytest.mark.parametrize("backoff", [-0.1, math.inf, math.nan])
def test_a_backoff_that_is_negative_or_without_end_is_refused(backoff: float) -> None:
    with pytest.raises(ValueError) as refused:
        Restart(backoff=backoff)
    assert str(refused.value) == (
        f"Restart: backoff is {backoff!r}: give a finite number of seconds, 0 or more, or a function"
    )


@pytest.mark.parametrize("backoff", [True, "0.1", None])
def test_a_backoff_that_is_no_number_is_refused(backoff: Any) -> None:
    with pytest.raises(TypeError, match="Restart: backoff is"):
        Restart(backoff=backoff)


def test_a_backoff_function_is_given_the_number_of_the_restart_within_the_time() -> None:
    lives = Lives(Restart(limit=3, within=10, backoff=lambda n: 0.1 * 2**n))
    assert [lives.again(now) for now in (0.0, 1.0, 2.0, 3.0)] == [0.2, 0.4, 0.8, None]
    assert lives.again(10.5) == 0.8, "the first is out of the window"
    assert lives.again(30.0) == 0.2


@pytest.mark.parametrize(("value", "kind"), [(-1, ValueError), (math.inf, ValueError), ("1", TypeError)])
def test_a_backoff_function_that_gives_nonsense_is_told(value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"Restart: backoff\(1\) gave"):
        Lives(Restart(backoff=lambda n: value)).again(0.0)


async def later(n: int) -> float:
    return 0.1


@pytest.mark.parametrize(
    ("backoff", "told"),
    [
        (lambda: 0.1, "cannot be called with the number of the restart alone: give a function such as "),
        (lambda n, m: 0.1, "cannot be called with the number of the restart alone: give a function such as "),
        (lambda *, n: 0.1, "cannot be called with the number of the restart alone: give a function such as "),
        (later, "is asynchronous: give a plain function"),
    ],
)
def test_a_backoff_function_that_does_not_fit_is_refused_when_it_is_declared(backoff: Any, told: str) -> None:
    with pytest.raises(TypeError) as refused:
        Restart(backoff=backoff)
    assert str(refused.value).startswith(f"Restart: backoff is {backoff!r}, which {told}")


@pytest.mark.parametrize("backoff", [lambda n, factor=2: factor * n, lambda *numbers: 1, math.sqrt, float])
def test_a_backoff_function_that_takes_the_number_is_taken(backoff: Any) -> None:
    assert Restart(backoff=backoff).delay(1) == backoff(1)


def test_the_window_slides() -> None:
    lives = Lives(Restart(limit=2, within=10))
    assert [lives.again(now) is not None for now in (0, 10, 10.5, 11, 19.9, 20.4)] == [
        True,
        True,
        True,
        False,
        False,
        True,
    ]


def test_without_a_policy_there_is_no_restart() -> None:
    assert Lives(None).again(0.0) is None


class Made:
    def __init__(self, size: int = 3, *, extra: str = "") -> None:
        self.size = size


class Needs:
    def __init__(self, running: Any) -> None:
        self.running = running


def held(made: Any) -> Deferred:
    assert isinstance(made, Deferred)
    return made


def test_what_can_be_called_with_nothing_is() -> None:
    handle: Any = object()
    assert held(deferred(Made))(handle).size == 3
    assert held(deferred(partial(Made, 5)))(handle).size == 5
    assert held(deferred(lambda: 7))(handle) == 7
    assert held(deferred(lambda *everything: everything))(handle) == ()
    assert held(deferred(dict))(handle) == {}


def test_what_needs_one_argument_gets_the_running_handle() -> None:
    handle: Any = object()
    assert held(deferred(Needs))(handle).running is handle
    assert held(deferred(lambda running: running))(handle) is handle
    assert held(deferred(lambda running, size=3: (running, size)))(handle) == (handle, 3)


class Quoted:
    def __init__(self, handle: "Running") -> None:
        self.handle = handle


def by_class(handle: Running) -> Running:
    return handle


def test_an_argument_of_any_name_that_is_annotated_gets_the_running_handle() -> None:
    handle: Any = object()
    assert held(deferred(Quoted))(handle).handle is handle
    assert held(deferred(by_class))(handle) is handle


class OfPath:
    def __init__(self, path: str) -> None:
        self.path = path


@pytest.mark.parametrize(("make", "name"), [(OfPath, "path"), (lambda r: Needs(r), "r")])
def test_one_argument_that_is_not_said_to_be_the_running_handle_is_refused(make: Any, name: str) -> None:
    with pytest.raises(TypeError) as refused:
        deferred(make)
    assert str(refused.value) == (
        f"deferred would give the running orchestra as {name!r} of {make!r}: if that is meant, "
        "name it 'running' or annotate it with Running; if not, write deferred(lambda: ...)"
    )


@pytest.mark.parametrize("make", [lambda one, two: None, lambda *, name: None])
def test_what_can_be_called_in_neither_way_is_refused(make: Any) -> None:
    with pytest.raises(TypeError, match=r"deferred calls what it is given with nothing or with the running"):
        deferred(make)


def test_an_instance_is_refused() -> None:
    with pytest.raises(TypeError, match="deferred takes a function that makes a subsystem, or a class"):
        deferred(Made())  # type: ignore[call-overload]
