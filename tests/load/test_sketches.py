"""The cost sketch: Count-Min's promises, merging, forgetting, and the paper's own numbers."""

import json
import pickle
import subprocess
import sys
from math import e

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.load.sketches import CostSketch, SketchShape, instability
from skewless.load.sketches_error import expected_estimate, markov_bound

SHAPE = SketchShape(4, 55)
items = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.floats(0.01, 100.0)), max_size=80)


def sketch_of(pairs, most: int = 0, shape: SketchShape = SHAPE) -> CostSketch:
    hashes = np.array([h for h, _ in pairs], np.uint64)
    return CostSketch.empty(shape, most).update(hashes, np.array([t for _, t in pairs]))


def one(sketch: CostSketch, item: int) -> float:
    return sketch.estimate(np.array([item], np.uint64)).item()


def test_shapes_are_the_papers() -> None:
    assert SketchShape.within(0.05, 0.1) == SketchShape(4, 55)
    assert SketchShape.within(0.7, 0.25) == SketchShape(2, 4)  # Fig. 1
    assert SketchShape.within(1.0, 0.9).rows == 1


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.5, 0.1), (0.1, 0.0), (0.1, 1.0)])
def test_impossible_bounds_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(SkewlessError, match=r"epsilon|delta"):
        SketchShape.within(epsilon, delta)


def test_hash_functions_are_the_same_in_every_process() -> None:
    found = SHAPE.columns_of(np.array([0, 1, 2**64 - 1], np.uint64)).tolist()
    program = (
        "import numpy as np; from skewless.load.sketches import SketchShape;"
        "print(SketchShape(4, 55).columns_of(np.array([0, 1, 2**64 - 1], np.uint64)).tolist())"
    )
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(other.stdout) == found
    hashes = np.array([0, 1, 2**64 - 1], np.uint64)
    assert SketchShape(4, 55, seed=0).columns_of(hashes).tolist() == found
    assert SketchShape(4, 55, seed=1).columns_of(hashes).tolist() != found


def test_two_items_meet_about_as_often_as_chance_has_it() -> None:
    """2-universal: P{h(x) = h(y)} ≤ 1/c, here over 20,000 functions and neighbouring items."""
    shape = SketchShape(64, 16)
    met = [
        (lambda c: c[:, 0] == c[:, 1])(
            SketchShape(64, 16, seed).columns_of(np.array([1, 2], np.uint64))
        )
        for seed in range(320)
    ]
    share = float(np.mean(met))
    deviation = (1 / 16 * 15 / 16 / (320 * 64)) ** 0.5
    assert abs(share - 1 / shape.columns) < 5 * deviation


@given(items)
def test_counts_are_never_below_the_truth(pairs) -> None:
    sketch = sketch_of(pairs)
    hashes = [h for h, _ in pairs]
    assert sketch.count == pytest.approx(len(pairs))
    columns = SHAPE.columns_of(np.array(hashes, np.uint64))
    for i, item in enumerate(hashes):
        smallest = min(sketch.F[row, columns[row, i]] for row in range(4))
        assert smallest >= hashes.count(item)


def test_counts_are_within_epsilon_of_the_stream_as_often_as_delta_says() -> None:
    """P{f̂ − f ≥ ε(m − f)} ≤ δ for every item, over independent hash functions."""
    epsilon, rows = 0.2, 2
    rng = np.random.default_rng(3)
    hashes = rng.integers(0, 200, 2_000).astype(np.uint64)
    true = np.bincount(hashes.astype(np.int64), minlength=200)
    over = 0
    seeds = 200
    for seed in range(seeds):
        shape = SketchShape(rows, round(e / epsilon) + 1, seed)
        sketch = CostSketch.empty(shape).update(hashes, np.ones(len(hashes)))
        cells = shape.columns_of(np.arange(200, dtype=np.uint64))
        guess = np.min([sketch.F[r, cells[r]] for r in range(rows)], axis=0)
        over += int((guess - true >= epsilon * (len(hashes) - true)).sum())
    assert over / (seeds * 200) <= np.exp(-rows)


@given(items)
def test_an_estimate_is_a_mean_of_times_that_were_seen(pairs) -> None:
    sketch = sketch_of(pairs)
    if not pairs:
        assert one(sketch, 5) == 1.0, "before anything is known all items are alike"
        return
    times = [t for _, t in pairs]
    found = sketch.estimate(np.array([h for h, _ in pairs], np.uint64))
    assert found.min() >= min(times) * (1 - 1e-9)
    assert found.max() <= max(times) * (1 + 1e-9)


def test_an_item_alone_in_its_cell_is_exact_and_an_unseen_one_is_the_mean() -> None:
    sketch = sketch_of([(7, 2.0), (7, 4.0), (9, 10.0)])
    assert one(sketch, 7) == 3.0
    assert one(sketch, 9) == 10.0
    taken = {tuple(c) for c in SHAPE.columns_of(np.array([7, 9], np.uint64)).T.tolist()}
    unseen = next(
        i
        for i in range(100, 1_000)
        if all(
            c not in {t[row] for t in taken}
            for row, c in enumerate(SHAPE.columns_of(np.array([i], np.uint64))[:, 0].tolist())
        )
    )
    assert one(sketch, unseen) == pytest.approx(16 / 3)


@given(items, items, st.integers(0, 3))
def test_merging_equals_the_sketch_of_all(left, right, extra) -> None:
    most = len(left) + len(right) + extra
    merged = sketch_of(left, most).merge(sketch_of(right, most))
    whole = sketch_of(left + right, most)
    np.testing.assert_allclose(merged.F, whole.F)
    np.testing.assert_allclose(merged.W, whole.W)
    assert merged.heaviest.hashes.tolist() == whole.heaviest.hashes.tolist()
    np.testing.assert_allclose(merged.heaviest.times, whole.heaviest.times)


def test_sketches_of_other_functions_are_not_merged() -> None:
    with pytest.raises(SkewlessError, match="same shape"):
        sketch_of([]).merge(sketch_of([], shape=SketchShape(4, 55, seed=1)))


@given(items)
def test_the_heaviest_are_exact_however_small_the_matrices(pairs) -> None:
    sketch = sketch_of(pairs, most=5, shape=SketchShape(1, 1))
    assert len(sketch.heaviest.hashes) == min(5, len({h for h, _ in pairs}))
    for item in sketch.heaviest.hashes.tolist():
        times = [t for h, t in pairs if h == item]
        assert one(sketch, item) == pytest.approx(sum(times) / len(times))
    lightest = min(sketch.heaviest.times, default=0.0)
    for item in {h for h, _ in pairs} - set(sketch.heaviest.hashes.tolist()):
        assert sum(t for h, t in pairs if h == item) <= lightest * (1 + 1e-9)


@given(items)
def test_a_sketch_travels_small_and_comes_back_as_it_was(pairs) -> None:
    """Twenty times as many cells as items, and as many as a task sends; few and all of them."""
    for shape in (SketchShape(4, 1360), SHAPE, SketchShape(1, 1)):
        sketch = sketch_of(pairs, most=5, shape=shape)
        sent = pickle.dumps(sketch)
        assert len(sent) < 1_500 + 120 * len(pairs)
        back = pickle.loads(sent)
        assert back.to_json() == sketch.to_json()
        assert back.update(np.array([1], np.uint64), np.array([2.0])).count == len(pairs) + 1


@given(items)
def test_a_sketch_comes_back_from_json_as_it_was(pairs) -> None:
    sketch = sketch_of(pairs, most=8)
    back = CostSketch.from_json(json.loads(json.dumps(sketch.to_json())))
    assert back.shape == sketch.shape
    assert back.most == 8
    assert (back.F == sketch.F).all()
    assert (back.W == sketch.W).all()
    assert back.heaviest.hashes.tolist() == sketch.heaviest.hashes.tolist()
    assert back.heaviest.times.tolist() == sketch.heaviest.times.tolist()


def test_decay_keeps_estimates_and_makes_room_for_newer_ones() -> None:
    old = sketch_of([(7, 10.0)] * 100, most=4).decay(0.5)
    assert one(old, 7) == 10.0
    newer = old.update(np.full(150, 7, np.uint64), np.full(150, 2.0))
    assert one(newer, 7) == pytest.approx((50 * 10 + 150 * 2) / 200)
    gone = newer.decay(0.0)
    assert gone.count == 0
    assert not len(gone.heaviest.hashes)


def test_stability_leaves_out_cells_that_were_never_hit() -> None:
    first = sketch_of([(7, 10.0)])
    assert instability(first.snapshot(), first.snapshot()) == 0.0
    assert instability(sketch_of([]).snapshot(), first.snapshot()) == 0.0
    # The mean of 10 and 20 is half as much again as the snapshot's 10, in every row.
    later = first.update(np.array([7], np.uint64), np.array([20.0]))
    assert instability(first.snapshot(), later.snapshot()) == pytest.approx(0.5)


def test_theorem_4_3_and_the_bound_of_markov() -> None:
    costs = np.repeat(np.arange(1.0, 65.0), 64)
    expected = expected_estimate(costs, 55)
    assert expected.min() == pytest.approx(32.085, abs=5e-4)
    assert expected.max() == pytest.approx(32.915, abs=5e-4)
    assert expected.mean() == pytest.approx(32.5)
    assert markov_bound(33.0, 64 * 3 / 4, rows=10) <= 0.024
    assert markov_bound(33.0, 10.0, rows=10) == 1.0


def test_theorem_4_3_is_what_sketches_do() -> None:
    """One row's W/F over many draws. The theorem takes all items to be hashed independently, so
    they are random numbers here, as the hashes of keys are."""
    costs = np.repeat([1.0, 9.0], 20)
    rng = np.random.default_rng(5)
    total = np.zeros(40)
    for _ in range(3_000):
        hashes = rng.integers(0, 2**63, 40).astype(np.uint64)
        total += CostSketch.empty(SketchShape(1, 8)).update(hashes, costs).estimate(hashes)
    assert total / 3_000 == pytest.approx(expected_estimate(costs, 8), abs=0.15)
