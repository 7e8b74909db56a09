"""Writing Python source: indentation, names that do not clash, and functions that can be inspected."""

import builtins
import keyword
import linecache
import re
import threading
import weakref
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

_registering = threading.Lock()


class Names:
    """Hands out identifiers, each once; none of them is a keyword or hides a builtin.

    `taken` are names that are not to be handed out at all.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*taken, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
        self._nested: set[str] = set()
        self._outer: Names | None = None

    def nested(self) -> "Names":
        """Names for the inside of one function: no name of this scope, now or later, is among them.

        Two functions may use the same names.
        """
        inner = Names()
        inner._outer = self
        return inner

    def unique(self, wanted: str) -> str:
        """Return `wanted`, made an identifier, or the first free one of `wanted_2`, `wanted_3`, ..."""
        stem = re.sub(r"\W", "_", wanted, flags=re.ASCII) or "_"
        if stem[0].isdigit():
            stem = f"_{stem}"
        name, count = stem, 1
        while self._uses(name) or name in self._nested:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        outer = self._outer
        while outer is not None:
            outer._nested.add(name)
            outer = outer._outer
        return name

    def _uses(self, name: str) -> bool:
        return name in self._taken or (self._outer is not None and self._outer._uses(name))


class Writer:
    """Collects lines of source, and the objects that the source refers to by name.

    `namespace` is what the source is to be compiled with: pass it to `compile_source`.
    """

    indent = "    "

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.names = Names(taken)
        self.namespace: dict[str, Any] = {}
        self._bound: dict[int, str] = {}
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "") -> None:
        """Write `text`, which may have several lines, at the present indentation."""
        for one in text.split("\n"):
            self._lines.append(self.indent * self._depth + one if one.strip() else "")

    def lines(self, texts: Iterable[str]) -> None:
        """Write each of `texts` with `line`."""
        for text in texts:
            self.line(text)

    @contextmanager
    def block(self, header: str) -> Generator[None, None, None]:
        """Write `header`, to which a colon is added, and indent what is written in the `with`.

        A block in which nothing is written gets `pass`.
        """
        self.line(f"{header}:")
        start = len(self._lines)
        self._depth += 1
        try:
            yield
            if not any(self._lines[start:]):
                self.line("pass")
        finally:
            self._depth -= 1

    @contextmanager
    def after(self, texts: Iterable[str]) -> Generator[None, None, None]:
        """Write what `texts` has at the end of the `with` before what is written in it."""
        start = len(self._lines)
        yield
        body = self._lines[start:]
        del self._lines[start:]
        self.lines(texts)
        self._lines += body

    def bind(self, value: Any, wanted: str) -> str:
        """Put `value` into the namespace and return its name: the same one for the same object."""
        known = self._bound.get(id(value))
        if known is not None:
            return known
        name = self.names.unique(wanted)
        self.namespace[name] = value
        self._bound[id(value)] = name
        return name

    @property
    def source(self) -> str:
        """What was written so far, ending in one newline."""
        return "\n".join(self._lines).rstrip("\n") + "\n"


def compile_source(filename: str, source: str, namespace: dict[str, Any], owner: Any = None) -> str:
    """Execute `source` in `namespace` so that tracebacks, debuggers and `inspect` show its text.

    Returns the file name under which it is registered: `filename`, which is to look like
    `<orchestra generated ...>`, or the same with a number when that one is in use. The text
    stays registered as long as `owner` lives (for ever when that is None), and
    `linecache.checkcache()` does not remove it.
    """
    code_name = _register(filename, source)
    if owner is not None:
        weakref.finalize(owner, linecache.cache.pop, code_name, None).atexit = False
    exec(compile(source, code_name, "exec", dont_inherit=True), namespace)  # noqa: S102 - the text comes from this library alone
    return code_name


def _register(filename: str, source: str) -> str:
    lines = source.splitlines(keepends=True)
    stem = filename.removesuffix(">")
    end = filename[len(stem) :]
    with _registering:
        name, count = filename, 1
        while name in linecache.cache:
            count += 1
            name = f"{stem}-{count}{end}"
        # An entry without a time of modification is one that checkcache leaves alone.
        linecache.cache[name] = (len(source), None, lines, name)
    return name
