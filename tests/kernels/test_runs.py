"""Putting the rows of several runs together, whatever session they were written in."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from skewless.kernels.runs import SortedRun, concatenate, index_rows, merged

NESTED = pa.schema(
    [
        ("k", pa.string()),
        ("place", pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])),
        ("extra", pa.map_(pa.string(), pa.int64())),
    ]
)


def test_rows_stay_in_order_with_nested_values_and_nulls() -> None:
    rows = [
        [{"k": k, "place": {"x": 1.5, "tags": [k, None]}, "extra": [(k, 1)]}, {"k": None}]
        for k in ("b", "a", "c")
    ]
    joined = concatenate([pa.RecordBatch.from_pylist(r, NESTED) for r in rows])
    assert joined.schema.equals(NESTED)
    expected = [pa.RecordBatch.from_pylist(r, NESTED).to_pylist() for r in rows]
    assert joined.to_pylist() == [row for part in expected for row in part]


def test_the_time_zone_of_a_session_changes_no_moment() -> None:
    moment = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
    parts = [
        pa.RecordBatch.from_arrays([pa.array([moment], pa.timestamp("us", zone))], names=["t"])
        for zone in ("UTC", "Europe/Berlin", "UTC")
    ]
    joined = concatenate(parts)
    assert joined.schema.equals(parts[0].schema)
    assert [row["t"] for row in joined.to_pylist()] == [moment] * 3


@pytest.mark.parametrize("nullable", [True, False])
def test_nullability_is_no_difference(nullable: bool) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=nullable)])
    other = pa.schema([pa.field("k", pa.int64(), nullable=not nullable)])
    batches = [pa.RecordBatch.from_pylist([{"k": i}], s) for i, s in enumerate((schema, other))]
    assert concatenate(batches).column("k").to_pylist() == [0, 1]


def index_of(lists: list[list[int]], first: int = 0) -> SortedRun:
    """Row n was at second n and has a posting for every number of its list."""
    at = np.repeat(np.arange(len(lists)), [len(items) for items in lists]).astype(np.int64)
    hashes = np.array([h for items in lists for h in items], np.uint64)
    rows = pa.record_batch({"v": pa.array(range(first, first + len(lists)), pa.int64())})
    return index_rows(hashes, at + first, rows, at)


def postings(run: SortedRun) -> list[tuple[int, int, int]]:
    """Hash, time and value of the row of every posting."""
    values = run.rows.column("v").to_numpy()[run.rows_of(np.arange(len(run)))]
    return list(zip(run.hashes.tolist(), run.times.tolist(), values.tolist(), strict=True))


def test_an_index_finds_rows_under_every_hash_in_time_order() -> None:
    run = index_of([[5, 1], [], [1, 9], [5]])
    assert postings(run) == [(1, 0, 0), (1, 2, 2), (5, 0, 0), (5, 3, 3), (9, 2, 2)]
    assert run.rows.column("v").to_pylist() == [0, 2, 3], "a row without postings is not kept"


def test_an_index_forgets_rows_with_their_last_posting() -> None:
    run = index_of([[5, 1], [], [1, 9], [5]])
    newer = run.kept(run.times >= 2)
    assert postings(newer) == [(1, 2, 2), (5, 3, 3), (9, 2, 2)]
    assert newer.rows.num_rows == 2
    assert run.kept(run.times >= 0) is run
    assert len(run.kept(run.times > 9)) == run.kept(run.times > 9).rows.num_rows == 0


def test_merged_indexes_keep_every_row_once() -> None:
    both = merged([index_of([[5, 1]]), index_of([[1], [5, 1]], first=4)], [], hash_is_key=True)
    assert postings(both) == [(1, 0, 0), (1, 4, 4), (1, 5, 5), (5, 0, 0), (5, 5, 5)]
    assert both.rows.num_rows == 3
