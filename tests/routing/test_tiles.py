"""Tiles cover a map, and a rectangle reaches exactly the instances that work on its cells."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.routing.cells import CellGrid
from skewless.routing.kinds import route_from_json
from skewless.routing.tiles import Tile, TileRoute, even_tiles, halves
from tests.routing.tilings import tile_routes

GRID = CellGrid(8, (0.0, 0.0, 1.0, 1.0))
CELLS = st.integers(0, 7)
ENDS = st.tuples(CELLS, CELLS).map(sorted)


def members_of(route: TileRoute) -> list[tuple[int, ...]]:
    """The members of every cell, by asking each tile."""
    side = route.grid.side
    found: list[list[Tile]] = [[] for _ in range(side * side)]
    for tile in route.tiles:
        for row in range(tile.top, tile.bottom):
            for column in range(tile.left, tile.right):
                found[row * side + column].append(tile)
    assert all(len(tiles) == 1 for tiles in found), "each cell has one tile"
    return [tiles[0].members for tiles in found]


@given(tile_routes())
def test_a_cell_has_one_tile_and_its_owner_is_in_the_table(route: TileRoute) -> None:
    members = members_of(route)
    assert route.table.assignment == tuple(of[0] for of in members)
    for instance in range(route.instances):
        assert route.reads(instance) == {c for c, of in enumerate(members) if instance in of}
    assert sum(route.mask(tile).sum() for tile in route.tiles) == route.partitions


@given(tile_routes(), st.integers(0, 2**32))
def test_a_point_goes_to_a_member_of_its_tile(route: TileRoute, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, route.partitions, 200)
    spread = rng.integers(0, 2**64, 200, dtype=np.uint64)
    homes = route.homes("left", route.grid.hashes(cells), spread)
    members = members_of(route)
    assert all(home in members[cell] for home, cell in zip(homes, cells, strict=True))
    assert (route.homes("left", route.grid.hashes(cells), spread) == homes).all()


def test_members_of_a_tile_get_equal_shares() -> None:
    route = TileRoute(GRID, 4, (Tile(0, 0, 8, 8, (3, 1)),))
    spread = np.random.default_rng(0).integers(0, 2**64, 10_000, dtype=np.uint64)
    homes = route.homes("left", np.zeros(10_000, np.uint64), spread)
    assert sorted(np.unique(homes)) == [1, 3]
    assert abs((homes == 1).mean() - 0.5) < 0.03


@given(tile_routes(), st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=8))
def test_a_rectangle_reaches_the_members_of_all_its_cells(route: TileRoute, given_: list) -> None:
    ends = np.array([(r[0], c[0], r[1], c[1]) for r, c in given_])
    visits = route.reached(*ends.T)
    names = np.array(range(route.partitions)).reshape(8, 8)
    members = members_of(route)
    for n, (top, left, bottom, right) in enumerate(ends.tolist()):
        cells = names[top : bottom + 1, left : right + 1].ravel()
        expected = {member for cell in cells for member in members[cell]}
        mine = visits.row == n
        assert sorted(visits.instance[mine].tolist()) == sorted(expected)
        assert visits.instance[mine & visits.home].tolist() == [members[cells[0]][0]]
    assert (np.diff(visits.row) >= 0).all()


def algorithm_1(route: TileRoute, top: int, left: int, bottom: int, right: int) -> set[int]:
    """The paper's search as printed: from a tile, on to the right and down, once per tile."""
    side = route.grid.side
    found: set[int] = set()
    waiting = [(top, left)]
    while waiting:
        row, column = waiting.pop()
        if row > bottom or column > right:
            continue
        number = int(route.tile_of_cell[row * side + column])
        if number not in found:
            found.add(number)
            tile = route.tiles[number]
            waiting += [(row, tile.right), (tile.bottom, column)]
    return found


def test_algorithm_1_misses_tiles_that_ours_reaches() -> None:
    """The third tile is first reached in its second row, so its right neighbour in the first row
    stays unseen."""
    grid = CellGrid(4, (0.0, 0.0, 1.0, 1.0))
    tiles = (
        Tile(0, 0, 2, 1, (0,)),
        Tile(2, 0, 4, 1, (1,)),
        Tile(1, 1, 4, 2, (2,)),
        Tile(0, 1, 1, 4, (3,)),
        Tile(1, 2, 2, 4, (4,)),
        Tile(2, 2, 4, 4, (5,)),
    )
    route = TileRoute(grid, 6, tiles)
    assert algorithm_1(route, 0, 0, 3, 3) == {0, 1, 2, 3, 5}
    everywhere = [np.array([end]) for end in (0, 0, 3, 3)]
    assert route.reached(*everywhere).instance.tolist() == [0, 1, 2, 3, 4, 5]


@given(tile_routes(), st.integers(1, 12))
def test_another_number_of_instances_keeps_what_it_can(route: TileRoute, instances: int) -> None:
    resized = route.resized(instances)
    before, after = members_of(route), members_of(resized)
    assert resized.instances == instances
    if instances <= route.instances:
        for old, new in zip(before, after, strict=True):
            left = tuple(member for member in old if member < instances)
            assert new == left if left else len(new) == 1
    else:
        kept = [new == old for old, new in zip(before, after, strict=True)]
        working = {member for of in after for member in of}
        assert set(range(route.instances, instances)) <= working
        assert any(kept)


@given(tile_routes())
def test_tiles_survive_json(route: TileRoute) -> None:
    assert route_from_json(json.loads(json.dumps(route.to_json()))) == route


@given(st.sampled_from([1, 2, 8, 16]), st.integers(1, 40))
def test_at_first_everybody_has_a_tile_of_about_the_same_area(side: int, instances: int) -> None:
    route = even_tiles(CellGrid(side, (0.0, 0.0, 1.0, 1.0)), instances)
    members_of(route)
    assert {m for tile in route.tiles for m in tile.members} == set(range(instances))
    areas = [tile.area for tile in route.tiles]
    assert max(areas) <= 3 * min(areas)
    assert all(max(t.rows, t.columns) <= 2 * min(t.rows, t.columns) for t in route.tiles)


def test_a_tile_is_halved_across_its_longer_side() -> None:
    assert halves(Tile(0, 0, 4, 2, (0,)))[0] == Tile(0, 0, 2, 2, (0,))
    assert halves(Tile(0, 0, 2, 4, (0,)))[0] == Tile(0, 0, 2, 2, (0,))


WHOLE = Tile(0, 0, 8, 8, (0,))


@pytest.mark.parametrize(
    ("tiles", "says"),
    [
        ((), "row 0, column 0 0 times"),
        ((WHOLE, Tile(7, 7, 8, 8, (1,))), "row 7, column 7 2 times"),
        ((replace(WHOLE, bottom=9),), "rectangles within 8 × 8 cells"),
        ((replace(WHOLE, top=8),), "rectangles within 8 × 8 cells"),
        ((WHOLE.given(()),), "members, each of them once"),
        ((WHOLE.given((1, 1)),), "members, each of them once"),
        ((WHOLE.given((2,)),), "members from 0 to 1"),
    ],
)
def test_tiles_that_do_not_cover_the_map_are_refused(tiles: tuple, says: str) -> None:
    with pytest.raises(SkewlessError) as refusal:
        TileRoute(GRID, 2, tiles)
    assert says in str(refusal.value)
