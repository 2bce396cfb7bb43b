"""Folds a query's progress records into the numbers that the demo shows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Move = tuple[int, int, int]  # partition, from instance, to instance


@dataclass(frozen=True)
class Batch:
    """One micro-batch, as its progress record tells it."""

    number: int
    end_s: float  # seconds since the epoch
    duration_s: float
    rows: int
    late: int
    matches: int
    cpu_ms: tuple[float, ...]  # per instance
    imbalance: float  # largest CPU time of an instance over their mean
    state_rows: int
    reason: str  # of the plan that was made after this batch, for the next
    moves: tuple[Move, ...]
    splits: frozenset[int]  # hashes of the keys that are split from the next batch on
    imbalance_expected: float | None  # as the planner reckons it: the straggler above the mean
    unit: str  # what moves: a partition, or a rectangle of a map

    @property
    def straggler_ms(self) -> float:
        """CPU time of the busiest instance: no batch is faster, however many cores there are."""
        return max(self.cpu_ms)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Batch":
        """Read Spark's record with Skewless's part in it, of a query with one operator."""
        skewless = record["skewless"]
        (join,) = skewless["operators"]
        balance = join["balance"]
        start = datetime.fromisoformat(record["timestamp"])
        duration_s = record["durationMs"]["triggerExecution"] / 1000
        return cls(
            number=skewless["batchId"],
            end_s=start.timestamp() + duration_s,
            duration_s=duration_s,
            rows=sum(join["rows"].values()),
            late=sum(join["late"].values()),
            matches=join["matches"],
            cpu_ms=tuple(join["load"]["cpuMs"]),
            imbalance=join["imbalance"],
            state_rows=sum(join["state"]["rows"].values()),
            reason=balance["reason"],
            moves=tuple((partition, old, new) for partition, old, new in balance["moves"]),
            splits=frozenset(split["hash"] for split in balance["splits"]),
            imbalance_expected=balance["imbalanceAfter"],
            unit="rectangle" if join["operator"] == "subscribe" else "partition",
        )


@dataclass(frozen=True)
class Change:
    """What the policy changed after a batch, for the next one."""

    batch: Batch
    split: int  # keys that are shared from now on
    folded: int  # keys that are shared no more


@dataclass
class Track:
    """The micro-batches seen so far, in order, each once."""

    batches: list[Batch] = field(default_factory=list)

    @property
    def next_number(self) -> int:
        """The number of the batch that is awaited."""
        return self.batches[-1].number + 1 if self.batches else 0

    def add(self, records: Iterable[Mapping[str, Any]]) -> list[Batch]:
        """Take up the records not seen before; returns them."""
        fresh: dict[int, Batch] = {}
        for record in records:
            # Spark also reports triggers that found nothing to do: they ran no batch of ours.
            if record.get("skewless") and record["skewless"]["batchId"] >= self.next_number:
                batch = Batch.of(record)
                fresh[batch.number] = batch
        new = [fresh[number] for number in sorted(fresh)]
        self.batches += new
        return new

    @property
    def rows(self) -> int:
        """Rows taken in, both sides together."""
        return sum(batch.rows for batch in self.batches)

    @property
    def matches(self) -> int:
        """Matches put out."""
        return sum(batch.matches for batch in self.batches)

    @property
    def steady(self) -> list[Batch]:
        """All but the first batch, in which Spark starts up; that one only if there is no other."""
        return self.batches[1:] or self.batches

    @property
    def changes(self) -> list[Change]:
        """The batches after which something moved, was split or was folded back."""
        changes = []
        before: frozenset[int] = frozenset()
        for batch in self.batches:
            split, folded = len(batch.splits - before), len(before - batch.splits)
            if batch.moves or split or folded:
                changes.append(Change(batch, split, folded))
            before = batch.splits
        return changes

    def recent(self, span_s: float = 5.0) -> list[Batch]:
        """The batches that ended within `span_s` seconds of the newest one."""
        if not self.batches:
            return []
        since = self.batches[-1].end_s - span_s
        return [batch for batch in self.batches if batch.end_s > since]

    def rate(self, what: str, span_s: float = 5.0) -> float:
        """`rows` or `matches` per second of wall time, over the batches of the last seconds."""
        return self._per_second(what, self.recent(span_s))

    def steady_rate(self, what: str) -> float:
        """`rows` or `matches` per second of wall time, over the steady batches."""
        return self._per_second(what, self.steady)

    def _per_second(self, what: str, batches: list[Batch]) -> float:
        if not batches:
            return 0.0
        first = self.batches.index(batches[0])
        # The first batch of all has nothing before it: its own duration is all there is.
        begin = self.batches[first - 1].end_s if first else batches[0].end_s - batches[0].duration_s
        elapsed = max(batches[-1].end_s - begin, 1e-3)
        return float(sum(getattr(batch, what) for batch in batches) / elapsed)

    def loads(self) -> Floats:
        """CPU time over the mean of the instances, per steady batch (row) and instance."""
        cpu_ms = np.array([batch.cpu_ms for batch in self.steady])
        return cpu_ms / np.maximum(cpu_ms.mean(axis=1, keepdims=True), 1e-9)
