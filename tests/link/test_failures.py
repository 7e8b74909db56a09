"""Errors cross as what they are, where that is known, and make nothing else."""

import pytest

from orchestra import Closed, NoReply, RemoteError
from orchestra.link import failures
from orchestra.link.wire import Failure


class Plain(Exception):
    pass


class Rich(ValueError):
    def __init__(self, code: int, *, hint: str) -> None:
        super().__init__(f"{code}: {hint}")
        self.code, self.hint = code, hint


class Own(Exception):
    made = 0

    def __new__(cls, *args: object) -> "Own":
        cls.made += 1
        return super().__new__(cls, *args)


def crossed(error: Exception) -> Exception:
    return failures.read(failures.written(1, error))


def test_what_led_to_a_no_reply_stays_over_there() -> None:
    error = NoReply("no reply to Check from 'hand': its handler raised", None, "hand")
    error.__cause__ = Plain("a")
    back = crossed(error)
    assert (type(back), str(back), back.__cause__) == (NoReply, str(error), None)


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        FileNotFoundError(2, "no such file"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        Plain("a", 1),
        Rich(3, hint="no"),
        NoReply("nobody", None, "hand"),
        Closed("closed", None, "hand"),
    ],
    ids=repr,
)
def test_known_errors_come_back_as_their_type(error: Exception) -> None:
    back = crossed(error)
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)


def test_what_is_not_known_here_is_a_remote_error() -> None:
    back = failures.read(Failure(1, "somewhere", "Strange", "what", ["what"], {}))
    assert type(back) is RemoteError
    assert (str(back), back.kind) == ("what", "Strange")


def test_no_code_of_a_type_runs() -> None:
    before = Own.made
    back = failures.read(Failure(1, __name__, "Own", "x", ["x"], {}))
    assert type(back) is RemoteError
    assert Own.made == before


@pytest.mark.parametrize(
    "name", ["SystemExit", "KeyboardInterrupt", "StopIteration", "ExceptionGroup", "object", "int"]
)
def test_nothing_but_plain_exceptions_is_made(name: str) -> None:
    assert type(failures.read(Failure(1, "builtins", name, "x", ["x"], {}))) is RemoteError


def test_arguments_that_cannot_cross_leave_the_text() -> None:
    back = crossed(Plain(object))
    assert type(back) is Plain
    assert "object" in str(back)
