"""A map's task: columns in and out, times that are learned, rows that fail."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skewless.engine.columns import CONTROL_CODE, HASH, INSTANCE, SIDE
from skewless.engine.setting import Setting
from skewless.load.report import read_reports
from skewless.load.sketches import CostSketch
from skewless.operators.map.assign import AssignTask
from skewless.operators.map.function import MapFunction
from skewless.operators.map.layout import MapLayout
from skewless.operators.map.task import MapRowError, MapTask
from skewless.operators.strict import OutputError
from skewless.planning.leastwork import LeastWork
from skewless.planning.shuffle.dealing import Dealing
from skewless.state.naming import BatchNames
from skewless.state.storage import Storage
from skewless.testing.segments import HeldSegments

SCHEMA = pa.schema([("n", pa.int64())])


class Clock:
    """Time that passes only when the function says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


def task(tmp_path: Path, fn, *, learns: bool = True, drop: bool = False, clock=None, **options):
    storage = Storage(str(tmp_path))
    storage.make_directory(f"reports/{BatchNames(0, 0, 'a').folder}")
    policy = LeastWork(2)
    return MapTask(
        Setting(storage, BatchNames(0, 0, "a"), HeldSegments(), drop_bad_rows=drop),
        MapLayout(("n",)),
        SCHEMA,
        MapFunction(fn, **options),
        AssignTask(Dealing(2), 0),
        policy.blank() if learns else None,
        **({} if clock is None else {"clock": clock}),
    )


def rows(numbers, hashes=None) -> pa.RecordBatch:
    keys = pa.array(numbers if hashes is None else hashes, pa.int64())
    return pa.record_batch({HASH: keys, "p0": pa.array(numbers, pa.int64())})


def run(made: MapTask, *batches: pa.RecordBatch, instance: int | None = 1) -> list[int]:
    return [row["n"] for out in made.run(instance, iter(batches)) for row in out.to_pylist()]


def report(made: MapTask, instance: int = 1):
    (found,) = read_reports(made.setting.storage, [made.setting.names.report(instance)])
    return found


def learned(made: MapTask) -> CostSketch:
    return CostSketch.from_json(json.loads(json.dumps(report(made).costs["sketch"])))


def test_a_batch_function_sees_the_users_columns_only(tmp_path: Path) -> None:
    seen = []

    def fn(batch):
        seen.append(batch.schema.names)
        return batch

    made = task(tmp_path, fn)
    assert run(made, rows([1, 2]), rows([3])) == [1, 2, 3]
    assert seen == [["n"], ["n"]]
    found = report(made)
    assert (found.rows, found.output_rows, found.bad_rows) == ({"input": 3}, 3, {"input": 0})
    assert found.matches == 0, "a map pairs nothing"


def test_control_rows_name_the_instance_and_are_no_rows(tmp_path: Path) -> None:
    made = task(tmp_path, lambda batch: batch)
    batch = pa.record_batch(
        {
            SIDE: pa.array([None, CONTROL_CODE], pa.int8()),
            HASH: [7, 0],
            INSTANCE: pa.array([4, 4], pa.int32()),
            "p0": pa.array([7, None], pa.int64()),
        }
    )
    assert run(made, batch, instance=None) == [7]
    assert report(made, 4).rows == {"input": 1}


def test_an_instance_without_rows_reports_too(tmp_path: Path) -> None:
    made = task(tmp_path, lambda batch: batch)
    assert run(made) == []
    assert report(made).rows == {"input": 0}


@pytest.mark.parametrize("concurrency", [1, 4])
def test_single_rows_may_vanish_or_multiply(tmp_path: Path, concurrency: int) -> None:
    def fn(row):
        return [None, row, [row, row]][row["n"] % 3]

    made = task(tmp_path, fn, per_row=True, concurrency=concurrency)
    assert run(made, rows([0, 1, 2]), rows([3, 4, 5])) == [1, 2, 2, 4, 5, 5]


def test_times_of_single_rows_are_learned_by_key(tmp_path: Path) -> None:
    clock = Clock()

    def fn(row):
        clock.work(0.001 * (1 + row["n"]))
        return row

    made = task(tmp_path, fn, per_row=True, clock=clock)
    numbers = [0, 9] * 700
    run(made, rows(numbers))
    estimates = learned(made).estimate(np.array([0, 9], np.uint64))
    assert estimates == pytest.approx([1.0, 10.0])
    assert report(made).costs["busyMs"] == pytest.approx(700 * 11.0)


def test_the_time_of_a_lazy_result_belongs_to_the_call(tmp_path: Path) -> None:
    clock = Clock()

    def fn(batch):
        clock.work(1.0)
        yield batch
        clock.work(2.0)

    made = task(tmp_path, fn, clock=clock)
    run(made, rows([1, 2, 3]))
    assert report(made).costs["busyMs"] == pytest.approx(3_000.0)
    assert learned(made).mean == pytest.approx(1_000.0)


def test_nothing_is_cut_where_nothing_is_learned(tmp_path: Path) -> None:
    sizes = []

    def fn(batch):
        sizes.append(batch.num_rows)
        return batch

    made = task(tmp_path, fn, learns=False)
    numbers = list(range(5_000))
    assert run(made, rows(numbers)) == numbers
    assert sizes == [5_000]
    assert report(made).costs["sketch"] is None


def test_a_batch_that_is_cut_loses_no_row(tmp_path: Path) -> None:
    made = task(tmp_path, lambda batch: batch)
    numbers = list(range(5_000))
    assert sorted(run(made, rows(numbers, [n % 40 for n in numbers]))) == numbers
    assert report(made).output_rows == 5_000


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_failing_row_is_shown(tmp_path: Path, concurrency: int) -> None:
    def fn(row):
        return {"n": 1 // row["n"]}

    made = task(tmp_path, fn, per_row=True, concurrency=concurrency, retries=1)
    with pytest.raises(
        MapRowError, match=r"(?s)^ZeroDivisionError.*tried 2 times.*'n': 0.*badRows"
    ):
        run(made, rows([1, 0, 1]))
    assert not made.setting.storage.list(f"reports/{made.setting.names.folder}"), (
        "a failed task leaves no report"
    )
    dropping = task(tmp_path, fn, drop=True, per_row=True, concurrency=concurrency)
    assert run(dropping, rows([1, 0, 1])) == [1, 1]
    assert report(dropping).bad_rows == {"input": 1}


def test_a_huge_row_is_shown_in_part(tmp_path: Path) -> None:
    def fn(row):
        raise ValueError("no")

    made = task(tmp_path, fn, per_row=True)
    object.__setattr__(made, "layout", MapLayout(("n" * 5_000,)))
    with pytest.raises(MapRowError) as failure:
        run(made, rows([1]))
    assert len(str(failure.value)) < 1_500


def test_a_result_of_the_wrong_type_names_the_column(tmp_path: Path) -> None:
    with pytest.raises(MapRowError, match=r"(?s)column 'n'.*the row: \{'n': 1\}"):
        run(task(tmp_path, lambda row: {"n": "x"}, per_row=True), rows([1]))
    with pytest.raises(MapRowError, match=r"(?s)fn gave .*int;.*the row: \{'n': 1\}"):
        run(task(tmp_path, lambda row: 5, per_row=True), rows([1]))
    with pytest.raises(OutputError, match="column 'm'"):
        run(task(tmp_path, lambda batch: batch.rename_columns(["m"])), rows([1]))


def test_rows_whose_results_do_not_fit_are_bad_rows(tmp_path: Path) -> None:
    def odd(row):
        return [{"n": 0.5}, {"n": 1}] if row["n"] == 2 else 7 if row["n"] == 3 else row

    made = task(tmp_path, odd, per_row=True, drop=True)
    assert run(made, rows([1, 2, 3, 4])) == [1, 4]
    assert report(made).bad_rows == {"input": 2}
    assert report(made).output_rows == 2


def test_a_row_may_become_a_generator_of_rows(tmp_path: Path) -> None:
    def twice(row):
        yield row
        if row["n"] == 3:
            raise OSError("gone")
        yield row

    made = task(tmp_path, twice, per_row=True, drop=True)
    assert run(made, rows([1, 3])) == [1, 1]
