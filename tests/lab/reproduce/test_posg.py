"""The reproduction of POSG: points are complete, results become tables, figures and verdicts."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from skewless.cli import app
from skewless.errors import SkewlessError
from skewless.lab.reproduce import posg
from skewless.lab.reproduce.posg_experiments import (
    EPSILONS,
    INSTANCES,
    LOADS,
    POLICIES,
    ZIPFS,
    Point,
    Result,
    perform,
    points,
)
from skewless.lab.reproduce.posg_report import draw, render, speed_up, targets

MEAN_MS = {
    "RoundRobin": 230.0,
    "Posg": 200.0,
    "LeastOutstanding": 120.0,
    "LeastWork": 100.0,
    "FullKnowledge": 98.0,
}


def stand_in(point: Point, seed: int) -> Result:
    series = {p: [MEAN_MS[p]] * 5 for p in POLICIES} if point.experiment == "series" else {}
    late = {p: 3 * mean for p, mean in MEAN_MS.items()}
    longest = {p: 11 * mean for p, mean in MEAN_MS.items()}
    machines = (9, 10_000 + seed, 80_000)
    return Result(point, seed, dict(MEAN_MS), late, longest, *machines, series)


def results(*, quick: bool = False) -> list[Result]:
    return [stand_in(*task) for task in posg.tasks(quick=quick, seeds=2)]


def test_every_figure_of_the_paper_is_there() -> None:
    made = list(points(quick=False))
    assert len(set(made)) == len(made)

    def found(name: str) -> set[float]:
        return {p.at for p in made if p.experiment == name}

    assert found("skew") == set(ZIPFS)
    assert found("load") == set(LOADS)
    assert found("instances") == found("tweets") == set(INSTANCES)
    assert found("epsilon") == set(EPSILONS)
    assert found("longest")
    assert found("values")
    assert found("series") == {0}
    assert len(list(points(quick=True))) < len(made) / 2


def test_long_streams_are_drawn_less_often() -> None:
    wanted = list(posg.tasks(quick=False, seeds=100))
    assert sum(1 for p, _ in wanted if p.experiment == "series") == 10
    assert sum(1 for p, _ in wanted if p.experiment == "skew") == 100 * len(ZIPFS)


def test_targets_are_judged_on_full_runs_only() -> None:
    verdicts = targets(results(), quick=False)
    assert [v["value"] for v in verdicts] == pytest.approx([2.3, 100 / 98, 2.3, 1.2, 1.2])
    assert [v["reached"] for v in verdicts] == [True] * 5
    assert {v["reached"] for v in targets(results(quick=True), quick=True)} == {None}


def test_a_missed_target_is_said() -> None:
    worse = results()
    for result in worse:
        if result.point.experiment == "tail" and result.point.at == 1.0:
            result.mean_ms["LeastWork"] = 121.0
    assert [v["reached"] for v in targets(worse, quick=False)] == [True, True, True, False, False]


@pytest.mark.parametrize("quick", [True, False])
def test_tables_show_the_papers_figure_beside_ours(quick: bool) -> None:
    found = results(quick=quick)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render(found, targets(found, quick=quick), quick=quick))
    text = console.export_text()
    for expected in ("[p] 1.25", "10,690", "84,912", "916", "2.30", "Fig. 12", "300 / 1,100"):
        assert expected in text
    assert ("not judged" in text) == quick


def test_figures_are_written(tmp_path: Path) -> None:
    figures = draw(results(), tmp_path)
    assert len(figures) == 11
    assert all(f.read_bytes().startswith(b"\x89PNG") for f in figures)


def test_a_real_point_has_all_policies() -> None:
    result = perform(Point("skew", 1.0, tuples=4_096), 1)
    assert set(result.mean_ms) == set(POLICIES)
    for policy, mean in result.mean_ms.items():
        assert mean < result.p99_ms[policy] <= result.longest_ms[policy]
    assert speed_up([result], "LeastWork") > 1.0
    assert result.as_json()["recoveredAt"] is None
    series = perform(Point("series", 0, tuples=8_000), 1)
    assert {len(means) for means in series.series.values()} == {4}
    tweets = perform(Point("tweets", 3, instances=3, tuples=2_000), 1)
    assert tweets.mean_ms["FullKnowledge"] <= tweets.mean_ms["RoundRobin"]


def test_a_finer_sketch_is_what_epsilon_means() -> None:
    made = Point("epsilon", 0.5, epsilon=0.5).policies()
    assert {made["Posg"].epsilon, made["LeastWork"].epsilon} == {0.5}  # type: ignore[union-attr]


def test_the_command_writes_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        posg, "_perform_all", lambda wanted, console: [stand_in(*t) for t in wanted]
    )
    path = tmp_path / "r.json"
    options = ["--quick", "--seeds", "2", "--out", str(tmp_path / "f"), "--json", str(path)]
    done = CliRunner().invoke(app, ["reproduce", "posg", *options])
    assert done.exit_code == 0, done.output
    record = json.loads(path.read_text())
    assert record["paper"] == "POSG"
    assert record["seeds"] == 2
    assert len(record["results"]) == len(list(posg.tasks(quick=True, seeds=2)))
    assert all(Path(figure).exists() for figure in record["figures"])


def test_a_run_needs_a_seed(tmp_path: Path) -> None:
    with pytest.raises(SkewlessError, match="seeds"):
        posg.run(out=tmp_path, json_path=None, quick=True, seeds=0)


def test_the_simulation_runs_through_its_threads() -> None:
    wanted = [(Point("skew", z, zipf=z, tuples=256), s) for z in (0.0, 1.0) for s in (1, 2)]
    found = posg._perform_all(wanted, Console(file=io.StringIO()))
    assert [(r.point, r.seed) for r in found] == wanted
