"""Keys whose frequencies change from interval to interval, as the rebalancing paper makes them."""

from collections import deque

import numpy as np
import numpy.typing as npt

from skewless.errors import bad_argument

Floats = npt.NDArray[np.float64]
Instances = npt.NDArray[np.int64]

# Pairs that are drawn at a time, and how often, before a change is taken as far as it will go.
_PAIRS = 256
_DRAWS = 400


class Fluctuation:
    """Zipf frequencies over keys; in every interval some are swapped between instances.

    The paper swaps frequencies of keys of different instances until |L_i(d) − L_{i−1}(d)| ≥ f·L̄,
    and does not say of which instance d, nor which keys. Here d is drawn at random, and hotter keys
    come to it for colder ones of its own, drawn as often as their tuples occur, until its load has
    grown by f·L̄ or nothing hotter is left elsewhere. `window` is w: how many intervals are stored.

    >>> flow = Fluctuation(1_000, zipf=0.85, rate=1.0, window=2, rng=np.random.default_rng(1))
    >>> at = np.arange(1_000) % 5
    >>> before = np.bincount(at, flow.cost)
    >>> flow.step(at, 5)
    >>> bool((np.bincount(at, flow.cost) - before).max() >= before.mean())
    True
    """

    def __init__(
        self,
        keys: int,
        *,
        zipf: float,
        rate: float,
        window: int,
        rng: np.random.Generator,
        tuples: float | None = None,
    ) -> None:
        if keys < 1:
            raise bad_argument("keys", keys, "at least 1 key")
        if not (np.isfinite(zipf) and zipf >= 0):
            raise bad_argument("zipf", zipf, "a number of at least 0")
        if not (np.isfinite(rate) and rate >= 0):
            raise bad_argument("rate", rate, "a number of at least 0")
        if window < 1:
            raise bad_argument("window", window, "at least 1 interval")
        self._rng = rng
        self._rate = rate
        shares = np.arange(1, keys + 1, dtype=np.float64) ** -zipf
        counts = shares / shares.sum() * (10.0 * keys if tuples is None else tuples)
        # Whole tuples, and no key without any.
        first = rng.permutation(np.maximum(1.0, np.rint(counts)))
        self._intervals: deque[Floats] = deque([first], maxlen=window)

    @property
    def cost(self) -> Floats:
        """The tuples of every key in the last interval."""
        return self._intervals[-1]

    @property
    def state(self) -> Floats:
        """The tuples of every key in the last w intervals."""
        total: Floats = np.sum(self._intervals, axis=0)
        return total

    def step(self, placed: Instances, instances: int) -> None:
        """The next interval, with the keys placed so."""
        cost = self.cost.copy()
        if instances > 1 and self._rate > 0:
            self._swap(cost, placed, int(self._rng.integers(instances)), instances)
        self._intervals.append(cost)

    def _swap(self, cost: Floats, placed: Instances, grows: int, instances: int) -> None:
        """Brings hotter keys to an instance until it has grown by f·L̄."""
        missing = self._rate * float(cost.sum()) / instances
        own = np.flatnonzero(placed == grows)
        others = np.flatnonzero(placed != grows)
        if not own.size or not others.size:
            return
        for _ in range(_DRAWS):
            # By tuples, not by keys: most keys have so few that swapping them changes nothing.
            cumulative = np.cumsum(cost[others])
            drawn = self._rng.random(_PAIRS) * cumulative[-1]
            hot = others[np.searchsorted(cumulative, drawn, side="right").clip(max=len(others) - 1)]
            cold = self._rng.choice(own, _PAIRS)
            # A key takes part in one pair only, so that the pairs can be swapped at once.
            keep = np.intersect1d(
                np.unique(hot, return_index=True)[1], np.unique(cold, return_index=True)[1]
            )
            hot, cold = hot[keep], cold[keep]
            gain = cost[hot] - cost[cold]
            hot, cold, gain = hot[gain > 0], cold[gain > 0], gain[gain > 0]
            enough = int(np.searchsorted(np.cumsum(gain), missing)) + 1
            hot, cold = hot[:enough], cold[:enough]
            cost[hot], cost[cold] = cost[cold], cost[hot]
            missing -= float(gain[:enough].sum())
            if missing <= 0:
                return
