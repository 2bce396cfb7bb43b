"""Tiles from history: one for everybody, of nearly equal cost."""

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.planning.tiles.history import History
from skewless.routing.tiles import TileRoute, even_tiles
from tests.planning.tiles.cases import grid_of


def hotspots(seed: int) -> History:
    rng = np.random.default_rng(seed)
    centres = rng.random((5, 2))
    points = (centres[rng.integers(0, 5, 20_000)] + 0.08 * rng.normal(size=(20_000, 2))).clip(0, 1)
    corners = points[:8_000]
    return History.of((points, np.hstack([corners, corners + 0.0016])))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("instances", [2, 5, 22])
def test_costs_are_far_more_equal_than_those_of_equal_areas(seed: int, instances: int) -> None:
    grid, history = grid_of(64), hotspots(seed)
    route = TileRoute(grid, instances, history.tiles(grid, instances))
    points, _ = history.counts(grid)

    def straggler(tiles: TileRoute) -> float:
        loads = np.bincount(tiles.table.owners, points, instances)
        return float(loads.max() / loads.mean())

    assert sorted(m for tile in route.tiles for m in tile.members) == list(range(instances))
    assert straggler(route) < 1 + 0.35 * (straggler(even_tiles(grid, instances)) - 1)


def test_points_alone_will_do() -> None:
    points = np.random.default_rng(1).random((4_000, 2)) ** 2
    tiles = History.of(points).tiles(grid_of(64), 4)
    counts, _ = History.of(points).counts(grid_of(64))
    loads = np.bincount(TileRoute(grid_of(64), 4, tiles).table.owners, counts, 4)
    assert loads.max() < 1.1 * loads.mean()


def test_a_map_of_fewer_cells_than_instances_shares_them() -> None:
    tiles = History.of([[0.1, 0.1], [0.9, 0.9]]).tiles(grid_of(1), 3)
    assert [tile.members for tile in tiles] == [(0, 1, 2)]


def test_the_same_content_is_the_same_history() -> None:
    assert hotspots(1) == hotspots(1)
    assert hotspots(1) != hotspots(2)
    assert len(hotspots(1).digest) == 16
    assert len({hotspots(1), hotspots(1), hotspots(2)}) == 2


@pytest.mark.parametrize(
    ("history", "says"),
    [
        ([], "rows of 2 numbers"),
        (np.zeros((0, 2)), "history: got 'no points'"),
        ([[1.0, 2.0, 3.0]], "rows of 2 numbers"),
        (([[0.0, 0.0]], [[1.0, 2.0]]), "rows of 4 numbers"),
        ([[np.nan, 0.0]], "not finite"),
        ("points.csv", "history: points: got 'str'; takes an array of points"),
        (([[0.0, 0.0]], [], []), "history: points: got 'tuple'; takes an array of points"),
        (([[0.0, 0.0]], [[1.0, 0.0, 0.0, 1.0]]), "inverted"),
    ],
)
def test_what_is_no_history_is_refused(history: object, says: str) -> None:
    with pytest.raises(SkewlessError) as refusal:
        History.of(history)
    assert says in str(refusal.value)
