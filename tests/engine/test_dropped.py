"""Rows that a task drops: a few are shown, or all are kept."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from skewless.engine.dropped import SAMPLES, Dropped
from skewless.engine.moments import shown_time
from skewless.state.dropped import read_dropped
from skewless.state.naming import BatchNames
from skewless.state.storage import Storage

NAMES = BatchNames(7, 0, "abc")
FAR = 2**62


def rows(*values: float | None) -> pa.RecordBatch:
    count = len(values)
    return pa.record_batch(
        {
            "reason": pa.array(["the user's own"] * count),
            "v": pa.array(values, pa.float64()),
            "t": pa.array([FAR] * count, pa.timestamp("us", "UTC")),
            "b": pa.array([b"\xff"] * count),
        }
    )


def take(dropped: Dropped, side: str, given: pa.RecordBatch, reason: str) -> int:
    return dropped.take(side, given, np.ones(given.num_rows, np.bool_), reason)


def test_the_first_few_are_shown_as_json(tmp_path: Path) -> None:
    dropped = Dropped(Storage(str(tmp_path)), NAMES, keep=False)
    assert take(dropped, "left", rows(), "late") == 0
    assert take(dropped, "left", rows(1.5, float("nan")), "late") == 2
    assert take(dropped, "right", rows(*range(10)), "bad row") == 10
    dropped.flush(0)
    dropped.close(0)
    assert not dropped.files
    assert not list(tmp_path.iterdir()), "nothing is written"
    assert [s.input for s in dropped.samples] == ["left", "left", "right", "right", "right"]
    assert len(dropped.samples) == SAMPLES
    shown = [json.loads(json.dumps(s.row, allow_nan=False)) for s in dropped.samples]
    assert [row["v"] for row in shown] == [1.5, "nan", 0, 1, 2]
    assert shown[0]["t"] == shown_time(FAR)


def test_a_wide_row_is_not_shown_whole(tmp_path: Path) -> None:
    dropped = Dropped(Storage(str(tmp_path)), NAMES, keep=False)
    wide = pa.record_batch({f"c{n}": pa.array(["x" * 10_000]) for n in range(100)})
    take(dropped, "input", wide, "late")
    assert dropped.samples[0].row["…"] == "70 more columns"
    assert len(json.dumps(dropped.samples[0].row)) < 10_000


def test_a_long_list_is_not_shown_whole(tmp_path: Path) -> None:
    dropped = Dropped(Storage(str(tmp_path)), NAMES, keep=False)
    take(dropped, "input", pa.record_batch({"many": [list(range(100_000))]}), "late")
    assert len(dropped.samples[0].row["many"]) < 500


def test_single_rows_are_written_together_and_memory_stays_small(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.make_directory(f"dropped/{NAMES.folder}")
    dropped = Dropped(storage, NAMES, keep=True)
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    for n in range(5_000):
        dropped.take_row("input", {"n": n, "text": "x" * 10_000}, schema, f"bad row: {n % 2}")
        dropped.flush(0)
        assert dropped._waiting_bytes < 40 * 2**20
    dropped.close(0)
    assert 2 <= len(dropped.files) <= 6
    kept = [read_dropped(storage, file) for file in dropped.files]
    told = {
        (number, reason)
        for batch in kept
        for number, reason in zip(
            batch.column("row").field("n").to_pylist(),
            batch.column("reason").to_pylist(),
            strict=True,
        )
    }
    assert told == {(n, f"bad row: {n % 2}") for n in range(5_000)}


def test_all_are_kept_whatever_their_columns_are_called(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.make_directory(f"dropped/{NAMES.folder}")
    dropped = Dropped(storage, NAMES, keep=True)
    take(dropped, "left", rows(1.0, 2.0), "late: one")
    take(dropped, "right", rows(3.0), "late: two")
    take(dropped, "left", rows(4.0), "bad row")
    dropped.flush(3)
    assert not dropped.files, "few rows wait for others"
    dropped.close(3)
    assert [(f.side, f.rows) for f in dropped.files] == [("left", 3), ("right", 1)]
    assert not dropped.samples
    kept = read_dropped(storage, dropped.files[0])
    assert kept.column("reason").to_pylist() == ["late: one", "late: one", "bad row"]
    assert kept.column("row").field("v").to_pylist() == [1.0, 2.0, 4.0]
    assert kept.column("row").field("reason").to_pylist() == ["the user's own"] * 3
