"""A snapshot refuses what cannot have been measured, and counts what a tile has."""

from dataclasses import replace

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.load.corners import CornerCounts
from skewless.routing.tiles import Tile, even_tiles
from tests.planning.tiles.cases import grid_of, snapshot

GOOD = snapshot(even_tiles(grid_of(4), 2), np.ones((4, 4)))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"load": np.ones(4)}, "load: got (4,) values; takes one per cell (16)"),
        ({"points": -np.ones(16)}, "points: takes finite values of at least 0"),
        ({"faded": np.full(16, np.nan)}, "faded: takes finite values"),
        ({"arrived": CornerCounts.empty(8)}, "arrived: got a map of side 8; takes one of side 4"),
        (
            {"subscriptions": CornerCounts.empty(4) - GOOD.subscriptions},
            "subscriptions: takes counts of at least 0",
        ),
    ],
)
def test_a_wrong_snapshot_is_refused(changes: dict, says: str) -> None:
    with pytest.raises(SkewlessError) as refusal:
        replace(GOOD, **changes)
    assert says in str(refusal.value)


def test_the_counts_of_tiles_are_those_of_their_last_lines() -> None:
    rng = np.random.default_rng(5)
    route = even_tiles(grid_of(8), 5)
    ends = np.sort(rng.integers(0, 8, (2, 2, 40)), axis=0)
    corners = CornerCounts.of(8, ends[0, 0], ends[0, 1], ends[1, 0], ends[1, 1])
    some = CornerCounts.of(8, ends[0, 0, :9], ends[0, 1, :9], ends[1, 0, :9], ends[1, 1, :9])
    taken = replace(
        snapshot(route, rng.integers(0, 9, (8, 8))), subscriptions=corners, arrived=some
    )
    counts = taken.counts(route.tiles)
    for n, tile in enumerate(route.tiles):
        for axis in ("rows", "columns"):
            whole = taken.lines(tile, axis).whole
            assert whole.cost == counts.cost[n]
            assert whole.received == counts.received[n]
    assert taken.counts((Tile(0, 0, 8, 8, (0,)),)).queries == 40
