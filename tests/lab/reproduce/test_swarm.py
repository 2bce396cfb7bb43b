"""The reproduction of SWARM: points are complete, results become tables and figures."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from skewless.cli import app
from skewless.errors import SkewlessError
from skewless.lab.reproduce import swarm
from skewless.lab.reproduce.swarm_experiments import (
    POLICIES,
    QUERIES,
    Outcome,
    Point,
    Result,
    perform,
    points,
)
from skewless.lab.reproduce.swarm_figures import draw
from skewless.lab.reproduce.swarm_maps import crowd_scene, file_scene
from skewless.lab.reproduce.swarm_overheads import overheads
from skewless.lab.reproduce.swarm_report import gain, render, targets, work
from skewless.lab.workloads.hotspots import KINDS, Kind
from skewless.routing.cells import CellGrid
from skewless.routing.tiles import even_tiles

WORK = dict(zip(POLICIES, (3e11, 1e11, 5e10, 2e11, 4e11), strict=True))
TILES = (even_tiles(CellGrid(8, (0.0, 0.0, 1.0, 1.0)), 22), np.random.default_rng(1).random((9, 2)))


def stand_in(point: Point, seed: int) -> Result:
    outcomes = {
        name: Outcome(
            work=made,
            execution_us=1e13 / made,
            latency_us=1e14 / made,
            utilisation=[[0.5, 0.1, 1.0]] * 2,
            series=[made] * 10,
            queries=[1e6] * 10,
            tiles=22,
        )
        for name, made in WORK.items()
    }
    if point.queries > 16_000_000:
        outcomes["Replicated"] = Outcome(None, None, None)
    pictures = {} if point.kind is None else dict.fromkeys(("history grid", "Swarm", "Auto"), TILES)
    return Result(point, seed, outcomes, pictures)


def results(*, quick: bool = False) -> list[Result]:
    made = points(quick=quick, files=(Path("trips.parquet"),))
    return [stand_in(point, seed) for point in made for seed in (1, 2)]


def test_every_figure_of_the_paper_is_there() -> None:
    made = list(points(quick=False))
    assert len(set(made)) == len(made)
    assert [p.queries for p in made if p.experiment == "queries"] == list(QUERIES)
    assert [p.kind for p in made if p.experiment == "hotspot"] == list(KINDS)
    assert QUERIES[-1] == 64_000_000
    assert len(list(points(quick=True))) < len(made)
    costs = {float(p.cost.of_points(np.array([8e6 / 22]), np.zeros(1))[0]) for p in made}
    assert max(costs) == pytest.approx(min(costs)), "exponents start from the same cost"


def test_targets_are_judged_by_ratios_to_the_history_grid() -> None:
    assert gain(results(), "queries", "Swarm", work) == pytest.approx(3.0)
    assert gain(results(), "queries", "Replicated", work) == pytest.approx(2.0), "where it fits"
    judged = targets(results(), quick=False)
    assert [verdict["reached"] for verdict in judged] == [True] * 3 + [False] * 3 + [True]
    assert judged[-1]["value"] == pytest.approx(4 / 3)
    assert all(verdict["reached"] is None for verdict in targets(results(), quick=True))


def test_results_become_tables_and_figures(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=200)
    costs = overheads(quick=True)
    console.print(render(results(), targets(results(), quick=False), costs))
    shown = console.file.getvalue()
    for expected in ("out of memory", "trips", "sequence", "5,000,000", "not reached", "× 3.00"):
        assert expected in shown, expected
    pytest.importorskip("matplotlib")
    drawn = draw(results(), tmp_path)
    assert len(drawn) == 3 + 2 * len(KINDS)
    assert all(path.stat().st_size > 5_000 for path in drawn)


def test_overheads_are_measured_and_counted() -> None:
    costs = overheads(quick=True)
    assert all(us > 0 for us in costs.times_us.values())
    assert costs.numbers["SWARM: 2 per executor"] == 44
    assert json.loads(json.dumps(costs.as_json())) == costs.as_json()


def test_a_point_is_performed_by_all_policies() -> None:
    hot = Point("hotspot", 0, 1_000_000, rounds=24, kind="step", cells=16, points=2_000)
    result = perform(hot, 1)
    assert set(result.outcomes) == set(POLICIES)
    assert set(result.pictures) == set(POLICIES)
    auto, history = result.outcomes["Auto"], result.outcomes["history grid"]
    assert auto.work is not None
    assert history.work is not None
    assert auto.work > history.work
    assert len(auto.series) == 6
    assert max(auto.queries) > 1.3 * min(auto.queries), "a hotspot brings subscriptions"
    again = perform(hot, 1)
    assert again.outcomes["Auto"].work == auto.work, "the same seed, the same run"
    assert json.loads(json.dumps(result.as_json())) == result.as_json()


@pytest.mark.parametrize("kind", ["step", "two"])
def test_auto_loses_to_nobody_in_a_hotspot(kind: Kind) -> None:
    hot = Point("hotspot", 0, 1_000_000, rounds=40, kind=kind, cells=32, points=20_000)
    found = perform(hot, 5).outcomes
    done = {name: outcome.work for name, outcome in found.items() if outcome.work is not None}
    assert max(done, key=lambda name: done[name]) == "Auto"


def test_a_hotspot_takes_its_subscriptions_along() -> None:
    scene = crowd_scene(
        1, rounds=20, cells=16, kind="step", start_s=75.0, length_s=150.0, points=100
    )
    live, totals = 0, []
    for happens in scene.rounds:
        live += happens.arrived.total - happens.gone.total
        totals.append(live)
    assert totals[0] == totals[4] == totals[-1] == 50_000
    assert max(totals) == totals[9] == 70_000


def trips(path: Path, count: int = 4_000) -> Path:
    rng = np.random.default_rng(4)
    columns = {
        "ts": pa.array(rng.permutation(count)),
        "lat": 40.7 + 0.1 * rng.normal(size=count),
        "lon": -74.0 + 0.1 * rng.normal(size=count),
    }
    pq.write_table(pa.table(columns), path)
    return path


def test_points_of_a_file_are_dealt_to_rounds_in_time(tmp_path: Path) -> None:
    scene = file_scene(trips(tmp_path / "trips.parquet"), 1, rounds=10, cells=16)
    assert len(scene.rounds) == 10
    assert scene.rounds[0].shares.sum() == pytest.approx(1)
    assert scene.rounds[0].arrived.total == 50_000
    assert scene.history[0].shape[1] == 2
    assert 0.2 < len(scene.history[0]) / 4_000 < 0.26


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"ts": [1], "lat": [1.0]}, "columns ['lon']"),
        ({"ts": [1, 2], "lat": [1.0, 1.0], "lon": [1.0, 2.0]}, "on a line"),
        ({"ts": [1, 2, 3], "lat": [1.0, 2.0, 3.0], "lon": [1.0, 2.0, 3.0]}, "at least 20"),
    ],
)
def test_a_file_without_usable_points_is_refused(tmp_path: Path, table: dict, says: str) -> None:
    path = tmp_path / "points.parquet"
    pq.write_table(pa.table(table), path)
    with pytest.raises(SkewlessError) as refusal:
        file_scene(path, 1, rounds=10, cells=16)
    assert says in str(refusal.value)


def test_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "perform", stand_in)
    out, record = tmp_path / "figures", tmp_path / "swarm.json"
    arguments = ["reproduce", "swarm", "--quick", "--out", str(out), "--json", str(record)]
    path = trips(tmp_path / "trips.parquet", 100)
    done = CliRunner().invoke(app, [*arguments, "--points", str(path)])
    assert done.exit_code == 0, done.output
    told = json.loads(record.read_text())
    assert told["paper"] == "SWARM"
    assert {r["at"] for r in told["results"]} >= {"1", "32", "bell", "trips"}
    assert "overheads" in told
    missing = CliRunner().invoke(app, [*arguments, "--points", str(tmp_path / "none.parquet")])
    assert isinstance(missing.exception, SkewlessError)
