"""Figures from records: what is left out, medians, rates, and disagreement."""

import pytest

from skewless.lab.bench.measure import Batch, disagreements, figures, wrong_rows


def batches(*seconds: float, matches: int | None = 50) -> list[Batch]:
    return [Batch(i, s, rows=100, matches=matches) for i, s in enumerate(seconds)]


def test_the_first_batches_do_not_count() -> None:
    result = figures(batches(60.0, 30.0, 1.0, 2.0, 4.0), warm_up=2)
    assert result is not None
    assert (result.batches, result.left_out) == (3, 2)
    assert result.seconds == 2.0
    assert result.seconds_mean == pytest.approx(7 / 3)
    assert (result.seconds_least, result.seconds_most) == (1.0, 4.0)
    assert result.rows_per_second == 50.0
    assert result.matches_per_batch == 50.0
    assert result.matches_per_second == 25.0


@pytest.mark.parametrize(("run", "left_out"), [(1, 0), (2, 1), (3, 2), (9, 4)])
def test_a_short_run_keeps_at_least_one(run: int, left_out: int) -> None:
    result = figures(batches(*[1.0] * run), warm_up=4)
    assert result is not None
    assert (result.batches, result.left_out) == (run - left_out, left_out)


def test_no_batches_no_figures() -> None:
    assert figures([], warm_up=2) is None


def test_what_is_not_told_stays_unknown() -> None:
    result = figures(batches(1.0, 1.0, matches=None), warm_up=1)
    assert result is not None
    assert result.matches_per_second is None
    assert result.state_bytes_per_row is None
    assert result.peak_memory_bytes is None


def test_state_is_of_the_last_batch_and_the_peak_of_all() -> None:
    run = [
        Batch(0, 1.0, 10, state_rows=5, state_bytes=500, peak_memory_bytes=900),
        Batch(1, 1.0, 10, state_rows=10, state_bytes=320, peak_memory_bytes=700),
    ]
    result = figures(run, warm_up=1)
    assert result is not None
    assert result.state_bytes_per_row == 32.0
    assert result.peak_memory_bytes == 900


def test_a_batch_too_short_for_the_clock_gives_finite_rates() -> None:
    result = figures(batches(0.0, 0.0), warm_up=1)
    assert result is not None
    assert result.rows_per_second == 100_000


def test_engines_are_compared_on_the_batches_that_both_ran() -> None:
    long = batches(1.0, 1.0, 1.0)
    assert disagreements({"a": long, "b": long[:1], "floor": batches(1.0, matches=None)}) == []


def test_a_disagreement_names_both_sides() -> None:
    lines = disagreements({"a": batches(1.0), "b": batches(1.0, matches=1_049)})
    assert lines == ["b found 1,049 matches in batch 0, a found 50"]


def test_totals_are_compared_with_sums() -> None:
    runs = {"a": batches(1.0, 1.0), "p": batches(1.0, 1.0, matches=None)}
    assert disagreements(runs, {"p": {1: 50, 2: 100, 5: 1}}) == []
    assert disagreements(runs, {"p": {2: 99}}) == [
        "p found 99 matches in the first 2 batches, a found 100"
    ]


def test_wrong_rows() -> None:
    assert wrong_rows(batches(1.0), 100) is None
    assert wrong_rows(batches(1.0), 200) == "batch 0 had 100 rows instead of 200"
