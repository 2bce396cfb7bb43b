"""The demo as a whole, on a query that stands in for Spark's, so that it takes seconds."""

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import skewless.demo
import skewless.examples.ride_hailing

from .records import record


class FakeQuery:
    """Takes up all files that are new at each look, as a micro-batch would."""

    def __init__(self, orders: str, drivers: str, fail_at: int | None) -> None:
        self._folders = [Path(orders), Path(drivers)]
        self._seen: set[Path] = set()
        self._records: list[dict[str, Any]] = []
        self._fail_at = fail_at
        self._ended = threading.Event()

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return not self._ended.is_set()

    def exception(self) -> Exception | None:
        return RuntimeError("the batch broke") if self._ended.is_set() else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 - Spark's name
        return self._records

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        rows = []
        for folder in self._folders:
            new = sorted(set(folder.glob("part-*")) - self._seen)
            self._seen.update(new)
            rows.append(sum(pq.read_metadata(file).num_rows for file in new))
        if sum(rows):
            self._records.append(record(len(self._records), rows=(rows[0], rows[1])))
        if len(self._records) == self._fail_at:
            self._ended.set()
        return self._records[-1] if self._records else None

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - Spark's name
        return self._ended.wait(timeout)

    def stop(self) -> None:
        self._ended.set()


class FakeSession:
    stopped = False

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[FakeQuery]:
    queries: list[FakeQuery] = []

    def dispatch(spark: Any, orders: str, drivers: str, out: str, *, instances: int) -> FakeQuery:
        queries.append(FakeQuery(orders, drivers, fail_at=2 if instances == 13 else None))
        return queries[-1]

    monkeypatch.setattr(skewless.examples.ride_hailing, "dispatch", dispatch)
    return queries


def test_a_run_joins_every_row_and_leaves_summary_and_figure(
    tmp_path: Path, started: list[FakeQuery], capsys: pytest.CaptureFixture[str]
) -> None:
    session, report = FakeSession(), tmp_path / "deep" / "demo.json"
    summary = skewless.demo.run(
        seconds=1, out=tmp_path / "out", json_path=report, plain=True, spark=session
    )
    written = sum(pq.read_metadata(file).num_rows for file in tmp_path.rglob("part-*"))
    assert summary["rows"] == written > 0
    assert summary["rows_not_joined"] == 0
    assert summary["matches"] == 5_000 * summary["batches"]
    assert summary["load_shares"] == [0.75, 0.25]
    assert 0 < summary["hottest_cell_share"] < 0.2
    assert Path(summary["figure"]).is_file()
    assert json.loads(report.read_text()) == summary
    assert not started[0].isActive
    assert not session.stopped  # a session that was handed in is not ours to stop
    output = capsys.readouterr().out
    assert output.count("rows/s") == summary["batches"]
    assert f"results: {summary['results']}" in output
    assert "\x1b" not in output


def test_a_failing_query_ends_the_run_with_its_error(
    tmp_path: Path, started: list[FakeQuery]
) -> None:
    before = threading.active_count()
    with pytest.raises(RuntimeError, match="the batch broke"):
        skewless.demo.run(seconds=30, out=tmp_path, plain=True, instances=13, spark=FakeSession())
    assert threading.active_count() == before


def test_a_folder_with_files_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ValueError, match="out must be an empty"):
        skewless.demo.run(out=tmp_path, spark=FakeSession())


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"instances": 0}], ids=str)
def test_wrong_arguments_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        skewless.demo.run(out=tmp_path, spark=FakeSession(), **wrong)
    assert not any(tmp_path.iterdir())
