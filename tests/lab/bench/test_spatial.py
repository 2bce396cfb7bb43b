"""The benchmark of spatial streams: what it compares finds the same, and what it makes of it."""

import io
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from skewless.errors import SkewlessError
from skewless.lab.bench import spatial, spatial_bare, with_sedona
from skewless.lab.bench.child import Job, batch_of
from skewless.lab.bench.engines import Replay
from skewless.lab.bench.measure import Batch
from skewless.lab.bench.pipe import follow
from skewless.lab.bench.process import OnBatch, Outcome
from skewless.lab.bench.spatial_engines import (
    ADDING,
    AUTO,
    CELLS,
    ENGINES,
    FLOORS,
    NEAR,
    RANGE,
    REPLICATED,
    STATE_CELLS,
    STATIC,
    STRTREE,
    SUBSCRIBE,
    SWARM,
)
from skewless.lab.bench.spatial_scenes import (
    FILES_PER_BATCH,
    RADIUS,
    SIDE,
    Crowded,
    Fleets,
    Newcomers,
    Scene,
    Subscribed,
    history,
)
from skewless.lab.bench.workloads import Length
from skewless.lab.workloads.hotspots import SHARE
from skewless.lab.workloads.hotspots import SIDE as HOT_SIDE

TWO = Length(2, 1, slow=Length(1, 0))


def tables(folder: Path) -> list[pa.Table]:
    return [pq.read_table(file) for file in sorted(folder.iterdir())]


def inside(points: pa.Table, queries: pa.Table) -> int:
    """Pairs of points and subscriptions, each compared with each."""
    x, y = (points[name].to_numpy()[:, None] for name in ("x", "y"))
    west, south, east, north = (
        queries[name].to_numpy() for name in ("x_min", "y_min", "x_max", "y_max")
    )
    return int(((west <= x) & (x <= east) & (south <= y) & (y <= north)).sum())


def started(spark: SparkSession, name: str, inputs: tuple[Path, Path], folder: Path) -> list[Batch]:
    start = ENGINES[name].start
    assert start is not None
    replay = Replay(str(inputs[0]), str(inputs[1]), WITHIN_S, 2, str(folder / name))
    return [batch_of(p) for p in follow(start(spark, replay), lambda event: None)]


WITHIN_S = 20.0


def test_a_crowd_is_the_same_whenever_it_is_written(tmp_path: Path) -> None:
    scene = Subscribed(TWO, 100, (30, 50))
    (points, queries), again = scene.write(tmp_path / "a"), scene.write(tmp_path / "b")
    files = tables(points)
    assert [table.num_rows for table in files] == [15, 15, 25, 25]
    assert pa.concat_tables(files)["point"].to_pylist() == list(range(80))
    written = pa.concat_tables(tables(queries))
    assert written.num_rows == 100
    assert (written["x_max"].to_numpy() - written["x_min"].to_numpy()).max() <= SIDE + 1e-12
    assert files == tables(again[0])
    begun, same = scene.begun((points, queries), 1, tmp_path / "begun")
    assert len(list(begun.iterdir())) == FILES_PER_BATCH
    assert same == queries


def test_the_hotspot_comes_when_it_should(tmp_path: Path) -> None:
    points, queries = Crowded(Length(2, 1), 2_000, (2_000, 2_000), hot_from=1).write(tmp_path)
    files = tables(points)
    batches = [pa.concat_tables(files[:2]), pa.concat_tables(files[2:])]
    shares = [_in_the_hotspot(b["x"], b["y"]) for b in batches]
    assert shares[0] < 0.1
    assert shares[1] == pytest.approx(SHARE, abs=0.1)
    subscribed = pa.concat_tables(tables(queries))
    assert _in_the_hotspot(subscribed["x_min"], subscribed["y_min"]) == pytest.approx(
        SHARE, abs=0.1
    )
    quiet, rectangles = history(1_000, 500)
    assert (quiet.shape, rectangles.shape) == ((1_000, 2), (500, 4))
    assert _in_the_hotspot(pa.array(quiet[:, 0]), pa.array(quiet[:, 1])) < 0.1


def _in_the_hotspot(x: Any, y: Any) -> float:
    return float(((x.to_numpy() <= HOT_SIDE) & (y.to_numpy() <= HOT_SIDE)).mean())


@pytest.mark.parametrize("scene", [part.scene for part in spatial.QUICK if hasattr(part, "scene")])
def test_scenes_have_the_rows_they_say(scene: Scene, tmp_path: Path) -> None:
    left, right = scene.write(tmp_path)
    static = isinstance(scene, Subscribed)
    rows = sum(table.num_rows for table in tables(left))
    rows += 0 if static else sum(table.num_rows for table in tables(right))
    assert rows == sum(scene.rows)
    assert len(scene.rows) == scene.length.batches
    json.dumps(scene.describe())


def test_all_contenders_find_the_subscriptions_of_brute_force(
    spark: SparkSession, tmp_path: Path
) -> None:
    scene = Crowded(TWO, 20_000, (600, 700), hot_from=1)
    inputs = scene.write(tmp_path / "data")
    queries = pa.concat_tables(tables(inputs[1]))
    files = tables(inputs[0])
    wanted = [inside(pa.concat_tables(files[n : n + 2]), queries) for n in (0, 2)]
    assert min(wanted) > 10
    for name in (SUBSCRIBE, STRTREE, CELLS, RANGE, SWARM, STATIC, REPLICATED, AUTO):
        found = started(spark, name, inputs, tmp_path)
        assert [batch.matches for batch in found] == wanted, name
        assert [batch.rows for batch in found] == scene.rows, name


@pytest.mark.parametrize("name", FLOORS)
def test_a_floor_gives_about_as_many_rows(spark: SparkSession, tmp_path: Path, name: str) -> None:
    inputs = Subscribed(TWO, 1_000_000, (400, 400)).write(tmp_path / "data")
    found = started(spark, name, inputs, tmp_path)
    assert [batch.rows for batch in found] == [400, 400]
    assert found[0].matches == pytest.approx(400 * 1_000_000 * SIDE**2, abs=2)


def test_subscriptions_that_come_are_found_from_their_batch_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    scene = Newcomers(Length(3, 1), 4_000, 2_000, 200)
    inputs = scene.write(tmp_path / "data")
    points, changes = (tables(side) for side in inputs)
    wanted = [inside(points[n], pa.concat_tables(changes[: n + 1])) for n in range(3)]
    found = started(spark, ADDING, inputs, tmp_path)
    assert [batch.matches for batch in found] == wanted
    assert [batch.rows for batch in found] == scene.rows
    assert sum(wanted) > 0


def test_all_contenders_find_the_pairs_of_brute_force(spark: SparkSession, tmp_path: Path) -> None:
    scene = Fleets(Length(3, 1), 4_000, 2_000, 4_000 / WITHIN_S)
    assert scene.within_s == WITHIN_S
    inputs = scene.write(tmp_path / "data")
    wanted = near(*(pa.concat_tables(tables(side)) for side in inputs))
    assert wanted > 20
    for name in (NEAR, STATE_CELLS):
        found = started(spark, name, inputs, tmp_path)
        assert sum(batch.matches or 0 for batch in found) == wanted, name
        assert [batch.rows for batch in found] == scene.rows


def near(left: pa.Table, right: pa.Table) -> int:
    x, y = (left[n].to_numpy()[:, None] - right[n].to_numpy() for n in ("x", "y"))
    at, other = (side["ts"].cast("int64").to_numpy() for side in (left, right))
    apart = np.abs(at[:, None] - other)
    return int(((np.hypot(x, y) <= RADIUS) & (apart <= WITHIN_S * 1e6)).sum())


@pytest.mark.skipif(not with_sedona.installed(), reason="SedonaDB is not installed")
def test_sedona_finds_the_pairs_of_brute_force(tmp_path: Path) -> None:
    inputs = Fleets(Length(2, 1), 2_000, 1_000, 2_000 / WITHIN_S).write(tmp_path)
    left, right = map(str, inputs)
    batches, pairs = with_sedona.measure(left, right, WITHIN_S, RADIUS, lambda event: None)
    assert pairs == near(*(pa.concat_tables(tables(side)) for side in inputs))
    assert [batch.rows for batch in batches] == [6_000, 6_000]


def test_kernels_find_the_same_in_turns() -> None:
    contenders = spatial_bare.searches(5_000, 1_000)
    order: list[str] = []
    noted = {
        name: lambda name=name, search=search: order.append(name) or search()
        for name, search in contenders.items()
    }
    ticks = itertools.count()
    seconds, pairs = spatial_bare.measure(noted, 2, clock=lambda: float(next(ticks)))
    assert order == ["index", "strtree"] * 3
    assert seconds == {"index": [1.0, 1.0], "strtree": [1.0, 1.0]}
    assert pairs["index"] == pairs["strtree"] > 0


SECONDS = {SUBSCRIBE: 0.5, STRTREE: 1.5, CELLS: 2.0, RANGE: 10.0, SWARM: 1.0, STATIC: 2.0}


def pretend(job: Job, on_batch: OnBatch) -> Outcome:
    """Read the files that a contender would have read, and say that it took this long."""
    left, right = (sorted(Path(side).iterdir()) for side in (job.replay.left, job.replay.right))
    sources = [left]
    if job.engine in (NEAR, STATE_CELLS, ADDING, with_sedona.NAME):
        sources.append(right)
    per_batch = len(left) // job.batches
    found = []
    for number in range(job.batches):
        files = [f for s in sources for f in s[number * per_batch : (number + 1) * per_batch]]
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        found.append(Batch(number, SECONDS.get(job.engine, 3.0), rows, matches=7))
        on_batch(number + 1)
    return Outcome(found, java="17", settings={})


def bench(
    part: str, measure: spatial.Measure = pretend, json_path: Path | None = None, busy: float = 0.0
) -> tuple[dict[str, Any], str]:
    console = Console(file=io.StringIO(), width=80)
    result = spatial.run(
        parts=[part],
        json_path=json_path,
        quick=True,
        measure=measure,
        busy=lambda: busy,
        console=console,
    )
    assert isinstance(console.file, io.StringIO)
    return result, console.file.getvalue()


def test_contenders_side_by_side(tmp_path: Path) -> None:
    result, shown = bench("subscriptions", json_path=tmp_path / "r.json")
    found = result["parts"]["subscriptions"]
    runs = {run["contender"]: run for run in found["runs"]}
    assert list(runs) == [SUBSCRIBE, STRTREE, CELLS, RANGE, *FLOORS]
    assert [len(run["batches"]) for run in runs.values()] == [2, 2, 2, 1, 2, 2]
    assert runs[SUBSCRIBE]["rows_per_second"]["median"] == 8_000
    # 100 points in 10 s, beside 4,000 in half a second.
    assert found["ratios"]["times_range"] == pytest.approx(800)
    assert found["ratios"]["times_strtree"] == pytest.approx(3)
    assert [target["reached"] for target in found["targets"]] == [None, None]
    assert result["errors"] == []
    assert json.loads((tmp_path / "r.json").read_text()) == result
    assert "≥ 2 × STRtree, a process per core: 3.00 ×, not judged" in shown
    assert "÷ Spark's broadcast hash join by cells: 4.00 ×" in shown
    assert "the floor ÷ STRtree: 0.50 ×" in shown
    assert "…" not in shown


@pytest.mark.parametrize(
    ("part", "ratio", "value"), [("adding", "seconds", 3.0), ("fixed", "seconds", 0.5)]
)
def test_a_contender_alone_is_judged_by_its_seconds(part: str, ratio: str, value: float) -> None:
    result, shown = bench(part)
    assert result["parts"][part]["ratios"] == {ratio: value}
    assert f"{value:.3f} s, not judged" in shown


def test_policies_in_a_hotspot() -> None:
    result, shown = bench("hotspot")
    ratios = result["parts"]["hotspot"]["ratios"]
    assert ratios["static_over_swarm"] == pytest.approx(2.0)
    assert "StaticGrid from history ÷ Swarm ≥ 1.5: 2.00 ×, not judged" in shown
    assert "Replicated ÷ Auto: 1.00 ×" in shown


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spatial, "ENGINES", {n: e for n, e in ENGINES.items() if n != "sedonadb"})
    result, shown = bench("distance")
    assert result["parts"]["distance"]["absent"] == ["sedonadb"]
    assert "sedonadb is not installed, and was not measured" in shown
    assert result["parts"]["distance"]["ratios"]["times_state"] == pytest.approx(1.0)


def test_different_matches_are_an_error() -> None:
    def wrong(job: Job, on_batch: OnBatch) -> Outcome:
        outcome = pretend(job, on_batch)
        if job.engine != STRTREE:
            return outcome
        return replace(outcome, batches=[replace(b, matches=8) for b in outcome.batches])

    result, shown = bench("subscriptions", wrong)
    assert result["errors"] == [
        "subscriptions: strtree found 8 matches in batch 0, subscribe found 7"
    ]
    assert "ERROR: strtree found 8 matches" in shown


def test_a_contender_that_fails_leaves_the_others(tmp_path: Path) -> None:
    def broken(job: Job, on_batch: OnBatch) -> Outcome:
        return Outcome(error="no memory") if job.engine == RANGE else pretend(job, on_batch)

    result, shown = bench("subscriptions", broken, busy=0.5)
    found = result["parts"]["subscriptions"]
    assert result["errors"] == ["subscriptions: spark-range: no memory"]
    assert "times_range" not in found["ratios"]
    assert found["ratios"]["times_strtree"] == pytest.approx(3)
    assert "failed" in shown
    assert "50% busy with other work" in shown


def test_wrong_rows_are_an_error() -> None:
    def short(job: Job, on_batch: OnBatch) -> Outcome:
        outcome = pretend(job, on_batch)
        return replace(outcome, batches=[replace(b, rows=b.rows - 1) for b in outcome.batches])

    result, _ = bench("fixed", short)
    assert result["errors"] == ["fixed: subscribe: batch 0 had 99 rows instead of 100"]


def test_the_kernels_are_a_part() -> None:
    result, shown = bench("kernel")
    assert result["errors"] == []
    assert result["parts"]["kernel"]["ratios"]["times_bare_strtree"] > 0
    assert "strtree" in shown


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(SkewlessError, match="part: got 'nothing'; takes subscriptions, kernel"):
        bench("nothing")
