"""What a command that runs an orchestra tells on stderr: signals, warnings, who comes and goes."""

import logging
import sys
from collections.abc import Sequence

from orchestra import interrupts
from orchestra.link import ZenohLink
from orchestra.runtime.afar import Peer
from orchestra.runtime.log import logger


def show_log() -> None:
    """Show what `run` logs about a signal, and the warnings and errors of the library.

    Where the program has set logging up, the latter are left to it.
    """
    of_signals = _handler()
    interrupts.logger.addHandler(of_signals)
    interrupts.logger.setLevel(logging.INFO)
    interrupts.logger.propagate = False
    of_all = _handler()
    of_all.setLevel(logging.WARNING)
    of_all.addFilter(lambda record: not logging.root.handlers)
    logger.addHandler(of_all)


class Told:
    """What the process that serves a part has told: first itself, then who comes and goes."""

    def __init__(self, hosts: Sequence[str], link: ZenohLink) -> None:
        self._hosts = sorted(hosts)
        self._link = link
        self._begun = False

    def begin(self) -> None:
        """Say, once, what is served and where the others are met."""
        if self._begun:
            return
        self._begun = True
        places = [f"others connect to {each}" for each in self._link.listen]
        places += [f"connected to {each}" for each in self._link.connect]
        _say("; ".join([f"serving {', '.join(self._hosts)}", *places]))

    def peer(self, peer: Peer) -> None:
        """Say that another process has come, is away or has gone; the log tells of one that is refused."""
        self.begin()
        match peer.state:
            case "here":
                _say(f"{peer.process} is here, hosting {', '.join(peer.hosts) or 'nothing'}")
            case "away" | "gone":
                _say(f"{peer.process} is {peer.state}: {peer.why}")
            case "met" | "refused":
                pass


def _say(text: str) -> None:
    print(f"orchestra: {text}", file=sys.stderr, flush=True)


def _handler() -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("orchestra: %(message)s"))
    return handler
