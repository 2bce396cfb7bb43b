"""The nearest of many candidates, against sorting all of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels import nearest
from skewless.kernels.nearest import NearestRows
from skewless.kernels.warmup import compile_near

candidates = st.lists(
    st.tuples(
        st.integers(0, 3),  # needle
        st.sampled_from([0.0, 0.5, 1.0, 1e300]),
        st.integers(-2, 2),  # time
        st.integers(0, 2),  # hash
    ),
    max_size=40,
)


@given(offered=candidates, k=st.integers(1, 6), runs=st.integers(1, 4), data=st.data())
def test_the_nearest_are_those_that_sorting_finds(offered, k, runs, data) -> None:
    """In whatever order and runs they are offered; the number of a row is its place in the list."""
    best = NearestRows(4, k)
    order = data.draw(st.permutations(range(len(offered))))
    for run in range(runs):
        some = np.array(order[run::runs], np.int64)
        columns = [np.array([offered[i][field] for i in some]) for field in range(4)]
        best.offer(
            columns[0].astype(np.int64),
            columns[1].astype(np.float64),
            columns[2].astype(np.int64),
            columns[3].astype(np.uint64),
            run,
            some,
        )
    found: dict[int, list[tuple[float, int, int]]] = {}
    seen = set()
    for run, needles, rows in best.chosen():
        for needle, row in zip(needles.tolist(), rows.tolist(), strict=True):
            assert row in order[run::runs]
            assert offered[row][0] == needle
            seen.add(row)
            found.setdefault(needle, []).append(_rank(offered[row]))
    assert len(seen) == sum(map(len, found.values())), "no row comes twice"
    for needle in range(4):
        ranks = sorted(_rank(o) for o in offered if o[0] == needle)[:k]
        assert sorted(found.get(needle, [])) == ranks


def _rank(offer: tuple[int, float, int, int]) -> tuple[float, int, int]:
    return offer[1], -offer[2], offer[3]


def test_what_was_warmed_up_is_not_compiled_again() -> None:
    compile_near()
    compiled = len(nearest._offer.signatures)
    row = np.zeros(2, np.int64)
    NearestRows(3, 2).offer(row, np.zeros(2), row, np.zeros(2, np.uint64), 5, row)
    assert len(nearest._offer.signatures) == compiled
