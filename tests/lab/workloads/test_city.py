"""The city: well-formed reports, plausible movement, rush hours, and the skew of a real city."""

import numpy as np
import pyarrow as pa
import pytest

from skewless.lab.workloads import City, hilbert
from skewless.lab.workloads.city import DRIVERS, ORDERS, heat, rush


def make(seed: int = 7, **changes: float) -> City:
    return City(np.random.default_rng(seed), **changes)  # type: ignore[arg-type]


def hottest_share(cells: np.ndarray) -> float:
    return float(np.bincount(cells).max() / len(cells))


def order_cells(city: City, hours: float) -> np.ndarray:
    steps = city.steps(round(hours * 3600 / city.step_seconds))
    return np.concatenate([step.orders["cell"].to_numpy() for step in steps])


def test_each_step_is_well_formed() -> None:
    city = make(drivers=500)
    previous_end, next_order = city.now_us, 0
    for step in city.steps(50):
        assert step.orders.schema == ORDERS
        assert step.drivers.schema == DRIVERS
        assert step.start_us == previous_end
        assert step.end_us == city.now_us
        previous_end = step.end_us
        for table, time in ((step.orders, "ordered_at"), (step.drivers, "seen_at")):
            times = table[time].cast(pa.int64()).to_numpy()
            assert (np.diff(times) >= 0).all()
            assert ((times >= step.start_us) & (times < step.end_us)).all()
            x, y = table["x"].to_numpy(), table["y"].to_numpy()
            assert ((x >= 0) & (x <= city.size_m) & (y >= 0) & (y <= city.size_m)).all()
            cell_m = city.size_m / (1 << city.order)
            cell_x, cell_y = hilbert.point(table["cell"].to_numpy(), city.order)
            assert (np.abs(x - (cell_x + 0.5) * cell_m) <= cell_m / 2 + 1e-6).all()
            assert (np.abs(y - (cell_y + 0.5) * cell_m) <= cell_m / 2 + 1e-6).all()
        ids = step.orders["order_id"].to_pylist()
        assert ids == list(range(next_order, next_order + len(ids)))
        next_order += len(ids)
        assert sorted(step.drivers["driver_id"].to_pylist()) == list(range(500))


def test_drivers_move_no_faster_than_cars() -> None:
    city = make(drivers=300)
    before = city.step().drivers
    moved_m = 0.0
    for step in city.steps(30):
        now = step.drivers
        distance = np.hypot(
            now["x"].to_numpy() - before["x"].to_numpy(),
            now["y"].to_numpy() - before["y"].to_numpy(),
        )
        assert distance.max() <= 15.0 * city.step_seconds + 1e-6
        moved_m += distance.sum()
        before = now
    assert moved_m / 30 / 300 / city.step_seconds > 2.0  # m/s on average: most of them are driving


def test_orders_rise_to_the_rush_hour_and_fall_again() -> None:
    counts = [
        sum(step.orders.num_rows for step in make(drivers=1, start_hour=hour).steps(90))
        for hour in (5.0, 8.25, 12.0, 18.0, 23.0)
    ]
    quiet, morning, noon, evening, night = counts
    assert min(morning, evening) > 2 * max(quiet, noon, night)
    assert rush(8.25) == rush(18.0) == 1.0
    assert rush(23.999) == pytest.approx(rush(0.001), abs=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_the_hottest_cell_is_as_hot_as_in_a_real_city(seed: int) -> None:
    # Uber pickups in New York, 2014: 5 % of all in one cell of about 1 km, 14 % in single hours.
    quiet = hottest_share(order_cells(make(seed, drivers=1, start_hour=4.0), hours=1))
    busy = hottest_share(order_cells(make(seed, drivers=1, start_hour=7.75), hours=1))
    assert 0.01 < quiet < 0.07
    assert 0.03 < busy < 0.13
    assert busy > quiet


def test_hotspots_wander() -> None:
    city = make(drivers=1, orders_per_second=40.0, start_hour=7.25)
    early, late = (heat(order_cells(city, hours=0.5), city.order).ravel() for _ in range(2))
    top = np.argsort(early)[-5:]
    change = np.abs(early[top] / early.sum() - late[top] / late.sum()) / (early[top] / early.sum())
    assert change.max() > 0.15


def test_the_crowd_jumps_when_it_is_due() -> None:
    city = make(drivers=1, orders_per_second=40.0, start_hour=7.5, jump_minutes=30.0)
    before, after = (heat(order_cells(city, hours=0.5), city.order) for _ in range(2))
    assert city.jumps == 1
    order_cells(city, hours=0.5)
    assert city.jumps == 2
    hottest = np.unravel_index(before.argmax(), before.shape)
    assert after[hottest] < before[hottest] / 2


def test_the_share_of_the_hotspots_can_be_set() -> None:
    even, crowded = (
        hottest_share(
            order_cells(make(drivers=1, hot_share=share, start_hour=8.0), 0.5)  # type: ignore[arg-type]
        )
        for share in ((0.0, 0.0), (0.9, 0.9))
    )
    assert crowded > 5 * even


def test_equal_seeds_give_equal_cities() -> None:
    first, second, other = (list(make(seed, drivers=50).steps(5)) for seed in (3, 3, 4))
    assert first == second
    assert first != other


def test_heat_puts_each_cell_where_it_is() -> None:
    cells = hilbert.index([3, 3, 0], [1, 1, 2], 2)
    grid = heat(cells, order=2)
    assert grid[1, 3] == 2
    assert grid[2, 0] == 1
    assert grid.sum() == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"drivers": 0},
        {"hotspots": 0},
        {"orders_per_second": -1.0},
        {"step_seconds": 0.0},
        {"jump_minutes": 0.0},
        {"hot_share": (0.5, 1.5)},
    ],
    ids=str,
)
def test_arguments_without_a_meaning_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        make(**changes)
