"""The rebalancing paper's queries on Spark: right results, and records that become tables."""

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner

from skewless.cli import app
from skewless.errors import SkewlessError
from skewless.lab.reproduce import rebalance_queries
from skewless.lab.reproduce.rebalance_queries import Trial, follow, trials
from skewless.lab.reproduce.rebalance_queries_report import comparisons, draw, render
from skewless.lab.reproduce.rebalance_topologies import (
    RECENT_US,
    TOPOLOGIES,
    Size,
    appearances,
    policy,
)
from skewless.lab.reproduce.rebalance_turns import Run, Share, Turn, straggler
from skewless.lab.workloads.streams import TIMESTAMP

TINY = Size(batches=3, word_rows=6_000, trade_rows=200, scale_factor=0.002)
BY_NAME = {topology.name: topology for topology in TOPOLOGIES}
SPEED = {"Hash": 1.0, "Readj": 1.6, "Mixed": 2.0, "PKG": 1.6}


def ran(
    spark: SparkSession, folder: Path, name: str, system: str
) -> tuple[tuple[Turn, ...], list[Any]]:
    """One run into memory: what its batches did, and its rows."""
    topology = BY_NAME[name]
    topology.write(folder, TINY, np.random.default_rng(1))
    stream = topology.stream(spark, folder, system, 2)
    table = f"rebalance_{name}"
    writer = stream.writeStream.format("memory").queryName(table)
    turns = follow(writer.option("checkpointLocation", str(folder / "checkpoint")))
    rows = spark.table(table).collect()
    spark.catalog.clearCache()
    assert len(turns) == TINY.batches
    return turns, rows


def test_word_count(spark: SparkSession, tmp_path: Path) -> None:
    turns, rows = ran(spark, tmp_path, "words", "PKG")
    assert [turn.rows for turn in turns] == [TINY.word_rows] * TINY.batches
    files = f"read_parquet('{tmp_path}/words/*.parquet')"
    expected = duckdb.sql(
        f"select word, count(*) from {files} "
        """where "at" < timestamptz '2024-01-01 00:00:01+00' group by all"""
    ).fetchall()
    # 18,000 rows at 10,000 per second: the first window closes, the second does not.
    assert sorted((row.word, row["count"]) for row in rows) == sorted(expected)
    assert sum(count for _, count in expected) > 9_000


def test_word_history_counts_every_appearance(spark: SparkSession, tmp_path: Path) -> None:
    _, rows = ran(spark, tmp_path, "history", "Mixed")
    assert len(rows) == 3 * TINY.word_rows
    # The stream is shorter than what is looked back: the last appearance has them all.
    words = Counter(row.word for row in rows)
    highest: Counter[str] = Counter()
    for row in rows:
        highest[row.word] = max(highest[row.word], row.appearances)
    assert highest == words
    assert max(words.values()) > 10


def test_trades_are_paired(spark: SparkSession, tmp_path: Path) -> None:
    turns, rows = ran(spark, tmp_path, "trades", "Mixed")
    files = f"read_parquet('{tmp_path}/trades/*.parquet')"
    (expected,) = duckdb.sql(
        f"select count(*) from {files} a join {files} b on a.symbol = b.symbol "
        "where (a.at < b.at or (a.at = b.at and a.account < b.account)) "
        "and b.at - a.at <= interval 10 seconds"
    ).fetchall()[0]
    assert sum(sum(turn.shares[0].work) for turn in turns) == expected > 1_000
    assert all(row.account == row.account_right for row in rows)
    assert turns[-1].shares[0].table > 0
    assert sum(turn.shares[0].moved_rows for turn in turns) > 0


Q5 = """
    select time_bucket(interval 91 days, o_orderdate, timestamptz '1970-01-01 00:00:00+00'),
           n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
    from orders, lineitem, customer, supplier, nation, region
    where l_orderkey = o_orderkey and o_custkey = c_custkey and l_suppkey = s_suppkey
      and c_nationkey = s_nationkey and s_nationkey = n_nationkey
      and n_regionkey = r_regionkey and r_name = 'ASIA'
    group by all
"""


def test_q5_equals_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    turns, rows = ran(spark, tmp_path, "q5", "Mixed")
    assert [share.operator for share in turns[0].shares] == ["join", "keyed"]
    found = {(r.window.start.timestamp(), r.n_name): r.revenue for r in rows}
    assert len(found) == len(rows)
    closed = max(r.window.end.timestamp() for r in rows)
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        for name in ("orders", "lineitem"):
            connection.execute(f"create view {name} as from '{tmp_path}/{name}/*.parquet'")
        for name in ("customer", "supplier", "nation", "region"):
            connection.execute(f"create view {name} as from '{tmp_path}/{name}.parquet'")
        expected = {
            (start.timestamp(), nation): revenue
            for start, nation, revenue in connection.execute(Q5).fetchall()
        }
    # The last windows do not close: no later order moves the watermark past them.
    due = {key: revenue for key, revenue in expected.items() if key[0] < closed}
    assert found == due
    assert len(due) > 0.8 * len(expected) > 20


def test_appearances_look_back_so_far_and_keep_no_more() -> None:
    def rows(*times_us: int) -> pa.Table:
        at = pa.array(times_us, pa.int64()).cast(TIMESTAMP)
        words = pa.array(["a", "b"] * (len(times_us) // 2), pa.string())
        return pa.table({"word": words, "at": at})

    early, late = 1_000, 1_000 + RECENT_US
    first, state = appearances(rows(early, early), None)
    assert first["appearances"].to_pylist() == [1, 1]
    # Exactly so long ago counts, longer ago does not.
    second, state = appearances(rows(late, late + 1), state)
    assert second["appearances"].to_pylist() == [2, 1]
    assert state["at"].cast(pa.int64()).to_pylist() == [late, late + 1]
    empty, kept = appearances(rows(), None)
    assert (empty.num_rows, kept.num_rows) == (0, 0)
    assert empty.schema == first.schema


def test_appearances_of_many_words_do_not_mix() -> None:
    rng = np.random.default_rng(3)
    words = rng.integers(0, 2_000, 5_000)
    times = np.sort(rng.integers(0, 3 * RECENT_US, 5_000))
    batch = pa.table({"word": pa.array(words).cast(pa.string()), "at": pa.array(times)})
    out, _ = appearances(batch.set_column(1, "at", batch["at"].cast(TIMESTAMP)), None)
    expected = [
        int(((words == word) & (times <= at) & (times >= at - RECENT_US)).sum())
        for word, at in zip(words, times, strict=True)
    ]
    assert out["appearances"].to_pylist() == expected


def test_policies_are_the_papers() -> None:
    assert policy("Mixed", 2).describe()["threshold"] == 0.02
    assert policy("Hash", 3).table(cores=1).instances == 3
    for topology in TOPOLOGIES:
        assert topology.policies[:3] == ("Hash", "Readj", "Mixed")


def test_a_stream_that_cannot_change_is_refused() -> None:
    with pytest.raises(SkewlessError, match="batches"):
        replace(TINY, batches=1)


def stand_in(trial: Trial) -> Run:
    operators = ("join", "keyed") if trial.topology.name == "q5" else ("keyed",)
    shares = tuple(
        Share(operator, (10.0, 30.0), (100, 100), 2, 50, 7, 1.0) for operator in operators
    )
    seconds = (1.0 + 0.1 * trial.seed) / SPEED[trial.system]
    slow = Turn(0, 100.0, 1_000, shares)
    later = tuple(Turn(number, seconds, 1_000, shares) for number in (1, 2, 3))
    return Run(trial.topology.name, trial.system, trial.seed, (slow, *later), warm_up=1)


def runs(*, quick: bool = False) -> list[Run]:
    return [stand_in(trial) for trial in trials(quick=quick, seed=1)]


def test_figures_leave_the_first_batches_out() -> None:
    run = stand_in(Trial(BY_NAME["q5"], "Mixed", 0))
    assert run.rows_per_second == pytest.approx(2_000)
    assert run.seconds == 0.5
    assert (run.skewness(0), run.cpu_skewness(1)) == (1.0, 1.5)
    assert run.straggler_ms(0) == 30.0
    # What was moved before they ended was moved all the same.
    assert run.moved_rows(1) == 200
    assert run.table(0) == 7
    assert straggler([]) == straggler([0, 0]) == 1.0
    short = replace(run, turns=run.turns[:1])
    assert short.seconds == 100.0


def test_every_policy_runs_on_every_stream_once() -> None:
    wanted = list(trials(quick=False, seed=5))
    assert len(set(wanted)) == len(wanted) == 14 * rebalance_queries.STREAMS
    assert {trial.seed for trial in wanted} == {5, 6, 7}
    assert len(list(trials(quick=True, seed=5))) == 14


def test_mixed_is_compared_on_the_same_stream_and_beside_the_paper() -> None:
    compared = {(c["query"], c["what"]): c for c in comparisons(runs())}
    trades = compared["trades", "rows/s, Mixed ÷ Hash"]
    assert (trades["least"], trades["median"], trades["most"]) == pytest.approx((2, 2, 2))
    assert trades["paper"] == 2
    latency = compared["words", "time per batch, Mixed ÷ PKG"]
    assert (latency["median"], latency["paper"]) == pytest.approx((0.8, 0.6))
    assert compared["q5", "straggler's CPU time, Mixed ÷ Hash"]["median"] == 1
    assert comparisons([r for r in runs() if r.system == "Hash"]) == []


def test_tables_show_operators_and_the_papers_figure() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render(runs(), comparisons(runs()), quick=True))
    text = console.export_text()
    assert "(join / keyed)" in text
    assert "1.50 / 1.50" in text
    assert "about 1.1" in text
    assert "Small inputs" in text
    assert "Not PKG" in text


def test_figures_are_written(tmp_path: Path) -> None:
    figures = draw(runs(), tmp_path)
    assert len(figures) == 2 * len(TOPOLOGIES)
    assert all(f.read_bytes().startswith(b"\x89PNG") for f in figures)


def test_run_writes_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        rebalance_queries, "_perform_all", lambda wanted, *_: [stand_in(t) for t in wanted]
    )
    path = tmp_path / "r.json"
    record = rebalance_queries.run(
        out=tmp_path / "figures", json_path=path, quick=True, seed=3, instances=4
    )
    assert json.loads(path.read_text()) == json.loads(json.dumps(record))
    assert (record["seed"], record["instances"], len(record["runs"])) == (3, 4, 14)
    assert record["runs"][-1]["operators"][0]["cpu_skewness"] == 1.5


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[dict[str, object]] = []
    monkeypatch.setattr(rebalance_queries, "run", lambda **options: calls.append(options))
    options = ["--queries", "--out", str(tmp_path), "--quick", "--instances", "4"]
    assert CliRunner().invoke(app, ["reproduce", "rebalance", *options]).exit_code == 0
    assert calls == [{"out": tmp_path, "json_path": None, "quick": True, "seed": 1, "instances": 4}]
