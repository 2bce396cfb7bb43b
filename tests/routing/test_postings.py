"""Rows with several postings: to every instance once, and counted on one of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewless.routing.postings import row_visits
from skewless.routing.route import Route
from tests.routing.cases import routes

KEYS = np.random.default_rng(9).integers(0, 2**64, 6, dtype=np.uint64)


@given(
    route=routes(KEYS.tolist()),
    postings=st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=6),
    side=st.sampled_from(["left", "right"]),
    seed=st.integers(0, 2**32),
)
def test_a_row_visits_where_its_postings_do(
    route: Route, postings: list[list[int]], side: str, seed: int
) -> None:
    spread = np.random.default_rng(seed).integers(0, 2**64, len(postings), dtype=np.uint64)
    owner = np.repeat(np.arange(len(postings)), [len(p) for p in postings]).astype(np.int64)
    hashes = KEYS[np.array([k for p in postings for k in p], np.int64)]
    found = row_visits(route, side, owner, hashes, spread)  # type: ignore[arg-type]
    assert found.row[found.home].tolist() == list(range(len(postings))), "counted once"
    for row, keys in enumerate(postings):
        mine = found.instance[found.row == row].tolist()
        assert len(mine) == len(set(mine)), "an instance is visited once"
        single = np.full(len(keys), spread[row])
        ways = route.visits(side, KEYS[np.array(keys, np.int64)], single)  # type: ignore[arg-type]
        if keys:
            assert set(mine) == set(ways.instance.tolist())
            (home,) = found.instance[(found.row == row) & found.home].tolist()
            assert home == ways.instance[ways.home & (ways.row == 0)][0]
        else:
            assert len(mine) == 1
