"""Tests of subsystems: one of them alone, with what it sends and its clock under the test's hand.

`alone` runs one subsystem of an orchestra and no other; `replace` puts other subsystems into an orchestra;
`recorded` wraps a subsystem so that what it receives and sends can be looked at afterwards.
"""

from orchestra.testing.caught import Sent
from orchestra.testing.clock import FakeClock
from orchestra.testing.lone import alone
from orchestra.testing.probe import Probe
from orchestra.testing.recorder import Recorded, recorded
from orchestra.testing.replacing import replace

__all__ = ["FakeClock", "Probe", "Recorded", "Sent", "alone", "recorded", "replace"]
