"""Random tiles that cover a map."""

import numpy as np
from hypothesis import strategies as st

from skewless.routing.cells import CellGrid
from skewless.routing.tiles import Tile, TileRoute


def random_tiles(
    rng: np.random.Generator, grid: CellGrid, instances: int, cuts: int, shared: float = 0.2
) -> TileRoute:
    """A map cut at random lines, its tiles given to one instance or to several."""
    tiles = [Tile(0, 0, grid.side, grid.side, (0,))]
    for _ in range(cuts):
        tile = tiles.pop(int(rng.integers(len(tiles))))
        axis = "rows" if rng.random() < 0.5 else "columns"
        lines = tile.rows if axis == "rows" else tile.columns
        at = int(rng.integers(1, lines)) if lines > 1 else 0
        tiles += tile.cut(axis, at) if at else (tile,)
    given = []
    for tile in tiles:
        count = int(rng.integers(1, instances + 1)) if rng.random() < shared else 1
        given.append(tile.given(rng.permutation(instances)[:count].tolist()))
    return TileRoute(grid, instances, tuple(given))


@st.composite
def tile_routes(draw: st.DrawFn, side: int = 8, most: int = 6) -> TileRoute:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    grid = CellGrid(side, (0.0, 0.0, 1.0, 1.0))
    return random_tiles(rng, grid, draw(st.integers(1, most)), draw(st.integers(0, 20)))
