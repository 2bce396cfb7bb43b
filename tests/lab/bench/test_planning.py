"""The comparison of planners: what it says of itself, and that Auto is what it is said to be."""

import itertools
import json

from skewless.lab.bench.planning import compare, run, sweep


def test_a_quick_run_has_everything_and_is_fit_for_json() -> None:
    ticks = itertools.count()
    result = run(quick=True, clock=lambda: float(next(ticks)))
    assert json.loads(json.dumps(result)) == result
    assert {row["planner"] for row in result["planners"]} == {
        "LsStream",
        "LsStream, as tight as Auto",
        "Auto",
    }
    assert all(row["milliseconds_most"] == 1_000 for row in result["planners"])


def test_auto_gets_further_with_fewer_rows_than_annealing_as_tight() -> None:
    ticks = itertools.count()
    rows = compare(256, 32, 0.8, clock=lambda: float(next(ticks)))
    by_name = {row["planner"]: row for row in rows}
    auto, tight = by_name["Auto"], by_name["LsStream, as tight as Auto"]
    assert auto["overload"] < tight["overload"] < auto["overload_before"]
    assert auto["moved_share"] < tight["moved_share"]


def test_a_threshold_below_the_noise_moves_rows_for_nothing() -> None:
    tight, chosen = (sweep(threshold, 0.05, rounds=15) for threshold in (0.02, 0.1))
    assert chosen["moved_share_per_round"] < tight["moved_share_per_round"] / 3
