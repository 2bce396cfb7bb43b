"""The process in which one policy is measured: a fresh Java machine, one query, then the end.

It reads an `Order` from its standard input and writes one JSON line per event to a pipe: `batch`,
as batches are done; `end`, with the record of all of them.
"""

import json
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from skewless.lab.bench.engines import SCHEMA
from skewless.lab.bench.pipe import Emit, Request, answer, follow, session, settings, to_nowhere
from skewless.lab.bench.scenarios import Contender

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Order(Request):
    """What the process is to do."""

    contender: Contender
    left: str
    right: str
    window_s: float
    refines: bool
    cores: int
    checkpoint: str
    driver_memory: str

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields = json.loads(text)
        return cls(**{**fields, "contender": Contender(**fields["contender"])})


@dataclass(frozen=True)
class Turn:
    """One micro-batch: how long it took, what every instance did, and what the planner made of it.

    Lists have one entry per instance.
    """

    number: int
    seconds: float  # durationMs.addBatch
    rows: int
    matches: int
    replicas: int
    cpu_ms: list[float]
    instance_rows: list[int]
    instance_matches: list[int]
    plan_ms: float  # reading the reports, planning, and what else comes before the commit
    moves: int
    splits: int
    reason: str

    @property
    def imbalance(self) -> float:
        """CPU time of the busiest instance ÷ mean of all."""
        return imbalance(self.cpu_ms)


def imbalance(loads: list[float] | list[int]) -> float:
    """The largest ÷ the mean; 1 where nothing was done.

    >>> imbalance([1, 2, 3])
    1.5
    """
    total = sum(loads)
    return max(loads) * len(loads) / total if total else 1.0


def turn_of(progress: Any) -> Turn:
    """A record of Spark's progress as the figures that are kept of it."""
    join = progress["skewless"]["operators"][0]
    return Turn(
        number=progress["batchId"],
        seconds=progress["durationMs"]["addBatch"] / 1e3,
        rows=progress["numInputRows"],
        matches=join["matches"],
        replicas=sum(join["replicas"].values()),
        cpu_ms=join["load"]["cpuMs"],
        instance_rows=join["load"]["rows"],
        instance_matches=join["load"]["matches"],
        plan_ms=progress["skewless"]["durationMs"]["plan"],
        moves=len(join["balance"]["moves"]),
        splits=len(join["balance"]["splits"]),
        reason=join["balance"]["reason"],
    )


def near(pairs: "DataFrame") -> "DataFrame":
    """The pairs whose rows are near each other on a globe, as if their numbers were coordinates."""
    from pyspark.sql import functions as F

    a, b = F.col("v") * 1e-6, F.col("v_right") * 1e-6
    angle = F.acos(F.sin(a) * F.sin(b) + F.cos(a) * F.cos(b) * F.cos(a - b))
    return pairs.where(angle < 1e-9)


def measure(order: Order, emit: Emit) -> None:
    """Join the files under the policy, on a session of its own."""
    import skewless as sk

    spark = session(order.cores, settings(order.driver_memory))
    left, right = (
        spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(folder)
        for folder in (order.left, order.right)
    )
    policy = getattr(sk, order.contender.policy)(**order.contender.options)
    window = timedelta(seconds=order.window_s)
    matches = sk.join(left, right, on="k", time="ts", within=window, balance=policy)
    if order.refines:
        matches = matches.transform(near)
    turns = [turn_of(p) for p in follow(to_nowhere(matches, order.checkpoint), emit)]
    emit({"event": "end", "turns": [asdict(turn) for turn in turns]})
    spark.stop()


if __name__ == "__main__":
    answer(Order.from_json, measure)
