"""Sessions for tests: on a free port of this machine, and closed whatever happens."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from orchestra.link import ZenohLink
from orchestra.link.session import Session


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def opened(**settings: Any) -> Iterator[Session]:
    session = Session.open(ZenohLink(**{"app": "shop", "patience": 10.0, **settings}))
    try:
        yield session
    finally:
        assert session.close(10)


def until(true: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something is true, or fail."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.01)
