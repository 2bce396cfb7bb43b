"""Segments: what is written comes back, and damage is told with the name of the file."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels.runs import SortedRun, index_rows, sort_run
from skewless.routing.partitions import packed, partition_of
from skewless.state.segment import Segment, open_segment, times_us, write_segment
from skewless.state.storage import StateError, Storage

from .examples import segment

SCHEMA = pa.schema(
    [
        ("t", pa.timestamp("us", "UTC")),
        ("k", pa.string()),
        ("amount", pa.decimal128(38, 10)),
        ("place", pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string()))])),
        ("items", pa.list_(pa.int32())),
        ("extra", pa.map_(pa.string(), pa.int64())),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
    ]
)
ROW: dict[str, Any] = {
    "t": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "k": "key",
    "amount": Decimal("-12345678901234567890.0123456789"),
    "place": {"x": 1.5, "tags": ["a", None]},
    "items": [1, None, 3],
    "extra": [("a", 1), ("b", None)],
    "raw": b"\x00\xff",
    "day": dt.date(1969, 12, 31),
    "flag": True,
}
NULLS = {name: None for name in SCHEMA.names if name not in ("t", "k")}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = Storage(str(tmp_path))
    storage.make_directory("segments/a.arrow")
    return storage


def run_of(rows: list[dict[str, Any]]) -> SortedRun:
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    hashes = np.array([hash(row["k"]) % 2**64 for row in rows], np.uint64)
    return sort_run(hashes, times_us(batch.column("t")), batch, ["k"])


def written(storage: Storage, run: SortedRun, name: str = "a.arrow") -> Segment:
    return write_segment(
        storage, name, run, side="left", instance=3, level=1, batches=(4, 6), partitions=16
    )


def test_every_type_and_null_comes_back(storage: Storage) -> None:
    rows = [ROW, {**ROW, **NULLS, "k": "other"}, {**ROW, "k": "", "items": [], "extra": []}]
    run = run_of(rows)
    opened = open_segment(storage, written(storage, run), "t")
    np.testing.assert_array_equal(opened.hashes, run.hashes)
    np.testing.assert_array_equal(opened.times, run.times)
    assert opened.rows.schema.equals(SCHEMA)
    assert opened.rows.to_pylist() == run.rows.to_pylist()
    assert sorted(r["k"] for r in opened.rows.to_pylist()) == ["", "key", "other"]


def test_a_local_segment_is_mapped_and_not_copied(storage: Storage) -> None:
    described = written(storage, run_of([ROW] * 1_000))
    before = pa.total_allocated_bytes()
    opened = open_segment(storage, described, "t")
    assert pa.total_allocated_bytes() == before
    assert not opened.hashes.flags.writeable
    assert not opened.times.flags.writeable


def test_a_mapped_segment_outlives_its_file(storage: Storage) -> None:
    described = written(storage, run_of([ROW] * 100))
    opened = open_segment(storage, described, "t")
    storage.delete("segments/a.arrow/a.arrow")
    assert opened.rows.column("k").to_pylist() == ["key"] * 100


@given(
    times=st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=60),
    partitions=st.integers(1, 300),
)
def test_the_description_fits_the_rows(times: list[int], partitions: int) -> None:
    storage = Storage("mock:///s")
    storage.make_directory("segments/a")
    hashes = np.random.default_rng(len(times)).integers(0, 2**64, len(times), dtype=np.uint64)
    array = np.array(times, np.int64)
    rows = pa.RecordBatch.from_arrays([pa.array(array).cast(pa.timestamp("us"))], names=["t"])
    run = sort_run(hashes, array, rows, [], hash_is_key=True)
    described = write_segment(
        storage, "a", run, side="right", instance=1, level=0, batches=(7, 7), partitions=partitions
    )
    assert (described.rows, described.min_time_us) == (len(times), min(times))
    assert described.max_time_us == max(times)
    assert described.bytes > 0
    not_newer = sum(t <= described.bulk_time_us for t in times)
    assert not_newer >= 0.9 * (len(times) - 1)
    assert sum(t < described.bulk_time_us for t in times) <= 0.9 * len(times)
    present = set(partition_of(hashes, partitions).tolist())
    met = {p for p in range(partitions) if described.meets(frozenset({p}), partitions)}
    assert met == present
    # On a filesystem that cannot be mapped, too.
    assert open_segment(storage, described, "t").times.tolist() == run.times.tolist()


def test_one_stray_row_of_many_is_not_the_bulk(storage: Storage) -> None:
    start = ROW["t"]
    rows = [{**ROW, "t": start + dt.timedelta(seconds=i)} for i in range(19)]
    described = written(storage, run_of([*rows, {**ROW, "t": start + dt.timedelta(days=365)}]))
    assert described.max_time_us - described.min_time_us == 365 * 86_400_000_000
    assert described.bulk_time_us - described.min_time_us == 17_000_000


def test_the_description_is_kept_as_json(storage: Storage) -> None:
    described = written(storage, run_of([ROW]))
    assert Segment.from_json(json.loads(json.dumps(described.to_json()))) == described
    large = segment(partitions=packed([1, 3]), mixed_keys=True, bytes=2**40)
    assert Segment.from_json(json.loads(json.dumps(large.to_json()))) == large


def failure_of(storage: Storage, described: Segment, time_column: str = "t") -> str:
    with pytest.raises(StateError) as failure:
        open_segment(storage, described, time_column)
    message = str(failure.value)
    assert message.startswith(storage.path(described.path))
    assert "start over with a new checkpointLocation" in message
    return message


def test_a_missing_segment_is_named(storage: Storage) -> None:
    described = written(storage, run_of([ROW]))
    storage.delete("segments/a.arrow/a.arrow")
    assert "a segment of the last commit is missing" in failure_of(storage, described)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.99])
def test_a_truncated_segment_is_corrupt(storage: Storage, share: float) -> None:
    described = written(storage, run_of([ROW] * 50))
    content = storage.read_bytes("segments/a.arrow/a.arrow")
    storage.write_bytes("segments/a.arrow/a.arrow", content[: int(share * len(content))])
    assert "the segment is corrupt" in failure_of(storage, described)


@pytest.mark.parametrize(
    "content", [b"\x00" * 4_096, b"ARROW1\x00\x00" + b"\x11" * 500 + b"ARROW1", b"not Arrow"]
)
def test_garbage_is_corrupt(storage: Storage, content: bytes) -> None:
    described = written(storage, run_of([ROW]))
    storage.write_bytes("segments/a.arrow/a.arrow", content)
    assert "the segment is corrupt" in failure_of(storage, described)


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_one_flipped_bit_is_corrupt(storage: Storage, place: float) -> None:
    described = written(storage, run_of([ROW] * 50))
    content = bytearray(storage.read_bytes("segments/a.arrow/a.arrow"))
    content[int(place * len(content))] ^= 1
    storage.write_bytes("segments/a.arrow/a.arrow", bytes(content))
    assert "its checksum is wrong" in failure_of(storage, described)


def index_of(rows: list[dict[str, Any]], postings: list[tuple[int, int]]) -> SortedRun:
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    hashes = np.array([h for h, _ in postings], np.uint64)
    at = np.array([row for _, row in postings], np.int64)
    return index_rows(hashes, times_us(batch.column("t"))[at], batch, at)


def test_rows_with_several_postings_are_stored_once_and_mapped(storage: Storage) -> None:
    rows = [{**ROW, "k": str(n)} for n in range(300)]
    run = index_of(rows, [(h, n) for n in range(1, 300) for h in (2**63 + n, n % 7, 2**40)])
    described = written(storage, run)
    assert (described.rows, len(run)) == (299, 897)
    assert described.meets(frozenset({8}), 16)
    assert not described.meets(frozenset({5}), 16)
    before = pa.total_allocated_bytes()
    opened = open_segment(storage, described, "t")
    assert pa.total_allocated_bytes() == before
    for part in ("hashes", "times", "at"):
        np.testing.assert_array_equal(getattr(opened, part), getattr(run, part))
        assert getattr(opened, part).ctypes.data % 8 == 0
    assert opened.rows.to_pylist() == run.rows.to_pylist() == rows[1:]
    again = Segment.from_json(json.loads(json.dumps(described.to_json())))
    assert again == described


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9, 0.99])
def test_a_flipped_bit_of_a_posting_is_corrupt(storage: Storage, place: float) -> None:
    described = written(
        storage, index_of([ROW] * 50, [(h, n) for n in range(50) for h in range(9)])
    )
    content = bytearray(storage.read_bytes("segments/a.arrow/a.arrow"))
    content[int(place * len(content))] ^= 1
    storage.write_bytes("segments/a.arrow/a.arrow", bytes(content))
    assert "its checksum is wrong" in failure_of(storage, described)
