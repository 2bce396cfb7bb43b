"""The measurement of key planning: complete, fit for JSON, and true to what is claimed."""

import itertools
import json

from skewless.lab.bench.keyplanning import DEGREES, TABLE_LIMIT, run


def test_a_quick_run_has_everything_and_is_fit_for_json() -> None:
    ticks = itertools.count()
    told: list[str] = []
    result = run(quick=True, clock=lambda: float(next(ticks)), progress=told.append)
    assert json.loads(json.dumps(result)) == result
    assert [row["degree"] for row in result["times"] if row["planner"] == "Mixed"] == [
        None,
        *DEGREES,
    ]
    assert all(row["milliseconds"] == 1_000 for row in result["times"])
    assert told[-1] == "migration, w = 5"


def test_compact_plans_are_right_and_mixed_moves_less() -> None:
    result = run(quick=True)
    compact = [row for row in result["times"] if row["degree"] is not None]
    # With 500 keys to an instance; a coarser degree needs more of them.
    assert all(row["load_error"] < 0.01 for row in compact if row["degree"] <= 8)
    assert all(row["skewness_after"] < row["skewness_before"] / 3 for row in result["times"])
    assert all(row["largest_table"] <= TABLE_LIMIT for row in result["migration"])
    assert all(ratio > 1.2 for ratio in result["mintable_to_mixed"].values())
