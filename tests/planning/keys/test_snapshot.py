"""The snapshot of keys: what it adds up, and what it refuses."""

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.planning.keys.snapshot import GONE, KeySnapshot
from tests.planning.keys.cases import snapshot, worked_example


def test_loads_and_skewness_of_the_worked_example() -> None:
    example = worked_example()
    assert example.loads.tolist() == [16, 4]
    assert example.mean == 10
    assert example.theta == pytest.approx([0.6, 0.6])
    assert example.skewness == pytest.approx(0.6)
    assert example.table_size == 2


def test_what_cannot_move_counts() -> None:
    assert snapshot([3], home=[1], rest=[5, 0]).loads.tolist() == [5, 3]


def test_a_key_whose_instance_is_gone_counts_at_home() -> None:
    lost = snapshot([3, 4], home=[1, 0], current=[GONE, 1])
    assert lost.standing.tolist() == [1, 1]
    assert lost.loads.tolist() == [0, 7]
    assert lost.table_size == 1


def test_without_any_load_nothing_is_skewed() -> None:
    idle = snapshot([], home=[])
    assert idle.skewness == 0
    assert idle.theta.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"cost": np.array([1.0])}, "cost: got (1,) values; takes one per key (2,)"),
        ({"cost": np.array([1.0, np.nan])}, "cost: takes finite values of at least 0"),
        ({"state": np.array([1.0, np.inf])}, "state: takes finite values of at least 0"),
        ({"state": np.array([1.0, -1.0])}, "state: takes finite values of at least 0"),
        ({"rest": np.array([])}, "rest: got (0,) values; takes one per instance"),
        ({"rest": np.array([0.0, -2.0])}, "rest: takes finite values of at least 0"),
        ({"home": np.array([0, 2])}, "home: takes instances from 0 to 1"),
        ({"home": np.array([0, -1])}, "home: takes instances from 0 to 1"),
        ({"current": np.array([0, -2])}, "current: takes instances from -1 to 1"),
    ],
)
def test_what_cannot_have_been_measured_is_refused(
    changed: dict[str, np.ndarray], says: str
) -> None:
    values = {
        "hashes": np.array([1, 2], np.uint64),
        "cost": np.ones(2),
        "state": np.ones(2),
        "home": np.zeros(2, np.int64),
        "current": np.zeros(2, np.int64),
        "rest": np.zeros(2),
    }
    with pytest.raises(SkewlessError) as refusal:
        KeySnapshot(**(values | changed))
    assert says in str(refusal.value)
