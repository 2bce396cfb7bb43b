"""Snapshots of keys written by hand, drawn at random, or made so that a perfect plan exists."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from skewless.planning.keys.plan import KeyPlan, placement
from skewless.planning.keys.snapshot import GONE, KeySnapshot


def snapshot(
    cost: Sequence[float],
    home: Sequence[int],
    current: Sequence[int] | None = None,
    *,
    state: Sequence[float] | None = None,
    rest: Sequence[float] = (0.0, 0.0),
) -> KeySnapshot:
    """Keys 1, 2, … with these costs; if not told, their state is their cost, and they are home."""
    costs = np.asarray(cost, np.float64)
    return KeySnapshot(
        hashes=np.arange(1, len(costs) + 1).astype(np.uint64),
        cost=costs,
        state=costs if state is None else np.asarray(state, np.float64),
        home=np.asarray(home, np.int64),
        current=np.asarray(home if current is None else current, np.int64),
        rest=np.asarray(rest, np.float64),
    )


def worked_example() -> KeySnapshot:
    """Fig. 4: d1 = {k1: 7, k2: 4, k5: 5}, d2 = {k3: 2, k4: 1, k6: 1}; k3 and k5 are away."""
    return snapshot([7, 4, 2, 1, 5, 1], home=[0, 0, 0, 1, 1, 1], current=[0, 0, 1, 1, 0, 1])


def zipf(
    keys: int,
    instances: int,
    *,
    exponent: float = 0.85,
    seed: int = 1,
    away: float = 0.0,
    window: int = 1,
) -> KeySnapshot:
    """Zipf costs over keys that the hash spreads evenly; a share of them is away from home."""
    rng = np.random.default_rng(seed)
    cost = 100.0 * keys * np.arange(1, keys + 1) ** -exponent
    cost = rng.permutation(np.ceil(cost / cost.sum() * 10 * keys))
    home = rng.integers(0, instances, keys)
    current = np.where(rng.random(keys) < away, rng.integers(0, instances, keys), home)
    return KeySnapshot(
        hashes=rng.permutation(np.arange(keys, dtype=np.uint64) * np.uint64(2**40 + 7)),
        cost=cost,
        state=cost * rng.uniform(1, 2 * window - 1, keys).round(),
        home=home,
        current=current,
        rest=np.zeros(instances),
    )


def perfect(instances: int, rng: np.random.Generator) -> KeySnapshot:
    """Keys that can be placed so that every instance has 60, none of them costing that much."""
    parts = []
    for _ in range(instances):
        cuts = np.sort(rng.choice(np.arange(1, 60), int(rng.integers(1, 9)), replace=False))
        parts.append(np.diff(np.concatenate([[0], cuts, [60]])))
    cost = rng.permutation(np.concatenate(parts))
    home = rng.integers(0, instances, len(cost))
    return snapshot(cost.tolist(), home.tolist(), rest=[0.0] * instances)


def placed(plan: KeyPlan, of: KeySnapshot) -> list[list[int]]:
    """The keys of every instance under a plan."""
    at = placement(plan, of)
    return [of.hashes[at == d].tolist() for d in range(of.instances)]


@st.composite
def snapshots(draw: st.DrawFn) -> KeySnapshot:
    """Anything that may be measured: keys without load or state, fixed loads, lost instances."""
    instances = draw(st.integers(1, 6))
    keys = draw(st.integers(0, 40))
    of = st.integers(0, instances - 1)
    numbers = st.one_of(st.integers(0, 9).map(float), st.floats(1e-3, 1e6))

    def each(values: st.SearchStrategy[float] | st.SearchStrategy[int], count: int) -> list[float]:
        return draw(st.lists(values, min_size=count, max_size=count))  # type: ignore[arg-type]

    return KeySnapshot(
        hashes=np.array(
            draw(st.lists(st.integers(0, 2**64 - 1), min_size=keys, max_size=keys, unique=True)),
            np.uint64,
        ),
        cost=np.array(each(numbers, keys), np.float64),
        state=np.array(each(numbers, keys), np.float64),
        home=np.array(each(of, keys), np.int64),
        current=np.array(each(st.one_of(of, of, st.just(GONE)), keys), np.int64),
        rest=np.array(each(numbers, instances), np.float64),
    )
