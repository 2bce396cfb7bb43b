"""The two-sided streams: shape, event time, identity of rows, and files that replay in order."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.lab.workloads import streams


def generate(seed: int = 1, **changes: float) -> list[tuple[pa.Table, pa.Table]]:
    arguments: dict[str, float] = {
        "keys": 1_000,
        "exponent": 1.0,
        "rows_per_batch": 2_000,
        "batches": 4,
        "rows_per_second": 10_000.0,
    }
    return list(streams.batches(np.random.default_rng(seed), **(arguments | changes)))  # type: ignore[arg-type]


def times_us(table: pa.Table) -> np.ndarray:
    return table["ts"].cast(pa.int64()).to_numpy()


@settings(max_examples=30)
@given(
    rows_per_batch=st.integers(2, 500),
    batches=st.integers(0, 5),
    rows_per_second=st.floats(1, 1e6),
    seed=st.integers(0, 1_000),
)
def test_batches_follow_each_other_and_no_row_is_late(
    rows_per_batch: int, batches: int, rows_per_second: float, seed: int
) -> None:
    made = generate(
        seed, rows_per_batch=rows_per_batch, batches=batches, rows_per_second=rows_per_second
    )
    assert len(made) == batches
    newest = streams.START_US - 1
    for left, right in made:
        assert left.schema == right.schema == streams.SCHEMA
        assert left.num_rows == rows_per_batch // 2
        assert left.num_rows + right.num_rows == rows_per_batch
        together = np.concatenate([times_us(left), times_us(right)])
        assert together.min() > newest
        newest = together.max()
    ids = [side["v"].to_numpy() for pair in made for side in pair]
    if ids:
        np.testing.assert_array_equal(np.sort(np.concatenate(ids)), np.arange(len(np.hstack(ids))))


def test_event_time_advances_at_the_given_rate_with_small_disorder() -> None:
    made = generate(rows_per_batch=20_000, batches=5, rows_per_second=10_000.0)
    left = np.concatenate([times_us(left) for left, _ in made])
    assert (left.max() - left.min()) / 1e6 == pytest.approx(10.0, rel=0.01)
    backwards = -np.diff(left).min()
    assert 0 < backwards <= 2 * streams.JITTER_US


def test_keys_of_both_sides_are_skewed_alike() -> None:
    made = generate(rows_per_batch=40_000, exponent=1.2)
    left, right = (
        np.bincount(np.concatenate([pair[side]["k"].to_numpy() for pair in made]), minlength=1_000)
        for side in (0, 1)
    )
    assert left.argmax() == right.argmax()
    assert left.max() > 0.15 * left.sum()


def test_equal_seeds_give_equal_streams() -> None:
    assert generate(3) == generate(3)
    assert generate(3) != generate(4)


@pytest.mark.parametrize(
    "changes",
    [
        {"rows_per_batch": 1},
        {"batches": -1},
        {"rows_per_second": 0},
        {"rows_per_second": 1e12},
        {"keys": 0},
        {"exponent": -1},
    ],
    ids=str,
)
def test_wrong_arguments_raise_at_the_call(changes: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        generate(**changes)


def test_files_read_back_equal_and_in_order_of_modification(tmp_path: Path) -> None:
    made = generate(batches=12)
    folders = streams.write_batches(tmp_path, made)
    assert folders == (tmp_path / "left", tmp_path / "right")
    for side, folder in enumerate(folders):
        files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        modified = [file.stat().st_mtime_ns for file in files]
        assert len(set(modified)) == len(files) == 12
        assert files == sorted(files)
        assert [pq.read_table(file) for file in files] == [pair[side] for pair in made]


def test_files_are_not_added_to_those_of_another_run(tmp_path: Path) -> None:
    streams.write_batches(tmp_path, generate(batches=1))
    with pytest.raises(FileExistsError, match="not empty"):
        streams.write_batches(tmp_path, generate(batches=1))
