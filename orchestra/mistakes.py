"""A wrong declaration becomes a `DeclarationError` that says where it stands."""

import ast
import inspect
import linecache
from collections.abc import Iterator
from typing import Any

import attrs

from orchestra.errors import DeclarationError


class Wrong(Exception):
    """A mistake, told without its place. `fields` are those it concerns; the first one is pointed at."""

    def __init__(self, text: str, *fields: str) -> None:
        super().__init__(text)
        self.text = text
        self.fields = fields


@attrs.frozen
class Place:
    """Where a class is decorated: the file and the line of the decorator."""

    file: str
    line: int


def located(cls: Any, place: Place | None, wrong: Wrong) -> DeclarationError:
    """Turn a mistake in `cls` into the error to raise. Source is read here only, when it is needed."""
    file, line = _find(cls, place, wrong.fields[0] if wrong.fields else None)
    return DeclarationError(f"{wrong.text}, at {file}:{line}")


def _find(cls: Any, place: Place | None, field: str | None) -> tuple[str, int]:
    if not isinstance(cls, type):
        return (place.file, place.line) if place else ("<unknown>", 0)
    own = _class_node(cls, place)
    if own is None:
        return (place.file, place.line) if place else ("<unknown>", 0)
    if field is None:
        return own[0], own[1].lineno
    for owner in cls.__mro__[:-1]:
        found = own if owner is cls else _class_node(owner, None)
        line = _field_line(found[1], field) if found else None
        if found and line:
            return found[0], line
    return own[0], own[1].lineno


def _class_node(cls: type, place: Place | None) -> tuple[str, ast.ClassDef] | None:
    """The file of a class and its node there: the one around the decorating line, else the last so named."""
    file = place.file if place else _file_of(cls)
    if file is None:
        return None
    nodes = [node for name, node in _classes(file) if name == cls.__qualname__]
    line = place.line if place else getattr(cls, "__firstlineno__", 0)
    around = [node for node in nodes if _first_line(node) <= line <= (node.end_lineno or node.lineno)]
    if around or nodes:
        return file, (around or nodes)[-1]
    return _class_node(cls, None) if place and _file_of(cls) not in (None, file) else None


def _file_of(cls: type) -> str | None:
    try:
        return inspect.getsourcefile(cls)
    except (TypeError, OSError):
        return None


def _classes(file: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class in a file, with its qualified name."""
    linecache.checkcache(file)
    try:
        waiting: list[tuple[str, ast.AST]] = [("", ast.parse("".join(linecache.getlines(file))))]
    except (SyntaxError, ValueError):
        return
    while waiting:
        prefix, parent = waiting.pop(0)
        for node in ast.iter_child_nodes(parent):
            inner = prefix
            if isinstance(node, ast.ClassDef):
                yield prefix + node.name, node
                inner = f"{prefix}{node.name}."
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{prefix}{node.name}.<locals>."
            waiting.append((inner, node))


def _first_line(node: ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _field_line(node: ast.ClassDef, field: str) -> int | None:
    """The line of the last assignment to `field` in a class body, also within `if` and the like."""
    line = None
    waiting: list[ast.stmt] = list(node.body)
    while waiting:
        statement = waiting.pop(0)
        one = [getattr(statement, "target", None)]
        targets = statement.targets if isinstance(statement, ast.Assign) else one
        if any(isinstance(target, ast.Name) and target.id == field for target in targets):
            line = statement.lineno
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == field:
            line = statement.lineno
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
    return line
