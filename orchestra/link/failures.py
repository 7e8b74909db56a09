"""Exceptions as they cross. One comes back as its own type where that is known to be one here.

Nothing is imported and no code of a type runs: a type is looked up among the exceptions that exist already,
by name, and the error is made as a plain exception of it, with the arguments and attributes that crossed.
"""

import builtins
from collections.abc import Iterator
from typing import Any

import orchestra.errors
from orchestra.errors import NoReply, OrchestraError, RemoteError
from orchestra.link.exact import Unfit, from_tree, to_tree
from orchestra.link.wire import Failure, write_control

_NEVER = (StopIteration, StopAsyncIteration, BaseExceptionGroup)


def written(number: int, error: BaseException) -> Failure:
    """An error as it crosses; arguments and attributes that cannot are left out."""
    try:
        failure = _whole(number, error)
        write_control(failure)
    except Exception:  # its text fails, or msgpack does not carry it: half a surrogate pair, say
        return _plain(number, error)
    return failure


def _whole(number: int, error: BaseException) -> Failure:
    kind = type(error)
    attributes: dict[Any, Any] = vars(error)
    state = {
        name: tree
        for name, value in attributes.items()
        if isinstance(name, str) and (tree := _tree(value)) is not _NONE
    }
    args = [_tree(argument) for argument in error.args]
    text = str(error)
    if isinstance(error, OrchestraError) or any(argument is _NONE for argument in args):
        args = [text]
    return Failure(number, kind.__module__, kind.__qualname__, text, args, state)


def _plain(number: int, error: BaseException) -> Failure:
    """What can be told of an error in any case: its type, and its text as far as there is one."""
    kind = type(error)
    try:
        text = str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:
        text = f"a {kind.__qualname__} whose text cannot be told"
    return Failure(number, kind.__module__, kind.__qualname__, text, [text], {})


_NONE: Any = object()


def _tree(value: Any) -> Any:
    try:
        return to_tree(value)
    except Unfit:
        return _NONE


def read(failure: Failure) -> Exception:
    """The error that crossed: of its own type where that exists here, else a `RemoteError`."""
    kind = _known(failure.module, failure.kind)
    if kind is not None:
        try:
            return _made(kind, failure)
        except Exception:
            pass
    return RemoteError(failure.text, failure.kind)


def _made(kind: type[Exception], failure: Failure) -> Exception:
    args = tuple(from_tree(tree) for tree in failure.args)
    state = {name: from_tree(tree) for name, tree in failure.state.items()}
    if kind.__module__ == builtins.__name__:
        error = kind(*args)
    else:
        base = next(each for each in kind.__mro__ if each.__module__ == builtins.__name__)
        error = base.__new__(kind, *args)
        error.args = args
        if issubclass(kind, orchestra.errors.SendError | NoReply):
            state = {"message": None, "subsystem": None} | state
        error.__dict__.update(state)
    if type(error) is not kind or str(error) != failure.text:
        raise Unfit("it would be another error")
    return error


def _known(module: str, name: str) -> type[Exception] | None:
    """The type of this name: a builtin, or one that was declared in this process."""
    found = [kind for kind in _below(Exception) if kind.__qualname__ == name and not issubclass(kind, _NEVER)]
    same = [kind for kind in found if kind.__module__ == module]
    main = [kind for kind in found if "__main__" in (kind.__module__, module)]
    best = same or main
    if len(best) != 1 or best[0].__new__ not in _PLAIN_NEW:
        return None
    return best[0]


def _below(kind: type[Exception]) -> Iterator[type[Exception]]:
    seen: set[type[Exception]] = set()
    ahead = [kind]
    while ahead:
        one = ahead.pop()
        if one not in seen:
            seen.add(one)
            ahead += type.__subclasses__(one)
            yield one


_PLAIN_NEW = frozenset(
    kind.__new__
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, BaseException)
)
