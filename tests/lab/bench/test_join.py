"""The whole benchmark with an engine that is not there: files, order, tables, JSON, errors."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from skewless.errors import SkewlessError
from skewless.lab.bench import join
from skewless.lab.bench.child import Job
from skewless.lab.bench.measure import Batch
from skewless.lab.bench.process import OnBatch, Outcome
from skewless.lab.bench.workloads import QUICK

SECONDS = {"skewless": 0.5, "floor": 0.4, "spark-memory": 20.0, "spark-rocksdb2": 30.0}
ON_SPARK = ["skewless", "spark-memory", "spark-rocksdb2", "spark-rocksdb4", "floor"]
Measure = Callable[[Job, OnBatch], Outcome]


def pretend(job: Job, on_batch: OnBatch, matches: int = 7) -> Outcome:
    """Read the files that the engine would have read, and say that it took this long."""
    found = []
    for number, left in enumerate(sorted(Path(job.replay.left).iterdir())):
        right = Path(job.replay.right) / left.name
        rows = pq.read_metadata(left).num_rows + pq.read_metadata(right).num_rows
        own = job.engine == "skewless"
        found.append(
            Batch(
                number,
                SECONDS.get(job.engine, 10.0),
                rows,
                matches=None if job.engine == "floor" else matches,
                state_rows=600_000 if own else None,
                state_bytes=19_200_000 if own else None,
                peak_memory_bytes=2**28 if own else None,
            )
        )
        on_batch(number + 1)
    return Outcome(found, java="17", settings={"a": "b"})


def bench(
    measure: Measure = pretend, json_path: Path | None = None, **options: Any
) -> tuple[dict[str, Any], str]:
    console = Console(file=io.StringIO(), width=80)
    # By name: where Flink or Pathway is installed there would be more.
    given = {"workloads": ["zipf0.8"], "engines": ON_SPARK, "quick": True} | options
    result = join.run(json_path=json_path, measure=measure, console=console, **given)
    assert isinstance(console.file, io.StringIO)
    return result, console.file.getvalue()


def test_every_engine_reads_the_same_first_batches(tmp_path: Path) -> None:
    result, shown = bench(json_path=tmp_path / "r.json")
    workload = result["workloads"]["zipf0.8"]
    assert [run["engine"] for run in workload["runs"]] == ON_SPARK
    assert [len(run["batches"]) for run in workload["runs"]] == [4, 2, 2, 2, 4]
    assert workload["best_spark"] == "spark-rocksdb4"
    assert workload["ratios"]["times_spark_best"] == 20.0
    assert workload["ratios"]["share_of_floor"] == pytest.approx(0.8)
    assert result["errors"] == []
    assert "spark-rocksdb4, best" in shown
    assert "…" not in shown
    assert json.loads((tmp_path / "r.json").read_text()) == result


def test_what_the_json_says(tmp_path: Path) -> None:
    result, _ = bench()
    assert result["versions"].keys() >= {"skewless", "python", "pyspark", "pyarrow", "java"}
    assert result["machine"]["cores"] >= 1
    run = result["workloads"]["zipf0.8"]["runs"][0]
    assert run["settings"] == {"a": "b"}
    assert run["figures"]["state_bytes_per_row"] == 32.0
    assert run["batches"][0] == {
        "number": 0,
        "seconds": 0.5,
        "rows": 20_000,
        "matches": 7,
        "state_rows": 600_000,
        "state_bytes": 19_200_000,
        "peak_memory_bytes": 2**28,
    }


def test_two_windows_are_two_runs() -> None:
    result, shown = bench(workloads=["window"])
    workload = result["workloads"]["window"]
    assert [(run["engine"], run["window_s"]) for run in workload["runs"]] == [
        ("skewless", 1.0),
        ("skewless", 10.0),
    ]
    assert workload["ratios"]["long_over_short"] == 1.0
    assert "skewless ±10 s" in shown


def test_other_matches_are_an_error() -> None:
    def one_too_many(job: Job, on_batch: OnBatch) -> Outcome:
        return pretend(job, on_batch, matches=8 if job.engine == "spark-memory" else 7)

    result, shown = bench(one_too_many)
    assert result["errors"] == [
        "zipf0.8: spark-memory found 8 matches in batch 0, skewless found 7"
    ]
    assert "ERROR: spark-memory found 8 matches" in shown


def test_a_failed_engine_does_not_stop_the_others() -> None:
    def fails(job: Job, on_batch: OnBatch) -> Outcome:
        if job.engine == "spark-rocksdb4":
            return Outcome(error="out of memory")
        return pretend(job, on_batch)

    result, shown = bench(fails)
    assert result["errors"] == ["zipf0.8: spark-rocksdb4: out of memory"]
    assert result["workloads"]["zipf0.8"]["best_spark"] == "spark-memory"
    assert "failed" in shown


def test_a_window_that_was_never_full_is_an_error() -> None:
    def small(job: Job, on_batch: OnBatch) -> Outcome:
        outcome = pretend(job, on_batch)
        return Outcome([Batch(b.number, b.seconds, b.rows, state_rows=9) for b in outcome.batches])

    result, _ = bench(small, workloads=["memory"])
    assert result["errors"] == ["memory: the window never held 500,000 rows"]


def test_engines_that_a_workload_does_not_have_are_left_out() -> None:
    result, _ = bench(workloads=["window"], engines=["floor"])
    assert result["workloads"] == {}


@pytest.mark.parametrize(("option", "names"), [("workloads", "workload"), ("engines", "engine")])
def test_an_unknown_name_is_refused(option: str, names: str) -> None:
    with pytest.raises(SkewlessError, match=f"{names}: got 'nope'; takes "):
        bench(**{option: ["nope"]})


def test_quick_has_the_same_workloads() -> None:
    assert {w.name for w in QUICK} == {w.name for w in join.FULL}


def test_another_type_of_join_is_measured_beside_the_inner_one() -> None:
    engines = ["skewless", "skewless-inner", "spark-rocksdb4"]
    result, shown = bench(how="leftouter", engines=engines, workloads=None, rounds=2)
    (workload,) = result["workloads"].values()
    assert [run["engine"] for run in workload["runs"]] == engines
    assert workload["parameters"]["how"] == "left"
    # A slow engine runs once, however many rounds there are.
    assert [len(run["batches"]) for run in workload["runs"]] == [8, 8, 2]
    assert workload["ratios"]["over_inner"] == pytest.approx(0.5 / 10.0)
    assert "shortest and longest batches: skewless 0.500–0.500 s" in " ".join(shown.split())
    with pytest.raises(SkewlessError, match="how: got 'anti'"):
        bench(how="anti")
