"""`skewless bench planning`: the paper's annealing beside Auto's search, on the same loads."""

import statistics
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from skewless.load.imbalance import imbalance, overload
from skewless.load.resources import per_instance, resources
from skewless.planning.auto import AIM, Auto
from skewless.planning.lsstream import LsStream
from skewless.planning.measure import Measured
from skewless.planning.plan import Plan, validate
from skewless.planning.policy import RoutingPolicy
from skewless.planning.snapshot import HotKey, Snapshot
from skewless.routing.partitions import PartitionTable, partition_of, round_robin
from skewless.routing.splits import Split

SEED = 7
EXPONENTS = (0.2, 0.4, 0.6, 0.8, 1.0)
SIZES = ((256, 32), (65_536, 1_000))
SEEDS = 3
THRESHOLDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
NOISES = (0.02, 0.05, 0.1)
GAMMA = 0.5


def run(*, quick: bool = False, clock: Callable[[], float] = time.perf_counter) -> dict[str, Any]:
    """Imbalance reached, rows moved and time taken by either planner; then Auto's threshold.

    >>> sorted(run(quick=True))
    ['benchmark', 'planners', 'quick', 'seed', 'thresholds']
    """
    sizes = SIZES[:1] if quick else SIZES
    return {
        "benchmark": "planning",
        "quick": quick,
        "seed": SEED,
        "planners": [
            row
            for partitions, instances in sizes
            for exponent in (EXPONENTS[-1:] if quick else EXPONENTS)
            for row in compare(partitions, instances, exponent, clock=clock)
        ],
        "thresholds": [
            sweep(threshold, noise, rounds=10 if quick else 30)
            for noise in (NOISES[:1] if quick else NOISES)
            for threshold in (THRESHOLDS[:2] if quick else THRESHOLDS)
        ],
    }


def compare(
    partitions: int, instances: int, exponent: float, *, clock: Callable[[], float]
) -> list[dict[str, Any]]:
    """Both planners on the same loads, the paper's resources, from a table dealt in turn.

    Each plans until it moves nothing more. Keys are not split, so that both have the same means.
    """
    policies: dict[str, RoutingPolicy] = {
        "LsStream": LsStream(instances, partitions=partitions),
        "LsStream, as tight as Auto": LsStream(
            instances, partitions=partitions, threshold=AIM * Auto().threshold
        ),
        "Auto": Auto(instances, split=False),
    }
    rows = []
    for name, policy in policies.items():
        runs = []
        for seed in range(SEEDS):
            snapshot = zipf_snapshot(partitions, instances, exponent, seed=SEED + seed)
            runs.append(_until_quiet(policy, snapshot, clock))
        rows.append(
            {
                "planner": name,
                "partitions": partitions,
                "instances": instances,
                "zipf": exponent,
                **{key: statistics.fmean(r[key] for r in runs) for key in runs[0]},
            }
        )
    return rows


def _until_quiet(
    policy: RoutingPolicy, snapshot: Snapshot, clock: Callable[[], float]
) -> dict[str, float]:
    state: dict[str, Any] = {}
    first = snapshot.by_instance(snapshot.load)
    times: list[float] = []
    moves, moved, quiet = 0, 0.0, 0
    current = snapshot
    while quiet < 2 and len(times) < 20:
        began = clock()
        decision = policy.plan(current, state)
        plan, state = cast("Plan", decision.plan), decision.memory
        times.append(clock() - began)
        validate(plan, current)
        quiet = 0 if plan.moves else quiet + 1
        moves += len(plan.moves)
        moved += plan.moved_rows
        current = Snapshot(plan.table, current.load, current.stored, current.queued)
    last = current.by_instance(current.load)
    return {
        "overload_before": overload(first),
        "overload": overload(last),
        "imbalance_degree_before": imbalance(first),
        "imbalance_degree": imbalance(last),
        "moves": moves,
        "moved_share": moved / float(snapshot.stored.sum()),
        "milliseconds": 1e3 * sum(times),
        "milliseconds_most": 1e3 * max(times),
    }


def zipf_snapshot(partitions: int, instances: int, exponent: float, *, seed: int) -> Snapshot:
    """Keys of Zipf popularity, some twenty to a partition, with the paper's resources as load.

    No key has more than a twentieth of an instance's rows: no planner could divide a hotter one.
    """
    rng = np.random.default_rng(seed)
    keys = 20 * partitions
    shares = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
    shares /= shares.sum()
    shares = np.minimum(shares, 0.05 / instances)
    rows = rng.poisson(shares / shares.sum() * 100.0 * partitions).astype(np.float64)
    partition = rng.integers(0, partitions, keys)
    queued = per_instance(rows, partition, partitions)
    stored = 5 * queued
    load = resources(stored, queued, GAMMA)
    return Snapshot(round_robin(instances, partitions), load, stored, queued)


def sweep(threshold: float, noise: float, *, rounds: int) -> dict[str, float]:
    """How Auto fares with a threshold when every instance's clock errs by a factor.

    The first rounds, in which the start is put right, do not count. A threshold too tight follows
    the noise and moves rows for nothing; one too loose leaves the straggler as it is.
    """
    lost, moved = [], []
    for exponent, match_cost in ((0.4, 0.1), (0.8, 0.02), (1.0, 0.1)):
        cluster = ModelCluster(exponent, match_cost, noise, seed=SEED)
        for number in range(rounds):
            plan_moved, overloaded = cluster.step(Auto(16, threshold=threshold))
            if number >= 5:
                lost.append(overloaded)
                moved.append(plan_moved)
    return {
        "threshold": threshold,
        "noise": noise,
        "overload": statistics.fmean(lost),
        "moved_share_per_round": statistics.fmean(moved),
    }


class ModelCluster:
    """Batches of Poisson counts of Zipf keys: work is rows and matches, measured with an error.

    The error is the instance's, as with processors of unequal clocks or noisy neighbours.
    """

    def __init__(
        self,
        exponent: float,
        match_cost: float,
        noise: float,
        *,
        seed: int,
        keys: int = 20_000,
        rows: int = 50_000,
        reported: int = 64,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._hashes = self._rng.integers(0, 2**64, keys, dtype=np.uint64)
        shares = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
        self._rates = rows * shares / shares.sum()
        self._match_cost = match_cost
        self._noise = noise
        self._reported = reported
        self.table: PartitionTable | None = None
        self.splits: tuple[Split, ...] = ()
        self._state: dict[str, Any] = {}

    def jump(self) -> None:
        """Other keys are the hot ones from now on."""
        self._rates = self._rng.permutation(self._rates)

    def step(self, policy: RoutingPolicy) -> tuple[float, float]:
        """A batch and a plan; the share of the rows that move, and the true overload before it."""
        if self.table is None:
            self.table = policy.table(cores=16)
        true, measured = self._batch(self.table)
        decision = policy.plan(measured, self._state)
        plan, self._state = cast("Plan", decision.plan), decision.memory
        validate(plan, measured)
        overloaded = overload(Measured().loads(true, self.table, self.splits))
        self.table, self.splits = plan.table, plan.splits
        return plan.moved_rows / float(measured.stored.sum()), overloaded

    def _batch(self, table: PartitionTable) -> tuple[Snapshot, Snapshot]:
        left, right = self._rng.poisson(self._rates), self._rng.poisson(self._rates)
        work = left + right + self._match_cost * left * right
        partition = partition_of(self._hashes, table.partitions)
        load = per_instance(work, partition, table.partitions)
        queued = per_instance((left + right).astype(np.float64), partition, table.partitions)
        hot = np.argsort(-work, kind="stable")[: self._reported]
        error = np.exp(self._rng.normal(0, self._noise, table.instances))[table.owners]

        def snapshot(factor: np.ndarray[Any, np.dtype[np.float64]]) -> Snapshot:
            keys = tuple(
                HotKey(
                    hash=int(self._hashes[k]),
                    partition=int(partition[k]),
                    load=float(work[k] * factor[partition[k]]),
                    left_rows=int(left[k]),
                    right_rows=int(right[k]),
                )
                for k in hot.tolist()
            )
            return Snapshot(table, load * factor, 10 * queued, queued, keys, self.splits)

        return snapshot(np.ones(table.partitions)), snapshot(error)
