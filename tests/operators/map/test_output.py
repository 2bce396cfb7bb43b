"""Results are brought into the declared schema, and what does not fit is named."""

import pyarrow as pa
import pytest

from skewless.engine.chunks import Limits
from skewless.operators.map.output import batch_of_rows, batches_of, batches_of_rows, rows_of
from skewless.operators.map.sizes import Sizes
from skewless.operators.strict import OutputError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("score", pa.float64())])
LIMITS = Limits()
BATCH = pa.record_batch({"score": [1, 2], "id": pa.array([3, 4], pa.int32())})


@pytest.mark.parametrize(
    "result",
    [
        BATCH,
        pa.Table.from_batches([BATCH]),
        [BATCH.slice(0, 1), BATCH.slice(1)],
        (b for b in [BATCH]),
        [pa.Table.from_batches([BATCH])],
    ],
)
def test_batches_tables_and_iterables_are_cast_and_ordered(result) -> None:
    found = pa.Table.from_batches(batches_of(result, SCHEMA, LIMITS))
    assert found.schema.equals(SCHEMA)
    assert found.to_pylist() == [{"id": 3, "score": 1.0}, {"id": 4, "score": 2.0}]


def test_a_batch_that_fits_is_not_copied() -> None:
    batch = pa.record_batch([[1], [0.5]], schema=SCHEMA)
    (found,) = batches_of(batch, SCHEMA, LIMITS)
    assert found is batch


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"id": [1]}, "no column 'score'"),
        ({"id": [1], "score": [1.0], "sorce": [1]}, "column 'sorce'.*declares id, score"),
        ({"id": ["x"], "score": [1.0]}, "column 'id'.*string.*int64"),
        ({"id": pa.array([None], pa.int64()), "score": [1.0]}, "column 'id'.*null"),
        ({"id": [2.5], "score": [1.0]}, "column 'id'.*double"),
    ],
)
def test_a_batch_that_does_not_fit_names_the_column(batch, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        list(batches_of(pa.record_batch(batch), SCHEMA, LIMITS))


def test_nulls_are_checked_in_a_batch_of_the_right_types() -> None:
    batch = pa.record_batch([pa.array([None], pa.int64()), [1.0]], schema=SCHEMA)
    with pytest.raises(OutputError, match=r"column 'id'.*null"):
        list(batches_of(batch, SCHEMA, LIMITS))


@pytest.mark.parametrize("result", [None, 3, "text", {"id": 1}])
def test_other_results_of_a_batch_are_refused(result) -> None:
    with pytest.raises(OutputError, match="per_row=True"):
        list(batches_of(result, SCHEMA, LIMITS))


@pytest.mark.parametrize(
    ("result", "count"), [(None, 0), ({"id": 1}, 1), ([{"id": 1}, {"id": 2}], 2), ([], 0)]
)
def test_a_row_may_become_none_one_or_many(result, count: int) -> None:
    assert len(rows_of(result)) == count


def test_a_dictionary_that_is_used_again_does_not_change_what_was_given() -> None:
    used = {"id": 1}
    given = rows_of(used)
    used["id"] = 2
    assert [dict(row) for row in given] == [{"id": 1}]


@pytest.mark.parametrize("result", [3, "text", [1], ["a"]])
def test_other_results_of_a_row_are_refused(result) -> None:
    with pytest.raises(OutputError, match="dictionary"):
        rows_of(result)


def test_what_a_row_does_not_name_is_null() -> None:
    assert batch_of_rows([{"id": 1}], SCHEMA).to_pylist() == [{"id": 1, "score": None}]
    assert batch_of_rows([], SCHEMA).num_rows == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": 1}, {"id": "x"}], "column 'id': 'x' does not fit"),
        ([{"id": 1}, {"id": 2**70}], f"column 'id': {2**70} does not fit"),
        ([{"id": 1, "sorce": 2.0}], "column 'sorce'"),
        ([{"score": 2.0}], "column 'id'.*null"),
    ],
)
def test_a_row_that_does_not_fit_names_the_column(rows, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        batch_of_rows(rows, SCHEMA)


TEXT = pa.schema([("id", pa.int64()), ("text", pa.string()), ("words", pa.list_(pa.string()))])


def test_results_of_rows_are_cut_by_their_bytes() -> None:
    rows = [{"id": n, "text": "x" * (100 if n % 4 else 5_000)} for n in range(12)]
    limits = Limits(chunk_bytes=6_000)
    batches = batches_of_rows(rows, TEXT, Sizes(TEXT), limits)
    assert [batch.num_rows for batch in batches] == [4, 4, 4]
    assert [r["id"] for b in batches for r in b.to_pylist()] == list(range(12))
    assert batches_of_rows([], TEXT, Sizes(TEXT), limits) == []


def test_a_value_that_no_array_holds_is_refused_and_only_that() -> None:
    """Sizes are estimates: these rows seem small, and are too large together."""
    rows = [{"id": n, "text": "\u20ac" * 400} for n in range(8)]
    limits = Limits(chunk_bytes=10_000, array_bytes=2_000)
    batches = batches_of_rows(rows, TEXT, Sizes(TEXT), limits)
    assert [batch.num_rows for batch in batches] == [1] * 8
    with pytest.raises(OutputError, match=r"column 'text': .*too large.*2 GiB"):
        batches_of_rows([*rows, {"text": "x" * 3_000}], TEXT, Sizes(TEXT), limits)


def test_results_of_batches_are_handed_over_in_pieces() -> None:
    """Before they are cast: large offsets count more than small ones can."""
    text = pa.array(["x" * (9 if n % 4 else 900) for n in range(8)], pa.large_string())
    batch = pa.record_batch({"text": text})
    schema = pa.schema([("text", pa.string())])
    found = list(batches_of(batch, schema, Limits(chunk_bytes=1_000)))
    assert [b.num_rows for b in found] == [4, 4]
    assert pa.Table.from_batches(found).column("text").to_pylist() == text.to_pylist()
    assert all(b.schema.equals(schema) for b in found)
    rows = [b.num_rows for b in batches_of(batch, schema, Limits(chunk_rows=3))]
    assert rows == [3, 3, 2]


@pytest.mark.parametrize(
    ("kind", "value", "size"),
    [
        (pa.int64(), 5, 16),
        (pa.string(), "four", 20),
        (pa.binary(), b"four", 20),
        (pa.list_(pa.int64()), [1, 2, 3], 64),
        (pa.list_(pa.string()), ["four", None, "x"], 69),
        (pa.map_(pa.string(), pa.int64()), {"four": 1}, 52),
        (pa.map_(pa.string(), pa.string()), [("four", None)], 52),
        (pa.struct([("a", pa.string()), ("b", pa.int64())]), {"a": "four"}, 52),
        (pa.struct([("b", pa.int64())]), {"b": 1}, 16),
        (pa.decimal128(10, 2), 1, 16),
        (pa.string(), 5, 16),
        (pa.list_(pa.string()), 5, 16),
        (pa.map_(pa.string(), pa.string()), 5, 16),
        (pa.map_(pa.string(), pa.string()), [5], 48),
        (pa.struct([("a", pa.string())]), 5, 16),
        (pa.string(), None, 16),
    ],
)
def test_rows_are_measured_as_they_are(kind, value, size: int) -> None:
    assert Sizes(pa.schema([("x", kind)])).of({"x": value}) == size
