"""One slow subscriber beside a fast one, under three policies: what does each get?

A publisher publishes samples at a steady rate. The fast subscriber handles each at once, the slow one takes
100 ms for it. The same parts run in three orchestras at the same time; only the policy of the slow
subscriber's lane differs.

- `Block()`: nothing is lost, and everybody gets the rate of the slowest.
- `Drop()`: the fast one gets all. The slow one gets what fits, in order, and the publisher is told of
  each sample that it does not get. Those that it gets have waited long in its lane.
- `DropOldest()`: the fast one gets all, and the slow one always the newest.

    python -m examples.slow_subscriber --seconds 10 --rate 500
"""
