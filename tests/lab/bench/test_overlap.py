"""The benchmark of joins by common items: what it compares finds the same pairs."""

import itertools
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner

import skewless as sk
from skewless.cli import app
from skewless.lab.bench.overlap import (
    AT_LEAST,
    QUICK,
    REACH_S,
    exploded,
    indexed,
    measure,
    nested,
    on_spark,
    render,
    run,
    write,
)
from skewless.lab.workloads.sets import SetStreams
from skewless.testing import join_oracle


def test_all_contenders_find_the_pairs_of_the_oracle(spark: SparkSession, tmp_path: Path) -> None:
    left, right = SetStreams(2, 300, items=40, exponent=0.6).tables()
    reach = f"{REACH_S} seconds"
    wanted = join_oracle(
        [(left, right)],
        on=[],
        time=("ts", "ts"),
        within=(f"-{reach}", reach),
        watermark=(None, None),
        match=sk.Overlap("items", AT_LEAST),
    ).num_rows
    assert wanted > 1_000
    assert indexed(left, right) == nested(left, right) == wanted
    for name, side in (("left", left), ("right", right)):
        write(side, tmp_path / name, 300)
    contenders = on_spark(spark, tmp_path)
    assert contenders["skewless"]() == wanted
    frames = [spark.read.parquet(str(tmp_path / side)) for side in ("left", "right")]
    assert exploded(*frames, "merge").count() == wanted


def test_contenders_take_turns_and_the_first_turn_does_not_count() -> None:
    order: list[str] = []
    ticks = itertools.count()
    contenders = {name: lambda n=name: order.append(n) for name in ("index", "nested loop")}
    part = QUICK["memory"]
    found = measure(part, contenders, clock=lambda: float(next(ticks)))
    assert order == ["index", "nested loop"] * (part.repeats + 1)
    assert found["runs"]["index"] == {"median": 1.0, "least": 1.0, "most": 1.0}
    assert found["ratios"] == {"times_nested": 1.0}


def test_different_pairs_are_an_error() -> None:
    contenders = {"index": lambda: 3, "nested loop": lambda: 4}
    found = measure(QUICK["memory"], contenders, clock=itertools.count().__next__)
    assert found["errors"]
    found |= {"busy_share": 0.5, "targets": []}
    console = Console(record=True, width=80)
    console.print(render(found))
    assert "different pairs" in console.export_text()


def test_the_command_saves_what_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "overlap.json"
    options = ["--quick", "--part", "memory", "--json", str(path)]
    shown = CliRunner().invoke(app, ["bench", "overlap", *options])
    assert shown.exit_code == 0, shown.output
    assert "nested loop" in shown.output
    saved = json.loads(path.read_text())
    assert saved["parts"]["memory"]["ratios"]["times_nested"] > 0
    assert saved["parts"]["memory"]["targets"][0]["reached"] is None, "small inputs prove nothing"


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(KeyError):
        run(json_path=None, quick=True, parts=["nothing"], console=Console(quiet=True))
