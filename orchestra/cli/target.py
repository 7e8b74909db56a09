"""`MODULE:NAME` on a command line becomes an object, a plan, or an error of one line."""

import contextlib
import importlib
import os
import sys
import traceback
from types import ModuleType
from typing import Any

import orchestra
from orchestra.cli.errors import CommandError
from orchestra.decorator import plan_of
from orchestra.errors import DeclarationError
from orchestra.plan import Plan


def find(target: str) -> Any:
    """The object that `target` names. Modules of the current directory can be imported.

    What the module prints while it is imported goes to stderr, so that stdout is the command's.
    """
    module_name, names = _split(target)
    with contextlib.redirect_stdout(sys.stderr):
        found: Any = _import(module_name)
    reached = module_name
    for name in names:
        try:
            found = getattr(found, name)
        except AttributeError:
            raise CommandError(f"{_kind(found)} {reached!r} has no {name!r}") from None
        reached = f"{reached}.{name}"
    return found


def find_plan(target: str) -> Plan:
    """The plan of the orchestra class that `target` names."""
    found = find(target)
    if not isinstance(found, type):
        raise CommandError(
            f"{target!r} is no orchestra: it names an object of type {type(found).__qualname__}"
        )
    try:
        return plan_of(found)
    except DeclarationError as error:
        raise CommandError(str(error)) from None


def _split(target: str) -> tuple[str, list[str]]:
    module_name, colon, attribute = target.partition(":")
    names = attribute.split(".")
    if module_name.endswith(".py") and os.path.isfile(module_name):
        raise CommandError(f"{target!r} names a file: write {_importable(module_name)}:{attribute or 'NAME'}")
    if not colon or not all(part.isidentifier() for part in (*module_name.split("."), *names)):
        raise CommandError(f"{target!r} is no target: write MODULE:NAME, as in package.module:App")
    return module_name, names


def _importable(file: str) -> str:
    """The module that a file is when it is imported from the current directory, or else from its own."""
    path = os.path.relpath(file).removesuffix(".py")
    parts = path.split(os.sep)
    return ".".join(parts) if all(part.isidentifier() for part in parts) else parts[-1]


def _import(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise CommandError(f"there is no module {error.name!r}") from None
        raise _broken(name, error) from None
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from None


def _broken(name: str, error: BaseException) -> CommandError:
    where = "" if isinstance(error, DeclarationError | SyntaxError) else _place(error)
    return CommandError(f"module {name!r} cannot be imported: {type(error).__name__}: {error}{where}")


def _place(error: BaseException) -> str:
    """The last line of the user's own code that led to `error`."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _is_users(filename: str) -> bool:
    own = (os.path.dirname(orchestra.__path__[0] + os.sep), os.path.dirname(importlib.__file__))
    return not filename.startswith(("<frozen", *own))


def _kind(found: Any) -> str:
    return "module" if isinstance(found, ModuleType) else "object"
