"""What one run of a continuous query under one policy did, batch by batch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any


@dataclass(frozen=True)
class Share:
    """One operator's part of a batch; tuples have one entry per instance."""

    operator: str
    cpu_ms: tuple[float, ...]
    work: tuple[int, ...]  # pairs made where the operator makes pairs, rows otherwise
    moved_keys: int
    moved_rows: int
    table: int  # keys with an instance, or two, of their own
    plan_ms: float

    @property
    def skewness(self) -> float:
        """The paper's max L(d) ÷ L̄ of what was done."""
        return straggler(self.work)

    @property
    def cpu_skewness(self) -> float:
        """The same of CPU time."""
        return straggler(self.cpu_ms)


@dataclass(frozen=True)
class Turn:
    """One micro-batch."""

    number: int
    seconds: float  # durationMs.addBatch
    rows: int
    shares: tuple[Share, ...]  # one per operator, as rows flow


@dataclass(frozen=True)
class Run:
    """A query under a policy, on the stream of a seed."""

    topology: str
    system: str
    seed: int
    turns: tuple[Turn, ...]
    warm_up: int  # batches that are left out of the figures

    @property
    def measured(self) -> tuple[Turn, ...]:
        return self.turns[min(self.warm_up, len(self.turns) - 1) :]

    @property
    def rows_per_second(self) -> float:
        spent = sum(turn.seconds for turn in self.measured)
        # A clock of whole milliseconds may say zero.
        return sum(turn.rows for turn in self.measured) / max(spent, 1e-3)

    @property
    def seconds(self) -> float:
        """Per batch, median."""
        return median(turn.seconds for turn in self.measured)

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(share.operator for share in self.turns[0].shares)

    def skewness(self, operator: int) -> float:
        return fmean(turn.shares[operator].skewness for turn in self.measured)

    def cpu_skewness(self, operator: int) -> float:
        return fmean(turn.shares[operator].cpu_skewness for turn in self.measured)

    def straggler_ms(self, operator: int) -> float:
        """CPU time of the busiest instance per batch, which other programs disturb least."""
        return fmean(max(turn.shares[operator].cpu_ms) for turn in self.measured)

    def moved_rows(self, operator: int) -> int:
        """In all batches: plans are also made while the run warms up."""
        return sum(turn.shares[operator].moved_rows for turn in self.turns)

    def table(self, operator: int) -> int:
        """In the end."""
        return self.turns[-1].shares[operator].table

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "rows_per_second": self.rows_per_second,
            "seconds": self.seconds,
            "operators": [
                {
                    "operator": name,
                    "skewness": self.skewness(i),
                    "cpu_skewness": self.cpu_skewness(i),
                    "straggler_ms": self.straggler_ms(i),
                    "moved_rows": self.moved_rows(i),
                    "table": self.table(i),
                }
                for i, name in enumerate(self.operators)
            ],
        }


def straggler(loads: Sequence[float]) -> float:
    """The largest ÷ the mean; 1 where nothing was done.

    >>> straggler([1, 2, 3])
    1.5
    """
    total = sum(loads)
    return max(loads) * len(loads) / total if total else 1.0


def turn_of(progress: Any) -> Turn:
    """A record of the query's progress as the figures that are kept of it."""
    return Turn(
        number=progress["batchId"],
        seconds=progress["durationMs"]["addBatch"] / 1e3,
        rows=progress["numInputRows"],
        shares=tuple(_share(operator) for operator in progress["skewless"]["operators"]),
    )


def _share(operator: Any) -> Share:
    load, balance = operator["load"], operator["balance"]
    return Share(
        operator=operator["operator"],
        cpu_ms=tuple(load["cpuMs"]),
        work=tuple(load["matches"] if operator["matches"] else load["rows"]),
        moved_keys=balance["movedKeys"],
        moved_rows=balance["movedRows"],
        table=balance["keyTable"] + len(balance["splits"]),
        plan_ms=balance["planMs"],
    )
