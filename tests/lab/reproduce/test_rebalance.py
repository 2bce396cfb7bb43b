"""The rebalancing paper, reproduced: tasks are complete, results become tables, figures, JSON."""

import io
import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from skewless.cli import app
from skewless.lab.reproduce import rebalance
from skewless.lab.reproduce.rebalance_experiments import SYSTEMS, Result, Task, perform, planner_of
from skewless.lab.reproduce.rebalance_report import draw, ratio, render, targets

MOVED = {"MinTable": 0.5, "Mixed": 0.125}
SMALL = Task("rate", "Mixed", 1.0, 1, keys=1_000, instances=5, intervals=3)


def stand_in(task: Task) -> Result:
    return Result(
        task=task,
        skewness=1.05,
        skewness_before=1.5,
        milliseconds=12.0 if planner_of(task) else None,
        migration=MOVED.get(task.system, 0.2),
        table_size=100.0,
        last_table=9_200,
        load_error=None if task.degree is None else 0.002,
        last_skewness=1.03,
    )


def results(*, quick: bool = False) -> list[Result]:
    return [stand_in(task) for task in rebalance.tasks(quick=quick, seed=1)]


@pytest.mark.parametrize("quick", [True, False])
def test_every_experiment_is_there_and_no_task_twice(quick: bool) -> None:
    wanted = list(rebalance.tasks(quick=quick, seed=1))
    assert len(set(wanted)) == len(wanted)
    assert {t.experiment for t in wanted} == {
        "instances", "threshold", "window", "keys", "degree", "rate", "beta", "table", "scale-out",
    }  # fmt: skip
    assert {t.system for t in wanted} == set(SYSTEMS)


def test_targets_are_judged_on_full_runs_only() -> None:
    verdicts = targets(results(), quick=False)
    assert [v["value"] for v in verdicts] == pytest.approx(
        [12.0, 12.0, 0.002, 4.0, 9_200 / (10_000 * 14 / 15), 1.03]
    )
    assert {v["reached"] for v in verdicts} == {True}
    assert {v["reached"] for v in targets(results(), quick=True)} == {None}


def test_a_missed_target_is_said() -> None:
    same = [replace(r, migration=0.2, milliseconds=2_000.0) for r in results()]
    assert [v["reached"] for v in targets(same, quick=False)] == [
        False, False, True, False, True, True,
    ]  # fmt: skip
    assert ratio(same, "window", 5) == 1


def test_tables_show_the_papers_figure_beside_ours() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render(results(), targets(results(), quick=False)))
    text = console.export_text()
    assert "12.0  [p] 6,000" in text
    assert "4.00" in text
    assert "9,350" in text


def test_figures_are_written(tmp_path: Path) -> None:
    figures = draw(results(), tmp_path)
    assert len(figures) == 18
    assert all(f.read_bytes().startswith(b"\x89PNG") for f in figures)


def test_run_writes_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        rebalance, "_perform_all", lambda wanted, console: [stand_in(t) for t in wanted]
    )
    path = tmp_path / "r.json"
    record = rebalance.run(out=tmp_path / "figures", json_path=path, quick=True, seed=3)
    assert json.loads(path.read_text()) == json.loads(json.dumps(record))
    assert record["seed"] == 3
    assert len(record["results"]) == len(list(rebalance.tasks(quick=True, seed=3)))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_real_task(system: str) -> None:
    ticks = itertools.count()
    result = perform(replace(SMALL, system=system), clock=lambda: float(next(ticks)))
    assert (result.milliseconds is None) == (system in ("Hash", "Ideal"))
    assert result.milliseconds in (None, 1_000)
    if system == "Hash":
        assert result.skewness == result.skewness_before > 1.1
    else:
        assert result.skewness < result.skewness_before
    assert (result.migration > 0) == (system not in ("Hash", "Ideal", "PKG"))


def test_equal_tasks_have_equal_results() -> None:
    ticks = itertools.count()
    one, two = (perform(SMALL, clock=lambda: float(next(ticks))) for _ in range(2))
    assert one == two


def test_an_instance_that_joins_is_filled_in_one_round() -> None:
    result = perform(replace(SMALL, experiment="scale-out", rate=0.1, scale_out=True))
    assert result.last_skewness <= 1.08 + 1e-9


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[dict[str, object]] = []
    monkeypatch.setattr(rebalance, "run", lambda **options: calls.append(options))
    options = ["--out", str(tmp_path), "--quick", "--seed", "4", "--json", str(tmp_path / "r")]
    assert CliRunner().invoke(app, ["reproduce", "rebalance", *options]).exit_code == 0
    assert calls == [{"out": tmp_path, "json_path": tmp_path / "r", "quick": True, "seed": 4}]
