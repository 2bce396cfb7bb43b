"""Random clusters: plans are valid, loads fall as far as whole units allow, and then rest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from skewless.load.imbalance import imbalance
from skewless.planning.auto import AIM, Auto
from skewless.planning.fastjoin import FastJoin
from skewless.planning.lsstream import LsStream
from skewless.planning.measure import Measured, Resources, StoredTimesQueued, without_split_keys
from skewless.planning.partitions.search import standing
from skewless.planning.plan import validate
from skewless.planning.policy import Policy
from skewless.planning.snapshot import HotKey, Snapshot
from skewless.routing.partitions import PartitionTable, partition_of, round_robin
from skewless.routing.resize import resized_splits, resized_table
from skewless.routing.splits import Split
from tests.planning.cases import planned

PARTITIONS = 256
QUIET = 3
SEEDS = range(12)


@dataclass
class Cluster:
    """Keys with loads, a table, splits and a planner's memory; the load stays until told so."""

    rng: np.random.Generator
    policy: Policy
    table: PartitionTable
    splits: tuple[Split, ...] = ()

    def __post_init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.hashes = self.rng.integers(0, 2**64, 4_000, dtype=np.uint64)
        exponent = self.rng.choice([0.0, 0.5, 1.0, 1.5])
        self.rows = 1e5 * np.arange(1, 4_001) ** -exponent
        self.rows *= self.rng.random(4_000)
        self.drift()

    def drift(self) -> None:
        """Other keys are hot from now on."""
        self.rows = self.rng.permutation(self.rows)

    def resize(self, instances: int) -> None:
        self.table = resized_table(self.table, instances)
        self.splits = resized_splits(self.splits, instances)

    def snapshot(self) -> Snapshot:
        partition = partition_of(self.hashes, self.table.partitions)
        rows = np.bincount(partition, weights=self.rows, minlength=self.table.partitions)
        hot = np.argsort(-self.rows)[:64]
        keys = tuple(
            HotKey(int(self.hashes[k]), int(partition[k]), float(self.rows[k]), 1, 1)
            for k in hot.tolist()
        )
        return Snapshot(self.table, rows, 3 * rows, rows, keys, self.splits)

    def settle(self, most_rounds: int) -> int:
        """Plan until nothing changes; the number of rounds in which something did."""
        active, quiet = 0, 0
        while quiet < QUIET:
            before = self.snapshot()
            plan, self.state = planned(self.policy, before, self.state)
            validate(plan, before)
            changed = bool(plan.moves) or plan.splits != self.splits
            # A small excess waits one round before it is acted on; after two there is none.
            assert not (changed and quiet >= 2), "ping-pong"
            active += changed
            quiet = 0 if changed else quiet + 1
            self.table, self.splits = plan.table, plan.splits
            assert active <= most_rounds, f"still busy after {active} rounds: {plan.reason}"
        return active


def random_table(rng: np.random.Generator, instances: int) -> PartitionTable:
    """Dealt in turn, at random, or everything on the first instance."""
    kind = rng.integers(3)
    if kind == 0:
        return round_robin(instances, PARTITIONS)
    owners = rng.integers(0, instances, PARTITIONS) if kind == 1 else np.zeros(PARTITIONS, int)
    return PartitionTable(instances, tuple(owners.tolist()))


def check_auto(cluster: Cluster) -> None:
    """No straggler that could still be relieved by a whole partition."""
    assert isinstance(cluster.policy, Auto)
    threshold = cluster.policy.threshold
    snapshot = cluster.snapshot()
    rest, shares = without_split_keys(snapshot, cluster.splits)
    balance = standing(rest, cluster.table.owners, shares)
    loads = Measured().loads(snapshot, cluster.table, cluster.splits)
    for high in np.flatnonzero(balance.excess > threshold).tolist():
        owned = rest[cluster.table.owners == high]
        smallest = owned[owned > 0].min()  # split keys alone are never too much
        # Passing even its lightest partition on would make the lightest instance the straggler,
        # or relieve it by so little that the search leaves it.
        margin = AIM * threshold * balance.level / 8
        assert loads[high] - loads.min() <= smallest + margin + 1e-6 * loads.max()


def check_lsstream(cluster: Cluster) -> None:
    """LI ≤ α, or no partition of the straggler fits into half the gap (eq. 31)."""
    assert isinstance(cluster.policy, LsStream)
    snapshot = cluster.snapshot()
    measure = Resources(cluster.policy.gamma)
    loads = measure.loads(snapshot, cluster.table)
    if imbalance(loads) <= cluster.policy.threshold:
        return
    high = int(loads.argmax())
    if loads[high] - loads.mean() < loads.mean() - loads.min():
        return
    singles = [
        float(measure.loads(snapshot, PartitionTable(2, tuple((owner).tolist())))[1])
        for p in cluster.table.partitions_of(high)
        for owner in [(np.arange(PARTITIONS) == p).astype(int)]
    ]
    gap = loads[high] - loads.min()
    assert all(2 * load >= gap * (1 - 1e-9) for load in singles if load > 0)


def check_fastjoin(cluster: Cluster) -> None:
    """Within the trigger, or no partition of the straggler fits into the gap."""
    assert isinstance(cluster.policy, FastJoin)
    snapshot = cluster.snapshot()
    loads = StoredTimesQueued().loads(snapshot, cluster.table)
    plan, _ = planned(cluster.policy, snapshot, {})
    assert plan.does_nothing
    assert loads.max() <= cluster.policy.trigger * loads.min() or "fits" in plan.reason


def auto_rounds(instances: int) -> int:
    # A quarter of the partitions a round places all of them in 4; one more for what a cap left
    # unfinished, one for splits that follow others, one for folding.
    return 7


def lsstream_rounds(instances: int) -> int:
    # A round makes up to 64 pairings; relieving one straggler takes one per instance at most
    # as long as each brings its partner to the level, twice that with partitions left over.
    return 1 + -(-2 * instances // 64) + 1


def fastjoin_rounds(instances: int) -> int:
    # One pair a round; each halves the gap of the straggler at the least that partitions allow,
    # and a gap of 2^16 is closed after 16 halvings of every instance.
    return 16 * instances


POLICIES: list[
    tuple[str, Callable[[int], Policy], Callable[[int], int], Callable[[Cluster], None]]
] = [
    ("Auto", lambda n: Auto(n), auto_rounds, check_auto),
    ("Auto without splits", lambda n: Auto(n, split=False), auto_rounds, check_auto),
    ("LsStream", lambda n: LsStream(n), lsstream_rounds, check_lsstream),
    ("LsStream, tight", lambda n: LsStream(n, threshold=0.2), lsstream_rounds, check_lsstream),
    ("FastJoin", lambda n: FastJoin(n), fastjoin_rounds, check_fastjoin),
]


@pytest.mark.parametrize(
    ("name", "make", "most_rounds", "check"), POLICIES, ids=[policy[0] for policy in POLICIES]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_cluster_settles(
    name: str,
    make: Callable[[int], Policy],
    most_rounds: Callable[[int], int],
    check: Callable[[Cluster], None],
    seed: int,
) -> None:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    instances = int(rng.integers(2, 17))
    cluster = Cluster(rng, make(instances), random_table(rng, instances))

    def settles() -> None:
        cluster.settle(most_rounds(cluster.table.instances))
        check(cluster)

    settles()
    for _ in range(2):
        cluster.drift()
        settles()
    cluster.resize(instances + int(rng.integers(1, 5)))
    settles()
    cluster.resize(int(rng.integers(1, instances + 1)))
    settles()
