"""FastJoin's greedy rule, for keys and for partitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.planning.fastjoin import FastJoin, Totals, choose_units
from skewless.planning.plan import validate
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import PartitionTable
from tests.planning.cases import planned


@given(seed=st.integers(0, 2**32), units=st.integers(1, 30))
def test_the_gap_closes_and_never_flips(seed: int, units: int) -> None:
    rng = np.random.default_rng(seed)
    stored, queued = rng.integers(0, 50, units) * 1.0, rng.integers(0, 50, units) * 1.0
    low = Totals(float(rng.integers(0, 50)), float(rng.integers(0, 50)))
    high = Totals(float(stored.sum()), float(queued.sum()))
    chosen = choose_units(stored, queued, high, low)
    s, q = float(stored[chosen].sum()), float(queued[chosen].sum())
    high_after = Totals(high.stored - s, high.queued - q)
    low_after = Totals(low.stored + s, low.queued + q)
    if chosen.size:
        assert high_after.load >= low_after.load - 1e-6
        assert high_after.load < high.load


def test_units_that_shed_most_per_stored_row_go_first() -> None:
    stored, queued = np.array([10.0, 1.0, 10.0]), np.array([4.0, 4.0, 4.0])
    assert choose_units(stored, queued, Totals(21, 12), Totals(5, 5)).tolist() == [1]


def snapshot(stored: list[float], queued: list[float], owners: list[int], n: int) -> Snapshot:
    kept, waiting = np.array(stored, float), np.array(queued, float)
    return Snapshot(PartitionTable(n, tuple(owners)), waiting, kept, waiting)


@pytest.mark.parametrize(
    ("name", "stored", "queued", "moves"),
    [
        ("below the trigger", [2, 2, 2, 2, 2], [1, 1, 1, 1, 10], 0),
        ("above the trigger", [2, 2, 2, 2, 2], [2, 2, 2, 2, 2], 1),
        ("nothing fits", [2, 2, 0, 0, 3], [4, 4, 0, 0, 1], 0),
    ],
)
def test_the_trigger(name: str, stored: list[float], queued: list[float], moves: int) -> None:
    case = snapshot(stored, queued, [0, 0, 0, 0, 1], 2)
    plan, state = planned(FastJoin(2, partitions=5), case, {})
    validate(plan, case)
    assert len(plan.moves) == moves
    assert state == {}


def test_an_idle_instance_is_an_endless_ratio() -> None:
    case = snapshot([2, 2, 2, 2], [2, 2, 2, 2], [0, 0, 0, 0], 2)
    plan, _ = planned(FastJoin(2, partitions=4), case, {})
    validate(plan, case)
    assert len(plan.moves) == 2
