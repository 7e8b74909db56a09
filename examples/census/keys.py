"""Keys of the terminal and SIGUSR1, turned into calls on the event loop. On Windows: nothing."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Generator, Mapping

Call = Callable[[], None]

if sys.platform == "win32":

    @contextlib.contextmanager
    def keyboard_and_signals(*, stop: Call, report: Call) -> Generator[None]:
        yield

else:
    import termios
    import tty

    @contextlib.contextmanager
    def keyboard_and_signals(*, stop: Call, report: Call) -> Generator[None]:
        """While this is open, `q` calls `stop`, and `r` or SIGUSR1 calls `report`."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(_on_signal(signal.SIGUSR1, report))
            if sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp():
                stack.enter_context(_on_keys(sys.stdin.fileno(), {"q": stop, "r": report}))
            yield

    @contextlib.contextmanager
    def _on_signal(number: signal.Signals, call: Call) -> Generator[None]:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(number, call)
        try:
            yield
        finally:
            loop.remove_signal_handler(number)

    @contextlib.contextmanager
    def _on_keys(terminal: int, calls: Mapping[str, Call]) -> Generator[None]:
        def read() -> None:
            for key in os.read(terminal, 64).decode(errors="replace"):
                if key in calls:
                    calls[key]()

        loop = asyncio.get_running_loop()
        before = termios.tcgetattr(terminal)
        tty.setcbreak(terminal)
        loop.add_reader(terminal, read)
        try:
            yield
        finally:
            loop.remove_reader(terminal)
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
