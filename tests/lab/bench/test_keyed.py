"""The benchmark of keyed state: engines that give the same, files, order, tables, verdicts."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from typer.testing import CliRunner

from skewless import cli
from skewless.errors import SkewlessError
from skewless.kernels.hashing import xxhash64
from skewless.lab.bench import keyed
from skewless.lab.bench.child import Job, batch_of
from skewless.lab.bench.engines import Replay
from skewless.lab.bench.keyed_engines import ENGINES, Engine
from skewless.lab.bench.keyed_workloads import (
    COUNT,
    FULL,
    INSTANCES,
    QUICK,
    SELF_JOIN,
    WORDS,
    words,
)
from skewless.lab.bench.measure import Batch
from skewless.lab.bench.process import OnBatch, Outcome
from skewless.lab.bench.workloads import Length
from skewless.planning.hash import Hash
from skewless.testing import assert_same_rows

SECONDS = {"skewless": 0.5, "apply-memory": 30.0, "hash": 3.0, "mixed": 1.5}
Measure = Callable[[Job, OnBatch], Outcome]


def pretend(job: Job, on_batch: OnBatch, extra: int = 0) -> Outcome:
    """Read the files that the engine would have read, and say that it took this long."""
    workload, name = job.engine.split("/")
    found = []
    for number, file in enumerate(sorted(Path(job.replay.left).iterdir())):
        table = pq.read_table(file)
        matches = 7 + extra
        if workload == WORDS:
            matches = pc.count_distinct(table["word"]).as_py() + extra
        found.append(Batch(number, SECONDS.get(name, 40.0), table.num_rows, matches=matches))
        on_batch(number + 1)
    return Outcome(found, java="17", settings={"a": "b"})


def bench(
    measure: Measure = pretend, json_path: Path | None = None, busy: float = 0.0, **options: Any
) -> tuple[dict[str, Any], str]:
    console = Console(file=io.StringIO(), width=80)
    given = {"workloads": None, "engines": None, "quick": True} | options
    result = keyed.run(
        json_path=json_path, measure=measure, busy=lambda: busy, console=console, **given
    )
    assert isinstance(console.file, io.StringIO)
    return result, console.file.getvalue()


@pytest.fixture
def everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "is_installed", True)


@pytest.mark.usefixtures("everything_is_installed")
def test_one_run_has_all_workloads_in_tables_and_json(tmp_path: Path) -> None:
    result, shown = bench(json_path=tmp_path / "r.json")
    assert list(result["workloads"]) == [WORDS, COUNT, SELF_JOIN, "planning"]
    runs = [run["engine"] for w in result["workloads"].values() for run in w.get("runs", ())]
    assert runs == [engine.name for engine in ENGINES.values()]
    words_, self_join = result["workloads"][WORDS], result["workloads"][SELF_JOIN]
    assert words_["best"] == "apply-memory"
    assert words_["values"] == {"times_best": 60.0}
    assert self_join["values"] == {"hash_over_mixed": 2.0}
    assert [len(run["batches"]) for run in words_["runs"]] == [4, 2, 2, 2]
    assert result["errors"] == []
    for text in ("apply-memory, best", "≥ 50 × Spark's best: 60.0 ×, not judged", "MinTable"):
        assert text in shown
    assert "…" not in shown
    assert "not to be trusted" not in shown
    assert json.loads((tmp_path / "r.json").read_text()) == result


def test_what_is_judged() -> None:
    for workload, value, reached in (
        (WORDS, 50.0, True),
        (WORDS, 49.9, False),
        (COUNT, 0.99, False),
        (SELF_JOIN, 1.5, True),
    ):
        (target,) = keyed.TARGETS[workload]
        (verdict,) = keyed.judged([target], {target.ratio: value}, quick=False)
        assert verdict["reached"] is reached
    assert keyed.TARGETS.keys() == set(keyed.WORKLOADS)
    assert [w.name for w in QUICK] == [w.name for w in FULL]


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "is_installed", property(lambda engine: engine.needs is None))
    result, shown = bench(workloads=[WORDS])
    assert result["workloads"][WORDS]["left_out"] == {"transform-rocksdb": "google.protobuf"}
    assert "transform-rocksdb is left out: it needs google.protobuf" in shown


def test_a_busy_machine_is_told() -> None:
    _, shown = bench(workloads=[COUNT], busy=0.4)
    assert "up to 40% busy with other work" in shown


def test_rows_that_are_wrong_are_errors() -> None:
    def one_too_many(job: Job, on_batch: OnBatch) -> Outcome:
        return pretend(job, on_batch, extra=job.engine.endswith(("mixed", "apply-memory")))

    result, shown = bench(one_too_many, workloads=[WORDS, SELF_JOIN])
    first, second = result["errors"]
    assert first.startswith("words: apply-memory: batch 0 gave ")
    assert second == "selfjoin: mixed found 8 matches in batch 0, hash found 7"
    assert "ERROR: mixed found 8 matches" in shown


def test_a_failed_engine_does_not_stop_the_others() -> None:
    def fails(job: Job, on_batch: OnBatch) -> Outcome:
        if job.engine == "count/spark-memory":
            return Outcome(error="out of memory")
        return pretend(job, on_batch)

    result, shown = bench(fails, workloads=[COUNT])
    assert result["errors"] == ["count: spark-memory: out of memory"]
    assert result["workloads"][COUNT]["best"] == "spark-rocksdb"
    assert "failed" in shown


@pytest.mark.parametrize(("option", "names"), [("workloads", "workload"), ("engines", "engine")])
def test_an_unknown_name_is_refused(option: str, names: str) -> None:
    with pytest.raises(SkewlessError, match=f"{names}: got 'nope'; takes "):
        bench(**{option: ["nope"]})


def test_the_hot_symbols_are_hashed_together(tmp_path: Path) -> None:
    workload = next(w for w in QUICK if w.name == SELF_JOIN)
    folder = workload.generate(tmp_path / "trades")
    assert len(list(folder.iterdir())) == workload.length.batches
    symbols = pq.read_table(folder)["symbol"].to_numpy()
    routed = Hash(INSTANCES).table(INSTANCES).route(xxhash64(symbols))
    assert 0.9 < (routed == 0).mean() < 1


def test_the_record_of_a_batch() -> None:
    progress = {"batchId": 3, "numInputRows": 10, "durationMs": {"addBatch": 250}}
    sparks = {**progress, "sink": {"numOutputRows": 4}}
    assert batch_of(sparks) == Batch(3, 0.25, 10, matches=4)
    own = {"matches": 5, "state": {"rows": 6, "bytes": 70}, "peakMemoryBytes": 80}
    ours = {**progress, "skewless": {"operators": [own]}}
    assert batch_of(ours) == Batch(3, 0.25, 10, 5, 6, 70, 80)


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    """Three small batches of words."""
    small = replace(
        QUICK[0], tables=words(60), rows_per_batch=200, rows_per_second=100, length=Length(3, 1)
    )
    folder = str(small.generate(tmp_path / "words"))
    return Replay(folder, folder, 1.0, 2, str(tmp_path / "checkpoint"))


def given_by(spark: SparkSession, replay: Replay, key: str, mode: str) -> pa.Table:
    """All rows that an engine gives."""
    name = key.replace("/", "_").replace("-", "_")
    writer = ENGINES[key].stream(spark, replay).writeStream.format("memory").queryName(name)
    if ENGINES[key].is_sparks:
        writer = writer.outputMode(mode)
    writer.trigger(availableNow=True).start().awaitTermination()
    return spark.table(name).toArrow()


def test_the_functions_of_both_engines_give_the_same(spark: SparkSession, replay: Replay) -> None:
    ours = given_by(spark, replay, "words/skewless", "update")
    theirs = given_by(spark, replay, "words/apply-memory", "update")
    assert ours.num_rows > 100
    assert_same_rows(ours, theirs)


def test_the_counts_of_both_engines_are_the_same(spark: SparkSession, replay: Replay) -> None:
    ours = given_by(spark, replay, "count/skewless", "append")
    theirs = given_by(spark, replay, "count/spark-memory", "append")
    assert pc.sum(ours["count"]).as_py() > 400
    assert_same_rows(ours, theirs)


def test_an_engine_starts_a_query_that_ends(spark: SparkSession, tmp_path: Path) -> None:
    workload = replace(
        next(w for w in QUICK if w.name == SELF_JOIN),
        rows_per_batch=300,
        length=Length(2, 1),
    )
    folder = str(workload.generate(tmp_path / "trades"))
    trades = Replay(folder, folder, 0.5, 2, str(tmp_path / "trades-checkpoint"))
    query = ENGINES["selfjoin/mixed"].start(spark, trades)
    query.awaitTermination()
    batches = [batch_of(progress) for progress in query.recentProgress]
    assert [b.rows for b in batches] == [300, 300]
    rows = spark.read.parquet(folder)
    near = F.abs(F.unix_micros("l.at") - F.unix_micros("r.at")) <= 500_000
    same = rows.alias("l").join(rows.alias("r"), near & F.expr("l.symbol = r.symbol")).count()
    assert sum(b.matches or 0 for b in batches) == (same - rows.count()) / 2


def test_the_command_names_what_there_is() -> None:
    runner = CliRunner(env={"COLUMNS": "300", "TERM": "dumb"})
    shown = runner.invoke(cli.app, ["bench", "keyed", "--help"]).output
    for name in (*keyed.WORKLOADS, *(engine.name for engine in ENGINES.values()), "--json"):
        assert name in shown
