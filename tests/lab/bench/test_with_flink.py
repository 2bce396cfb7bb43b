"""Flink's part of the benchmark: what it is asked, what is made of its answer, and a real run."""

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skewless.lab.bench import with_flink
from skewless.lab.bench.measure import Batch
from skewless.lab.workloads.streams import batches, write_batches

BEGAN_S = 1_704_067_200.0  # 2024-01-01T00:00:00Z


def at(second: int) -> datetime:
    return datetime(2024, 1, 1, 0, 0, second)


def test_a_batch_ends_with_its_last_match() -> None:
    parts = [(0, 5, 1, 1, at(7)), (1, 1, 1, 1, at(8)), (0, 2, 1, 1, at(6)), (1, 3, 1, 1, at(9))]
    assert with_flink.batches_of(parts, [10, 20], BEGAN_S) == [
        Batch(0, 7.0, 10, matches=7),
        Batch(1, 2.0, 20, matches=4),
    ]


def test_a_batch_without_a_match_takes_no_time() -> None:
    parts = [(0, 5, 1, 1, at(4)), (2, 1, 1, 1, at(6))]
    found = with_flink.batches_of(parts, [10, 10, 10], BEGAN_S)
    assert [(batch.seconds, batch.matches) for batch in found] == [(4.0, 5), (0.0, 0), (2.0, 1)]


@pytest.mark.parametrize(
    ("within_s", "window", "within_us"),
    [(0.5, "0.500", "500000"), (1.0, "1.000", "1000000"), (0.0012, "0.002", "1200")],
)
def test_the_window_is_rounded_up_and_then_exact(
    within_s: float, window: str, within_us: str
) -> None:
    query = with_flink._query(within_s)
    assert query.count(f"INTERVAL '{window}' SECOND") == 2
    assert f"r.us BETWEEN l.us - {within_us} AND l.us + {within_us}" in query


def test_a_side_is_one_file_in_the_order_of_its_batches(tmp_path: Path) -> None:
    folder = tmp_path / "left"
    folder.mkdir()
    for number, times in enumerate(([1_000_001, 1_000_002], [2_000_003])):
        rows = {"k": [7] * len(times), "ts": pa.array(times, pa.timestamp("us", tz="UTC"))}
        table = pa.table(rows | {"v": list(range(len(times)))})
        pq.write_table(table, folder / f"batch-{number:06d}.parquet")
    target = tmp_path / "left.csv"
    assert with_flink._as_csv(str(folder), target) == [2, 1]
    assert target.read_text().split() == ["7,1000001,0,0", "7,1000002,1,0", "7,2000003,0,1"]


@pytest.mark.skipif(not with_flink.installed(), reason="Flink is not installed")
def test_flink_finds_the_matches_of_every_batch(tmp_path: Path) -> None:
    tables = list(
        batches(
            np.random.default_rng(3),
            keys=100,
            exponent=0.8,
            rows_per_batch=400,
            batches=3,
            rows_per_second=2_000,
        )
    )
    left, right = write_batches(tmp_path, tables)
    events: list[dict[str, Any]] = []
    found = with_flink.measure(str(left), str(right), 0.0504, 2, "1g", events.append)
    assert [batch.matches for batch in found] == by_comparing_all(tables, 50_400)
    assert [batch.rows for batch in found] == [400] * 3
    assert events[0]["event"] == "ready"
    assert all(event["done"] < 3 for event in events[1:])


def by_comparing_all(tables: list[tuple[pa.Table, pa.Table]], within_us: int) -> list[int]:
    """The matches of a batch are those of all rows up to it, less those of the batches before."""
    totals = [0]
    for count in range(1, len(tables) + 1):
        sides = [pa.concat_tables(side) for side in zip(*tables[:count], strict=True)]
        keys = [side["k"].to_numpy() for side in sides]
        times = [side["ts"].cast("int64").to_numpy() for side in sides]
        near = np.abs(times[0][:, None] - times[1][None, :]) <= within_us
        totals.append(int(((keys[0][:, None] == keys[1][None, :]) & near).sum()))
    return [int(matches) for matches in np.diff(totals)]
