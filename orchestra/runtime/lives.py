"""How often a subsystem has started again, and whether it may once more. Pure but for the time it is told."""

from typing import Final

from orchestra.runtime.short import Short
from orchestra.supervision import Restart


class Lives:
    """The restarts of one subsystem, and what its policy says of the next; without a policy there is none."""

    __slots__ = ("_policy", "_recent", "restarts")

    def __init__(self, policy: Restart | None) -> None:
        self._policy = policy
        self._recent: Short[float] = Short()
        self.restarts = 0
        """How many there have been."""

    def again(self, now: float) -> float | None:
        """Seconds until the restart after a failure at this time, which counts from now; None: not again.

        Raises what a `backoff` function raises or does wrong.
        """
        if self._policy is None:
            return None
        while self._recent and now - self._recent[0] > self._policy.within:
            self._recent.popleft()
        if len(self._recent) >= self._policy.limit:
            return None
        delay = self._policy.delay(len(self._recent) + 1)
        self._recent.append(now)
        return delay

    def told(self) -> str:
        """Which restart the last one was, of how many."""
        assert self._policy is not None
        within = self._policy.within
        window = "" if within == float("inf") else f" within {within:g} s"
        return f"restart {len(self._recent)} of {self._policy.limit}{window}"

    def spent(self) -> str:
        """How many restarts there were before it failed for good."""
        assert self._policy is not None
        within = self._policy.within
        times = "once" if self.restarts == 1 else f"{self.restarts} times"
        window = "" if within == float("inf") else f", {len(self._recent)} of them within {within:g} s"
        return f"started again {times} before that{window}"


ONE: Final = Lives(None)
"""For all subsystems that do not start again."""
