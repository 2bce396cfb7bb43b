"""Input partitions name the instance of every row: all rows once, evenly by cost, repeatably."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skewless.load.sketches import CostSketch, SketchShape
from skewless.operators.map.assign import AssignTask
from skewless.planning.shuffle.dealing import Dealing


def sketch(costs: dict[int, float]) -> CostSketch:
    blank = CostSketch.empty(SketchShape(4, 500), most=100)
    return blank.update(np.array(list(costs), np.uint64), np.array(list(costs.values())))


def run(task: AssignTask, partition: int, keys, size: int = 7) -> list[int]:
    hashes = pa.array(keys, pa.int64())
    columns = [hashes.slice(at, size) for at in range(0, len(hashes), size)]
    found = list(task.run(partition, iter(columns)))
    assert [(len(c), c.type) for c in found] == [(len(c), pa.int32()) for c in columns]
    return pa.chunked_array(found).to_pylist()


@given(
    keys=st.lists(st.integers(0, 20), min_size=1, max_size=60),
    instances=st.integers(1, 5),
    known=st.integers(0, 3),
    size=st.integers(1, 30),
)
def test_every_row_gets_one_instance(keys, instances, known, size) -> None:
    costs = {key: 1.0 + key for key in range(20)}
    sketches = ((), (sketch(costs),), (sketch(costs),), (sketch(costs),) * instances)[known]
    slowness = tuple(1.0 + i for i in range(instances)) if known == 2 else ()
    task = AssignTask(Dealing(instances, sketches, slowness), batch=3)
    found = run(task, 1, keys, size)
    assert set(found) <= set(range(instances))
    assert run(task, 1, keys, size) == found, "a repeated task does the same"


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(1, 6))
def test_without_costs_a_partition_deals_evenly_over_all_its_batches(sizes, instances) -> None:
    task = AssignTask(Dealing(instances), batch=0)
    parts = (pa.array([0] * n, pa.int64()) for n in sizes)
    given = np.concatenate([c.to_numpy() for c in task.run(2, parts)])
    counts = np.bincount(given, minlength=instances)
    assert counts.max() - counts.min() <= 1


def test_loads_are_carried_from_batch_to_batch() -> None:
    """A costly row in the first Arrow batch is made up for in those that follow."""
    task = AssignTask(Dealing(2, (sketch({1: 50.0, 2: 1.0}),)), batch=0)
    found = run(task, 0, [1] + [2] * 49, size=5)
    assert found.count(found[0]) == 1


def test_partitions_and_batches_begin_elsewhere() -> None:
    firsts = {
        (batch, p): run(AssignTask(Dealing(4), batch), p, [0])[0]
        for batch in range(4)
        for p in range(4)
    }
    assert {firsts[0, p] for p in range(4)} == {0, 1, 2, 3}
    assert [firsts[b, 0] for b in range(4)] == [0, 1, 2, 3]


def test_hashes_above_the_middle_are_negative_in_spark() -> None:
    large = 2**63 + 5
    task = AssignTask(Dealing(2, (sketch({large: 9.0, 1: 1.0}),)), batch=0)
    found = run(task, 0, [large - 2**64] + [1] * 9, size=100)
    assert found.count(found[0]) == 1
