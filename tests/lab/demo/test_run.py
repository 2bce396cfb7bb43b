"""The demo as a whole, on queries that stand in for Spark's, so that it takes seconds."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skewless.examples.ride_hailing
import skewless.lab.demo
import skewless.lab.demo.play
from skewless import SkewlessError

from .fakes import FakeQuery, FakeSession


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[FakeQuery]:
    queries: list[FakeQuery] = []

    def dispatch(spark: Any, orders: str, drivers: str, out: str, balance: Any) -> FakeQuery:
        # Thirteen instances, and the second query fails.
        fails = balance.instances == 13 and queries
        queries.append(FakeQuery(orders, drivers, fail_at=1 if fails else None))
        results = Path(out) / "results"
        results.mkdir(parents=True)
        rows = 2 if balance.instances == 5 and len(queries) == 2 else 3
        pq.write_table(pa.table({"order_id": range(rows)}), results / "batch-0.parquet")
        return queries[-1]

    monkeypatch.setattr(skewless.examples.ride_hailing, "dispatch", dispatch)
    monkeypatch.setattr(skewless.lab.demo.play, "FILE_PERIOD_S", 0.1)
    monkeypatch.setattr(skewless.lab.demo.play, "POLL_S", 0.01)
    return queries


def test_a_run_joins_every_row_twice_and_leaves_summary_and_figure(
    tmp_path: Path, started: list[FakeQuery], capsys: pytest.CaptureFixture[str]
) -> None:
    session, report = FakeSession(), tmp_path / "deep" / "demo.json"
    summary = skewless.lab.demo.run(
        seconds=1, out=tmp_path / "out", json_path=report, plain=True, spark=session
    )
    written = sum(pq.read_metadata(file).num_rows for file in tmp_path.rglob("part-*"))
    assert list(summary["queries"]) == ["Hash", "Skewless"]
    for query in summary["queries"].values():
        assert query["rows"] == written == summary["rows"] > 0
        assert query["matches"] == 5_000 * query["batches"]
        assert query["imbalance_mean"] == query["imbalance_worst"] == 1.5
        assert query["partitions_moved"] == query["keys_split"] == query["keys_folded_back"] == 0
    assert summary["same_results"] is True
    assert 0 < summary["hottest_cell_share"] < 0.3
    assert Path(summary["figure"]).is_file()
    assert json.loads(report.read_text()) == summary
    assert not any(query.isActive for query in started)
    assert not session.stopped  # a session that was handed in is not ours to stop
    output = capsys.readouterr().out
    assert output.count("rows/s") == sum(q["batches"] for q in summary["queries"].values())
    assert "same results: yes, both queries wrote 3 rows" in output
    for query in summary["queries"].values():
        assert query["results"] in output
    assert "\x1b" not in output


def test_results_that_differ_are_told_and_fail(
    tmp_path: Path, started: list[FakeQuery], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SkewlessError, match="different results"):
        skewless.lab.demo.run(seconds=1, out=tmp_path, plain=True, instances=5, spark=FakeSession())
    assert "same results: NO, the queries wrote 3 and 2 rows" in capsys.readouterr().out


def test_a_failing_query_ends_the_run_with_its_error(
    tmp_path: Path, started: list[FakeQuery]
) -> None:
    with pytest.raises(RuntimeError, match="the batch broke"):
        skewless.lab.demo.run(
            seconds=30, out=tmp_path, plain=True, instances=13, spark=FakeSession()
        )
    assert not any(query.isActive for query in started)


def test_a_query_that_hangs_ends_the_run(
    tmp_path: Path, started: list[FakeQuery], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skewless.lab.demo.play, "PATIENCE_S", 0.1)
    monkeypatch.setattr(FakeQuery, "lastProgress", None)
    with pytest.raises(TimeoutError, match="was not done"):
        skewless.lab.demo.run(seconds=30, out=tmp_path, plain=True, spark=FakeSession())


def test_a_folder_with_files_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ValueError, match="out must be an empty"):
        skewless.lab.demo.run(out=tmp_path, spark=FakeSession())


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"instances": 0}], ids=str)
def test_wrong_arguments_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        skewless.lab.demo.run(out=tmp_path, spark=FakeSession(), **wrong)
    assert not any(tmp_path.iterdir())
