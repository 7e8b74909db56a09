"""A census of Python source: files, lines, tokens and names of a directory tree.

Five subsystems, each with one job, and no lock, queue or callback written by hand:

    walker    finds the files                     -> reader, tally, desk
    reader    tokenizes them, on all cores        -> tally
    tally     adds up; boxed, two lanes           -> reporter
    reporter  shows the table while it grows
    desk      keyboard, SIGUSR1 and the clock     -> walker, tally

What to look at:

- *Off the loop.* Tokenizing is pure computation, so threads would only take turns. The reader gives
  each file to a pool of processes, with two files in hand for each core; everything else waits behind
  it by backpressure.
- *Lanes.* The desk asks for a report, or tells the walker to stop, on a HIGH lane: it overtakes all
  the counts that wait.
- *Boxes.* The tally is boxed: the counts of a file are dicts of some hundred entries, and a backlog
  of them is smaller, and no work for the garbage collector, as packed bytes. A path is a string, for
  which a box costs more than it gives: the reader is not boxed.
- *The end.* Nobody counts who is done. The walker returns; so the reader's inbox ends, then the
  tally's, and in `stopped` the tally sends its last report; then the reporter's ends.

    python -m examples.census [PATH] [--limit N] [--json]
"""

from examples import needs

with needs("cli"):
    from examples.census.app import Census, census
    from examples.census.messages import Report

__all__ = ["Census", "Report", "census"]
