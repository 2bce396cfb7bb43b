"""The windowed join: exact without shedding, a part of the result with it, within its budget."""

from dataclasses import replace

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.lab.reproduce.windowed.simulation import (
    Access,
    Comparisons,
    Join,
    MeasuredTime,
    Run,
    Scheme,
    simulate,
)
from skewless.lab.reproduce.windowed.streams import LAG, Streams, paper_streams

WINDOW_S = 4.0
PHASES = ((20.0, 8.0), (80.0, 8.0), (20.0, 4.0))
PLENTY = Comparisons(1e12)
# Half of what 80 tuples per second need.
SCARCE = Comparisons(80.0 * 80.0 * WINDOW_S)
JOIN = Join((WINDOW_S, WINDOW_S), threshold=2, basic_s=0.5, period_s=1.0)
ROOM = 2_000_000


def streams(seed: int = 1, *, lag: float = LAG) -> Streams:
    return paper_streams(seed, exponent=0.8, window_s=WINDOW_S, lag=lag, phases=PHASES)


def by_brute_force(given: Streams, threshold: int, windows_s: tuple[float, float]) -> set:
    """All pairs of which the later one finds the earlier one in its window."""
    t = given.tuples
    n = len(t.time_s)
    has = np.zeros((n, given.items), np.float32)
    has[np.repeat(np.arange(n), np.diff(t.first)), t.items] = 1
    first, second = np.nonzero(t.side == 0)[0], np.nonzero(t.side == 1)[0]
    shared = has[first] @ has[second].T
    age = t.time_s[second][None, :] - t.time_s[first][:, None]
    kept = np.where(age >= 0, age <= windows_s[0], -age <= windows_s[1])
    rows, columns = np.nonzero((shared >= threshold) & kept)
    return set(zip(first[rows].tolist(), second[columns].tolist(), strict=True))


def pairs_of(run: Run) -> set:
    found = [tuple(pair) for pair in run.pairs.tolist()]
    assert len(set(found)) == len(found), "a pair was found twice"
    assert len(found) == run.matches.sum()
    return set(found)


@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize("scheme", list(Scheme))
def test_with_time_enough_every_scheme_finds_all_pairs(scheme: Scheme, access: Access) -> None:
    given = streams()
    join = replace(JOIN, access=access)
    run = simulate(scheme, given, join, PLENTY, room_for_pairs=ROOM)
    assert pairs_of(run) == by_brute_force(given, join.threshold, join.windows_s)
    assert run.dropped.sum() == 0
    assert {setting.fraction for setting in run.course} == {1.0}


@pytest.mark.parametrize("access", list(Access))
@pytest.mark.parametrize("scheme", list(Scheme))
def test_what_is_left_after_shedding_is_part_of_the_result(scheme: Scheme, access: Access) -> None:
    given = streams()
    join = replace(JOIN, access=access)
    found = pairs_of(simulate(scheme, given, join, SCARCE, room_for_pairs=ROOM))
    everything = by_brute_force(given, join.threshold, join.windows_s)
    assert found < everything
    assert len(found) > len(everything) / 10


def test_a_window_on_one_stream_alone() -> None:
    given = streams(lag=0.0)
    join = Join((0.0, WINDOW_S), threshold=2)
    run = simulate(Scheme.RATE, given, join, PLENTY, room_for_pairs=ROOM)
    assert pairs_of(run) == by_brute_force(given, 2, join.windows_s)


def test_windows_of_different_lengths_and_single_values() -> None:
    given = paper_streams(
        3, exponent=1.0, window_s=WINDOW_S, lag=LAG, phases=PHASES, single_values=True
    )
    join = Join((1.0, 3.0), threshold=1, basic_s=0.7)
    expected = by_brute_force(given, 1, join.windows_s)
    assert expected
    for access in Access:
        indexed = replace(join, access=access)
        run = simulate(Scheme.DIRECTION, given, indexed, PLENTY, room_for_pairs=ROOM)
        assert pairs_of(run) == expected


@pytest.mark.parametrize("scheme", list(Scheme))
def test_the_budget_is_kept(scheme: Scheme) -> None:
    run = simulate(scheme, streams(), JOIN, SCARCE)
    assert run.comparisons.max() <= 1.05 * SCARCE.per_s
    # While more arrives than can be joined, it is used up as well.
    assert run.comparisons[10:15].min() >= 0.95 * SCARCE.per_s


@pytest.mark.parametrize("scheme", list(Scheme))
def test_every_tuple_is_fetched_or_dropped_or_waits(scheme: Scheme) -> None:
    given = streams()
    run = simulate(scheme, given, JOIN, SCARCE)
    waiting = len(given.tuples.time_s) - run.fetched.sum() - run.dropped.sum()
    assert 0 <= waiting <= 2 * 20.0 + 2  # what a buffer of one second holds at the end
    assert (run.dropped[:8] == 0).all()


def test_only_random_drop_goes_on_dropping() -> None:
    given = streams(lag=0.0)
    runs = {s: simulate(s, given, JOIN, SCARCE) for s in (Scheme.DROP, Scheme.RATE)}
    assert runs[Scheme.RATE].dropped[12:16].sum() < runs[Scheme.DROP].dropped[12:16].sum() / 3
    assert runs[Scheme.RATE].output(8, 16) > runs[Scheme.DROP].output(8, 16)


def test_the_planted_lag_is_found() -> None:
    """The second stream's tuples are met 3/8 of a cycle, 3/4 of a window, later."""
    run = simulate(Scheme.TIME, streams(), JOIN, SCARCE)
    assert run.learned is not None
    best = run.learned[1].expected.argmax() * JOIN.basic_s
    assert best == pytest.approx(0.75 * WINDOW_S, abs=JOIN.basic_s)


def test_without_a_lag_the_newest_are_the_best() -> None:
    join = replace(JOIN, sampling=1.0, keep=1.0)
    run = simulate(Scheme.TIME, streams(lag=0.0), join, PLENTY)
    assert run.learned is not None
    assert [learned.expected.argmax() for learned in run.learned] == [0, 0]


def test_the_more_productive_window_is_preferred() -> None:
    run = simulate(Scheme.DIRECTION, streams(), JOIN, SCARCE)
    shed = [s for s in run.course if s.fraction < 0.9]
    assert shed
    for setting in shed:
        assert setting.fractions[1] > setting.fraction > setting.fractions[0]
        assert sum(setting.fractions) == pytest.approx(2 * setting.fraction)


def test_lists_by_identifier_cannot_prefer_the_newest() -> None:
    """Without basic windows a part of them is a part of all ages."""
    given = streams(lag=0.0)
    outputs = {}
    for access in (Access.BY_TIME, Access.BY_IDENTIFIER):
        join = replace(JOIN, access=access)
        outputs[access] = simulate(Scheme.RATE, given, join, SCARCE).output(10, 16)
    assert outputs[Access.BY_TIME] > 1.2 * outputs[Access.BY_IDENTIFIER]


def test_equal_input_gives_equal_results() -> None:
    one, other = (simulate(Scheme.DIRECTION, streams(7), JOIN, SCARCE) for _ in range(2))
    assert (one.matches == other.matches).all()
    assert one.course == other.course
    different = simulate(Scheme.DIRECTION, streams(8), JOIN, SCARCE)
    assert (one.matches != different.matches).any()


def test_windows_can_be_filled_beforehand() -> None:
    given = streams()
    join = Join(JOIN.windows_s, 2, filled_s=8.0)
    run = simulate(Scheme.RATE, given, join, PLENTY)
    whole = simulate(Scheme.RATE, given, Join(JOIN.windows_s, 2), PLENTY)
    assert run.matches[:8].sum() == 0
    assert (run.matches[8:] == whole.matches[8:]).all()


def test_by_measured_time_less_time_is_less_output() -> None:
    given = streams()
    much = simulate(Scheme.RATE, given, JOIN, MeasuredTime(1_000.0), room_for_pairs=ROOM)
    little = simulate(Scheme.RATE, given, JOIN, MeasuredTime(1e-6), room_for_pairs=ROOM)
    assert pairs_of(much) == by_brute_force(given, JOIN.threshold, JOIN.windows_s)
    assert pairs_of(little) < pairs_of(much)


def test_adaptations_cost_the_time_they_take() -> None:
    """A clock that says that every adaptation took a second leaves nothing of a period of 1 s."""
    readings = iter(range(1_000))
    run = simulate(
        Scheme.RATE, streams(), JOIN, MeasuredTime(1.0), clock=lambda: float(next(readings))
    )
    free = simulate(Scheme.RATE, streams(), JOIN, MeasuredTime(1.0), clock=lambda: 0.0)
    assert run.matches.sum() < free.matches.sum() / 2


@pytest.mark.parametrize(
    "wrong", [{"windows_s": (0.0, 0.0)}, {"windows_s": (-1.0, 1.0)}, {"basic_s": 0.0}]
)
def test_wrong_joins_are_refused(wrong: dict) -> None:
    with pytest.raises(SkewlessError, match=next(iter(wrong))):
        Join(**wrong)


def test_wrong_budgets_are_refused() -> None:
    for budget in (Comparisons, MeasuredTime):
        with pytest.raises(SkewlessError):
            budget(0.0)
