"""Sets by their sorted hashes, beside Python's own sets."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels.sets import ItemSets, SetPairs, added_up, signatures_of

HASHES = st.integers(-6, 6)
SETS = st.lists(st.lists(HASHES, max_size=12).map(sorted), min_size=1, max_size=6)


def item_sets(lists: list[list[int]], weights: list[list[float]] | None = None) -> ItemSets:
    """As Arrow has them: read-only, not from the first element on."""
    column = pa.array([[99], *lists], pa.list_(pa.int64())).slice(1)
    plain = ItemSets.of(column, "h", "w", "i")
    if weights is None:
        return plain
    flat = np.array([0.0, *(w for ws in weights for w in ws)])
    return ItemSets(plain.offsets, plain.hashes, flat)


def every_pair(left: ItemSets, right: ItemSets) -> SetPairs:
    sizes = len(left.offsets) - 1, len(right.offsets) - 1
    rows = np.divmod(np.arange(sizes[0] * sizes[1]), sizes[1])
    return SetPairs(left, rows[0], right, rows[1])


@given(lists=SETS, at_least=st.integers(1, 5))
def test_postings_are_the_first_hashes_each_once(lists: list[list[int]], at_least: int) -> None:
    row, hashes = item_sets(lists).postings(at_least)
    found: dict[int, list[int]] = {}
    for r, h in zip(row.tolist(), hashes.view(np.int64).tolist(), strict=True):
        found.setdefault(r, []).append(h)
    for r, items in enumerate(lists):
        assert found.get(r, []) == sorted(set(items[: max(0, len(items) - at_least + 1)]))


@given(left=SETS, right=SETS, at_least=st.integers(1, 5))
def test_two_sets_that_overlap_meet_at_their_least_common_hash(
    left: list[list[int]], right: list[list[int]], at_least: int
) -> None:
    left, right = ([sorted(set(s)) for s in side] for side in (left, right))
    sides = item_sets(left), item_sets(right)
    pairs = every_pair(*sides)
    wanted = [len(set(a) & set(b)) >= at_least for a in left for b in right]
    assert pairs.overlapping(at_least).tolist() == wanted
    signed = (replace(s, signatures=signatures_of(s)) for s in sides)
    assert every_pair(*signed).overlapping(at_least).tolist() == wanted
    # At every pair of postings of equal hash: each pair is found at one of them.
    met: dict[tuple[int, int], int] = {}
    of_left, of_right = (s.postings(at_least) for s in sides)
    for a, h in zip(*of_left, strict=True):
        for b, other in zip(*of_right, strict=True):
            if h == other:
                one = SetPairs(sides[0], np.array([a]), sides[1], np.array([b]))
                if one.overlapping(at_least, np.array([h]).view(np.int64)).all():
                    met[int(a), int(b)] = met.get((int(a), int(b)), 0) + 1
    rows = [(a, b) for a in range(len(left)) for b in range(len(right))]
    assert met == {pair: 1 for pair, holds in zip(rows, wanted, strict=True) if holds}


@given(left=SETS, right=SETS, data=st.data())
def test_inner_products(left: list[list[int]], right: list[list[int]], data: st.DataObject) -> None:
    left, right = ([sorted(set(s)) for s in side] for side in (left, right))
    weight = st.sampled_from([-2.0, -0.5, 0.25, 1.0, 4.0])
    weights = [[[data.draw(weight) for _ in s] for s in side] for side in (left, right)]
    pairs = every_pair(item_sets(left, weights[0]), item_sets(right, weights[1]))
    product, most = pairs.products()
    by_item = [
        [dict(zip(s, w, strict=True)) for s, w in zip(*side, strict=True)]
        for side in zip((left, right), weights, strict=True)
    ]
    wanted = [[a[i] * b[i] for i in a.keys() & b.keys()] for a in by_item[0] for b in by_item[1]]
    assert product.tolist() == [sum(terms) for terms in wanted]
    assert most.tolist() == [sum(max(t, 0) for t in terms) for terms in wanted]
    least = [min(set(a) & set(b), default=7) for a in left for b in right]
    told = np.array(least, np.int64)
    assert np.isneginf(pairs.products(told)[0]).tolist() == [h == 7 for h in least]
    assert np.isneginf(pairs.products(told - 1)[0]).all()


def test_a_small_set_is_searched_for_in_a_large_one() -> None:
    large, small = sorted(range(0, 20_000, 2)), [3, 4, 19_998, 30_000]
    for sides in ((large, small), (small, large)):
        pairs = every_pair(item_sets([sides[0]]), item_sets([sides[1]]))
        assert pairs.overlapping(2).tolist() == [True]
        assert pairs.overlapping(2, np.array([4])).tolist() == [True]
        assert pairs.overlapping(2, np.array([19_998])).tolist() == [False]
        assert pairs.overlapping(3).tolist() == [False]


def colliding(rows: list[list[tuple[int, str, float]]]) -> ItemSets:
    kind = pa.struct([("h", pa.int64()), ("i", pa.string()), ("w", pa.float64())])
    made = [[{"h": h, "i": i, "w": w} for h, i, w in row] for row in rows]
    return ItemSets.of(pa.array(made, pa.list_(kind)), "h", "w", "i")


def test_items_that_share_a_hash_are_told_apart() -> None:
    left = colliding([[(1, "a", 1.0), (5, "x", 1.0), (5, "y", 1.0)], [(1, "a", 1.0)]])
    right = colliding([[(1, "a", 2.0), (5, "z", 9.0)], [(1, "b", -4.0), (5, "y", 3.0)]])
    pairs = every_pair(left, right)
    assert pairs.proved().tolist() == [False, False, True, False]
    exact = pairs.by_identity()
    assert exact.overlapping(1).tolist() == [True, True, True, False]
    assert exact.overlapping(2).tolist() == [False] * 4
    assert exact.products()[0].tolist() == [2.0, 3.0, 2.0, 0.0]
    # Hashes alone say less than the truth where a collision is negative: the bound does not.
    product, most = pairs.products()
    assert product[1] < 3.0 <= most[1]


def test_weights_of_an_item_are_added_and_zeros_go() -> None:
    sets = colliding(
        [
            [(1, "a", 1.0), (1, "a", 2.5), (1, "b", 4.0)],
            [],
            [(1, "b", 1.0), (2, "c", 1.0), (2, "c", -1.0), (3, "d", 0.0)],
        ]
    )
    found = added_up(sets)
    assert found is not None
    assert found.offsets.tolist() == [0, 2, 2, 3]
    assert found.weights is not None
    assert found.weights.tolist() == [3.5, 4.0, 1.0]
    assert found.items is not None
    assert found.items.to_pylist() == ["a", "b", "b"]
    assert added_up(found) is None
    empty = colliding([[], []])
    assert added_up(empty) is None
