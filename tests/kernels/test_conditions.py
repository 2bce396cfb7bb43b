"""The condition on sets, by itself: candidates in, a mask out."""

import numpy as np
import pyarrow as pa
import pytest

from skewless.kernels.conditions import SetColumn, SetCondition
from skewless.kernels.equijoin import probe
from skewless.kernels.runs import SortedRun, index_rows

COLUMN = SetColumn("e", "h", "w", "i")


def run_of(rows: list[tuple[str, dict[str, float]]], hashes: dict[str, int], at_least: int):
    """Rows of a key and weights by item; every item has the hash that it is given."""
    kind = pa.struct([("h", pa.int64()), ("i", pa.string()), ("w", pa.float64())])
    sets = [
        sorted(({"h": hashes[i], "i": i, "w": w} for i, w in items.items()), key=lambda x: x["h"])
        for _, items in rows
    ]
    batch = pa.record_batch({"k": [k for k, _ in rows], "e": pa.array(sets, pa.list_(kind))})
    row, postings = COLUMN.sets(batch).postings(at_least)
    return index_rows(postings, np.zeros(len(row), np.int64), batch, row)


def found(condition: SetCondition, needles: SortedRun, stored: SortedRun) -> list[tuple[int, int]]:
    candidates = probe(needles, stored, 0, 0, [], hash_is_key=True)
    pairs = []
    for needle, other in candidates.pairs([], 1_000):
        mask = condition.qualifying(needles, stored, needle, other)
        rows = needles.rows_of(needle[mask]), stored.rows_of(other[mask])
        pairs += zip(*(r.tolist() for r in rows), strict=True)
    return sorted(pairs)


LEFT = [("x", {"a": 1.0, "b": 2.0, "c": 1.0}), ("y", {"a": 1.0, "b": 2.0})]
RIGHT = [("x", {"a": 2.0, "b": -0.5, "d": 1.0}), ("x", {"b": 1.0, "c": 3.0}), ("y", {"d": 1.0})]
GOOD = {"a": -7, "b": 3, "c": 2**62, "d": -(2**63)}
POOR = {"a": 3, "b": 3, "c": 3, "d": 3}


@pytest.mark.parametrize("hashes", [GOOD, POOR], ids=["told apart", "all the same"])
@pytest.mark.parametrize(
    ("at_least", "weighted", "keys", "pairs"),
    [
        (1, False, (), [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (2, False, (), [(0, 0), (0, 1), (1, 0)]),
        (2, False, ("k",), [(0, 0), (0, 1)]),
        (3, False, (), []),
        (1.0, True, (), [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (1.0001, True, (), [(0, 1), (1, 1)]),
        (5.0, True, ("k",), [(0, 1)]),
        (5.5, True, (), []),
    ],
)
def test_every_pair_is_found_once(hashes, at_least, weighted, keys, pairs) -> None:
    condition = SetCondition(COLUMN, at_least, weighted, keys, hash_is_item=False)
    runs = [run_of(rows, hashes, condition.indexed_for) for rows in (LEFT, RIGHT)]
    assert found(condition, *runs) == pairs
    assert found(condition, *runs[::-1]) == sorted((b, a) for a, b in pairs)
    if hashes is GOOD and not keys:
        proven = SetCondition(COLUMN, at_least, weighted, keys, hash_is_item=True)
        assert found(proven, *runs) == pairs


def test_nothing_is_asked_of_no_candidates() -> None:
    condition = SetCondition(COLUMN, 2, weighted=False)
    runs = [run_of(rows, GOOD, 2) for rows in (LEFT, RIGHT)]
    none = np.empty(0, np.int64)
    assert condition.qualifying(*runs, none, none).tolist() == []
