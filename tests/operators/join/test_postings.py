"""What an instance makes of rows with sets: repeated items, bad weights, its own postings."""

import numpy as np
import pyarrow as pa

from skewless.engine.columns import ITEM, ITEM_HASH, ITEMS, SIGNATURE, WEIGHT
from skewless.kernels.conditions import SetCondition
from skewless.operators.join.postings import SETS, SetPostings
from skewless.routing.partitions import PartitionTable
from skewless.routing.splits import Split
from skewless.routing.table import TableRoute

KIND = pa.list_(pa.struct([(ITEM_HASH, pa.int64()), (ITEM, pa.string()), (WEIGHT, pa.float64())]))
# The upper half of the hashes is instance 1's; the key 5 is split, its left rows visit both.
ROUTE = TableRoute(PartitionTable(2, (0, 1)), splits=(Split(5, 0, (0, 1), lines=1),))


def weighted(*sets: list[tuple[int, str, float]] | None) -> pa.RecordBatch:
    rows = [
        None if s is None else [{ITEM_HASH: h, ITEM: i, WEIGHT: w} for h, i, w in s] for s in sets
    ]
    return pa.record_batch({ITEMS: pa.array(rows, KIND)})


def test_weights_are_added_and_bad_ones_found() -> None:
    postings = SetPostings(SetCondition(SETS, 1.0, weighted=True), ROUTE)
    rows, bad = postings.prepared(
        weighted([(1, "a", 1.0), (1, "a", 2.0)], None, [(1, "a", np.inf)], [(2, "b", 1.0)]),
        "left",
    )
    assert bad is not None
    assert bad.tolist() == [False, False, True, False]
    assert rows.column(ITEMS).type == KIND
    assert rows.column(ITEMS)[0].as_py() == [{ITEM_HASH: 1, ITEM: "a", WEIGHT: 3.0}]
    assert rows.column(ITEMS)[1].as_py() is None
    fine = weighted([(1, "a", 1.0)], None)
    assert postings.prepared(fine, "left") == (fine, None)


def test_postings_at_home_and_visiting_by_instance() -> None:
    postings = SetPostings(SetCondition(SETS, 1, weighted=False), ROUTE)
    column = pa.array([[-9, 5], [5], [7]], pa.list_(pa.int64()))  # −9 is in the upper half
    rows = pa.record_batch({ITEMS: column, "v": ["a", "b", "c"]})
    times = np.array([3, 1, 2])
    spread = np.array([0, 2**63, 0], np.uint64)  # at home on 0, 1 and 0, where they may choose
    usable = np.array([True, True, False])
    told = {}
    for instance in (0, 1):
        runs = postings.runs(instance, "left", rows, ["v", ITEMS], times, spread, usable)
        told[instance] = [
            [
                (h, t, run.rows.column("v")[int(at)].as_py())
                for h, t, at in zip(
                    run.hashes.view(np.int64).tolist(), run.times.tolist(), run.at, strict=True
                )
            ]
            for run in runs
        ]
        assert all(run.rows.schema.names == ["v", ITEMS, SIGNATURE] for run in runs)
    assert told[0] == [[(5, 3, "a")], [(5, 1, "b")]]
    assert told[1] == [[(5, 1, "b"), (-9, 3, "a")], [(5, 3, "a")]]
