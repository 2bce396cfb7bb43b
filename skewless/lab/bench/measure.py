"""From the record of every batch to figures: medians, rates, and whether all found the same."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Batch:
    """One micro-batch as its engine reported it; what an engine does not tell is None."""

    number: int
    seconds: float  # durationMs.addBatch
    rows: int
    matches: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True)
class Figures:
    """What is said of an engine on a workload."""

    batches: int  # measured
    left_out: int  # run before those
    seconds: float  # per batch, median
    seconds_mean: float
    seconds_least: float
    seconds_most: float
    rows_per_second: float
    matches_per_batch: float | None
    matches_per_second: float | None
    state_rows: int | None
    state_bytes_per_row: float | None
    peak_memory_bytes: int | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def figures(batches: Sequence[Batch], warm_up: int) -> Figures | None:
    """The figures of a run without its first batches; None where nothing was run.

    A run that ended early leaves out fewer, but always its first, unless there is no other.
    """
    if not batches:
        return None
    left_out = min(warm_up, len(batches) - 1)
    measured = batches[left_out:]
    seconds = [batch.seconds for batch in measured]
    # A clock of whole milliseconds may say zero.
    median = max(statistics.median(seconds), 1e-3)
    found = [batch.matches for batch in measured if batch.matches is not None]
    matches = statistics.fmean(found) if len(found) == len(measured) else None
    last = batches[-1]
    peaks = [b.peak_memory_bytes for b in batches if b.peak_memory_bytes is not None]
    return Figures(
        batches=len(measured),
        left_out=left_out,
        seconds=median,
        seconds_mean=statistics.fmean(seconds),
        seconds_least=min(seconds),
        seconds_most=max(seconds),
        rows_per_second=statistics.fmean(batch.rows for batch in measured) / median,
        matches_per_batch=matches,
        matches_per_second=None if matches is None else matches / median,
        state_rows=last.state_rows,
        state_bytes_per_row=(
            last.state_bytes / last.state_rows if last.state_bytes and last.state_rows else None
        ),
        peak_memory_bytes=max(peaks, default=None),
    )


def disagreements(
    runs: Mapping[str, Sequence[Batch]], totals: Mapping[str, Mapping[int, int]] | None = None
) -> list[str]:
    """One line per engine that found other matches than the first, in a batch that both ran.

    `totals` are the matches in so many of the first batches, where an engine tells no more.
    """
    counted = {
        name: {b.number: b.matches for b in batches if b.matches is not None}
        for name, batches in runs.items()
    }
    counted = {name: matches for name, matches in counted.items() if matches}
    if not counted:
        return []
    reference, expected = next(iter(counted.items()))
    lines = []
    for name, matches in counted.items():
        both = sorted(matches.keys() & expected.keys())
        differing = [number for number in both if matches[number] != expected[number]]
        if differing:
            first = differing[0]
            lines.append(
                f"{name} found {matches[first]:,} matches in batch {first}, "
                f"{reference} found {expected[first]:,}"
            )
    for name, by_count in (totals or {}).items():
        for count, total in by_count.items():
            known = [expected[i] for i in range(count) if i in expected]
            wanted = sum(m for m in known if m is not None)
            if len(known) == count and total != wanted:
                lines.append(
                    f"{name} found {total:,} matches in the first {count} batches, "
                    f"{reference} found {wanted:,}"
                )
    return lines


def wrong_rows(batches: Sequence[Batch], rows_per_batch: int) -> str | None:
    """What is wrong with the rows of a run, if anything is: every batch must be one file a side."""
    for batch in batches:
        if batch.rows != rows_per_batch:
            return f"batch {batch.number} had {batch.rows:,} rows instead of {rows_per_batch:,}"
    return None
