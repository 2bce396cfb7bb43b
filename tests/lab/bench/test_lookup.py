"""The benchmark of a stream with a table: engines that give the same, tables, verdicts."""

import io
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner

from skewless import cli
from skewless.errors import SkewlessError
from skewless.lab.bench import lookup
from skewless.lab.bench.child import Job, batch_of
from skewless.lab.bench.engines import Replay
from skewless.lab.bench.lookup_engines import ENGINES
from skewless.lab.bench.measure import Batch
from skewless.lab.bench.process import OnBatch, Outcome

SECONDS = {"skewless": 0.5, "hash": 0.8, "spark-plain": 1.0}


def pretend(job: Job, on_batch: OnBatch, extra: int = 0) -> Outcome:
    """Read the files that the engine would have read, and say that it took this long."""
    found = []
    for number, file in enumerate(sorted(Path(job.replay.left).iterdir())):
        rows = pq.read_metadata(file).num_rows
        matches = rows + (extra if job.engine == "hash" else 0)
        found.append(Batch(number, SECONDS.get(job.engine, 1.5), rows, matches=matches))
    return Outcome(found, java="17")


def bench(**options: Any) -> tuple[dict[str, Any], str]:
    console = Console(file=io.StringIO(), width=80)
    given = {"workloads": ["large"], "engines": None, "measure": pretend, **options}
    result = lookup.run(json_path=None, quick=True, busy=lambda: 0.5, console=console, **given)
    assert isinstance(console.file, io.StringIO)
    return result, console.file.getvalue()


def test_it_compares_with_the_best_of_sparks_joins() -> None:
    result, shown = bench()
    outcome = result["workloads"]["large"]
    assert outcome["best"] == "spark-plain"
    assert outcome["values"] == {"times_best": 2.0, "times_cached": 3.0}
    assert not result["errors"]
    assert "spark-plain, best" in shown
    assert "50% busy" in shown


def test_engines_that_give_other_rows_are_told() -> None:
    result, _ = bench(measure=lambda job, on_batch: pretend(job, on_batch, extra=1))
    assert any("hash found" in error for error in result["errors"])
    with pytest.raises(SkewlessError, match="engine: got 'flink'"):
        bench(engines=["flink"])


def test_one_key_has_its_share_and_every_key_is_in_the_table(tmp_path: Path) -> None:
    workload = lookup.QUICK[0]
    stream, table = workload.generate(tmp_path)
    keys = pq.read_table(table)["k"]
    assert pc.count_distinct(keys).as_py() == len(keys) == workload.table_rows
    streamed = pq.read_table(sorted(stream.iterdir())[0])["k"]
    share = pc.mean(pc.equal(streamed, lookup.HOT).cast("int8")).as_py()
    assert share == pytest.approx(workload.hot_share, abs=0.05)


def test_the_engines_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    stream, table = lookup.Workload("tiny", 300, 500, 1, 0, 1).generate(tmp_path)
    given = {}
    for name in ("skewless", "spark-plain"):
        replay = Replay(str(stream), str(table), 0.0, 2, str(tmp_path / name))
        query = ENGINES[name].start(spark, replay)
        query.awaitTermination()
        given[name] = batch_of(query.recentProgress[0]).matches
    assert given == dict.fromkeys(given, 500)


def test_the_command_takes_its_options() -> None:
    shown = CliRunner().invoke(cli.app, ["bench", "lookup", "--engine", "nobody", "--quick"])
    assert shown.exit_code != 0
