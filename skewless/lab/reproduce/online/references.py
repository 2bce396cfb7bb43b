"""Two rules to measure the others against, for simulation only."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LeastOutstanding:
    """To the instance with the fewest tuples that are not acknowledged: no sketch, no costs."""


@dataclass(frozen=True)
class FullKnowledge:
    """To the instance where the tuple is done first, by its true cost and the true queues.

    The paper's has true costs but compares cumulated times, where an instance that was idle counts
    as behind.
    """
