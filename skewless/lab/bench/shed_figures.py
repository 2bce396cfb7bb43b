"""What is said of an overloaded join: its latency, its output, how soon it is whole again."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from skewless.lab.bench.shed_child import Turn


@dataclass(frozen=True)
class Overload:
    """Which rows are too many: those of the left side from `first` to before `last`."""

    first: int
    last: int

    def split(self, turns: Sequence[Turn]) -> tuple[list[Turn], list[Turn], list[Turn]]:
        """The batches before, those with at least one of these rows, and the batches after.

        A batch without rows of the left side belongs to what the batch before it belongs to.
        """
        before: list[Turn] = []
        during: list[Turn] = []
        after: list[Turn] = []
        taken = 0
        for turn in turns:
            begin, taken = taken, taken + turn.left
            last = taken - 1 if turn.left else taken
            (before if last < self.first else during if begin < self.last else after).append(turn)
        return before, during, after


def figures(
    turns: Sequence[Turn], overload: Overload, interval_s: float, fitting: float
) -> dict[str, Any]:
    """Of one contender; `fitting` are the comparisons that a batch has the time for.

    The first batch of the query and the first overloaded one are left out of the latencies: nothing
    was known before them.
    """
    before, during, after = overload.split(turns)
    known = [*before[1:], *during[1:], *after]
    seconds = [turn.seconds for turn in known]
    return {
        "batches": len(turns),
        "judged": len(known),
        "over": sum(s > interval_s for s in seconds),
        "longest": max(seconds, default=None),
        "first_overloaded": during[0].seconds if during else None,
        "last_overloaded": during[-1].seconds if during else None,
        "finished": all(turn.is_done for turn in turns),
        "output": sum(turn.matches for turn in during),
        "matches": sum(turn.matches for turn in turns),
        "fraction": weighted_fraction(during[1:]),
        "fraction_before": weighted_fraction(before),
        "dropped": sum(turn.dropped for turn in turns),
        "late": sum(turn.late for turn in turns),
        "batches_until_full": until_full(after),
        "batches_until_full_since_it_fits": until_full(
            [t for n, t in enumerate(after) if any(s.offered <= fitting for s in after[: n + 1])]
        ),
        "missed": sum(turn.missed for turn in turns),
        "missed_error": sqrt(sum(turn.missed_error**2 for turn in turns)),
    }


def weighted_fraction(turns: Sequence[Turn]) -> float | None:
    """Comparisons made ÷ those of a full probe."""
    offered = sum(turn.offered for turn in turns)
    return sum(turn.comparisons for turn in turns) / offered if offered else None


def until_full(turns: Sequence[Turn]) -> int | None:
    """How many batches were probed in part before the first that was probed in full; None: all."""
    return next((n for n, turn in enumerate(turns) if turn.fraction >= 1.0), None)


def values_of(runs: dict[str, dict[str, Any]], missed_in_truth: float | None) -> dict[str, float]:
    """The figures that the targets are about; what was not measured is absent."""
    found: dict[str, float] = {}
    shed, drop = runs.get("Shed"), runs.get("RandomDrop")
    if shed is not None:
        found["over"] = shed["over"]
        if shed["batches_until_full_since_it_fits"] is not None:
            found["batches_until_full"] = shed["batches_until_full_since_it_fits"]
        if missed_in_truth:
            found["missed_off"] = abs(shed["missed"] - missed_in_truth) / missed_in_truth
    if shed is not None and drop is not None and drop["output"]:
        found["shed_over_drop"] = shed["output"] / drop["output"]
    return found
