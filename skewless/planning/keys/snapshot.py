"""What a key-table planner may know: every reported key's cost, state, home and instance."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skewless.errors import SkewlessError
from skewless.load.imbalance import imbalance
from skewless.planning.snapshot import Snapshot
from skewless.routing.partitions import partition_of

Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]
Instances = npt.NDArray[np.int64]

# The current instance of a key whose instance is no longer there.
GONE = -1


@dataclass(frozen=True, eq=False)
class KeySnapshot:
    """The measured keys of a stateful operator after an interval; read-only.

    One entry per reported key: `cost` is c(k), its load in the last interval; `state` is S(k, w),
    its stored rows, which is what a move costs; `home` is where the hash sends it, `current` where
    it is. `rest` has one entry per instance: the load of all keys that are not reported and
    therefore cannot move.

    Every key of the table in force has to be reported, with a cost of 0 if it had none: a plan is
    the complete next table, and a key it does not name goes home.

    More entries in `rest` than there were instances is a scale-out. In a scale-in, keys whose
    instance is no longer there are `GONE` (-1): they have to move whatever happens, and count at
    home, where they go unless a plan says otherwise.

    >>> two = np.array([0, 0])
    >>> snapshot = KeySnapshot(
    ...     np.array([7, 9], np.uint64), np.array([6.0, 2.0]), np.ones(2), two, two, np.zeros(2)
    ... )
    >>> snapshot.loads.tolist(), snapshot.skewness
    ([8.0, 0.0], 1.0)
    """

    hashes: Hashes
    cost: Floats
    state: Floats
    home: Instances
    current: Instances
    rest: Floats

    def __post_init__(self) -> None:
        for name in ("cost", "state", "home", "current"):
            shape = getattr(self, name).shape
            if shape != self.hashes.shape or len(shape) != 1:
                raise SkewlessError(
                    f"{name}: got {shape} values; takes one per key {self.hashes.shape}"
                )
        if self.rest.ndim != 1 or not self.rest.size:
            raise SkewlessError(f"rest: got {self.rest.shape} values; takes one per instance")
        for name in ("cost", "state", "rest"):
            values = getattr(self, name)
            # One pass each: NaN makes the minimum NaN, infinity the maximum infinite.
            if values.size and not (values.min() >= 0 and values.max() < np.inf):
                raise SkewlessError(f"{name}: takes finite values of at least 0")
        for name, least in (("home", 0), ("current", GONE)):
            of = getattr(self, name)
            if of.size and not (of.min() >= least and of.max() < self.instances):
                raise SkewlessError(f"{name}: takes instances from {least} to {self.instances - 1}")

    @property
    def keys(self) -> int:
        return len(self.hashes)

    @property
    def instances(self) -> int:
        return len(self.rest)

    @cached_property
    def standing(self) -> Instances:
        """Where every key is if nothing is planned: where it was, or home if that is gone."""
        if not self.keys or self.current.min() > GONE:
            return self.current
        return np.where(self.current == GONE, self.home, self.current)

    @cached_property
    def loads(self) -> Floats:
        """L(d) of every instance if nothing is planned."""
        return self.loads_of(self.standing)

    def loads_of(self, placed: Instances) -> Floats:
        """L(d) of every instance if the keys were placed so."""
        return self.rest + np.bincount(placed, self.cost, self.instances)

    @cached_property
    def mean(self) -> float:
        """L̄, which no plan changes."""
        return float(self.loads.mean())

    @cached_property
    def theta(self) -> Floats:
        """θ(d) = |L(d) − L̄| / L̄ of every instance; 0 without any load."""
        if self.mean <= 0:
            return np.zeros(self.instances)
        return np.abs(self.loads - self.mean) / self.mean

    @property
    def skewness(self) -> float:
        """The largest θ(d)."""
        return imbalance(self.loads)

    @property
    def table_size(self) -> int:
        """How many keys are away from home."""
        return int(np.count_nonzero(self.standing != self.home))


def key_snapshot(snapshot: Snapshot) -> KeySnapshot:
    """The reported keys by themselves, and per instance the load of all others.

    A key of the table that was not heavy enough to be reported has no cost of its own: what it has
    counts among the others at its home.
    """
    table = snapshot.table
    entries = {entry.hash: entry.members[0] for entry in snapshot.entries}
    cost = {key.hash: key.load for key in snapshot.hot_keys}
    rows = {key.hash: key.left_rows + key.right_rows for key in snapshot.hot_keys}
    hashes = np.array([*cost, *(h for h in entries if h not in cost)], np.uint64)
    places = partition_of(hashes, table.partitions)
    costs = np.array([cost.get(h, 0.0) for h in hashes.tolist()])
    seen = np.array([rows.get(h, 0) for h in hashes.tolist()], np.float64)
    home = table.owners[places].astype(np.int64)
    # A key has as large a share of its partition's state as it has of its rows.
    share = np.minimum(1.0, seen / np.maximum(snapshot.queued[places], 1.0))
    others = snapshot.load.copy()
    np.subtract.at(others, places, costs)
    return KeySnapshot(
        hashes=hashes,
        cost=costs,
        state=share * snapshot.stored[places],
        home=home,
        current=np.array(
            [entries.get(h, at) for h, at in zip(hashes.tolist(), home.tolist(), strict=True)],
            np.int64,
        ),
        rest=snapshot.by_instance(np.maximum(others, 0.0)),
    )
