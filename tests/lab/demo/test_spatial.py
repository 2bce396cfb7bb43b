"""The spatial demo on queries that stand in for Spark's, and the words of its summary."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skewless.examples.nearby_drivers
import skewless.lab.demo.play
from skewless.lab.demo import spatial
from skewless.lab.demo.globe import GlobeFeed
from skewless.lab.demo.spatial import drivers_found, in_words
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import even_tiles
from skewless.state.commit import Commit, CommitLog, OperatorState
from skewless.state.storage import Storage

from .fakes import FakeQuery, FakeSession
from .records import record


class Nearby(FakeQuery):
    """Counts orders, and drivers that are free."""

    def rows_of(self, file: Path) -> int:
        table = pq.read_table(file)
        if "free" not in table.column_names:
            return int(table.num_rows)
        return int(np.sum(table["free"].to_numpy()))


class Watched(FakeQuery):
    """Counts drivers, and commits a map of ever more tiles."""

    def __init__(self, drivers: str, checkpoint: Path, bounds: tuple[float, ...]) -> None:
        super().__init__(drivers, drivers, fail_at=None)
        self._folders = [Path(drivers)]
        storage = Storage(str(checkpoint / "skewless"))
        storage.make_directory("commits")
        self._log = CommitLog(storage)
        self._grid = CellGrid(8, bounds)  # type: ignore[arg-type]

    def told(self, number: int, rows: list[int]) -> dict[str, Any]:
        route = even_tiles(self._grid, 2 + number)
        self._log.publish(Commit(number, {}, (OperatorState(route, {}, None),)))
        moves = ((3, 0, 1),) if number else ()
        told = record(number, rows=(rows[0], 0), moves=moves)
        told["skewless"]["operators"][0]["operator"] = "subscribe"
        return told


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[FakeQuery]:
    queries: list[FakeQuery] = []

    def nearby(spark: Any, orders: str, drivers: str, out: str, balance: Any) -> FakeQuery:
        queries.append(Nearby(orders, drivers, fail_at=None))
        results = Path(out) / "results"
        results.mkdir(parents=True)
        pairs = {"order_id": [0, 0, 0, 2], "driver_id": [5, 5, 6, 5]}
        pq.write_table(pa.table(pairs), results / "batch-0.parquet")
        return queries[-1]

    def watch_areas(spark: Any, feed: GlobeFeed, folder: Path, instances: int) -> FakeQuery:
        assert (folder / "input" / "areas" / "areas.parquet").is_file()
        checkpoint = folder / "areas" / "checkpoint"
        queries.append(Watched(str(feed.drivers_dir), checkpoint, feed.projection.bounds))
        return queries[-1]

    monkeypatch.setattr(skewless.examples.nearby_drivers, "nearby", nearby)
    monkeypatch.setattr(spatial, "watch_areas", watch_areas)
    monkeypatch.setattr(skewless.lab.demo.play, "FILE_PERIOD_S", 0.1)
    monkeypatch.setattr(skewless.lab.demo.play, "POLL_S", 0.01)
    return queries


def test_a_run_leaves_a_summary_and_an_animation(
    tmp_path: Path, started: list[FakeQuery], capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    session, report = FakeSession(), tmp_path / "deep" / "demo.json"
    summary = spatial.run(
        seconds=1, out=tmp_path / "out", json_path=report, plain=True, spark=session
    )
    files = list((tmp_path / "out" / "input" / "drivers").iterdir())
    assert summary["driver_reports"] == sum(pq.read_metadata(f).num_rows for f in files)
    assert summary["orders_with_a_driver"] == 2
    assert summary["drivers_per_order_most"] == 2
    assert summary["tiles_first"] == 2
    assert summary["tiles_last"] == 1 + len(files)
    assert summary["rectangles_moved"] == summary["rounds_with_changes"] == len(files) - 1
    with Image.open(summary["animation"]) as picture:
        # Frames of a city that stands still are one.
        assert 1 < getattr(picture, "n_frames", 1) <= len(files)
    assert json.loads(report.read_text()) == summary
    assert not any(query.isActive for query in started)
    assert not session.stopped  # a session that was handed in is not ours to stop
    output = capsys.readouterr().out
    assert "1 rectangle moved (0→1)" in output
    assert "2 orders" in output
    assert summary["animation"] in output
    assert "\x1b" not in output


def test_a_driver_who_reports_twice_is_one(tmp_path: Path) -> None:
    pairs = {"order_id": [7, 7, 7, 9], "driver_id": [1, 1, 2, 1], "metres": [4.0, 5.0, 6.0, 7.0]}
    (tmp_path / "batch=0").mkdir()
    pq.write_table(pa.table(pairs), tmp_path / "batch=0" / "part.parquet")
    assert drivers_found(tmp_path) == {7: 2, 9: 1}
    assert drivers_found(tmp_path / "nothing") == {}


def test_the_summary_in_words() -> None:
    told = {
        "orders": 1_000,
        "driver_reports": 50_000,
        "free_driver_reports": 20_000,
        "orders_with_a_driver": 900,
        "drivers_per_order_median": 7.0,
        "drivers_per_order_most": 31,
        "areas": 3_000,
        "area_matches": 123_456,
        "tiles_first": 8,
        "tiles_last": 15,
        "rounds_with_changes": 4,
        "rectangles_moved": 9,
        "imbalance_mean": 1.2345,
        "crowd_jumps": 3,
        "instances": 8,
        "total_seconds": 61.4,
        "results": "/r",
        "animation": None,
    }
    text = " ".join(in_words(told))
    for said in (
        "1,000 orders and 50,000 reports of drivers, 20,000 of them free, in 61 s.",
        "900 orders (90%) had a free driver within 500 m in the last 30 s: 7 in the median",
        "9 rectangles moved between 8 instances, 8 tiles became 15",
        "1.23 times the mean load",
        "animation: none",
    ):
        assert said in text


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"instances": 0}], ids=str)
def test_wrong_arguments_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        spatial.run(out=tmp_path, spark=FakeSession(), **wrong)
    assert not any(tmp_path.iterdir())
