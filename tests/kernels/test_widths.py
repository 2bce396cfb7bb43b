"""The bytes of rows, one by one, whatever Arrow's layout of the column is."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skewless.kernels.widths import bytes_at, varying_columns

TEXTS = ["", "a", None, "long " * 10, "ü"]


def text_bytes(text: str | None, offset: int = 4) -> int:
    return offset + len((text or "").encode())


@pytest.mark.parametrize(
    ("kind", "values", "width"),
    [
        (pa.string(), TEXTS, text_bytes),
        (pa.large_string(), TEXTS, lambda v: text_bytes(v, 8)),
        (pa.binary(), [b"", b"xyz", None], lambda v: 4 + len(v or b"")),
        (pa.list_(pa.int64()), [[], [1, 2], None, [3]], lambda v: 4 + 8 * len(v or [])),
        (
            pa.list_(pa.string()),
            [["a", "bc"], [], None, ["", "def"]],
            lambda v: 4 + sum(map(text_bytes, v or [])),
        ),
        (
            pa.map_(pa.string(), pa.int64()),
            [[("a", 1)], [], [("bc", 2), ("d", 3)]],
            lambda v: 4 + sum(text_bytes(k) + 8 for k, _ in v),
        ),
        (
            pa.struct([("n", pa.int32()), ("s", pa.string())]),
            [{"n": 1, "s": "one"}, {"n": 2, "s": None}],
            lambda v: 4 + text_bytes(v["s"]),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_every_row_by_itself(kind: pa.DataType, values: list[Any], width: Any) -> None:
    rows = np.array([*range(len(values)), 0, 0])
    expected = [width(values[i]) for i in rows]
    assert bytes_at([pa.array(values, kind)], rows).tolist() == expected
    # A slice of a longer column: its offsets do not begin at 0.
    longer = pa.array([*values, *values], kind).slice(len(values))
    assert bytes_at([longer], rows).tolist() == expected


def test_columns_add_up_and_empty_children_have_no_bytes() -> None:
    empty_lists = pa.array([[], []], pa.list_(pa.string()))
    texts = pa.array(["ab", "c"])
    assert bytes_at([empty_lists, texts], np.array([1, 0])).tolist() == [4 + 5, 4 + 6]
    assert bytes_at([], np.array([1, 0])).tolist() == [0, 0]


def test_a_layout_without_offsets_counts_by_its_mean() -> None:
    views = pa.array(["x" * 100, "y" * 300], pa.string_view())
    found = bytes_at([views], np.array([0, 1]))
    assert found[0] == found[1]
    assert 2 * found[0] >= 400


def test_only_columns_of_varying_size_are_looked_at() -> None:
    point = pa.struct([("x", pa.float64()), ("y", pa.float64())])
    named = pa.struct([("x", pa.float64()), ("name", pa.string())])
    kinds = {
        "n": pa.int64(),
        "at": pa.timestamp("us", "UTC"),
        "money": pa.decimal128(38, 2),
        "flag": pa.bool_(),
        "nothing": pa.null(),
        "point": point,
        "text": pa.string(),
        "named": named,
        "list": pa.list_(pa.int64()),
    }
    rows = pa.RecordBatch.from_pylist([], pa.schema(list(kinds.items())))
    assert [c.type for c in varying_columns(rows)] == [kinds[n] for n in ("text", "named", "list")]
