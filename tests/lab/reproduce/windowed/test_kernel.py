"""What the compiled loop probes is what the shares of `skewless.shedding` say."""

from math import ceil

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.lab.reproduce.windowed import kernel, probing
from skewless.lab.reproduce.windowed.streams import Streams, paper_streams
from skewless.lab.workloads.rotating import Rotating
from skewless.shedding.ranking import shares

SECONDS, WINDOW_S, BASIC_S = 12.0, 6.0, 1.0


@pytest.mark.parametrize("fraction", [0.0, 0.03, 0.31, 0.5, 0.98, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_probe_reads_the_shares_of_the_basic_windows(fraction: float, seed: int) -> None:
    print("seed", seed)
    given = paper_streams(
        seed, exponent=0.8, window_s=WINDOW_S, lag=0.0, phases=((37.0, 7.0), (11.0, 5.0))
    )
    tuples = given.tuples
    n = 1 + ceil(WINDOW_S / BASIC_S)
    order = np.random.default_rng(seed).permutation(n)
    # A threshold of nothing: all that is compared matches.
    settings = kernel.Settings(
        probing.SCAN, 0, np.full(2, WINDOW_S), 1 / BASIC_S, 1.0, 0.0, 1.0, 0.0
    )
    slots = int(SECONDS / BASIC_S) + 1
    buffers, counts = kernel.new_buffers(tuples), kernel.new_counts(int(SECONDS), n)
    windows = probing.new_windows(tuples, given.items, slots)
    slot_of = (tuples.time_s / BASIC_S).astype(np.int64)
    lists = probing.new_lists(tuples, given.items, slots, slot_of, probing.SCAN)
    pairs = probing.new_pairs(10_000)
    i = int(np.flatnonzero(tuples.side == 0)[-1])
    now = float(tuples.time_s[i])
    kernel.fill(tuples, buffers, windows, lists, settings, now)
    knobs = kernel.Knobs(fraction, np.full(2, fraction), np.stack([order, order]))
    used, matches = kernel._probe(
        tuples, windows, lists, pairs, counts, settings, knobs, i, slot_of[i]
    )
    found = pairs.second[: pairs.found[0]]
    assert matches == used == len(found) == len(set(found.tolist()))

    inside = (tuples.side == 1) & (tuples.time_s >= now - WINDOW_S) & (tuples.time_s < now)
    age = slot_of[i] - slot_of
    sizes = np.bincount(age[inside], minlength=n).astype(np.float64)
    probed = np.bincount(age[found], minlength=n)
    assert probed == pytest.approx(shares(order, sizes, fraction) * sizes, abs=0.5)
    for j in np.flatnonzero((probed > 0) & (probed < sizes)):
        newest = np.flatnonzero(inside & (age == j))[-probed[j] :]
        assert sorted(found[age[found] == j]) == newest.tolist(), "a part is the newest part"


def test_posting_lists_refuse_sets_that_are_too_large() -> None:
    workload = Rotating(0.0, 10.0, mean_size=70.0)
    given = Streams.rotating(workload, ((10.0, 1.0),), np.random.default_rng(1))
    slot_of = np.zeros(len(given.tuples.time_s), np.int64)
    probing.new_lists(given.tuples, given.items, 1, slot_of, probing.SCAN)
    with pytest.raises(SkewlessError, match="fewer than 64"):
        probing.new_lists(given.tuples, given.items, 1, slot_of, probing.BY_TIME)


def test_a_full_buffer_loses_tuples_of_all_ages() -> None:
    given = paper_streams(1, exponent=0.8, window_s=WINDOW_S, lag=0.0, phases=((100.0, 10.0),))
    buffers, counts = kernel.new_buffers(given.tuples), kernel.new_counts(10, 0)
    kernel._admit(given.tuples, buffers, counts, 1.0, 10.0)
    for side in (0, 1):
        begin, end = buffers.ends[side]
        waiting = given.tuples.time_s[buffers.waiting[side, begin:end]]
        assert len(waiting) == 100  # a second's worth
        assert (np.diff(waiting) > 0).all()
        assert 1.5 < np.ptp(waiting) < 9.9
    assert counts.dropped.sum() == 2 * 900
    assert counts.dropped[0] == 0
