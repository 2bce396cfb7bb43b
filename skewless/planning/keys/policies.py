"""The key-table policies as a user names them: when they plan, and with which planner."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np

from skewless.errors import bad_argument
from skewless.planning.hash import Hash
from skewless.planning.keys.hlhe import check_degree
from skewless.planning.keys.minmig import min_mig
from skewless.planning.keys.mintable import min_table
from skewless.planning.keys.mixed import mixed
from skewless.planning.keys.pkg import partial_key_grouping
from skewless.planning.keys.plan import KeyPlan, stay
from skewless.planning.keys.reach import reach
from skewless.planning.keys.readj import readj
from skewless.planning.keys.snapshot import KeySnapshot
from skewless.planning.policy import Policy, check_number, check_whole
from skewless.planning.scaling import (
    BUSY_MS,
    Instances,
    check_range,
    described,
    largest,
    wanted,
)
from skewless.routing.partitions import PartitionTable, round_robin
from skewless.routing.table import TableRoute

# Once it acts, a policy balances to this share of the threshold, so that small changes of the load
# do not make it act again.
AIM = 0.5
# An instance that is off for the first time may be noise, and has to be so twice in a row; one that
# is so many times beyond the threshold is acted on at once.
ALARM = 3.0
MAX_TABLE = 2**24


class KeyPolicy(Policy, Protocol):
    """A policy that keeps a table of keys: what the engine asks of it."""

    # Whether a key's rows may be in two places, so that only what can be combined may use it.
    needs_combinable: ClassVar[bool]

    @property
    def every(self) -> int:
        """After how many batches it plans."""
        ...

    def table(self, cores: int) -> PartitionTable:
        """Where the hash sends keys: their homes."""
        ...

    def start(self, cores: int) -> TableRoute:
        """The route that a new query starts with: no key has an entry yet."""
        ...

    def plan_keys(
        self, snapshot: KeySnapshot, state: dict[str, Any]
    ) -> tuple[KeyPlan, dict[str, Any]]:
        """The next table of keys, and what the policy wants to remember until it is asked again.

        `state` is what it returned the last time, {} at first; it must survive JSON.
        """
        ...


@dataclass(frozen=True)
class _Threshold:
    """What the policies have in common: they act when θ(d) is beyond `threshold` (θmax).

    `instances` may be (lowest, highest): more of them when every one works for longer than
    `busy_ms` per batch, fewer when all are idle.

    θ(d) is taken from what can be reached: a key that is heavier than the mean would otherwise
    call for a plan in every batch, and none would help.
    """

    needs_combinable: ClassVar[bool] = False

    instances: Instances = None
    threshold: float = 0.08
    every: int = 1
    busy_ms: float = BUSY_MS

    def __post_init__(self) -> None:
        check_range(self.instances)
        check_number("threshold", self.threshold, 0.0)
        check_number("busy_ms", self.busy_ms, 0.0)
        check_whole("every", self.every, 1, 1_000_000)

    def table(self, cores: int) -> PartitionTable:
        # Partitions for as many instances as there may come to be.
        most = Hash(largest(self.instances, cores)).table(cores)
        return round_robin(wanted(self.instances, cores), most.partitions)

    def start(self, cores: int) -> TableRoute:
        return TableRoute(self.table(cores))

    def describe(self) -> dict[str, Any]:
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        options["instances"] = described(self.instances)
        return {"policy": type(self).__name__, **options}

    def plan_keys(
        self, snapshot: KeySnapshot, state: dict[str, Any]
    ) -> tuple[KeyPlan, dict[str, Any]]:
        deviations = reach(snapshot).deviations(snapshot.loads)
        off = np.flatnonzero(deviations > self.threshold).tolist()
        memory = {"off": off}
        largest = float(deviations.max())
        too_large = self._too_large(snapshot)
        if not (off or too_large):
            reason = f"every instance is within {self.threshold:.0%} of what can be reached"
            return stay(snapshot, reason), memory
        again = not set(off).isdisjoint(state.get("off", ()))
        if not (again or too_large or largest > ALARM * self.threshold):
            reason = f"instance {off[0]} may be off by {deviations[off[0]]:.0%}: waits a round"
            return stay(snapshot, reason), memory
        return self._planned(snapshot, AIM * self.threshold), memory

    def _too_large(self, snapshot: KeySnapshot) -> bool:
        """Whether the table is over a limit that was lowered since."""
        return False

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        raise NotImplementedError


@dataclass(frozen=True)
class _Limited(_Threshold):
    """Policies whose table has at most `table_limit` entries."""

    table_limit: int = 3_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("table_limit", self.table_limit, 0, MAX_TABLE)

    def _too_large(self, snapshot: KeySnapshot) -> bool:
        return snapshot.table_size > self.table_limit


@dataclass(frozen=True)
class Mixed(_Limited):
    """Little state moves and the table stays within its limit: the paper's own policy.

    `beta` weighs a key's cost against its state. `compact` plans on records of keys that are alike
    to degree R, a power of two; None plans on the keys themselves. `brute_force` tries every number
    of table entries to clean.

    >>> Mixed(threshold=0.02).table(cores=8).instances
    8
    """

    beta: float = 1.5
    compact: int | None = None
    brute_force: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice(self.beta, self.compact)
        if not isinstance(self.brute_force, bool):
            raise bad_argument("brute_force", self.brute_force, "True or False")

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        return mixed(
            snapshot,
            theta_max,
            table_limit=self.table_limit,
            beta=self.beta,
            compact=self.compact,
            brute_force=self.brute_force,
        )


@dataclass(frozen=True)
class MinTable(_Limited):
    """The smallest table, whatever state has to move for it.

    >>> MinTable(instances=4).describe()["table_limit"]
    3000
    """

    compact: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice(1.0, self.compact)

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        return min_table(snapshot, theta_max, table_limit=self.table_limit, compact=self.compact)


@dataclass(frozen=True)
class MinMig(_Threshold):
    """The least state moves, and the table grows as it may.

    >>> MinMig(instances=4, beta=1.0).describe()["beta"]
    1.0
    """

    beta: float = 1.5
    compact: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice(self.beta, self.compact)

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        return min_mig(snapshot, theta_max, beta=self.beta, compact=self.compact)


@dataclass(frozen=True)
class Readj(_Limited):
    """The baseline that sends keys home, and moves and swaps heavy keys.

    >>> Readj(instances=4).table(cores=2).partitions
    256
    """

    def _planned(self, snapshot: KeySnapshot, theta_max: float) -> KeyPlan:
        return readj(snapshot, theta_max, table_limit=self.table_limit)


@dataclass(frozen=True)
class PKG(_Threshold):
    """Partial key grouping: two instances per key, for what can be combined only.

    Nothing migrates, so there is nothing to be patient about: it chooses anew in every round, from
    where the hash sends the keys.

    >>> PKG.needs_combinable
    True
    """

    needs_combinable: ClassVar[bool] = True

    def plan_keys(
        self, snapshot: KeySnapshot, state: dict[str, Any]
    ) -> tuple[KeyPlan, dict[str, Any]]:
        return partial_key_grouping(snapshot, self.threshold), {}


def _check_choice(beta: float, compact: int | None) -> None:
    check_number("beta", beta, 0.0)
    if compact is not None:
        check_degree("compact", compact)
