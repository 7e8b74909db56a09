"""The census over three processes, started by one command.

    front      walker, desk, reporter    finds the files, shows the table
    reader     reader                    tokenizes them, on all cores
    tally      tally                     adds up

What to look at:

- *The same class.* `Census` and its subsystems are those of `examples.census`, unchanged. Each process makes
  one of them, with `Remote()` for what the others host; two of the three are plain `orchestra serve`.
- *Capacity.* The walker is fast and the reader is slow, in another process: its lane of 64 still holds
  no more than 64 files, and the walker waits for room over there.
- *Who is there.* The table has a row for each process, with what has gone to it and come from it. Kill one
  (`kill -9`) and it is gone; what it had not taken yet is dead-lettered in `front`.
- *The end.* As in one process: the walker returns, so the reader's inbox ends, then the tally's, whose last
  report ends the reporter's.

    python -m examples.cluster [PATH] [--limit N] [--json]
"""

from importlib import import_module

from examples import needs

with needs("cli,zenoh"):
    import_module("zenoh")  # the link imports it late, when all three processes are under way
    from examples.cluster.app import cluster, part

__all__ = ["cluster", "part"]
