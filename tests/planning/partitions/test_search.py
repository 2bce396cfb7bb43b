"""Auto's search on cases small enough to read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.load.imbalance import falls
from skewless.load.resources import per_instance
from skewless.planning.partitions.search import rebalance, standing

CASES = [
    ("nothing to do", [[], []], [[], []]),
    ("already even", [[1, 1], [1, 1]], [[1, 1], [1, 1]]),
    ("one gives half", [[1, 1, 1, 1], []], [[1, 1], [1, 1]]),
    ("an odd one stays", [[1, 1, 1], []], [[1, 1], [1]]),
    ("a single unit cannot be divided", [[5], []], [[5], []]),
    ("a unit heavier than all else stays alone", [[9, 1], [1], [1]], [[9], [1, 1], [1]]),
    ("three are filled from one", [[2, 2, 2], [], []], [[2], [2], [2]]),
    ("what is not needed stays", [[4, 1, 1], [2]], [[4], [1, 1, 2]]),
    ("giants part, the smaller leaves", [[9, 8], [], []], [[9], [8], []]),
    ("a giant keeps its instance", [[9, 2], [8], [], []], [[9], [8], [2], []]),
    ("an exchange where no move would do", [[3, 3], [2, 2]], [[2, 3], [2, 3]]),
    ("idle units never move", [[0, 0, 0], [1]], [[0, 0, 0], [1]]),
    ("within the tolerance", [[10.2], [10]], [[10.2], [10]]),
]


def solve(
    loads: list[list[float]], rows: list[list[float]] | None = None, **options: float
) -> list[list[float]]:
    flat = np.array([w for owned in loads for w in owned], float)
    cost = flat if rows is None else np.array([w for owned in rows for w in owned], float)
    owners = np.array([i for i, owned in enumerate(loads) for _ in owned], np.int64)
    if not flat.size:
        return loads
    fixed = np.zeros(len(loads))
    new = rebalance(flat, cost, owners, fixed, **{"tolerance": 0.05, **options})  # type: ignore[arg-type]
    return [sorted(flat[new == i].tolist()) for i in range(len(loads))]


@pytest.mark.parametrize(("name", "before", "after"), CASES, ids=[case[0] for case in CASES])
def test_balancing(name: str, before: list[list[float]], after: list[list[float]]) -> None:
    assert solve(before) == after


def test_of_equal_loads_the_one_with_the_fewest_rows_moves() -> None:
    flat, owners = np.ones(4), np.zeros(4, np.int64)
    new = rebalance(flat, np.array([9.0, 1.0, 5.0, 2.0]), owners, np.zeros(2), tolerance=0.05)
    assert np.flatnonzero(new).tolist() == [1, 3]


def test_what_is_fixed_is_balanced_around() -> None:
    new = rebalance(
        np.ones(4), np.ones(4), np.array([0, 0, 1, 1]), np.array([2.0, 0.0]), tolerance=0.05
    )
    assert np.bincount(new).tolist() == [1, 3]


def test_a_cap_makes_the_largest_moves_first() -> None:
    loads = np.array([5.0, 3.0, 2.0, 1.0, 1.0, 0.5])
    new = rebalance(loads, loads, np.zeros(6, np.int64), np.zeros(3), tolerance=0.05, max_moves=1)
    assert (new != 0).sum() == 1


@pytest.mark.parametrize(
    ("name", "loads", "level", "excess"),
    [
        ("even", [[2], [2]], 2, [0, 0]),
        ("too much", [[3, 1], [2]], 3, [1 / 3, 0]),
        ("alone by its size", [[9], [1], [1]], 1, [0, 0, 0]),
        ("something besides", [[9, 1], [1], [2]], 2, [0.5, 0, 0]),
        ("two giants", [[9, 2], [8], [], []], 1, [2, 0, 0, 0]),
        ("idle", [[0], [0]], 0, [0, 0]),
    ],
)
def test_the_standing(
    name: str, loads: list[list[float]], level: float, excess: list[float]
) -> None:
    flat = np.array([w for owned in loads for w in owned], float)
    owners = np.array([i for i, owned in enumerate(loads) for _ in owned], np.int64)
    got = standing(flat, owners, np.zeros(len(loads)))
    assert got.level == pytest.approx(level)
    assert got.excess.tolist() == pytest.approx(excess)


@given(
    seed=st.integers(0, 2**32),
    units=st.integers(1, 60),
    instances=st.integers(1, 8),
    cap=st.none() | st.integers(1, 10),
)
def test_whatever_changes_is_for_the_better_and_within_the_cap(
    seed: int, units: int, instances: int, cap: int | None
) -> None:
    rng = np.random.default_rng(seed)
    loads, rows = rng.pareto(1.2, units), rng.random(units)
    owners = rng.integers(0, instances, units)
    fixed = rng.random(instances) * rng.integers(0, 2)
    new = rebalance(loads, rows, owners, fixed, tolerance=0.05, max_moves=cap)
    changed = int((new != owners).sum())
    assert cap is None or changed <= cap
    if changed:
        before = per_instance(loads, owners, instances) + fixed
        after = per_instance(loads, new, instances) + fixed
        assert falls(before, after)
