"""From the records of a policy's batches to the figures that are compared."""

import statistics
from collections.abc import Sequence
from typing import Any

from skewless.lab.bench.balance_child import Turn, imbalance

# However even an instance's load was before a jump, so much counts as even again after it.
EVEN = 1.15
# A single batch may be a little above the middle of all of them.
NOISE = 1.05


def figures(turns: Sequence[Turn], warm_up: int) -> dict[str, Any]:
    """What is said of a policy: over the batches after the first ones."""
    settled = turns[min(warm_up, len(turns) - 1) :]
    return {
        "batches": len(settled),
        "left_out": len(turns) - len(settled),
        "seconds": statistics.median(turn.seconds for turn in settled),
        "imbalance": imbalance(_summed([turn.cpu_ms for turn in settled])),
        "imbalance_of_matches": imbalance(_summed([turn.instance_matches for turn in settled])),
        "imbalance_in_a_batch": statistics.median(turn.imbalance for turn in settled),
        "cpu_ms": statistics.median(sum(turn.cpu_ms) for turn in settled),
        "replicas": statistics.median(turn.replicas for turn in settled),
        "plan_ms": statistics.median(turn.plan_ms for turn in settled),
        "moves": sum(turn.moves for turn in turns),
        "moves_when_settled": sum(turn.moves for turn in settled),
        "splits": turns[-1].splits,
    }


def batches_until_even(turns: Sequence[Turn], warm_up: int, jumps_at: int) -> int | None:
    """How many batches after a jump were uneven; None if it never became even again.

    Even is what the settled batches before the jump were, or `EVEN`.
    """
    before = [turn.imbalance for turn in turns[warm_up:jumps_at]]
    bound = max(EVEN, NOISE * statistics.median(before)) if before else EVEN
    for count, turn in enumerate(turns[jumps_at:]):
        if turn.imbalance <= bound:
            return count
    return None


def _summed(by_batch: Sequence[Sequence[float]]) -> list[float]:
    """The sum of every instance."""
    return [sum(of_instance) for of_instance in zip(*by_batch, strict=True)]
