"""Best of Spark's configurations, ratios, and what counts as reached."""

from collections.abc import Mapping

import pytest

from skewless.lab.bench.measure import Batch, Figures, figures
from skewless.lab.bench.verdict import TARGETS, best_spark, ratios, verdicts, window_ratios
from skewless.lab.bench.workloads import FULL


def taking(*seconds: float, peak: int | None = None) -> Figures:
    run = [Batch(i, s, rows=100, peak_memory_bytes=peak) for i, s in enumerate((9.0, *seconds))]
    result = figures(run, warm_up=1)
    assert result is not None
    return result


def test_the_fastest_configuration_is_the_best() -> None:
    runs = {"skewless": taking(1), "spark-a": taking(30), "spark-b": taking(20)}
    assert best_spark(runs, ["spark-a", "spark-b", "spark-c"]) == "spark-b"


def test_without_spark_there_is_no_best() -> None:
    assert best_spark({"skewless": taking(1)}, ["spark-a"]) is None


def test_ratios() -> None:
    runs = {"skewless": taking(1, peak=7), "spark-b": taking(20), "floor": taking(0.75)}
    assert ratios(runs, "spark-b") == {
        "seconds_per_batch": 1.0,
        "times_spark_best": 20.0,
        "share_of_floor": 0.75,
        "peak_memory_bytes": 7,
    }


@pytest.mark.parametrize(
    ("runs", "names"),
    [({}, set()), ({"skewless": taking(1)}, {"seconds_per_batch"}), ({"floor": taking(1)}, set())],
    ids=["nothing", "alone", "floor only"],
)
def test_a_ratio_needs_both_engines(runs: Mapping[str, Figures], names: set[str]) -> None:
    assert ratios(runs, None).keys() == names


def test_the_mean_shows_what_the_median_hides() -> None:
    values = window_ratios(taking(1, 1, 1), taking(1, 1, 7))
    assert values == {"long_over_short": 1.0, "long_over_short_mean": 3.0}


@pytest.mark.parametrize(
    ("workload", "values", "reached"),
    [
        ("zipf0.8", {"times_spark_best": 25.0, "share_of_floor": 0.7}, [True, True]),
        ("zipf0.8", {"times_spark_best": 24.9, "share_of_floor": 0.69}, [False, False]),
        ("zipf0.8", {"share_of_floor": 0.8}, [None, True]),
        ("empty", {"seconds_per_batch": 0.26}, [False]),
        ("window", {"long_over_short": 1.3}, [True]),
        ("memory", {"peak_memory_bytes": 2.0 * 2**30}, [False]),
    ],
)
def test_targets(workload: str, values: dict[str, float], reached: list[bool | None]) -> None:
    assert [v["reached"] for v in verdicts(workload, values, quick=False)] == reached


def test_a_quick_run_judges_nothing() -> None:
    (verdict,) = verdicts("empty", {"seconds_per_batch": 0.1}, quick=True)
    assert verdict["value"] == 0.1
    assert verdict["reached"] is None


def test_every_workload_has_a_target() -> None:
    assert {workload.name for workload in FULL} == set(TARGETS)
