"""The benchmark of the driver runs, measures what it says, and grows with what changes."""

import json
from pathlib import Path

from rich.console import Console
from typer.testing import CliRunner

from skewless.cli import app
from skewless.lab.bench.control import BATCHES, WINDOW_BATCHES, run


def test_commit_and_task_grow_with_instances_and_not_with_the_window() -> None:
    few, many = run(instances=[4, 16], console=Console(quiet=True))["rows"]
    assert (few["instances"], many["instances"]) == (4, 16)
    # Two sides of a window and a bit, and nothing that is older.
    assert many["segments"] <= 2 * 16 * (WINDOW_BATCHES + 2) < 2 * 16 * BATCHES
    assert many["commit_bytes"] < 40_000
    assert many["task_bytes"] < 10_000
    assert 0 < few["driver_s"] <= few["slowest_s"]


def test_the_command_saves_and_draws(tmp_path: Path) -> None:
    json_path, plot = tmp_path / "control.json", tmp_path / "control.png"
    options = ["--quick", "--plot", str(plot), "--json", str(json_path)]
    result = CliRunner().invoke(app, ["bench", "control", *options])
    assert result.exit_code == 0, result.output
    assert "instances" in result.output
    rows = json.loads(json_path.read_text())["rows"]
    assert [row["instances"] for row in rows] == [4, 16]
    assert plot.stat().st_size > 1_000
