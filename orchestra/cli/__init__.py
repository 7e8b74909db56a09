"""The command line: look at an orchestra, check it, run it. It needs the extra `cli`."""

from orchestra.cli.app import command

__all__ = ["command"]
