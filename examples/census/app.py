"""The orchestra of the census, and a function that runs it."""

import sysconfig
from pathlib import Path

from examples.census.messages import Halt, Report
from examples.census.parts import Desk, Reader, Reporter, Tally, Walker
from examples.census.screen import Quiet, Screen
from orchestra import Fail, Priority, orchestra, run, subsystem


@orchestra(signal=Halt, event=Halt)
class Census:
    walker: Walker = subsystem(message_capacity={Priority.HIGH: 1}, overflow=Fail())
    reader: Reader = subsystem(message_capacity=64)
    tally: Tally = subsystem(boxed=True, message_capacity={Priority.HIGH: 1, Priority.NORMAL: 256})
    reporter: Reporter = subsystem(message_capacity=4)
    desk: Desk = subsystem()


def standard_library() -> Walker:
    """A walker of the running Python's own library, without what was installed beside it."""
    root = Path(sysconfig.get_paths()["stdlib"])
    return Walker(root, skipped=frozenset({"site-packages", "dist-packages"}))


def census(walker: Walker, *, screen: Screen | None = None, interval: float = 1.0) -> Report:
    """Count what `walker` finds and return the last report; it is not `final` when interrupted."""
    reporter = Reporter(screen or Quiet())
    app = Census(walker=walker, reader=Reader(), tally=Tally(), reporter=reporter, desk=Desk(interval))
    run(app, dead_letters=lambda letter: None)  # what an interrupt leaves uncounted is no news
    return reporter.last
