"""Tells a person how much of a join was given up to keep up, and what that has cost."""

from typing import Any


def explain_shedding(shed: dict[str, Any]) -> str:
    """The last batch of a join that may shed, as a sentence.

    Takes what a join's record of progress has under "shed".
    """
    limit = f"{shed['maxLatencyMs'] / 1e3:g} s"
    dropped = sum(shed["droppedRows"].values())
    told = []
    if shed["fraction"] < 1.0:
        told.append(
            f"to stay below {limit} it did {shed['fraction']:.1%} of the work of a full join "
            f"({shed['leftWindow']:.1%} of the left window, {shed['rightWindow']:.1%} of the "
            f"right), gave {shed['results']:,} results and missed about "
            f"{max(0, round(shed['missed'])):,} ± {round(shed['missedError']):,}"
        )
    if dropped:
        told.append(f"{dropped:,} rows were dropped and not stored to stay below {limit}")
    if not told:
        return f"shedding: nothing was given up to stay below {limit}"
    return "shedding: " + "; ".join(told)
