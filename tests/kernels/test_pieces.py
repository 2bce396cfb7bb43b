"""Rows are cut by their bytes, and what small offsets cannot count stays whole."""

import numpy as np
import pyarrow as pa
import pytest

from skewless.kernels import pieces as kernel
from skewless.kernels.pieces import as_table, gathered, one_array, pieces, schema_for, widened
from skewless.kernels.runs import concatenate

NESTED = pa.struct([("a", pa.list_(pa.string())), ("n", pa.int32())])
ROWS = pa.record_batch(
    {
        "n": pa.array(range(40), pa.int64()),
        "text": pa.array([None if n % 5 == 0 else "x" * (7 * n) for n in range(40)]),
        "nested": pa.array([{"a": ["y" * n, None], "n": n} for n in range(40)], NESTED),
        "map": pa.array([[("k", "z" * n)] for n in range(40)], pa.map_(pa.string(), pa.string())),
    }
)
SOME = np.array([3, 3, 0, 39, 3, 12])


@pytest.mark.parametrize("at_most_bytes", [1, 300, 1_000, 10**9])
@pytest.mark.parametrize("at_most_rows", [None, 1, 3])
def test_pieces_hold_every_row_once_and_no_more_than_they_may(at_most_bytes, at_most_rows) -> None:
    found = list(pieces(ROWS, at_most_bytes, at_most_rows))
    assert pa.Table.from_batches(found).to_pylist() == ROWS.to_pylist()
    for piece in found:
        assert piece.num_rows == 1 or piece.nbytes < 1.3 * at_most_bytes + 100
        assert piece.num_rows <= (at_most_rows or 40)
    assert list(pieces(ROWS.slice(0, 0), at_most_bytes, at_most_rows)) == []


def test_rows_that_fit_are_handed_on_as_they_are() -> None:
    (found,) = pieces(ROWS, ROWS.nbytes)
    assert found is ROWS


def test_a_piece_of_a_huge_buffer_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow refuses to cast what stands behind 2 GiB of other text, however little it is."""
    monkeypatch.setattr(kernel, "ARRAY_BYTES", 1_000)
    wide = ROWS.cast(schema_for(2, ROWS.schema, 1))
    for piece in pieces(wide, 500):
        assert piece.get_total_buffer_size() < 2_500
    (last,) = pieces(wide.slice(39), 10_000)
    assert last.get_total_buffer_size() < 1_000


@pytest.mark.parametrize("limit", [100, 10**9])
def test_whatever_the_limit_rows_are_the_same(limit: int) -> None:
    together = concatenate([ROWS, ROWS.slice(3, 5)], limit)
    assert together.to_pylist() == [*ROWS.to_pylist(), *ROWS.slice(3, 5).to_pylist()]
    assert pa.types.is_large_string(together.schema.field("text").type) == (limit == 100)
    taken = gathered(ROWS, SOME, 3, limit)
    assert taken.to_pylist() == [ROWS.to_pylist()[n] for n in SOME]
    shown = as_table(together, ROWS.schema, limit)
    assert shown.schema.equals(ROWS.schema)
    assert shown.to_pylist() == together.to_pylist()
    assert (shown.column("text").num_chunks > 1) == (limit == 100)
    chunks = pa.chunked_array([ROWS.column("nested"), ROWS.column("nested")])
    assert one_array(chunks, limit).to_pylist() == chunks.to_pylist()


def test_types_are_widened_at_any_depth() -> None:
    assert widened(NESTED) == pa.struct(
        [("a", pa.large_list(pa.large_string())), ("n", pa.int32())]
    )
    assert widened(pa.map_(pa.binary(), NESTED)).item_type == widened(NESTED)
    strict = pa.list_(pa.field("element", pa.string(), nullable=False))
    assert not widened(strict).value_field.nullable
    assert widened(pa.timestamp("us", "UTC")) == pa.timestamp("us", "UTC")
