"""Putting the rows of several runs together, whatever session they were written in."""

import datetime as dt

import pyarrow as pa
import pytest

from skewless.kernels.runs import concatenate

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
