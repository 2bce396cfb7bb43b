"""Discretisation and compact statistics: sums are kept, and plans are those of the keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.planning.keys.compact import compact
from skewless.planning.keys.hlhe import discretise
from skewless.planning.keys.minmig import min_mig, pack_min_mig
from skewless.planning.keys.mixed import mixed
from tests.planning.keys.cases import snapshots, zipf

EXAMPLE = np.array([8.0, 6, 3, 2, 2, 1, 1, 1, 1, 1])


def test_the_papers_example() -> None:
    rounded = discretise(EXAMPLE, degree=4).values
    assert set(rounded.tolist()) == {8, 4, 2, 1}
    assert rounded[:3].tolist() == [8, 4, 4]
    assert sorted(rounded[5:].tolist()) == [1, 1, 1, 1, 2]
    assert rounded.sum() == EXAMPLE.sum()


@given(
    values=st.lists(st.floats(0, 1e4, allow_subnormal=False), min_size=1, max_size=60),
    degree=st.sampled_from([1, 2, 8, 256]),
)
def test_a_value_is_rounded_to_a_neighbour(values: list[float], degree: int) -> None:
    given_ = np.array([v if v > 1e-3 else 0.0 for v in values])
    rounded = discretise(given_, degree)
    unit = rounded.unit
    found = rounded.values
    assert ((found == 0) == (given_ == 0)).all()
    scaled, at = given_ / unit, found / unit
    # Between two representatives at most twice as much, or R apart.
    assert (at <= np.maximum(2 * scaled, degree) + 1e-6).all()
    assert (at >= np.where(scaled < degree, scaled / 2, scaled - degree) - 1e-6).all()


@given(seed=st.integers(0, 1_000), degree=st.sampled_from([1, 8, 64]))
def test_errors_do_not_add_up_in_any_group(seed: int, degree: int) -> None:
    rng = np.random.default_rng(seed)
    values = 1 + rng.pareto(1.2, 3_000) * 3
    group = rng.integers(0, 4, 3_000)
    rounded = discretise(values, degree, group).values
    off = np.bincount(group, values - rounded)
    # Half of the gap between the smallest representatives, and the largest value's remainder,
    # which thousands of small values make up for.
    assert np.abs(off).max() <= values.min() * 1.0001


@pytest.mark.parametrize("degree", [0, 3, True, 2.0, -4, 2**21])
def test_a_degree_is_a_power_of_two(degree: object) -> None:
    with pytest.raises(SkewlessError, match=r"degree: got .*; takes a power of two"):
        discretise(EXAMPLE, degree)  # type: ignore[arg-type]


@given(of=snapshots(), degree=st.sampled_from([1, 4]))
def test_records_hold_every_key_and_all_load(of, degree: int) -> None:  # type: ignore[no-untyped-def]
    few = compact(of, degree)
    assert few.units.count.sum() == of.keys
    assert few.units.loads_of(few.units.standing) == pytest.approx(of.loads)
    assert (few.units.home[few.record] == of.home).all()
    assert (few.units.current[few.record] == of.current).all()


@pytest.mark.parametrize("degree", [1, 8, 64, 256])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_compact_plan_misjudges_no_load_by_a_percent(degree: int, seed: int) -> None:
    of = zipf(50_000, 10, seed=seed, away=0.05, window=5)
    few = compact(of, degree)
    assert len(few.units.cost) < of.keys / 3
    assert few.load_error(pack_min_mig(few.units, 0.02, 1.5), of) < 0.01
    plain, quick = min_mig(of, 0.02), min_mig(of, 0.02, compact=degree)
    assert abs(quick.skewness_after - plain.skewness_after) < 0.01
    assert quick.migration < 1.2 * plain.migration


def test_a_compact_plan_keeps_the_table_limit() -> None:
    of = zipf(20_000, 8, away=0.05, window=5)
    assert of.table_size > 600
    plan = mixed(of, 0.08, table_limit=600, compact=8)
    assert plan.table_size <= 600
    assert plan.skewness_after < 0.09
