"""A lane that threads share and that counts bytes: the rules of `ByteLane`, under a lock."""

from orchestra.runtime.bytelane import ByteLane
from orchestra.runtime.threads.lane import SharedLane, locked


class SharedByteLane(SharedLane, ByteLane):
    """A `ByteLane` whose senders and receiver may be in several threads.

    The receiver takes without the lock. The sizes change under it alone, so they may tell of entries that
    were taken, and never lack one that is queued.
    """

    fits = locked(ByteLane.fits)
    offer = locked(ByteLane.offer)
    settle = locked(ByteLane.settle)
    withdraw = locked(ByteLane.withdraw)

    def relieve(self) -> None:
        with self.lock:
            self.congested = self.stalled = (
                False  # somebody else may have let go of the size of what was taken
            )
            ByteLane.relieve(self)

    def _mark(self) -> None:
        ByteLane._mark(self)
        self._let_go()  # a message may have been taken meanwhile, without the lock
