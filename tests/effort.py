"""How many examples the random tests try."""

from hypothesis import settings


def examples(number: int) -> int:
    """So many examples; in proportion fewer under a profile that tries less than hypothesis' own hundred."""
    return max(1, number * settings.default.max_examples // 100)
