"""Joining sorted runs by real keys, with hashes that collide on purpose."""

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.kernels.equijoin import probe
from skewless.kernels.runs import SortedRun, equal_keys, sort_run

Key = tuple[Any, ...]
Row = tuple[Key, int]  # key, time

NAN = float("nan")
# A key type, and values of which some are equal only by value (0.0 and -0.0, NaN and NaN).
KEY_TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (pa.string(), ["", "a", "b", "ä", "a longer text than twelve bytes"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x00\x00", b"\xff"]),
    "decimal": (pa.decimal128(20, 2), [Decimal("0.00"), Decimal("-1.50"), Decimal("1.50")]),
    "double": (pa.float64(), [0.0, -0.0, NAN, -NAN, 1.5, math.inf, -math.inf]),
    "float": (pa.float32(), [0.0, -0.0, NAN, 1.5]),
    "long": (pa.int64(), [0, -1, 2**63 - 1, -(2**63)]),
    "boolean": (pa.bool_(), [True, False]),
    "date": (pa.date32(), [dt.date(1970, 1, 1), dt.date(2026, 2, 28)]),
    "timestamp": (pa.timestamp("us", "UTC"), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), 5]),
}
LAYOUTS = [*((name,) for name in KEY_TYPES), ("string", "double"), ("long", "string", "binary")]


def same_value(a: Any, b: Any) -> bool:
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return bool(a == b)


def same_key(a: Key, b: Key) -> bool:
    return all(same_value(x, y) for x, y in zip(a, b, strict=True))


def colliding_hash(row: Row, by_key: list[Key], hashes: int) -> int:
    """The same for equal keys, and one of very few numbers."""
    return next(i for i, known in enumerate(by_key) if same_key(known, row[0])) % hashes


def build(
    layout: tuple[str, ...], rows: list[Row], distinct: list[Key], hashes: int
) -> tuple[SortedRun, list[str]]:
    names = [f"k{i}" for i in range(len(layout))]
    columns = [
        pa.array([row[0][i] for row in rows], KEY_TYPES[kind][0]) for i, kind in enumerate(layout)
    ]
    batch = pa.RecordBatch.from_arrays(
        [*columns, pa.array(range(len(rows)), pa.int64())], names=[*names, "id"]
    )
    hashed = np.array([colliding_hash(r, distinct, hashes) for r in rows], np.uint64)
    times = np.array([r[1] for r in rows], np.int64)
    return sort_run(hashed, times, batch, names), names


@st.composite
def joins(draw: st.DrawFn) -> tuple[tuple[str, ...], list[Row], list[Row], int]:
    layout = draw(st.sampled_from(LAYOUTS))
    key = st.tuples(*(st.sampled_from(KEY_TYPES[kind][1]) for kind in layout))
    rows = st.lists(st.tuples(key, st.integers(-6, 6)), max_size=25)
    return layout, draw(rows), draw(rows), draw(st.integers(1, 4))


@given(case=joins(), chunk=st.integers(1, 40), lower=st.integers(-5, 2), width=st.integers(0, 6))
def test_equals_brute_force_by_real_keys(
    case: tuple[tuple[str, ...], list[Row], list[Row], int], chunk: int, lower: int, width: int
) -> None:
    layout, left, right, hashes = case
    distinct = [row[0] for row in (*left, *right)]
    needles, names = build(layout, left, distinct, hashes)
    stored, _ = build(layout, right, distinct, hashes)
    upper = lower + width
    found: Counter[tuple[int, int]] = Counter()
    for needle, other in probe(needles, stored, lower, upper, names, False).pairs(names, chunk):
        assert len(needle) <= chunk
        left_ids = needles.rows.column("id").take(pa.array(needle)).to_pylist()
        right_ids = stored.rows.column("id").take(pa.array(other)).to_pylist()
        found.update(zip(left_ids, right_ids, strict=True))
    expected = Counter(
        (i, j)
        for i, (a, t) in enumerate(left)
        for j, (b, u) in enumerate(right)
        if same_key(a, b) and lower <= u - t <= upper
    )
    assert found == expected


@given(case=joins())
def test_mixed_keys_says_whether_a_hash_stands_for_several_keys(
    case: tuple[tuple[str, ...], list[Row], list[Row], int],
) -> None:
    layout, rows, _, hashes = case
    distinct = [row[0] for row in rows]
    run, _ = build(layout, rows, distinct, hashes)
    mixed = any(
        colliding_hash(a, distinct, hashes) == colliding_hash(b, distinct, hashes)
        and not same_key(a[0], b[0])
        for a in rows
        for b in rows
    )
    assert run.mixed_keys is mixed
    assert (np.diff(run.hashes.astype(np.int64)) >= 0).all()


def one_key_run(keys: list[str], hashes: list[int]) -> SortedRun:
    rows = pa.RecordBatch.from_pydict({"k": keys})
    return sort_run(np.array(hashes, np.uint64), np.zeros(len(keys), np.int64), rows, ["k"])


def matches(needles: SortedRun, stored: SortedRun) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for needle, other in probe(needles, stored, 0, 0, ["k"], False).pairs(["k"], 10):
        left = needles.rows.column("k").take(pa.array(needle)).to_pylist()
        right = stored.rows.column("k").take(pa.array(other)).to_pylist()
        found += zip(left, right, strict=True)
    return found


def test_pure_runs_whose_keys_differ_between_the_runs() -> None:
    # Neither run has mixed keys by itself: only comparing across them shows the collision.
    needles, stored = one_key_run(["a", "b"], [1, 2]), one_key_run(["x", "b"], [1, 2])
    assert not needles.mixed_keys
    assert not stored.mixed_keys
    assert matches(needles, stored) == [("b", "b")]


def test_keys_are_compared_pair_by_pair_only_when_hashes_collide() -> None:
    pure, collided = one_key_run(["a", "b"], [1, 2]), one_key_run(["a", "x"], [1, 2])
    assert not probe(pure, pure, 0, 0, ["k"], False).compare_pairs
    assert probe(pure, collided, 0, 0, ["k"], False).compare_pairs
    assert not probe(pure, collided, 0, 0, ["k"], True).compare_pairs


def test_only_the_chosen_rows_enter_a_run() -> None:
    rows = pa.RecordBatch.from_pydict({"k": ["d", "c", "b", "a"]})
    hashes, times = np.array([4, 3, 2, 1], np.uint64), np.array([0, 1, 2, 3], np.int64)
    run = sort_run(hashes, times, rows, ["k"], np.array([0, 2, 3]))
    assert run.rows.column("k").to_pylist() == ["a", "b", "d"]
    assert run.hashes.tolist() == [1, 2, 4]
    assert run.times.tolist() == [3, 2, 0]
    assert len(sort_run(hashes, times, rows, ["k"], np.array([], np.int64))) == 0


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (pa.array([NAN, 0.0, 1.0]), pa.array([NAN, -0.0, 2.0]), [True, True, False]),
        (pa.array(["a", ""]), pa.array(["a", "b"]), [True, False]),
        (pa.array([b"\x00"]), pa.array([b"\x00\x00"]), [False]),
        (pa.array([True, False]), pa.array([True, True]), [True, False]),
    ],
)
def test_equal_keys(left: pa.Array, right: pa.Array, equal: list[bool]) -> None:
    assert equal_keys([left], [right]).tolist() == equal
    # A second column that always agrees changes nothing; one that never does settles it.
    ones, twos = pa.array([1] * len(left)), pa.array([2] * len(left))
    assert equal_keys([left, ones], [right, ones]).tolist() == equal
    assert not equal_keys([left, ones], [right, twos]).any()
