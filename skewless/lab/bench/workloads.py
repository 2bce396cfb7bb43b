"""What the join benchmark joins: the shape of each workload, and its files."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from skewless.lab.workloads.streams import batches, write_batches

SEED = 7
# How often a slow engine is measured is a matter of patience: past this, two batches are enough.
SLOW_BUDGET_S = 75.0


@dataclass(frozen=True)
class Length:
    """How many batches an engine runs, and how many of the first ones do not count."""

    batches: int
    warm_up: int
    slow: "Length | None" = None  # of engines that take long; None: as the others

    def of(self, *, is_slow: bool) -> "Length":
        """How long an engine runs."""
        return self.slow if is_slow and self.slow is not None else self


@dataclass(frozen=True)
class Workload:
    """Two streams to be joined on `k` within ± a window of event time.

    Rows per batch and per second of event time count both sides together.
    """

    name: str
    title: str
    exponent: float
    keys: int
    windows_s: tuple[float, ...]  # one, or a short and a long one over the same batches
    rows_per_batch: int
    rows_per_second: float
    length: Length
    only_skewless: bool = False
    replayed_elsewhere: bool = False  # whether engines without micro-batches run it, too
    state_rows: int | None = None  # what the window must hold at the end
    left_share: float = 0.5
    closest: bool = False  # of every left row the one right row before it, an as-of join

    def describe(self) -> dict[str, object]:
        """The parameters, for the record."""
        return {
            "exponent": self.exponent,
            "keys": self.keys,
            "windows_s": list(self.windows_s),
            "rows_per_batch": self.rows_per_batch,
            "rows_per_second_of_event_time": self.rows_per_second,
            "seed": SEED,
        }


FULL = (
    Workload(
        name="zipf0.8",
        title="Zipf 0.8 over 1 M keys, ±0.5 s, 400,000 rows per batch",
        exponent=0.8,
        keys=1_000_000,
        windows_s=(0.5,),
        rows_per_batch=400_000,
        rows_per_second=10_000,
        length=Length(14, 6, slow=Length(5, 2)),
        replayed_elsewhere=True,
    ),
    Workload(
        name="zipf1.0",
        title="Zipf 1.0 over 100,000 keys, ±1 s, 200,000 rows per batch",
        exponent=1.0,
        keys=100_000,
        windows_s=(1.0,),
        rows_per_batch=200_000,
        rows_per_second=2_000,
        length=Length(14, 6, slow=Length(5, 2)),
        replayed_elsewhere=True,
    ),
    Workload(
        name="empty",
        title="Nearly empty batches of 20 rows: the fixed cost",
        exponent=0.8,
        keys=10,
        windows_s=(1.0,),
        rows_per_batch=20,
        rows_per_second=20,
        length=Length(30, 15),
    ),
    Workload(
        name="window",
        title="100,000 rows per batch, few matches, window of 3 and of 30 batches",
        exponent=0.0,
        keys=100_000_000,
        windows_s=(30.0, 300.0),
        rows_per_batch=100_000,
        rows_per_second=10_000,
        length=Length(48, 32),
        only_skewless=True,
    ),
    Workload(
        name="memory",
        title="20 M rows in the window, 1 M rows per batch",
        exponent=0.0,
        keys=100_000_000,
        windows_s=(200.0,),
        rows_per_batch=1_000_000,
        rows_per_second=100_000,
        length=Length(24, 20),
        only_skewless=True,
        state_rows=20_000_000,
    ),
    Workload(
        name="asof",
        title="100,000 trades and 1 M quotes per batch, Zipf 0.8 over 1 M symbols, ≤ 1 s apart",
        exponent=0.8,
        keys=1_000_000,
        windows_s=(1.0,),
        rows_per_batch=1_100_000,
        rows_per_second=110_000,
        length=Length(12, 4, slow=Length(4, 1)),
        left_share=1 / 11,
        closest=True,
    ),
)

_ZIPF08, _ZIPF10, _EMPTY, _WINDOW, _MEMORY, _ASOF = FULL

QUICK = (
    replace(
        _ZIPF08,
        title="Zipf 0.8 over 100,000 keys, ±0.5 s, 20,000 rows per batch",
        keys=100_000,
        rows_per_batch=20_000,
        length=Length(4, 2, slow=Length(2, 1)),
    ),
    replace(
        _ZIPF10,
        title="Zipf 1.0 over 10,000 keys, ±1 s, 10,000 rows per batch",
        keys=10_000,
        rows_per_batch=10_000,
        length=Length(4, 2, slow=Length(2, 1)),
    ),
    replace(_EMPTY, length=Length(5, 3, slow=Length(3, 1))),
    replace(
        _WINDOW,
        title="10,000 rows per batch, few matches, window of 1 and of 10 batches",
        keys=10_000_000,
        windows_s=(1.0, 10.0),
        rows_per_batch=10_000,
        length=Length(12, 10),
    ),
    replace(
        _MEMORY,
        title="500,000 rows in the window, 100,000 rows per batch",
        keys=10_000_000,
        windows_s=(5.0,),
        rows_per_batch=100_000,
        length=Length(6, 5),
        state_rows=500_000,
    ),
    replace(
        _ASOF,
        title="2,000 trades and 20,000 quotes per batch, Zipf 0.8 over 20,000 symbols",
        keys=20_000,
        rows_per_batch=22_000,
        rows_per_second=2_200,
        length=Length(4, 2, slow=Length(2, 1)),
    ),
)


@dataclass(frozen=True)
class Files:
    """One parquet file per side and batch."""

    left: Path
    right: Path

    def first(self, count: int, folder: Path) -> "Files":
        """The same files, only the first `count` batches of them, as links in `folder`."""
        return Files(*(first(side, count, folder / side.name) for side in (self.left, self.right)))


def first(files: Path, count: int, folder: Path) -> Path:
    """The first `count` files of a folder, as links in `folder`."""
    if not folder.exists():
        folder.mkdir(parents=True)
        for file in sorted(files.iterdir())[:count]:
            os.link(file, folder / file.name)
    return folder


def generate(workload: Workload, folder: Path) -> Files:
    """Write the batches of a workload; equal workloads give equal files."""
    tables = batches(
        np.random.default_rng(SEED),
        keys=workload.keys,
        exponent=workload.exponent,
        rows_per_batch=workload.rows_per_batch,
        batches=workload.length.batches,
        rows_per_second=workload.rows_per_second,
        left_share=workload.left_share,
    )
    return Files(*write_batches(folder, tables))
