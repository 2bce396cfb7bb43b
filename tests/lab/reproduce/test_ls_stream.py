"""The reproduction: tasks are complete, results become tables, figures, JSON and verdicts."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from skewless.lab.reproduce import ls_stream
from skewless.lab.reproduce.experiments import (
    SYSTEMS,
    ZIPFS,
    Result,
    Task,
    cluster_of,
    costs_of,
    perform,
)
from skewless.lab.reproduce.report import draw, render, targets
from skewless.simulate import Look, Run

RUN = Run(5_000.0, 5_000.0, 0.5, 0.4, 1e-3, 2e-3, 3e-3, 1.0, 7, 0, (Look(1, 0.5, 0.4, 7, "", 0.0),))
RATES = {"BiStream": 10_000.0, "FastJoin": 20_000.0, "LsStream": 21_500.0, "Auto": 30_000.0}


def stand_in(task: Task) -> Result:
    rate = RATES.get(task.system, 12_000.0)
    return Result(task, rate if task.rate is None else None, RUN)


def results(*, quick: bool = False) -> list[Result]:
    return [stand_in(task) for task in ls_stream.tasks(quick=quick, seed=1)]


def test_every_experiment_of_the_paper_is_there() -> None:
    wanted = list(ls_stream.tasks(quick=False, seed=1))
    assert len(set(wanted)) == len(wanted)
    for experiment in ("zipf", "zipf latency"):
        found = {(t.system, t.at) for t in wanted if t.experiment == experiment}
        assert {(s, z) for s in SYSTEMS for z in ZIPFS} <= found
    assert {"nodes", "ride latency", "instances", "instances latency", "threshold",
            "threshold latency", "readings"} <= {t.experiment for t in wanted}  # fmt: skip


def test_targets_are_judged_on_full_runs_only() -> None:
    verdicts = targets(results(), quick=False)
    assert [v["value"] for v in verdicts] == pytest.approx([2.15, 1.075, 30_000 / 21_500])
    assert [v["reached"] for v in verdicts] == [True, True, True]
    assert {v["reached"] for v in targets(results(), quick=True)} == {None}


def test_a_missed_target_is_said() -> None:
    slower = [
        replace(r, bottleneck=20_000.0) if r.task.system == "LsStream" and r.bottleneck else r
        for r in results()
    ]
    assert [v["reached"] for v in targets(slower, quick=False)] == [False, False, True]


@pytest.mark.parametrize("quick", [True, False])
def test_tables_show_the_papers_figure_beside_ours(quick: bool) -> None:
    found = results(quick=quick)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render(found, targets(found, quick=quick), quick=quick))
    text = console.export_text()
    assert "10,000  [p] 29,500" in text
    assert "21,500  [p] 25,500" in text
    assert ("not judged" in text) == quick


def test_figures_are_written(tmp_path: Path) -> None:
    figures = draw(results(), tmp_path)
    assert len(figures) == 6
    assert all(f.read_bytes().startswith(b"\x89PNG") for f in figures)


def test_run_writes_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        ls_stream, "_perform_all", lambda wanted, console: [stand_in(t) for t in wanted]
    )
    path = tmp_path / "r.json"
    record = ls_stream.run(out=tmp_path / "figures", json_path=path, quick=True, seed=3)
    assert json.loads(path.read_text()) == json.loads(json.dumps(record))
    assert record["seed"] == 3
    assert len(record["results"]) == len(list(ls_stream.tasks(quick=True, seed=3)))


def test_costs_follow_what_the_paper_says_is_compared() -> None:
    task = Task("zipf", "BiStream", 1.0, 1, zipf=1.0)
    assert costs_of(task).scope == "instance"
    assert costs_of(replace(task, system="LsStream")).scope == "partition"
    assert costs_of(replace(task, reading="same scan for all")).scope == "partition"
    assert costs_of(replace(task, reading="index")).kind == "index"
    less = costs_of(replace(task, reading="a quarter comparing"))
    assert less.compare_s == pytest.approx(costs_of(task).compare_s / 2)
    assert less.tuple_s == pytest.approx(costs_of(task).tuple_s * 1.5)
    assert cluster_of(task).instances == 10
    assert cluster_of(replace(task, reading="one group of 20")).instances == 20


def test_a_real_task_at_a_rate() -> None:
    task = Task("zipf latency", "LsStream", 1.0, 1, zipf=1.0, rate=2_000.0, quick=True)
    result = perform(task)
    assert result.bottleneck is None
    assert result.run is not None
    assert result.run.throughput == pytest.approx(2_000, rel=0.1)
