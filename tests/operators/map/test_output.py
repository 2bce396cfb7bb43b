"""Results are brought into the declared schema, and what does not fit is named."""

import pyarrow as pa
import pytest

from skewless.operators.map.output import OutputError, batch_of_rows, batches_of, rows_of

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("score", pa.float64())])
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
    found = pa.Table.from_batches(batches_of(result, SCHEMA))
    assert found.schema.equals(SCHEMA)
    assert found.to_pylist() == [{"id": 3, "score": 1.0}, {"id": 4, "score": 2.0}]


def test_a_batch_that_fits_is_not_copied() -> None:
    batch = pa.record_batch([[1], [0.5]], schema=SCHEMA)
    (found,) = batches_of(batch, SCHEMA)
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
        list(batches_of(pa.record_batch(batch), SCHEMA))


def test_nulls_are_checked_in_a_batch_of_the_right_types() -> None:
    batch = pa.record_batch([pa.array([None], pa.int64()), [1.0]], schema=SCHEMA)
    with pytest.raises(OutputError, match=r"column 'id'.*null"):
        list(batches_of(batch, SCHEMA))


@pytest.mark.parametrize("result", [None, 3, "text", {"id": 1}])
def test_other_results_of_a_batch_are_refused(result) -> None:
    with pytest.raises(OutputError, match="per_row=True"):
        list(batches_of(result, SCHEMA))


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
