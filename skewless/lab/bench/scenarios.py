"""What the benchmark of balancing replays: skew of several kinds, its files, and the policies."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.kernels.hashing import xxhash64
from skewless.lab.workloads.streams import Keys, keyed_batches, write_batches
from skewless.lab.workloads.zipf import Zipf
from skewless.routing.partitions import partition_of, round_robin

SEED = 7
PARTITIONS = 256  # of every policy's table, with the numbers of instances below
# Among so many keys the hot ones are chosen; those after them are the cold ones.
CANDIDATES = 2**17


@dataclass(frozen=True)
class Contender:
    """A policy by the name that `skewless` exports, and its options."""

    policy: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """As it would be written, without the number of instances, which all share.

        >>> Contender("LsStream", {"instances": 2, "threshold": 0.1}).label
        'LsStream(threshold=0.1)'
        """
        given = [f"{name}={value}" for name, value in self.options.items() if name != "instances"]
        return f"{self.policy}({', '.join(given)})" if given else self.policy


@dataclass(frozen=True)
class Scenario:
    """Two streams with a skew of their own, joined under each of several policies."""

    name: str
    title: str
    contenders: tuple[Contender, ...]
    keys: Callable[["Scenario", np.random.Generator], Keys]
    rows_per_batch: int
    rows_per_second: float  # of event time; both sides together, as in a batch
    window_s: float
    batches: int
    warm_up: int  # batches before the figures: the rebalancing has settled
    jumps_at: int | None = None  # the first batch with other hot keys
    # Whether Spark computes something from every pair, as a job does with what it has joined.
    # Without that, a straggler's worker and its Java thread together keep more than one core busy,
    # and sharing their work gains less.
    refines: bool = False
    repeats: int = 1  # of all contenders in turn, where small differences count

    def describe(self) -> dict[str, Any]:
        """The parameters, for the record."""
        return {
            "rows_per_batch": self.rows_per_batch,
            "rows_per_second_of_event_time": self.rows_per_second,
            "window_s": self.window_s,
            "batches": self.batches,
            "warm_up": self.warm_up,
            "jumps_at": self.jumps_at,
            "refines": self.refines,
            "repeats": self.repeats,
            "seed": SEED,
        }

    def generate(self, folder: Path) -> tuple[Path, Path]:
        """Write the batches: one parquet file per side and batch, equal whenever it is called."""
        rng = np.random.default_rng(SEED)
        tables = keyed_batches(
            rng,
            self.keys(self, rng),
            rows_per_batch=self.rows_per_batch,
            batches=self.batches,
            rows_per_second=self.rows_per_second,
        )
        return write_batches(folder, tables)


def keys_at(instance: int, instances: int) -> npt.NDArray[np.int64]:
    """The keys among the candidates that plain hashing sends to an instance, in random order."""
    keys = np.arange(CANDIDATES, dtype=np.int64)
    owners = round_robin(instances, PARTITIONS).owners[partition_of(xxhash64(keys), PARTITIONS)]
    return np.random.default_rng(SEED).permutation(keys[owners == instance])


def _mixed(
    rng: np.random.Generator, hot: Callable[[int], npt.NDArray[np.int64]], hot_share: float
) -> Keys:
    """Keys of which this share are hot, equally likely each; the others are rarely met twice."""

    def draw(batch: int, rows: int) -> npt.NDArray[np.int64]:
        cold = rng.integers(CANDIDATES, 2**40, rows)
        return np.where(rng.random(rows) < hot_share, rng.choice(hot(batch), rows), cold)

    return draw


def one_sided(hot_keys: int, instances: int) -> Callable[[Scenario, np.random.Generator], Keys]:
    """Nearly all rows have a hot key, and all hot keys hash to one instance; from `jumps_at` on
    they are others, of the next instance."""

    def keys(scenario: Scenario, rng: np.random.Generator) -> Keys:
        first, second = (keys_at(i, instances)[:hot_keys] for i in (0, 1))
        jump = scenario.jumps_at
        return _mixed(rng, lambda batch: second if jump and batch >= jump else first, 0.98)

    return keys


def one_key(share: float) -> Callable[[Scenario, np.random.Generator], Keys]:
    def keys(scenario: Scenario, rng: np.random.Generator) -> Keys:
        return _mixed(rng, lambda batch: np.array([1]), share)

    return keys


def zipf(exponent: float, size: int) -> Callable[[Scenario, np.random.Generator], Keys]:
    def keys(scenario: Scenario, rng: np.random.Generator) -> Keys:
        sampler = Zipf(exponent, size, rng)
        return lambda batch, rows: sampler.sample(rows)

    return keys


def _contenders(instances: int, *contenders: Contender) -> tuple[Contender, ...]:
    return tuple(Contender(c.policy, {"instances": instances, **c.options}) for c in contenders)


HASH, FAST_JOIN, AUTO = Contender("Hash"), Contender("FastJoin"), Contender("Auto")
LS_STREAM = Contender("LsStream")
# Of two instances the heavier can be at most 100 % above the mean: the paper's threshold of 1.0
# would never be passed.
TIGHT_LS_STREAM = Contender("LsStream", {"threshold": 0.05})

STRAGGLER, HOT_KEY, ZIPF, JUMP, UNIFORM = "straggler", "hotkey", "zipf16", "jump", "overhead"

FULL = (
    Scenario(
        name=STRAGGLER,
        title="2 instances, 4,000 hot keys that all hash to one of them",
        contenders=_contenders(2, HASH, FAST_JOIN, TIGHT_LS_STREAM, AUTO),
        keys=one_sided(4_000, 2),
        rows_per_batch=200_000,
        rows_per_second=20_000,
        window_s=24.0,
        batches=20,
        warm_up=10,
        refines=True,
    ),
    Scenario(
        name=HOT_KEY,
        title="2 instances, one key has 60 % of both streams",
        contenders=_contenders(2, HASH, TIGHT_LS_STREAM, AUTO),
        keys=one_key(0.6),
        rows_per_batch=40_000,
        rows_per_second=20_000,
        window_s=0.04,
        batches=20,
        warm_up=10,
        refines=True,
    ),
    Scenario(
        name=ZIPF,
        title="16 instances, Zipf 1.0 over 100,000 keys",
        contenders=_contenders(16, HASH, LS_STREAM, AUTO),
        keys=zipf(1.0, 100_000),
        rows_per_batch=400_000,
        rows_per_second=4_000,
        window_s=1.0,
        batches=15,
        warm_up=5,
    ),
    Scenario(
        name=JUMP,
        title="4 instances, the hot keys are others from one batch on",
        contenders=_contenders(4, HASH, TIGHT_LS_STREAM, AUTO),
        keys=one_sided(1_000, 4),
        rows_per_batch=200_000,
        rows_per_second=20_000,
        window_s=2.0,
        batches=16,
        warm_up=4,
        jumps_at=8,
    ),
    Scenario(
        name=UNIFORM,
        title="2 instances, 1 M keys, all equally likely",
        contenders=_contenders(2, HASH, AUTO),
        keys=zipf(0.0, 1_000_000),
        rows_per_batch=400_000,
        rows_per_second=10_000,
        window_s=0.5,
        batches=14,
        warm_up=6,
        repeats=3,
    ),
)


def _small(scenario: Scenario) -> Scenario:
    return replace(
        scenario,
        rows_per_batch=scenario.rows_per_batch // 20,
        rows_per_second=scenario.rows_per_second / 20,
        batches=4,
        warm_up=2,
        jumps_at=None if scenario.jumps_at is None else 2,
        repeats=1,
    )


QUICK = tuple(_small(scenario) for scenario in FULL)
