"""Every way in which a plan for tiles can be wrong has its error."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.planning.decision import Limits
from skewless.planning.plan import MovesError, NoGainError, PlacementError, TooManyMovesError
from skewless.planning.tiles.measure import MeasuredTime, SwarmCost
from skewless.planning.tiles.plan import moves_between, planned, stay
from skewless.routing.tiles import Tile, TileRoute, even_tiles
from tests.planning.tiles.cases import grid_of, snapshot, split_rows
from tests.routing.tilings import random_tiles, tile_routes

STRIPES = split_rows(4, (0,), (1,))
SNAPSHOT = snapshot(STRIPES, [[1] * 4, [1] * 4, [1] * 4, [1] * 4])
BETTER = TileRoute(STRIPES.grid, 2, (Tile(0, 0, 2, 4, (0,)), Tile(2, 0, 4, 4, (1,))))
PLAN = planned(SNAPSHOT, BETTER, "", MeasuredTime())


def test_a_sound_plan_passes_and_tells_what_it_does() -> None:
    PLAN.check(SNAPSHOT, Limits(max_moves=1))
    told = PLAN.told()
    assert told == {
        "moves": [[4, 1, 0]],
        "movedKeys": 0,
        "movedRows": 4,
        "imbalanceBefore": 0.5,
        "imbalanceAfter": 0.0,
        "movedCells": 4,
        "tiles": 2,
        "shared": [],
    }
    assert not PLAN.does_nothing


def test_doing_nothing_is_sound() -> None:
    plan = stay(SNAPSHOT, "", MeasuredTime())
    plan.check(SNAPSHOT, Limits(max_moves=0))
    assert plan.does_nothing


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"route": even_tiles(grid_of(8), 2)}, PlacementError, "takes CellGrid(side=4"),
        ({"route": even_tiles(grid_of(4), 3)}, PlacementError, "on 3 instances"),
        ({"moves": ()}, MovesError, "got 0; takes the 1"),
        ({"moves": PLAN.moves * 2}, MovesError, "got 2; takes the 1"),
        ({"moved_subscriptions": 3}, MovesError, "moved_subscriptions: got 3; takes 4"),
    ],
)
def test_a_wrong_plan_is_refused(changes: dict, error: type, says: str) -> None:
    with pytest.raises(error) as refusal:
        replace(PLAN, **changes).check(SNAPSHOT, Limits())
    assert says in str(refusal.value)


def test_too_many_moves_are_refused() -> None:
    with pytest.raises(TooManyMovesError, match="takes at most 0"):
        PLAN.check(SNAPSHOT, Limits(max_moves=0))


def test_a_plan_must_pay_by_its_own_measure() -> None:
    back = snapshot(BETTER, np.ones((4, 4)))
    for measure in (MeasuredTime(), SwarmCost()):
        with pytest.raises(NoGainError, match="1 rectangles move"):
            planned(back, STRIPES, "", measure).check(back, Limits())


def test_what_is_shared_may_be_folded_and_merged_at_a_loss() -> None:
    shared = snapshot(split_rows(2, (0, 1), (1,)), [[4, 4], [2, 2]])
    folded = planned(shared, split_rows(2, (1,), (0,)), "", MeasuredTime())
    folded.check(shared, Limits())
    cut = snapshot(split_rows(2, (0,), (0,)), [[4, 4], [2, 2]])
    whole = TileRoute(cut.route.grid, 1, (Tile(0, 0, 2, 2, (0,)),))
    planned(cut, whole, "", SwarmCost()).check(cut, Limits())


@given(tile_routes(), st.integers(0, 2**32))
def test_moves_are_exactly_the_cells_whose_members_change(old: TileRoute, seed: int) -> None:
    new = random_tiles(np.random.default_rng(seed), old.grid, old.count, 10)
    after = [old.tiles[n].members for n in old.tile_of_cell]
    for move in moves_between(old, new):
        for cell in np.flatnonzero(old.mask(move.cells)).tolist():
            assert after[cell] == move.source
            after[cell] = move.target
    assert after == [new.tiles[n].members for n in new.tile_of_cell]
    assert moves_between(old, old) == ()
