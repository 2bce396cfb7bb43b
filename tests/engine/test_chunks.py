"""Chunks of joined pairs: bounded in rows and in bytes, whatever the widths of the rows are."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skewless.engine.chunks import Chunks, Limits
from skewless.kernels.equijoin import Probe, probe
from skewless.kernels.runs import SortedRun
from skewless.operators.join.bounds import Bounds
from skewless.planning.hash import Hash
from skewless.state.watermark import Delays
from skewless.testing import LocalJoin

LIMITS = Limits(chunk_bytes=100_000, chunk_rows=1_000)
SOME = "x" * 10
HUGE = "x" * 60_000
COLD = 5_000  # rows that make the mean small
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")


def run_of(payload: pa.Array, cold_hash: int) -> SortedRun:
    """Rows of one hot key, all at one moment, after many rows of a key that meets nothing."""
    values = pa.concat_arrays([pa.array([0] * COLD).cast(payload.type), payload])
    hashes = np.repeat(np.array([cold_hash, 7], np.uint64), [COLD, len(payload)])
    rows = pa.RecordBatch.from_arrays([pa.array(hashes.view(np.int64)), values], names=["k0", "p0"])
    return SortedRun(hashes, np.zeros(len(hashes), np.int64), rows, mixed_keys=False)


def all_pairs(needles: pa.Array, stored: pa.Array) -> Probe:
    return probe(run_of(needles, 1), run_of(stored, 2), 0, 0, ["k0"], hash_is_key=True)


def portions(found: Probe) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(Chunks(LIMITS).portions(found, ["k0"]))


@pytest.mark.parametrize("huge_at", [0, 57, 99])
@pytest.mark.parametrize("huge_side", ["needles", "stored"])
def test_a_huge_row_of_a_hot_key_is_cut_by_its_bytes(huge_at: int, huge_side: str) -> None:
    texts = [SOME] * 100
    texts[huge_at] = HUGE
    sides = {"needles": pa.array([SOME] * 100), "stored": pa.array([SOME] * 100)}
    sides[huge_side] = pa.array(texts)
    found = all_pairs(**sides)
    cut = portions(found)
    sizes = [
        sum(len(sides["needles"][int(i)].as_py()) for i in needle - COLD)
        + sum(len(sides["stored"][int(j)].as_py()) for j in stored - COLD)
        for needle, stored in cut
    ]
    assert max(sizes) <= 2 * LIMITS.chunk_bytes
    whole = next(found.pairs(["k0"], 10_000))
    np.testing.assert_array_equal(np.concatenate([n for n, _ in cut]), whole[0])
    np.testing.assert_array_equal(np.concatenate([s for _, s in cut]), whole[1])


def test_a_pair_larger_than_the_limit_stands_alone() -> None:
    found = all_pairs(pa.array(["y" * 250_000, SOME]), pa.array([SOME] * 3))
    assert [(n - COLD).tolist() for n, _ in portions(found)] == [[0], [0], [0], [1, 1, 1]]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_rows_of_one_size_are_not_cut(kind: pa.DataType) -> None:
    values = pa.array(range(100, 200)).cast(kind)
    cut = portions(all_pairs(values, values))
    assert [len(n) for n, _ in cut] == [LIMITS.chunk_rows] * 10


def test_what_waits_goes_first_and_is_not_copied_into_a_large_batch() -> None:
    chunks = Chunks(LIMITS)
    small = pa.record_batch({"v": ["a"]})
    large = pa.record_batch({"v": ["b" * 200_000]})
    assert list(chunks.add(small)) == []
    assert [b.num_rows for b in chunks.add(large)] == [1, 1]
    assert list(chunks.flush()) == []


def test_wide_rows_of_a_join_stay_bounded_from_the_state_too(tmp_path: Path) -> None:
    """One row of 60 kB among a hundred meets three hundred: 18 MB of pairs, never at once."""
    schemas = [
        pa.schema([("k", pa.int64()), ("lt", TIME), ("a", pa.string())]),
        pa.schema([("k", pa.int64()), ("rt", TIME), ("b", pa.string())]),
    ]
    texts = [SOME] * 99 + [HUGE]
    left = pa.table([[1] * 100, [EPOCH] * 100, texts], schema=schemas[0])
    right = pa.table([[1] * 150, [EPOCH] * 150, [SOME] * 150], schema=schemas[1])
    joined = LocalJoin(
        str(tmp_path),
        ["k"],
        ("lt", "rt"),
        Bounds(0, 0),
        Delays({"left": 10**9, "right": 10**9}),
        *schemas,
        policy=Hash(1),
        limits=LIMITS,
    )
    sizes: list[int] = []
    for number, batch in enumerate([(left, right), (left.slice(0, 0), right)]):
        joined.step(number, batch)
        sizes += [b.nbytes for b in joined.sink[number].to_batches()]
    found = joined.rows()
    assert found.num_rows == 100 * 300
    assert found.nbytes > 300 * len(HUGE)
    assert max(sizes) <= 2.5 * LIMITS.chunk_bytes
