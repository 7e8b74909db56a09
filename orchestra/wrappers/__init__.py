"""Wrappers that are ready to use: each goes around any Actor, and around another wrapper."""

from orchestra.wrappers.retrying import Retrying
from orchestra.wrappers.timed import Timed, Timing

__all__ = ["Retrying", "Timed", "Timing"]
